"""The harness over TLS: with PAGEWISE_TLS in the environment each server that it starts speaks
TLS on its addresses, and its clients do.  1.2: that version, else the newest one.

A client's end is a close_notify and then that of its socket; a server's end without one is a
reset (Truncated): a body may have been cut.
"""

import functools
import os
import re
import select
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading

import pytest

ON = "PAGEWISE_TLS" in os.environ
VERSION = os.environ.get("PAGEWISE_TLS")
SCHEME = "https" if ON else "http"

REFUSED = ("uring", "ring", "splice", "mlock")  # send paths: they send files, not memory
TICKETS = 1  # that a server of TLS 1.3 sends after a full handshake

# In seconds: a server that is full, or stopped, does not take part in a handshake, nor in the next.
SOON, AT_ONCE = 1.0, 0.01
away = set()  # ports of such servers

# Ports of servers that speak TLS.
PORTS = set()


class Truncated(ConnectionResetError):
    """The connection has ended without a close_notify."""


# --------------------------------------------------------------- certificates

KINDS = {
    "ecdsa": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "rsa": ["-newkey", "rsa:2048"],
}


def make_pair(path, names=("localhost",), kind="ecdsa", more=()):
    """A certificate that signs itself and its key, both in the file."""
    path, key = str(path), str(path) + ".key"
    names = ",".join(n if n.startswith("IP:") else "DNS:" + n for n in names)
    subprocess.run(
        ["openssl", "req", "-x509", *KINDS[kind], "-nodes", "-days", "30", "-keyout", key,
         "-out", path, "-subj", "/CN=test", "-addext", "subjectAltName=" + names,
         "-addext", "extendedKeyUsage=serverAuth", *more],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    with open(key) as of_key, open(path, "a") as whole:
        whole.write(of_key.read())
    os.unlink(key)
    os.chmod(path, 0o600)
    return path


class Pairs:
    """One for each user that starts servers, and the names of its sites; made when it is asked for."""

    def __init__(self):
        self.dir, self.paths = None, {}

    def for_user(self, user, names=()):
        if self.dir is None:
            self.dir = tempfile.mkdtemp(prefix="pagewise-tls-")
            os.chmod(self.dir, 0o755)
        names = tuple(sorted({"localhost", *names}))
        if (user, names) not in self.paths:
            path = os.path.join(self.dir, "%d.pem" % len(self.paths))
            self.paths[user, names] = make_pair(path, names)
            if user:
                shutil.chown(path, user)
        return self.paths[user, names]

    def conf(self, user):
        """A configuration that only says which certificate there is."""
        path = self.for_user(user)
        conf = path + ".conf"
        if not os.path.exists(conf):
            with open(conf, "w") as f:
                f.write('certificate = {"%s"}\n' % path)
        return conf

    def remove(self):
        if self.dir is not None:
            shutil.rmtree(self.dir, ignore_errors=True)
            self.dir = None


PAIRS = Pairs()


# -------------------------------------------------------------------- servers


def names_of(sites):
    """That a certificate can have: clients here ask for any host on a connection."""
    names = {name for _, settings, _ in sites for name in settings.get("names", ())}
    return {name for name in names if re.fullmatch(r"(\*\.)?[a-z0-9.-]+", name)}


def listen_text(text):
    """As a listen address is written, with the word; those of Unix sockets stay as they are."""
    plain = not ON or text.startswith("unix:") or "tls" in text.split()
    return text if plain else text + " tls"


def check_path(path):
    """The other ones are tested without TLS alone."""
    if ON and path in REFUSED:
        pytest.skip("plain: send_path = %s cannot send over TLS" % path)


def note_port(text):
    """Of an address of a configuration: it may come with a reload."""
    words = text.split()
    port = words[0].rpartition(":")[2]
    if port.isdigit() and int(port) != 0:
        (PORTS.add if "tls" in words[1:] else PORTS.discard)(int(port))


def arguments(args, user):
    """Of a server: with TLS, if it has no configuration of its own."""
    if not ON or "-c" in args:
        return args
    listens = [i for i, word in enumerate(args) if word == "--listen"]
    if all(args[i + 1].startswith("unix:") for i in listens):
        return args
    args = list(args)
    if "--send-path" in args:
        check_path(args[args.index("--send-path") + 1])
    for i in listens:
        args[i + 1] = listen_text(args[i + 1])
    return ["-c", PAIRS.conf(user)] + args


# -------------------------------------------------------------------- clients


def any_context():
    """Of a client that believes every server, and no end without a close_notify."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # Python sets it
    return context


@functools.cache
def client_context(version=VERSION):
    context = any_context()
    if version == "1.2":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


class Socket:
    """A socket with TLS, that behaves as one without: it reads no more from the kernel than it
    is asked for and a record needs, its shutdown of one side leaves the other side open,
    and nothing is read when it is closed.
    """

    def __init__(self, raw, context=None, name=None, tickets=TICKETS):
        self.raw = raw
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = (context or client_context()).wrap_bio(
            self.incoming, self.outgoing, server_hostname=name)
        self.plain = bytearray()  # read ahead, see shutdown()
        self.over = False  # its close_notify has come
        self.tickets = tickets
        self.opened = False
        self.unsent = bytearray()  # given to it before it was open
        self.error = None  # of the handshake, for whoever sends or receives
        # One thread may send while another one receives: what is encrypted goes out in its order.
        self.session, self.sending = threading.Lock(), threading.Lock()

    def __getattr__(self, name):
        return getattr(self.raw, name)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.raw.close()

    def flush(self):
        """Unless another thread is sending: it takes this with it, or the next one does."""
        if self.outgoing.pending and self.sending.acquire(blocking=False):
            try:
                self.give()
            finally:
                self.sending.release()

    def give(self, plain=b""):
        with self.session:
            if plain:
                self.tls.write(plain)
            data = self.outgoing.read()
        self.raw.sendall(data)

    def from_kernel(self, size):
        """What was received is acknowledged at once: a server that makes room looks at that."""
        data = self.raw.recv(size)
        if hasattr(socket, "TCP_QUICKACK"):
            self.raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return data

    def pull(self, size=1 << 14):
        """More from the kernel; False: its end."""
        data = self.from_kernel(size)
        if data:
            self.incoming.write(data)
        else:
            self.incoming.write_eof()
        return bool(data)

    def shake(self):
        """A step of the handshake; True: it is over for the client."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            self.flush()
            return False
        self.flush()
        return True

    def shake_into(self, send):
        """The first step, whose message is given to send()."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            send(self.outgoing.read())
            return False
        return True

    def begin(self, seconds):
        """The handshake, if the server takes part in it within that time; else it goes on when
        something is to be received.  Errors, too, are told then, as of a socket without TLS.
        """
        try:
            while not self.shake():
                if not select.select([self.raw], [], [], seconds)[0]:
                    return self
                if not self.pull():
                    raise Truncated("in the handshake")
            self.finish_opening()
        except (OSError, ssl.SSLError) as error:
            self.error = error
        return self

    def open(self):
        while self.error is None and not self.opened:
            self.begin(self.raw.gettimeout())
            if self.error is None and not self.opened:
                raise TimeoutError("timed out")
        if self.error is not None:
            raise self.error
        return self

    def finish_opening(self):
        """Until the server has said that it is over for it, too."""
        if self.tls.version() == "TLSv1.3":
            self.await_records(self.tickets)
        self.opened = True
        if self.unsent:
            self.tls.write(self.unsent)
            self.unsent.clear()
            self.flush()

    def exactly(self, size):
        """So many bytes from the kernel."""
        data = b""
        while len(data) < size:
            got = self.from_kernel(size - len(data))
            if not got:
                raise Truncated("in place of a ticket")
            data += got
        self.incoming.write(data)
        return data

    def await_records(self, count):
        """Tickets come after the handshake: who closes with them unread resets."""
        for _ in range(count):
            self.exactly(int.from_bytes(self.exactly(5)[3:], "big"))

    def read(self, size):
        """Plaintext, b"" at the end, None: more is needed from the kernel."""
        if self.over:
            return b""
        try:
            with self.session:
                data = self.tls.read(size)
        except ssl.SSLWantReadError:
            self.flush()
            return None
        except ssl.SSLZeroReturnError:
            data = b""
        except ssl.SSLError as error:
            if error.reason == "UNEXPECTED_EOF_WHILE_READING":
                raise Truncated("no close_notify") from None
            raise
        self.over = not data
        return data

    def recv(self, size=1 << 18, flags=0):
        assert flags == 0
        if self.plain:
            data = bytes(self.plain[:size])
            del self.plain[:size]
            return data
        if self.over:
            return b""
        self.open()
        while (data := self.read(size)) is None:
            self.pull(size)
        if not data and self.raw.recv(1):
            raise ssl.SSLError("bytes behind a close_notify")
        return data

    def pending(self):
        """Something to read, or its end, without the kernel; what has come is looked at."""
        if not self.opened:
            self.begin(0)
            if self.error is not None:
                return True
            if not self.opened:
                return False
        timeout = self.raw.gettimeout()
        self.raw.settimeout(0)
        try:
            while not self.plain and not self.over:
                data = self.read(1 << 14)
                if data is None:
                    self.pull()
                else:
                    self.plain += data
        except BlockingIOError:
            return False
        finally:
            self.raw.settimeout(timeout)
        return True

    def sendall(self, data):
        if self.error is not None:
            raise self.error
        if self.opened:
            with self.sending:
                self.give(data)
        else:
            self.unsent += data

    def send(self, data):
        self.sendall(data)
        return len(data)

    def shutdown(self, how):
        """No more is sent; what comes is read on: whatever has come before has to be taken first."""
        if how != socket.SHUT_RD and self.opened and not self.over:
            while (data := self.read(1 << 14)) is not None and data:
                self.plain += data
            try:
                self.tls.unwrap()
            except ssl.SSLWantReadError:
                pass
            self.flush()
        self.raw.shutdown(how)


def wrap(sock, address, context=None):
    """A connected socket, as the server at this address wants it."""
    if isinstance(address, str) or address[1] not in PORTS:
        return sock
    wrapped = Socket(sock, context).begin(AT_ONCE if address[1] in away else SOON)
    (away.discard if wrapped.opened else away.add)(address[1])
    return wrapped


def connect(address, timeout=None, source=None):
    """As socket.create_connection."""
    return wrap(socket.create_connection(address, timeout, source), address)
