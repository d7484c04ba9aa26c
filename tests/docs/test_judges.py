"""tests/judges: what differs is explained or a fault, and what cannot run is skipped."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TREE / "tests/judges"))

import differs
import http1
import others
from verdict import Absent, Reason, Verdict, explain, line, row

REASONS = (Reason("nice", "a .* b", "b is optional"), Reason("strict", ".", "of another judge"))


def judges(tmp_path, *args, **env):
    kept = {name: value for name, value in os.environ.items() if name not in ("NGINX_TESTS", "TLSFUZZER")}
    return subprocess.run([sys.executable, str(TREE / "tests/judges/run"), *args, str(tmp_path / "kept")], timeout=600,
                          env=kept | env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def test_findings_without_a_reason_are_left():
    one = Verdict("nice 1.0", 10, 7, "URLs", ["a and b", "a or b", "c"])
    assert explain(one, REASONS) == ([REASONS[0]], ["c"])
    assert line(one, REASONS) == "nice 1.0: 7 of 10 URLs; differ: 2 explained, 1 not"
    assert row(one, REASONS) == "| nice 1.0 | 7 of 10 URLs | b is optional; **not explained**: c |"


def test_a_verdict_without_findings_is_short():
    one = Verdict("nice 1.0", 10, 10, "URLs")
    assert line(one, REASONS) == "nice 1.0: 10 of 10 URLs"
    assert row(one, REASONS) == "| nice 1.0 | 10 of 10 URLs | – |"


def test_reasons_name_a_judge_that_exists():
    for reason in differs.REASONS:
        assert reason.judge in ("REDbot", "httplint", "h11", "HTTPX", "h2spec", "testssl.sh", "clients", "nginx-tests",
                                "tlsfuzzer"), reason


def test_a_judge_that_is_missing_is_skipped_with_the_reason(tmp_path):
    done = judges(tmp_path, "--only", "nginx,tlsfuzzer", "--page", str(tmp_path / "page.md"))
    assert done.returncode == 0, done.stdout
    assert done.stdout == "nginx: skipped: no NGINX_TESTS=DIR\ntlsfuzzer: skipped: no TLSFUZZER=DIR\n"
    assert "- Skipped: nginx: no NGINX_TESTS=DIR." in (tmp_path / "page.md").read_text()


def test_what_pip_cannot_install_is_absent(tmp_path):
    with pytest.raises(Absent, match="pip cannot install it"):
        http1.installed(str(tmp_path), ("/no/such/package",))


def test_h2spec_that_is_missing_is_absent(tmp_path):
    with pytest.raises(Absent):
        others.h2spec(str(tmp_path / "h2spec"))


def test_nginx_failures_are_those_of_the_module(tmp_path):
    """A script of its own: one test fails always, one only with the module, one is a TODO."""
    (tmp_path / "a.t").write_text('print "1..3\\nnot ok 1 - always\\n", ($ENV{TEST_NGINX_GLOBALS_HTTP} ? "not " : ""), '
                                  '"ok 2 - module\\nnot ok 3 - later # TODO\\n";')
    plain, _ = others.prove(str(tmp_path), "nginx", None)
    failed, ran = others.prove(str(tmp_path), "nginx", "module.so")
    assert (plain, failed, ran) == ({"a.t": {"1 always"}}, {"a.t": {"1 always", "2 module"}}, 3)


@pytest.mark.skipif(importlib.util.find_spec("h11") is None, reason="no h11: make judges installs it")
def test_h11_accepts_each_response(tmp_path):
    place = tmp_path / "kept/python"
    place.mkdir(parents=True)
    (place / "installed.txt").write_text("\n".join(http1.REQUIREMENTS))  # the system's is used
    done = judges(tmp_path, "--only", "h11")
    assert done.returncode == 0, done.stdout
