"""Range, multipart/byteranges and If-Range (RFC 9110, section 14)."""

import contextlib
import os
import re
import subprocess
import time

import pytest

import h2_raw as raw
import tree as t
from harness import request
from responses import http_date, multipart, single_part

SIZE = t.LARGE
FILE = "/%d.bin" % SIZE


def ranged(server, value, target=FILE, **fields):
    return server.get(target, fields={"Range": value, **fields})


def edges():
    """Ranges that begin, end, and lie on either side of the boundaries."""
    out = set()
    for b in t.BOUNDARIES:
        for first in (b - 1, b, b + 1):
            for length in (1, 2, 4096, 65536):
                out.add((first, first + length - 1))
        for last in (b - 1, b, b + 1):
            out.add((last - min(last, 70000), last))
    out.add((65535, 65535 + 3 * 524288 + 2))
    out.add((1, SIZE - 2))
    return sorted((a, b) for a, b in out if b < SIZE)


def test_single_ranges_across_boundaries(server, tree):
    data = tree.files[FILE]
    with server.connect() as c:
        for first, last in edges():
            response = c.ask(FILE, fields={"Range": "bytes=%d-%d" % (first, last)})
            assert response.status == 206
            part = single_part(response)
            assert (part.first, part.last, part.size) == (first, last, SIZE)
            assert part.body == data[first : last + 1]
        c.finish()


# tests/unit/test_range.c has every form of a range, and what merges; test_status.c what comes before it.
@pytest.mark.parametrize("value, first, last", [
    ("bytes=0-", 0, SIZE - 1), ("bytes=524287-", 524287, SIZE - 1), ("bytes=-65537", SIZE - 65537, SIZE - 1),
    ("bytes=-%d" % (SIZE + 1), 0, SIZE - 1), ("bytes=100-99999999999999999999999", 100, SIZE - 1),
    ("Bytes=,, ,5-6 ", 5, 6), ("bytes=-0,5-6", 5, 6), ("bytes=100-199,0-99", 0, 199), ("bytes=0-10,20-30,5-25", 0, 30),
])
def test_one_range(server, tree, value, first, last):
    response = ranged(server, value)
    assert response.status == 206
    assert response.get("Accept-Ranges") in (None, "bytes")
    part = single_part(response)
    assert (part.first, part.last, part.size) == (first, last, SIZE)
    assert part.body == tree.files[FILE][first : last + 1]


@pytest.mark.parametrize("value", ["bytes=%d-" % SIZE, "bytes=-0", "bytes=%d-,-0,%d-" % (SIZE, SIZE + 5)])
def test_range_beyond_the_end_is_416_with_the_size(plain, value):
    response = ranged(plain, value)
    assert response.status == 416
    assert response.get("Content-Range") == "bytes */%d" % SIZE
    assert not response.closes


@pytest.mark.parametrize("value", ["bytes", "bytes=5-2", "bytes=0-1,x", "lines=0-1"])
def test_malformed_or_foreign_range_is_ignored(plain, tree, value):
    response = ranged(plain, value)
    assert response.status == 200
    assert response.body == tree.files[FILE]


@pytest.mark.parametrize("value", ["bytes=0-", "bytes=0-0", "bytes=5-9", "bytes=-5", "bytes=-0", "bytes=0-0,-1"])
def test_empty_file_has_no_ranges(server, value):
    """A cache that asks for slices gives its client the whole file, which may be empty."""
    response = ranged(server, value, "/0.bin")
    assert (response.status, response.length, response.body) == (200, 0, b"")
    assert "Content-Range" not in response and not response.closes


@pytest.mark.parametrize("fields, status", [
    ({"Range": "bytes=0-9"}, 206), ({"Range": "bytes=-1"}, 206), ({"Range": "bytes=0-0,5-6"}, 206),
    ({"Range": "bytes=%d-" % SIZE}, 416), ({"Range": "lines=0-9"}, 200),
    ({"Range": "bytes=0-9", "If-Range": '"x"'}, 200), ({"Range": "bytes=0-9", "If-None-Match": "*"}, 304)])
def test_head_with_a_range_is_get_without_the_body(server, fields, status):
    """As from most servers: clients ask by HEAD whether a server sends ranges."""
    def same(response):
        return [(n, re.sub("boundary=.*", "", v)) for n, v in response.fields if n.lower() != "date"]

    with server.connect() as c:
        get, head = c.ask(FILE, fields=fields), c.ask(FILE, "HEAD", fields=fields)
        assert (head.status, head.body) == (status, b"")
        assert same(head) == same(get)
        assert c.ask(FILE, fields={"Range": "bytes=0-0"}).status == 206
        c.finish()


