"""A fresh server for every option set, and a client that forgives nothing.

The client speaks raw sockets; its parser accepts only what a correct answer
looks like.  A server must end with the expected exit code and must not have
written to stderr, unless the test says what it expects there.
"""

import contextlib
import email.utils
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time

import http2
import landlock
import scratch
import tls

TREE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PAGEWISE = os.environ.get("PAGEWISE", os.path.join(TREE, "build/asan/pagewise"))
RELEASE = os.environ.get("PAGEWISE_RELEASE", os.path.join(TREE, "build/pagewise"))
DEBUG = os.environ.get("PAGEWISE_DEBUG", os.path.join(TREE, "build/debug/pagewise"))
SLOWFS = os.environ.get("SLOWFS", os.path.join(TREE, "build/tests/slowfs"))
SPINDLE = os.environ.get("SPINDLE", os.path.join(TREE, "build/tests/spindle"))

FILE_PATHS = ["nodiskio", "uring", "ring", "splice", "mlock", "aio", "pool", "blocking",
              "copy"]

# The debug build's responses go into a pw_sink (tests/inside/sink.h), and so do those over TLS,
# where the other paths are the same as these: lib/send/sink.c.
SINK_PATHS = ["nodiskio", "aio", "copy"]
if "PAGEWISE_SINK" in os.environ or tls.ON:
    FILE_PATHS = SINK_PATHS

# "hot" stands for the defaults: nodiskio and the hot set.  Where another one is
# named the hot set is off, so that it is that path which answers.
SEND_PATHS = FILE_PATHS + ["hot"]

# Of a machine that is emulated: all that only ends a wait in vain is so many times longer.
SLOWER = float(os.environ.get("PAGEWISE_TEST_SLOWER", 1))

# How long anything may take before the test gives up.  Never a measurement.
PATIENCE = 30.0 * SLOWER

ALLOWED_METHODS = {"GET", "HEAD", "OPTIONS"}


class ProtocolError(AssertionError):
    """The server's bytes are not what HTTP allows."""


def wait_until(condition, what, patience=PATIENCE, pause=0.02):
    """Polls until condition() is true and returns what it returned."""
    end = time.monotonic() + patience
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError("waited in vain for " + what)
        time.sleep(pause)


# ------------------------------------------------------------------ answers

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9]) ([\x20-\x7e]+)\Z")
FIELD_LINE = re.compile(rb"(" + TOKEN + rb"): ([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)\Z")
IMF_DATE = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-3][0-9] "
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) "
    r"[0-9]{4} [0-2][0-9]:[0-5][0-9]:[0-6][0-9] GMT\Z"
)
STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e]*"\Z')
REPEATABLE = {"allow", "vary", "set-cookie", "cache-control", "link", "x-a"}


def http_date(when):
    return email.utils.formatdate(when, usegmt=True)


def parse_http_date(text):
    if not IMF_DATE.match(text):
        raise ProtocolError("not an IMF-fixdate: %r" % text)
    return email.utils.parsedate_to_datetime(text).timestamp()


