"""SIGUSR2: another program goes on in the same process, or the old one does."""

import os
import shutil
import signal

import pytest

import harness
from harness import wait_until
from test_reload import loaded, under_load  # a fixture too

REFUSED = r"(pagewise: [^\n]*\n)*pagewise: cannot upgrade: [^\n]*; the old program stays in use\n"


@pytest.fixture
def program(tmp_path):
    """The path of a copy that can be replaced."""
    return replace(tmp_path / "pagewise", harness.PAGEWISE)


def replace(path, source):
    shutil.copy(source, str(path) + ".new")
    os.rename(str(path) + ".new", path)
    return path


def script(path, text):
    new = path.with_name("new")
    new.write_text("#!/bin/sh\n" + text)
    new.chmod(0o755)
    os.rename(new, path)


def upgrade(server):
    server.again(signal.SIGUSR2, "upgraded")


@pytest.fixture
def server(serve, site, program):
    (site / "small").write_bytes(b"small")
    return serve("--root", site, "--workers", "2", binary=program)


def name(pid):
    with open("/proc/%d/comm" % pid) as f:
        return f.read().strip()


def running(pid):
    return os.stat("/proc/%d/exe" % pid).st_ino


def test_program_that_was_replaced_serves_in_the_same_process(server, program):
    master, before = server.master, running(server.master)
    replace(program, harness.PAGEWISE)
    upgrade(server)
    assert server.master == master and server.running
    assert running(master) == running(server.pid) == os.stat(program).st_ino != before
    assert server.get("/small").body == b"small"
    server.reload()
    upgrade(server)
    assert server.get("/small").body == b"small"


@pytest.mark.slow
def test_script_that_executes_the_program_works(server, program):
    script(program, 'exec %s "$@"\n' % harness.PAGEWISE)
    upgrade(server)
    assert server.get("/small").body == b"small"


@pytest.mark.parametrize(
    "text", ["exit 3\n", "exit 0\n", "echo configuration wrong\n", "kill -9 $$\n"]
)
def test_program_that_does_not_work_is_refused(server, program, text):
    pid = server.pid
    script(program, text)
    server.signal(signal.SIGUSR2)
    wait_until(lambda: "cannot upgrade" in server.messages, "the refusal")
    assert server.get("/small").body == b"small"
    assert server.pid == pid
    replace(program, harness.PAGEWISE)
    upgrade(server)
    server.stop(messages=REFUSED)


@pytest.mark.parametrize("change", [os.unlink, lambda p: os.chmod(p, 0o644)])
def test_program_that_cannot_be_run_is_refused(server, program, change):
    change(program)
    server.signal(signal.SIGUSR2)
    wait_until(lambda: "cannot upgrade" in server.messages, "the refusal")
    assert "cannot run %s: " % program in server.messages
    assert server.get("/small").body == b"small"
    server.stop(messages=REFUSED)


@pytest.mark.slow
def test_hung_program_is_tested_again(server, program):
    script(program, "exec sleep 1000\n")
    server.signal(signal.SIGUSR2)
    # Before that the shell may still have to read its script.
    wait_until(lambda: "sleep" in map(name, server.processes()), "the test")
    replace(program, harness.PAGEWISE)

    def given_up():
        return "takes too long" in server.output or server.signal(signal.SIGUSR2)

    # The signal for which it is given up is the next upgrade's.
    wait_until(given_up, "the end of the test", pause=0.5)
    wait_until(lambda: "upgraded" in server.output, "the upgrade")
    wait_until(lambda: len(server.processes()) == 1, "the one that hung to end")


@pytest.mark.once  # 20 seconds
@pytest.mark.slow
def test_reload_waits_for_a_hung_program_within_the_limit(server, program):
    script(program, "exec sleep 1000\n")
    server.signal(signal.SIGUSR2)
    wait_until(lambda: "sleep" in map(name, server.processes()), "the test")
    server.signal(signal.SIGHUP)
    wait_until(lambda: "reloaded" in server.output, "the reload", patience=2 * harness.PATIENCE)
    assert "the new program takes too long to test the configuration: killing it\n" in server.output
    assert server.get("/small").body == b"small"
    wait_until(lambda: len(server.processes()) == 1, "the one that hung to end")


@pytest.mark.slow
def test_configuration_that_is_wrong_is_refused(serve_conf, site, program, tmp_path):
    (site / "small").write_bytes(b"small")
    server = serve_conf({"workers": 1}, [("s", {"root": site}, {})], binary=program)
    (tmp_path / "pagewise.conf").write_text("nonsense = 1\n")
    server.signal(signal.SIGUSR2)
    wait_until(lambda: "cannot upgrade" in server.messages, "the refusal")
    assert "nonsense: unknown key" in server.messages
    assert server.get("/small").body == b"small"
    server.stop(messages=REFUSED)


@pytest.mark.slow
def test_descriptors_do_not_grow(server):
    def count():
        wait_until(lambda: len(server.processes()) == 1, "the old ones to end")
        return [len(os.listdir("/proc/%d/fd" % p)) for p in (server.master, server.pid)]

    upgrade(server)
    before = count()
    for _ in range(5):
        upgrade(server)
        server.reload()
    assert count() == before


@pytest.mark.parametrize("send_path", ["nodiskio", "uring"])
@pytest.mark.slow
def test_upgrades_lose_nothing(loaded, send_path):
    server, data = loaded("--send-path", send_path)
    under_load(server, data, lambda: server.signal(signal.SIGUSR2))
    wait_until(lambda: len(server.processes()) == 1, "the old ones to end")
    # Not all are noted: one that follows at once takes the place of the note.
    assert server.output.count("pagewise: serving ") > 3
