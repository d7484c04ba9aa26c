"""What the master does when server processes die, hang, or spoil what they share."""

import ctypes
import functools
import os
import re
import signal
import socket
import subprocess
import time

import pytest

import harness
import processes
import strace
import tree as t
from harness import Connection, request, wait_until
from ports import free_port  # a fixture
from test_reload_late import Leased, leased  # a fixture
from test_upgrade import program, running, script  # a fixture too


def cpu(pid):
    """Ticks that a process has used."""
    with open("/proc/%d/stat" % pid) as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))


def rests(pid):
    before = cpu(pid)
    time.sleep(0.3)
    return cpu(pid) == before


def answers(server):
    try:
        return server.get("/name").status == 200
    except OSError:
        return False


# ------------------------------------------------------------------------- they die


def test_master_rests_after_a_death_during_a_reload(leased):
    server = leased.server
    first = server.pid
    leased.hold()
    server.signal(signal.SIGHUP)
    leased.held(2)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: "starting another one" in server.messages, "its end")
    leased.release()
    wait_until(lambda: answers(server), "an answer")
    wait_until(lambda: rests(server.master), "the master to rest", patience=5)
    server.stop(messages=True)


@pytest.mark.slow
def test_replacement_that_hangs_is_replaced_by_a_reload(leased):
    server = leased.server
    leased.hold()
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: "starting another one" in server.messages, "its end")
    leased.held(1)
    leased.write()

    def served():
        server.signal(signal.SIGHUP)
        return "reloaded" in server.output

    wait_until(served, "another one", pause=0.5)
    assert "takes too long to start" in server.messages
    assert answers(server)
    server.stop(messages=True)


@pytest.mark.slow
def test_starts_that_fail_after_a_death_are_not_deaths(leased):
    server = leased.server
    leased.write(threads=0)
    server.signal(signal.SIGHUP)
    wait_until(lambda: "stays in use" in server.messages, "the refusal")
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: "trying again in 4 s" in server.messages, "the third failure")
    leased.write()
    # The next one would be tried after 4 s.
    server.reload()
    assert answers(server)
    assert re.findall(r"trying again in (\d+) s", server.messages) == ["1", "2", "4"]
    server.stop(messages=True)


def test_process_that_dies_during_an_upgrade_is_replaced_at_once(serve_conf, site, program):
    (site / "name").write_text("one")
    server = serve_conf({"workers": 1}, [("s", {"root": site}, {})], binary=program)
    first = server.pid
    script(program, "exec sleep 1000\n")
    server.signal(signal.SIGUSR2)
    wait_until(lambda: len(server.processes()) == 2, "the test")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: answers(server), "an answer")
    assert "cannot upgrade" not in server.messages
    server.stop(messages=True)


# ------------------------------------------------------------------------ they hang


def gone(*pids):
    return not any(os.path.exists("/proc/%d" % pid) for pid in pids)


def test_start_that_hangs_ends_with_the_master(leased):
    server = leased.server
    leased.hold()
    server.signal(signal.SIGHUP)
    leased.held(2)
    starting, old = server.pid, server.processes()
    os.kill(server.master, signal.SIGKILL)
    server.process.wait()
    wait_until(lambda: gone(starting), "the one that starts to end")
    wait_until(lambda: gone(*old), "the one that served to end")
    server.stop(codes=(-signal.SIGKILL,))


@pytest.mark.slow
@pytest.mark.waits
def test_process_that_does_not_end_is_killed_after_more_signals(leased):
    server = leased.server
    """And all that follow do not put that off."""
    os.kill(server.pid, signal.SIGSTOP)

    def ended():
        server.terminate()
        return not server.running

    wait_until(ended, "its end", pause=0.5)
    assert "does not exit: killing it" in server.messages
    server.stop(codes=(1,), messages=True)


@pytest.mark.slow
@pytest.mark.waits
def test_process_that_does_not_end_is_killed_after_its_shutdown_timeout(leased):
    leased.write(shutdown_timeout=1)
    server = leased.server
    server.reload()
    wait_until(lambda: len(server.processes()) == 1, "the old one to end")
    os.kill(server.pid, signal.SIGSTOP)
    server.terminate()
    assert server.wait() == 1
    server.stop(codes=(1,), messages=True)


