"""What a server is asked again and again while its calls fail: a bit of everything.

Strictly, every answer is the right one.  With a fault each may also be 500 or 503, or
end early; but what has come is right as far as it goes, and nothing hangs.
"""

import contextlib
import os
import re
import shutil
import socket

import mounts
import tree as t
from harness import Connection, request, wait_until
from responses import ProtocolError, multipart, single_part

SMALL = t.content(1, 3000)
LARGE = t.content(2, 1300001)
COLD = ["cold", "part"]  # part is cold where a folio is not read: in its middle
NAMES = ["small", "large", "index.txt"] + COLD
PATIENCE = 15.0  # less than any timeout of the server that would hide a hang
ENDS = ("closed", "Connection reset", "Broken pipe",
        "in the handshake", "in place of a ticket", "no close_notify", "alert")
REFUSALS = {500, 503}


class Wrong(AssertionError):
    pass


class Step:
    """One request, the statuses that are right, and what their bodies are."""

    def __init__(self, target, right, method="GET", statuses=(200,), **kw):
        self.target, self.right, self.method = target, right, method
        self.statuses = statuses
        self.raw = request(target, method, **kw)

    def __repr__(self):
        return "%s %s" % (self.method, self.target)

    def check(self, response):
        """Everything of an answer that is right by its status."""
        if response.head_only:
            if response.length not in (None, len(self.right)):
                raise Wrong("%r: %r" % (self, response))
        elif response.status == 206:
            multiple = response.get("Content-Type").startswith("multipart/")
            for p in multipart(response) if multiple else [single_part(response)]:
                if p.body != self.right[p.first : p.last + 1] or p.size != len(self.right):
                    raise Wrong("%r: a part that is not the file's" % self)
        elif callable(self.right):
            self.right(response.body)
        elif response.status == 200 and response.body != self.right:
            raise Wrong("%r: %d bytes that are not the file's" % (self, len(response.body)))

    def begins(self, head, left):
        """Are these bytes the begin of what follows this head, or of a head?"""
        if head is None:
            return left[:9] == b"HTTP/1.1 "[: len(left)]
        if head.status >= 300 or head.chunked or callable(self.right):
            return True
        if head.status == 200:
            return self.right.startswith(left)
        if head.get("Content-Type").startswith("multipart/"):
            return self.parts_begin(head, left)
        first = int(re.match(r"bytes (\d+)-", head.get("Content-Range")).group(1))
        return self.right[first:].startswith(left)

    def parts_begin(self, head, left):
        delimiter = b"\r\n--" + head.get("Content-Type").partition("boundary=")[2].encode()
        for part in (b"\r\n" + left.lstrip(b"\r\n")).split(delimiter)[1:]:
            fields, _, body = part.partition(b"\r\n\r\n")
            match = re.search(rb"Content-Range: bytes (\d+)-(\d+)/", fields)
            if body:
                first, last = map(int, match.groups())
                data = self.right[first : last + 1]
                if not (data + delimiter + b"--").startswith(body):
                    return False
        return True


def listed(body):
    missing = [n for n in NAMES if ('href="%s"' % n).encode() not in body]
    if missing:
        raise Wrong("a listing without %s: %r" % (missing, body))


class At:
    """Where an exchange is."""

    def __init__(self, group):
        self.left, self.step, self.head = group, None, None


