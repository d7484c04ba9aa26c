"""A client of HTTP/2 that sees its streams, on the library h2: tests say what goes and when windows open."""

import socket
import ssl

import h2.errors
import h2.events
import h2.exceptions

import http2
import tls
from harness import PATIENCE

MOST = http2.MOST


class Answer:
    def __init__(self):
        self.status, self.fields, self.body = 0, {}, bytearray()
        self.over = False
        self.error = None  # of a reset
        self.trailing = 0  # frames of DATA, also empty ones

    @property
    def done(self):
        return self.over or self.error is not None

    def __repr__(self):
        return "<%d %r, %d bytes, over %s, error %s>" % (
            self.status, self.fields, len(self.body), self.over, self.error)


class Client:
    """auto: windows are opened again as bytes come.  log: what came, in its order: (stream, what)."""

    def __init__(self, server, window=1 << 20, connection=1 << 20, auto=True, rcvbuf=None, over_tls=False,
                 address=None, before=b"", patience=PATIENCE):
        self.address = address or server.address
        self.sock = socket.socket()
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(patience)
        self.sock.connect(self.address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.scheme = "http"
        if before:
            self.sock.sendall(before)
        if over_tls:
            self.scheme = "https"
            self.sock = http2.alpn_context("h2", "http/1.1").wrap_socket(self.sock)
            assert self.sock.selected_alpn_protocol() == "h2"
        self.auto = auto
        self.answers, self.log = {}, []
        self.goaways = []  # (last stream, error)
        self.ended = False
        self.acked = self.pings = 0
        self.conn = http2.client(window)
        self.conn.initiate_connection()
        if connection > 65535:
            self.conn.increment_flow_control_window(connection - 65535)
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def flush(self):
        data = self.conn.data_to_send()
        if data:
            self.sock.sendall(data)

    def head(self, target, method, host, fields, pseudo=()):
        base = [(":method", method), (":scheme", self.scheme), (":authority", host), (":path", target)]
        return list(pseudo or base) + list(fields)

    def begin(self, target="/", method="GET", host="localhost", fields=(), end=True, pseudo=()):
        """A request: its stream."""
        stream = self.conn.get_next_available_stream_id()
        self.answers[stream] = Answer()
        self.conn.send_headers(stream, self.head(target, method, host, fields, pseudo), end_stream=end)
        self.flush()
        return stream

    def data(self, stream, data, end=False):
        self.conn.send_data(stream, data, end_stream=end)
        self.flush()

    def open_window(self, by, stream=None):
        self.conn.increment_flow_control_window(by, stream)
        self.flush()

    def reset(self, stream, error=h2.errors.ErrorCodes.CANCEL):
        self.conn.reset_stream(stream, error)
        self.flush()

    def take(self, event):
        stream = getattr(event, "stream_id", None)
        answer = self.answers.get(stream)
        if isinstance(event, h2.events.ResponseReceived):
            answer.status = int(dict(event.headers)[b":status"])
            names = [n for n, _ in event.headers]
            assert len(set(names)) == len(names), event.headers
            answer.fields = {n.decode(): v.decode() for n, v in event.headers}
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data
            answer.trailing += 1
            if self.auto and event.flow_controlled_length:
                self.conn.acknowledge_received_data(event.flow_controlled_length, stream)
        elif isinstance(event, h2.events.StreamEnded):
            answer.over = True
        elif isinstance(event, h2.events.StreamReset):
            answer.error = int(event.error_code)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaways.append((event.last_stream_id, int(event.error_code)))
        elif isinstance(event, h2.events.SettingsAcknowledged):
            self.acked += 1
        elif isinstance(event, h2.events.PingAckReceived):
            self.pings += 1
        self.log.append((stream, type(event).__name__))

    def receive(self):
        """One recv; False: the server's end."""
        try:
            data = self.sock.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            self.ended = True
            return False
        for event in self.conn.receive_data(data):
            self.take(event)
        self.flush()
        return True

    def until(self, condition, what="something"):
        while not condition():
            if self.ended or not self.receive():
                if condition():
                    return
                raise AssertionError("the connection ended before " + what)

    def answer(self, stream):
        self.until(lambda: self.answers[stream].done, "stream %d did" % stream)
        return self.answers[stream]

    def ask(self, target="/", method="GET", **kw):
        return self.answer(self.begin(target, method, **kw))

    def ping(self):
        """What was sent before has been read by the server, and what it said to that is here."""
        self.conn.ping(b"12345678")
        self.flush()
        before = self.pings
        self.until(lambda: self.pings > before, "a PING was answered")

    def end(self):
        """Until the server's end."""
        while not self.ended:
            self.receive()
        return self.goaways[-1] if self.goaways else None
