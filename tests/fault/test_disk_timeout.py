"""A disk that does not answer for disk_timeout: 503, or the end of an answer that had
begun, and nothing for anybody else."""

import time

import pytest

import http2
import limits
import tree as t
from harness import request, wait_until
from hung_disk import HOT, LATE, MANY, SIZE, disk, disk_image  # fixtures
from test_pending import WAITING, answers, ask, descriptors, hangs, hot_requests, serve_disk
from test_slowfs import ask_slow, fast, serve_slow, slow  # fixtures
from test_tcp_memory import group  # fixture

GAVE_UP = r'pagewise: request "[^\n]*" aborted: the disk did not respond within 1 s \(disk_timeout\); look for disk errors \(dmesg\), or at the server or program of a network or FUSE file system\n(pagewise: [^\n]*more requests[^\n]*\n)?'


def is_refused(c):
    response = c.response()
    assert response.status == 503
    assert response.get("Retry-After") == "1"
    # Of HTTP/2 it is the stream that has ended.
    assert response.closes is not http2.ON
    if http2.ON:
        c.half_close()
    assert c.drain() == b""


@pytest.mark.parametrize("path_name", WAITING)
def test_cold_file_of_a_disk_that_hangs_is_503(serve_disk, disk, path_name, tmp_path):
    log = tmp_path / "access.log"
    server = serve_disk(path_name, disk_timeout=1, access_log=str(log))
    hot_requests(server, 1)
    before = descriptors(server, "socket:")
    clients = hangs(disk, server, 1, 2)
    for c in clients:
        is_refused(c)
    hot_requests(server, 2)
    wait_until(lambda: descriptors(server, "socket:") <= before, "the sockets to be closed")
    wait_until(lambda: log.read_text().count('" 503 ') == len(clients), "the log")
    for line in log.read_text().splitlines():
        if '" 503 ' not in line:
            continue
        assert int(line.split()[-1]) > 900000, "microseconds of waiting: " + line
    disk.slow.release()
    answers(server, 1)
    answers(server, 2)
    server.stop(messages=GAVE_UP)


@pytest.mark.parametrize("path_name", ["nodiskio", "pool"])
def test_clients_of_a_hung_disk_do_not_use_up_connections(serve_disk, disk, path_name):
    """Of max_connections_per_address; what they wait for stays until it answers."""
    server = serve_disk(path_name, disk_timeout=1, max_connections_per_address=2)
    (c,) = hangs(disk, server, 1)
    is_refused(c)
    others = [server.connect() for _ in range(2)]
    for other in others:
        assert other.ask("/hot.bin", host="fast").status == 200
    disk.slow.release()
    for other in others:
        other.finish()
    answers(server, 1)
    server.stop(messages=GAVE_UP)


