"""Listings of directories that are too large for memory: block by block."""

import os
import re
import time

import pytest

import h2_raw as raw
import scratch
from harness import request, wait_until
from test_syscalls import may_trace, traced  # fixtures

pytestmark = pytest.mark.xdist_group("listing_large")

MANY = 200000
BLOCK = 64 << 10
ROW = re.compile(rb'<tr><td><a href="([^"]+)" dir=auto>([^<]+)</a>'
                 rb'<td><time datetime=[^>]+Z>[^<]+</time> <td title="(\d+) bytes">0 B\n')


def name(n):
    return "file-%06d.txt" % n


def make_names(path, count):
    """Links to a few files: a file for each would take a minute."""
    fd = os.open(path, os.O_RDONLY)
    for n in range(count):
        if n % 20000 == 0:
            first = name(n)
            os.mknod(first, dir_fd=fd)
        else:
            os.link(first, name(n), src_dir_fd=fd, dst_dir_fd=fd)
    os.close(fd)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    root = tmp_path_factory.mktemp("large")
    for where, count in (("huge", MANY), ("some", 20000)):
        (root / where).mkdir()
        make_names(root / where, count)
    yield root
    scratch.remove(root)


@pytest.fixture
def server(serve, large):
    return serve("--root", large, "--autoindex", "--workers", "1")


@pytest.fixture
def lean(serve, large, release):
    """Without sanitizers, whose memory is not the server's."""
    return serve("--root", large, "--autoindex", "--workers", "1", binary=release)


def connect(server, **kw):
    return server.connect(may_be_chunked=True, **kw)


def memory(server, field):
    with open("/proc/%d/status" % server.pid) as f:
        return int(re.search(r"%s:\s+(\d+) kB" % field, f.read()).group(1)) << 10


def check_page(page, count):
    """Every name once, with its link, and nothing else in the table."""
    assert page.startswith(b"<!DOCTYPE html>")
    assert page.endswith(b"</table>\n</body></html>\n")
    rows = ROW.findall(page)
    assert len(rows) == count
    assert {text for _, text, _ in rows} == {name(n).encode() for n in range(count)}
    assert all(href == text and size == b"0" for href, text, size in rows)
    assert page.count(b"<tr>") == count + 2  # the headings, the way up
    assert b"not sorted" in page


@pytest.mark.slow
def test_directory_of_200000_names_is_streamed_in_bounded_memory(lean):
    assert lean.get("/huge", "GET").status == 301
    before = memory(lean, "VmHWM")
    with connect(lean) as c:
        response = c.ask("/huge/")
        assert response.status == 200 and response.chunked
        c.finish()
    check_page(response.body, MANY)
    assert len(response.body) > 16 << 20
    # A look at so many names as would fit, a few blocks, a thread's stack.
    assert memory(lean, "VmHWM") - before < 4 << 20


@pytest.mark.slow
def test_connection_is_kept_after_a_streamed_listing(server):
    with connect(server) as c:
        for _ in range(2):
            c.send(request("/some/") + request("/some/" + name(3)))
            check_page(c.response().body, 20000)
            assert c.response().length == 0
        c.finish()


@pytest.mark.slow
@pytest.mark.http1("frames are none of the listing's blocks")
def test_blocks_are_bounded(server):
    with connect(server) as c:
        c.send(request("/some/"))
        c.read_head()
        sizes = [len(chunk) for chunk in c.chunks()]
        assert max(sizes) <= BLOCK and min(sizes[:-1]) > BLOCK // 2
        c.finish()


@pytest.mark.slow
def test_slow_readers_hold_a_block_each(lean):
    """They have all begun, none takes more than the kernel's buffers."""
    with connect(lean) as c:
        assert c.ask("/some/").chunked
    before = memory(lean, "VmRSS")
    clients = [connect(lean, rcvbuf=4096) for _ in range(40)]
    for c in clients:
        c.send(request("/huge/"))
    for c in clients:
        c.read_head()
        c.chunk()
    wait_until(lambda: rests(lean), "the server to have nothing to do")
    assert memory(lean, "VmRSS") - before < 40 * (BLOCK + (96 << 10)) + (4 << 20)
    last = clients.pop()
    body = b"".join(last.chunks())
    assert len(ROW.findall(body)) > MANY - 2000
    last.finish()
    for c in clients:
        c.reset()
    wait_until(lambda: descriptors(lean, "/huge") == 0, "the directories to be closed")


def rests(server):
    """Takes no processor's time: whoever could take something has taken it."""

    def ticks():
        with open("/proc/%d/stat" % server.pid) as f:
            return f.read().rpartition(")")[2].split()[11:13]

    before = ticks()
    time.sleep(0.3)
    return ticks() == before


def descriptors(server, what):
    count = 0
    where = "/proc/%d/fd" % server.pid
    for fd in os.listdir(where):
        try:
            count += what in os.readlink(os.path.join(where, fd))
        except FileNotFoundError:
            pass
    return count


@pytest.mark.http1("chunks are HTTP/1's")
def test_log_has_what_was_sent(serve, large, tmp_path):
    log = tmp_path / "access.log"
    server = serve("--root", large, "--autoindex", "--workers", "1", "--access-log", log)
    with connect(server) as c:
        c.send(request("/some/", fields={"Connection": "close"}))
        sent = c.drain()
    assert sent.endswith(b"\r\n0\r\n\r\n")
    line = wait_until(log.read_text, "the log")
    body = len(sent) - sent.index(b"\r\n\r\n") - 4
    assert '"GET /some/ HTTP/1.1" 200 %d "-" "-" %d ' % (body, len(sent)) in line


