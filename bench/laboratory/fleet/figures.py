"""The figures of `make fleet`: each is measured by a function that gives rows of the table."""

import bisect
import collections
import contextlib
import hashlib
import itertools
import os
import random
import re
import subprocess
import threading
import time

from laboratory import host, limits
from laboratory.fleet.client import Broken, Connection, Load, locations
from laboratory.undo import Undo

OUT = ("DRAIN", "DOWN")  # by the agent, and then by its ready path as well
POPULAR = 32  # the paths that are spread


class Row:
    def __init__(self, what, value, wanted="said", good=None):
        self.what, self.value, self.wanted, self.good = what, value, wanted, good


def zipf(targets, exponent, n, seed):
    """n draws: the first target is the most popular one."""
    sums = list(itertools.accumulate(rank ** -exponent for rank in range(1, len(targets) + 1)))
    draw = random.Random(seed)
    return [targets[bisect.bisect(sums, draw.random() * sums[-1])] for _ in range(n)]


def endless(targets, exponent, seed):
    while True:
        seed += 1
        yield from zipf(targets, exponent, 5000, seed)


def percent(part):
    return f"{part * 100:.2f} %"


def taken(load, what):
    """A load that must not have failed."""
    if load.count("failed"):
        raise RuntimeError(f"{what}: {load.failures()[:3]}")
    return load


def asked(fleet, lb, targets, what, times=1):
    load = Load(lb.bind, fleet.sums, targets, times * fleet.options.clients)
    with load:
        load.join()
    return taken(load, what)


# ------------------------------------------------------------------ memory


def disk_share(fleet, mode, edit):
    """Disk bytes per byte served, from a cold start, after a warm-up."""
    o, n = fleet.options, len(fleet.targets)
    with fleet.cold_nodes(4), fleet.balancer(mode, edit) as lb:
        asked(fleet, lb, zipf(fleet.targets, o.exponent, o.warm_up * n, 1), "warm-up", times=4)
        before = [node.groups.sample()["disk_bytes"] for node in fleet.nodes]
        load = asked(fleet, lb, zipf(fleet.targets, o.exponent, o.measured * n, 2), "measured", times=4)
        disk = sum(node.groups.sample()["disk_bytes"] for node in fleet.nodes) - sum(before)
        return disk / load.count("bytes")


def as_shipped(text):
    return text


def round_robin(text):
    text, n = re.subn(r"^    balance uri path-only\n    hash-type .*$", "    balance roundrobin", text,
                      flags=re.M)
    assert n == 1
    return text


def memory(fleet):
    """N machines have N times the page cache."""
    turns = disk_share(fleet, "redirect", round_robin)
    yield Row(f"disk bytes per byte served, Zipf {fleet.options.exponent}: round-robin", f"{turns:.3f}")
    for mode, how in (("redirect", ""), ("proxy", ", bounded load")):
        hashed = disk_share(fleet, mode, as_shipped)
        share = hashed / turns
        yield Row(f"the same by hash, {mode} mode{how}: {hashed:.3f}; of round-robin", f"{share:.2f}",
                  "≤ 0.6", share <= 0.6)


# --------------------------------------------------------------- redirects


def carried(fleet):
    """What passes through the balancer's wire, both ways, for each byte that clients get."""
    o, n = fleet.options, len(fleet.targets)
    with fleet.balancer("redirect") as lb:
        before = fleet.wire.carried()
        load = asked(fleet, lb, zipf(fleet.targets, o.exponent, 2 * n, 3), "redirected")
        share = (fleet.wire.carried() - before) / load.count("bytes")
    yield Row(f"bytes through the balancer, redirect mode, files of {o.file_kib} KiB",
              percent(share), "< 1 %", share < 0.01)


