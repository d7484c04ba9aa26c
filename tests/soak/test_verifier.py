"""That the soak's verifier notices what it is there for."""

import contextlib
import hashlib
import socketserver
import threading
import time

import pytest

import history
from client import Client, asked, meant
from history import Fault, History, Journal, Piece, State, content, stream
from responses import http_date

NAME, SIZE = "replaced/00.bin", 5000
GROWING = "stretched/0.bin"

pytestmark = pytest.mark.once


class Journaled:
    """A file's history, as the driver writes and the clients read it."""

    def __init__(self, path):
        self.journal = Journal(path)
        self.history = History(path)

    def becomes(self, name, version, size, begin, done=None):
        self.journal.begin(name, version, size, begin)
        self.journal.done(name, begin if done is None else done)


@pytest.fixture
def journal(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "KEPT", 60)  # seconds: a busy machine may take more than one
    return Journaled(tmp_path / "journal")


@contextlib.contextmanager
def answering(body, fields=(), length=None, status="200 OK"):
    """A server that gives everybody this answer, and closes."""
    head = ["HTTP/1.1 " + status, "Date: " + http_date(time.time()), "Connection: close",
            "Content-Length: %d" % (len(body) if length is None else length), *fields]
    if not any(f.startswith("Content-Type") for f in fields):
        head.append("Content-Type: application/octet-stream")
    data = "\r\n".join(head + ["", ""]).encode() + body

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
            self.wfile.write(data)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def asking(journal, body, fields=(), **kw):
    with answering(body, ['ETag: "x"', *fields], **kw) as address:
        yield Client(address, journal.history, 1)


def asks(journal, name, body, **kw):
    with asking(journal, body, **kw) as client:
        client.check_whole(name, *client.get("/" + name))
    return client


def two_versions(journal):
    """The second one replaces the first now."""
    now = time.monotonic()
    journal.becomes(NAME, 0, SIZE, now - 10)
    journal.becomes(NAME, 1, SIZE, now)
    return [content(NAME, n, SIZE) for n in (0, 1)]


def test_each_visible_version_is_accepted(journal):
    for body in two_versions(journal):
        client = asks(journal, NAME, body)
        assert client.bytes == SIZE


