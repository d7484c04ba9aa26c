"""Clients that ask without a pause while something happens to the server; each request of
theirs has a right answer in time, or is told as failed.

Only this is no failure, because HTTP allows it: a connection that was idle for longer
than the server promises to wait ends without a word (RFC 9112, 9.3.1).  The request is
sent again, and counted.
"""

import threading
import time

import h2_raw
from harness import Connection, request
from responses import ProtocolError

LATE = 20.0  # seconds after which an answer is too late
IDLE = 0.9  # seconds after which a connection may be closed without a word
PIECE = 1 << 16  # bytes that a slow one takes at once
SHOWN = 5  # failures that are told
ENOUGH = 100  # after so many a client gives up


class Late(AssertionError):
    pass


class Client(threading.Thread):
    """One thing after the other, until told to stop.  What fails is kept, and it goes on."""

    def __init__(self, traffic):
        super().__init__(daemon=True)
        self.traffic = traffic
        self.begun = self.right = self.bytes = self.again = 0
        self.across = 0  # that a signal came into the middle of
        self.failed = []
        self.conn = None
        self.new = True  # nothing has come on the connection so far

    def connect(self, **kw):
        self.new = True
        return Connection(self.traffic.address, patience=self.traffic.late, **kw)

    def head(self):
        head = self.conn.read_head()
        self.new = False
        return head

    def run(self):
        while not self.traffic.done.is_set() and len(self.failed) < ENOUGH:
            self.begun += 1
            begun, signals = time.monotonic(), self.traffic.signals
            try:
                self.bytes += self.ask()
                self.in_time(time.monotonic() - begun)
                self.right += 1
                self.across += self.traffic.signals > signals
            except Exception as error:  # whatever it is, it is one that failed
                if self.nobody_there(error):
                    self.begun -= 1
                    break
                self.failed.append("%s after %.1f s: %r" % (
                    type(self).__name__, time.monotonic() - begun, error))
                self.leave()
        self.leave()

    @property
    def answered(self):
        """At least the beginning of an answer has come."""
        return self.right > 0

    def nobody_there(self, error):
        gone = (ConnectionRefusedError, ConnectionResetError)
        return self.traffic.ends and self.new and isinstance(error, gone)

    def in_time(self, seconds):
        if seconds > self.traffic.late:
            raise Late("%.1f s" % seconds)

    def leave(self):
        if self.conn:
            self.conn.sock.close()
            self.conn = None

    def take(self, response):
        """Right to the last byte; the connection goes on, or ends as was said."""
        name, data = self.traffic.small
        if response.status != 200 or response.body != data:
            raise ProtocolError("%s: %r %r" % (name, response, response.body[:100]))
        if response.closes:
            self.conn.eof()
            self.leave()
        return len(data)


class Keeping(Client):
    """As many requests on a connection as the server lets it."""

    used = 0.0

    def ask(self):
        while True:
            idle = self.conn is not None and time.monotonic() - self.used > IDLE
            self.conn = self.conn or self.connect()
            try:
                self.conn.send(request(self.traffic.small[0]))
                if not self.conn.buf and not self.conn.fill():
                    raise ConnectionResetError("closed before the first byte")
                break
            except (ConnectionResetError, BrokenPipeError):
                if not idle or self.conn.buf:
                    raise
                self.again += 1
                self.leave()
        size = self.take(self.conn.read_body(self.head()))
        self.used = time.monotonic()
        return size


class Single(Client):
    """A connection for each request."""

    def ask(self):
        self.conn = self.connect()
        self.conn.send(request(self.traffic.small[0], fields={"Connection": "close"}))
        response = self.conn.read_body(self.head())
        if not response.closes:
            raise ProtocolError("it was told to close: %r" % response)
        return self.take(response)


class Downloading(Client):
    """Reads all the time, no faster than it should; each byte is looked at."""

    at = 0  # bytes that have come of this one

    @property
    def answered(self):
        return self.right > 0 or self.at > 0

    def in_time(self, seconds):
        name, data = self.traffic.large
        super().in_time(seconds - len(data) / self.traffic.rate)

    def ask(self):
        name, data = self.traffic.large
        self.conn = self.connect(rcvbuf=PIECE)
        self.conn.send(request(name, fields={"Connection": "close"}))
        head = self.head()
        if head.status != 200 or head.length != len(data):
            raise ProtocolError("%s: %r" % (name, head))
        begun, self.at = time.monotonic(), 0
        while True:
            self.check_piece(name, data)
            if self.at == len(data):
                break
            time.sleep(max(0, begun + self.at / self.traffic.rate - time.monotonic()))
            if not self.conn.fill(PIECE):
                raise ProtocolError("%s: closed after byte %d" % (name, self.at))
        self.conn.eof()
        self.leave()
        return len(data)

    def check_piece(self, name, data):
        size = len(self.conn.buf)
        if self.conn.buf != data[self.at:self.at + size]:
            raise ProtocolError("%s: wrong after byte %d" % (name, self.at))
        self.at += size
        self.conn.buf.clear()


