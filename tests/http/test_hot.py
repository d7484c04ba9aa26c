"""Answers from the hot set are the ones that the file would have got, whatever is
asked beside them.  "cold" is the same server without a hot set."""

import json
import random
import re
import time

import pytest

import http2
import mounts
import tree as t
from harness import request, wait_until
from hot import Hot, all_of, needed, normalised, pipelined, plain
from responses import parse_http_date

PAGE = "/4097.bin"


@pytest.fixture
def cold(shared):
    return shared.get("nodiskio")[1]


@pytest.fixture
def hot(shared):
    key, server = shared.get("hot", "--admin", "127.0.0.1:0")
    yield Hot(server)
    server.healthy()


# ------------------------------------------------------------------- contents


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 65535, 65536])
def test_cached_response_is_that_of_the_file(hot, cold, size):
    target = "/%d.bin" % size
    with hot.connect(target) as c:
        before = hot.count()
        raw = all_of(c, request(target))
        assert hot.count() == before + 1
    assert normalised(raw) == plain(cold, target, request(target))
    assert raw.endswith(b"\r\n\r\n" + t.content(size, size))


def test_larger_file_is_never_hot(hot):
    with hot.connect(PAGE) as c:
        before = hot.count()
        for _ in range(8):
            assert c.ask("/65537.bin").body == t.content(65537, 65537)
        assert hot.count() == before


def test_index_page_of_a_directory_is_hot(hot, cold):
    with hot.connect("/with-index/") as c:
        raw = all_of(c, request("/with-index/") * 2)
    assert normalised(raw) == plain(cold, PAGE, request("/with-index/") * 2)


def test_date_goes_on_while_an_answer_is_hot(hot):
    data = t.content(4097, 4097)
    with hot.connect(PAGE) as c:
        before, asked, dates = hot.count(), 0, set()
        end = time.time() + 2.2
        while time.time() < end:
            # The clock that the server looks at moves with the kernel's ticks.
            first = int(time.time() - 0.05)
            r = c.ask(PAGE)
            last = int(time.time())
            asked += 1
            assert r.body == data
            date = parse_http_date(r.get("Date"))
            assert first <= date <= last
            dates.add(date)
        assert len(dates) >= 3
        # It is looked up each second.  A mount anywhere on the machine at that moment makes
        # it a lookup by the pool (RESOLVE_CACHED), and the answer one that is made.
        assert asked - len(dates) <= hot.count() - before <= asked


def test_nothing_is_cached_at_size_0(serve, tree):
    hot = Hot(serve("--root", tree.root, "--hot-set", "0", "--admin", "127.0.0.1:0"))
    with hot.server.connect() as c:
        for _ in range(10):
            assert c.ask(PAGE).body == t.content(4097, 4097)
        c.finish()
    assert hot.count() == 0
    assert hot.bytes() == 0


def test_file_whose_pages_are_dropped_before_each_request_becomes_hot(serve, tmp_path):
    """Another program may do that for ever; the memory of the hot set is the server's."""
    needed()
    file, data = tmp_path / "popular.bin", t.content(7, 16000)
    t.write(file, data)
    mounts.drop(file)
    if mounts.resident(file):
        pytest.skip("this file system keeps everything in memory")
    hot = Hot(serve("--root", tmp_path, "--hot-set", "1M", "--workers", "1", "--admin", "127.0.0.1:0"))
    with hot.server.connect() as c:
        def asked():
            wait_until(lambda: mounts.evict(file), "nothing of the file to be in memory")
            assert c.ask("/popular.bin").body == data
            return hot.bytes() > 0

        wait_until(asked, "the response to be cached")
        before = hot.count()
        for _ in range(8):
            mounts.drop(file)
            assert c.ask("/popular.bin").body == data
        assert hot.count() > before
        assert mounts.resident(file) == 0
        c.finish()