@pytest.mark.slow
@pytest.mark.waits
def test_hung_old_process_does_not_delay_the_report(leased):
    server = leased.server
    old = server.pid
    os.kill(old, signal.SIGSTOP)
    try:
        for _ in range(2):
            server.reload()
            assert answers(server)
        assert old in server.processes()
        server.again(signal.SIGUSR2, "upgraded")
    finally:
        os.kill(old, signal.SIGCONT)
    wait_until(lambda: len(server.processes()) == 1, "the old ones to end")


class Dying:
    """Stops a process where it ends, before it has closed anything: ptrace(2)."""

    CONT, SEIZE, TRACE_EXIT = 7, 0x4206, 0x40

    def __init__(self, pid):
        self.pid = pid
        self.call(self.SEIZE, self.TRACE_EXIT)

    def call(self, what, data=0):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        libc.ptrace.restype = ctypes.c_long
        if libc.ptrace(what, self.pid, None, data) == -1:
            raise OSError(ctypes.get_errno(), "ptrace")

    def stopped(self):
        return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid

    def end(self):
        self.call(self.CONT)
        os.waitpid(self.pid, 0)


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "hangs"])
@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.needs("strace")
def test_next_one_is_not_started_before_the_killed_one_has_ended(leased, ends):
    """It has addresses that the next one needs.  One that does not end is not waited for for ever."""
    if strace.why_not():
        pytest.skip(strace.why_not())
    server = leased.server
    first = server.pid
    leased.hold()
    server.signal(signal.SIGHUP)
    leased.held(2)
    dying = Dying(server.pid)

    def stopped():
        server.signal(signal.SIGHUP)
        return dying.stopped()

    wait_until(stopped, "it to be killed", pause=0.5)
    leased.write()
    wait_until(lambda: rests(server.master), "the master to rest")
    assert sorted(server.processes()) == sorted([first, dying.pid])
    assert "reloaded" not in server.output
    if ends:
        dying.end()
    wait_until(lambda: "reloaded" in server.output, "the next one")
    assert answers(server)
    if not ends:
        dying.end()
    server.stop(messages=True)


# --------------------------------------------------------------------------- upgrades


@pytest.mark.slow
def test_reload_replaced_by_a_failed_upgrade_is_done(
    serve, site, program, tmp_path
):
    (site / "name").write_text("one")
    leased = Leased(functools.partial(serve, binary=program), tmp_path / "conf", site, workers=1)
    server = leased.server
    script(program, "exit 3\n")
    leased.hold()
    server.signal(signal.SIGHUP)
    leased.held(2)
    leased.write(max_target_size=100)

    def refused():
        server.signal(signal.SIGUSR2)
        return "cannot upgrade" in server.messages

    wait_until(refused, "the test", pause=0.5)
    wait_until(lambda: "reloaded" in server.output, "the reload")
    assert server.get("/name?" + "x" * 500).status == 414
    leased.lease.close()
    server.stop(messages=True)


def comm(pid):
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read().strip()
    except OSError:
        return ""


def sleeping(server):
    """Programs of a script that is tested."""
    try:
        return [p for p in processes.descendants(server.master) if comm(p) == "sleep"]
    except OSError:
        return []


@pytest.mark.slow
def test_upgrade_is_noted_while_an_old_process_still_sends(serve, site):
    data = t.content(5, 32 * t.MIB)
    (site / "big").write_bytes(data)
    (site / "name").write_text("one")
    server = serve("--root", site, "--workers", "1")
    with server.connect(rcvbuf=65536) as c:
        c.send(request("/big"))
        head = c.read_head()
        server.reload()
        server.again(signal.SIGUSR2, "upgraded")
        assert answers(server)
        assert c.read_body(head).body == data
        c.eof()


def test_program_that_is_replaced_while_it_is_tested_is_tested_again(
    serve, site, program, tmp_path
):
    """The second one would not work: it may not get by on the test of the first."""
    (site / "name").write_text("one")
    server = serve("--root", site, "--workers", "1", binary=program)
    go = tmp_path / "goes"
    script(program, 'while [ ! -e %s ]; do sleep 0.1; done\nexec %s "$@"\n'
           % (go, harness.PAGEWISE))
    server.signal(signal.SIGUSR2)
    wait_until(lambda: sleeping(server), "the test")
    script(program, "exit 3\n")
    go.touch()
    wait_until(lambda: "cannot upgrade" in server.messages, "the refusal")
    assert answers(server)
    server.stop(messages=True)


