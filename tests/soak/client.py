"""A client of the soak: does one thing after the other, at random, and believes nothing.

What fails is raised: a Fault, a ProtocolError, or what the socket says.  Only these are
no failures, because HTTP allows them: a request on a connection that had been idle for
longer than the server promises to wait is sent again (RFC 9112, 9.3.1), and so are those
behind an answer with "Connection: close"; both are counted.
"""

import collections
import random
import re
import time

import h2_raw
import http2
import tls
from harness import Connection, request
from proxy_headers import v1, v2, v2_crc
from history import Fault, Piece, check_stretch, check_version, was_cut
from changes import REPLACED, STEADY, STRETCHED
from responses import multipart

try:
    import h2_client
except ImportError:  # only --http2 needs it
    h2_client = None

IDLE = 0.9  # seconds after which a connection may be closed without a word

BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.5",
    "Accept-Encoding": "gzip, deflate, br",
    "Upgrade-Insecure-Requests": "1",
    "Priority": "u=0, i",
}
HEADS = [{}, {"User-Agent": "Wget/1.21.3", "Accept": "*/*", "Accept-Encoding": "identity"}, BROWSER]

FORWARDED = [{}, {}, {"X-Forwarded-For": "198.51.100.1"},
             {"X-Forwarded-For": "6.6.6.6, 2001:db8::1, unknown, 127.0.0.1"}]

PRIORITIES = [[], [], [("priority", "u=0")], [("priority", "u=7, i")]]

MALFORMED = [
    b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\nHost: x\n\n",
    b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
]


def asked(spec, size):
    """The first and the last byte that a range means.  RFC 9110, 14.1.2."""
    first, last = spec.split("-")
    if not first:
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1) if last else size - 1


def meant(specs, size):
    """What must come for all of these, in the order of the file: the first and the last
    byte of each part, where ranges that touch are one; none: 416; None: 200, because an empty
    file has no ranges."""
    if size == 0:
        return None
    parts = []
    for first, last in sorted(asked(spec, size) for spec in specs):
        if first >= size:
            continue
        if parts and first <= parts[-1][1] + 1:
            first, last = parts[-1][0], max(parts.pop()[1], last)
        parts.append((first, last))
    return parts


def parts_of(response):
    """Of a 206: the file's size, and the first byte, the last one and what came of each part."""
    if "Content-Range" in response:
        said = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", response.get("Content-Range"))
        if not said:
            raise Fault("%r" % response)
        first, last, size = map(int, said.groups())
        return size, [(first, last, response.body)]
    parts = multipart(response)
    if len({p.size for p in parts}) != 1:
        raise Fault("parts of several sizes, or none: %r" % response)
    return parts[0].size, [(p.first, p.last, p.body) for p in parts]


class Counted(Connection):
    """Counts the answers that it has had."""

    refused = False  # the server has said that it did not look at what was asked last

    def __init__(self, address, counts, **kw):
        super().__init__(address, may_be_chunked=True, **kw)
        self.counts = counts

    def read_head(self, method="GET"):
        response = super().read_head(method)
        self.counts["requests answered"] += 1
        return response


class CountedHttp2(Counted):
    """Of HTTP/2: each request is a stream."""

    @staticmethod
    def wrap(sock, address):
        return http2.Socket(tls.wrap(sock, address, http2.alpn_context("h2")))

    @property
    def refused(self):
        return self.sock.refused > 0


class Streamed:
    """The answer of a stream."""

    def __init__(self, answer):
        self.status, self.body = answer.status, bytes(answer.body)
        self.length = int(answer.fields.get("content-length", 0))
        self.error = answer.error
        self.get = lambda name: answer.fields.get(name.lower())

    def __repr__(self):
        return "<%d, %d of %d bytes, error %s>" % (self.status, len(self.body), self.length, self.error)


# Where the server is asked: after a PROXY header, or over HTTP/2.
Way = collections.namedtuple("Way", "address proxied http2", defaults=(False, False))


def more(conn):
    """A little; False at the end, which is a reset where a stream is cut."""
    try:
        return conn.fill(2048)
    except ConnectionResetError:
        return False


def opaque(tag):
    """What weak comparison compares."""
    return (tag or "").removeprefix("W/")


