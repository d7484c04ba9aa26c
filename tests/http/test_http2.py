"""What only HTTP/2 has (RFC 9113): how it begins and ends, requests, bodies.

The answers themselves are HTTP/1's: PAGEWISE_HTTP2 (http2.py) and test_requests_are_answered_alike.
"""

import os
import signal
import ssl
import struct

import pytest

import h2_raw as raw
import http2
import request_corpus as corpus
import tls
import tree as t
from harness import Connection, request, wait_until
from hot import BOUNDARY
from http2_server import (BIG, HEAD_FIELDS, MOST, NO_ERROR, PROTOCOL_ERROR, Client, files, lent,  # noqa: F401
                          module_files, over_tls, start)


# -------------------------------------------------------------- how it begins


def test_alpn_or_prior_knowledge_selects_http2(start, files):
    for server, secure in ((start(), False), (over_tls(start), True)):
        with Client(server, over_tls=secure) as c:
            answer = c.ask("/small")
            assert (answer.status, answer.body) == (200, b"small")
            assert set(answer.fields) == HEAD_FIELDS


@pytest.mark.parametrize("http2_key, offered, chosen", [
    (True, ("h2", "http/1.1"), "h2"), (True, ("http/1.1", "h2"), "h2"), (True, ("http/1.1",), "http/1.1"),
    (True, ("spdy/3",), None), (False, ("h2", "http/1.1"), "http/1.1"), (False, ("h2",), None)])
def test_alpn(start, http2_key, offered, chosen):
    server = over_tls(start, http2=http2_key)
    with tls.socket.create_connection(server.address, 30) as sock:
        try:
            with http2.alpn_context(*offered).wrap_socket(sock) as s:
                assert s.selected_alpn_protocol() == chosen
        except ssl.SSLError as error:
            # RFC 7301, 3.2
            assert chosen is None and "no application protocol" in str(error)


def test_preface_is_505_where_it_is_off(start):
    server = start(http2=False)
    with Connection(server.address) as c:
        c.send(raw.PREFACE)
        assert c.response().status == 505
        c.eof()


@pytest.mark.parametrize("size", range(1, len(raw.PREFACE) + 9, 4))
def test_preface_comes_in_parts(lent, size):
    whole = raw.PREFACE + raw.settings() + raw.get(1)
    with raw.Client(lent.address, begin=False) as c:
        c.send(whole[:size])
        c.send(whole[size:])
        assert c.body(1) == b"small"