@pytest.mark.parametrize("asked, expected", [
    ([(100, 199), (0, 9), (500, 500)], [(100, 199), (0, 9), (500, 500)]),
    ([(1, 614400), (1048577, 1700000), (3000000, SIZE - 1)], [(1, 614400), (1048577, 1700000), (3000000, SIZE - 1)]),
    # Overlapping and adjacent ones are merged into the place of the first.
    ([(500, 599), (0, 99), (550, 700)], [(500, 700), (0, 99)]),
])
def test_several_ranges(server, tree, asked, expected):
    value = "bytes=" + ", ".join("%d-%d" % r for r in asked)
    response = ranged(server, value)
    assert response.status == 206
    parts = multipart(response)
    assert [(p.first, p.last) for p in parts] == expected
    for p in parts:
        assert p.size == SIZE
        assert p.body == tree.files[FILE][p.first : p.last + 1]
        assert p.fields["content-type"] == "application/octet-stream"


def test_suffix_and_open_end_in_a_set(server, tree):
    response = ranged(server, "bytes=-5, 0-4")
    parts = multipart(response)
    assert [(p.first, p.last) for p in parts] == [(SIZE - 5, SIZE - 1), (0, 4)]
    assert parts[0].body == tree.files[FILE][-5:]
    assert parts[1].body == tree.files[FILE][:5]


def test_boundary_does_not_occur_in_the_parts(server, site, serve):
    """A file that holds the boundary of an earlier answer must not break one."""
    (site / "f").write_bytes(b"x" * 100)
    own = serve("--root", site)
    first = ranged(own, "bytes=0-1,5-6", "/f")
    boundary = first.get("Content-Type").split("boundary=")[1].strip('"')
    text = b"\r\n--" + boundary.encode() + b"--\r\n"
    (site / "g").write_bytes(text * 10)
    parts = multipart(ranged(own, "bytes=0-99,150-199", "/g"))
    assert [p.body for p in parts] == [(text * 10)[0:100], (text * 10)[150:200]]


def test_connection_goes_on_after_a_multipart_answer(server, tree):
    with server.connect() as c:
        for _ in range(3):
            response = c.ask(FILE, fields={"Range": "bytes=0-70000,1000000-1600000"})
            assert len(multipart(response)) == 2
            assert c.ask("/4097.bin").body == tree.files["/4097.bin"]
        c.finish()


@pytest.mark.parametrize("order", [1, -1], ids=["up", "down"])
def test_ranges_that_are_small_and_apart_may_be_many(server, tree, order):
    asked = [(i * 5000, i * 5000 + i % 100) for i in range(800)][::order]
    response = ranged(server, "bytes=" + ",".join("%d-%d" % r for r in asked))
    assert response.status == 206
    parts = multipart(response)
    assert [(p.first, p.last) for p in parts] == asked
    for p in parts:
        assert p.body == tree.files[FILE][p.first : p.last + 1]


def test_more_than_max_ranges_must_not_overlap_nor_be_the_whole_file(serve_conf, tree):
    server = serve_conf({"max_ranges": 4}, [("s", {"root": tree.root}, {})])
    spread = ["%d-%d" % (i * 100, i * 100 + 9) for i in range(5)]
    overlap = spread[:4] + ["309-310"]
    fifth = SIZE // 5
    pieces = ["%d-%d" % (i * fifth, (i + 1) * fifth - 1) for i in range(4)]
    whole = pieces + ["%d-" % (4 * fifth)]
    less = pieces + ["%d-%d" % (4 * fifth, SIZE - 2)]

    def ask(ranges):
        return ranged(server, "bytes=" + ",".join(ranges))

    assert len(multipart(ask(spread))) == 5
    assert len(multipart(ask(overlap[1:]))) == 3
    assert single_part(ask(less)).last == SIZE - 2
    assert single_part(ask(whole[1:])).last == SIZE - 1
    for ranges in (overlap, overlap[::-1], whole, whole[::-1], ["0-1"] * 5):
        response = ask(ranges)
        assert response.status == 200
        assert response.body == tree.files[FILE]


# ----------------------------------------------------------------- If-Range


@pytest.mark.parametrize("value, status", [
    ("<E>", 206), ("W/<E>", 200), ('"other"', 200), (http_date(t.MTIME), 206), (http_date(t.MTIME + 1), 200)])
def test_if_range_needs_the_current_validator(server, tree, value, status):
    tag = server.get(FILE, "HEAD").get("ETag")
    response = ranged(server, "bytes=10-19", **{"If-Range": value.replace("<E>", tag)})
    assert response.status == status
    assert response.body == (tree.files[FILE][10:20] if status == 206 else tree.files[FILE])


def test_if_range_with_the_date_of_a_file_from_the_future_is_weak(serve, site):
    """RFC 9110, 8.8.2.2: such a date says nothing about the next second."""
    (site / "f").write_bytes(b"0123456789")
    when = int(time.time()) + 3600
    os.utime(site / "f", (when, when))
    server = serve("--root", site)
    response = ranged(server, "bytes=0-1", "/f", **{"If-Range": http_date(when)})
    assert response.status == 200


