"""What an answer takes while it waits for its client."""

import re
import socket

import pytest

import h2_raw as raw
import harness
import tls

pytestmark = pytest.mark.once
CLIENTS, STREAMS = 40, 100
CONNECTIONS = 500
MOST = 4096  # bytes of a stream, with its share of the connection
MOST_1 = 5120  # of a connection of HTTP/1
MOST_IDLE = 18 << 10  # of an idle connection of HTTP/2


def memory(server):
    """Bytes that were allocated and are in use: proc(5), smaps_rollup."""
    with open("/proc/%d/smaps_rollup" % server.pid, encoding="ascii") as f:
        return int(re.search(r"^Anonymous: +(\d+) kB", f.read(), re.M).group(1)) << 10


def string(text):
    """RFC 7541, 5.2, not Huffman coded; 127 to 16510 bytes."""
    n = len(text) - 127
    return bytes((127, 0x80 | n & 0x7f, n >> 7)) + text


def large(ids, target, name):
    """Requests of 12 KB: the field stands in the table of HPACK, then a byte names it."""
    entry, named = b"\x40" + bytes((len(name),)) + name + string(b"x" * 4000), b"\xbe"
    block = raw.fields(target)
    return b"".join(raw.frame(raw.HEADERS, raw.END_STREAM | raw.END_HEADERS, stream, block +
                              (entry if stream == ids[0] else named) + 2 * named)
                    for stream in ids)


def waiting(server, target, name=None):
    """Connections whose streams have their heads, and no window."""
    clients = []
    for _ in range(CLIENTS):
        c = raw.Client(server.address, window=0)
        ids = range(1, 2 * STREAMS, 2)
        c.send(large(ids, target, name) if name else
               b"".join(raw.get(stream, target) for stream in ids))
        heads = set()
        while len(heads) < STREAMS:
            kind, _, stream, _ = c.read()
            assert kind != raw.RST_STREAM
            if kind == raw.HEADERS:
                heads.add(stream)
        clients.append(c)
    return clients


@pytest.mark.parametrize("name", [None, b"x-pad", b"accept", b"user-agent"],
                         ids=["small head", "head", "list", "logged head"])
@pytest.mark.parametrize("size", [1000, 1 << 20, None], ids=["small", "large", "absent"])
def test_a_stream_without_a_window_takes_4_kib_at_most(serve, site, size, name, release):
    """Whatever its request took; what the log needs of that is cut."""
    if size:
        (site / "file").write_bytes(b"x" * size)
    server = serve("--root", site, "--workers", "1", "--access-log", site / "log",
                   binary=release)
    # What is kept for later is there after the first of them.
    clients = waiting(server, b"/file", name)
    before = memory(server)
    clients += waiting(server, b"/file", name)
    taken = (memory(server) - before) / (CLIENTS * STREAMS)
    for c in clients:
        with c:
            c.send(raw.settings(window=1 << 20) + raw.update(0, 1 << 30))
    assert 500 < taken <= MOST


def slow(server, number, fields):
    """Connections that took the begin of an answer alone."""
    clients = []
    for _ in range(number):
        c = harness.Connection(server.address, rcvbuf=4096)
        c.send(harness.request("/file", fields=fields))
        assert c.read_head().status == 200
        clients.append(c)
    return clients


@pytest.mark.parametrize("fields", [{"User-Agent": 300 * "x"}, {"Cookie": 15000 * "x"},
                                    {"User-Agent": 14000 * "x", "Accept-Encoding": "x"}],
                         ids=["small head", "head", "logged head"])
def test_a_slow_client_takes_5_kib_at_most(serve, site, fields, release):
    (site / "file").write_bytes(b"x" * (8 << 20))
    server = serve("--root", site, "--workers", "1", "--access-log", site / "log",
                   binary=release)
    clients = slow(server, CONNECTIONS, fields)
    before = memory(server)
    clients += slow(server, CONNECTIONS, fields)
    taken = (memory(server) - before) / CONNECTIONS
    for c in clients:
        c.sock.close()
    # All end at once: the log may lose some of their lines.
    server.stop(messages=r"(pagewise: access log: \d+ records lost[^\n]*\n)*")
    assert 500 < taken <= MOST_1


