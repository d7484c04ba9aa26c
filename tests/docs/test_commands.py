"""What the pages of the manual tell a reader to do is done, as they have it.

Each `sh` block of README.md, docs/start.md and docs/guides/*.md is run, and of `console` what
follows a prompt ("$ " or "# "), in the order of the page,
where tests/docs/inside.py lets it: with its own network, and with files that are gone at the end.
A shell stays from block to block.  A server in the foreground, as the last command of a block, goes
on, and the next block has a new shell; before another command it is interrupted.  A block `text
output` is what the block above prints, and in `console` what has no prompt is; there `...` stands
for anything.  Instead of programs that need another machine, or minutes, those of tests/docs/bin run.  What a reader of PAGE.md has done
before is in tests/docs/before/PAGE.sh.

Each `conf` block of every page is read by `pagewise -t`: `conf` is a whole file, `conf top` lines
of its top level, `conf site` lines of a site.  Files that it names are made.

Guides for other systems are not run.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import harness
from pages import Page

pytestmark = pytest.mark.once
TREE = pathlib.Path(harness.TREE)
SECONDS = 25 * harness.SLOWER
CONF = ("conf", "conf top", "conf site")
SHELL = ("sh", "console")
OTHER_SYSTEMS = ["docs/guides/freebsd.md"]
PAGES = [TREE / "README.md", *sorted(TREE.glob("docs/**/*.md")), TREE / "lib/nginx/README.md"]
START = TREE / "docs/start.md"
# The guides that README names beside start.md, in its order.
FOLLOWING = [TREE / page for page in re.findall(r"\]\((docs/guides/[\w-]+\.md)\)", (TREE / "README.md").read_text())
             if page not in OTHER_SYSTEMS]
UNSHARE = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def blocks(path, kinds):
    return [{"line": one.line, "info": one.info, "text": one.text} for one in Page(path.read_text()).blocks if one.info in kinds]


def without_tls(path, kinds):
    """Its blocks, as a reader has them who has no certificate yet."""
    found = blocks(path, kinds)
    for one in found:
        one["text"] = re.sub(r'^(certificate|certificate_key|redirect_https) = .*\n|, "\*:443 tls"', "", one["text"], flags=re.M)
    return found


def name(path):
    return str(path.relative_to(TREE))


COMMANDS = [path for path in PAGES if name(path) in ("README.md", "docs/start.md") or path.parent.name == "guides"
            and name(path) not in OTHER_SYSTEMS]


def with_any(paths, kinds):
    return [pytest.param(path, id=name(path)) for path in paths if blocks(path, kinds)]


@pytest.fixture(scope="session")
def built():
    """`make run` of a page then only serves; `make test` has built."""
    if subprocess.run(["make", "-q", "-C", TREE, "all"], capture_output=True, check=False).returncode != 0:
        pytest.skip("what is built is older than its sources: make all")


@pytest.fixture
def do():
    """do(what, blocks): what failed."""
    if os.geteuid() != 0 or subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("namespaces for the commands of a page need root")
    tool = pathlib.Path(harness.PAGEWISE).with_name("pagewise-tool")

    def run(what, these, seconds=SECONDS, before=""):
        job = {"what": what, "blocks": these, "tree": str(TREE), "server": str(harness.PAGEWISE), "tool": str(tool),
               "seconds": seconds, "before": before}
        done = subprocess.run([*UNSHARE, sys.executable, str(TREE / "tests/docs/inside.py")], input=json.dumps(job),
                              capture_output=True, text=True, check=False, timeout=seconds + 30)
        if done.returncode != 0 and "overlay" in done.stderr:
            pytest.skip("no overlay file systems here")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize("path", with_any(COMMANDS, SHELL))
def test_commands_of_a_page(built, do, path):
    before = TREE / "tests/docs/before" / (path.stem + ".sh")
    configured = without_tls(START, ("conf",)) if path in FOLLOWING else []
    failures = do("page", configured + blocks(path, (*SHELL, "text output")), before=before.read_text() if before.exists() else "")
    assert not failures, "%s: %s" % (name(path), "\n".join(failures))


def test_guides_in_the_order_of_readme_keep_the_configuration(built, do):
    """In one root.  The last configuration has all that the first one has, but for its addresses."""
    assert [path.stem for path in FOLLOWING] == ["lets-encrypt", "from-nginx"]
    dump = "pagewise -T -c /etc/pagewise/pagewise.conf >/srv/%s\n"
    steps = [*without_tls(START, ("console", "conf")), sh(dump % "first")]
    for path in FOLLOWING:
        steps += blocks(path, SHELL)
    steps.append(sh(dump % "last" + "grep -q 'site \"static\"' /srv/last && grep -q '^redirect_https = true' /srv/last\n"
                    "! grep -vxFf /srv/last /srv/first | grep -Ev '^(#|(listen|redirect_https) =)'\n"))
    failures = do("page", steps, seconds=3 * SECONDS)
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("path", with_any(PAGES, CONF))
def test_configurations_of_a_page(do, path):
    failures = do("conf", blocks(path, CONF))
    assert not failures, "%s: %s" % (name(path), "\n".join(failures))


def test_each_guide_has_commands_or_a_configuration():
    """What hides in `text`, and a page that is not found, would be missed."""
    assert {"README.md"} <= {name(path) for path in COMMANDS}
    for path in COMMANDS:
        hidden = [one for one in blocks(path, ("text", "text output")) if any(
            line.startswith(("$ ", "# ", "#!")) for line in one["text"].splitlines())]
        assert not hidden, "%s:%d: commands as text" % (name(path), hidden[0]["line"])


# ------------------------------------------------------------------ of the tests themselves


def sh(text, info="sh"):
    return {"line": 0, "info": info, "text": text}


def test_command_that_fails_is_found(do):
    assert do("page", [sh("true\nfalse\n")]) == ["line 2: false: status 1\n"]


def test_console_has_prompts_and_output(do):
    text = "# cat >/etc/x <<E\na\nE\n# cat /etc/x\na\n$ echo b \\\n  c; true\n%s\n"
    assert do("page", [sh(text % "b ...", "console")]) == []
    assert "another one" in do("page", [sh(text % "d", "console")])[0]
    assert "status 1" in do("page", [sh("# false\n", "console")])[0]


def test_shell_goes_on(do):
    assert do("page", [sh("cd /etc\nx=1\n"), sh("test $PWD$x = /etc1\ncat <<END |\n$x\nEND\ngrep 1\nfor i in 1 2\ndo\ntrue\ndone\n")]) == []


def test_server_in_the_foreground_goes_on_or_is_stopped(do):
    assert do("page", [
        sh("pagewise --root /srv/www --listen 127.0.0.1:8080\n"),
        sh("curl -sf http://www.example.org:8080/\n"), sh("hello\n", "text output"),
        sh("pagewise --root /srv/www --listen 192.0.2.7:8081\ntrue\n")]) == []


def test_server_in_the_background(do):
    assert do("page", [sh("pagewise --root /srv/www --listen 127.0.0.1:8080 &\nsleep 0.5\ncurl -sf http://127.0.0.1:8080/\n"
                          "kill $!\nwait $!\n"), sh("! curl -sf http://127.0.0.1:8080/\n")]) == []


def test_make_run(built, do):
    assert do("page", [sh("make run\n"), sh("curl -sf http://127.0.0.1:8080/ | grep -q pagewise\n")]) == []


def test_service(do):
    assert do("page", [sh("sudo systemctl enable --now pagewise\ncurl -sf http://127.0.0.1/ >/dev/null\n"
                          "systemctl reload pagewise\nsystemctl status pagewise\nsystemctl restart pagewise\n"
                          "journalctl -u pagewise | grep -q serving\nsystemctl stop pagewise\n! systemctl is-active pagewise\n")]) == []


def test_different_output_is_a_fault(do):
    said = do("page", [sh("echo a b; seq 3\n"), sh("a ...\n1\n...\n3\n", "text output"), sh("b\n", "text output"), sh("c\n", "text output")])
    assert len(said) == 1 and "another one" in said[0]


def test_page_that_does_not_end(do):
    assert do("page", [sh("sleep 60\n")], seconds=1) == ["line 1: sleep 60: it does not end\n"]


def test_nothing_is_left(do):
    there = [path for path in ("/etc/pagewise", "/srv/www", "/opt/pagewise", "/tmp/page") if os.path.exists(path)]
    assert do("page", [sh("touch /etc/page /srv/page /tmp/page build/page /var/tmp/page\ntest -e README.md\n")]) == []
    assert not any(os.path.exists(path) for path in ("/etc/page", "/srv/page", "/tmp/page", TREE / "build/page", "/var/tmp/page"))
    assert there == [path for path in ("/etc/pagewise", "/srv/www", "/opt/pagewise", "/tmp/page") if os.path.exists(path)]


def test_configurations(do):
    good = [sh('listen = {"*:443 tls"}\ncertificate = {"/etc/tls/a.pem"}\nsite "a" { root = "/srv/a" }\n', "conf"),
            sh('access_log = "/var/log/x/y.log"\nuser = "pagewise"\n', "conf top"), sh('location "/a/" { alias = "/srv/b" }\n', "conf site")]
    assert do("conf", good) == []
    bad = do("conf", [sh('rot = "/srv/a"\n', "conf site"), *good, sh("threads = 0\n", "conf top")])
    assert len(bad) == 2 and "rot" in bad[0] and "threads" in bad[1]
