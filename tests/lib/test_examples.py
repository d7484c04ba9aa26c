"""The servers of lib/examples: each event loop sends what is in memory, what is not, and ranges;
a client that leaves, at any moment, takes nothing with it; a disk that hangs holds up nobody else."""

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "fault"))

import harness
import tree as t
from harness import wait_until
from ports import free_port  # a fixture
from test_slowfs import Slowfs, slow  # a fixture

pytestmark = pytest.mark.once
NAMES = ["epoll", "libuv", "io_uring", "fd_cache"]
PROGRAMS = os.path.join(harness.TREE, "build", "asan", "examples")
SIZE = 5 * t.MIB + 77
HOT = t.content(1, 16 << 10)
BIG = t.content(2, SIZE)


class Example:
    def __init__(self, name, root, port):
        self.port = port
        self.child = subprocess.Popen([os.path.join(PROGRAMS, name), str(root), str(port)],
                                      stderr=subprocess.PIPE, text=True)
        wait_until(lambda: self.child.poll() is not None or self.is_up(), "the example")
        if self.child.poll() is None:
            return
        said = self.child.stderr.read()
        self.child.stderr.close()
        assert "io_uring: " in said, said
        pytest.skip("no io_uring here: " + said.strip())

    def is_up(self):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        return False

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.PATIENCE)

    def ask(self, path, conn=None, **headers):
        """(status, body)"""
        own = conn or self.connect()
        own.request("GET", path, headers=headers)
        answer = own.getresponse()
        result = answer.status, answer.read()
        if conn is None:
            own.close()
        return result

    def leave(self, path):
        """Asks, and returns the connection, from which nothing is read."""
        sock = socket.create_connection(("127.0.0.1", self.port), harness.PATIENCE)
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return sock

    def sockets(self):
        """So many it has, of clients and to listen."""
        where = f"/proc/{self.child.pid}/fd"
        links = []
        for fd in os.listdir(where):
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink(f"{where}/{fd}"))
        return len([link for link in links if link.startswith("socket:")])

    def is_idle(self):
        """Whether its event loop sleeps each time that it is looked at."""
        for _ in range(20):
            with open(f"/proc/{self.child.pid}/stat", encoding="ascii") as f:
                if f.read().rpartition(")")[2].split()[0] != "S":
                    return False
            time.sleep(0.005)
        return True

    def nobody_is_left(self):
        wait_until(lambda: self.sockets() == 1, "the sockets of clients that left to be closed")

    def stop(self):
        alive = self.child.poll() is None
        self.child.kill()
        said = self.child.communicate()[1]
        assert alive and said == "", said


@pytest.fixture(params=NAMES)
def start(request, free_port):
    with contextlib.ExitStack() as undo:
        def started(root):
            example = Example(request.param, root, free_port())
            undo.callback(example.stop)
            return example
        yield started


@pytest.fixture
def example(start, tmp_path):
    t.write(tmp_path / "hot", HOT)
    t.write(tmp_path / "big", BIG)
    t.write(tmp_path / "index.html", b"<p>first")
    t.write(tmp_path / "empty", b"")
    (tmp_path / "dir").mkdir()
    return start(tmp_path)


def evict(path):
    fd = os.open(path, os.O_RDONLY)
    os.fdatasync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def leave_in_the_middle(example, big):
    """Ten clients leave before, at and behind the first bytes of an uncached file; then yields."""
    for read in (0, 1, 100000):
        evict(big)
        socks = [example.leave("/big") for _ in range(10)]
        for sock in socks:
            if read:
                assert sock.recv(read)
            sock.close()
        yield


def send_from_memory_and_disk(start, root):
    t.write(root / "hot", HOT)
    t.write(root / "big", BIG)
    t.write(root / "empty", b"")
    example = start(root)
    conn = example.connect()
    for _ in range(3):
        evict(root / "big")
        for path, body in (("/big", BIG), ("/hot", HOT), ("/empty", b"")):
            assert example.ask(path, conn) == (200, body)
        assert example.ask("/none", conn) == (404, b"")
    conn.close()


