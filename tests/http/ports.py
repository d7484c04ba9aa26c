"""Ports for servers that are told where to listen."""

import random
import socket

import pytest


@pytest.fixture
def free_port():
    """Ports that nobody else gets while the test runs: each has a socket that does not listen,
    and none is one that the kernel gives to another address of this machine."""
    held = []
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        first = int(f.read().split()[0])

    def hold():
        for port in random.sample(range(first - 10000, first), 100):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("0.0.0.0", port))
            except OSError:
                s.close()
                continue
            held.append(s)
            return port
        raise AssertionError("no free port below %d" % first)

    yield hold
    for s in held:
        s.close()