class Response:
    def __init__(self, raw, head_only, may_be_chunked=False, asked_at=None):
        """asked_at: when its request was sent; it may be read much later."""
        self.raw = raw
        self.asked_at = asked_at or time.time()
        self.body = b""
        self.head_only = head_only
        self.may_be_chunked = may_be_chunked
        lines = raw[:-4].split(b"\r\n")
        if b"\n" in raw.replace(b"\r\n", b"") or b"\r" in raw.replace(b"\r\n", b""):
            raise ProtocolError("a CR or a LF alone: %r" % raw)
        match = STATUS_LINE.match(lines[0])
        if not match:
            raise ProtocolError("status line: %r" % lines[0])
        self.status = int(match.group(1))
        self.reason = match.group(2).decode()
        self.fields = []
        for line in lines[1:]:
            match = FIELD_LINE.match(line)
            if not match:
                raise ProtocolError("field line: %r" % line)
            self.fields.append((match.group(1).decode(), match.group(2).decode()))
        self.check()

    def all(self, name):
        return [v for n, v in self.fields if n.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        return values[0] if values else None

    def __contains__(self, name):
        return self.get(name) is not None

    @property
    def interim(self):
        return self.status < 200

    @property
    def bodyless(self):
        return self.head_only or self.interim or self.status in (204, 304)

    @property
    def length(self):
        """What Content-Length says, even if no body follows."""
        value = self.get("Content-Length")
        return None if value is None else int(value)

    @property
    def chunked(self):
        return "Transfer-Encoding" in self

    @property
    def closes(self):
        return "close" in [v.lower() for v in self.all("Connection")]

    def __repr__(self):
        return "<%d %s %r>" % (self.status, self.reason, self.fields)

    def check(self):
        for name in {n.lower() for n, _ in self.fields} - REPEATABLE:
            if len(self.all(name)) > 1:
                raise ProtocolError("%s repeated: %r" % (name, self.raw))
        if self.chunked and not self.may_be_chunked:
            raise ProtocolError("Transfer-Encoding: %r" % self.raw)
        if self.chunked and ("Content-Length" in self or self.get("Transfer-Encoding") != "chunked"):
            raise ProtocolError("framing: %r" % self.raw)
        if self.interim:
            return
        if "Date" not in self:
            raise ProtocolError("no Date: %r" % self.raw)
        date = parse_http_date(self.get("Date"))
        if not self.asked_at - 10 <= date <= time.time() + 10:
            raise ProtocolError("Date is not now: %r" % self.raw)
        self.check_validators(date)
        self.check_length()
        self.check_status_fields()

    def check_validators(self, date):
        if "Last-Modified" in self:
            # RFC 9110, 8.8.2.1: never later than the message itself.
            if parse_http_date(self.get("Last-Modified")) > date:
                raise ProtocolError("Last-Modified after Date: %r" % self.raw)
        tag = self.get("ETag")
        if tag is None:
            return
        weak = tag.startswith("W/")
        if not STRONG_ETAG.match(tag.removeprefix("W/")):
            raise ProtocolError("not an entity tag: %r" % self.raw)
        # Weak while a second modification could have the same time, and only then; that of a
        # listing always is.
        if weak and "Accept" not in self.all("Vary") and "Last-Modified" in self and (
                date - parse_http_date(self.get("Last-Modified")) > 2):
            raise ProtocolError("a weak entity tag: %r" % self.raw)

    def check_length(self):
        length = self.get("Content-Length")
        if self.status == 204:
            if length is not None:
                raise ProtocolError("204 with Content-Length: %r" % self.raw)
            return
        if length is None:
            if self.status != 304 and not self.chunked:
                raise ProtocolError("no Content-Length: %r" % self.raw)
        elif not re.match(r"(0|[1-9][0-9]*)\Z", length):
            raise ProtocolError("Content-Length: %r" % self.raw)

    def check_status_fields(self):
        if self.status == 405:
            allowed = {m.strip() for v in self.all("Allow") for m in v.split(",")}
            if allowed != ALLOWED_METHODS:
                raise ProtocolError("405 with Allow %r" % allowed)
        if self.status == 416:
            if not re.match(r"bytes \*/[0-9]+\Z", self.get("Content-Range") or ""):
                raise ProtocolError("416 without Content-Range: %r" % self.raw)
        elif self.status != 206 and "Content-Range" in self:
            raise ProtocolError("Content-Range on %d: %r" % (self.status, self.raw))
        if self.status in (301, 302, 307, 308) and "Location" not in self:
            raise ProtocolError("redirect without Location: %r" % self.raw)
        if self.status >= 400 and not self.length:
            raise ProtocolError("an error without a body: %r" % self.raw)
        if self.length and self.status not in (304,) and "Content-Type" not in self:
            raise ProtocolError("a body without Content-Type: %r" % self.raw)


# ------------------------------------------------------------------- client


def readable(sock, seconds):
    """Bytes for whoever reads, or an end, arrive within that time.  Over TLS records need not be any."""
    end = time.monotonic() + seconds
    wrapped = isinstance(sock, (tls.Socket, http2.Socket))
    while not (wrapped and sock.pending()):
        left = max(0, end - time.monotonic())
        if not select.select([sock], [], [], left)[0]:
            return False
        if not wrapped:
            return True
    return True


class Connection:
    """One raw socket to the server; address: a pair, or the path of a Unix socket."""

    answered, asked_at = True, None  # when the request was sent whose response comes next

    def __init__(self, address, rcvbuf=None, patience=PATIENCE, may_be_chunked=False,
                 source=None):
        self.may_be_chunked = may_be_chunked
        unix = isinstance(address, str)
        self.sock = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(patience)
        if source:
            self.sock.bind((source, 0))
        self.sock.connect(address)
        if not unix:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self.wrap(self.sock, address)
        self.buf = bytearray()

    @staticmethod
    def wrap(sock, address):
        """The connected socket, as this server wants it."""
        return http2.wrap(tls.wrap(sock, address, http2.context(address)), address)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def send(self, data):
        if self.answered:
            self.answered, self.asked_at = False, time.time()
        self.sock.sendall(data)

    def fill(self, size=1 << 18):
        """One recv into the buffer; False at the end of the stream."""
        data = self.sock.recv(size)
        self.buf += data
        return bool(data)

    def take(self, n):
        data = bytes(self.buf[:n])
        del self.buf[:n]
        return data

    def read_head(self, method="GET"):
        while True:
            end = self.buf.find(b"\r\n\r\n")
            if end >= 0:
                break
            if b"\n" in bytes(self.buf).replace(b"\r\n", b""):
                raise ProtocolError("bare LF: %r" % bytes(self.buf[:200]))
            if len(self.buf) > 65536:
                raise ProtocolError("endless head: %r" % bytes(self.buf[:200]))
            if not self.fill():
                raise ProtocolError("closed within the head: %r" % bytes(self.buf))
        self.answered = True
        return Response(self.take(end + 4), method == "HEAD", self.may_be_chunked, self.asked_at)

    def read_exactly(self, n):
        while len(self.buf) < n:
            if not self.fill():
                raise ProtocolError("closed %d bytes early" % (n - len(self.buf)))
        return self.take(n)

    def read_line(self):
        while True:
            line, end, _ = bytes(self.buf[:100]).partition(b"\r\n")
            if end:
                self.take(len(line) + 2)
                return line
            if len(self.buf) >= 100 or not self.fill():
                raise ProtocolError("not a chunk's size: %r" % line)

    def chunk(self):
        """The next chunk; b"" is the last.  RFC 9112, 7.1; without extensions."""
        size = self.read_line()
        if not re.match(rb"(0|[1-9a-f][0-9a-f]*)\Z", size):
            raise ProtocolError("a chunk's size: %r" % size)
        data = self.read_exactly(int(size, 16))
        if self.read_exactly(2) != b"\r\n":
            raise ProtocolError("a chunk that does not end where it said")
        return data

    def chunks(self):
        return iter(self.chunk, b"")

    def read_body(self, response):
        if response.bodyless:
            return response
        if response.chunked:
            response.body = b"".join(self.chunks())
        else:
            response.body = self.read_exactly(response.length)
        return response

    def response(self, method="GET"):
        """The next final answer; an interim one is a failure."""
        response = self.read_head(method)
        if response.interim:
            raise ProtocolError("unexpected %r" % response)
        return self.read_body(response)

    def ask(self, target="/", method="GET", **kw):
        self.send(request(target, method, **kw))
        return self.response(method)

    def eof(self):
        """The server has closed, in order, and said nothing more."""
        while not self.buf:
            if not self.fill():
                return
        raise ProtocolError("bytes after the last answer: %r" % bytes(self.buf[:200]))

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def finish(self, last=None):
        """Ends the connection and makes sure that nothing else comes."""
        if last is None or not last.closes:
            self.half_close()
        self.eof()
        self.sock.close()

    def drain(self):
        """Everything until the connection ends, however it ends."""
        try:
            while self.fill():
                pass
        except ConnectionResetError:
            pass
        return self.take(len(self.buf))

    def quiet(self, seconds):
        """Nothing arrives for that long, neither bytes nor an end."""
        return not self.buf and not readable(self.sock, seconds)

    def reset(self):
        self.sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self.sock.close()


def request(target="/", method="GET", version="1.1", fields=(), host="localhost", body=b""):
    """Request bytes.  fields: pairs or a dict; host None leaves Host out."""
    if isinstance(target, bytes):
        target = target.decode("latin-1")
    lines = ["%s %s HTTP/%s" % (method, target, version)]
    if host is not None:
        lines.append("Host: " + host)
    pairs = fields.items() if isinstance(fields, dict) else fields
    lines += ["%s: %s" % pair for pair in pairs]
    if body:
        lines.append("Content-Length: %d" % len(body))
    return "\r\n".join(lines + ["", ""]).encode("latin-1") + body


class Part:
    def __init__(self, fields, body):
        self.fields = fields
        self.body = body
        match = re.match(r"bytes (\d+)-(\d+)/(\d+)\Z", fields.get("content-range", ""))
        if not match:
            raise ProtocolError("part without Content-Range: %r" % fields)
        self.first, self.last, self.size = map(int, match.groups())
        if len(body) != self.last - self.first + 1:
            raise ProtocolError("part of %d bytes: %r" % (len(body), fields))


def single_part(response):
    """The range of a 206 with one range."""
    return Part(
        {n.lower(): v for n, v in response.fields}, response.body
    )


def multipart(response):
    """Splits multipart/byteranges (RFC 9110, 14.6; RFC 2046, 5.1.1)."""
    match = re.match(
        r'multipart/byteranges; ?boundary=("?)([0-9A-Za-z\'()+_,./:=?-]{1,70})\1\Z',
        response.get("Content-Type"),
    )
    if not match:
        raise ProtocolError("Content-Type: %r" % response.get("Content-Type"))
    if "Content-Range" in response:
        raise ProtocolError("Content-Range on a multipart answer")
    delimiter = b"--" + match.group(2).encode()
    rest = b"\r\n" + response.body if response.body.startswith(delimiter) else response.body
    preamble, *parts = rest.split(b"\r\n" + delimiter)
    if preamble:
        raise ProtocolError("preamble: %r" % preamble)
    if parts.pop() not in (b"--\r\n", b"--"):
        raise ProtocolError("no closing delimiter: %r" % response.body[-100:])
    result = []
    for part in parts:
        if not part.startswith(b"\r\n"):
            raise ProtocolError("delimiter line: %r" % part[:100])
        head, separator, body = part[2:].partition(b"\r\n\r\n")
        if not separator:
            raise ProtocolError("part without an end of its head: %r" % part[:100])
        fields = {}
        for line in head.split(b"\r\n"):
            match = FIELD_LINE.match(line)
            if not match:
                raise ProtocolError("part field: %r" % line)
            fields[match.group(1).decode().lower()] = match.group(2).decode()
        result.append(Part(fields, body))
    return result


# ------------------------------------------------------------------- server

# What sanitizers and assertions say, of whatever process, which may have ended unseen.
FINDING = re.compile(
    r"(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|runtime error:|CHECK failed:|"
    r"Assertion `.*' failed|\.c:\d+: check failed: |was killed by signal (4|6|7|8|11|31) ")


def judge(text):
    """Fails if a sanitizer or an assertion is in what a program has written."""
    assert not FINDING.search(text), text


# In a server's own messages besides: a death that no test has caused with SIGKILL.
DIED = re.compile(r"server process \d+ (was killed by signal (?!9 )|exited with status)")


SERVING = re.compile(
    r"^pagewise: serving (.*) at (?:https?://([^/\s]+):(\d+)/|unix:(\S+))$", re.M)
ADDRESS = re.compile(r"(https?)://[^/\s]+:(\d+)/")
SECURE = re.compile(r"^pagewise: serving .* at https://([^/\s]+):(\d+)/$", re.M)


def address(match):
    """Of SERVING: (host, port), or a path."""
    return match.group(4) or (match.group(2), int(match.group(3)))


def plain_server():
    """A listener of a test.  One of ours that has ended may have had its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    tls.PORTS.discard(listener.getsockname()[1])
    http2.ADDRESSES.discard(listener.getsockname())
    return listener


def without_hot_set(args):
    """The arguments, with what a send path of SEND_PATHS means."""
    if "--send-path" not in args:
        return args
    at = args.index("--send-path") + 1
    if args[at] == "hot":
        return args[:at] + ["nodiskio"] + args[at + 1:]
    return args if "--hot-set" in args else args + ["--hot-set", "0"]


class Server:
    """A running pagewise.

    args are given as they are, but for "--send-path hot" (SEND_PATHS);
    `--listen 127.0.0.1:0` is added unless a listen address or a configuration
    file is among them, and `--user root` if root starts it: tests make files that
    nobody else may read.  What this kernel lacks is warned of, and no fault (landlock.py), unless
    env says what it lacks.  env: beside what there is; None: without it.  user: who starts it; drops: root does, and nothing is added.
    wrapper: a command that runs it, as its only child; becomes: one that becomes it.
    """

    def __init__(self, *args, binary=None, user=None, drops=False, wrapper=(), becomes=(),
                 cwd=None, env=None, pass_fds=()):
        self.args = without_hot_set([os.fspath(a) for a in args])
        if not {"--listen", "-c"} & set(self.args):
            self.args += ["--listen", "127.0.0.1:0"]
        if not {"--access-log", "-c"} & set(self.args):
            self.args += ["--access-log", "off"]
        # On a machine that has other things to do any turn may take long.
        if not {"--stall-log", "-c"} & set(self.args):
            self.args += ["--stall-log", "0"]
        if os.geteuid() == 0 and user is None and not drops and "--user" not in self.args:
            self.args += ["--user", "root"]
        self.args = tls.arguments(self.args, user)
        self.dir = tempfile.mkdtemp(prefix="pagewise-run-")
        self.out = open(os.path.join(self.dir, "stdout"), "w+b")
        self.err = open(os.path.join(self.dir, "stderr"), "w+b")
        # In builds with checks a system call that the sandbox forgot is a death.
        environment = {"PAGEWISE_STRICT": "1", **os.environ, **(env or {})}
        environment = {name: value for name, value in environment.items() if value is not None}
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=1:exitcode=99")
        environment.setdefault(
            "UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1:exitcode=98"
        )
        with descriptors(4096):
            self.process = subprocess.Popen(
                [*wrapper, *becomes, binary or PAGEWISE, *self.args],
                stdin=subprocess.DEVNULL,
                stdout=self.out,
                stderr=self.err,
                cwd=cwd,
                env=environment,
                user=user,
                group=user and "nogroup",
                extra_groups=[] if user else None,
                pass_fds=pass_fds,
            )
        self.wrapped = bool(wrapper)
        self.gap = "" if "PAGEWISE_LANDLOCK" in environment else landlock.WARNING
        self.address = None
        self.final_output = None  # once it was stopped

    def start(self):
        try:
            match = wait_until(self.serving, "the address on stdout")
        except AssertionError as error:
            self.kill()
            raise AssertionError(
                "%s\nstdout: %s\nstderr: %s" % (error, self.output, self.messages)
            )
        self.address = address(match)
        self.note_ports()
        http2.ADDRESSES.add(self.address)
        return self

    def note_ports(self):
        for scheme, port in ADDRESS.findall(self.output + self.messages):
            (tls.PORTS.add if scheme == "https" else tls.PORTS.discard)(int(port))

    def addresses(self, count):
        """All that it has said, once they are so many: start() waits for the first one."""
        def found():
            return [address(match) for match in SERVING.finditer(self.output)]

        wait_until(lambda: len(found()) >= count, "%d addresses" % count)
        self.note_ports()
        return found()

    def secure_address(self):
        """The last one where it speaks TLS, as soon as there is one."""
        found = wait_until(lambda: SECURE.findall(self.output + self.messages), "an address with TLS")
        self.note_ports()
        return found[-1][0], int(found[-1][1])

    def serving(self):
        if self.process.poll() is not None:
            raise AssertionError("the server ended with %d" % self.process.returncode)
        return SERVING.search(self.output) or SERVING.search(self.messages)

    @property
    def master(self):
        """The pid of the process that was started, also under a wrapper such as strace."""
        return children(self.process.pid)[0] if self.wrapped else self.process.pid

    @property
    def pid(self):
        """Of the process that serves: the youngest one, while there are several."""
        return max(children(self.master), key=start_time)

    @staticmethod
    def content(stream):
        return os.pread(stream.fileno(), 1 << 24, 0).decode("utf-8", "replace")

    @property
    def output(self):
        return self.content(self.out)

    @property
    def messages(self):
        text = self.content(self.err)
        return text.replace(self.gap, "") if self.gap else text

    @property
    def running(self):
        return self.process.poll() is None

    def connect(self, address=None, **kw):
        return Connection(address or self.address, **kw)

    def in_kernel(self):
        """States of its sockets, closed or not; one that listens and TIME_WAIT are none."""
        ours = ":%04X" % self.address[1]
        with open("/proc/net/tcp") as table:  # a busy machine has thousands of lines there
            lines = [line.split() for line in table if ours in line]
        return [f[3] for f in lines if f[1].endswith(ours) and f[3] not in ("0A", "06")]

    def get(self, target="/", method="GET", **kw):
        """One request on a connection of its own, ended strictly."""
        with self.connect() as c:
            response = c.ask(target, method, **kw)
            c.finish(response)
            return response

    def signal(self, number):
        os.kill(self.master, number)

    def reload(self):
        """SIGHUP; the new configuration is in use for all who connect after this."""
        self.again(signal.SIGHUP, "reloaded")

    def again(self, number, done):
        line = "pagewise: %s\n" % done
        before = (self.output + self.messages).count(line)
        self.signal(number)
        wait_until(
            lambda: (self.output + self.messages).count(line) > before, "%r" % done
        )

    def processes(self):
        """Server processes: one, and those that finish what they had begun."""
        return children(self.master)

    def terminate(self):
        self.signal(signal.SIGTERM)

    def wait(self, patience=PATIENCE):
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("the server did not end\nstderr: " + self.messages)

    def kill(self):
        """All of its processes."""
        if self.running:
            for pid in descendants(self.process.pid):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.process.wait()

    def healthy(self):
        """It still runs and has not complained."""
        assert self.running, "the server died with %s\nstderr: %s" % (
            self.process.returncode,
            self.messages,
        )
        assert self.messages == "", self.messages

    def stop(self, codes=(0,), messages=None):
        """SIGTERM, the exit code, and what is on stderr.

        messages None: nothing; a pattern: all of it must match; True: anything but DIED.
        """
        try:
            if self.running:
                self.terminate()
            code = self.wait()
            text = self.messages
            assert code in codes, "exit code %d\nstderr: %s" % (code, text)
            assert not DIED.search(text), text
            if messages is None:
                assert text == "", text
            elif messages is not True:
                assert re.fullmatch(messages, text, re.S), text
        finally:
            self.discard()

    def discard(self):
        """However a test ends with it, what a sanitizer has said is a failure."""
        self.kill()
        self.final_output = text = self.output
        text += self.messages
        self.out.close()
        self.err.close()
        scratch.remove(self.dir)
        judge(text)


PROC = os.path.exists("/proc/self/task")  # Linux


def children(pid):
    if not PROC:
        found = subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE, check=False)
        return [int(n) for n in found.stdout.split()]
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(n) for n in f.read().split()]


def descendants(pid):
    """The process itself comes first, so that it starts no more."""
    result = [pid]
    for child in children(pid):
        result += descendants(child)
    return result


def start_time(pid):
    if not PROC:
        return -int(subprocess.check_output(["ps", "-o", "etimes=", "-p", str(pid)])), pid
    with open("/proc/%d/stat" % pid) as f:
        return int(f.read().rsplit(")", 1)[1].split()[19]), pid


@contextlib.contextmanager
def descriptors(count):
    """The limit for processes that are started here.  A preexec_fn would copy this process for each
    of them instead of vfork(2): many milliseconds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Finished:
    """A run that is expected to end by itself: -t, -V, -h, errors."""

    def __init__(self, *args, cwd=None, stdin=subprocess.DEVNULL, binary=None):
        done = subprocess.run(
            [binary or PAGEWISE] + [os.fspath(a) for a in args],
            stdin=stdin,
            capture_output=True,
            timeout=PATIENCE,
            cwd=cwd,
            check=False,
        )
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8", "replace")
        self.err = done.stderr.decode("utf-8", "replace")
        judge(self.out + self.err)


# -------------------------------------------------------------- configuration


def quote(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "{" + ", ".join(quote(v) for v in value) + "}"
    return '"%s"' % os.fspath(value).replace("\\", "\\\\").replace('"', '\\"')


def lines_of(settings, indent=""):
    return ["%s%s = %s" % (indent, key, quote(v)) for key, v in settings.items()]


def configuration(top, sites):
    """The text of a configuration file.

    sites: (name, settings, {prefix: settings}) triples.
    """
    top = {"listen": ["127.0.0.1:0"], "access_log": "off", "stall_log": 0, **top}
    if tls.ON:
        top["listen"] = [tls.listen_text(text) for text in top["listen"]]
        if any(not text.startswith("unix:") for text in top["listen"]):
            top.setdefault("certificate", [tls.PAIRS.for_user(None, tls.names_of(sites))])
        for text in top["listen"]:
            tls.note_port(text)
        for settings in [top] + [settings for _, settings, _ in sites]:
            tls.check_path(settings.get("send_path"))
    if top.get("send_path") == "hot":
        top["send_path"] = "nodiskio"
    elif "send_path" in top:
        top.setdefault("hot_set", 0)
    out = lines_of(top)
    for name, settings, locations in sites:
        out.append("site %s {" % quote(name))
        out += lines_of(settings, "\t")
        for prefix, inner in locations.items():
            out.append("\tlocation %s {" % quote(prefix))
            out += lines_of(inner, "\t\t")
            out.append("\t}")
        out.append("}")
    return "\n".join(out) + "\n"
