"""Faults that last, and what the server says about them: threads and rings that cannot be
had, logs on a disk that is full, no descriptors."""

import os
import re
import subprocess

import pytest

import harness
import injection
import mounts
import tree as t
from harness import wait_until
from test_inject_start import in_function

pytestmark = pytest.mark.once

COLD = t.content(7, 700001)
LINE = re.compile(r'127\.0\.0\.1 - - \[[^\]]+\] "GET /small\?(\d+) HTTP/1\.1" 200 100 ')


@pytest.fixture
def plan(tmp_path):
    return injection.Plan(tmp_path / "plan")


@pytest.fixture
def start(plan, site):
    """Servers that have not been asked for anything yet."""
    servers = []
    t.write(site / "cold", COLD)
    t.write(site / "small", t.content(8, 100))
    mounts.drop(site / "cold")

    def run(path="nodiskio"):
        server = harness.Server("--root", site, "--send-path", path, "--workers", "1",
                                binary=injection.FAULT, env=plan.env)
        servers.append(server)
        server.start()
        plan.shared.pid = server.pid
        return server

    yield run
    plan.heal()
    for server in servers:
        if not server.out.closed:
            server.stop(messages=True)


def cold(server):
    response = server.get("/cold")
    assert response.status != 200 or response.body == COLD
    return response.status


@pytest.mark.parametrize("path", ["nodiskio", "splice", "mlock", "pool"])
def test_requests_wait_until_a_disk_thread_starts(start, plan, path):
    server = start(path)
    plan.fail(("pthread_create", "EAGAIN"), times=1000)
    c = server.connect()
    c.send(harness.request("/cold"))
    wait_until(lambda: plan.reached, "a thread that cannot be started")
    plan.heal()
    assert c.response().body == COLD


@pytest.mark.parametrize("path", ["uring", "ring", "aio"])
@pytest.mark.parametrize("call", ["io_uring_queue_init_params", "io_uring_register_eventfd"])
def test_disk_threads_fetch_for_a_worker_without_a_ring(start, plan, path, call):
    server = start(path)
    plan.fail((call, "ENOMEM"), times=1000)
    assert cold(server) == 200
    assert plan.reached


@pytest.mark.parametrize(
    "effect, why",
    [
        ("ENOSYS", "this kernel has no io_uring"),
        ("EPERM", "io_uring is forbidden: check sysctl "),
        ("ENOMEM", "cannot lock memory for io_uring: raise ulimit -l"),
        ("EMFILE", "io_uring_setup failed"),
    ],
)
def test_uring_is_refused_at_the_start_with_the_reason(plan, site, effect, why):
    plan.fail(("io_uring_queue_init_params", effect))
    done = subprocess.run(
        [injection.FAULT, "--root", site, "--send-path", "uring"],
        env=dict(os.environ, **plan.env), capture_output=True, text=True, check=False,
        timeout=harness.PATIENCE)
    harness.judge(done.stderr)
    assert done.returncode == 2
    assert done.stderr.startswith("pagewise: --send-path: uring is not available: " + why)


def numbers(path):
    """Of the requests that a log tells of, line by line."""
    with open(path) as f:
        return [int(LINE.match(line).group(1)) for line in f]


@pytest.fixture
def logged(plan, site, tmp_path):
    """A server with a log, of which one line has been written."""
    path = tmp_path / "access.log"
    t.write(site / "small", t.content(8, 100))
    server = harness.Server("--root", site, "--workers", "1", "--access-log", path,
                            binary=injection.FAULT, env=plan.env).start()
    plan.shared.pid = server.pid
    assert server.get("/small?0").status == 200
    wait_until(lambda: numbers(path) == [0], "the first line")
    yield server, path
    plan.heal()
    if not server.out.closed:
        server.stop(messages=True)


def log_write(plan):
    """The site where lines are written.  A write(2) that only wakes the log's thread, once it
    has had nothing to do for a second, is another one."""
    return in_function(plan, "write", "sink_write")


@pytest.mark.parametrize("effect, why", [("ENOSPC", "No space left on device"),
                                         ("EIO", "Input/output error")])
def test_a_line_that_cannot_be_written_is_counted_and_logged(logged, plan, effect, why):
    server, path = logged
    plan.fail((log_write(plan), effect))
    assert server.get("/small?1").status == 200
    wait_until(lambda: "lost" in server.messages, "the message")
    assert server.messages == "pagewise: access log: 1 records lost: %s: %s\n" % (path, why)
    assert server.get("/small?2").status == 200
    wait_until(lambda: numbers(path) == [0, 2], "the line after it")


@pytest.mark.parametrize("effect", ["one", "half", "EINTR"])
def test_lines_written_in_pieces_are_whole(logged, plan, effect):
    server, path = logged
    plan.fail(("write", effect), times=300)
    for n in range(1, 20):
        assert server.get("/small?%d" % n).status == 200
    wait_until(lambda: plan.reached, "the log to be written")
    server.stop()
    assert numbers(path) == list(range(20))