class Scenario:
    """A site with a new directory for each run: nothing in it has been opened yet."""

    ends = ENDS  # how a connection may end for a fault
    hot_call = "sendmsg"  # which nothing but the hot set makes

    def __init__(self, site, below="", often=3000):
        """below: "/name" of the directory of the site that is this one's alone."""
        self.small_count = often
        self.site = site + below
        self.below = below
        self.run = 0
        self.small_files()
        t.write(os.path.join(self.site, "small"), SMALL)
        for name in ["large"] + COLD:
            t.write(os.path.join(self.site, name), LARGE)
        for name in COLD:
            mounts.drop(os.path.join(self.site, name))

    def small_files(self):
        """One for each run, which nobody touches: what the hot set may take in."""
        os.mkdir(os.path.join(self.site, "often"))
        for run in range(self.small_count):
            with open(os.path.join(self.site, "often", str(run)), "wb") as f:
                f.write(t.content(run, 1000))

    def often(self):
        number = self.run % self.small_count
        return Step("%s/often/%d" % (self.below, number), t.content(number, 1000))

    def cool(self):
        """Puts files out of memory; mounts.drop would wait for the links to be written."""
        for name in COLD:
            fd = os.open(os.path.join(self.site, name), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)

    @contextlib.contextmanager
    def directory(self):
        self.run += 1
        path = os.path.join(self.site, "d%d" % self.run)
        os.mkdir(path)
        for name in NAMES:
            os.link(os.path.join(self.site, "small" if name == "index.txt" else name),
                    os.path.join(path, name))
        yield "%s/d%d/" % (self.below, self.run)
        shutil.rmtree(path)

    def groups(self, at):
        """The connections, each a list of lists of steps: those of one go together."""
        r = {"Range": "bytes=100-199"}
        rr = {"Range": "bytes=0-9,1000-1999,2500-"}
        return [
            [
                [Step(at + "small", SMALL)],
                [Step(at + "small", SMALL, "HEAD")],
                [Step(at + "small", SMALL, fields=r, statuses=(206,))],
                [Step(at + "small", SMALL, fields=rr, statuses=(206,))],
                [Step(at + "none", b"", statuses=(404,))],
                [Step(at, listed)],
                [Step(at[:-1], b"", statuses=(301,))],
                [Step(at + "small", b"", "POST", statuses=(405,), body=b"x" * 2000)],
            ],
            [[Step(at + "index.txt", SMALL)] * 3 + [Step(at + "large", LARGE, fields=r, statuses=(206,))]],
            [[Step(at + "cold", LARGE, fields={"Pagewise-Trace": "t"})], [Step(at + "large", LARGE)]],
            [[Step(at + "part", LARGE, fields={"Range": "bytes=600000-"}, statuses=(206,))]],
            [[self.often()]] * 3 + [[self.often()] * 8],
            # Its answer comes before its body has been read.
            [[Step(at + "small", b"", "POST", statuses=(405,), body=b"y" * 70000)]],
        ]

    def strictly(self, server):
        """Every answer is right."""
        self.cool()
        with self.directory() as at:
            self.ask(server, at)

    def tolerantly(self, server):
        """Whatever comes is right as far as it goes."""
        self.cool()
        with self.directory() as at:
            self.try_to_ask(server, at)

    def ask(self, server, at):
        for group in self.groups(at):
            with self.connect(server) as c:
                self.exchange(c, group, ())

    def try_to_ask(self, server, at):
        for group in self.groups(at):
            # What follows an answer that went wrong is asked anew.
            while group:
                group = self.attempt(server, group)[1:]

    @staticmethod
    def connect(server):
        return Connection(server.address, patience=PATIENCE, may_be_chunked=True)

    def attempt(self, server, group):
        """What of the group is left, beginning with what went wrong; [] if nothing did."""
        at = At(group)
        try:
            with self.connect(server) as c:
                self.exchange(c, group, REFUSALS, at)
            return []
        except Wrong:
            raise
        except socket.timeout:
            raise Wrong("no answer to %r" % at.step)
        except (OSError, ProtocolError) as error:
            if not any(e in str(error) for e in self.ends):
                raise Wrong("%r: %r" % (at.step, error))
            if at.step and not at.step.begins(at.head, bytes(c.buf)):
                raise Wrong("%r: it ends with %r" % (at.step, bytes(c.buf[:200])))
        return at.left

    @staticmethod
    def exchange(c, group, also, at=None):
        at = at or At(group)
        while group:
            at.left = group
            c.send(b"".join(step.raw for step in group[0]))
            for at.step in group[0]:
                at.head = None
                response = at.head = c.read_head(at.step.method)
                c.read_body(response)
                if response.status in at.step.statuses or response.status == 200 and also:
                    at.step.check(response)
                elif response.status not in also:
                    raise Wrong("%r: %r" % (at.step, response))
                if response.closes:
                    break
            group = group[1:]
            if response.closes and group:
                raise ProtocolError("closed in good order")
        c.finish(response)


class Descriptors:
    """Those of the server that are not files of a site are as many as they were; files
    of a run's directory are closed once others have been opened in their place."""

    def __init__(self, server, runs):
        self.pid, self.runs = server.pid, runs
        self.spare = {}  # so many more of a kind are kept for later
        self.before = self.count(0)[0]

    def count(self, run):
        kinds, old = {}, []
        for fd in os.listdir("/proc/%d/fd" % self.pid):
            try:
                target = os.readlink("/proc/%d/fd/%s" % (self.pid, fd))
            except FileNotFoundError:
                continue
            match = re.search(r"/d(\d+)(/|$| )", target)
            if match and int(match.group(1)) <= run - self.runs:
                old.append(target)
            elif not match and not target.startswith("/") or target.startswith("/dev"):
                kind = re.sub(r"\d+", "", target)
                kinds[kind] = kinds.get(kind, 0) + 1
        return kinds, old

    def more(self, run):
        kinds, old = self.count(run)
        left = {kind: n - self.before.get(kind, 0) - self.spare.get(kind, 0)
                for kind, n in kinds.items()}
        return old + ["%d more %s" % (n, kind) for kind, n in left.items() if n > 0]

    def check(self, run):
        try:
            wait_until(lambda: not self.more(run), "descriptors to be closed", 5)
        except AssertionError:
            raise AssertionError("left open: %s" % self.more(run))