class Client:
    def __init__(self, address, history, seed, patience=60.0, ways=()):
        """ways: others than by HTTP/1 to the address."""
        self.ways = [Way(address), *ways]
        self.history = history
        self.patience = patience
        self.rng = random.Random(seed)
        self.conn = None
        self.used = 0.0  # when the connection had its last answer
        self.tags = {}  # name -> (entity tag, version)
        self.counts = collections.Counter()
        self.bytes = 0  # that were compared with what they should be, and were it
        self.ended = False  # as a client should

    # ------------------------------------------------------------ connections

    def connect(self, plain=False, **kw):
        """plain: it is about the text of HTTP/1."""
        way = self.rng.choice([w for w in self.ways if not (plain and w.http2)])
        kind = CountedHttp2 if way.http2 else Counted
        conn = kind(way.address, self.counts, patience=self.patience, **kw)
        if way.proxied:
            conn.send(self.rng.choice([v1, v2, v2_crc])("192.0.2.%d" % self.rng.randint(1, 9)))
        return conn

    def leave(self):
        if self.conn:
            self.conn.sock.close()
            self.conn = None

    def stale(self):
        return time.monotonic() - self.used > IDLE

    def head(self, data, method="GET"):
        """Sends on the connection that is kept, or on a new one: when, and the head."""
        while True:
            idle = self.conn is not None and self.stale()
            if not self.conn:
                self.conn = self.connect()
            sent = time.monotonic()
            try:
                self.conn.send(data)
                if not self.conn.buf and not self.conn.fill():
                    raise ConnectionResetError("closed before the first byte")
                return sent, self.conn.read_head(method)
            except (ConnectionResetError, BrokenPipeError):
                if not (idle or self.conn.refused) or self.conn.buf:
                    raise
                self.counts["sent again: the connection had been idle" if idle else
                            "sent again: by its GOAWAY the server had not looked at it"] += 1
                self.leave()

    def body(self, conn, response):
        """As much as comes of it."""
        if response.bodyless:
            return b""
        if response.chunked:
            return b"".join(conn.chunks())
        try:
            while len(conn.buf) < response.length and conn.fill():
                pass
        except ConnectionResetError:
            pass
        return conn.take(min(response.length, len(conn.buf)))

    def end(self, response):
        self.used = time.monotonic()
        if response.closes:
            self.conn.finish(response)
            self.conn = None

    def get(self, target, fields=(), method="GET"):
        """An answer with as much of its body as came; when it was asked for."""
        head = {**self.rng.choice(HEADS), **self.rng.choice(FORWARDED), **dict(fields)}
        sent, response = self.head(request(target, method, fields=head), method)
        response.body = self.body(self.conn, response)
        if not response.bodyless and len(response.body) < (response.length or 0):
            self.leave()
        else:
            self.end(response)
        return sent, response

    # ------------------------------------------------------------ what is right

    def check(self, name, sent, total, pieces, expected):
        """expected: the bytes that should have come; the state, of a replaced file."""
        states = self.history.visible(name, sent, time.monotonic())
        came = sum(len(p.data) for p in pieces)
        state, changed = None, False
        if name in STRETCHED:
            check_stretch(states, name, total, pieces)
            # A response of a file that grows or is cut meanwhile ends early.
            changed = len(states) > 1
        else:
            state = check_version(states, name, total, pieces)
        if came < expected and not changed:
            raise Fault("%s: %d of %d bytes, asked for at %.3f: %s" % (name, came, expected, sent, states))
        self.bytes += came
        return state

    def cut_before(self, name, sent, response):
        """503 is right if what was looked up is not there any more when it is read."""
        if response.status != 503 or name not in STRETCHED:
            return False
        if not was_cut(self.history.visible(name, sent, time.monotonic())):
            return False
        self.counts["503: the file was cut before its answer began"] += 1
        return True

    def check_whole(self, name, sent, response):
        if self.cut_before(name, sent, response):
            return
        if response.status != 200:
            raise Fault("%s: %r" % (name, response))
        state = self.check(name, sent, response.length, [Piece(0, response.body)], response.length)
        self.note_tag(name, response.get("ETag"), state)

    def check_ranges(self, name, sent, response, specs):
        """The parts are those that were asked for, and their bytes the file's."""
        size, parts = parts_of(response)
        if sorted((first, last) for first, last, _ in parts) != meant(specs, size):
            raise Fault("%s: %s was asked for: %r" % (name, specs, response))
        state = self.check(name, sent, size, [Piece(first, body) for first, _, body in parts],
                           sum(last - first + 1 for first, last, _ in parts))
        self.note_tag(name, response.get("ETag"), state)

    def note_tag(self, name, tag, state):
        """Versions have tags of their own, weak at first.  The shortest ones may be equal."""
        if state is None or state.size < 16:
            return
        old, version = self.tags.get(name), state.version
        if not tag or old and (opaque(old[0]) == opaque(tag)) != (old[1] == version):
            raise Fault("%s: entity tag %s of version %d after %s" % (name, tag, version, old))
        self.tags[name] = (tag, version)

    # ------------------------------------------------------------ what it does

    def whole(self):
        name = self.any()
        self.check_whole(name, *self.get("/" + name))

    def any(self):
        return self.rng.choice(self.rng.choice([STEADY, REPLACED, REPLACED, STRETCHED]))

    def fixed(self):
        """A file whose versions can be told from each other."""
        return self.rng.choice(STEADY + REPLACED)

    def only_head(self):
        name = self.any()
        sent, response = self.get("/" + name, method="HEAD")
        if response.status != 200 or response.length not in self.sizes(name, sent):
            raise Fault("%s: %r, sizes %s" % (name, response, self.sizes(name, sent)))

    def spec(self):
        first = self.rng.randint(0, self.rng.choice([100, 1 << 16, 1 << 20, 8 << 20]))
        kind = self.rng.random()
        if kind < 0.2:
            return "-%d" % self.rng.randint(1, 1 << 20)
        if kind < 0.4:
            return "%d-" % first
        return "%d-%d" % (first, first + self.rng.randint(0, 1 << 18))

    def one_range(self):
        name, spec = self.any(), self.spec()
        self.ranged(name, [spec], *self.get("/" + name, {"Range": "bytes=" + spec}))

    def many_ranges(self):
        name = self.fixed()
        specs = [self.spec() for _ in range(self.rng.randint(2, 6))]
        self.ranged(name, specs, *self.get("/" + name, {"Range": "bytes=" + ",".join(specs)}))

    def sizes(self, name, sent):
        """The least and the most that it may have; all, if it is replaced as a whole."""
        sizes = {s.size for s in self.history.visible(name, sent, time.monotonic())}
        return range(min(sizes), max(sizes) + 1) if name in STRETCHED else sizes

    def ranged(self, name, specs, sent, response):
        """As long as there is a byte of what was asked for, that comes and nothing else."""
        if self.cut_before(name, sent, response):
            return
        if response.status == 206:
            if "Content-Range" not in response and len(response.body) < response.length:
                raise Fault("%s: %d of %d bytes" % (name, len(response.body), response.length))
            self.check_ranges(name, sent, response, specs)
        elif response.status == 416:
            size = int(response.get("Content-Range").rpartition("/")[2])
            if size not in self.sizes(name, sent) or meant(specs, size) != []:
                raise Fault("%s: %s was asked for: %r" % (name, specs, response))
        else:
            self.check_whole(name, sent, response)
            if meant(specs, response.length) is not None:
                raise Fault("%s: %s was asked for: %r" % (name, specs, response))

    def if_range(self):
        name, spec = self.fixed(), self.spec()
        tag, _ = self.tags.get(name, ('"none"', None))
        fields = {"Range": "bytes=" + spec, "If-Range": tag}
        sent, response = self.get("/" + name, fields)
        if response.status == 200 and (tag.startswith("W/") or response.get("ETag") != tag):
            self.check_whole(name, sent, response)
        elif response.status == 206 and response.get("ETag") != tag:
            raise Fault("%s: a range of another file than %s: %r" % (name, tag, response))
        else:
            self.ranged(name, [spec], sent, response)

    def conditional(self):
        name = self.fixed()
        tag, version = self.tags.get(name, ('"none"', None))
        sent, response = self.get("/" + name, {"If-None-Match": tag})
        states = self.history.visible(name, sent, time.monotonic())
        if response.status == 304:
            if version not in [s.version for s in states]:
                raise Fault("%s: 304 for version %s, which was replaced" % (name, version))
        elif opaque(response.get("ETag")) == opaque(tag):
            raise Fault("%s: %r although it has %s" % (name, response, tag))
        else:
            self.check_whole(name, sent, response)

    def pipelined(self):
        names = [self.any() for _ in range(self.rng.randint(2, 8))]
        if self.conn and self.stale():
            self.leave()
        data = b"".join(request("/" + name) for name in names[1:])
        sent, response = self.head(request("/" + names[0]) + data)
        for n, name in enumerate(names):
            if n > 0:
                response = self.conn.read_head()
            response.body = self.body(self.conn, response)
            self.check_whole(name, sent, response)
            if len(response.body) < response.length or response.closes:
                self.counts["sent again: the connection was closed before"] += len(names) - n - 1
                self.leave()
                return
        self.end(response)

    def streams(self):
        """Many at once, with small windows, some of them reset; without HTTP/2 as pipelined()."""
        ways = [w for w in self.ways if w.http2 and isinstance(w.address, tuple)]
        if not ways:
            self.pipelined()
            return
        address, sent = self.rng.choice(ways).address, time.monotonic()
        with h2_client.Client(
                None, window=self.rng.choice([1000, 65535, 1 << 20]), connection=self.rng.choice([65535, 1 << 22]),
                over_tls=address[1] in tls.PORTS, address=address, patience=self.patience) as c:
            asked = {}
            for _ in range(self.rng.randint(2, 60)):
                name = self.any()
                asked[c.begin("/" + name, fields=self.rng.choice(PRIORITIES))] = name
            for stream in self.rng.sample(list(asked), len(asked) // 4):
                c.reset(stream)
                del asked[stream]
            for stream, name in asked.items():
                c.until(lambda: c.answers[stream].done or c.goaways and stream > c.goaways[-1][0],
                        "%s was answered" % name)
                self.check_stream(name, sent, c.answers[stream])

    def check_stream(self, name, sent, answer):
        if not answer.done:
            self.counts["sent again: by its GOAWAY the server had not looked at it"] += 1
            return
        self.counts["requests answered"] += 1
        if answer.error not in (None, h2_raw.INTERNAL_ERROR):
            raise Fault("%s: %r" % (name, Streamed(answer)))
        self.check_whole(name, sent, Streamed(answer))

    def short(self):
        self.leave()
        name = self.rng.choice(STEADY)
        sent, response = self.get("/" + name, {"Connection": "close"})
        if not response.closes:
            raise Fault("%r was told to close" % response)
        self.check_whole(name, sent, response)

    def abort(self):
        """In mid-answer; what has come must be right all the same."""
        name = self.any()
        with self.connect(rcvbuf=4096) as c:
            sent = time.monotonic()
            c.send(request("/" + name))
            response = c.read_head()
            data = c.take(min(len(c.buf), response.length))
            while len(data) < min(response.length, 30000) and c.fill(4096):
                data += c.take(len(c.buf))
            c.reset()
        if self.cut_before(name, sent, response):
            return
        if response.status != 200:
            raise Fault("%s: %r" % (name, response))
        self.check(name, sent, response.length, [Piece(0, data)], min(response.length, 30000))

    def slow(self):
        """Some 100 KB/s."""
        name = self.any()
        with self.connect(rcvbuf=8192) as c:
            sent = time.monotonic()
            c.send(request("/" + name))
            response = c.read_head()
            while len(c.buf) < min(response.length, 1 << 20):
                time.sleep(0.02)
                if not more(c):
                    break
            response.body = self.body(c, response)
        self.check_whole(name, sent, response)

    def idle(self):
        self.whole()
        time.sleep(self.rng.random() * 4)
        self.whole()

    def listing(self):
        _, response = self.get("/steady/")
        missing = [n for n in STEADY if 'href="%s"' % n.partition("/")[2] not in response.body.decode()]
        if response.status != 200 or missing:
            raise Fault("a listing without %s: %r" % (missing, response))

    def missing(self):
        _, response = self.get("/steady/none-%d" % self.rng.randint(0, 9))
        if response.status != 404 or response.body != b"It is not here.":
            raise Fault("%r is not there" % response)

    def moved(self):
        name = self.any()
        _, response = self.get("/moved/%s?q" % name)
        if response.status != 302 or response.get("Location") != "/%s?q" % name:
            raise Fault("%s: %r has moved" % (name, response))
        self.check_whole(name, *self.get(response.get("Location")))

    def without_suffix(self):
        """The second step of the search."""
        name = self.rng.choice(STEADY)
        sent, response = self.get("/" + name.removesuffix(".bin"),
                                  {"X-Forwarded-For": "192.0.2.%d" % self.rng.randint(1, 254)})
        if response.get("X-Soak") != "yes" or response.get("Vary") != "Accept-Encoding":
            raise Fault("%s: %r without its fields" % (name, response))
        self.check_whole(name, sent, response)

    def health(self):
        for path, text in (("/live", b"live\n"), ("/ready", b"ready\nsoak: ok\n")):
            _, response = self.get(path)
            if (response.status, response.body) != (200, text):
                raise Fault("%s: %r" % (path, response))

    def malformed(self):
        data = self.rng.choice(MALFORMED)
        with self.connect(plain=True) as c:
            try:
                c.send(data)
                response = c.response()
            except (ConnectionResetError, BrokenPipeError):
                return  # it was closed while we still sent
            if not 400 <= response.status < 600 or not response.closes:
                raise Fault("%r for %r" % (response, data[:60]))
            self.counts["bytes of errors"] += len(response.body)

    def silent(self):
        with self.connect(plain=True) as c:
            c.send(b"GET / HTTP/1.1\r\nHost"[:self.rng.randint(0, 20)])
            time.sleep(self.rng.random())
            if self.rng.random() < 0.5:
                c.reset()


KINDS = {
    Client.whole: 30, Client.only_head: 6, Client.one_range: 12, Client.many_ranges: 6,
    Client.if_range: 6, Client.conditional: 10, Client.pipelined: 8, Client.streams: 6, Client.short: 12,
    Client.abort: 5, Client.slow: 1, Client.idle: 2, Client.listing: 3, Client.missing: 3,
    Client.moved: 3, Client.without_suffix: 3, Client.health: 1,
    Client.malformed: 4, Client.silent: 2,
}
