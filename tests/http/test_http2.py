"""What only HTTP/2 has (RFC 9113): streams beside each other, windows, GOAWAY, priorities.

The answers themselves are HTTP/1's: PAGEWISE_HTTP2 (http2.py) and test_requests_are_answered_alike.
"""

import os
import signal
import socket
import ssl
import struct

import pytest

import h2_raw as raw
import http2
import request_corpus as corpus
import tls
import tree as t
from hot import BOUNDARY, Hot
from harness import PROC, Connection, request, wait_until

h2_client = pytest.importorskip("h2_client", reason="no Python module h2")
Client, MOST = h2_client.Client, h2_client.MOST

BIG = 16 * t.MIB
NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, CANCEL, CALM = 0, 1, 7, 8, 11
HEAD_FIELDS = {":status", "date", "server", "content-type", "content-length", "last-modified", "etag",
               "accept-ranges"}


@pytest.fixture(scope="module")
def module_files(module_path):
    """Contents by name; old, so that their tags are strong."""
    data = {"small": b"small", "page.html": b"<p>page", "big": t.content(12, BIG),
            "middle": t.content(13, 300001), "empty": b""}
    for name, content in data.items():
        (module_path / name).write_bytes(content)
        os.utime(module_path / name, (1.6e9, 1.6e9))
    return data


@pytest.fixture
def files(site, module_path, module_files):
    """Links: many tests want them, and one is large."""
    for name in module_files:
        os.link(module_path / name, site / name)
    return {"/" + name: content for name, content in module_files.items()}


PATIENT = {"workers": 1, "head_timeout": 600, "keepalive_timeout": 600, "send_timeout": 600}


@pytest.fixture
def start(serve_conf, site, files):
    def run(sites=None, **top):
        return serve_conf({**PATIENT, **top}, sites or [("s", {"root": site}, {})])

    return run


@pytest.fixture
def lent(lend_conf, module_path, module_files):
    return lend_conf(PATIENT, [("s", {"root": module_path}, {})])


def over_tls(start, **top):
    return start(listen=["127.0.0.1:0 tls"], certificate=[tls.PAIRS.for_user(None)], **top)


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


# ------------------------------------------------------ streams beside each other


@pytest.mark.slow
def test_many_streams_at_once(start, files):
    server = start()
    with Client(server) as c:
        names = [name for name, data in files.items() if data]
        wanted = [names[i % len(names)] for i in range(100)]
        streams = [c.begin(name, fields=[("range", "bytes=0-99999")]) for name in wanted]
        for name, stream in zip(wanted, streams):
            answer = c.answer(stream)
            assert answer.body == files[name][:100000], (name, answer)
        assert c.ask("/big").body == files["/big"]


@pytest.mark.slow
def test_answers_are_interleaved(start, files):
    """Both of a connection that is never full: each frame of one has one of the other near it."""
    with Client(start()) as c:
        one, two = c.begin("/big"), c.begin("/big")
        for stream in (one, two):
            assert c.answer(stream).body == files["/big"]
    order = [stream for stream, what in c.log if what == "DataReceived"]
    turns = sum(a != b for a, b in zip(order, order[1:]))
    assert turns > 10, order


@pytest.mark.slow
def test_urgent_answer_passes_a_download(start, files):
    with Client(start(), rcvbuf=65536) as c:
        big = c.begin("/big")
        c.until(lambda: len(c.answers[big].body) > t.MIB, "a part of it")
        small = c.begin("/middle", fields=[("priority", "u=0")])
        assert c.answer(small).body == files["/middle"]
        assert len(c.answers[big].body) < BIG, "it came behind the download"
        assert c.answer(big).body == files["/big"]


def ends(c, streams):
    c.until(lambda: all(c.answers[s].done for s in streams), "the ends")
    return [stream for stream, what in c.log if what == "StreamEnded"]


