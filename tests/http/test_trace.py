"""trace_clients: what one request did, step by step, in the log."""

import os
import re

import pytest

import mounts
import tls
import tree as t
from harness import request, wait_until
from hot import Hot, normalised
from http2 import LOGGED

SMALL, BIG = t.content(1, 1024), t.content(2, 8 << 20)
OTHER = "127.0.0.9"
LINE = re.compile(r"pagewise: trace ([!-~]+): (?:\+(\d+) us: )?(.*)\Z")
MOST = 64  # TRACE_MOST
TEXT = 6144 + 512 * 20  # TRACE_TEXT, and "pagewise: trace ID: " before each line


def asked(name="t", **kw):
    return {"fields": {"Pagewise-Trace": name}, **kw}


class Traced:
    def __init__(self, server):
        self.server = server

    def lines(self, name="t"):
        """(microseconds or None, text) of each line of a trace, once it has its last one."""
        def find():
            found = [LINE.match(line).groups() for line in self.server.output.splitlines()
                     if line.startswith("pagewise: trace %s: " % name)]
            return found if found and found[-1][2].startswith("end: ") else None
        return [(us and int(us), text) for _, us, text in wait_until(find, "the trace " + name)]

    def texts(self, name="t"):
        return [text for _, text in self.lines(name)]

    def any(self):
        return "pagewise: trace " in self.server.output


@pytest.fixture
def start(serve_conf, site):
    t.write(site / "small", SMALL)
    t.write(site / "big", BIG)
    (site / "d").mkdir()

    def start(clients=("127.0.0.1",), **top):
        top = {"workers": 1, "trace_clients": list(clients), "send_path": "nodiskio", "hot_set": "1M",
               "admin": "127.0.0.1:0", **top}
        return serve_conf(top, [("s", {"root": site}, {
            "/d/": {"autoindex": True}, "/no/": {"deny": ["all"]}, "/slow/": {"alias": site, "rate": "1M"}})])

    return start


def is_whole(lines, status, sent):
    """The first and the last line of a complete response, and times that only go forward."""
    assert lines[0][1].startswith('request "GET ') and LOGGED in lines[0][1], lines
    times = [us for us, _ in lines if us is not None]
    assert times == sorted(times)
    last = lines[-1][1]
    assert last.startswith("end: status %d, complete, %d bytes sent; waits: " % (status, sent)), last


def length(response):
    return len(response.raw) + len(response.body)


def test_hot_file(start):
    server = start()
    with Hot(server).connect("/small") as c:
        before = c.ask("/small")
        response = c.ask("/small", **asked())
        assert response.body == SMALL and normalised(response.raw) == normalised(before.raw)
        assert c.ask("/small").body == SMALL
        c.finish()
    lines = Traced(server).lines()
    is_whole(lines, 200, length(response))
    texts = [text for _, text in lines]
    assert " from 127.0.0.1" in texts[0] and (" over TLSv1." in texts[0]) == tls.ON
    assert texts[1] == 'site "s", no location'
    assert re.match(r'"small": file, 1024 bytes, device \d+:\d+, from the cache of open files\Z', texts[2]), texts
    assert texts[3] == "response 200 from the response cache"
    assert texts[4].startswith("sent ") and len(texts) == 6
    assert "waits: 0, together 0 us, longest 0 us; socket full: 0" in texts[5]


def test_cold_file(start, site):
    server = start()
    if not mounts.evict(site / "big"):
        pytest.skip("a file system in memory")
    response = server.get("/big", **asked())
    assert response.body == BIG
    lines = Traced(server).lines()
    is_whole(lines, 200, length(response))
    text = "\n".join(text for _, text in lines)
    assert "response 200 from the file, ranges: 1, first: %d bytes at 0, send path nodiskio" % len(BIG) in text
    assert re.search(r"waited \d+ us for (the window of \d+ bytes|a disk thread to read or send) at 0$", text, re.M), text
    sent = sum(int(n) for n in re.findall(r"^sent (\d+) bytes", text, re.M))
    assert sent == length(response)
    waits = [int(us) for us in re.findall(r"^waited (\d+) us", text, re.M)]
    assert "waits: %d, together %d us, longest %d us" % (len(waits), sum(waits), max(waits)) in text


@pytest.mark.parametrize("method, target, status, step", [
    ("GET", "/no/x", 403, 'site "s", location "/no/"'),
    ("GET", "/none", 404, '"none": No such file or directory'),
    ("POST", "/small", 405, "response 405 from memory"),
    ("OPTIONS", "/small", 204, "response 204 from memory"),
    ("HEAD", "/big", 200, "response 200 from memory"),
    ("GET", "/d", 301, '"d": directory'),
    ("GET", "/d/", 200, "response 200 from a listing"),
])
def test_other_responses(start, method, target, status, step):
    server = start()
    response = server.get(target, method, **asked())
    assert response.status == status
    texts = Traced(server).texts()
    assert any(text.startswith(step) for text in texts), texts
    assert texts[-1].startswith("end: status %d, complete, %d bytes" % (status, length(response))), texts


def test_range(start):
    server = start()
    assert server.get("/big", fields={"Pagewise-Trace": "t", "Range": "bytes=5-9,100-199"}).status == 206
    assert "response 206 from the file, ranges: 2, first: 5 bytes at 5, send path nodiskio" in Traced(server).texts()


