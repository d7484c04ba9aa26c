"""A network of its own: this process has one end of each wire, a namespace has the other.

The bridge lives in this process' own network namespace, which ends with it.  The others have
names, because programs are started in them; what a killed run has left is removed by the next.
"""

import contextlib
import os
import re
import subprocess

from laboratory import host
from laboratory.limits import read
from laboratory.undo import held

NAME = "pagewise-fleet-{}-{}"
NETWORK = "192.0.2."
CLIENT, BALANCER = NETWORK + "1", NETWORK + "10"


def node_address(n):
    """The addresses of conf/haproxy: nodes count from 1."""
    return f"{NETWORK}{10 + n}"


def ip(*words):
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True, timeout=30)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def sweep():
    """Removes namespaces whose run is no more."""
    for name, pid in re.findall(r"^(pagewise-fleet-(\d+)-\S+)", ip("netns", "list"), re.M):
        if not os.path.exists(f"/proc/{pid}"):
            ip("netns", "del", name)


class Net:
    def __init__(self, undo, machine):
        """machine: a host.Host.  Before any thread is started."""
        machine.own_network()
        if "network" in machine.lacks:
            raise RuntimeError("no network namespaces: " + machine.lacks["network"])
        self.undo = undo
        sweep()
        ip("link", "add", "switch", "type", "bridge")
        ip("addr", "add", CLIENT + "/24", "dev", "switch")
        ip("link", "set", "switch", "up")

    def host(self, label, address):
        """A namespace with this address."""
        name = NAME.format(os.getpid(), label)
        with held():
            ip("netns", "add", name)
            self.undo.callback(ip, "netns", "del", name)
        ip("link", "add", f"v-{label}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", f"v-{label}", "master", "switch", "up")
        for words in (("addr", "add", address + "/24", "dev", "eth0"), ("link", "set", "eth0", "up"),
                      ("link", "set", "lo", "up")):
            ip("-n", name, *words)
        return Host(label, name)


class Host:
    def __init__(self, label, name):
        self.label, self.prefix = label, ["ip", "netns", "exec", name]

    def carried(self):
        """Bytes in and out, frames with their heads."""
        fields = re.search(rf"^ *v-{self.label}: *(.*)", read("/proc/self/net/dev"), re.M)[1].split()
        return int(fields[0]) + int(fields[8])