def test_http_1_0_is_told_the_end_by_closing(server):
    with connect(server) as c:
        c.send(request("/some/", version="1.0", fields={"Connection": "keep-alive"}))
        head, _, body = c.drain().partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert lines[0] == b"http/1.1 200 ok"
    assert b"connection: close" in lines
    assert not [n for n in lines if n.startswith((b"transfer-encoding", b"content-length"))]
    check_page(body, 20000)


def test_head_has_the_fields_of_get(server):
    with connect(server) as c:
        c.send(request("/some/"))
        get = c.read_head()
        c.reset()
    for target in ("/some/", "/huge/"):
        with connect(server) as c:
            head = c.ask(target, "HEAD")
            c.finish()
        assert head.status == 200
        # Validators are those of the directory; they need a second at most, or are left out.
        assert {n: v for n, v in head.fields if n not in ("Date", "Last-Modified", "ETag")} == {
            n: v for n, v in get.fields if n not in ("Date", "Last-Modified", "ETag")
        }
    with connect(server) as c:
        c.send(request("/some/", "HEAD", version="1.0"))
        assert c.drain().endswith(b"\r\n\r\n")


@pytest.mark.parametrize("fields", [{"If-None-Match": '"x"'}, {"Range": "bytes=0-9"}])
def test_listing_has_no_ranges(server, fields):
    with connect(server) as c:
        response = c.ask("/some/", fields=fields)
        c.finish()
    assert response.status == 200
    check_page(response.body, 20000)


def test_listing_grows_large_and_small_again(serve, site):
    server = serve("--root", site, "--autoindex", "--workers", "1")

    def chunked():
        with connect(server) as c:
            response = c.ask("/")
            c.finish()
        return response.chunked

    assert not chunked()
    make_names(site, 10000)
    wait_until(chunked, "the large page", 3)
    for n in range(10000):
        os.unlink(site / name(n))
    wait_until(lambda: not chunked(), "the small page", 3)


@pytest.mark.slow
@pytest.mark.needs("strace")
def test_directory_is_read_and_closed_by_the_pool_alone(traced, large):
    """Of a listing that is read to its end, and of one whose client goes."""
    run = traced("--root", large, "--autoindex")
    path = str(large / "some")
    run.begin()
    with connect(run.server) as c:
        check_page(c.ask("/some/").body, 20000)
        c.finish()
    with connect(run.server, rcvbuf=4096) as c:
        c.send(request("/some/"))
        c.read_head()
        c.chunk()
        c.reset()
    wait_until(lambda: descriptors(run.server, path) == 0, "the directory to be closed")
    run.end()
    loop, fetch = run.of("pw-worker0"), run.of("pw-fetch")
    assert [c for c in loop if c.name == "getdents64"] == []
    assert len([c for c in fetch if c.name == "getdents64"]) > 10
    # The loop has looked it up, and the pool has closed what it has opened.
    assert len(opened(fetch, "O_DIRECTORY")) >= 3 and opened(loop, "O_DIRECTORY") == []
    assert len(closed(loop, path)) == len(opened(loop, "O_PATH"))
    assert len(closed(fetch, path)) == len(opened(fetch, "O_DIRECTORY") + opened(fetch, "O_PATH"))


def opened(calls, how):
    return [
        c for c in calls
        if c.name == "openat2" and '"some/"' in c.args and how in c.args and c.result > 0
    ]


def closed(calls, path):
    return [c for c in calls if c.name == "close" and "<%s>" % path in c.args]


def headers_of(c, count):
    """The first bytes of the heads that come next, by stream."""
    heads = {}
    while len(heads) < count:
        kind, _, stream, payload = c.read()
        assert kind != raw.RST_STREAM, (stream, payload)
        if kind == raw.HEADERS:
            heads[stream] = payload[0]
    return heads


@pytest.mark.plain("HTTP/2 in clear text")
@pytest.mark.slow
def test_a_connection_has_four_large_listings_at_a_time(server, large):
    """Others of its requests go on; more listings wait until it has taken one."""
    (large / "small").write_bytes(b"small")
    with raw.Client(server.address, window=0) as c:
        for stream in range(1, 15, 2):
            c.send(raw.get(stream, b"/some/"))
        assert sorted(headers_of(c, 4)) == [1, 3, 5, 7]
        c.send(raw.get(15))
        assert list(headers_of(c, 1)) == [15]
        c.send(raw.frame(raw.RST_STREAM, 0, 11, raw.struct.pack(">I", raw.CANCEL)))
        c.send(raw.update(0, 1 << 30) + raw.update(3, 1 << 30))
        page = c.body(3)
        assert page.count(b"<tr>") == 20002
        c.send(raw.settings(window=1 << 30))
        ended = set()
        while len(ended) < 6:
            kind, flags, stream, _ = c.read()
            assert kind != raw.RST_STREAM
            if kind in (raw.HEADERS, raw.DATA) and flags & raw.END_STREAM:
                ended.add(stream)
        assert ended == {1, 5, 7, 9, 13, 15}
