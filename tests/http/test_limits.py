"""Out of descriptors: idle connections go first, and nobody is told too often."""

import contextlib
import os
import pathlib
import re
import resource
import signal
import subprocess

import pytest

import h2_raw as raw
import harness
import mounts
import strace
import tree as t
from harness import PATIENCE, request, wait_until
from processes import stopped

RECLAIM = r"pagewise: warning: cannot accept connections: Too many open files: closing idle connections; raise ulimit -n, or lower open_files\n"
PAUSE = r"pagewise: warning: cannot accept connections: Too many open files: pausing; raise ulimit -n, or lower open_files\n"
TIMEOUTS = {"head_timeout": 600, "keepalive_timeout": 600, "send_timeout": 600}


@pytest.fixture
def server(serve_conf, site):
    for i in range(40):
        (site / str(i)).write_bytes(b"%d" % i)
    (site / "big").write_bytes(b"b" * (8 << 20))
    # strace injects an error as a call that does not exist: no reason to die here.
    server = serve_conf({"workers": 1, **TIMEOUTS}, [("s", {"root": site}, {})],
                        env={"PAGEWISE_STRICT": None})
    server.get("/0")
    return server


def no_more_descriptors(server):
    """How many it may have beyond those that are in use: gaps in their numbers."""
    numbers = sorted(int(n) for n in os.listdir("/proc/%d/fd" % server.pid))
    limit = numbers[-1] + 1
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (limit, limit))
    return limit - len(numbers)


def idle(server, count):
    connections = [server.connect() for _ in range(count)]
    for c in connections:
        assert c.ask("/0").body == b"0"
    return connections


def is_open(c):
    return c.quiet(0)


@pytest.mark.slow
def test_new_client_evicts_the_longest_idle_connection(server):
    old = idle(server, 20)
    free = no_more_descriptors(server)
    # Of the oldest, the first is idle since a moment ago only.
    assert old[0].ask("/0").body == b"0"
    new = []
    for _ in range(free + 8):
        new += idle(server, 1)
    for c in old[1:9]:
        c.eof()
    for c in [old[0]] + old[9:] + new:
        assert is_open(c)
        assert c.ask("/0").body == b"0"
    server.stop(messages=RECLAIM)


@pytest.mark.slow
def test_unused_open_files_are_closed_for_connections(server):
    """Before any connection: they can be opened again."""
    old = idle(server, 4)
    for i in range(8):
        assert old[0].ask("/%d" % i).body == b"%d" % i
    no_more_descriptors(server)
    with server.connect() as c:
        for i in list(range(40)) * 2:
            assert c.ask("/%d" % i).body == b"%d" % i
        for o in old:
            assert is_open(o)
    server.stop(messages=RECLAIM)


@pytest.mark.slow
def test_opening_a_file_evicts_an_idle_connection(server):
    """Else a new client would be accepted, and told 503."""
    old = idle(server, 20)
    free = no_more_descriptors(server)
    with server.connect() as c:
        for i in range(1, free + 10):
            response = c.ask("/%d" % i)
            assert (response.status, response.body) == (200, b"%d" % i)
        c.finish()
    assert any(is_open(c) for c in old)
    server.stop(messages="(" + RECLAIM + ")?")


def streaming(server):
    """A connection of HTTP/2 with a response that waits for its window."""
    c = raw.Client(server.address, window=0)
    c.send(raw.get(1, b"/big"))
    c.until(raw.HEADERS, stream=1)
    return c