def test_more_urgent_ones_go_first_and_equals_without_i_in_their_order(start):
    """RFC 9218, 4: no byte of what is less urgent while there is what is more."""
    with Client(start(), connection=65535, auto=False) as c:
        first = c.begin("/big")  # takes the connection's window
        c.until(lambda: len(c.answers[first].body) == 65535, "it to be full")
        c.reset(first)
        asked = [("u=5", 1), ("u=3", 2), ("u=1", 3), ("u=1", 4)]
        streams = {c.begin("/middle", fields=[("priority", p)]): n for p, n in asked}
        c.ping()
        c.open_window(MOST - 65535)
        assert [streams[s] for s in ends(c, streams)] == [3, 4, 2, 1]


def priority_update(stream, value):
    return raw.frame(raw.PRIORITY_UPDATE, 0, 0, struct.pack(">I", stream) + value)


def test_priority_update_changes_the_order(start):
    with Client(start(), connection=65535, auto=False) as c:
        first = c.begin("/big")
        c.until(lambda: len(c.answers[first].body) == 65535, "it to be full")
        c.reset(first)
        one = c.begin("/middle", fields=[("priority", "u=2")])
        two = c.begin("/middle", fields=[("priority", "u=4")])
        c.sock.sendall(priority_update(two, b"u=0"))
        c.ping()
        c.open_window(MOST - 65535)
        assert ends(c, (one, two)) == [two, one]


def test_more_streams_than_allowed_are_refused(start):
    server = start(http2_max_streams=4)
    # The limit is not acknowledged: behind that the library ends the connection.
    with raw.Client(server.address, begin=False) as c:
        c.send(raw.PREFACE + raw.settings(window=0))
        payload = c.until(raw.SETTINGS)
        settings = {payload[i:i + 2]: payload[i + 2:i + 6] for i in range(0, len(payload), 6)}
        assert settings[b"\0\3"] == struct.pack(">I", 4)
        c.send(b"".join(raw.get(1 + 2 * i, b"/big") for i in range(6)))
        for stream in (9, 11):
            assert c.until(raw.RST_STREAM, stream) == struct.pack(">I", REFUSED_STREAM)
        c.send(raw.update(1, MOST) + raw.frame(raw.RST_STREAM, 0, 3, struct.pack(">I", CANCEL)))
        c.send(raw.get(13))
        assert c.until(raw.HEADERS, 13)


# ------------------------------------------------------ what is ready in memory


@pytest.fixture
def hot(start, site, files, tmp_path):
    """A server whose answers for /small, /empty and /most are ready soon, and its log."""
    files["/most"] = t.content(14, 65536)
    (site / "most").write_bytes(files["/most"])
    for name in files:
        os.utime(site / name[1:], (1.6e9, 1.6e9))

    def run(run=start, **top):
        return Hot(run(admin="127.0.0.1:0", access_log=tmp_path / "log", **top))

    run.lines = lambda: (tmp_path / "log").read_text().splitlines()
    return run


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.slow
def test_ready_answer_is_that_of_the_file(hot, start, files, secure):
    server = hot(run=lambda **top: over_tls(start, **top) if secure else start(**top))
    for target in ("/small", "/empty", "/most"):
        with Client(server.server, over_tls=secure) as c:
            first = c.ask(target)
            server.warm(c, target)
            before = server.count()
            asked = [c.begin(target) for _ in range(100)]
            for stream in asked:
                answer = c.answer(stream)
                assert (answer.status, answer.body) == (200, files[target])
                assert set(answer.fields) == HEAD_FIELDS
                assert {**answer.fields, "date": first.fields["date"]} == first.fields
            assert server.count() - before > 90  # looked up again each second