def printed_by_c(lines, tmp_path):
    """What a program in C prints, whose main has these lines, and which includes the header."""
    (tmp_path / "layout.c").write_text("#include <pagewise.h>\n#include <stdio.h>\nint main(void) {\n" +
                                       "\n".join(lines) + "\n}\n")
    subprocess.run(["cc", "-I" + os.path.join(harness.TREE, "lib"), tmp_path / "layout.c", "-o", tmp_path / "layout"],
                   check=True)
    return subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout


def test_cached_files_are_sent_on_a_kept_connection(example):
    conn = example.connect()
    for path, body in [("/hot", HOT), ("/", b"<p>first"), ("/empty", b""), ("/hot?x", HOT)] * 5:
        assert example.ask(path, conn) == (200, body)
    conn.close()
    example.nobody_is_left()


def test_requests_that_come_together_are_answered_in_order(example):
    sock = example.leave("/hot")
    sock.sendall(b"GET / HTTP/1.1\r\n\r\nGET /none HTTP/1.1\r\n\r\n")
    want = [b"HTTP/1.1 200 OK\r\nContent-Length: 16384\r\n\r\n" + HOT,
            b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n<p>first",
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"]
    with sock, sock.makefile("rb") as f:
        assert f.read(len(b"".join(want))) == b"".join(want)


def test_cold_files_are_sent_whole(example, tmp_path):
    for _ in range(3):
        evict(tmp_path / "big")
        assert example.ask("/big") == (200, BIG)


@pytest.mark.parametrize("asked, first, last", [
    ("5-9", 5, 9), ("1000000-", 1000000, SIZE - 1), (f"{SIZE - 3}-{SIZE + 9}", SIZE - 3, SIZE - 1)])
def test_ranges(example, tmp_path, asked, first, last):
    evict(tmp_path / "big")
    assert example.ask("/big", Range=f"bytes={asked}") == (206, BIG[first:last + 1])


def test_a_range_of_the_last_bytes_is_ignored(example):
    assert example.ask("/big", Range="bytes=-5") == (200, BIG)


def test_missing_files_and_directories_are_404(example):
    for path in ("/none", "/dir", "/../" + os.path.basename(__file__), "//etc/passwd"):
        assert example.ask(path) == (404, b""), path


def test_a_client_that_leaves_midway_harms_no_other(example, tmp_path):
    for _ in leave_in_the_middle(example, tmp_path / "big"):
        assert example.ask("/hot") == (200, HOT)
    example.nobody_is_left()
    assert example.ask("/big") == (200, BIG)


@pytest.mark.parametrize("op", ["lookup", "open", "read"])
def test_a_hung_disk_delays_no_other_request(slow, start, op):
    """Its clients leave while they wait, or get their files when it goes on."""
    base = os.path.dirname(slow.dir)
    t.write(os.path.join(base, "hot"), HOT)
    example = start(base)
    slow.hang(op, "cold.bin")
    leaving = [example.leave("/mnt/cold.bin") for _ in range(3)]
    staying = example.connect()
    staying.request("GET", "/mnt/cold.bin")
    slow.wait_held(op)
    for _ in range(20):
        assert example.ask("/hot") == (200, HOT)
    for sock in leaving:
        sock.close()
    wait_until(lambda: op == "read" or example.sockets() == 2, "clients whose open waits to be gone")
    wait_until(example.is_idle, "the loop to be idle while the disk hangs")
    assert example.ask("/hot") == (200, HOT)
    slow.release()
    answer = staying.getresponse()
    assert (answer.status, answer.read()) == (200, slow_content(slow, "cold.bin"))
    staying.close()
    example.nobody_is_left()


def slow_content(slow, name):
    with open(os.path.join(slow.source, name), "rb") as f:
        return f.read()