def test_if_range_does_not_rescue_a_range_beyond_the_end(plain):
    tag = plain.get(FILE, "HEAD").get("ETag")
    assert ranged(plain, "bytes=%d-" % SIZE, **{"If-Range": tag}).status == 416
    assert ranged(plain, "bytes=%d-" % SIZE, **{"If-Range": '"x"'}).status == 200


def test_if_range_without_range_changes_nothing(plain):
    assert plain.get(FILE, "HEAD", fields={"If-Range": '"x"'}).status == 200


# -------------------------------------------------------------- beyond 4 GiB


@pytest.mark.parametrize("first, length", [
    ((1 << 31) - 4096, 8192), ((1 << 31) - 1, 2), ((1 << 32) - 4096, 8192), ((1 << 32) - 1, 2), ((1 << 32), 4096),
    ((1 << 31) - 65537, 131075), ((1 << 32) - 700000, 704096),
])
def test_ranges_around_2_and_4_gib(server, tree, first, length):
    response = ranged(server, "bytes=%d-%d" % (first, first + length - 1), "/huge.bin")
    assert response.status == 206
    part = single_part(response)
    assert (part.first, part.size) == (first, t.HUGE)
    assert part.body == tree.read("huge.bin", first, length)
    assert any(part.body)


def test_length_of_a_file_over_4_gib(plain):
    assert plain.get("/huge.bin", "HEAD").length == t.HUGE


def test_multipart_lengths_over_4_gib(server, tree):
    """Parts on either side of the boundary, and a suffix."""
    response = ranged(server, "bytes=-10,%d-%d" % ((1 << 31) - 5, (1 << 31) + 4), "/huge.bin")
    assert [p.body for p in multipart(response)] == [
        tree.read("huge.bin", t.HUGE - 10, 10),
        tree.read("huge.bin", (1 << 31) - 5, 10),
    ]


def test_download_that_starts_before_4_gib_and_is_promised_whole(server, tree):
    """An open range of over 4 GiB: the head is right and the bytes begin right."""
    with server.connect() as c:
        c.send(b"GET /huge.bin HTTP/1.1\r\nHost: x\r\nRange: bytes=1-\r\n\r\n")
        head = c.read_head()
        assert head.status == 206
        assert head.length == t.HUGE - 1
        assert c.read_exactly(200000) == tree.read("huge.bin", 1, 200000)
        c.reset()


@pytest.mark.plain("HTTP/2 in clear text")
def test_ranges_of_a_connection_are_bounded(serve, site):
    """1500 ranges take 24 KB until they are sent: those of 16 requests have that, others get the whole file."""
    server = serve("--root", site)
    (site / "large").write_bytes(b"x" * (1 << 20))
    value = b"bytes=" + b",".join(b"%d-%d" % (n, n) for n in range(10, 3010, 2))
    size = len(value) - 127
    field = b"\0\5range" + bytes((127, 0x80 | size & 0x7f, 0x80 | size >> 7 & 0x7f, size >> 14)) + value
    with raw.Client(server.address, window=0) as c:
        for stream in range(1, 101, 2):
            c.send(raw.frame(raw.HEADERS, raw.END_STREAM | raw.END_HEADERS, stream, raw.fields(b"/large") + field))
        statuses = {}
        while len(statuses) < 50:
            kind, _, stream, payload = c.read()
            if kind == raw.HEADERS:
                statuses[stream] = {0x88: 200, 0x8a: 206}[payload[0]]
        assert [statuses[n] for n in range(1, 101, 2)].count(206) == 409600 // (1500 * 16)
        c.send(raw.update(0, 1 << 30) + raw.update(1, 1 << 30))
        assert statuses[1] == 206 and len(c.body(1)) > 1500 * 60
        c.send(raw.frame(raw.HEADERS, raw.END_STREAM | raw.END_HEADERS, 101, raw.fields(b"/large") + field))
        while True:
            kind, _, stream, payload = c.read()
            if kind == raw.HEADERS and stream == 101:
                break
        assert payload[0] == 0x8a


@pytest.mark.parametrize("ranges", ["0-1,3-", "3-,0-1", "0-1,3-5,8-"])
def test_parts_that_would_be_longer_than_any_file_are_the_whole_file(serve, tmp_path, ranges):
    """With their heads these parts are more than 2^63-1 bytes."""
    with contextlib.ExitStack() as mounted:
        where = tmp_path / "tmpfs"
        where.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "none", where], check=False, capture_output=True).returncode != 0:
            pytest.skip("no tmpfs can be mounted here")
        mounted.callback(subprocess.run, ["umount", "-l", where], check=True)
        with open(where / "f", "wb") as f:
            f.truncate((1 << 63) - 1)
        server = serve("--root", where, "--workers", "1")
        with server.connect() as c:
            c.send(request("/f", fields={"Range": "bytes=" + ranges}))
            response = c.read_head()
            c.reset()
        assert (response.status, response.length) == (200, (1 << 63) - 1)