def lose_the_rest_of_a_line(server, path, plan, *faults):
    write = log_write(plan)
    plan.fail(*faults, (write, "half"), (write, "ENOSPC"), skip=1)
    assert server.get("/small?1").status == 200
    wait_until(lambda: "lost" in server.messages, "the message")
    assert plan.reached
    assert server.messages == (
        "pagewise: access log: 1 records lost: %s: No space left on device\n" % path)


def test_half_a_written_line_is_removed(logged, plan):
    server, path = logged
    lose_the_rest_of_a_line(server, path, plan)
    assert numbers(path) == [0]
    assert server.get("/small?2").status == 200
    wait_until(lambda: numbers(path) == [0, 2], "the line after it")


def test_after_half_a_line_that_cannot_be_removed_the_next_starts_a_line(logged, plan):
    server, path = logged
    lose_the_rest_of_a_line(server, path, plan, ("ftruncate", "EPERM"))
    half = path.read_bytes().splitlines()[1]
    assert server.get("/small?2").status == 200
    wait_until(lambda: path.read_bytes().count(b"\n") == 3, "the line after it")
    first, second, third = path.read_text().splitlines()
    assert second.encode() == half and not LINE.match(second)
    assert [LINE.match(line).group(1) for line in (first, third)] == ["0", "2"]


@pytest.mark.parametrize("effect", ["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"])
def test_accepting_pauses_and_goes_on(start, plan, effect):
    server = start()
    plan.fail(("accept4", effect), times=3)
    assert server.get("/small").status == 200
    assert plan.reached
    wait_until(lambda: "cannot accept connections" in server.messages, "the message")


@pytest.mark.parametrize("effect", ["EMFILE", "ENFILE"])
def test_requests_get_503_until_descriptors_are_free(start, plan, effect):
    server = start()
    plan.fail(("openat2", effect), times=1000)
    assert server.get("/small").status == 503
    assert plan.reached
    plan.heal()
    assert server.get("/small").status == 200
    wait_until(lambda: "raise ulimit -n" in server.messages, "the message")


LITTLE = ("pagewise: %s: Cannot allocate memory; give the server more memory, or lower "
          "hot_set\n")


def test_lack_of_memory_for_lookups_is_logged_once(start, plan, site):
    server = start()
    for n in range(20):
        t.write(site / ("f%d" % n), b"x")
    with server.connect() as c:
        assert c.ask("/small").status == 200
        plan.fail(("calloc", "ENOMEM"), times=1000)
        assert [c.ask("/f%d" % n).status for n in range(20)] == [503] * 20
        plan.heal()
        assert c.ask("/f0").status == 200
    server.stop(messages=re.escape(LITTLE % "f0"))


@pytest.mark.parametrize("path", ["nodiskio", "pool"])
def test_lack_of_memory_for_a_window_is_logged_once(start, plan, site, path):
    server = start(path)
    for n in range(4):
        assert server.get("/small?%d" % n).status == 200
    with server.connect() as c:
        assert c.ask("/cold").status == 200
        for n in range(5):
            harness.wait_until(lambda: mounts.evict(site / "cold"), "the pages to leave memory")
            plan.fail(("calloc", "ENOMEM"), times=1000)
            assert c.ask("/cold").status == 503
            plan.heal()
            assert c.ask("/small").status == 200
    server.stop(messages=re.escape(LITTLE % "cold"))


@pytest.mark.parametrize("effect", ["EIO", "ENOMEM", "ENODATA", "EOPNOTSUPP"])
def test_an_unreadable_attribute_omits_only_the_digest(plan, site, tmp_path, effect):
    t.write(site / "small", t.content(8, 100))
    conf = tmp_path / "digest.conf"
    conf.write_text(harness.configuration({"workers": 1}, [("s", {"root": site, "digest": True}, {})]))
    server = harness.Server("-c", conf, binary=injection.FAULT, env=plan.env)
    server.start()
    plan.shared.pid = server.pid
    plan.fail(("fgetxattr", effect), times=1000)
    answer = server.get("/small")
    assert (answer.status, answer.body, answer.get("Repr-Digest")) == (200, t.content(8, 100), None)
    assert plan.reached
    server.stop()


def test_a_request_without_memory_for_its_trace_is_not_traced(serve_conf, site, plan):
    """The response is the same; the next request is traced."""
    t.write(site / "small", t.content(8, 100))
    server = serve_conf({"workers": 1, "trace_clients": ["127.0.0.1"]}, [("s", {"root": site}, {})],
                        binary=injection.FAULT, env=plan.env)
    plan.shared.pid = server.pid

    def traced(name):
        assert server.get("/small", fields={"Pagewise-Trace": name}).body == t.content(8, 100)
        server.get("/small", fields={"Pagewise-Trace": name + "-end"})
        wait_until(lambda: "trace %s-end: +" % name in server.output, "the next trace")
        return "trace %s: " % name in server.output

    assert traced("first")
    plan.fail((in_function(plan, "malloc", "trace_begin"), "ENOMEM"))
    assert not traced("second")
    assert plan.reached
    plan.heal()
    assert traced("third")