@pytest.mark.skipif(http2.ON, reason="HTTP/1: a connection that ends with its answer")
@pytest.mark.parametrize("close", [
    request(PAGE, fields={"Connection": "close"}), request(PAGE, version="1.0"),
    request(PAGE, version="1.0", fields={"Connection": "keep-alive"})],
    ids=["close", "HTTP/1.0", "HTTP/1.0 keep-alive"])
def test_requests_of_other_connections_admit_a_response(serve, tree, cold, close):
    hot = Hot(serve("--root", tree.root, "--hot-set", "1M", "--workers", "1",
                    "--admin", "127.0.0.1:0"))

    def asked():
        with hot.server.connect() as c:
            assert all_of(c, close).endswith(t.content(4097, 4097))
        return hot.bytes() > 0

    wait_until(asked, "the response to be cached")
    with hot.connect(PAGE) as c:
        assert normalised(all_of(c, request(PAGE))) == plain(cold, PAGE, request(PAGE))


@pytest.mark.skipif(http2.ON, reason="HTTP/1: a connection that ends with its answer")
def test_cached_response_ends_the_connection_without_keep_alive(serve_conf, tree):
    hot = Hot(serve_conf({"keepalive_timeout": 0, "admin": "127.0.0.1:0"},
                         [("s", {"root": tree.root}, {})]))

    def asked():
        with hot.server.connect() as c:
            c.send(request(PAGE) * 2)
            r = c.response()
            assert r.closes and r.body == t.content(4097, 4097)
            c.eof()
        return hot.count() >= 5

    wait_until(asked, "cached responses")


@pytest.mark.slow
def test_small_hot_set_stays_within_its_size(serve, site):
    sizes = [0, 100, 3000, 9000, 30000, 65536]
    data = [t.content(i, sizes[i % 6]) for i in range(120)]
    for i in range(120):
        t.write(site / str(i), data[i])
    hot = Hot(serve("--root", site, "--hot-set", "64K", "--workers", "1",
                    "--admin", "127.0.0.1:0"))
    rng = random.Random(5)
    with hot.connect("/2") as c:
        before = hot.count()
        for turn in range(40):
            asked = [min(int(rng.expovariate(0.05)), 119) for _ in range(25)]
            c.send(pipelined("/%d" % i for i in asked))
            for i in asked:
                assert c.response().body == data[i]
            if turn % 10 == 9:
                time.sleep(0.3)  # counted now and then
                assert 0 < hot.bytes() <= 65536
        assert hot.count() > before
        c.finish()


# --------------------------------------------------------- what is asked beside

LAST_MODIFIED = "Thu, 02 Jan 2020 03:04:05 GMT"
LATER = "Fri, 03 Jan 2020 03:04:05 GMT"
EARLIER = "Wed, 01 Jan 2020 03:04:05 GMT"

