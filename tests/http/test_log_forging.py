"""Whatever a client sends, the log has one line for each request, and each field of it is what was sent.

The corpus of raw requests, and fields at random from what has broken other logs.
"""

import os
import random
import re

import pytest

from fragments import Recorded, ask
from logs import JsonLog, Log, sent_bytes
from request_corpus import CASES

CUT = 2048  # bytes of a field that are logged
SEED = int(os.environ.get("PAGEWISE_SEED") or random.randrange(1 << 32))


class Combined(Log):
    name = "combined"

    def entries(self, count):
        """(request line, status, referer, agent) of each line; None for what is absent."""
        return [(self.sent(m["line"]), int(m["status"]), self.sent(m["referer"]), self.sent(m["agent"]))
                for m in self.lines(count)]

    @staticmethod
    def sent(field):
        return None if field == "-" else sent_bytes(field)

    @staticmethod
    def line(raw):
        """What must be logged of a first line."""
        return raw[:CUT] or None


class Json(JsonLog):
    name = "json"

    def entries(self, count):
        return [((self.sent(x["method"]), self.sent(x["target"]), self.sent(x["protocol"])), x["status"],
                 self.sent(x["referer"]), self.sent(x["user_agent"])) for x in self.objects(count)]

    @staticmethod
    def sent(value):
        return None if value is None else sent_bytes(value)

    @staticmethod
    def line(raw):
        parts = raw.split(b" ")
        if len(parts) != 3:
            parts = [None, raw or None, None]
        return tuple(part and part[:CUT] for part in parts)


@pytest.fixture(params=[Combined, Json])
def log(request, tmp_path):
    return request.param(tmp_path / "access.log")


@pytest.fixture
def logged(serve, log, site):
    (site / "a").write_bytes(b"a" * 26)
    (site / "b").write_bytes(b"b")
    (site / "d").mkdir()
    (site / "index.html").write_bytes(b"index")
    return serve("--root", site, "--access-log", log.path, "--log-format", log.name, "--workers", "1")


def first_line(raw):
    return re.split(rb"[\r\n]", raw.lstrip(b"\r\n"), maxsplit=1)[0]


def statuses(data, head_only):
    c = Recorded(data)
    while c.buf:
        head = c.buf.startswith(b"HTTP/1.1") and head_only
        response = c.response("HEAD" if head else "GET")
        head_only = False
        yield response.status


def test_every_request_of_the_corpus_is_one_line(logged, log):
    expected = []
    for case in CASES:
        line = first_line(case.stream)
        for status in statuses(ask(logged, case.stream), case.head):
            expected.append((line, status, case.name))
            line = None  # of the others only the number and the status
    for entry, (line, status, name) in zip(log.entries(len(expected)), expected):
        assert entry[1] == status, name
        if line is not None and len(line) <= CUT:
            assert entry[0] == log.line(line), name


# ------------------------------------------------------------------ at random

PIECES = [
    b'"', b"\\", b"'", b'\\"', b"\\\\", b"\\n", b"\\r\\n", b"\\x0a", b"\\x22", b"\\u000a", b"\\u0022", b"%0d%0a", b"%22",
    b'" 200 0 "-" "-" 1 1 1', b'"}', b'"},{"status":200,"x":"', b'","status":200,"target":"/', b"null", b"-", b"127.0.0.1",
    b"[21/Nov/2026:02:13:54", b"<script>", b"${jndi:ldap://h}", b"$(id)", b"`id`", b"{{7*7}}", b"=1+1", b"%s%n%x", b"[2J",
]
# Only in the values of fields: they may have any byte but controls.
VALUE_PIECES = PIECES + [
    b" ", b"\t", b"\x80", b"\xff", b"\x9b2J", b"\xc2\x85", b"\xc2\x9b", b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xe2\x80\xae",
    b"\xef\xbb\xbf", b"\xc3\xa9", b"\xf0\x9f\x98\x80", b"\xf4\x8f\xbf\xbf", b"\xc0\x8a", b"\xe0\x80\x8a", b"\xed\xa0\x80",
    b"\xed\xbf\xbf", b"\xf5\x80\x80\x80", b"\xc3", b"\xe2\x80", b"\xf0\x9f\x98", b"\xef\xbf\xbe", b"\xa0",
]


