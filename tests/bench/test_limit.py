"""bench/limit: what a server is compared with answers whole and right, in each way."""

import contextlib
import os
import select
import signal
import socket
import subprocess

import pytest
from loadgen import PATIENCE, TREE

LIMIT = os.environ.get("LIMIT", os.path.join(TREE, "build/asan/bench/limit"))
WAYS = ("send", "sendfile", "memfd")
REQUEST = b"GET /any HTTP/1.1\r\nHost: x\r\n\r\n"


@contextlib.contextmanager
def started(*args):
    """Yields it and its port; it ends quietly, and with nothing leaked."""
    with subprocess.Popen([LIMIT, *map(str, args)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as child:
        try:
            assert select.select([child.stdout], [], [], PATIENCE)[0]
            yield child, int(child.stdout.readline().rstrip("/\n").rpartition(":")[2])
        finally:
            child.send_signal(signal.SIGTERM)
            _, err = child.communicate(timeout=PATIENCE)
        assert (child.returncode, err) == (0, "")


@contextlib.contextmanager
def limit(*args):
    with started(*args) as (_, port):
        yield port


@contextlib.contextmanager
def connected(port, rcvbuf=None):
    with socket.socket() as conn:
        if rcvbuf:
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        conn.settimeout(PATIENCE)
        conn.connect(("127.0.0.1", port))
        with conn.makefile("rb") as answers:
            yield conn, answers


def body(answers):
    assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
    fields = {}
    while (line := answers.readline()) != b"\r\n":
        name, _, value = line.decode().partition(": ")
        fields[name] = value.strip()
    return answers.read(int(fields["Content-Length"]))


def made(path, size):
    path.write_bytes(content := os.urandom(size))
    return content


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [0, 1, 1000, 70_000, 1 << 20, 5_000_000])
def test_answers_are_whole_one_after_the_other(tmp_path, way, size):
    content = made(tmp_path / "file", size)
    with limit("--way", way, tmp_path / "file") as port, connected(port) as (conn, answers):
        for _ in range(3):
            conn.sendall(REQUEST)
            assert body(answers) == content


@pytest.mark.parametrize("way", WAYS)
def test_a_head_in_fragments_is_answered_once_at_its_end(tmp_path, way):
    content = made(tmp_path / "file", 100)
    with limit("--way", way, tmp_path / "file") as port, connected(port) as (conn, answers):
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in REQUEST[:-1]:
            conn.sendall(bytes([byte]))
        assert not select.select([conn], [], [], 0.2)[0]
        conn.sendall(REQUEST[-1:])
        assert body(answers) == content
        assert not select.select([conn], [], [], 0.2)[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number, size", [(2, 100), (16, 1024), (40, 1024), (40, 300_000),
                                          (2000, 10)])
def test_pipelined_requests_are_all_answered(tmp_path, way, number, size):
    """2000 are more than one recv takes, and end in the middle of a head."""
    content = made(tmp_path / "file", size)
    with limit("--way", way, tmp_path / "file") as port, connected(port) as (conn, answers):
        conn.sendall(REQUEST * number)
        for _ in range(number):
            assert body(answers) == content
        assert not select.select([conn], [], [], 0.2)[0]


@pytest.mark.parametrize("way", WAYS)
def test_a_slow_reader_gets_the_whole_response(tmp_path, way):
    content = made(tmp_path / "file", 3_000_000)
    with limit("--way", way, tmp_path / "file") as port:
        with connected(port, rcvbuf=4096) as (conn, answers), connected(port) as (other, rest):
            conn.sendall(REQUEST * 2)
            other.sendall(REQUEST)  # is not held up by the slow one
            assert body(rest) == content
            assert body(answers) == content and body(answers) == content
            conn.sendall(REQUEST)
            assert body(answers) == content


@pytest.mark.parametrize("way", WAYS)
def test_files_of_a_list_are_sent_in_turn(tmp_path, way):
    contents = [made(tmp_path / f"file-{i}", 500 * i) for i in range(5)]
    names = [str(tmp_path / f"file-{i}") for i in range(5)]
    (tmp_path / "list").write_text("\n".join(names) + "\n\n")
    with limit("--way", way, "--files", tmp_path / "list") as port:
        with connected(port) as (conn, answers):
            for number in (1, 3, 5, 7):
                conn.sendall(REQUEST * number)
                for _ in range(number):
                    assert body(answers) == contents[0]
                    contents.append(contents.pop(0))


