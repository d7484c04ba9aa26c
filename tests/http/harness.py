"""A fresh server for every option set, and a client that forgives nothing.

The client speaks raw sockets; its parser accepts only what a correct answer
looks like.  A server must end with the expected exit code and must not have
written to stderr, unless the test says what it expects there.
"""

import os
import re
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
from processes import children, descendants, descriptors, start_time
from responses import ProtocolError, Response

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


def wait_until(condition, what, patience=PATIENCE, pause=0.02):
    """Polls until condition() is true and returns what it returned.  A condition that takes long, such
    as a look at the metrics, is polled less often: other tests want the processor."""
    end = time.monotonic() + patience
    while True:
        begin = time.monotonic()
        result = condition()
        now = time.monotonic()
        if result:
            return result
        if now > end:
            raise AssertionError("waited in vain for " + what)
        time.sleep(max(pause, min(3 * (now - begin), 0.1)))


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


def checked(directory, text):
    """What -t says of this configuration."""
    path = directory / "p.conf"
    path.write_text(text)
    return Finished("-t", "-c", path)


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