def test_a_head_that_is_refused_is_freed_while_its_error_waits(serve_conf, site, tmp_path, release):
    """16 KiB of a head that has no end, and an error page whose rate is low."""
    (tmp_path / "page.html").write_bytes(b"x" * (256 << 10))
    server = serve_conf({"workers": 1, "access_log": tmp_path / "log", "error_page": ["431 page.html"]},
                        [("s", {"root": site, "rate": "1K"}, {})], binary=release)
    head = harness.request("/", fields={"X": 20000 * "x"})[:16 << 10]

    def refused():
        clients = [harness.Connection(server.address, rcvbuf=4096) for _ in range(CONNECTIONS)]
        for c in clients:
            c.send(head)
            assert c.read_head().status == 431
        return clients

    clients = refused()
    before = memory(server)
    clients += refused()
    taken = (memory(server) - before) / CONNECTIONS
    for c in clients:
        c.sock.close()
    server.stop(messages=r"(pagewise: access log: \d+ records lost[^\n]*\n)*")
    assert 500 < taken <= MOST_1


def test_an_idle_session_of_http2_keeps_no_frames(serve_conf, site, release):
    """Heads of 8 KB fill half of the buffer in which libnghttp2 assembles frames."""
    server = serve_conf({"workers": 1}, [("s", {"root": site, "redirect": ["/old/* /new/*"]}, {})],
                        binary=release)
    block = b"".join(raw.literal(n, v) for n, v in (
        (b":method", b"HEAD"), (b":scheme", b"http"), (b":authority", b"localhost")))
    block += b"\0\x05:path" + string(b"/old/" + 8000 * b"Z")
    request = raw.frame(raw.HEADERS, raw.END_STREAM | raw.END_HEADERS, 1, block)

    def idle():
        clients = [raw.Client(server.address) for _ in range(CONNECTIONS)]
        for c in clients:
            c.send(request)
            while (frame := c.read())[0] != raw.HEADERS:
                pass
            assert len(frame[3]) > 8000
        return clients

    clients = idle()
    before = memory(server)
    clients += idle()
    taken = (memory(server) - before) / CONNECTIONS
    for c in clients:
        c.sock.close()
    assert 500 < taken <= MOST_IDLE


def resident(server):
    """All that the process has in memory, its program included."""
    with open("/proc/%d/smaps_rollup" % server.pid, encoding="ascii") as f:
        return int(re.search(r"^Rss: +(\d+) kB", f.read(), re.M).group(1)) << 10


def unfinished(server):
    """14 KB of a head, and not its end."""
    c = server.connect()
    c.send(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: %s\r\n" % (i, 700 * b"y") for i in range(20)))
    return c.sock


def streams(server):
    """A hundred, without a window."""
    c = raw.Client(server.address, window=0)
    c.send(large(range(1, 2 * STREAMS, 2), b"/file", b"x-pad"))
    return c.sock


def secure(server):
    """The answer waits in the session."""
    sock = tls.client_context().wrap_socket(socket.create_connection(server.address))
    sock.sendall(harness.request("/file"))
    return sock


@pytest.mark.slow
@pytest.mark.parametrize("client, number, least", [(unfinished, 1500, 20 << 20), (streams, 100, 20 << 20),
                                                   (secure, 700, 5 << 20)],
                         ids=["heads", "streams", "tls"])
def test_memory_goes_back_when_the_clients_have_left(serve_conf, site, tmp_path, client, number, least, release):
    (site / "file").write_bytes(b"x" * (8 << 20))
    top = {"workers": 1}
    if client is secure:
        tls.make_pair(tmp_path / "pair")
        top.update(listen=["127.0.0.1:0 tls"], certificate=[tmp_path / "pair"])
    server = serve_conf(top, [("s", {"root": site}, {})], binary=release)
    client(server).close()
    idle = resident(server)
    clients = [client(server) for _ in range(number)]
    harness.wait_until(lambda: resident(server) > idle + least, "their memory")
    for c in clients:
        c.close()
    harness.wait_until(lambda: resident(server) < idle * 3 // 2, "it to go back")
    server.stop(messages=True)