BESIDE = {
    "HEAD": request(PAGE, "HEAD"),
    "HTTP/1.0": request(PAGE, version="1.0"),
    "HTTP/1.0 keep-alive": request(PAGE, version="1.0", fields={"Connection": "keep-alive"}),
    "close": request(PAGE, fields={"Connection": "close"}),
    "keep-alive": request(PAGE, fields={"Connection": "keep-alive"}),
    "range": request(PAGE, fields={"Range": "bytes=1-4000"}),
    "last byte": request(PAGE, fields={"Range": "bytes=-1"}),
    "ranges": request(PAGE, fields={"Range": "bytes=0-0,4000-,100-199"}),
    "unsatisfiable": request(PAGE, fields={"Range": "bytes=4097-"}),
    "if-range": request(PAGE, fields={"Range": "bytes=0-9", "If-Range": LAST_MODIFIED}),
    "if-range fails": request(PAGE, fields={"Range": "bytes=0-9", "If-Range": EARLIER}),
    "304": request(PAGE, fields={"If-Modified-Since": LAST_MODIFIED}),
    "304 by any tag": request(PAGE, fields={"If-None-Match": "*"}),
    "modified": request(PAGE, fields={"If-Modified-Since": EARLIER}),
    "412": request(PAGE, fields={"If-Unmodified-Since": EARLIER}),
    "412 by tag": request(PAGE, fields={"If-Match": '"other"'}),
    "unmodified": request(PAGE, fields={"If-Unmodified-Since": LATER}),
    "query": request(PAGE + "?a=b"),
    "empty query": request(PAGE + "?"),
    "escape": request("/%34097.bin"),
    "escaped slash": request("%2f4097.bin"),
    "two slashes": request("//4097.bin"),
    "dot": request("/./4097.bin"),
    "absolute": request("http://localhost" + PAGE),
    "absolute, other host": request("http://other.example" + PAGE),
    "other host": request(PAGE, host="other.example"),
    "no host": request(PAGE, host=None),
    "two hosts": request(PAGE, fields=[("Host", "localhost")]),
    "bad host": request(PAGE, host="local host"),
    "OPTIONS": request(PAGE, "OPTIONS"),
    "POST": request(PAGE, "POST", body=b"12345"),
    "body": request(PAGE, body=request("/0.bin")),
    "expect": request(PAGE, fields={"Expect": "100-continue"}),
    "chunked": request(PAGE, fields={"Transfer-Encoding": "chunked"}) + b"0\r\n\r\n",
    "upgrade": request(PAGE, fields={"Connection": "upgrade", "Upgrade": "h2c"}),
    "missing": request("/missing"),
    "hidden": request("/.hidden.txt"),
    "redirect": request("/with-index"),
    "index": request("/with-index/"),
    "forbidden": request("/empty/"),
    "large": request("/524289.bin"),
    "another": request("/4096.bin"),
    "blank line": b"\r\n" + request(PAGE),
    "two spaces": request(PAGE).replace(b"GET ", b"GET  ", 1),
    "no target": request("").replace(b"  ", b" ", 1),
    "empty target": request(""),
    "long target": request("/" + "x" * 255),
    "longer target": request("/" + "x" * 9000),
    "space before colon": request(PAGE).replace(b"Host:", b"Host :"),
    "folded": request(PAGE, fields={"X": "1\r\n 2"}),
    "bare LF": request(PAGE).replace(b"\r\n", b"\n"),
    "half a request": request(PAGE)[:-1],
    "nothing": b"",
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_hot_answers_beside_others(hot, cold, beside):
    """Both ways of asking for the same, in one segment."""
    data = request(PAGE) + beside + request(PAGE) * 2
    with hot.connect(PAGE) as c:
        got = normalised(all_of(c, data))
    assert got == plain(cold, PAGE, data)
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_requests_with_other_fields_change_no_cached_response(hot, cold, beside):
    """Fields that are sent again and again: none is taken for plain ones."""
    data = beside * 3 + request(PAGE)
    with hot.connect(PAGE) as c:
        got = normalised(all_of(c, data))
    assert got == plain(cold, PAGE, data)


def test_sites_with_the_same_targets_are_told_apart(serve_conf, tmp_path):
    sites = []
    for name in ("a.example", "b.example"):
        root = tmp_path / name
        root.mkdir()
        t.write(root / "f", b"of " + name.encode())
        sites.append((name, {"names": [name], "root": root}, {}))
    hot = Hot(serve_conf({"workers": 1, "admin": "127.0.0.1:0"}, sites))
    both = [request("/f", host="a.example"), request("/f", host="b.example")]
    with hot.connect("/f", host="a.example") as a, hot.connect("/f", host="b.example") as b:
        for c in (a, b):
            c.send(b"".join(both * 20))
            assert [c.response().body for _ in range(40)] == [b"of a.example", b"of b.example"] * 20
            c.finish()


# ---------------------------------------------------------- how bytes are cut


def test_hundred_requests_in_one_segment(hot, cold):
    rng = random.Random(7)
    kinds = [request("/%d.bin" % size) for size in (0, 1, 4095, 4096, 4097, 65536, 65537)]
    kinds += [BESIDE[k] for k in ("HEAD", "range", "ranges", "304", "412", "missing", "query",
                                  "index", "redirect", "unsatisfiable", "another", "blank line")]
    data = b"".join(rng.choice(kinds[:7] + kinds) for _ in range(100))
    with hot.connect("/0.bin", "/4096.bin", "/4097.bin", "/65536.bin") as c:
        before = hot.count()
        got = normalised(all_of(c, data))
        assert hot.count() >= before + 10
    assert got == plain(cold, PAGE, data)


def test_two_requests_cut_anywhere(hot):
    data = request(PAGE, fields={"X": "1"}) + request("/1.bin", fields={"X": "1"})
    with hot.connect(PAGE, "/1.bin", fields={"X": "1"}) as c:
        before = hot.count()
        for cut in range(len(data) + 1):
            c.send(data[:cut])
            time.sleep(0.002)
            c.send(data[cut:])
            assert c.response().body == t.content(4097, 4097)
            assert c.response().body == t.content(1, 1)
        assert hot.count() >= before + len(data) / 2
        c.finish()


def test_request_that_comes_byte_by_byte(hot):
    with hot.connect(PAGE) as c:
        for byte in request(PAGE) * 3:
            c.send(bytes([byte]))
        for _ in range(3):
            assert c.response().body == t.content(4097, 4097)
        c.finish()


def variants(data):
    """Each byte another, gone, or there twice."""
    for i, byte in enumerate(data):
        for other in {byte ^ 1, byte ^ 0x20, 0, ord("\r"), ord("\n"), ord(" "), ord(":")} - {byte}:
            yield data[:i] + bytes([other]) + data[i + 1:]
        yield data[:i] + data[i + 1:]
        yield data[:i] + data[i:i + 1] + data[i:]


def test_one_different_byte_is_noticed(hot, cold):
    """Behind the very request that is known, on the same connection."""
    known = request("/1.bin", fields={"Range2": "bytes=0-"})
    hot.connect("/1.bin", fields={"Range2": "bytes=0-"}).finish()
    before, n = hot.count(), 0
    for data in variants(known):
        with hot.server.connect() as c:
            got = normalised(all_of(c, known * 2 + data + known))
        with cold.connect() as c:
            assert got == normalised(all_of(c, known * 2 + data + known)), data
        n += 1
    assert hot.count() - before > n


# ------------------------------------------------------------------------ log


def logged(path, count):
    wait_until(lambda: path.exists() and path.read_text().count("\n") >= count, "the log")
    lines = path.read_text().splitlines()
    assert len(lines) == count
    return lines


@pytest.mark.parametrize("form", ["combined", "json"])
def test_log_lines_of_cached_responses_are_equal(serve, tree, tmp_path, form):
    fields = {"Referer": 'http://a/"b', "User-Agent": "agent \\ 1"}
    mix = [request("/%d.bin" % n, fields=fields) for n in (0, 1, 4097, 65536, 65536, 1)]
    mix.insert(3, request("/missing", fields=fields))
    lines = []
    for size in ("0", "1M"):
        path = tmp_path / size
        server = serve("--root", tree.root, "--access-log", path, "--log-format", form,
                       "--workers", "1", "--hot-set", size, "--admin", "127.0.0.1:0")
        with server.connect() as c:
            if size != "0":
                Hot(server).warm(c, "/0.bin", "/1.bin", "/4097.bin", "/65536.bin", fields=fields)
            c.send(b"".join(mix))
            for _ in mix:
                c.response()
            c.finish()
        server.stop()
        lines.append([without_times(line) for line in path.read_text().splitlines()[-len(mix):]])
    if http2.ON:  # streams of one connection end in any order
        lines = [sorted(some) for some in lines]
    assert lines[0] == lines[1]


def without_times(line):
    if line.startswith("{"):
        entry = json.loads(line)
        times = {"time", "duration_us", "disk_wait_us"}
        return sorted((k, None if k in times else v) for k, v in entry.items())
    return re.sub(r"\[[^]]*\]| \d+ \d+$", "", line)
