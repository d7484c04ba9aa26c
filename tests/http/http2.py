"""The harness over HTTP/2: with PAGEWISE_HTTP2 in the environment its connections to servers are
of HTTP/2, by prior knowledge, or over TLS (PAGEWISE_TLS) by ALPN.

A test writes and reads the text of HTTP/1 as ever.  Each request of it is a stream of one
connection, all of them at once; the answers come back as text, in the order of the requests.  What
ends the connection for HTTP/2 ends it for the test: a GOAWAY is a Connection: close in the last
answer, a stream that was reset a connection that was.  A request that HTTP/2 cannot carry, because
it is about the framing of HTTP/1, skips its test: Unspeakable.

PAGEWISE_HTTP2=N: streams begin with a window of N bytes.
"""

import collections
import http
import os
import re
import socket
import threading

import pytest

try:
    import h2.config
    import h2.connection
    import h2.errors
    import h2.events
    import h2.exceptions
    import h2.settings
except ImportError:  # only those tests miss it that need it
    h2 = None

import tls

ON = "PAGEWISE_HTTP2" in os.environ
LOGGED = "HTTP/2.0" if ON else "HTTP/1.1"  # the version in the log
MOST = (1 << 31) - 1  # bytes of a window: RFC 9113, 6.9.1
WINDOW = int(os.environ.get("PAGEWISE_HTTP2") or 0)
WINDOW = WINDOW if WINDOW > 1 else 1 << 24
TOGETHER = 100  # streams at most: the server may not have said yet how many it wants

# Addresses of servers that speak HTTP/2.
ADDRESSES = set()


def alpn_context(*protocols):
    """Of a client of TLS that asks for these."""
    context = tls.any_context()
    if tls.VERSION == "1.2":
        context.maximum_version = tls.ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(protocols)
    return context


# ---------------------------------------------------------------- HTTP/1's text

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
FIELD = re.compile(rb"(" + TOKEN + rb"): *([^\x00-\x08\x0a-\x1f\x7f]*?) *\Z")
LINE = re.compile(rb"(" + TOKEN + rb") ([\x21-\x7e]+) HTTP/1\.1\Z")
HOST = re.compile(rb"[0-9A-Za-z.\-_~%!$&'()*+,;=:@\[\]]+\Z")
ABSOLUTE = re.compile(rb"(?i)(https?)://([^/?#]*)(.*)\Z")
NAMES = {b"etag": b"ETag", b"www-authenticate": b"WWW-Authenticate"}


class Unspeakable(Exception):
    """What is to be sent has no counterpart in HTTP/2."""


class Request:
    """The head of a request of HTTP/1, as one of HTTP/2.  RFC 9113, 8.2.2 and 8.3."""

    def __init__(self, head, scheme):
        first, *lines = head.split(b"\r\n")
        match = LINE.match(first)
        if not match or b"\r" in head.replace(b"\r\n", b"") or b"\n" in head.replace(b"\r\n", b""):
            raise Unspeakable("a request's line that is HTTP/1's own")
        self.method, self.target = match.groups()
        self.fields, self.hosts = [], []
        self.closes, self.length, self.lengths = False, 0, 0
        for line in lines:
            self.take(FIELD.match(line))
        self.pseudo = self.pseudo_fields(scheme)

    def take(self, match):
        if not match or match.group(2).strip(b"\t") != match.group(2):
            raise Unspeakable("a field's line that is HTTP/1's own")
        name, value = match.group(1).lower(), match.group(2)
        if name == b"host":
            self.hosts.append(value)
        elif name == b"connection" and value.lower() in (b"close", b"keep-alive"):
            self.closes |= value.lower() == b"close"
        elif name in (b"connection", b"keep-alive", b"proxy-connection", b"upgrade",
                      b"transfer-encoding", b"te"):
            raise Unspeakable(name.decode() + " is HTTP/1's own")
        else:
            self.fields.append((name, value))
            if name == b"content-length":
                self.note_length(value)

    def note_length(self, value):
        if self.lengths or not re.match(rb"[0-9]{1,15}\Z", value):
            raise Unspeakable("a length of HTTP/1's framing")
        self.lengths, self.length = 1, int(value)

    def pseudo_fields(self, scheme):
        if len(self.hosts) != 1 or not HOST.match(self.hosts[0]):
            raise Unspeakable("no Host, more than one, or a malformed one")
        authority, path = self.hosts[0], self.target
        if self.method == b"CONNECT":
            if not HOST.match(path):
                raise Unspeakable("a malformed authority")
            return [(b":method", self.method), (b":authority", path)]
        absolute = ABSOLUTE.match(path)
        if absolute:
            named, authority, path = absolute.groups()
            if not HOST.match(authority) or named.lower() != scheme:
                raise Unspeakable("another scheme, or a malformed authority")
            path = path if path.startswith(b"/") else b"/" + path
        if not path.startswith(b"/") and (path, self.method) != (b"*", b"OPTIONS"):
            raise Unspeakable("a target that is no path")
        return [(b":method", self.method), (b":scheme", scheme),
                (b":authority", authority), (b":path", path)]


