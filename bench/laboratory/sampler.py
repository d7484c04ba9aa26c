"""Once a second: bytes sent, CPU time, disk bytes and requests, page cache.

All but the bytes sent come from the counters of the server (limits.py).  Those are
what the loopback interface carried, with headers and requests: about one part in a
hundred.  As root the laboratory has a network of its own (host.py) and the interface to
itself; else it is that of the whole machine.
"""

import itertools
import threading
import time

from laboratory.limits import number, read

SECOND = 1.0


def sent():
    """Bytes on the loopback interface so far."""
    return number(r"^ *lo:(?: *\d+){8} *(\d+)", read("/proc/net/dev"))


def sample(counters):
    return {**counters.sample(), "sent": sent()}


def difference(before, after):
    """What was taken between two samples; cache: as it was at the end."""
    return {key: after[key] if key == "cache" else after[key] - before[key]
            for key in after}


class Sampler(threading.Thread):
    """`with Sampler(counters) as s:` then s.samples: differences to the first."""

    def __init__(self, counters, period=SECOND):
        super().__init__(daemon=True)
        self.counters, self.period = counters, period
        self.ended, self.samples, self.first = threading.Event(), [], None

    def __enter__(self):
        self.first = sample(self.counters)
        self.start()
        return self

    def __exit__(self, *exc):
        self.ended.set()
        self.join()

    def run(self):
        for turn in itertools.count(1):
            past = time.monotonic() - self.first["t"]
            if self.ended.wait(max(turn * self.period - past, 0)):
                return
            self.samples.append(difference(self.first, sample(self.counters)))


def rates(samples, key):
    """(time, per second) in the middle of each interval; cache is a level."""
    if key == "cache":
        return [(s["t"], s[key]) for s in samples]
    points = [{"t": 0, key: 0}, *samples]
    return [((a["t"] + b["t"]) / 2, (b[key] - a[key]) / (b["t"] - a["t"]))
            for a, b in zip(points, points[1:])]
