"""HAProxy with a configuration of conf/haproxy, as it is shipped but for addresses and places."""

import csv
import dataclasses
import os
import re
import socket
import subprocess
import time

from laboratory import host
from laboratory.undo import spawn

CONF = os.path.join(host.TREE, "conf", "haproxy")
MODES = ("redirect", "proxy")
PATIENCE = 20  # seconds
# What belongs to an installed HAProxy: it runs here as who starts it, in the foreground.
INSTALLED = r"^    (log /dev/log local0|user haproxy|group haproxy|chroot /var/lib/haproxy)\n"


@dataclasses.dataclass(frozen=True)
class Address:
    """Of a node: plain and proxied are HOST:PORT, with and without a PROXY header; agent is
    a port."""
    plain: str
    proxied: str
    agent: int


def exactly(pattern, new, text, times):
    """Another shape of the file than the one known here is a fault, not ignored."""
    text, n = re.subn(pattern, new, text, flags=re.M)
    if n != times:
        raise RuntimeError(f"{pattern}: found {n} times, not {times}")
    return text


def shipped(mode):
    with open(os.path.join(CONF, f"{mode}.cfg"), encoding="utf-8") as f:
        return f.read()


def adapted(mode, nodes, bind, directory):
    """The shipped text for these nodes; the first four have lines, others get one each."""
    redirect = mode == "redirect"
    text = exactly(INSTALLED, "", shipped(mode), 4)
    text = exactly(r"/run/haproxy/admin\.sock mode 660", f"{directory}/runtime mode 600", text, 1)
    text = exactly(r"^    maxconn 50000$", "    maxconn 2000", text, 1)  # for few descriptors
    text = exactly(r"^    bind :80$", f"    bind {bind}", text, 1)
    text = exactly(r"^    bind 127\.0\.0\.1:8404$", f"    bind unix@{directory}/metrics", text, 1)
    if redirect:
        text = exactly(r"/etc/haproxy/popular\.map", f"{directory}/popular.map", text, 1)
    sections = 2 if redirect else 1
    port = 80 if redirect else 8081
    for n in range(4, len(nodes)):
        line = re.compile(rf"^(    server n){n}( 192\.0\.2\.1){n}(:{port}) (.*)$", re.M)
        text = line.sub(lambda m, n=n: m[0] + f"\n{m[1]}{n + 1}{m[2]}{n + 1}{m[3]} " +
                        m[4].replace(f"id {n}", f"id {n + 1}").replace(f"n{n}.", f"n{n + 1}.")
                        .replace(f"/n{n}", f"/n{n + 1}"), text)
    for n, node in enumerate(nodes, 1):
        address = node.plain if redirect else node.proxied
        text = exactly(rf"^(    server n{n}) 192\.0\.2\.1{n}:{port} (?=id)",
                       rf"\1 {address} agent-port {node.agent} ", text, 1)
        if redirect:
            text = exactly(rf"^(    server n{n}) 192\.0\.2\.1{n}:{port} (?=track)",
                           rf"\1 {address} ", text, 1)
            text = exactly(rf"redir http://n{n}\.example\.org", f"redir http://{node.plain}",
                           text, sections)
    return text


class Balancer:
    """mode: of MODES.  edit changes the text.  prefix: a command that runs it."""

    def __init__(self, mode, nodes, bind, directory, edit=lambda text: text, prefix=()):
        self.mode, self.nodes, self.bind = mode, nodes, bind
        self.directory, self.prefix = directory, list(prefix)
        self.conf = f"{directory}/{mode}.cfg"
        open(f"{directory}/popular.map", "a", encoding="utf-8").close()
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write(edit(adapted(mode, nodes, bind, directory)))

    def start(self, undo):
        with open(f"{self.directory}/haproxy.log", "ab") as log:
            self.child = spawn(undo, [*self.prefix, "haproxy", "-db", "-f", self.conf],
                               stdout=log, stderr=log)
        self.until(lambda: os.path.exists(f"{self.directory}/runtime") and self.states(),
                   "HAProxy to start")
        return self

    def stop(self):
        self.child.terminate()
        self.child.wait(PATIENCE)

    def until(self, condition, what, patience=PATIENCE):
        """Returns the seconds that it took."""
        begun = time.monotonic()
        while not self.tried(condition):
            if self.child.poll() is not None:
                raise RuntimeError(f"HAProxy ended: see {self.directory}/haproxy.log")
            if time.monotonic() > begun + patience:
                raise RuntimeError(f"waited {patience} s for {what}: {self.states()}")
            time.sleep(0.02)
        return time.monotonic() - begun

    @staticmethod
    def tried(condition):
        try:
            return condition()
        except (ConnectionError, FileNotFoundError):
            return None

    def command(self, text):
        """By the runtime socket; what was answered."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(f"{self.directory}/runtime")
            s.sendall(text.encode() + b"\n")
            with s.makefile("rb") as f:
                return f.read().decode()

    def rows(self):
        """Of "show stat", for the servers that have checks: {name: row}."""
        text = self.command("show stat").removeprefix("# ")
        return {row["svname"]: row for row in csv.DictReader(text.splitlines())
                if row["pxname"] == "nodes" and row["svname"] not in ("FRONTEND", "BACKEND")}

    def states(self):
        """{name: "UP", "DOWN", "DRAIN", "MAINT", or on the way, such as "UP 1/2"}"""
        return {name: row["status"] for name, row in self.rows().items()}

    def weights(self):
        return {name: int(row["weight"]) for name, row in self.rows().items()}

    def all_up(self):
        """Also of those that begin slowly: they have all of their weight."""
        self.until(lambda: all(state == "UP" for state in self.states().values()), "all nodes up")

    def set_state(self, name, state):
        """state: ready, drain or maint."""
        answer = self.command(f"set server nodes/{name} state {state}")
        if answer.strip():
            raise RuntimeError(f"HAProxy: {answer}")

    def spread(self, paths):
        """These are the popular paths from now on."""
        name = f"{self.directory}/popular.map"
        version = self.command(f"prepare map {name}").split(":")[-1].strip()
        for path in paths:
            self.command(f"add map @{version} {name} {path} 1")
        self.command(f"commit map @{version} {name}")


def version():
    text = subprocess.run(["haproxy", "-v"], check=True, capture_output=True, text=True).stdout
    return re.search(r"version ([^ ]+)", text)[1]