def title(name):
    return NAMES.get(name) or b"-".join(part.capitalize() for part in name.split(b"-"))


def status_line(status):
    return b"HTTP/1.1 %d %s" % (status, http.HTTPStatus(status).phrase.encode())


class Answer:
    """Of one stream, as it comes."""

    def __init__(self, request):
        self.request = request
        self.stream = None  # its number, once it was begun
        self.to_send = request.length  # bytes of the request's body
        self.body_of_request = bytearray()
        self.status, self.fields = 0, []
        self.text = bytearray()  # of its body, encoded
        self.head_given = False
        self.closes = request.closes
        self.over = False

    @property
    def bodyless(self):
        return self.request.method == b"HEAD" or self.status in (204, 304)

    @property
    def chunked(self):
        return b"content-length" not in dict(self.fields) and self.status not in (204, 304)

    def head(self, fields):
        self.fields = [(name, value) for name, value in fields if not name.startswith(b":")]
        self.status = int(dict(fields)[b":status"])
        assert not {b"connection", b"transfer-encoding", b"keep-alive"} & dict(fields).keys(), fields

    def data(self, data):
        assert not (self.bodyless and data), "a body where there is none: %r" % data[:100]
        if data:
            self.text += b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data

    def end(self):
        self.over = True
        if self.chunked and not self.bodyless:
            self.text += b"0\r\n\r\n"

    def head_text(self):
        lines = [status_line(self.status)] + [
            title(name) + b": " + value for name, value in self.fields]
        if self.chunked:
            lines.append(b"Transfer-Encoding: chunked")
        if self.closes:
            lines.append(b"Connection: close")
        return b"\r\n".join(lines + [b"", b""])


# --------------------------------------------------------------------- frames


def client(window=WINDOW):
    """The state of a client's side; its preface is not sent yet."""
    if h2 is None:
        pytest.skip("no Python module h2")
    conn = h2.connection.H2Connection(h2.config.H2Configuration(
        client_side=True, header_encoding=False, validate_outbound_headers=False,
        normalize_outbound_headers=False))
    codes = h2.settings.SettingCodes
    conn.local_settings = h2.settings.Settings(client=True, initial_values={
        codes.ENABLE_PUSH: 0, codes.INITIAL_WINDOW_SIZE: window})
    # What the library does not know: streams that have begun go on behind a GOAWAY (6.8).
    state = h2.connection.ConnectionState.CLIENT_OPEN
    machine = conn.state_machine
    machine._transitions = dict(machine._transitions)
    machine._transitions[state, h2.connection.ConnectionInputs.RECV_GOAWAY] = (None, state)
    return conn