@pytest.mark.plain("raw frames")
def test_opening_a_file_closes_no_connection_with_another_stream(server):
    """Not even the one that the file is for, of whose next request only a part has come."""
    with streaming(server) as c, streaming(server) as other, contextlib.ExitStack() as full:
        no_more_descriptors(server)
        while "pausing" not in server.messages:
            full.enter_context(server.connect(rcvbuf=4096)).send(request("/big"))
        c.send(raw.get(3, b"/1", flags=raw.END_STREAM))
        other.send(raw.frame(raw.PING, payload=bytes(8)))
        other.until(raw.PING)
        c.send(raw.frame(raw.CONTINUATION, raw.END_HEADERS, 3) + raw.get(5, b"/big", flags=raw.END_STREAM))
        c.until(raw.HEADERS, stream=3)
        c.send(raw.frame(raw.CONTINUATION, raw.END_HEADERS, 5) + raw.update(3, 1 << 20))
        assert b"503" in c.body(3)
    server.stop(messages="(%s)?%s%s" % (RECLAIM, PAUSE, r"pagewise: 1: Too many open files[^\n]*\n"))


@pytest.mark.slow
def test_idle_connection_with_a_received_request_is_not_closed(server):
    old = idle(server, 10)
    free = no_more_descriptors(server)
    held = idle(server, free)
    os.kill(server.pid, signal.SIGSTOP)
    wait_until(lambda: stopped(server), "all threads to stop")
    try:
        new = server.connect()
        new.send(request("/0"))
        old[0].send(request("/0"))
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert new.response().body == b"0"
    assert old[0].response().body == b"0"
    old[1].eof()
    assert all(is_open(c) for c in old[2:] + held)
    server.stop(messages=RECLAIM)


@pytest.mark.slow
def test_client_waits_while_no_connection_is_idle_and_one_message_is_logged(server):
    busy = [server.connect(rcvbuf=4096) for _ in range(5)]
    for c in busy:
        c.send(request("/big"))
        c.read_head()
    free = no_more_descriptors(server)
    # One takes the place of the file 0.
    fill = [server.connect(rcvbuf=4096) for _ in range(free + 1)]
    for c in fill:
        c.send(request("/big"))
        c.read_head()
    waiting = server.connect()
    waiting.send(request("/0"))
    wait_until(lambda: "pausing" in server.messages, "the message")
    # It tries again four times a second.
    assert waiting.quiet(1.5)
    assert re.fullmatch(RECLAIM + PAUSE, server.messages)
    # To look for a file takes descriptors as well.
    for c in busy:
        c.reset()
    assert waiting.response().body == b"0"
    for c in fill:
        c.reset()
    server.stop(messages=RECLAIM + PAUSE)


@pytest.mark.slow
def test_connection_in_mid_answer_is_never_closed_for_another(server):
    busy = server.connect(rcvbuf=4096)
    busy.send(request("/big"))
    head = busy.read_head()
    old = idle(server, 5)
    free = no_more_descriptors(server)
    new = []
    for _ in range(free + 5):
        new += idle(server, 1)
    for c in old:
        c.eof()
    assert len(busy.read_body(head).body) == 8 << 20
    server.stop(messages=RECLAIM)


