"""What the pages of the manual tell a reader to do is done, as they have it.

Each `sh` block of README.md, docs/start.md and docs/guides/*.md is run, in the order of the page,
where tests/docs/inside.py lets it: with its own network, and with files that are gone at the end.
A shell stays from block to block.  A server in the foreground, as the last command of a block, goes
on, and the next block has a new shell.  A block `text output` is what the block above prints, in
which `...` stands for anything.  Commands that need another machine are in tests/docs/bin.

Each `conf` block of every page is read by `pagewise -t`: `conf` is a whole file, `conf top` lines
of its top level, `conf site` lines of a site.  Files that it names are made.

Blocks of `console` are not run; there are not to be many.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import harness
from pages import Page

pytestmark = pytest.mark.once
TREE = pathlib.Path(harness.TREE)
SECONDS = 25 * harness.SLOWER
CONF = ("conf", "conf top", "conf site")
COMMANDS = [path for path in [TREE / "README.md", TREE / "docs/start.md", *sorted(TREE.glob("docs/guides/*.md"))] if path.exists()]
PAGES = [TREE / "README.md", *sorted(TREE.glob("docs/**/*.md")), TREE / "lib/nginx/README.md"]
OF_FREEBSD = ["docs/guides/freebsd.md"]
UNSHARE = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def blocks(path, kinds):
    return [{"line": one.line, "info": one.info, "text": one.text} for one in Page(path.read_text()).blocks if one.info in kinds]


def name(path):
    return str(path.relative_to(TREE))


def with_any(paths, kinds):
    return [pytest.param(path, id=name(path)) for path in paths if blocks(path, kinds)]


@pytest.fixture
def do(tmp_path):
    """do(what, blocks): what failed."""
    if os.geteuid() != 0 or subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("namespaces for the commands of a page need root")
    tool = pathlib.Path(harness.PAGEWISE).with_name("pagewise-tool")

    def run(what, these, seconds=SECONDS):
        job = {"what": what, "blocks": these, "tree": str(TREE), "server": str(harness.PAGEWISE), "tool": str(tool),
               "seconds": seconds}
        done = subprocess.run([*UNSHARE, sys.executable, str(TREE / "tests/docs/inside.py")], input=json.dumps(job),
                              capture_output=True, text=True, check=False, timeout=seconds + 30)
        if done.returncode != 0 and "overlay" in done.stderr:
            pytest.skip("no overlay file systems here")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize("path", with_any(COMMANDS, ("sh",)))
def test_commands_of_a_page(do, path):
    failures = do("page", blocks(path, ("sh", "text output")))
    assert not failures, "%s: %s" % (name(path), "\n".join(failures))


@pytest.mark.parametrize("path", with_any(PAGES, CONF))
def test_configurations_of_a_page(do, path):
    failures = do("conf", blocks(path, CONF))
    assert not failures, "%s: %s" % (name(path), "\n".join(failures))


@pytest.mark.parametrize("path", [pytest.param(path, id=name(path)) for path in COMMANDS if name(path) not in OF_FREEBSD])
def test_few_blocks_are_not_run(path):
    run, not_run = len(blocks(path, ("sh",))), len(blocks(path, ("console",)))
    print("%s: %d blocks of commands are run, %d are not" % (name(path), run, not_run))
    assert not_run <= 2 * run + 1


# ------------------------------------------------------------------ of the tests themselves


def sh(text, info="sh"):
    return {"line": 0, "info": info, "text": text}


def test_command_that_fails_is_found(do):
    assert do("page", [sh("true\nfalse\n")]) == ["line 2: false: status 1\n"]


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


def test_make_run(do):
    assert do("page", [sh("make run\n"), sh("curl -sf http://127.0.0.1:8080/ | grep -q pagewise\n")]) == []


def test_service(do):
    assert do("page", [sh("sudo systemctl enable --now pagewise\ncurl -sf http://127.0.0.1/ >/dev/null\n"
                          "systemctl reload pagewise\nsystemctl status pagewise\nsystemctl restart pagewise\n"
                          "journalctl -u pagewise | grep -q serving\nsystemctl stop pagewise\n! systemctl is-active pagewise\n")]) == []


def test_output_is_another_one(do):
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
