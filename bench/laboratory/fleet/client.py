"""Clients: they follow redirects, check what they get, and count what goes wrong.

As a browser does, a client sends again what went out on a kept connection that was closed
before an answer began.  As a download manager does, it asks once for the rest of an answer that
was cut (Range, If-Range), which is counted.  Any other fault of a request is a failure, or, where
`retries` allows, is tried again after PAUSE by way of the balancer: as curl --retry 1 does.
"""

import collections
import queue
import socket
import threading
import time
import urllib.parse
import zlib

PAUSE = 1.0  # seconds before a try again: curl's first
TIMEOUT = 20
CHUNK = 1 << 18


class Broken(Exception):
    pass


class Stale(Broken):
    """A kept connection was closed before an answer began."""


class Cut(Broken):
    """In the middle; it knows what has come."""

    def __init__(self, why, etag, size, crc):
        super().__init__(why)
        self.etag, self.size, self.crc = etag, size, crc


class Connection:
    def __init__(self, address, timeout=TIMEOUT):
        host, port = address.rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)), timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.used, self.buffer = False, bytearray(CHUNK)

    def ask(self, method, target, host, fields=""):
        """(status, {name: value}, bytes of the body that came with the head)"""
        stale = Stale if self.used else Broken
        try:
            self.sock.sendall(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode())
            head = b""
            while b"\r\n\r\n" not in head:
                piece = self.sock.recv(CHUNK)
                if not piece:
                    raise (Broken if head else stale)("closed before the answer")
                head += piece
        except ConnectionError as error:
            raise stale(str(error)) from None
        self.used = True
        head, rest = head.split(b"\r\n\r\n", 1)
        status, *fields = head.decode("latin-1").split("\r\n")
        return (int(status.split()[1]),
                {name.lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)},
                rest)

    def body(self, rest, length):
        """Piece by piece; Broken if it ends too early."""
        if rest:
            yield rest
        left = length - len(rest)
        while left:
            n = self.sock.recv_into(self.buffer, min(left, CHUNK))
            if not n:
                raise Broken(f"cut {left} bytes before the end")
            left -= n
            yield memoryview(self.buffer)[:n]

    def close(self):
        self.sock.close()


class Client:
    """One at a time.  sums: {target: CRC-32 of the body}."""

    def __init__(self, balancer, sums, retries=0):
        self.balancer, self.sums, self.retries = balancer, sums, retries
        self.kept = {}
        self.counts = collections.Counter()
        self.by_node = collections.Counter()
        self.failures, self.times = [], []

    def get(self, target):
        begun = time.monotonic()
        for tries in range(self.retries + 1):
            if tries:
                time.sleep(PAUSE)
                self.counts["retried"] += 1
            try:
                node, size = self.follow(target)
                self.counts["answered"] += 1
                self.counts["bytes"] += size
                self.by_node[node] += 1
                self.times.append((begun, time.monotonic() - begun, target))
                return
            except (OSError, Broken) as error:
                why = str(error) or type(error).__name__
        self.counts["failed"] += 1
        self.failures.append(f"{target}: {why}")

    def follow(self, target):
        try:
            return self.whole(target)
        except Cut as cut:
            self.counts["cut"] += 1
            return self.whole(target, cut)

    def whole(self, target, cut=None):
        address = self.balancer
        for _ in range(3):
            status, fields, size, crc = self.ask(address, target, cut)
            if status == 302:
                address = urllib.parse.urlsplit(fields["location"]).netloc
            elif status not in (200, 206):
                raise Broken(f"status {status} of {address}")
            elif crc != self.sums[target]:
                raise Broken("other bytes")
            else:
                return address, size
        raise Broken("redirects without an end")

    def ask(self, address, target, cut):
        try:
            return self.once(address, target, cut)
        except Stale:
            self.counts["sent again"] += 1
            return self.once(address, target, cut)

    def once(self, address, target, cut):
        wanted = f"Range: bytes={cut.size}-\r\nIf-Range: {cut.etag}\r\n" if cut else ""
        c = self.kept.pop(address, None) or Connection(address)
        try:
            status, fields, rest = c.ask("GET", target, "files.example.org", wanted)
            size, crc = (cut.size, cut.crc) if status == 206 else (0, 0)
            try:
                for piece in c.body(rest, int(fields["content-length"])):
                    crc, size = zlib.crc32(piece, crc), size + len(piece)
            except (Broken, ConnectionError) as error:
                raise Cut(str(error), fields.get("etag", ""), size, crc) from None
        except BaseException:
            c.close()
            raise
        if fields.get("connection", "") == "close":
            c.close()
        else:
            self.kept[address] = c
        return status, fields, size, crc

    def close(self):
        for c in self.kept.values():
            c.close()


class Load:
    """Clients at once.  targets: what they ask for, in this order; or without an end, until
    stopped."""

    def __init__(self, balancer, sums, targets, clients=8, retries=0):
        self.queue = queue.SimpleQueue()
        self.stopped = threading.Event()
        self.targets, self.lock = iter(targets), threading.Lock()
        self.clients = [Client(balancer, sums, retries) for _ in range(clients)]
        self.threads = [threading.Thread(target=self.run, args=(c,), daemon=True)
                        for c in self.clients]

    def run(self, client):
        while not self.stopped.is_set():
            with self.lock:
                target = next(self.targets, None)
            if target is None:
                break
            client.get(target)
        client.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self.stopped.set()
        self.join()

    def join(self):
        for thread in self.threads:
            thread.join(120)
            if thread.is_alive():
                raise RuntimeError("a client does not end")

    def count(self, what):
        return sum(c.counts[what] for c in self.clients)

    def failures(self):
        return [text for c in self.clients for text in c.failures]

    def by_node(self):
        return sum((c.by_node for c in self.clients), collections.Counter())

    def times(self):
        return sorted(t for c in self.clients for t in c.times)


def location(address, target):
    """Where a redirect leads.  HAProxy closes the connection with it."""
    c = Connection(address)
    try:
        status, fields, _ = c.ask("GET", target, "files.example.org")
    finally:
        c.close()
    if status != 302:
        raise RuntimeError(f"{target}: status {status}, not 302")
    return urllib.parse.urlsplit(fields["location"]).netloc


def locations(address, targets):
    """{target: node}, of a balancer that redirects."""
    return {target: location(address, target) for target in targets}
