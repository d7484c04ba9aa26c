"""The fault layer itself: it is complete, and does what a plan says."""

import glob
import os
import re
import subprocess

import pytest

import harness
import imports
import injection

pytestmark = pytest.mark.once

SANITIZERS = re.compile(r"__(asan|ubsan|lsan|sanitizer|odr_asan)")
INTERNAL = {"event_malloc", "event_realloc", "openssl_begin", "openssl_malloc", "openssl_realloc", "openat2", "cachestat",
            "capset", "landlock", "nghttp2_malloc", "nghttp2_calloc", "seccomp"}


def symbols(flags, files):
    """The names that nm shows of these files."""
    done = subprocess.run(["nm", *flags, *files], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines() if " " in line}


@pytest.fixture(scope="module")
def imported():
    files = [os.path.join(harness.TREE, "build/asan/server/main.o")]
    files += [os.path.join(harness.TREE, "build/asan", n) for n in ("server.a", "libpagewise.a")]
    defined = symbols(["--defined-only"], files)
    return {n for n in symbols(["-u"], files) - defined if not SANITIZERS.match(n)}


def wrapped():
    files = glob.glob(os.path.join(harness.TREE, "build/asan/tests/fault/inject*.o"))
    names = symbols(["--defined-only"], files)
    return {n[len("__wrap_"):] for n in names if n.startswith("__wrap_")}


def left_alone():
    return [name for names in imports.LEFT.values() for name in names.split()]


def test_every_import_is_wrapped_or_left_alone_with_a_reason(imported):
    unknown = imported - wrapped() - set(left_alone())
    assert not unknown, "in neither inject_*.c nor imports.py: %s" % sorted(unknown)


def test_exceptions_are_listed_once_and_not_wrapped():
    names = left_alone()
    assert len(names) == len(set(names))
    assert not set(names) & wrapped()


def test_every_call_that_is_wrapped_has_effects(tmp_path):
    plan = injection.Plan(tmp_path / "plan")
    assert set(plan.index) == wrapped() | INTERNAL
    assert set(injection.ON) == set(plan.index) - {"event_del"}  # it does not fail
    for name in injection.ON:
        assert all(injection.number(effect) for effect in injection.effects(name))


def test_a_rule_fails_the_call_that_it_names(tmp_path):
    plan = injection.Plan(tmp_path / "plan")
    (tmp_path / "c").write_text("")
    plan.fail(("fdopen", "EIO"))
    done = subprocess.run([injection.FAULT, "-t", "-c", tmp_path / "c"], capture_output=True,
                          text=True, env=dict(os.environ, **plan.env), check=False)
    harness.judge(done.stderr)
    assert done.returncode == 1
    assert "Input/output error" in done.stderr
    assert plan.failures() == {"fdopen": 1}