class Socket:
    """A connected socket, of TLS or not, to which the text of HTTP/1 is given and from which it comes.

    One thread may send while another one receives.
    """

    def __init__(self, raw):
        self.raw = raw
        self.scheme = b"https" if isinstance(raw, tls.Socket) else b"http"
        self.lock = threading.RLock()
        self.conn = None  # with the first request
        self.unsent = bytearray()  # text that is no whole request yet
        self.uploading = None  # whose body comes next in the text
        self.waiting = collections.deque()  # of the answers, those for which no stream was begun
        self.answers = collections.deque()  # in the order of requests
        self.streams = {}
        self.text = bytearray()
        self.last = None  # stream that the server will answer
        self.refused = 0  # requests behind it
        self.draining = False
        self.half_closed = False  # the test sends no more
        self.ending = False  # this side of the socket is closed
        self.end = None  # b"", or what is raised

    def __getattr__(self, name):
        return getattr(self.raw, name)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.raw.close()

    # ------------------------------------------------------------- what goes

    def flush(self):
        if self.conn is not None and (data := self.conn.data_to_send()) and not self.ending:
            self.raw.sendall(data)

    def sendall(self, data):
        with self.lock:
            if self.ending:
                self.refused += 1
                raise BrokenPipeError("Broken pipe: the connection of HTTP/2 has ended")
            self.unsent += data
            while self.take_body() or self.take_head():
                pass
            self.go_on()
            self.flush()

    def send(self, data):
        self.sendall(data)
        return len(data)

    def take_body(self):
        answer = self.uploading
        if answer is None or not self.unsent:
            return False
        size = answer.to_send - len(answer.body_of_request)
        answer.body_of_request += self.unsent[:size]
        del self.unsent[:size]
        if len(answer.body_of_request) == answer.to_send:
            self.uploading = None
        return True

    def take_head(self):
        while self.unsent.startswith(b"\r\n"):
            del self.unsent[:2]
        at = self.unsent.find(b"\r\n\r\n")
        if self.uploading is not None or at < 0:
            return False
        head = bytes(self.unsent[:at])
        del self.unsent[:at + 4]
        try:
            answer = Answer(Request(head, self.scheme))
        except Unspeakable as why:
            pytest.skip("HTTP/1: %s" % why)
        # Nothing is answered behind one that ends the connection.
        if not any(a.closes for a in self.answers):
            self.answers.append(answer)
            self.waiting.append(answer)
        if answer.to_send:
            self.uploading = answer
        return True

    def begin(self):
        if self.conn is None:
            self.conn = client()
            self.conn.initiate_connection()
            self.conn.increment_flow_control_window(MOST - 65535)

    def go_on(self):
        """Streams for which there is room, and bodies."""
        while self.waiting and self.last is None:
            self.begin()
            if len(self.streams) >= min(self.conn.remote_settings.max_concurrent_streams, TOGETHER):
                break
            answer = self.waiting.popleft()
            answer.stream = self.conn.get_next_available_stream_id()
            self.streams[answer.stream] = answer
            self.conn.send_headers(
                answer.stream, answer.request.pseudo + answer.request.fields,
                end_stream=not answer.to_send)
        for answer in list(self.streams.values()):
            self.upload(answer)

    def upload(self, answer):
        while answer.to_send and answer.body_of_request:
            size = min(len(answer.body_of_request), self.conn.max_outbound_frame_size,
                       self.conn.local_flow_control_window(answer.stream))
            if size == 0:
                break
            data = bytes(answer.body_of_request[:size])
            del answer.body_of_request[:size]
            answer.to_send -= size
            self.conn.send_data(answer.stream, data, end_stream=not answer.to_send)

    def shutdown(self, how):
        """No more is sent; answers come, and only then the socket's side is closed."""
        with self.lock:
            if self.unsent or self.uploading:
                pytest.skip("HTTP/1: the client's end within a request")
            self.half_closed = True
            if not self.answers:
                self.finish()

    def finish(self):
        """The client's end, in order."""
        if self.ending:
            return
        try:
            if self.conn is not None:
                self.conn.close_connection()
                self.flush()
            self.raw.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server was first
        self.ending = True

    # ------------------------------------------------------------ what comes

    def feed(self, data):
        """From the socket; b"" is its end."""
        if not data:
            self.end = b"" if self.end is None else self.end
            return
        if self.conn is None:
            self.begin()
        try:
            events = self.conn.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            if self.ending and "ConnectionState.CLOSED" in str(error):
                return  # it was on its way when we said the end
            raise AssertionError("the server's frames: %r" % error) from error
        for event in events:
            self.take(event)
        self.go_on()
        self.flush()

    def take(self, event):
        if isinstance(event, h2.events.ConnectionTerminated):
            self.goaway(event)
        answer = self.streams.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.DataReceived):
            self.conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if answer:
                answer.data(event.data)
        elif answer is None:
            return
        elif isinstance(event, h2.events.ResponseReceived):
            answer.head(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            answer.end()
            if not answer.to_send:
                del self.streams[event.stream_id]
        elif isinstance(event, h2.events.StreamReset):
            self.reset(answer, event)

    def reset(self, answer, event):
        del self.streams[answer.stream]
        if not answer.over:
            self.cut(answer, "the stream was reset: %s" % event.error_code)
            return
        # The rest of its body is not wanted: HTTP/1 closes for that.
        assert event.error_code == h2.errors.ErrorCodes.NO_ERROR, event
        answer.closes, answer.to_send = True, 0

    def cut(self, answer, why):
        """It and what is behind it are not answered any more."""
        answer.over = why
        if answer in self.answers:
            while self.answers[-1] is not answer:
                self.streams.pop(self.answers.pop().stream, None)

    def goaway(self, event):
        if event.error_code != h2.errors.ErrorCodes.NO_ERROR:
            self.end = ConnectionResetError("GOAWAY: %s" % event.error_code)
        self.draining = True
        if event.last_stream_id == MOST:
            return
        self.last = event.last_stream_id
        while self.answers and (self.answers[-1].stream or MOST) > self.last:
            self.streams.pop(self.answers.pop().stream, None)
            self.refused += 1

    def hand_on(self):
        """What the test may read: the answer that is first."""
        while self.answers:
            answer = self.answers[0]
            done = answer.over is True
            if not answer.head_given:
                # Whether the rest of a body is wanted is said at its end.
                if not answer.status or (answer.to_send and not answer.over):
                    if answer.over and not done:
                        self.end = ConnectionResetError(answer.over)
                    return
                answer.closes |= (self.draining and len(self.answers) == 1) or bool(answer.to_send)
                self.text += answer.head_text()
                answer.head_given = True
            self.text += answer.text
            answer.text.clear()
            if not answer.over:
                return
            if not done:
                self.end = ConnectionResetError(answer.over)
                return
            self.answers.popleft()
            if answer.closes:
                self.answers.clear()
                self.half_closed = True
        if self.half_closed or self.draining:
            self.finish()

    def ready(self):
        """There is something to read, or an end."""
        with self.lock:
            self.hand_on()
            return bool(self.text) or self.end is not None

    def from_kernel(self, size):
        if isinstance(self.raw, tls.Socket) and not self.raw.pending():
            raise BlockingIOError
        return self.raw.recv(size)

    def pending(self):
        """The same, without waiting; what has come is looked at."""
        timeout = self.raw.gettimeout()
        try:
            while not self.ready():
                self.raw.settimeout(0)
                data = self.from_kernel(1 << 16)
                self.raw.settimeout(timeout)
                with self.lock:
                    self.feed(data)
        except BlockingIOError:
            return False
        except OSError as error:
            self.end = error
        finally:
            self.raw.settimeout(timeout)
        return True

    def recv(self, size=1 << 18, flags=0):
        assert flags == 0
        while not self.ready():
            if self.unsent and not self.answers:
                pytest.skip("HTTP/1: an answer to a part of a request")
            data = self.raw.recv(size)
            with self.lock:
                self.feed(data)
        if not self.text:
            if self.end:
                raise self.end
            return b""
        data = bytes(self.text[:size])
        del self.text[:size]
        return data


def wrap(sock, address):
    """A connected socket, as the server at this address wants it; context() for TLS."""
    return Socket(sock) if ON and address in ADDRESSES else sock


def context(address):
    """For TLS to this address: None is the one that asks for nothing."""
    return alpn_context("h2") if ON and address in ADDRESSES else None