@pytest.mark.http1("the harness' HTTP/2 has no address of its own")
def test_only_clients_of_the_list(start):
    server = start([OTHER])
    with server.connect() as c:
        response = c.ask("/small", **asked())
        assert response.body == SMALL
        c.finish(response)
    assert not Traced(server).any()
    with server.connect(source=OTHER) as c:
        c.finish(c.ask("/small", **asked()))
    assert " from 127.0.0.9" in Traced(server).texts()[0]
    assert server.output.count(': request "') == 1


def test_without_the_key(start):
    server = start(())
    assert server.get("/small", **asked()).body == SMALL
    assert server.get("/small").body == SMALL
    assert not Traced(server).any()


def test_client_that_a_proxy_names(start):
    server = start(["192.0.2.7"], trusted_proxies=["127.0.0.1"], client_address="x-forwarded-for")
    server.get("/small", **asked("proxy"))
    for client, name in (("192.0.2.8", "other"), ("192.0.2.7", "named")):
        server.get("/small", fields={"X-Forwarded-For": client, "Pagewise-Trace": name})
    assert " from 192.0.2.7" in Traced(server).texts("named")[0]
    assert server.output.count(': request "') == 1


@pytest.mark.parametrize("value", ["", "a b", 'a"', "x" * 33, "caf\xe9"])
def test_value_that_is_no_identifier(start, value):
    server = start()
    assert server.get("/small", **asked(value)).body == SMALL
    assert server.get("/small", fields=[("Pagewise-Trace", "a"), ("Pagewise-Trace", "b")]).body == SMALL
    server.get("/small", **asked("x" * 32))
    Traced(server).lines("x" * 32)
    assert server.output.count(': request "') == 1


def test_name_cannot_forge_a_line(start, site):
    (site / "a\npagewise: b").write_bytes(b"x")
    server = start()
    assert server.get("/a%0Apagewise:%20b", **asked()).body == b"x"
    assert any(r'"a\x0Apagewise: b": file' in text for text in Traced(server).texts())
    assert "\npagewise: b" not in server.output


@pytest.mark.http1("windows, not sockets, hold a stream up")
def test_long_trace_is_bounded(start, site):
    """A client that reads little at a time: its trace has the first steps, and counts the others."""
    os.truncate(site / "big", 192 << 20)
    server = start()
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/big", **asked()))
        assert c.response().length == 192 << 20
    lines = Traced(server).lines()
    texts = [text for _, text in lines]
    left_out = [re.fullmatch(r"lines left out: (\d+)", text) for text in texts]
    assert left_out[-2] and int(left_out[-2].group(1)) > 0, texts[-3:]
    assert len("\n".join(texts)) < TEXT
    assert sum("then the socket was full" in text for text in texts) > 10
    assert int(re.search(r"socket full: (\d+)", texts[-1]).group(1)) > len(texts)


@pytest.mark.http1("the end of a connection, not of a stream")
def test_client_that_leaves(start, site):
    os.truncate(site / "big", 64 << 20)
    server = start()
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/big", **asked()))
        c.read_head()
        c.reset()
    assert re.match("end: status 200, aborted(:| before the end of the response)", Traced(server).texts()[-1])


@pytest.mark.http1("a connection for each")
def test_number_of_traces_is_bounded(start, site):
    os.truncate(site / "big", 64 << 20)
    server = start()
    clients = [server.connect(rcvbuf=4096) for _ in range(MOST + 6)]
    for c in clients:
        c.send(request("/big", **asked()))
        c.read_head()
    for c in clients:
        c.reset()
    wait_until(lambda: server.output.count(": end: ") == MOST, "the traces")
    assert server.get("/small", **asked("later")).body == SMALL
    Traced(server).lines("later")
    assert server.output.count(": end: ") == MOST + 1


def test_paused_by_a_rate(start):
    server = start()
    assert len(server.get("/slow/big", fields={"Pagewise-Trace": "t", "Range": "bytes=0-1500000"}).body) == 1500001
    lines = Traced(server).lines()
    sent = [us for us, text in lines if text.startswith("sent ")]
    assert len(sent) > 1 and sent[-1] - sent[0] > 5000, lines


@pytest.mark.http1("it speaks HTTP/2 itself")
def test_streams(start):
    """Of one connection at the same time: each has its own trace."""
    h2_client = pytest.importorskip("h2_client", reason="no Python module h2")
    server = start()
    with h2_client.Client(server, over_tls=tls.ON) as c:
        streams = {c.begin("/" + name, fields=[("pagewise-trace", name)]): data
                   for name, data in (("small", SMALL), ("big", BIG))}
        plain = c.begin("/small")
        for stream, data in streams.items():
            assert c.answer(stream).body == data
        assert c.answer(plain).body == SMALL
    for name, data in (("small", SMALL), ("big", BIG)):
        texts = Traced(server).texts(name)
        assert texts[0].startswith('request "GET /%s HTTP/2.0" from 127.0.0.1' % name)
        sent = int(re.search(r"complete, (\d+) bytes sent", texts[-1]).group(1))
        assert len(data) < sent < len(data) + 1024
        assert "socket full: 0" in texts[-1]
    assert server.output.count(': request "') == 2