def redirects(fleet):
    """Of one thread of HAProxy, by its own CPU time: what else runs here does not count."""
    def one(text):
        return text.replace("\nglobal\n", "\nglobal\n    nbthread 1\n", 1)

    with fleet.balancer("redirect", one) as lb:
        cpu = cpu_seconds(lb.child.pid)
        done = subprocess.run(
            [host.tool("wrk"), "-t1", "-c16", f"-d{fleet.options.seconds}s",
             f"http://{lb.bind}{fleet.targets[0]}"], check=True, capture_output=True, text=True,
            timeout=fleet.options.seconds + 60)
        cpu = cpu_seconds(lb.child.pid) - cpu
        found = re.search(r"(\d+) requests in", done.stdout)
        if not found or not cpu:
            raise RuntimeError(f"wrk: {done.stdout}{done.stderr}")
    yield Row("redirects per second of one core of HAProxy, a connection each",
              f"{int(found[1]) / cpu:,.0f}")


def cpu_seconds(pid):
    """Of all its threads and children: -db has none."""
    fields = limits.read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def moved(fleet):
    """Which paths have another node when one is lost, and when one is added."""
    with fleet.balancer("redirect") as lb:
        before = locations(lb.bind, fleet.targets)
        fleet.nodes[0].kill()
        lb.until(lambda: lb.states()["n1"] == "DOWN", "n1 down")
        after = locations(lb.bind, fleet.targets)
        lost = sum(node == fleet.nodes[0].address.plain for node in before.values())
        fleet.revive(0)
    yield moved_row("lost", "n1 had", before, after, lost, len(fleet.nodes))
    with fleet.one_more():
        with fleet.balancer("redirect") as lb:
            after = locations(lb.bind, fleet.targets)
            added = sum(node == fleet.nodes[-1].address.plain for node in after.values())
        yield moved_row("added", "n5 has", before, after, added, len(fleet.nodes))
        yield from slow_start(fleet)


def moved_row(what, has, before, after, its, n):
    """No path moves but those of the one node, and those are about 1/n of all."""
    moves = sum(before[target] != after[target] for target in before)
    share = moves / len(before)
    return Row(f"paths moved when a node is {what} ({has} {percent(its / len(before))})",
               percent(share), f"those alone, about 1/{n}", moves == its and share < 1.25 / n)