@pytest.mark.slow
def test_cached_response_stops_at_its_window(hot, files):
    server = hot()
    with Client(server.server, window=10, connection=1 << 24, auto=False) as c:
        with Client(server.server) as other:
            server.warm(other, "/most")
        server.warm(c, "/empty")
        before = server.count()
        one, two = c.begin("/most"), c.begin("/most")
        c.until(lambda: all(len(c.answers[s].body) == 10 for s in (one, two)), "the windows")
        for by in (1, 16375, 16384, 20000):
            size = len(c.answers[one].body)
            c.open_window(by, one)
            c.until(lambda n=size + by: len(c.answers[one].body) == n, "as much")
        c.reset(two)
        c.open_window(65536, one)
        assert c.answer(one).body == files["/most"]
        assert c.ask("/empty").over
        assert server.count() - before == 3
    asked = [("/most", 10), ("/most", 65536), ("/empty", 0)]
    end = ['"GET %s HTTP/2.0" 200 %d ' % of for of in asked]
    wait_until(lambda: [line for line in hot.lines() if end[0] in line] and end[2] in hot.lines()[-1],
               "the lines")
    assert all(a in b for a, b in zip(end, hot.lines()[-3:]))


@pytest.mark.slow
def test_ready_answer_is_logged_as_any(hot):
    server = hot()
    fields = [("user-agent", "x y"), ("referer", "http://r/")]
    with Client(server.server) as c:
        server.warm(c, "/small", fields=fields)
    with Client(server.server) as c:
        assert c.ask("/small", fields=[("user-agent", "z"), *fields[1:]]).body == b"small"
    wait_until(lambda: hot.lines() and '"z"' in hot.lines()[-1], "the lines")
    # Without the time, how long it took, and how long it waited for a disk at first.
    without = {line.partition("[")[0] + line.partition("]")[2].rsplit(" ", 2)[0] for line in hot.lines()}
    size = hot.lines()[-1].split()[-3]
    assert without == {'127.0.0.1 - -  "GET /small HTTP/2.0" 200 5 "http://r/" "%s" %s' % (agent, size)
                       for agent in ("x y", "z")}


@pytest.mark.slow
def test_requests_with_other_fields_are_parsed(hot, files):
    """What was asked with the same fields but for one is answered by that one."""
    server = hot()
    with Client(server.server) as c:
        server.warm(c, "/most")
        for fields, status in ((("range", "bytes=0-9"), 206), (("if-none-match", "*"), 304),
                               (("host", "other"), 400)):
            assert c.ask("/most", fields=[fields]).status == status
            assert c.ask("/most").body == files["/most"]
        assert c.ask("/most", method="HEAD").body == b""
        assert server.is_hot(c, "/most")


@pytest.mark.slow
def test_body_of_a_request_for_what_is_ready(hot):
    server = hot()
    with Client(server.server) as c:
        server.warm(c, "/small")
        before = server.count()
        stream = c.begin("/small", end=False)
        c.until(lambda: c.answers[stream].body == b"small", "the answer")
        c.data(stream, b"x" * 1000, end=True)
        assert c.answer(stream).status == 200
        assert server.count() - before == 1
        assert c.ask("/small").body == b"small"


# ----------------------------------------------------------------- windows


def test_window_of_a_stream_bounds_it_and_no_other(start, files):
    with Client(start(), window=10, connection=1 << 24, auto=False) as c:
        one, two = c.begin("/middle"), c.begin("/middle")
        c.until(lambda: all(len(c.answers[s].body) == 10 for s in (one, two)), "ten bytes")
        c.open_window(MOST - 10, two)
        assert c.answer(two).body == files["/middle"]
        c.ping()
        assert c.answers[one].body == files["/middle"][:10]
        for by in (1, 1, 100):
            had = len(c.answers[one].body)
            c.open_window(by, one)
            c.until(lambda h=had, b=by: len(c.answers[one].body) == h + b, "%d bytes" % by)
        c.open_window(1 << 20, one)
        assert c.answer(one).body == files["/middle"]


