"""lib/bindings/python: structs are those of the header, the example serves files, and tasks may be cancelled."""

import asyncio
import ctypes
import os
import socket
import subprocess
import sys

import pytest

import harness
import test_examples
import tree as t
from harness import wait_until
from ports import free_port  # a fixture
from test_examples import BIG, HOT
from test_slowfs import Slowfs, slow  # a fixture

pytestmark = pytest.mark.once
WHERE = os.path.join(harness.TREE, "lib/bindings/python")
LIBRARY = os.path.join(harness.TREE, "build/libpagewise.so.1")
STRUCTS = {"Waiter": "pw_waiter", "FileStruct": "pw_file", "OpenStruct": "pw_open", "SendStruct": "pw_send"}
LEAVE = """
import asyncio, os, socket, sys
import pagewise

async def cancelled(waits, seconds=0.3):
    try:
        await asyncio.wait_for(waits, seconds)
    except asyncio.TimeoutError:
        return True

async def main(directory, op):
    pages, root = pagewise.Loop(), pagewise.Root(directory)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    if op == "open":
        assert await cancelled(pages.open(root, "cold.bin"))
    else:
        with await pages.open(root, "cold.bin") as file:
            assert await cancelled(pages.send(ours, b"head", file, 0, file.size))
    ours.close()
    print("left", flush=True)
    root.close()
    await pages.close()
    assert not pagewise._waiting
    print("closed")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def start(monkeypatch, free_port):
    monkeypatch.setattr(test_examples, "PROGRAMS", WHERE)
    monkeypatch.setenv("PAGEWISE_LIBRARY", LIBRARY)
    started = []

    def run(root):
        started.append(test_examples.Example("server.py", root, free_port()))
        return started[-1]
    yield run
    for example in started:
        example.stop()


def test_structs_are_those_of_the_header(monkeypatch, tmp_path):
    monkeypatch.setenv("PAGEWISE_LIBRARY", LIBRARY)
    monkeypatch.syspath_prepend(WHERE)
    import pagewise
    ours, lines = [], []
    for name, struct in STRUCTS.items():
        of = getattr(pagewise, name)
        ours.append(f"{struct} {ctypes.sizeof(of)}")
        lines.append(f'printf("{struct} %zu\\n", sizeof(struct {struct}));')
        for field, *_ in of._fields_:
            ours.append(f"{struct}.{field} {getattr(of, field).offset}")
            lines.append(f'printf("{struct}.{field} %zu\\n", offsetof(struct {struct}, {field}));')
    assert test_examples.printed_by_c(lines, tmp_path).splitlines() == ours


def test_what_the_library_would_misread_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("PAGEWISE_LIBRARY", LIBRARY)
    monkeypatch.syspath_prepend(WHERE)
    import pagewise
    t.write(tmp_path / "secret.html", HOT)

    async def main():
        pages, root = pagewise.Loop(), pagewise.Root(tmp_path)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            with pytest.raises(ValueError):
                await pages.open(root, "secret.html\0.jpg")
            with pytest.raises(ValueError):
                pagewise.Root(f"{tmp_path}\0")
            file = await pages.open(root, "secret.html")
            file.close()
            with pytest.raises(ValueError):
                await pages.send(ours, b"head", file, 0, len(HOT))
        root.close()
        await pages.close()

    asyncio.run(main())


def test_files_are_sent_from_memory_and_from_the_disk(start, tmp_path):
    test_examples.send_from_memory_and_disk(start, tmp_path)


def test_clients_that_leave_harm_no_other(start, tmp_path):
    t.write(tmp_path / "big", BIG)
    example = start(tmp_path)
    wait_until(lambda: example.sockets() == 3, "the listening socket, and two that asyncio has")
    for _ in test_examples.leave_in_the_middle(example, tmp_path / "big"):
        assert example.ask("/big") == (200, BIG)
    wait_until(lambda: example.sockets() == 3, "the sockets of clients that left to be closed")


@pytest.mark.parametrize("op", ["open", "read"])
def test_a_hung_disk_delays_no_other_request(slow, start, op):
    base = os.path.dirname(slow.dir)
    t.write(os.path.join(base, "hot"), HOT)
    example = start(base)
    slow.hang(op, "cold.bin")
    waiting = [example.leave("/mnt/cold.bin") for _ in range(3)]
    slow.wait_held(op)
    for _ in range(20):
        assert example.ask("/hot") == (200, HOT)
    slow.release()
    for sock in waiting:
        with sock:
            assert sock.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("op", ["open", "read"])
def test_a_task_that_waits_may_be_cancelled(slow, op):
    slow.hang(op, "cold.bin")
    env = {**os.environ, "PAGEWISE_LIBRARY": LIBRARY, "PYTHONPATH": WHERE}
    with subprocess.Popen([sys.executable, "-c", LEAVE, slow.dir, op], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout.readline() == "left\n"
        slow.release()
        assert child.communicate(timeout=harness.PATIENCE) == ("closed\n", "")
        assert child.returncode == 0