def slow_start(fleet):
    """The shares of a node that comes back."""
    def quick(text):
        return text.replace("slowstart 60s", "slowstart 10s")

    new, shares = fleet.nodes[-1], []
    with fleet.balancer("redirect", quick) as lb:
        new.kill()
        lb.until(lambda: lb.states()[new.name] == "DOWN", f"{new.name} down")
        fleet.revive(len(fleet.nodes) - 1)
        lb.until(lambda: lb.states()[new.name].startswith("UP"), f"{new.name} up")
        begun = time.monotonic()
        while time.monotonic() < begun + 12:
            where = locations(lb.bind, fleet.targets[::4])
            shares.append(sum(node == new.address.plain for node in where.values()) / len(where))
            time.sleep(0.5)
    yield Row("slow start (10 s here): its share at first, in the middle, at the end",
              ", ".join(percent(shares[i]) for i in (0, len(shares) // 2, -1)), "grows",
              shares[0] < shares[-1] / 2)


# ----------------------------------------------------------------- popular


def popular(fleet):
    """The busiest node under a Zipf load; and what the spread costs in memory."""
    for exponent in (fleet.options.exponent, 1.1):
        for mode in ("proxy", "redirect"):
            yield busiest(fleet, mode, exponent, spread=mode == "redirect")
        yield busiest(fleet, "redirect", exponent, spread=False)
    copies = POPULAR * (len(fleet.nodes) - 1)
    yield Row(f"memory that {POPULAR} popular files on every node cost",
              f"{copies * fleet.options.file_kib // 1024} MiB, "
              f"{percent(copies / len(fleet.targets))} of the tree")


def most_asked(fleet):
    """As docs/guides/fleet.md says: what the nodes tell, together."""
    counts = sum((collections.Counter(node.popular()) for node in fleet.nodes), collections.Counter())
    return [path for path, _ in counts.most_common(POPULAR) if path in fleet.sums]


def busiest(fleet, mode, exponent, spread):
    draws = zipf(fleet.targets, exponent, 3 * len(fleet.targets), 5)
    with fleet.balancer(mode) as lb:
        if spread:
            asked(fleet, lb, zipf(fleet.targets, exponent, len(fleet.targets), 4), "to be counted")
            lb.spread(most_asked(fleet))
        before = [node.sent() for node in fleet.nodes]
        asked(fleet, lb, draws, "popular", times=4)  # bounded load counts connections: 2 a node are too few
        sent = [node.sent() - old for node, old in zip(fleet.nodes, before)]
    ratio = max(sent) / (sum(sent) / len(sent))
    how = "bounded load" if mode == "proxy" else "popular paths spread" if spread else "hash alone"
    good = ratio <= 1.25 if spread or mode == "proxy" else None
    return Row(f"busiest node, of the mean, Zipf {exponent}, {mode} mode, {how}", f"{ratio:.2f}",
               "said" if good is None else "≤ 1.25", good)


# ---------------------------------------------------------------- failures


@contextlib.contextmanager
def under_load(fleet, mode, exponent=None):
    """(balancer, load)"""
    with fleet.balancer(mode) as lb:
        targets = endless(fleet.targets, exponent or fleet.options.exponent, 7)
        retries = 1 if mode == "redirect" else 0
        load = Load(lb.bind, fleet.sums, targets, fleet.options.clients, retries)
        with load:
            time.sleep(1)
            yield lb, load
        if load.count("answered") == 0:
            raise RuntimeError("nothing was answered")


AGAIN = {"retried": "tried again", "cut": "cut and gone on with by Range"}


def failed(what, load, extra=""):
    n = load.count("failed")
    for text in load.failures()[:5]:
        print("   ", text, flush=True)
    again = "".join(f"; {load.count(name)} {text}" for name, text in AGAIN.items() if load.count(name))
    return Row(f"failed requests: {what}", f"{n} of {load.count('answered') + n:,}{again}{extra}",
               "0", n == 0)


def kill(fleet):
    for mode in ("proxy", "redirect"):
        with under_load(fleet, mode) as (lb, load):
            fleet.nodes[1].kill()
            seconds = lb.until(lambda: lb.states()["n2"] == "DOWN", "n2 down")
            time.sleep(fleet.options.seconds)
        fleet.revive(1)
        retry = ", one retry after 1 s" if mode == "redirect" else ""
        yield failed(f"a node is killed, {mode} mode{retry}", load, f"; seen after {seconds:.1f} s")


def drain(fleet):
    """Each node in turn is taken out, ended, started again, and upgraded in place."""
    for mode in ("proxy", "redirect"):
        with under_load(fleet, mode) as (lb, load):
            for i, node in enumerate(fleet.nodes):
                node.order("drain")
                lb.until(lambda n=node: lb.states()[n.name] in OUT, f"{node.name} to drain")
                time.sleep(1)  # who was redirected comes; docs/guides/fleet.md
                node.terminate()
                node.until(node.ended, "to end")
                fleet.revive(i)
                lb.until(lambda n=node: lb.states()[n.name] == "UP", f"{node.name} back")
            for node in fleet.nodes:
                node.upgrade()
        row = failed(f"each node drained, restarted and upgraded, {mode} mode", load)
        row.good = row.good and load.count("retried") == 0
        yield row


def hang(fleet):
    """A disk that gives a byte a second: its share goes elsewhere, others do not notice."""
    o = fleet.options
    with fleet.balancer("redirect") as lb:
        homes = locations(lb.bind, fleet.targets)
    victim = fleet.nodes[2]
    hot = [t for t in fleet.targets if homes[t] != victim.address.plain][:8]
    its = [t for t in fleet.targets if homes[t] == victim.address.plain]
    with fleet.balancer("redirect") as lb, Load(lb.bind, fleet.sums, itertools.cycle(hot), 2) as load:
        time.sleep(2)
        fleet.machine.forget([victim.root + t for t in its])
        begun = time.monotonic()
        victim.throttle(1)
        cold = Load(victim.address.plain, fleet.sums, its[:16], 16)
        with cold:
            seconds = lb.until(lambda: gone(lb, victim), "the share to be taken away")
            where = locations(lb.bind, its)
            left = sum(node == victim.address.plain for node in where.values()) / len(its)
            time.sleep(3)
            victim.throttle(o.disk_mib << 20)
            cold.join()
        ended = time.monotonic()
        lb.until(lambda: lb.states()["n3"] == "UP" and lb.weights()["n3"] >= 90, "n3 back", 120)
        back = time.monotonic() - ended
    times = load.times()
    calm = [t for begin, t, _ in times if begin < begun - 0.1]
    during = [t for begin, t, _ in times if begun <= begin < ended]
    yield Row("a node's disk hangs: three quarters of its share, or more, taken away within", f"{seconds:.1f} s", "2 s", seconds <= 2)
    yield Row("of its paths it then still gets", percent(left))
    yield Row("hot files of the others, p99 before and while it hangs",
              f"{p99(calm) * 1e3:.1f} ms, {p99(during) * 1e3:.1f} ms", "unaffected",
              p99(during) < max(5 * p99(calm), 0.05))
    yield failed("hot files of the others while a disk hangs", load)
    yield Row("it has its share again after", f"{back:.0f} s")


def gone(lb, node):
    return not lb.states()[node.name].startswith("UP") or lb.weights()[node.name] <= 25


def p99(times):
    return sorted(times)[len(times) * 99 // 100] if times else float("nan")


# ---------------------------------------------------------------- download


def download(fleet):
    """A large file, whole, while its node is drained and ended."""
    for mode in ("proxy", "redirect"):
        with fleet.balancer(mode) as lb:
            began, result = threading.Event(), []
            thread = threading.Thread(target=lambda lb=lb: result.append(large(lb.bind, fleet, began)),
                                      daemon=True)
            thread.start()
            began.wait(60)
            node = next(n for n in fleet.nodes if busy(n))
            node.order("drain")
            lb.until(lambda: lb.states()[node.name] in OUT, "it to drain")
            node.terminate()
            early = thread.is_alive()
            thread.join(600)
            node.until(node.ended, "to end")
            fleet.revive(fleet.nodes.index(node))
        if not early:
            raise RuntimeError("the download had ended before the drain: make it larger")
        good = bool(result) and result[0] == fleet.large_sum
        yield Row(f"a download of {fleet.options.download_mib / 1024:.3g} GiB across a drain of its node, {mode} mode",
                  "whole, by SHA-256" if good else f"wrong: {result}", "whole", good)


def busy(node):
    """It is the one that sends it."""
    before = node.sent()
    time.sleep(0.3)
    return node.sent() - before > 1 << 20


def large(address, fleet, began):
    sha = hashlib.sha256()
    target = fleet.large
    c = Connection(address, 60)
    try:
        status, fields, rest = c.ask("GET", target, "files.example.org")
        if status == 302:
            c.close()
            c = Connection(fields["location"].split("/")[2], 60)
            status, fields, rest = c.ask("GET", target, "files.example.org")
        for i, piece in enumerate(c.body(rest, int(fields["content-length"]))):
            sha.update(piece)
            if i == 100:
                began.set()
    except (OSError, Broken) as error:
        return str(error)
    finally:
        c.close()
    return sha.hexdigest()


ALL = {f.__name__: f for f in (memory, carried, redirects, popular, moved, kill, drain, hang, download)}