def head(port, path):
    with connected(port) as (conn, answers):
        conn.sendall(f"GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return b"".join(iter(answers.readline, b"\r\n"))


def fields(text):
    return {line.split(b":")[0]: len(line) for line in text.splitlines()}


@pytest.mark.parametrize("size, mtime", [(0, 2_000_000_000), (1000, 1_700_000_000_000_000_001),
                                         (70_000, 1_700_000_000_987_654_321)])
def test_a_head_is_as_long_as_that_of_pagewise(serve, tmp_path, size, mtime):
    made(tmp_path / "file", size)
    os.utime(tmp_path / "file", ns=(mtime, mtime))
    theirs = head(serve("--root", tmp_path).address[1], "file")
    with limit(tmp_path / "file") as port:
        ours = head(port, "file")
    assert fields(ours) == fields(theirs) and len(ours) == len(theirs)
    assert b"Content-Length: %d\r\n" % size in ours


@pytest.mark.parametrize("way", WAYS)
def test_a_half_closed_client_gets_its_response(tmp_path, way):
    """Request and end wait in the socket together, and are one event."""
    content = made(tmp_path / "file", 1000)
    with limit("--way", way, tmp_path / "file") as port:
        for _ in range(20):
            with connected(port) as (conn, answers):
                conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
                conn.sendall(REQUEST)
                conn.shutdown(socket.SHUT_WR)
                assert body(answers) == content
                assert answers.read() == b""


def test_a_file_that_is_sent_by_sendfile_is_open_once(tmp_path):
    made(tmp_path / "file", 1000)
    with started("--way", "sendfile", tmp_path / "file") as (child, _):
        fds = f"/proc/{child.pid}/fd"
        opened = [os.readlink(f"{fds}/{fd}") for fd in os.listdir(fds)]
    assert opened.count(str(tmp_path / "file")) == 1


def test_a_client_that_leaves_stops_no_other(tmp_path):
    content = made(tmp_path / "file", 5_000_000)
    with limit(tmp_path / "file") as port:
        for _ in range(20):
            with connected(port, rcvbuf=4096) as (conn, _):
                conn.sendall(REQUEST * 3)
                conn.recv(100)
        with connected(port) as (conn, answers):
            conn.sendall(REQUEST)
            assert body(answers) == content


def test_a_head_without_end_closes_the_connection(tmp_path):
    made(tmp_path / "file", 10)
    with limit(tmp_path / "file") as port, connected(port) as (conn, answers):
        with contextlib.suppress(OSError):
            conn.sendall(b"x" * 20_000)
            assert answers.read() == b""


@pytest.mark.parametrize("args, message", [
    ([], "usage: limit"),
    (["FILE", "FILE"], "usage: limit"),
    (["--files", "LIST", "FILE"], "usage: limit"),
    (["--nonsense", "FILE"], "usage: limit"),
    (["--way", "nonsense", "FILE"], "--way nonsense: there are send, sendfile and memfd"),
    (["--port", "x", "FILE"], "--port x: not a number from 0 to 65535"),
    (["--port", "65536", "FILE"], "--port 65536: not a number"),
    (["/no/such/file"], "/no/such/file: No such file or directory"),
    (["/"], "/: not a regular file"),
    (["--files", "/no/such/list"], "/no/such/list: No such file"),
    (["--files", "/dev/null"], "/dev/null: names no file"),
    (["--files", "LIST"], "no-such-file: No such file"),
])
def test_bad_arguments_are_reported(tmp_path, args, message):
    made(tmp_path / "file", 10)
    (tmp_path / "list").write_text("no-such-file\n")
    words = {"FILE": tmp_path / "file", "LIST": tmp_path / "list"}
    done = subprocess.run([LIMIT, *(str(words.get(a, a)) for a in args)], text=True,
                          capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode != 0 and message in done.stderr
    assert "Sanitizer" not in done.stderr


def test_a_port_in_use_is_reported(tmp_path):
    made(tmp_path / "file", 10)
    with limit(tmp_path / "file") as port:
        done = subprocess.run([LIMIT, "--port", str(port), tmp_path / "file"], text=True,
                              capture_output=True, timeout=PATIENCE, check=False)
        assert done.returncode != 0 and f"port {port}: Address already in use" in done.stderr