@pytest.mark.parametrize("at", [0, 1, SIZE // 2, SIZE - 1])
def test_a_wrong_byte_is_noticed(journal, at):
    body = bytearray(two_versions(journal)[1])
    body[at] ^= 1
    with pytest.raises(Fault, match="not version 1 from byte %d on" % at), \
            asking(journal, bytes(body)) as client:
        client.check_whole(NAME, *client.get("/" + NAME))
    assert client.bytes == 0


@pytest.mark.parametrize("lacks", [1, SIZE])
def test_a_short_body_is_noticed(journal, lacks):
    body = two_versions(journal)[1][:SIZE - lacks]
    with pytest.raises(Fault, match="%d of %d bytes" % (SIZE - lacks, SIZE)):
        asks(journal, NAME, body, length=SIZE)


@pytest.mark.parametrize("at", [1, 4096, SIZE - 1])
def test_a_mix_of_two_versions_is_noticed(journal, at):
    old, new = two_versions(journal)
    for mix in (old[:at] + new[at:], new[:at] + old[at:]):
        with pytest.raises(Fault, match="none of"):
            asks(journal, NAME, mix)


def test_a_mix_in_two_ranges_is_noticed(journal):
    old, new = two_versions(journal)
    sent, client = time.monotonic(), Client(None, journal.history, 1)
    client.check(NAME, sent, SIZE, [Piece(5, old[5:9]), Piece(90, old[90:99])], 13)
    with pytest.raises(Fault):
        client.check(NAME, sent, SIZE, [Piece(5, old[5:9]), Piece(90, new[90:99])], 13)


def test_a_version_that_was_replaced_long_ago_is_noticed(journal):
    old, new = two_versions(journal)
    journal.becomes(NAME, 2, SIZE, time.monotonic())
    states = journal.history.visible(NAME, time.monotonic() + history.KEPT + 0.1, time.monotonic())
    assert [s.version for s in states] == [2]
    asks(journal, NAME, new)  # within the second
    with pytest.raises(Fault):
        history.check_version(states, NAME, SIZE, [Piece(0, new)])


def test_a_future_version_is_noticed(journal):
    journal.becomes(NAME, 0, SIZE, time.monotonic())
    with pytest.raises(Fault):
        asks(journal, NAME, content(NAME, 1, SIZE))


def test_an_entity_tag_of_two_versions_is_noticed(journal):
    client = Client(None, journal.history, 1)
    client.note_tag(NAME, '"a"', State(0, SIZE, 0))
    client.note_tag(NAME, '"a"', State(0, SIZE, 0))
    client.note_tag(NAME, 'W/"b"', State(1, SIZE, 0))
    client.note_tag(NAME, '"b"', State(1, SIZE, 0))
    for tag, version in (('"b"', 2), ('"c"', 1), (None, 1)):
        with pytest.raises(Fault):
            client.note_tag(NAME, tag, State(version, SIZE, 0))


def test_an_error_is_a_failure(journal):
    two_versions(journal)
    for status in ("404 Not Found", "500 Internal Server Error", "503 Service Unavailable"):
        with pytest.raises(Fault):
            asks(journal, NAME, b"no", status=status)


def grown(journal, *sizes):
    now = time.monotonic()
    for n, size in enumerate(sizes):
        journal.becomes(GROWING, 0, size, now - 0.1 + n / 1000)
    return stream(GROWING)


def test_of_a_file_that_grows_all_sizes_between_are_right_and_no_others(journal):
    data = grown(journal, 1000, 2000)
    for size in (1000, 1500, 2000):
        asks(journal, GROWING, data[:size])
    for size in (999, 2001):
        with pytest.raises(Fault, match="not between 1000 and 2000"):
            asks(journal, GROWING, data[:size])


def test_of_a_file_that_grows_no_byte_may_be_wrong(journal):
    data = grown(journal, 1000, 2000)
    for wrong in (data[:1499] + b"\0", b"\0" + data[1:1500]):
        with pytest.raises(Fault, match="is wrong"):
            asks(journal, GROWING, wrong)


def test_only_a_response_whose_file_changed_may_end_early(journal):
    data = grown(journal, 1500)
    with pytest.raises(Fault, match="1400 of 1500"):
        asks(journal, GROWING, data[:1400], length=1500)
    data = grown(journal, 2000)
    asks(journal, GROWING, data[:1400], length=1500)


def test_of_a_file_that_is_cut_only_what_was_cut_may_be_zeros_or_missing(journal):
    data = grown(journal, 2000, 1000)
    asks(journal, GROWING, data[:1000] + bytes(1000))
    asks(journal, GROWING, data[:900], length=2000)
    for wrong in (data[:999] + bytes(1001), data[:1000] + b"x" * 1000):
        with pytest.raises(Fault, match="is wrong"):
            asks(journal, GROWING, wrong)


def test_whole_bodies_are_compared_by_their_digest():
    body = content(NAME, 3, SIZE)
    assert history.digest(NAME, 3, SIZE) == hashlib.sha256(body).digest()
    assert history.digest(NAME, 4, SIZE) != history.digest(NAME, 3, SIZE)


@pytest.mark.parametrize("spec, first, last", [
    ("0-0", 0, 0), ("5-", 5, 99), ("5-1000", 5, 99), ("-7", 93, 99), ("-1000", 0, 99)])
def test_what_a_range_means(spec, first, last):
    assert asked(spec, 100) == (first, last)


@pytest.mark.parametrize("specs, size, parts", [
    (["0-0"], 100, [(0, 0)]), (["-7"], 100, [(93, 99)]), (["100-"], 100, []),
    (["5-9", "0-3"], 100, [(0, 3), (5, 9)]), (["5-9", "0-4"], 100, [(0, 9)]),
    (["0-50", "3-4", "200-"], 100, [(0, 50)]), (["0-"], 0, None), (["0-", "-1"], 0, None)])
def test_what_several_ranges_mean(specs, size, parts):
    assert meant(specs, size) == parts


def ranged(journal, specs, body, fields, status="206 Partial Content"):
    with asking(journal, body, fields, status=status) as client:
        client.ranged(NAME, specs, *client.get("/" + NAME))
    return client


def test_a_range_is_the_one_that_was_asked_for(journal):
    right = two_versions(journal)[1]
    said = ["Content-Range: bytes 5-9/%d" % SIZE]
    assert ranged(journal, ["5-9"], right[5:10], said).bytes == 5
    for specs in (["5-10"], ["4-9"], ["5-9", "20-30"]):
        with pytest.raises(Fault, match="was asked for"):
            ranged(journal, specs, right[5:10], said)


def test_an_existing_range_must_be_sent(journal):
    right = two_versions(journal)[1]
    with pytest.raises(Fault, match="was asked for"):
        ranged(journal, ["5-9"], right, [], "200 OK")
    with pytest.raises(Fault, match="was asked for"):
        ranged(journal, ["5-9"], b"no", ["Content-Range: bytes */%d" % SIZE],
               "416 Range Not Satisfiable")


def in_parts(right, *ranges):
    body = b"".join(
        b"--x\r\nContent-Range: bytes %d-%d/%d\r\n\r\n%s\r\n" % (a, b, SIZE, right[a:b + 1])
        for a, b in ranges)
    return body + b"--x--\r\n"


def test_parts_are_those_that_were_asked_for(journal):
    right, specs = two_versions(journal)[1], ["50-59", "5-9", "8-10"]
    said = ["Content-Type: multipart/byteranges; boundary=x"]

    def answered(*ranges):
        return ranged(journal, specs, in_parts(right, *ranges), said)

    assert answered((50, 59), (5, 10)).bytes == 16
    for wrong in ([(50, 59)], [(50, 59), (5, 9)], [(50, 59), (5, 10), (70, 71)]):
        with pytest.raises(Fault, match="was asked for"):
            answered(*wrong)
