"""The load generators, and a server that does what a test tells it.

Run as a program (URL is replaced in the command):
    loadgen.py FIRST_PORT LAST_PORT COMMAND ...
runs a command against a server in a network namespace of its own, in which an
address has only that many ports.
"""

import collections
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading

TREE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PROBE = os.environ.get("PROBE", os.path.join(TREE, "build/asan/bench/probe"))
SLOW = os.environ.get("SLOW", os.path.join(TREE, "build/asan/bench/slow"))
PATIENCE = 60


def ok(body=b"hello", status="200 OK", fields=""):
    head = "HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n" % (status, len(body), fields)
    return head.encode() + body


class Server:
    """A thread for each connection.  answer(server, conn, path) sends what it
    likes; if it returns False the connection is closed.  context: of TLS."""

    def __init__(self, answer, context=None):
        self.answer, self.context = answer, context
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.paths, self.ranges, self.accepted, self.sent = [], [], 0, 0
        self.conns = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = "http%s://127.0.0.1:%d" % ("s" if context else "", self.listener.getsockname()[1])
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.done.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for conn in self.conns:
            try:
                conn.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.accepted += 1
            self.conns.append(conn)
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        try:
            if self.context:
                conn = self.context.wrap_socket(conn, server_side=True)
                self.conns.append(conn)
            with conn, conn.makefile("rb") as requests:
                while True:
                    line = requests.readline()
                    if not line:
                        return
                    ranges = []
                    while (field := requests.readline()) not in (b"\r\n", b""):
                        if field.startswith(b"Range: "):
                            ranges.append(field[7:].strip().decode())
                    path = line.split()[1].decode()
                    with self.lock:
                        self.paths.append(path)
                        self.ranges += ranges
                    if self.answer(self, conn, path) is False:
                        conn.shutdown(socket.SHUT_RDWR)
                        return
        except OSError:
            pass

    def count(self):
        with self.lock:
            return collections.Counter(self.paths)


def run(*command, stdin=None):
    done = subprocess.run(
        [str(word) for word in command], input=stdin, text=True, timeout=PATIENCE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def lost(result):
    """Requests that failed: a connection that did is not a request."""
    return sum(n for kind, n in result["errors"].items() if kind != "connect")


def loopback_up():
    with socket.socket() as s:
        SIOCSIFFLAGS, IFF_UP = 0x8914, 1
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def main(first, last, *command):
    loopback_up()
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as f:
        f.write("%s %s" % (first, last))
    with Server(lambda server, conn, path: conn.sendall(ok())) as server:
        return subprocess.run(
            [server.url + "/" if word == "URL" else word for word in command],
            check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