def test_window_of_the_connection_bounds_all(start, files):
    with Client(start(), window=1 << 24, connection=65535, auto=False) as c:
        streams = [c.begin("/middle") for _ in range(3)]
        c.until(lambda: sum(len(c.answers[s].body) for s in streams) == 65535, "the window")
        c.ping()
        assert sum(len(c.answers[s].body) for s in streams) == 65535
        assert c.ask("/empty").over, "what has no body needs no window"
        c.open_window(1 << 24)
        for stream in streams:
            assert c.answer(stream).body == files["/middle"]


def test_settings_open_and_close_windows_of_streams_that_are_there(start, files):
    """RFC 9113, 6.9.2: also below nothing."""
    body = files["/middle"]
    with raw.Client(start().address, window=100) as c:
        c.send(raw.get(1, b"/middle"))
        c.until(raw.HEADERS, 1)
        assert c.until(raw.DATA, 1) == body[:100]
        c.send(raw.settings(window=40) + raw.update(1, 60))  # none, again
        c.send(raw.frame(raw.PING, payload=b"12345678"))
        kinds = []
        while not kinds or kinds[-1] != raw.PING:
            kinds.append(c.read()[0])
        assert raw.DATA not in kinds
        c.send(raw.settings(window=140))
        assert c.until(raw.DATA, 1) == body[100:200]
        c.send(raw.settings(window=1 << 20) + raw.update(0, 1 << 20))
        assert c.body(1) == body[200:]


def test_client_may_begin_without_any_window(start, files):
    with Client(start(), window=0, auto=False, connection=1 << 24) as c:
        stream = c.begin("/middle")
        c.until(lambda: c.answers[stream].status == 200, "its head")
        c.ping()
        assert c.answers[stream].body == b""
        assert c.ask("/middle", "HEAD").over
        c.open_window(1 << 20, stream)
        assert c.answer(stream).body == files["/middle"]


def in_kernel(c):
    """(bytes for the server that it has not read, bytes for the client that it has not read)."""
    ours, theirs = (":%04X" % a[1] for a in (c.sock.getsockname(), c.sock.getpeername()))
    queues = {}
    with open("/proc/net/tcp", encoding="ascii") as table:
        for f in (line.split() for line in table if ours in line and theirs in line):
            queues[f[1][-5:], f[2][-5:]] = [int(n, 16) for n in f[4].split(":")]
    ours, theirs = queues[ours, theirs], queues[theirs, ours]
    return ours[0] + theirs[1], theirs[0] + ours[1]


def settled(c):
    """Bytes for the client, once the server has read all that the client sent, and sent what it could."""
    seen = []

    def same():
        seen.append(in_kernel(c))
        unread, unseen = seen[-1]
        return unread == 0 and unseen > 0 and seen[-5:] == 5 * [seen[-1]]

    wait_until(same, "a full socket", pause=0.04)
    return seen[-1][1]


@pytest.mark.skipif(not PROC, reason="no /proc/net/tcp")
def test_request_that_comes_while_the_socket_is_full_is_answered_when_it_drains(start, files):
    """The client sends nothing after it, so that only the socket's event makes the server look."""
    server = start()

    def connect(window):
        c = Client(server, window=window, connection=1 << 30, auto=False, rcvbuf=4096)
        c.ping()  # acknowledges the SETTINGS now, not when it reads on
        c.begin("/big")
        return c

    with connect(BIG) as c:
        window = settled(c) + 32768  # the server gathers the rest of it at once
    with connect(window) as c:
        assert settled(c) < window < BIG
        small = c.begin("/small")
        settled(c)
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        assert c.answer(small).body == files["/small"]


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
    ("HEAD", "/big", [], 200), ("GET", "/big", [("if-none-match", "*")], 304), ("OPTIONS", "/big", [], 204),
    ("GET", "/empty", [], 200)])
def test_answer_without_a_body_has_no_data(start, method, target, fields, status):
    with Client(start()) as c:
        answer = c.ask(target, method, fields=fields)
        assert answer.status == status
        assert answer.trailing == 0, "DATA"
        if method == "HEAD":
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
