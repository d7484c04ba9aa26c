"""A start that fails late, or is not let serve: whoever connects meanwhile has an answer."""

import contextlib
import fcntl
import os
import signal
import threading

import pytest

from harness import Connection, configuration, wait_until


def state(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rpartition(")")[2].split()[0]


class Clients:
    """Connect, ask and close, all the time; each has to be answered."""

    def __init__(self, address, count=4):
        self.address, self.answers, self.over = address, 0, False
        self.failures = []
        self.threads = [threading.Thread(target=self.run) for _ in range(count)]

    def run(self):
        while not self.over:
            try:
                with Connection(self.address) as c:
                    assert c.ask("/name").body == b"one"
                self.answers += 1
            except (OSError, AssertionError) as error:
                self.failures.append(repr(error))

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *exc):
        self.over = True
        for t in self.threads:
            t.join()

    def more(self, n=50):
        """So many have been served from now on."""
        enough = self.answers + n
        wait_until(lambda: self.answers >= enough or self.failures, "%d answers" % n)


class Leased:
    """A server whose configuration comes when and as the test says."""

    def __init__(self, serve, path, site, **top):
        self.path, self.site, self.top = path, site, top
        self.lease = None
        self.write(**top)
        self.server = serve("-c", path)

    def text(self, **top):
        return configuration({**self.top, **top}, [("s", {"root": self.site}, {})])

    def write(self, **top):
        new = self.path.with_name("new.conf")
        new.write_text(self.text(**top))
        os.rename(new, self.path)

    def hold(self):
        """The next process hangs where it opens the file."""
        self.write()
        self.lease = open(self.path, "r+")
        # The default of what tells that somebody waits is SIGIO, which ends us.
        fcntl.fcntl(self.lease, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(self.lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)

    def held(self, count):
        """There are so many server processes, and the youngest one hangs."""
        wait_until(lambda: len(self.server.processes()) == count and hangs(self.server.pid),
                   "%d processes, and one that hangs" % count)

    def release(self, **top):
        self.lease.truncate()
        self.lease.write(self.text(**top))
        self.lease.close()

    def ready(self):
        """The youngest one has all its threads, and waits for the master's word."""
        pid = self.server.pid
        names = ["pw-worker%d" % n for n in range(self.top["workers"])]
        wait_until(lambda: set(names) <= set(thread_names(pid)), "its threads")
        return pid


def hangs(pid):
    with contextlib.suppress(OSError), open("/proc/%d/wchan" % pid) as f:
        return "break_lease" in f.read()
    return False


def thread_names(pid):
    names = []
    with contextlib.suppress(FileNotFoundError):
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/comm" % (pid, task)) as f:
                names.append(f.read().strip())
    return names


@pytest.fixture
def leased(serve, tmp_path, site):
    (site / "name").write_text("one")
    made = Leased(serve, tmp_path / "pagewise.conf", site, workers=2)
    yield made
    if made.lease is not None:
        made.lease.close()


def refusals(server):
    return server.messages.count("stays in use")


def refused(server):
    before = refusals(server)
    server.signal(signal.SIGHUP)
    wait_until(lambda: refusals(server) > before, "the refusal")
    wait_until(lambda: len(server.processes()) == 1, "its end")


def test_workers_of_a_failed_reload_accept_no_client(leased, tmp_path):
    server = leased.server
    leased.write(workers=8, access_log=tmp_path / "no" / "log")
    with Clients(server.address) as clients:
        for _ in range(5):
            refused(server)
            clients.more()
    assert not clients.failures
    server.stop(messages=True)


def test_process_accepts_no_client_before_the_master_permits(leased):
    server = leased.server
    leased.hold()
    server.signal(signal.SIGHUP)
    leased.held(2)
    os.kill(server.master, signal.SIGSTOP)
    try:
        leased.release(workers=2)
        pid = leased.ready()
        with Clients(server.address) as clients:
            clients.more(200)
            os.kill(pid, signal.SIGKILL)
            clients.more(200)
        assert not clients.failures
        # Else the master may hear that it is ready, and only then that it has ended.
        wait_until(lambda: state(pid) == "Z", "its end")
    finally:
        os.kill(server.master, signal.SIGCONT)
    wait_until(lambda: refusals(server) == 1, "the refusal")
    leased.write()
    server.reload()
    server.stop(messages=True)
