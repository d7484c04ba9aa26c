"""A slow file system, not a slow disk: what hangs here hangs until it is told to
go on, so nothing depends on timing."""

import errno
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

import harness
import mounts
import tree as t
from harness import request, wait_until

SIZE = 3 * t.MIB + 5
HOT = 70001


class Slowfs:
    def __init__(self, base):
        self.source = os.path.join(base, "source")
        self.dir = os.path.join(base, "mnt")
        self.socket = os.path.join(base, "control")
        os.mkdir(self.source)
        os.mkdir(self.dir)
        self.process = None
        self.control = None

    def start(self, *max_read):
        self.process = subprocess.Popen(
            [harness.SLOWFS, self.source, self.socket, self.dir, *map(str, max_read)],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        wait_until(self.mounted, "the mount")
        self.control = socket.socket(socket.AF_UNIX)
        self.control.settimeout(harness.PATIENCE)
        self.control.connect(self.socket)
        return self

    def mounted(self):
        if self.process.poll() is not None:
            raise AssertionError("slowfs ended: " + self.process.stderr.read().decode())
        return os.path.ismount(self.dir)

    def command(self, *words):
        self.control.sendall((" ".join(str(w) for w in words) + "\n").encode())
        answer = b""
        while not answer.endswith(b"\n"):
            data = self.control.recv(100)
            assert data, "slowfs is gone"
            answer += data
        assert int(answer) >= 0, "slowfs refused %r" % (words,)
        return int(answer)

    def hang(self, op, prefix="", offset=0, length=0, verb="set"):
        """verb "swap": instead of all that was set before, which is let go."""
        self.command(verb, op, "hang", 0, offset, length, prefix)

    def fail(self, op, error, prefix="", offset=0, length=0):
        self.command("set", op, "error", error, offset, length, prefix)

    def delay(self, op, ms, prefix=""):
        self.command("set", op, "delay", ms, 0, 0, prefix)

    def release(self):
        self.command("release")

    def held(self, op):
        return self.command("held", op)

    def wait_held(self, op, count=1):
        wait_until(lambda: self.held(op) >= count, "%d calls of %s to arrive" % (count, op))

    def add(self, name, data):
        t.write(os.path.join(self.source, name), data)

    def stop(self):
        """Whatever happened: no gate stays closed, no mount stays behind."""
        try:
            if self.control:
                self.release()
        except (OSError, AssertionError):
            pass
        finally:
            if self.control:
                self.control.close()
            unmount = ["fusermount3", "-u", "-z", self.dir]
            subprocess.run(unmount, capture_output=True, check=False)
            if self.process:
                try:
                    self.process.wait(10)
                except subprocess.TimeoutExpired:
                    # The kernel ends the mount, and all who wait, with the process.
                    self.process.kill()
                    self.process.wait()
                subprocess.run(unmount, capture_output=True, check=False)
                self.process.stderr.close()


@pytest.fixture
def slow(request, tmp_path):
    """Parametrised: the largest read in bytes."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK) or not shutil.which("fusermount3"):
        pytest.skip("FUSE cannot be used here")
    if not os.access(harness.SLOWFS, os.X_OK):
        pytest.skip("no slowfs at " + harness.SLOWFS)
    base = tmp_path / "slow"
    base.mkdir()
    fs = Slowfs(str(base))
    try:
        for name, seed in (("cold.bin", 1), ("cold2.bin", 2)):
            fs.add(name, t.content(seed, SIZE))
        fs.add("hot.bin", t.content(3, HOT))
        fs.add("index.html", b"<p>slow")
        os.mkdir(os.path.join(fs.source, "dir"))
        fs.add("dir/file.bin", t.content(4, HOT))
        yield fs.start(*getattr(request, "param", []))
    finally:
        fs.stop()


@pytest.fixture
def fast(tmp_path):
    root = tmp_path / "fast"
    root.mkdir()
    t.write(root / "hot.bin", t.content(9, HOT))
    return root


TIMEOUTS = {
    "head_timeout": 600,
    "keepalive_timeout": 600,
    "send_timeout": 600,
    "disk_timeout": 600,
}


@pytest.fixture
def serve_slow(slow, serve_conf, fast):
    """Starts a server with one worker and two sites, fast and slow.

    Torn down in this order: the gates, the server, the mount.
    """

    def start(binary=None, **top):
        return serve_conf(
            {
                "workers": 1,
                "send_path": "nodiskio",
                "autoindex": True,
                "shutdown_timeout": 60,
                **TIMEOUTS,
                **top,
            },
            [
                ("fast", {"names": ["fast"], "root": fast}, {}),
                ("slow", {"names": ["slow"], "root": slow.dir}, {}),
            ],
            binary=binary,
        )

    try:
        yield start
    finally:
        slow.release()


@pytest.fixture
def server(serve_slow):
    return serve_slow()


def ask_slow(server, target="/cold.bin", **kw):
    c = server.connect(**kw)
    c.send(request(target, host="slow"))
    return c


def fast_requests(server, count=100):
    """On one connection, and each on a connection of its own."""
    data = t.content(9, HOT)
    with server.connect() as c:
        for _ in range(count // 2):
            assert c.ask("/hot.bin", host="fast").body == data
        c.finish()
    for _ in range(count // 2):
        assert server.get("/hot.bin", host="fast").body == data


def finishes(c, data):
    response = c.response()
    assert response.status == 200
    assert response.body == data
    c.finish()


@pytest.mark.parametrize("op", ["lookup", "open", "read"])
def test_requests_are_answered_while_a_cold_file_hangs(server, slow, op):
    """The rule that this server exists for."""
    slow.hang(op, "cold.bin")
    c = ask_slow(server)
    slow.wait_held(op)
    fast_requests(server)
    assert slow.held(op) >= 1
    assert c.quiet(0) or op == "read"
    slow.release()
    finishes(c, t.content(1, SIZE))


@pytest.mark.parametrize("path_name", ["blocking", "copy"])
def test_blocking_paths_hang(serve_slow, slow, path_name):
    """That the test above can fail: these paths wait on the loop."""
    server = serve_slow(send_path=path_name)
    slow.hang("read", "cold.bin")
    c = ask_slow(server)
    slow.wait_held("read")
    other = server.connect()
    other.send(request("/hot.bin", host="fast"))
    assert other.quiet(1)
    slow.release()
    assert other.response().body == t.content(9, HOT)
    finishes(c, t.content(1, SIZE))
    other.finish()


@pytest.mark.parametrize("slow", [[], [4096]], indirect=True, ids=["128K", "4K"])
def test_read_that_hangs_within_a_window_delays_no_other_client(server, slow):
    """The end of a window being there does not prove that its middle is,
    whatever the size of a read."""
    middle = t.MIB + 300 * 1024
    slow.hang("read", "cold.bin", middle, 4096)
    c = ask_slow(server)
    slow.wait_held("read")
    fast_requests(server)
    assert slow.held("read") >= 1
    slow.release()
    finishes(c, t.content(1, SIZE))


@pytest.mark.parametrize("op", ["lookup", "readdir"])
def test_hung_listing_delays_no_other_client(server, slow, op):
    slow.hang(op, "dir")
    c = ask_slow(server, "/dir/")
    slow.wait_held(op)
    fast_requests(server)
    slow.release()
    response = c.response()
    assert response.status == 200
    assert b"file.bin" in response.body
    c.finish()


def test_file_that_is_in_memory_is_served_from_the_slow_file_system_itself(server, slow):
    hot = t.content(3, HOT)
    assert server.get("/hot.bin", host="slow").body == hot
    slow.hang("read", "cold")
    c, d = ask_slow(server), ask_slow(server, "/cold2.bin")
    slow.wait_held("read", 2)
    for _ in range(20):
        assert server.get("/hot.bin", host="slow").body == hot
    slow.release()
    finishes(c, t.content(1, SIZE))
    finishes(d, t.content(2, SIZE))


def test_other_device_is_served_cold_while_one_device_takes_all_its_threads(
    serve_slow, slow, fast
):
    """A queue and a quota per device."""
    server = serve_slow(threads=2)
    data = t.content(6, SIZE)
    path = str(fast / "other.bin")
    t.write(path, data)
    for i in range(10):
        slow.add("cold-%d.bin" % i, t.content(20 + i, HOT))
    slow.hang("read", "cold-")
    hanging = [ask_slow(server, "/cold-%d.bin" % i) for i in range(10)]
    slow.wait_held("read", 2)
    for _ in range(5):
        mounts.drop(path)
        assert server.get("/other.bin", host="fast").body == data
    fast_requests(server, 20)
    slow.release()
    for i, c in enumerate(hanging):
        finishes(c, t.content(20 + i, HOT))


def test_slow_mount_beneath_one_root(slow, serve_conf, tmp_path):
    """The device is the file's, not the root's."""
    root = tmp_path / "both"
    root.mkdir()
    t.write(root / "hot.bin", t.content(9, HOT))
    (root / "slow").mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can bind")
    subprocess.run(["mount", "--bind", slow.dir, root / "slow"], check=True)
    try:
        server = serve_conf(
            {"workers": 1, "send_path": "nodiskio", "shutdown_timeout": 60, **TIMEOUTS},
            [("both", {"root": root}, {})],
        )
        server.get("/hot.bin")
        for op in ("read", "open", "lookup"):
            name = {"read": "cold.bin", "open": "cold2.bin", "lookup": "dir/file.bin"}[op]
            slow.hang(op, name)
            c = server.connect()
            c.send(request("/slow/" + name))
            slow.wait_held(op)
            fast_requests(server, 20)
            slow.release()
            with open(os.path.join(slow.source, name), "rb") as f:
                finishes(c, f.read())
        server.stop()
    finally:
        slow.release()
        subprocess.run(["umount", "-l", root / "slow"], check=True)


def test_two_clients_of_one_window_share_the_read(server, slow):
    slow.hang("read", "cold.bin")
    clients = [ask_slow(server) for _ in range(5)]
    slow.wait_held("read")
    fast_requests(server, 10)
    slow.release()
    for c in clients:
        finishes(c, t.content(1, SIZE))


def test_requests_wait_for_a_delayed_disk(server, slow):
    slow.delay("read", 20, "cold.bin")
    slow.delay("open", 20, "cold.bin")
    assert server.get("/cold.bin", host="slow").body == t.content(1, SIZE)


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize("send_path", harness.FILE_PATHS)
def test_eio_in_mid_file_ends_that_connection_only(serve_slow, slow, send_path):
    server = serve_slow(send_path=send_path)
    slow.fail("read", errno.EIO, "cold.bin", 2 * t.MIB)
    other = server.connect()
    assert other.ask("/hot.bin", host="fast").status == 200
    data = t.content(1, SIZE)
    c = ask_slow(server)
    head = c.read_head()
    assert head.length == SIZE
    body = c.drain()
    assert len(body) < SIZE
    assert data.startswith(body)
    assert other.ask("/hot.bin", host="fast").body == t.content(9, HOT)
    assert server.get("/cold2.bin", host="slow").body == t.content(2, SIZE)
    slow.release()
    assert server.get("/cold.bin", host="slow").body == data
    other.finish()
    # An unreadable disk is worth a line.
    server.stop(messages=r"(pagewise: [^\n]*(cold\.bin|Input/output error)[^\n]*\n)*")


@pytest.mark.parametrize("op", ["lookup", "open"])
@pytest.mark.parametrize(
    "error, status",
    [(errno.EIO, 500), (errno.EACCES, 403), (errno.ENOENT, 404), (errno.EMFILE, 503)],
)
def test_error_of_a_lookup_or_open_has_its_status(server, slow, op, error, status):
    slow.fail(op, error, "cold.bin")
    response = server.get("/cold.bin", host="slow")
    assert response.status == status
    slow.release()
    server.stop(messages=True if status >= 500 else None)


def test_readdir_that_fails_is_500(server, slow):
    slow.fail("readdir", errno.EIO, "dir")
    assert server.get("/dir/", host="slow").status == 500
    server.stop(messages=True)


# ----------------------------------------------------------- going away early


@pytest.mark.parametrize("op", ["lookup", "open", "read"])
def test_client_that_leaves_while_its_file_hangs(server, slow, op):
    """Neither descriptor is closed and reused under the job in flight."""
    slow.hang(op, "cold.bin")
    for how in ("reset", "close", "half"):
        c = ask_slow(server)
        slow.wait_held(op)
        if how == "reset":
            c.reset()
        elif how == "close":
            c.sock.close()
        else:
            c.half_close()
        fast_requests(server, 10)
    slow.release()
    if how == "half":
        finishes_half(c)
    fast_requests(server, 10)
    assert server.get("/cold.bin", host="slow").body == t.content(1, SIZE)


def finishes_half(c):
    assert c.response().body == t.content(1, SIZE)
    c.eof()


def test_many_clients_that_leave_while_their_files_hang(server, slow):
    for i in range(30):
        slow.add("cold-%d.bin" % i, t.content(20 + i, HOT))
    slow.hang("read", "cold-")
    clients = [ask_slow(server, "/cold-%d.bin" % i) for i in range(30)]
    slow.wait_held("read", 2)
    for c in clients:
        c.reset()
    fast_requests(server, 20)
    slow.release()
    for i in range(30):
        assert server.get("/cold-%d.bin" % i, host="slow").body == t.content(20 + i, HOT)


# ------------------------------------------------------------------- shutdown


@pytest.mark.parametrize("op", ["lookup", "open", "read"])
def test_shutdown_does_not_wait_for_a_hung_disk_for_ever(serve_slow, slow, op):
    server = serve_slow(shutdown_timeout=1)
    slow.hang(op, "cold.bin")
    c = ask_slow(server)
    slow.wait_held(op)
    server.terminate()
    # It ends although the call still hangs.
    code = server.wait()
    assert code in (0, 1)
    c.drain()
    server.stop(codes=(0, 1), messages=r"(pagewise: [^\n]*\n)*")


@pytest.mark.parametrize("op", ["lookup", "open", "read"])
def test_request_aborted_while_it_waits_is_logged(serve_slow, slow, tmp_path, op):
    log = tmp_path / "access.log"
    server = serve_slow(shutdown_timeout=1, access_log=str(log))
    slow.hang(op, "cold.bin")
    c = ask_slow(server)
    slow.wait_held(op)
    server.terminate()
    server.wait()
    c.drain()
    (line,) = log.read_text().splitlines()
    expected = r'127\.0\.0\.1 .* "GET /cold\.bin HTTP/1\.1" 499 0 "-" "-" 0 (\d+) (\d+)'
    duration, waited = map(int, re.fullmatch(expected, line).groups())
    # It began to wait before the second of shutdown_timeout began.
    assert 1000000 <= waited <= duration
    server.stop(codes=(0, 1), messages=r"(pagewise: [^\n]*\n)*")


def test_shutdown_waits_for_a_slow_disk_within_its_timeout(serve_slow, slow):
    server = serve_slow(shutdown_timeout=600)
    slow.hang("read", "cold.bin")
    c = ask_slow(server)
    slow.wait_held("read")
    server.terminate()
    wait_until(lambda: refuses(server), "the listener to be closed")
    slow.release()
    response = c.response()
    assert response.body == t.content(1, SIZE)
    c.eof()
    server.stop()


def refuses(server):
    try:
        harness.Connection(server.address).sock.close()
    except ConnectionError:
        return True
    return False


def test_nothing_stays_mounted(slow):
    """The harness itself: a released and unmounted slowfs leaves no trace."""
    slow.hang("read", "cold.bin")
    reader = subprocess.Popen(
        ["cat", os.path.join(slow.dir, "cold.bin")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        slow.wait_held("read")
    finally:
        slow.stop()
        reader.send_signal(signal.SIGKILL)
        reader.wait()
    assert not os.path.ismount(slow.dir)
    slow.process = slow.control = None