def text(rng, pieces, room):
    """Pieces in any order; a third of them end where a field is cut, give or take a byte."""
    size = rng.choice([rng.randrange(1, 40), rng.randrange(1, 400), room])
    data = b"x" * (rng.randrange(CUT - 12, CUT) if size > CUT else 0)
    while len(data) < size:
        data += rng.choice(pieces)
    return data


def value(rng):
    """A field's value as it comes out of its white space; not "-", which is how none is logged."""
    data = text(rng, VALUE_PIECES, CUT + 60).strip(b" \t")
    return data if data not in (b"", b"-") else b"x"


def target(rng):
    return b"/" + text(rng, [piece.replace(b" ", b"") for piece in PIECES], CUT + 60)


def test_random_fields_keep_their_bytes(logged, log):
    rng = random.Random(SEED)
    expected = []
    for _ in range(300):
        method = rng.choice([b"GET", b"HEAD", b"POST", b"!#$%&'*+-.^_`|~", b"'%s'"])
        line = method + b" " + target(rng) + b" HTTP/1.1"
        referer, agent = value(rng), value(rng)
        raw = (line + b"\r\nHost: h\r\nReferer: " + referer + b"\r\nConnection: close\r\nUser-Agent: " + agent +
               b"\r\n\r\n")
        (status,) = statuses(ask(logged, raw), method == b"HEAD")
        # A head is taken apart only as far as its method is known.
        known = status != 501
        expected.append((log.line(line), status, referer[:CUT] if known else None, agent[:CUT] if known else None))
    for i, (entry, wanted) in enumerate(zip(log.entries(len(expected)), expected)):
        assert entry == wanted, (SEED, i)


def test_random_refused_lines_keep_their_bytes(logged, log):
    """Bytes that no request may have, and so no line of the log."""
    rng = random.Random(SEED)
    pieces = VALUE_PIECES + [b"\x1b[2J", b"\x1b]0;x\x07", b"\x00", b"\x01", b"\x08", b"\x0b", b"\x0c", b"\x7f", b"\x85"]
    expected = []
    for _ in range(300):
        line = rng.choice([b"", b"GET /", b"GET / HTTP/1.1 "]) + rng.choice([b"\x00", b"\x1b", b"\x7f", b'"']) + \
            text(rng, pieces, CUT + 60)
        tail = rng.choice([b"\r\n\r\n", b"\n" + line, b"\r\nForged: " + line + b"\r\n\r\n"])
        found = list(statuses(ask(logged, line + tail), False))
        assert len(found) == 1 and found[0] in (400, 414), (SEED, line)
        expected.append((log.line(line), found[0], None, None))
    for i, (entry, wanted) in enumerate(zip(log.entries(len(expected)), expected)):
        assert entry == wanted, (SEED, i)


HOSTS = [b"h", b"h'(x);=,+$&!*~", b"h%22%0a%5c", b"%7b%22status%22", b"[::1]:80", b"h" * 3000, b"a_b.c-d:0080"]


def test_host_keeps_its_bytes(serve, site, tmp_path):
    log = Json(tmp_path / "host.log")
    (site / "a").write_bytes(b"a")
    server = serve("--root", site, "--access-log", log.path, "--log-format", "json", "--workers", "1")
    for host in HOSTS:
        raw = b"GET /a HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"
        assert list(statuses(ask(server, raw), False)) == [200], host
    for entry, host in zip(log.objects(len(HOSTS)), HOSTS):
        assert sent_bytes(entry["host"]) == host[:CUT]