def test_closed_socket_is_not_counted_until_the_disk_responds(group, serve_disk, disk, tmp_path):
    """Its descriptor is another client's by then, whose bytes would count twice."""
    server = serve_disk("nodiskio", disk_timeout=1, admin=str(tmp_path / "admin"),
                        becomes=("sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', group))
    server.admin = str(tmp_path / "admin")
    c = server.connect()
    assert c.ask("/hot.bin", host="disk").body == t.content(9, HOT)
    wait_until(lambda: limits.figure(server, "pagewise_unacked_bytes") >= HOT, "the bytes to be counted")
    disk.cold(1)
    disk.hang()
    c.send(request("/cold-1.bin", host="disk"))
    disk.slow.wait_held("read")
    is_refused(c)
    wait_until(lambda: limits.figure(server, "pagewise_unacked_bytes") == 0, "nothing to be counted")
    assert disk.slow.held("read") >= 1
    disk.slow.release()
    answers(server, 1)
    server.stop(messages=GAVE_UP)


@pytest.mark.parametrize("send_path", ["nodiskio", "pool"])
def test_each_of_more_requests_than_threads_is_503_on_fuse(serve_slow, slow, send_path):
    """Some hang in a thread, which has not begun to send, and some are queued."""
    server = serve_slow(disk_timeout=1, threads=4, send_path=send_path)
    before = descriptors(server, "socket:")
    files = {"/cold-%d.bin" % n: t.content(20 + n, HOT) for n in range(10)}
    for name, data in files.items():
        slow.add(name.lstrip("/"), data)
    slow.hang("read", "cold-")
    clients = [ask_slow(server, name) for name in files]
    slow.wait_held("read")
    for c in clients:
        is_refused(c)
    wait_until(lambda: descriptors(server, "socket:") <= before, "the sockets to be closed")
    slow.release()
    for name, data in files.items():
        assert server.get(name, host="slow").body == data
    server.stop(messages=GAVE_UP)


@pytest.mark.plain("a client of TLS that shuts its side gets no close_notify")
@pytest.mark.http1("a connection that is half closed")
def test_client_that_closed_its_side_waits_for_a_part_of_disk_timeout(serve_slow, slow):
    """Most such clients have left, and their descriptors are for others.  It is no fault of the disk's."""
    server = serve_slow(disk_timeout=30)
    slow.add("cold-1.bin", t.content(20, HOT))
    slow.hang("read", "cold-")
    waits, closed = (ask_slow(server, "/cold-1.bin") for _ in range(2))
    closed.half_close()
    assert closed.response().status == 503
    closed.eof()
    slow.release()
    assert waits.response().body == t.content(20, HOT)


@pytest.mark.plain("a client of TLS that shuts its side gets no close_notify")
@pytest.mark.http1("a connection that is half closed")
def test_client_that_closed_its_side_has_one_time_for_all_waits(serve_slow, slow):
    server = serve_slow(disk_timeout=30)
    slow.add("cold-1.bin", t.content(20, 100))
    for op in ("lookup", "read"):
        slow.delay(op, 700, "cold-")  # together more than a second
    closed = ask_slow(server, "/cold-1.bin")
    closed.half_close()
    assert closed.response().status == 503
    closed.eof()


@pytest.mark.http1("a connection that is half closed")
def test_client_that_closed_its_side_loses_its_slot_first(serve_slow, slow):
    server = serve_slow(max_connections=2)
    slow.add("cold-1.bin", t.content(20, HOT))
    slow.hang("read", "cold-")
    closed, waits = (ask_slow(server, "/cold-1.bin") for _ in range(2))
    closed.half_close()
    fast = server.connect()
    assert fast.ask("/hot.bin", host="fast").body == t.content(9, HOT)
    assert closed.drain() == b""
    slow.release()
    assert waits.response().body == t.content(20, HOT)
    server.stop(messages=True)


def test_503_of_a_disk_has_the_fields_of_other_errors(serve_slow, slow):
    server = serve_slow(disk_timeout=1, cors=["https://a.example"])
    slow.add("cold-1.bin", t.content(20, HOT))
    slow.hang("read", "cold-")
    c = server.connect()
    c.send(request("/cold-1.bin", host="slow", fields={"Origin": "https://a.example"}))
    response = c.response()
    assert response.status == 503
    assert response.get("Access-Control-Allow-Origin") == "https://a.example"
    assert "Retry-After" in response and "Access-Control-Expose-Headers" in response
    slow.release()
    c.drain()
    server.stop(messages=GAVE_UP)


def test_trace_names_the_wait_that_took_too_long(serve_slow, slow):
    server = serve_slow(disk_timeout=1, trace_clients=["127.0.0.1"])
    slow.hang("open", "cold2.bin")
    c = server.connect()
    c.send(request("/cold2.bin", host="slow", fields={"Pagewise-Trace": "t"}))
    slow.wait_held("open")
    is_refused(c)
    slow.release()
    wait_until(lambda: "end: status 503, aborted after a wait of " in server.output, "the trace")
    assert " us for the disk, " in server.output
    server.stop(messages=GAVE_UP)


@pytest.mark.parametrize("path_name", WAITING)
def test_response_that_has_begun_is_aborted(serve_disk, disk, path_name):
    server = serve_disk(path_name, disk_timeout=1)
    disk.cold(1)
    disk.hang(1, LATE)
    c = ask(server, 1)
    head = c.read_head()
    body = c.drain()
    assert len(body) < head.length == SIZE
    assert t.content(1, SIZE).startswith(body)
    hot_requests(server, 2)
    disk.slow.release()
    answers(server, 1)
    server.stop(messages=GAVE_UP)


@pytest.mark.parametrize(
    "op, target", [("lookup", "/dir/file.bin"), ("open", "/cold2.bin"), ("readdir", "/dir/")]
)
def test_lookup_open_and_listing_that_hang_are_503(serve_slow, slow, op, target):
    server = serve_slow(disk_timeout=1)
    slow.hang(op, target.strip("/"))
    c = server.connect()
    c.send(request(target, host="slow"))
    slow.wait_held(op)
    is_refused(c)
    assert server.get("/hot.bin", host="fast").status == 200
    slow.release()

    def served():
        # A listing in blocks for a while: the disk was too slow.
        with server.connect(may_be_chunked=True) as c:
            response = c.ask(target, host="slow")
            c.finish(response)
            return response.status == 200

    wait_until(served, "the disk to be served again")
    server.stop(messages=GAVE_UP)


def test_requests_wait_for_a_slow_disk(serve_disk, disk):
    """The time is that of one wait, not of the request."""
    server = serve_disk("nodiskio", disk_timeout=2, readahead="64K")
    disk.cold(1)
    disk.slow.delay("read", 100, "image")
    begin = time.monotonic()
    response = ask(server, 1).response()
    assert response.body == t.content(1, SIZE)
    assert time.monotonic() - begin > 2, "that was not slow enough to show anything"
    disk.slow.release()


@pytest.mark.http1("what is pipelined behind a 503 is lost")
def test_head_and_pipelined_requests(serve_disk, disk):
    """An answer went before, another request comes behind, and there is no body."""
    server = serve_disk("nodiskio", disk_timeout=1)
    disk.cold(1)
    disk.hang()
    c = server.connect()
    c.send(request("/hot.bin", host="fast") + request("/cold-1.bin", host="disk") * 2)
    assert c.response().body == t.content(9, HOT)
    is_refused(c)
    disk.slow.release()
    answers(server, 1)
    server.stop(messages=GAVE_UP)


def test_requests_wait_for_a_busy_disk(serve_disk, disk):
    """One thread, and six files before it in the queue: none takes as long as all."""
    server = serve_disk("nodiskio", disk_timeout=2, threads=1)
    disk.cold(*range(MANY))
    disk.slow.delay("read", 30, "image")
    clients = [ask(server, n) for n in range(MANY)]
    begin = time.monotonic()
    for n, c in enumerate(clients):
        assert c.response().body == t.content(n, SIZE)
    assert time.monotonic() - begin > 2, "that was not slow enough to show anything"
    disk.slow.release()


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "unix:s"])
@pytest.mark.parametrize("size", [10, 8 << 10, (8 << 10) + 1, 256 << 10])
def test_error_page_of_a_disk_that_hangs(serve_slow, slow, tmp_path, size, listen):
    """With the page, or, if that might not fit into a socket that is to be closed, without."""
    (tmp_path / "503.html").write_bytes(b"y" * size)
    server = serve_slow(disk_timeout=1, error_page=[f"503 {tmp_path}/503.html"], listen=[listen])
    slow.hang("read", "cold.bin")
    c = ask_slow(server)
    slow.wait_held("read")
    answer = c.response()
    assert answer.status == 503 and answer.get("Retry-After") == "1"
    assert answer.closes is not http2.ON
    if size <= 8 << 10:
        assert answer.body == b"y" * size
    else:
        assert b"503 Service" in answer.body and b"yy" not in answer.body
    if http2.ON:
        c.half_close()
    assert c.drain() == b""
    slow.release()
    server.stop(messages=True)