def test_upgrade_waits_for_a_start_that_is_under_way(serve, site, program, tmp_path):
    """Its test ended well in the meantime."""
    (site / "name").write_text("one")
    leased = Leased(functools.partial(serve, binary=program), tmp_path / "conf", site, workers=1)
    server, go = leased.server, tmp_path / "goes"
    first, before = server.pid, running(server.master)
    script(program, 'if [ "$1" = -t ]; then\nwhile [ ! -e %s ]; do sleep 0.1; done\n'
           'echo configuration ok\nexit 0\nfi\nexec %s "$@"\n' % (go, harness.PAGEWISE))
    server.signal(signal.SIGUSR2)
    wait_until(lambda: sleeping(server), "the test")
    leased.hold()
    os.kill(first, signal.SIGKILL)
    leased.held(2)
    go.touch()
    wait_until(lambda: len(server.processes()) == 1, "the end of the test")
    time.sleep(0.3)
    assert running(server.master) == before
    leased.release()
    wait_until(lambda: "upgraded" in server.output, "the upgrade")
    assert answers(server)
    server.stop(messages=True)


def test_programs_of_a_script_that_hangs_end_with_its_test(serve, site, program):
    (site / "name").write_text("one")
    server = serve("--root", site, "--workers", "1", binary=program)
    script(program, "sleep 1000\n")
    server.signal(signal.SIGUSR2)

    pid = wait_until(lambda: sleeping(server), "the script's program")[0]
    server.stop()
    wait_until(lambda: not os.path.exists("/proc/%d" % pid), "it to end")


# --------------------------------------------------------------- what is shared, and files


def listeners(pid):
    """Copies of a process' listening TCP sockets."""
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    other = os.pidfd_open(pid)
    found = []
    for n in map(int, os.listdir("/proc/%d/fd" % pid)):
        fd = syscall(438, other, n, 0)  # pidfd_getfd
        if fd < 0:
            continue
        try:
            s = socket.socket(fileno=fd)
        except OSError:
            os.close(fd)
            continue
        if s.family == socket.AF_INET and s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            found.append(s)
        else:
            s.close()
    os.close(other)
    return found


@pytest.mark.parametrize("spoilt", [[0], [1], [0, 1]])
def test_socket_that_was_shut_down_is_opened_anew(serve_conf, site, spoilt):
    (site / "name").write_text("one")
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    server = serve_conf({"workers": 2, "listen": ["127.0.0.1:%d" % port]},
                        [("s", {"root": site}, {})])
    sockets = listeners(server.master)
    assert len(sockets) == 2
    for i in spoilt:
        sockets[i].shutdown(socket.SHUT_RDWR)
    for s in sockets:
        s.close()
    server.reload()
    for _ in range(20):
        assert answers(server)
    assert len(listeners(server.master)) == 2
    server.stop(messages=r"(pagewise: warning: a listening socket of 127\.0\.0\.1:\d+ no longer "
                         r"accepts connections, because a process called shutdown\(2\) on it; "
                         r"opening a new one\n){%d}" % len(spoilt))


def test_admin_socket_that_was_removed_is_made_again(leased, tmp_path):
    path = tmp_path / "admin"
    leased.write(admin=path)
    leased.server.reload()
    os.unlink(path)
    leased.server.reload()
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(path))
        s.sendall(request("/metrics", version="1.0"))
        assert s.recv(15).startswith(b"HTTP/1.")
    leased.server.stop()
    assert not path.exists()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_start_without_standard_files(site, closed, free_port):
    (site / "name").write_text("one")
    port = free_port()
    args = [harness.PAGEWISE, "--root", str(site), "--workers", "1", "--access-log", "off",
            "--listen", "127.0.0.1:%d" % port]
    if os.geteuid() == 0:
        args += ["--user", "root"]
    process = subprocess.Popen(["sh", "-c", 'exec "$@" ' + closed, "sh", *args])
    try:
        wait_until(lambda: reachable(port), "an answer")
        child = processes.children(process.pid)[0]
        for pid in (process.pid, child):
            for fd in (0, 1, 2):
                name = os.readlink("/proc/%d/fd/%d" % (pid, fd))
                assert not name.startswith(("socket:", "anon_inode:"))
            if closed.startswith("<"):
                assert os.readlink("/proc/%d/fd/0" % pid) == "/dev/null"
        process.terminate()
        assert process.wait(harness.PATIENCE) == 0
    finally:
        for pid in processes.descendants(process.pid) if process.poll() is None else []:
            os.kill(pid, signal.SIGKILL)
        process.wait()


def reachable(port):
    try:
        with Connection(("127.0.0.1", port)) as c:
            return c.ask("/name").status == 200
    except ConnectionRefusedError:
        return False