class Multiplexed(Client):
    """HTTP/2: several streams at a time, until it is told that the connection ends.

    What the GOAWAY says was not looked at is asked for again; all else is answered (RFC 9113, 6.8).
    """

    STREAMS = 6
    WINDOW = 1 << 20

    @property
    def answered(self):
        return self.right > 0

    def ask(self):
        """One connection."""
        small, large = self.traffic.small, self.traffic.large or self.traffic.small
        self.new = True
        conn = h2_raw.Client(self.traffic.address, window=self.WINDOW, patience=self.traffic.late)
        wanted, last, next_id, size = {}, None, 1, 0
        with conn:
            conn.send(h2_raw.update(0, self.WINDOW))
            while True:
                while last is None and len(wanted) < self.STREAMS and not self.traffic.done.is_set():
                    target, data = large if next_id % 20 == 1 else small
                    conn.send(h2_raw.get(next_id, target.encode()))
                    wanted[next_id] = [data, 0]
                    next_id += 2
                if not wanted:
                    return size
                kind, flags, stream, payload = self.frame(conn)
                self.new = False
                if kind == h2_raw.GOAWAY:
                    last = int.from_bytes(payload[:4], "big")
                    error = int.from_bytes(payload[4:8], "big")
                    if error != h2_raw.NO_ERROR:
                        raise ProtocolError("GOAWAY %d" % error)
                    self.again += len([s for s in wanted if s > last])
                    wanted = {s: w for s, w in wanted.items() if s <= last}
                    last = last if last < 1 << 30 else None  # a warning, before the last one
                elif kind == h2_raw.RST_STREAM and stream in wanted:
                    raise ProtocolError("stream %d was reset" % stream)
                elif kind == h2_raw.HEADERS and stream in wanted and b"\x88" not in payload[:4]:
                    raise ProtocolError("stream %d: %r" % (stream, payload))
                elif kind == h2_raw.DATA and stream in wanted:
                    size += len(payload)
                    self.check(wanted[stream], payload)
                    conn.send(h2_raw.update(0, len(payload)) + h2_raw.update(stream, len(payload))
                              if payload else b"")
                if stream in wanted and kind in (h2_raw.DATA, h2_raw.HEADERS) and \
                        flags & h2_raw.END_STREAM:
                    data, at = wanted.pop(stream)
                    if at != len(data):
                        raise ProtocolError("stream %d ends after byte %d" % (stream, at))
                    self.begun += 1
                    self.right += 1
                    self.across += self.traffic.signals > 0 and len(data) > 1 << 16

    def frame(self, conn):
        try:
            return conn.read()
        except h2_raw.Closed as error:
            raise ConnectionResetError("closed") from error

    def check(self, want, payload):
        data, at = want
        if data[at:at + len(payload)] != payload:
            raise ProtocolError("wrong after byte %d" % at)
        want[1] = at + len(payload)

    def in_time(self, seconds):
        """Of a connection's life nothing is said; of a frame, by its socket."""


class Traffic:
    """small, large: (target, body) pairs; large is taken with rate bytes a second.

    signals: raised by whoever does something to the server.  ends: set before it is told
    to end; then a new connection may find nobody, and its client ends too.
    """

    def __init__(self, address, small, large=None, rate=8 << 20, late=LATE,
                 keeping=4, single=4, downloading=2, multiplexed=0):
        self.address, self.small, self.large = address, small, large
        self.rate, self.late = rate, late
        self.signals = 0
        self.ends = False
        self.done = threading.Event()
        kinds = [Keeping] * keeping + [Single] * single
        kinds += [Downloading] * (downloading if large else 0)
        kinds += [Multiplexed] * multiplexed
        self.clients = [kind(self) for kind in kinds]

    def __enter__(self):
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *exc):
        self.done.set()
        end = time.monotonic() + 2 * self.late
        if self.large:
            end += len(self.large[1]) / self.rate
        for client in self.clients:
            client.join(max(0, end - time.monotonic()))

    def total(self, what):
        return sum(getattr(client, what) for client in self.clients)

    @property
    def downloads(self):
        return [c for c in self.clients if isinstance(c, Downloading)]

    @property
    def busy(self):
        """A download has begun and is far from its end; no client still waits for its first answer."""
        return (any(0 < c.at < len(self.large[1]) // 2 for c in self.downloads)
                and all(c.answered for c in self.clients))

    @property
    def downloads_across(self):
        """A signal came while they were read."""
        return sum(c.across for c in self.downloads)

    @property
    def wrong(self):
        """What has gone wrong so far."""
        return [text for client in self.clients for text in client.failed]

    @property
    def failed(self):
        """Once all is over: each request that was begun and has no right answer."""
        found = self.wrong
        lost = self.total("begun") - self.total("right") - len(found)
        return found + ["a request has never ended"] * lost

    def faultless(self):
        """Every client has been served; none of the requests failed."""
        failed = self.failed
        assert not failed, "%d failed: %s" % (len(failed), "\n".join(failed[:SHOWN]))
        for client in self.clients:
            assert client.right > 0, "%r was never answered" % client
        if self.large and self.signals:
            assert self.downloads_across > 0, "no signal came into a download"
