"""Ports for servers that are told where to listen."""

import contextlib
import random
import socket

import pytest


@pytest.fixture
def free_port():
    """Ports that nobody else gets while the test runs: each has a socket that does not listen, so
    that no other program gets it, and one of UDP without SO_REUSEADDR, so that no other test does.
    None is one that the kernel gives to another address of this machine."""
    held = []
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        first = int(f.read().split()[0])

    def hold():
        for port in random.sample(range(first - 10000, first), 100):
            both = [socket.socket(), socket.socket(type=socket.SOCK_DGRAM)]
            both[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.extend(both)
            with contextlib.suppress(OSError):
                for s in both:
                    s.bind(("0.0.0.0", port))
                return port
            for s in both:
                s.close()
        raise AssertionError("no free port below %d" % first)

    yield hold
    for s in held:
        s.close()
