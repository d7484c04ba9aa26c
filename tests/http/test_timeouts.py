"""Timeouts for the head, for idleness, and for a client that stops reading.

Nothing here measures: a timeout of a second must have come after thirty.
"""

import re
import time

import pytest

import tree as t
from harness import request, wait_until

QUICK = {"head_timeout": 1, "keepalive_timeout": 1, "send_timeout": 1}
PATIENT = {"head_timeout": 600, "keepalive_timeout": 600, "send_timeout": 600}


@pytest.fixture
def conf(serve_conf, tree, tmp_path):
    def start(**top):
        return serve_conf(
            {"workers": 1, "access_log": tmp_path / "log", **top}, [("s", {"root": tree.root}, {})]
        )

    return start


@pytest.mark.parametrize("part", [1, 10, -2, -1])
def test_unfinished_head_is_408_and_close(conf, part):
    server = conf(**{**PATIENT, "head_timeout": 1})
    with server.connect() as c:
        c.send(request("/4097.bin")[:part])
        response = c.response()
        assert response.status == 408
        assert response.closes
        c.eof()


def test_second_head_that_stays_unfinished_is_408(conf, tree):
    server = conf(**{**PATIENT, "head_timeout": 1})
    with server.connect() as c:
        c.send(request("/4097.bin") + request("/1.bin")[:-1])
        assert c.response().body == tree.files["/4097.bin"]
        assert c.response().status == 408
        c.eof()


@pytest.mark.http1("a head in parts")
def test_slow_head_is_408_despite_progress(conf):
    """The timeout is for the whole head, not for each byte."""
    server = conf(**{**PATIENT, "head_timeout": 1})
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\nHost: x\r\n")
        end = time.monotonic() + 30
        while c.quiet(0.2):
            assert time.monotonic() < end, "still waiting for the head"
            c.send(b"A")
        assert c.response().status == 408
        c.eof()


def test_silent_connection_is_closed(conf):
    server = conf(**QUICK)
    with server.connect() as c:
        answer = c.drain()
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")


def test_idle_connection_is_closed_silently(conf, tree):
    server = conf(**{**PATIENT, "keepalive_timeout": 1})
    with server.connect() as c:
        assert c.ask("/4097.bin").body == tree.files["/4097.bin"]
        assert c.ask("/1.bin").body == tree.files["/1.bin"]
        c.eof()


@pytest.mark.parametrize("together", [True, False])
def test_idle_connection_that_has_sent_an_empty_line_is_closed_silently(conf, tree, together):
    """RFC 9112, 2.2: old clients send one behind a body."""
    server = conf(**{**PATIENT, "keepalive_timeout": 1})
    with server.connect() as c:
        c.send(request("/4097.bin") + (b"\r\n" if together else b""))
        assert c.response().body == tree.files["/4097.bin"]
        if not together:
            c.send(b"\r\n")
        c.eof()


def test_empty_lines_do_not_keep_a_connection(conf, tree):
    server = conf(**{**PATIENT, "keepalive_timeout": 1})
    with server.connect() as c:
        assert c.ask("/4097.bin").body == tree.files["/4097.bin"]
        for _ in range(2):
            assert c.quiet(0.4)
            c.send(b"\r\n")
        c.eof()


@pytest.mark.http1("empty lines")
@pytest.mark.parametrize("pieces", [[2, 2, 2], [4, 2], [2, 4], [6], [1] * 6])
def test_third_empty_line_is_an_error(conf, pieces):
    """As in one piece: head.h."""
    server = conf(**PATIENT)
    with server.connect() as c:
        lines = b"\r\n" * 3
        for size in pieces:
            c.send(lines[:size])
            lines = lines[size:]
            time.sleep(0.02)
        response = c.response()
        assert response.status == 400 and response.closes
        c.finish(response)


def test_request_behind_empty_lines_is_answered(conf, tree):
    server = conf(**PATIENT)
    with server.connect() as c:
        for _ in range(3):
            assert c.ask("/4097.bin").body == tree.files["/4097.bin"]
            for _ in range(2):
                c.send(b"\r\n")
                assert c.quiet(0.05)
        c.send(request("/1.bin"))
        assert c.response().body == tree.files["/1.bin"]
        c.finish()


@pytest.mark.http1("its end comes behind the answers")
def test_without_keepalive_every_answer_closes(conf, tree):
    server = conf(keepalive_timeout=0)
    with server.connect() as c:
        c.send(request("/4097.bin") * 3)
        response = c.response()
        assert response.body == tree.files["/4097.bin"]
        assert response.closes
        c.eof()


def test_missing_request_body_closes_the_connection(conf):
    server = conf(**QUICK)
    with server.connect() as c:
        c.send(request("/1.bin", fields={"Content-Length": "10"}))
        c.drain()


@pytest.mark.slow
def test_client_that_stops_reading_is_closed(conf, tmp_path, send_path):
    server = conf(**{**PATIENT, "send_timeout": 1, "send_path": send_path})
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/huge.bin"))
        head = c.read_head()
        # The line is written when the server has given up.
        line = wait_until((tmp_path / "log").read_text, "the connection to be closed")
        assert re.search(r'"GET /huge\.bin HTTP/[12]\.[01]" 200 \d+ ', line)
        assert len(c.drain()) < head.length


@pytest.mark.slow
def test_client_that_reads_slowly_is_not_closed(conf, tree):
    """Progress starts the timeout again."""
    server = conf(**{**PATIENT, "send_timeout": 2})
    name = "/%d.bin" % t.LARGE
    with server.connect(rcvbuf=4096) as c:
        c.send(request(name))
        head = c.read_head()
        body = b""
        for _ in range(20):
            body += c.read_exactly(head.length // 20)
            time.sleep(0.25)
        body += c.read_exactly(head.length - len(body))
        assert body == tree.files[name]
        c.finish()


@pytest.mark.slow
def test_download_is_not_an_idle_connection(conf, tree):
    server = conf(**{**PATIENT, "keepalive_timeout": 1, "head_timeout": 1})
    name = "/%d.bin" % t.LARGE
    with server.connect(rcvbuf=4096) as c:
        c.send(request(name))
        head = c.read_head()
        time.sleep(2.5)
        c.read_body(head)
        assert head.body == tree.files[name]
        assert c.ask("/1.bin").body == tree.files["/1.bin"]


@pytest.mark.slow
def test_client_that_sends_for_ever_after_an_error_is_cut(conf):
    """Lingering ends as well."""
    server = conf(**QUICK)
    with server.connect() as c:
        c.send(b"nonsense\r\n\r\n")
        assert c.response().status == 400
        end = time.monotonic() + 60
        with pytest.raises(OSError):
            while time.monotonic() < end:
                c.send(b"x" * 1000)
                time.sleep(0.01)
