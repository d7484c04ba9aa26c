"""`make fleet`: HAProxy and four nodes on this machine, and the figures of docs/guides/fleet.md."""

import argparse
import contextlib
import hashlib
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

from laboratory import data, host
from laboratory.fleet import figures, net
from laboratory.fleet.balancer import Balancer, version
from laboratory.fleet.node import Node
from laboratory.limits import Limits
from laboratory.undo import Undo, catch_signals

NODES = 4
BLOCK = 1 << 20
LARGE = "/large"
READY = 2.0  # seconds


class Fleet:
    def __init__(self, undo, options):
        self.options, self.undo = options, undo
        self.machine = host.Host(options.data)
        self.targets = [f"/f/{i}" for i in range(options.memory_mib * 1024 * NODES // options.file_kib)]
        random.Random(0).shuffle(self.targets)  # popularity says nothing about names
        self.large, self.sums = LARGE, {}
        self.directory = undo.enter_context(tempfile.TemporaryDirectory(prefix="pagewise-fleet-"))
        os.chmod(self.directory, 0o755)
        self.net = net.Net(undo, self.machine)
        self.wire = self.net.host("lb", net.BALANCER)
        self.wires = [self.net.host(f"n{n}", net.node_address(n)) for n in range(1, NODES + 2)]
        self.nodes = []

    # ---------------------------------------------------------------- files

    def make_tree(self):
        """A copy for each node, which it alone has in memory.  They are removed at the end."""
        o = self.options
        os.makedirs(o.data, exist_ok=True)
        base = self.undo.enter_context(tempfile.TemporaryDirectory(prefix="fleet-", dir=o.data))
        os.chmod(base, 0o755)
        need = (o.memory_mib * NODES * (NODES + 1) << 20) + data.SPARE
        if shutil.disk_usage(base).free < need:
            raise RuntimeError(f"{o.data}: {need >> 20} MiB are needed; --data names another directory")
        self.roots = [f"{base}/n{n}" for n in range(1, NODES + 2)]
        for root in self.roots:
            os.makedirs(f"{root}/f")
        made = int(time.time()) - 10
        for target in self.targets:
            text = os.urandom(o.file_kib << 10)
            self.sums[target] = zlib.crc32(text)
            for root in self.roots:
                with open(root + target, "wb") as f:
                    f.write(text)
                os.utime(root + target, (made, made))  # or each node would have its own ETag
        self.make_large()
        for root in self.roots:
            subprocess.run(["chown", "-R", "nobody", root], check=True)
        self.forget()

    def make_large(self):
        """A few bytes of each MiB are written: the rest is a hole, and no disk is waited for."""
        sha, first = hashlib.sha256(), self.roots[0] + LARGE
        with open(first, "wb") as f:
            for i in range(self.options.download_mib):
                block = i.to_bytes(8, "big") * 512
                f.seek(i * BLOCK)
                f.write(block)
                sha.update(block + bytes(BLOCK - len(block)))
            f.truncate(self.options.download_mib * BLOCK)
        self.large_sum = sha.hexdigest()
        for root in self.roots[1:]:
            os.link(first, root + LARGE)

    def forget(self):
        self.machine.forget([root + target for root in self.roots for target in self.targets])

    # ---------------------------------------------------------------- nodes

    def make_node(self, n):
        o = self.options
        return Node(n, self.wires[n - 1], self.machine, self.roots[n - 1], self.directory,
                    Limits(read_bps=o.disk_mib << 20, memory=o.memory_mib << 20))

    @contextlib.contextmanager
    def cold_nodes(self, count):
        """In place of those that run: with nothing in memory."""
        self.stop_nodes()
        self.forget()
        self.start_nodes(count)
        yield

    def start_nodes(self, count):
        for n in range(1, count + 1):
            node = self.make_node(n)
            node.start(self.undo)
            self.nodes.append(node)

    def stop_nodes(self):
        while self.nodes:
            self.nodes.pop().stop()

    def revive(self, i):
        """A node that has ended is started again, in the same groups."""
        self.nodes[i].spawn()

    @contextlib.contextmanager
    def one_more(self):
        node = self.make_node(len(self.nodes) + 1)
        node.start(self.undo)
        self.nodes.append(node)
        try:
            yield
        finally:
            self.nodes.pop().stop()

    # ------------------------------------------------------------- balancer

    @contextlib.contextmanager
    def balancer(self, mode, edit=lambda text: text):
        with Undo() as undo:
            directory = undo.enter_context(tempfile.TemporaryDirectory(dir=self.directory))
            lb = Balancer(mode, [node.address for node in self.nodes], f"{net.BALANCER}:80",
                          directory, edit, self.wire.prefix)
            try:
                lb.start(undo)
                lb.until(lambda: all(node.child.poll() is None for node in self.nodes), "the nodes")
                lb.all_up()
                time.sleep(READY)  # agents have told their weights
                yield lb
            except RuntimeError:
                sys.stderr.write(open(f"{directory}/haproxy.log", encoding="utf-8").read()[-2000:])
                raise


def options():
    p = argparse.ArgumentParser(prog="bench/fleet", description=__doc__)
    p.add_argument("figures", nargs="*", help=f"of {', '.join(figures.ALL)}; none: all")
    p.add_argument("--data", default=host.default_data(), help="a directory on the disk")
    p.add_argument("--memory-mib", type=int, default=96, help="of each node; the tree has four times that")
    p.add_argument("--file-kib", type=int, default=256)
    p.add_argument("--disk-mib", type=int, default=40, help="a second, of each node's disk")
    p.add_argument("--exponent", type=float, default=0.8, help="of Zipf's law")
    p.add_argument("--warm-up", type=int, default=10, help="requests for each file")
    p.add_argument("--measured", type=int, default=4, help="the same")
    p.add_argument("--clients", type=int, default=8)
    p.add_argument("--seconds", type=int, default=5, help="of loads that have no end of their own")
    p.add_argument("--download-mib", type=int, default=4097)
    o = p.parse_args()
    if unknown := set(o.figures) - set(figures.ALL):
        p.error(f"no such figure: {', '.join(sorted(unknown))}")
    return o


def commit():
    done = subprocess.run(["git", "-C", host.TREE, "rev-parse", "--short", "HEAD"], check=False,
                          capture_output=True, text=True)
    return done.stdout.strip() or "no repository"


def table(rows):
    yield "| figure | measured | wanted | |"
    yield "|---|---|---|---|"
    for row in rows:
        yield (f"| {row.what} | {row.value} | {row.wanted} | "
               f"{'' if row.good is None else 'yes' if row.good else '**no**'} |")


def measure(fleet):
    rows = []
    for name in fleet.options.figures or figures.ALL:
        begun = time.monotonic()
        print(f"{name} ...", flush=True)
        for row in figures.ALL[name](fleet):
            print(f"    {row.what}: {row.value} ({row.wanted})", flush=True)
            rows.append(row)
        print(f"    {time.monotonic() - begun:.0f} s", flush=True)
    return rows


def main():
    o = options()
    catch_signals()
    begun, built = time.monotonic(), commit()
    with Undo() as undo, data.locked(o.data, os.geteuid() == 0):
        fleet = Fleet(undo, o)
        if missing := fleet.machine.missing(["root", "limits", "wrk"]):
            raise RuntimeError("; ".join(missing))
        print(f"making {len(fleet.targets)} files of {o.file_kib} KiB, {NODES + 1} times ...", flush=True)
        fleet.make_tree()
        fleet.start_nodes(NODES)
        rows = measure(fleet)
    print(f"\n{built}, {time.strftime('%Y-%m-%d')}, Linux {platform.release()}, {os.cpu_count()} cores, "
          f"HAProxy {version()}; {NODES} nodes with {o.memory_mib} MiB of memory and {o.disk_mib} MiB/s of "
          f"disk each, {len(fleet.targets)} files of {o.file_kib} KiB; {time.monotonic() - begun:.0f} s\n")
    print("\n".join(table(rows)))
    return any(row.good is False for row in rows)
