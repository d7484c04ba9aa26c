"""Limits for clients that are slow: min_send_rate, send_timeout, and the last response."""

import os
import re
import signal
import threading
import time

import pytest

from harness import readable, request, wait_until
from limits import busy, connections, figure, limited, start, timeouts  # noqa: F401


class Sipper(threading.Thread):
    """Takes size bytes of an answer at a time, until the server has had enough."""

    def __init__(self, c, size, pause):
        super().__init__(daemon=True)
        # Of TLS, too, what is on the wire: a record is not had in parts.
        self.sock = getattr(c.sock, "raw", c.sock)
        self.c, self.size, self.pause = c, size, pause
        self.got = 0
        self.ended = None
        self.stop = threading.Event()
        self.begin = time.monotonic()
        self.start()

    def run(self):
        try:
            while not self.stop.wait(self.pause):
                data = self.sock.recv(self.size)
                if not data:
                    break
                self.got += len(data)
        except OSError:
            pass
        self.ended = time.monotonic() - self.begin


def sip(server, size, pause, target="/big"):
    c = server.connect(rcvbuf=4096)
    c.send(request(target))
    return Sipper(c, size, pause)


def closed_by(server, limit):
    wait_until(lambda: limited(server, limit) == 1, limit)
    wait_until(lambda: connections(server) == 0, "the connection to be closed")


@pytest.mark.parametrize("target", ["/big", "/big?ranges", "/"],
                         ids=["file", "multipart", "listing"])
@pytest.mark.slow
def test_client_below_min_send_rate_is_closed(serve_conf, site, tmp_path, target):
    """It takes something all the time, so send_timeout alone would let it be."""
    (site / "big").write_bytes(bytes(range(256)) * (64 << 10))
    names = site / "dir"
    names.mkdir()
    for i in range(9000 if target == "/" else 1):
        (names / ("%05d" % i + 120 * "n")).touch()
    log = tmp_path / "log"
    server = serve_conf(
        {"workers": 1, "admin": str(tmp_path / "admin"), "access_log": str(log),
         "send_timeout": 2, "min_send_rate": "64K", "autoindex": True},
        [("s", {"root": site}, {})],
    )
    server.admin = str(tmp_path / "admin")
    c = server.connect(rcvbuf=4096)
    fields = {"Range": "bytes=0-5000000,6000000-15000000"} if "?" in target else {}
    c.send(request(target if target != "/" else "/dir/", fields=fields))
    sipper = Sipper(c, 2000, 0.1)
    closed_by(server, "min_send_rate")
    assert sipper.got > 0
    wait_until(lambda: log.read_text().count("\n") == 1, "the log")
    assert re.search(r'" 20[06] \d+ "', log.read_text())
    sipper.stop.set()
    c.reset()


@pytest.mark.slow
@pytest.mark.waits
def test_client_at_more_than_the_rate_goes_on(start):
    """It has to wait for the server's socket all the time, as the other does."""
    server = start({"send_timeout": 1, "min_send_rate": "4K"})
    sipper = sip(server, 4000, 0.02)
    wait_until(lambda: sipper.got > 600000 or sipper.ended, "bytes")
    assert not sipper.ended
    assert limited(server, "min_send_rate") == 0
    sipper.stop.set()
    sipper.join()
    sipper.c.reset()


@pytest.mark.slow
@pytest.mark.waits
def test_client_that_pauses_for_less_than_send_timeout_goes_on(start, site):
    server = start({"send_timeout": 3})
    c = server.connect(rcvbuf=4096)
    c.send(request("/big"))
    head = c.read_head()
    body = b""
    for _ in range(3):
        time.sleep(2)
        body += c.read_exactly(1 << 20)
    body += c.read_exactly(head.length - len(body))
    assert body == (site / "big").read_bytes()
    c.finish()


@pytest.mark.slow
def test_client_that_takes_nothing_is_closed_after_send_timeout(start):
    server = start({"send_timeout": 1, "min_send_rate": 0})
    c = busy(server)
    wait_until(lambda: figure(server, "pagewise_timeouts_total", '{kind="send"}') == 1,
               "the time-out")
    wait_until(lambda: connections(server) == 0, "the connection to be closed")
    assert limited(server, "min_send_rate") == 0
    c.reset()


@pytest.mark.slow
@pytest.mark.waits
def test_waits_of_the_server_do_not_count_for_the_rate(start):
    """The socket was full when the server stopped; the client has emptied it since."""
    server = start({"send_timeout": 1, "min_send_rate": "1M"})
    c = busy(server)
    begin = time.monotonic()
    os.kill(server.pid, signal.SIGSTOP)
    try:
        # No socket holds what would have to be taken in this time.
        while time.monotonic() < begin + 7:
            if readable(c.sock, 0.1):
                assert c.sock.recv(1 << 20)
    finally:
        os.kill(server.pid, signal.SIGCONT)
    c.read_exactly(1 << 18)
    assert server.get("/small").body == b"small"
    c.read_exactly(1 << 18)
    assert limited(server, "min_send_rate") == 0
    c.reset()


