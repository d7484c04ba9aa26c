"""pagewise.hpp: a server that uses nothing else compiles without warnings, also where exceptions are off, and
serves files; what it destroys while the library still needs it stays until the library has finished."""

import os
import signal
import socket
import subprocess

import pytest

import harness
import test_examples
import tree as t
from harness import wait_until
from ports import free_port  # a fixture
from test_examples import BIG, HOT, evict
from test_slowfs import Slowfs, slow  # a fixture

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("hpp")]
LIB = os.path.join(harness.TREE, "lib")
SOURCE = os.path.join(LIB, "examples/poll.cc")
FLAGS = ["-std=c++17", "-I" + LIB, "-Wall", "-Wextra", "-Wpedantic", "-Wold-style-cast", "-Werror"]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("hpp") / "poll"
    subprocess.run(["c++", *FLAGS, "-g", "-fsanitize=address,undefined", SOURCE,
                    os.path.join(harness.TREE, "build/asan/libpagewise.a"), "-luring", "-pthread", "-o", path], check=True)
    return path


@pytest.fixture
def start(program, monkeypatch, free_port):
    monkeypatch.setattr(test_examples, "PROGRAMS", str(program.parent))
    started = []

    def run(root):
        started.append(test_examples.Example("poll", root, free_port()))
        return started[-1]
    yield run
    for example in started:
        example.child.send_signal(signal.SIGTERM)
        said = example.child.communicate(timeout=harness.PATIENCE)[1]
        assert example.child.returncode == 0 and said == "", said


def test_header_needs_no_exceptions():
    subprocess.run(["c++", *FLAGS, "-fno-exceptions", "-fno-rtti", "-fsyntax-only", SOURCE], check=True)


def test_files_are_sent_from_memory_and_from_the_disk(start, tmp_path):
    t.write(tmp_path / "hot", HOT)
    t.write(tmp_path / "big", BIG)
    t.write(tmp_path / "empty", b"")
    example = start(tmp_path)
    for _ in range(3):
        evict(tmp_path / "big")
        assert example.ask("/big") == (200, BIG)
        assert example.ask("/hot") == (200, HOT)
        assert example.ask("/empty") == (200, b"")
        assert example.ask("/none") == (404, b"")
    example.nobody_is_left()


def test_clients_that_leave_midway_leave_no_descriptor(start, tmp_path):
    t.write(tmp_path / "big", BIG)
    example = start(tmp_path)
    for _ in test_examples.leave_in_the_middle(example, tmp_path / "big"):
        assert example.ask("/big") == (200, BIG)
    example.nobody_is_left()


@pytest.mark.parametrize("op", ["open", "read"])
def test_clients_of_a_disk_that_hangs_may_leave(slow, start, op):
    base = os.path.dirname(slow.dir)
    t.write(os.path.join(base, "hot"), HOT)
    example = start(base)
    slow.hang(op, "cold.bin")
    leaving = [example.leave("/mnt/cold.bin") for _ in range(3)]
    slow.wait_held(op)
    for sock in leaving:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()
    for _ in range(20):
        assert example.ask("/hot") == (200, HOT)
    slow.release()
    wait_until(lambda: example.sockets() == 1, "the sockets of clients that left to be closed")
    assert example.ask("/mnt/cold.bin")[0] == 200
