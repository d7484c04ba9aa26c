"""What our server counts by itself: /metrics of its admin listener, a Unix socket."""

import contextlib
import math
import re
import socket


def fetched(path):
    """The text, by HTTP/1.0: it ends with the connection."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as conn:
        conn.settimeout(10)
        conn.connect(path)
        conn.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        answer = b"".join(iter(lambda: conn.recv(1 << 16), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise RuntimeError(f"/metrics: {head[:100]!r}")
    return body.decode()


def histogram(text, name):
    """{upper bound: how many were not above it}, all labels together."""
    found = {}
    for bound, number in re.findall(rf'^{name}_bucket{{.*\ble="([^"]+)".*}} (\d+)$', text, re.M):
        bound = math.inf if bound == "+Inf" else float(bound)
        found[bound] = found.get(bound, 0) + int(number)
    return found


def greatest(text, name):
    """Of all labels; None without any."""
    found = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M)
    return max(map(float, found), default=None)


def sleeps(text):
    """{call: [times, seconds]} that the event loops slept, all together."""
    found = {}
    for i, name in enumerate(("pagewise_loop_sleeps_total", "pagewise_loop_asleep_seconds_total")):
        for call, value in re.findall(rf'^{name}{{.*\bcall="([^"]+)".*}} (\S+)$', text, re.M):
            found.setdefault(call, [0, 0])[i] += float(value)
    return found


def difference(before, after):
    return {bound: after[bound] - before[bound] for bound in after}


def above(found, limit):
    """How many were above the greatest bound that is not above the limit."""
    return found[math.inf] - found[max(bound for bound in found if bound <= limit)]
