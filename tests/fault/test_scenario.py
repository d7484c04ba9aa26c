"""That what judges a server with faults can find it guilty."""

import email.utils
import os
import signal
import threading

import pytest

import scenario
import walk
from harness import PATIENCE, Connection, plain_server, wait_until

FILE = bytes(range(256)) * 8

pytestmark = pytest.mark.once


class Answer:
    """A server that gives each connection these bytes, and closes it (or not)."""

    def __init__(self, raw, close=True):
        self.listener = plain_server()
        self.address = self.listener.getsockname()
        self.raw, self.close = raw, close
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        sock, _ = self.listener.accept()
        with sock:
            sock.recv(65536)
            sock.sendall(self.raw)
            if not self.close:
                sock.recv(65536)
                sock.settimeout(PATIENCE)
                sock.recv(1)


def head(status, length, *fields):
    lines = ["HTTP/1.1 %s" % status, "Date: @now", "Content-Type: a/b", "Content-Length: %d" % length, *fields, "", ""]
    return "\r\n".join(lines).encode()


MULTI = head("206 Partial Content", 999).replace(b"a/b", b"multipart/byteranges; boundary=B")
PART = b"--B\r\nContent-Type: a/b\r\nContent-Range: bytes 8-15/2048\r\n\r\n"


def judged(raw, close=True, statuses=(200,), patience=PATIENCE):
    now = email.utils.formatdate(usegmt=True).encode()
    server = Answer(raw.replace(b"@now", now), close)
    steps = [[scenario.Step("/f", FILE, statuses=statuses)]]
    judge = scenario.Scenario.__new__(scenario.Scenario)
    judge.connect = lambda s: Connection(s.address, patience=patience, may_be_chunked=True)
    return judge.attempt(server, steps)


@pytest.mark.parametrize(
    "raw",
    [
        head("200 OK", 2048) + FILE,
        head("503 Service Unavailable", 4) + b"gone",
        head("200 OK", 2048) + FILE[:700],
        head("200 OK", 2048)[:30],
        b"",
    ],
    ids=lambda raw: "%d-bytes" % len(raw),
)
def test_a_correct_part_of_a_response_is_accepted(raw):
    judged(raw)


@pytest.mark.parametrize(
    "raw, statuses",
    [
        (head("200 OK", 2048) + FILE[1:] + b"x", (200,)),
        (head("200 OK", 2047) + FILE[:-1], (200,)),
        (head("404 Not Found", 4) + b"gone", (200,)),
        (head("200 OK", 2048) + FILE[:700] + b"x", (200,)),
        (head("200 OK", 2048) + FILE[:700] + head("500 No", 0), (200,)),
        (head("206 Partial Content", 8, "Content-Range: bytes 8-15/2048") + FILE[:8], (206,)),
        (head("206 Partial Content", 8, "Content-Range: bytes 8-15/2048") + FILE[:4], (206,)),
        (MULTI + PART + FILE[:8], (206,)),
        (b"HTTP/9", (200,)),
    ],
    ids=lambda value: "%d-bytes" % len(value) if isinstance(value, bytes) else str(value[0]),
)
def test_a_wrong_response_is_found(raw, statuses):
    with pytest.raises((scenario.Wrong, AssertionError)):
        judged(raw, statuses=statuses)


def test_an_answer_that_does_not_end_is_found():
    with pytest.raises(scenario.Wrong):
        judged(head("200 OK", 2048) + FILE[:700], close=False, patience=0.3)


def test_a_server_process_that_was_replaced_is_found(tmp_path):
    w = walk.Walk(tmp_path, send_path="nodiskio")
    try:
        w.well()
        os.kill(w.plan.shared.pid, signal.SIGKILL)
        wait_until(lambda: w.server.processes() not in ([], [w.plan.shared.pid]), "another one")
        wait_until(w.server.serving, "an answer")
        with pytest.raises(AssertionError, match="another process serves"):
            w.well()
    finally:
        w.discard()