@pytest.mark.slow
@pytest.mark.waits
def test_with_rate_0_a_client_may_read_slowly(start):
    """What it has acknowledged is progress, though no room in the socket has come of it."""
    server = start({"send_timeout": 1, "min_send_rate": 0})
    sipper = sip(server, 2000, 0.1)
    wait_until(lambda: sipper.ended or time.monotonic() - sipper.begin > 5, "5 s")
    assert not sipper.ended
    assert figure(server, "pagewise_timeouts_total", '{kind="send"}') == 0
    sipper.stop.set()
    sipper.join()
    sipper.c.reset()


@pytest.mark.parametrize("target, fields", [
    ("/big", {}),
    pytest.param("/middle", {}, marks=pytest.mark.plain("records are larger: send_timeout is first")),
    ("/middle", {"Connection": "close"}),
], ids=["in the middle", "idle", "lingering"])
@pytest.mark.slow
@pytest.mark.waits
def test_closed_slow_client_leaves_nothing_in_the_kernel(start, site, target, fields):
    """What it has not taken would be sent as long as it asks for a byte now and then."""
    (site / "middle").write_bytes(bytes(200000))
    server = start({"send_timeout": 1, "keepalive_timeout": 1, "min_send_rate": "20K"})
    c = server.connect(rcvbuf=4096)
    c.send(request(target, fields=fields))
    sipper = Sipper(c, 100, 0.1)
    closed_by(server, "min_send_rate")
    wait_until(lambda: server.in_kernel() == [], "the kernel's part to end")
    assert timeouts(server) == {}
    sipper.stop.set()
    c.reset()


@pytest.mark.parametrize("keepalive, fields", [
    (1, {}), (600, {}), (1, {"Connection": "close"}),
], ids=["idle", "idle for long", "lingering"])
@pytest.mark.parametrize("rate", [0, 240])
@pytest.mark.slow
@pytest.mark.waits
def test_client_that_does_not_take_its_last_answer_is_closed(start, site, keepalive, fields, rate):
    """After a send_timeout, whatever the time for the next request is."""
    (site / "middle").write_bytes(bytes(200000))
    server = start({"send_timeout": 1, "keepalive_timeout": keepalive, "min_send_rate": rate})
    c = server.connect(rcvbuf=4096)
    c.send(request("/middle", fields=fields))
    wait_until(lambda: timeouts(server) == {"send": 1}, "the time-out")
    wait_until(lambda: connections(server) == 0, "the connection to be closed")
    wait_until(lambda: server.in_kernel() == [], "the kernel's part to end")
    assert limited(server, "min_send_rate") == 0
    c.reset()


@pytest.mark.slow
@pytest.mark.waits
def test_connection_stays_for_keepalive_timeout_when_its_answer_was_taken(start, site):
    (site / "middle").write_bytes(bytes(200000))
    server = start({"send_timeout": 1})
    with server.connect() as c:
        assert c.ask("/middle").body == bytes(200000)
        assert c.quiet(2.5)
        assert c.ask("/small").body == b"small"
        c.finish()
    assert timeouts(server) == {}


@pytest.mark.parametrize("fields, pause", [
    ({}, 3.5), ({"Connection": "close"}, 11),
], ids=["idle", "lingering"])
@pytest.mark.slow
@pytest.mark.waits
def test_client_may_pause_in_its_last_answer_for_less_than_send_timeout(
        start, site, fields, pause):
    """Looks at it come more often than that: after 1 s, and 5 s."""
    (site / "middle").write_bytes(bytes(range(250)) * 800)
    server = start({"keepalive_timeout": 1})
    c = server.connect(rcvbuf=4096)
    c.send(request("/middle", fields=fields))
    wait_until(lambda: figure(server, "pagewise_requests_total", '{status="200"}') == 1,
               "the answer to be in the kernel")
    head = c.read_head()
    time.sleep(pause)
    assert c.read_body(head).body == (site / "middle").read_bytes()
    c.eof()


@pytest.mark.parametrize("fields", [{}, {"Connection": "close"}], ids=["idle", "lingering"])
@pytest.mark.slow
@pytest.mark.waits
def test_last_answer_is_left_to_a_client_that_takes_it(start, site, fields):
    """All of it is in the kernel; it takes longer than the time for it to end or go on."""
    (site / "middle").write_bytes(bytes(range(250)) * 1500)
    server = start({"keepalive_timeout": 1})
    c = server.connect(rcvbuf=4096)
    c.send(request("/middle", fields=fields))
    wait_until(lambda: figure(server, "pagewise_requests_total", '{status="200"}') == 1,
               "the answer to be in the kernel")
    head = c.read_head()
    body = b""
    # Lingering is 5 s.
    pause = 7.5 / 60 if fields else 3.0 / 60
    while len(body) < head.length:
        time.sleep(pause)
        body += c.read_exactly(min(head.length // 60, head.length - len(body)))
    assert body == (site / "middle").read_bytes()
    c.eof()
    assert limited(server, "min_send_rate") == 0
