"""What the files were, and when: the rules by which a body is right.

The soak's driver writes a line before and after each change of a file; its clients
read them.  Times are those of CLOCK_MONOTONIC, in seconds, the same in all processes.

A state of a file (a version of it, or a size) may be seen from the moment that its
change begins until the next one has ended, and by the server's promise for a second
more.  Hence a body is right if it is, entirely, one of the states that could be seen
between a second before its request was sent and its own last byte.
"""

import functools
import hashlib
import math
import os
import random
import threading

KEPT = 1.0  # seconds for which the server may trust what it has looked up
LONGEST = 8 << 20  # bytes of a file


class Fault(AssertionError):
    """The server has not done what it must."""


@functools.lru_cache(maxsize=200)
def content(name, version, size):
    return random.Random("%s %d" % (name, version)).randbytes(size)


def stream(name):
    """Of which a file that grows and is cut in place has the first bytes."""
    return content(name, 0, LONGEST)


@functools.lru_cache(maxsize=4096)
def digest(name, version, size):
    return hashlib.sha256(content(name, version, size)).digest()


class State:
    def __init__(self, version, size, begin):
        self.version = version
        self.size = size
        self.begin = begin  # nobody sees it before
        self.end = math.inf  # nobody who looks later sees it

    def __repr__(self):
        return "%d bytes from %.3f to %.3f" % (self.size, self.begin, self.end)


class Journal:
    """The writer's end."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o644)

    def note(self, *words):
        os.write(self.fd, (" ".join(str(w) for w in words) + "\n").encode())

    def begin(self, name, version, size, now):
        self.note("begin", name, version, size, "%.6f" % now)

    def done(self, name, now):
        self.note("done", name, "%.6f" % now)

    def close(self):
        os.close(self.fd)


class History:
    """The reader's end; for all threads of a process."""

    def __init__(self, path):
        self.file = open(path, "rb", buffering=0)
        self.rest = b""
        self.states = {}
        self.lock = threading.Lock()

    def line(self, words):
        states = self.states.setdefault(words[1], [])
        if words[0] == "begin":
            states.append(State(int(words[2]), int(words[3]), float(words[4])))
        elif len(states) > 1:
            states[-2].end = float(words[2])

    def update(self):
        *lines, self.rest = (self.rest + self.file.read()).split(b"\n")
        for line in lines:
            self.line(line.decode().split())

    def visible(self, name, sent, now):
        """The states that an answer to a request of then may show."""
        with self.lock:
            self.update()
            return [s for s in self.states[name] if s.begin <= now and s.end >= sent - KEPT]


class Piece:
    """A range of a file, or all of it."""

    def __init__(self, first, data):
        self.first = first
        self.data = data


def matches(name, state, piece):
    if piece.first == 0 and len(piece.data) == state.size:
        return hashlib.sha256(piece.data).digest() == digest(name, state.version, state.size)
    return is_of(content(name, state.version, state.size), piece)


def is_of(right, piece):
    return piece.data == memoryview(right)[piece.first:piece.first + len(piece.data)]


def shown(states, name, total, pieces):
    """The version that a file of that size has, if all pieces are of it."""
    for state in states:
        if state.size == total and all(matches(name, state, p) for p in pieces):
            return state
    return None


def explain(states, name, total, pieces):
    seen = ["version %d of %d bytes" % (s.version, s.size) for s in states]
    text = "%s: %d bytes are none of: %s" % (name, total, ", ".join(seen))
    for state in states:
        for piece in pieces:
            right = memoryview(content(name, state.version, state.size))[piece.first:]
            for at, byte in enumerate(piece.data):
                if at >= len(right) or right[at] != byte:
                    text += "; not version %d from byte %d on" % (state.version, piece.first + at)
                    break
    return text


def check_version(states, name, total, pieces):
    """A file that is replaced: the state that this is."""
    state = shown(states, name, total, pieces)
    if state is None:
        raise Fault(explain(states, name, total, pieces))
    return state


def check_stretch(states, name, total, pieces):
    """A file that grows and is cut in place: all its states are the begin of one
    content, and a size between two of them may be seen.  What is cut off while it is
    sent may be read as zeros, where it was a file's; what never was cut off may not."""
    sizes = [s.size for s in states]
    low, high = min(sizes), max(sizes)
    if not low <= total <= high:
        raise Fault("%s: %d bytes are not between %d and %d" % (name, total, low, high))
    for piece in pieces:
        if not is_of(stream(name), piece):
            check_zeros(states, name, low, piece)


def check_zeros(states, name, low, piece):
    right = memoryview(stream(name))[piece.first:]
    if not was_cut(states):
        low = LONGEST
    for at, byte in enumerate(piece.data):
        if byte != right[at] and (byte != 0 or piece.first + at < low):
            raise Fault("%s: byte %d is wrong" % (name, piece.first + at))


def was_cut(states):
    return any(b.size < a.size for a, b in zip(states, states[1:]))