@contextlib.contextmanager
def call_fails(server, call, error):
    """As if the whole machine were out of something, until the end of the block."""
    if strace.why_not():
        pytest.skip(strace.why_not())
    tracer = subprocess.Popen(
        ["strace", "-f", "-p", str(server.pid), "-e", "trace=" + call,
         "-e", f"inject={call}:error={error}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )
    try:
        assert b"attached" in tracer.stderr.readline()
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        told = tracer.stderr.read()
        tracer.wait(PATIENCE)
    assert b"(INJECTED)" in told, told


@pytest.mark.needs("strace")
@pytest.mark.parametrize(
    "error, text",
    [
        ("EMFILE", "Too many open files: %s; raise ulimit -n, or lower open_files"),
        ("ENFILE", "Too many open files in system: %s; raise the sysctl fs.file-max"),
        ("ENOMEM", "Cannot allocate memory: %s"),
        ("ENOBUFS", "No buffer space available: %s"),
    ],
)
def test_accept_is_repeated_after_a_lack_of_resources(server, error, text):
    with call_fails(server, "accept4", error):
        waiting = [server.connect() for _ in range(3)]
        for c in waiting:
            c.send(request("/0"))
        wait_until(lambda: "pausing" in server.messages, "the message")
        assert all(c.quiet(0) for c in waiting)
    for c in waiting:
        assert c.response().body == b"0"
        assert c.ask("/1").body == b"1"
        c.finish()
    # What could be given up first: the files 0 and 1 that nobody reads.
    line = "pagewise: warning: cannot accept connections: " + re.escape(text) + r"\n"
    server.stop(messages="(%s)?%s" % (
        line % re.escape("closing idle connections"), line % "pausing"))


@pytest.mark.needs("strace")
@pytest.mark.parametrize("error", ["ECONNABORTED", "EPROTO", "EINTR", "EPERM"])
def test_failed_accept_of_one_client_is_ignored(server, error):
    """accept(2): errors of the new connection itself, or of a firewall."""
    with call_fails(server, "accept4", error + ":when=1+2"):
        for _ in range(5):
            assert server.get("/0").body == b"0"
    assert server.messages == ""


@pytest.mark.needs("strace")
def test_a_loop_that_cannot_wait_for_events_is_replaced(server):
    old = server.pid
    with call_fails(server, "epoll_wait", "EBADF:when=1"):
        wait_until(lambda: "starting another" in server.messages, "the end of the process")
    wait_until(lambda: server.pid != old and server.get("/0").body == b"0", "another process")
    assert re.fullmatch(
        r"pagewise: libevent: epoll_wait: Bad file descriptor\n"
        r"pagewise: worker 0: cannot wait for events: ending the server process\n"
        r"pagewise: server process \d+ exited with status 1; starting another one\n", server.messages)
    server.terminate()
    assert server.wait() == 0
    server.discard()


@pytest.mark.needs("strace")
def test_a_signal_to_a_loop_that_fails_is_repeated(serve, site):
    """That of a disk thread, which has fetched, and that of the main thread, at the end."""
    # Leaks are not looked for under strace.
    server = serve("--root", site, env={"PAGEWISE_STRICT": None, "ASAN_OPTIONS": "detect_leaks=0"})
    t.write(site / "big", bytes(8 << 20))
    wait_until(lambda: mounts.evict(site / "big"), "the file to leave memory")
    with call_fails(server, "write", "EIO:when=1"):
        assert len(server.get("/big").body) == 8 << 20
    with call_fails(server, "write", "EIO:when=1"):
        server.terminate()
        assert server.wait() == 0
    server.stop(messages=True)  # a line of the log may be lost


def test_the_number_of_suppressed_messages_is_logged_for_each_kind(serve, site, debug):
    """A number that nobody logs silences its message for the life of the worker."""
    texts = re.findall(r"^server/log/message_rate\.h: (.*)$",
                       pathlib.Path(harness.TREE, "tests/messages.txt").read_text(encoding="utf-8"), re.M)
    server = serve("--root", site, "--workers", "1", binary=debug, env={"PAGEWISE_SUPPRESSED": "1"})
    told = wait_until(lambda: (found := re.findall(r"(\d+) more (.*)\n", server.messages))
                      and len(found) == len(texts) and found, "a number for each kind")
    assert told == [(str(number), text) for number, text in enumerate(texts, 1)]
    server.stop(messages=r"(pagewise: [^\n]*\d+ more [^\n]*\n)+")


def test_a_start_that_lacks_descriptors_names_the_limit(site):
    """Each step of the start, of libevent's too; whoever starts at last has enough."""
    for limit in range(6, 64):
        server = harness.Server("--root", site, "--workers", "1", becomes=("prlimit", "--nofile=%d" % limit),
                                env={"ASAN_OPTIONS": "detect_leaks=0"})  # that needs descriptors
        try:
            server.start()
        except AssertionError as error:
            told = [line for line in str(error).splitlines() if line.startswith("stderr: ") or
                    line.startswith("pagewise: ")]
            assert all("Too many open files; raise ulimit -n" in line for line in told), (limit, told)
            assert told and "[err]" not in str(error), (limit, str(error))
            server.discard()
        else:
            server.stop()
            break
    else:
        pytest.fail("no limit was enough")