@pytest.mark.parametrize("begin", [
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", b"PRI * HTTP/2.0\r\nHost: x\r\n\r\n"])
def test_invalid_preface_closes_the_connection(lent, begin):
    with raw.Client(lent.address, begin=False) as c:
        c.send(begin + raw.get(1))
        assert c.goaway()[1] in (None, PROTOCOL_ERROR)


def test_preface_after_a_request_is_invalid(start):
    with Connection(start().address) as c:
        assert c.ask("/small").body == b"small"
        c.send(raw.PREFACE)
        assert c.response().status == 505
        c.eof()


# ------------------------------------------------- the corpus, as HTTP/1 answers


def carried(scheme):
    """The cases that HTTP/2 can carry, which are no framing."""
    for case in corpus.CASES:
        head, end, body = case.raw.partition(b"\r\n\r\n")
        try:
            parsed = http2.Request(head, scheme)
        except http2.Unspeakable:
            continue
        if end and len(case.verdict.statuses) == 1 and parsed.length == len(body) < 32768:
            yield case, parsed, body


def comparable(status, fields, body):
    skip = {"date", "connection", "transfer-encoding"}
    fields = {n.lower(): v for n, v in fields if n.lower() not in skip and n[0] != ":"}
    fields["content-type"] = BOUNDARY.sub(rb"\1", fields.get("content-type", "").encode())
    return status, fields, BOUNDARY.sub(rb"\1", body)


def test_requests_are_answered_alike(serve_conf, site):
    """All that HTTP/2 can carry of the corpus of requests."""
    for name in "ab":
        (site / name).write_bytes(corpus.LETTERS)
    (site / "d").mkdir()
    (site / "index.html").write_text("<title>h</title>\n")
    server = serve_conf({"workers": 1}, [("h", {"root": site}, {})])
    for path in site.iterdir():
        os.utime(path, (1577934245, 1577934245))
    count = 0
    with Client(server) as c:
        for case, parsed, body in carried(b"http"):
            with Connection(server.address) as plain:
                plain.send(case.raw)
                expected = plain.response("HEAD" if case.head else "GET")
            stream = c.begin(pseudo=parsed.pseudo, fields=parsed.fields, end=not body)
            if body:
                c.data(stream, body, end=True)
            got = c.answer(stream)
            count += 1
            # With a user in :authority a request is malformed (RFC 9113, 8.3.1): nghttp2 1.64 resets its stream itself.
            if got.error == PROTOCOL_ERROR and b"@" in dict(parsed.pseudo).get(b":authority", b""):
                assert expected.status == 400, case
                continue
            assert got.error in (None, NO_ERROR), (case, got)
            assert comparable(got.status, got.fields.items(), got.body) == comparable(
                expected.status, expected.fields, expected.body), case
    assert count > 60


# ------------------------------------------------------------ bodies of requests


def test_body_is_discarded_and_longer_than_a_window(start):
    """Each is within what is allowed; together they are more than the connection's window."""
    with Client(start()) as c:
        for _ in range(8):
            stream = c.begin("/small", fields=[("content-length", "50000")], end=False)
            sent = 0
            while sent < 50000 and c.answers[stream].error is None:
                room = min(16384, 50000 - sent, c.conn.local_flow_control_window(stream))
                if room == 0:
                    c.receive()
                    continue
                sent += room
                c.data(stream, b"x" * room, end=sent == 50000)
            answer = c.answer(stream)
            assert (answer.status, answer.body) == (200, b"small")
            assert answer.error in (None, NO_ERROR), "told to stop, at most"


@pytest.mark.parametrize("length", [65537, 1 << 40])
def test_too_long_body_is_413_and_reset(start, length):
    with Client(start()) as c:
        stream = c.begin("/small", fields=[("content-length", str(length))], end=False)
        answer = c.answer(stream)
        assert (answer.status, answer.over) == (413, True)
        # A client that does not hear that is told to stop.
        while answer.error is None:
            room = min(16384, c.conn.local_flow_control_window(stream))
            c.data(stream, b"x" * room) if room else c.receive()
            c.ping()
        assert answer.error == NO_ERROR
        assert c.ask("/small").body == b"small"


def test_body_without_a_length_and_its_trailers(start):
    """They are ignored: RFC 9113, 8.1."""
    with Client(start()) as c:
        stream = c.begin("/small", end=False)
        c.data(stream, b"x" * 1000)
        c.conn.send_headers(stream, [("x-trailer", "1"), ("range", "bytes=0-0")], end_stream=True)
        c.flush()
        assert (c.answer(stream).status, c.answers[stream].body) == (200, b"small")
        assert c.ask("/small").status == 200


# ----------------------------------------------------------------- requests


def test_authority_and_host(start, site):
    server = start([("s", {"root": site, "names": ["localhost"]}, {})])
    with Client(server) as c:
        assert c.ask("/small", host="localhost", fields=[("host", "localhost")]).status == 200
        assert c.ask("/small", host="localhost", fields=[("host", "LOCALHOST")]).status == 200
        assert c.ask("/small", host="localhost", fields=[("host", "localhost:80")]).status == 200
        assert c.ask("/small", host="LocalHost.:080", fields=[("host", "localhost")]).status == 200
        assert c.ask("/small", host="localhost:81", fields=[("host", "localhost")]).status == 400
        assert c.ask("/small", host="localhost", fields=[("host", "localhost:443")]).status == 400
        assert c.ask("/small", host="localhost", fields=[("host", "other")]).status == 400
        base = [(":method", "GET"), (":scheme", "http"), (":path", "/small")]
        assert c.ask(pseudo=base, fields=[("host", "localhost")]).status == 200
        assert c.ask(pseudo=base).error == PROTOCOL_ERROR
        assert c.ask("/small").status == 200


@pytest.mark.slow
def test_name_that_the_certificate_does_not_have_is_421(start, site, serve_conf):
    """A connection that a client reuses: RFC 9113, 9.1.2; as HTTP/1 answers."""
    pairs = [tls.PAIRS.for_user(None, (name,)) for name in ("a.test", "b.test")]
    server = serve_conf(
        {"workers": 1, "listen": ["127.0.0.1:0 tls"], "certificate": [pairs[0]]},
        [(name, {"root": site, "names": [name + ".test"], "certificate": [pair]}, {})
         for name, pair in zip("ab", pairs)])
    with Client(server, over_tls=True) as c:
        answers = {name: c.ask("/small", host=name).status for name in ("a.test", "b.test")}
    with tls.connect(server.address, 30) as sock:
        for name, status in answers.items():
            sock.sendall(request("/small", host=name))
            assert sock.recv(12) == b"HTTP/1.1 %d" % status
            sock.recv(1 << 16)
    assert 421 in answers.values()


def test_connect_is_refused(start):
    with Client(start()) as c:
        answer = c.ask(pseudo=[(":method", "CONNECT"), (":authority", "localhost:80")])
        assert answer.status in (400, 405, 501), answer
        assert c.ask("/small").status == 200


@pytest.mark.parametrize("method, target, fields, status", [
    ("HEAD", "/big", [], 200), ("HEAD", "/big", [("range", "bytes=0-%d" % (BIG - 1))], 206),
    ("HEAD", "/big", [("range", "bytes=%d-" % BIG)], 416), ("GET", "/big", [("if-none-match", "*")], 304), ("OPTIONS", "/big", [], 204),
    ("GET", "/empty", [], 200)])
def test_answer_without_a_body_has_no_data(start, method, target, fields, status):
    with Client(start()) as c:
        answer = c.ask(target, method, fields=fields)
        assert answer.status == status
        assert answer.trailing == 0, "DATA"
        if method == "HEAD" and status != 416:
            assert answer.fields["content-length"] == str(BIG)


@pytest.mark.parametrize("target, fields, status", [
    ("/" + "x" * 8192, [], 414), ("/", [("x", "y" * 20000)], 431), ("/", [("x%d" % i, "y") for i in range(101)], 431)])
def test_limits_of_a_head_end_its_stream_alone(lent, target, fields, status):
    with Client(lent) as c:
        other = c.begin("/big")
        assert c.ask(target, fields=fields).status == status
        assert len(c.answer(other).body) == BIG


@pytest.mark.parametrize("field", [
    ("connection", "close"), ("transfer-encoding", "chunked"), ("te", "gzip"), ("X-Upper", "1"), ("a b", "1"),
    (":path", "/again"), (":unknown", "x")])
def test_malformed_request_is_reset(lent, field):
    """RFC 9113, 8.1.1; and nobody else is."""
    block = raw.fields(more=[(field[0].encode(), field[1].encode())])
    with raw.Client(lent.address) as c:
        c.send(raw.frame(raw.HEADERS, raw.END_STREAM | raw.END_HEADERS, 1, block) + raw.get(3))
        assert c.until(raw.RST_STREAM, 1) == struct.pack(">I", PROTOCOL_ERROR)
        assert c.body(3) == b"small"


# ------------------------------------------------------------- how it ends


def test_max_requests_says_which_is_the_last(start):
    with Client(start(max_requests=3)) as c:
        streams = [c.begin("/middle") for _ in range(3)]
        for stream in streams:
            assert c.answer(stream).status == 200
        assert c.end() == (streams[-1], NO_ERROR)


@pytest.mark.slow
def test_idle_connection_ends_with_goaway(start):
    with Client(start(keepalive_timeout=1)) as c:
        stream = c.begin("/small")
        assert c.answer(stream).status == 200
        assert c.end() == (stream, NO_ERROR)


@pytest.mark.slow
def test_head_that_never_ends_is_timed_out(start):
    """CONTINUATION, and no more: of the connection, since nothing may come between (6.10)."""
    server = start(head_timeout=1)
    block = raw.fields()
    with raw.Client(server.address) as c:
        c.send(raw.frame(raw.HEADERS, raw.END_STREAM, 1, block[:9]) +
               raw.frame(raw.CONTINUATION, 0, 1, block[9:12]))
        last, error = c.goaway()
        assert error == NO_ERROR and last in (0, 1)


@pytest.mark.slow
def test_preface_without_a_request_is_timed_out(start):
    with raw.Client(start(head_timeout=1, keepalive_timeout=1).address) as c:
        assert c.goaway() == (0, NO_ERROR)


def grown(c, stream, size):
    c.until(lambda: len(c.answers[stream].body) >= size, "a part of it")


@pytest.mark.slow
@pytest.mark.parametrize("secure", [False, True], ids=["clear", "tls"])
@pytest.mark.parametrize("how", ["terminate", "reload", "upgrade"])
def test_nothing_is_lost_when_the_server_ends(start, files, how, secure):
    """Streams under way are answered, and those that come before the client has heard of it."""
    server = over_tls(start) if secure else start()
    with Client(server, rcvbuf=65536, over_tls=secure) as c:
        streams = [c.begin("/big") for _ in range(4)]
        for stream in streams:
            grown(c, stream, 1)
        if how == "terminate":
            server.terminate()
        elif how == "reload":
            server.reload()
        else:
            server.again(signal.SIGUSR2, "upgraded")
        late = c.begin("/middle")
        for stream in streams:
            assert c.answer(stream).body == files["/big"]
        assert c.answer(late).body == files["/middle"]
        last, error = c.end()
        assert error == NO_ERROR and last >= late
        assert c.goaways[0] == (MOST, NO_ERROR), "a notice first: RFC 9113, 6.8"
    if how == "terminate":
        server.stop()
    else:
        with Client(server, over_tls=secure) as c:
            assert c.ask("/small").body == b"small"


@pytest.mark.parametrize("how", ["terminate", "reload", "upgrade"])
def test_idle_connection_gets_the_last_streams_number_at_once(start, how):
    """httpx takes a notice (2^31-1) for the end of the request that it sends next."""
    server = start()
    with raw.Client(server.address) as c, raw.Client(server.address) as unused:
        for stream in 1, 3:
            c.send(raw.get(stream))
            assert c.body(stream) == b"small"
        unused.until(raw.SETTINGS)
        if how == "terminate":
            server.terminate()
        elif how == "reload":
            server.reload()
        else:
            server.again(signal.SIGUSR2, "upgraded")
        assert c.until(raw.GOAWAY) == struct.pack(">II", 3, NO_ERROR)
        # A request that crosses the GOAWAY gets no answer, and no reset that would hide the GOAWAY.
        c.send(raw.get(5))
        assert c.sock.recv(1) == b""
        # There is no number yet that a client could send again from.
        assert unused.until(raw.GOAWAY) == struct.pack(">II", MOST, NO_ERROR)
    if how == "terminate":
        server.stop()


@pytest.mark.slow
def test_client_that_never_pauses_gets_the_last_goaway(start, files):
    """Its socket was full when the server's end came, and is again and again."""
    server = start(shutdown_timeout=600)
    with raw.Client(server.address, window=MOST) as c:
        c.send(raw.update(0, MOST - 65535) + raw.get(1, b"/big") + raw.get(3, b"/big"))
        c.until(raw.DATA)
        server.terminate()
        assert c.until(raw.GOAWAY)[:4] == struct.pack(">I", MOST)
        stream, last = 3, MOST
        while last == MOST:
            kind, flags, _, payload = c.read()
            if kind == raw.GOAWAY:
                last = struct.unpack(">I", payload[:4])[0]
            elif flags & raw.END_STREAM and kind == raw.DATA:
                stream += 2
                c.send(raw.get(stream, b"/big"))
        assert last <= stream


def test_clients_goaway_ends_it_behind_the_answers(start, files):
    with raw.Client(start().address, window=1 << 20) as c:
        c.send(raw.get(1, b"/middle") + raw.update(0, 1 << 20) +
               raw.frame(raw.GOAWAY, payload=struct.pack(">II", 0, NO_ERROR)))
        assert c.body(1) == files["/middle"]
        assert c.goaway()[1] in (None, NO_ERROR)


# ---------------------------------------------------------------- the others


def test_rate_of_a_stream_delays_no_other_stream(start, site, files):
    server = start([("s", {"root": site}, {"/middle": {"rate": "64K"}})])
    with Client(server) as c:
        paced = c.begin("/middle")
        c.until(lambda: c.answers[paced].status == 200, "its head")
        for _ in range(20):
            assert c.ask("/small").body == b"small"
        assert c.ask("/big").body == files["/big"]
        assert not c.answers[paced].over, "it was not paced"
        c.reset(paced)
        assert c.ask("/small").body == b"small"


@pytest.mark.slow
def test_listing_that_streams(start, site):
    many = site / "many"
    many.mkdir()
    t.many(many, ("name-%05d" % i for i in range(3000)))
    server = start([("s", {"root": site, "autoindex": True}, {})])
    with Client(server) as c:
        other = c.begin("/big")
        answer = c.ask("/many/")
        assert answer.status == 200
        assert not {"connection", "transfer-encoding"} & set(answer.fields)
        assert all(b"name-%05d" % i in answer.body for i in range(3000))
        assert len(c.answer(other).body) == BIG


def test_access_log_names_the_version(start, tmp_path):
    log = tmp_path / "log"
    server = start(access_log=log)
    with Client(server) as c:
        assert c.ask("/small", fields=[("user-agent", "x y")]).status == 200
        assert c.ask("/none").status == 404
    wait_until(lambda: log.exists() and log.read_text().count("\n") == 2, "the lines")
    assert [line.split('"')[1] for line in log.read_text().splitlines()] == [
        "GET /small HTTP/2.0", "GET /none HTTP/2.0"]


@pytest.mark.parametrize("target", [b"/small", b"/big"])
def test_log_of_answers_that_waited_for_their_client(start, tmp_path, target):
    """Their heads were freed before: the log has what it needs of them, cut for many at once."""
    log = tmp_path / "log"
    server = start(access_log=log)
    query = target + b"?" + 3000 * b"q"
    more = [(b"user-agent", b"agent"), (b"referer", 100 * b"r")]
    long = [(b"x-%d" % i, 100 * b"y") for i in range(20)]
    with Client(server, window=0) as c:
        for path in target, target, query:
            c.begin(path.decode(), fields=more + long)
        c.until(lambda: all(a.status == 200 for a in c.answers.values()), "the heads")
    wait_until(lambda: log.exists() and log.read_text().count("\n") == 3, "the lines")
    lines = [line.split('"') for line in log.read_text().splitlines()]
    path = target.decode()
    assert all(line[3] == 100 * "r" and line[5] == "agent" for line in lines)
    assert [line[1] for line in lines[:2]] == 2 * ["GET %s HTTP/2.0" % path]
    assert lines[2][1] == ("GET %s?" % path + 3000 * "q")[:2048]


def test_proxy_header_comes_before_it(start, tmp_path):
    log = tmp_path / "log"
    server = start(listen=["127.0.0.1:0 proxy"], trusted_proxies=["127.0.0.1"], access_log=log)
    with Client(server, before=b"PROXY TCP4 192.0.2.7 192.0.2.1 1000 80\r\n") as c:
        assert c.ask("/small").body == b"small"
    wait_until(lambda: log.exists() and log.read_text().count("\n") == 1, "the line")
    assert log.read_text().startswith("192.0.2.7 ")
