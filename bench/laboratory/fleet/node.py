"""A node: pagewise with a memory and a disk of its own, in control groups."""

import os
import signal
import socket
import subprocess
import time
import urllib.request

from laboratory import host, limits
from laboratory.fleet import net
from laboratory.fleet.balancer import Address
from laboratory.limits import Cgroups, Limits
from laboratory.undo import Undo, spawn

PATIENCE = 30
BINARY = os.path.join(host.TREE, "build", "pagewise")
CONF = """workers = 1
stall_log = 0
access_log = "off"
listen = {{"{address}:80", "{address}:8081 proxy"}}
trusted_proxies = {{"{balancer}"}}
ready = "/ready"
agent = "{address}:8082"
admin = {{"{directory}/admin"}}
shutdown_timeout = 600
popular = 32
site "files" {{ root = "{root}" }}
"""


class Node:
    """n counts from 1; where: its net.Host; root: its own copy of the tree."""

    def __init__(self, n, where, machine, root, directory, allowed):
        self.n, self.name, self.where, self.machine = n, f"n{n}", where, machine
        self.root, self.directory, self.limits = root, f"{directory}/n{n}", allowed
        self.ip = net.node_address(n)
        self.address = Address(f"{self.ip}:80", f"{self.ip}:8081", 8082)
        os.makedirs(self.directory, exist_ok=True)
        self.conf = f"{self.directory}/pagewise.conf"
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write(CONF.format(address=self.ip, balancer=net.BALANCER, root=root,
                                directory=self.directory))
        self.log = f"{self.directory}/log"

    def start(self, undo):
        """With an empty memory; a node that was there before has ended."""
        self.undo = undo.enter_context(Undo())
        self.groups = Cgroups(self.undo, [self.machine.disk], self.limits, self.name)
        self.spawn()

    def spawn(self):
        with open(self.log, "ab") as log:
            self.child = spawn(self.undo, [*self.groups.prefix(), *self.where.prefix, BINARY,
                                           "-c", self.conf, "--user", "nobody"],
                               stdout=log, stderr=log)
        self.groups.child = self.child
        self.until(self.ready, "to be ready")

    def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited {PATIENCE} s for {self.name} {what}: {self.said()}")
            time.sleep(0.02)

    def said(self):
        return limits.read(self.log)[-500:]

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://{self.address.plain}/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            if self.child.poll() is not None:
                raise RuntimeError(f"{self.name} has ended: {self.said()}") from None
            return False

    def admin(self, path):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(f"{self.directory}/admin")
            s.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            with s.makefile("rb") as f:
                return f.read().decode().split("\r\n\r\n", 1)[1]

    def metric(self, name):
        return sum(float(line.split()[-1]) for line in self.admin("/metrics").splitlines()
                   if line.split("{")[0].split()[:1] == [name])

    def popular(self):
        """{path: requests}"""
        lines = [line.split() for line in self.admin("/popular.map").splitlines()]
        return {path: int(count) for path, count in lines}

    def sent(self):
        return self.metric("pagewise_sent_bytes_total")

    def order(self, word):
        """drain or undrain, as an administrator gives it."""
        subprocess.run([BINARY, word, f"{self.directory}/admin"], check=True, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL)

    def kill(self):
        """All of its processes at once, with no word to anybody."""
        self.groups.kill()

    def terminate(self):
        self.child.send_signal(signal.SIGTERM)

    def ended(self):
        return self.child.poll() is not None

    def stop(self):
        self.groups.kill()
        self.undo.close()

    def upgrade(self):
        """The program is exchanged in place."""
        with open(self.log, "rb") as log:
            log.seek(0, os.SEEK_END)
            self.child.send_signal(signal.SIGUSR2)
            said = b""

            def upgraded():
                nonlocal said
                said += log.read()
                return b"upgraded" in said
            self.until(upgraded, "to be upgraded")

    def throttle(self, read_bps):
        """Another speed of its disk, at once."""
        self.groups.limit(Limits(read_bps=read_bps))
