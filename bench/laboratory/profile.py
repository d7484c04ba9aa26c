"""profile: what a request takes of the server, in numbers that repeat: system calls by
strace; instructions and allocations, in user space, by callgrind.

Instructions are those of 2N requests less those of N, so start and end do not count.
"""

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from laboratory import callgrind, data, host as machine, results, run, servers
from laboratory.bench import Bench, MIB
from laboratory.limits import read, write
from laboratory.progress import note, progress
from laboratory.scenarios import hot
from laboratory.undo import Undo, spawn

CASES = ("1K", "16K", "64K", "1M")
CANDIDATES = ("nodiskio", "nginx", "h2o", "lighttpd")
LIMIT = "send"
OPENAT2 = os.path.join(machine.TOOLS, "openat2.so")
WARM, LEAST, MOST = 200, 256, 1024  # requests
MANY = 64                           # connections
PATIENCE = 60                       # seconds
FUNCTIONS = 12                      # that are shown


class Client:
    """Asks on all of its connections, then reads all answers, and so on.  Not wrk: it asks
    a certain number of times, and the same way each time."""

    def __init__(self, server, path, connections):
        self.request = (f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                        "\r\n").encode()
        self.buffer = memoryview(bytearray(MIB))
        self.conns = [server.connect(PATIENCE) for _ in range(connections)]

    def ask(self, number):
        for _ in range(number // len(self.conns)):
            for conn in self.conns:
                conn.sendall(self.request)
            for conn in self.conns:
                self.read(conn)

    def read(self, conn):
        head = b""
        while b"\r\n\r\n" not in head:
            head += (got := conn.recv(4096))
            if not got:
                raise RuntimeError("the server has closed the connection")
        head, _, rest = head.partition(b"\r\n\r\n")
        left = int(re.search(rb"(?i)^content-length: *(\d+)", head, re.M).group(1)) - len(rest)
        while left > 0:
            got = conn.recv_into(self.buffer, min(left, MIB))
            if not got:
                raise RuntimeError("the server has closed the connection")
            left -= got

    def close(self):
        for conn in self.conns:
            conn.close()


def requests(case):
    return max(LEAST, min(MOST, 64 * MIB // case.size))


@contextlib.contextmanager
def asking(bench, cand, case, connections, wrapper=()):
    """A server and a client of it; what it was asked before does not count."""
    name = case.names()[0]
    with bench.serve(cand, wrapper=wrapper) as server:
        server.warm(f"/{name}", bench.content(name), times=1)
        client = Client(server, f"/{name}", connections)
        with contextlib.closing(client):
            client.ask(WARM)
            yield server, client


# ---------------------------------------------------------- system calls


def system_calls(bench, cand, case, connections):
    """By name, of a request."""
    number, out = requests(case), f"{bench.scratch}/strace"
    with asking(bench, cand, case, connections) as (server, client):
        pids = server.counters.pids()
        tracer = spawn(bench.undo, ["strace", "-f", "-c", "-o", out,
                                    *(f"-p{pid}" for pid in pids)],
                       stderr=subprocess.PIPE, text=True)
        for _ in pids:
            if "attached" not in (line := tracer.stderr.readline()):
                raise RuntimeError(f"strace: {line.strip()}")
        client.ask(number)
        tracer.send_signal(signal.SIGINT)
        tracer.wait(PATIENCE)
    return {name: count / number for name, count in table(read(out)).items()}


def table(text):
    """Of strace -c: name -> calls."""
    rows = (line.split() for line in text.splitlines())
    return {row[-1]: int(row[3]) for row in rows
            if len(row) > 4 and row[3].isdigit() and row[-1] != "total"}


# ---------------------------------------------------------- instructions


def counted(bench, cand, case, number):
    out = f"{bench.scratch}/out"
    wrapper = callgrind.command(out)
    if cand.ours:
        # What confines it has callgrind fail, or finds the kernel too old for it.
        cand = dataclasses.replace(cand, argv=(*cand.argv, "--sandbox", "off"))
    if cand.ours or servers.without_library(cand.name):
        stand_in = shutil.copy(OPENAT2, bench.scratch)
        wrapper = ["env", f"LD_PRELOAD={stand_in}", *wrapper]
    with asking(bench, cand, case, 1, wrapper) as (server, client):
        client.ask(number)
        client.close()
        server.child.send_signal(signal.SIGTERM)
        server.child.wait(10)
        time.sleep(0.1)  # children write after their parent
    return callgrind.counted(out)


def instructions(bench, cand, case):
    number = requests(case)
    once = counted(bench, cand, case, number)
    return counted(bench, cand, case, 2 * number).beyond(once, number)


# --------------------------------------------------------------- all of it


def of(bench, cand, case):
    counts = instructions(bench, cand, case)
    functions = sorted(counts.own.items(), key=lambda item: -item[1])
    return {
        "system_calls": system_calls(bench, cand, case, 1),
        "system_calls_of_many": system_calls(bench, cand, case, MANY),
        "instructions": counts.instructions(),
        "allocations": counts.called(*callgrind.ALLOCATE),
        "frees": counts.called("free"),
        "functions": {name: round(n, 2) for name, n in functions if n >= 0.5},
    }


def candidates(args):
    """The limit, and who was asked for, or the usual ones."""
    usual = args.path is None and args.peer is None
    for cand in servers.every():
        if not (cand.name in CANDIDATES if usual else run.wanted(cand, args)):
            continue
        if why := cand.unusable():
            note(f"left out: {cand.title}: {why}")
        else:
            yield cand


def check(host):
    for name in ("strace", "valgrind"):
        if not machine.tool(name):
            raise RuntimeError(f"{name} is not there: conf/install-deps.sh profile")
    for why in host.missing(["limit"]):
        raise RuntimeError(why)
    if not os.path.exists(OPENAT2):
        raise RuntimeError(f"{OPENAT2} is not there: make bench-profile")


def perform(args, host):
    """The tables.  What is finished is in profile.json and profile.md after each case."""
    check(host)
    results.Run.check(args.out)
    os.makedirs(args.out, exist_ok=True)
    host.own_network()
    os.umask(0o022)
    os.sched_setaffinity(0, {host.load_core})
    cases = [hot.CASES[name] for name in CASES]
    made = {"host": host.describe(), "cases": {}}
    with data.locked(host.data, host.root):
        data.make(host.data, [(c.names()[0], c.size) for c in cases])
        everybody = list(candidates(args))
        with progress(len(cases) * (len(everybody) + 1)) as bar:
            for case in cases:
                made["cases"][case.label] = profiled(bar, host, case, everybody)
                results.save(f"{args.out}/profile.json", made)
                write(f"{args.out}/profile.md", markdown(made))
    return markdown(made)


def profiled(bar, host, case, everybody):
    found = {}
    for cand in [*everybody, None]:
        with tempfile.TemporaryDirectory(prefix="pagewise-lab-") as scratch:
            bench = Bench(host, None, 1, 1, scratch)
            os.chmod(scratch, 0o755)  # the server, an ordinary user, writes there
            os.mkdir(f"{scratch}/out")
            os.chmod(f"{scratch}/out", 0o777)
            cand = hot.set_up(cand) if cand else hot.bare(bench, LIMIT, case)
            bar.step(f"{case.label}: {cand.name}")
            try:
                found[cand.title] = of(bench, cand, case)
            except (RuntimeError, OSError, subprocess.SubprocessError) as why:
                bar.note(f"{case.label}: {cand.title}: {why}")
    return found


# ------------------------------------------------------------------ report


def by_name(calls):
    """The frequent ones."""
    some = sorted(((n, name) for name, n in calls.items() if n >= 0.005), reverse=True)
    return ", ".join(f"{name} {n:.2f}" for n, name in some)


STAND_IN = ("Instructions of pagewise are counted without confinement, and as on a kernel before "
            "6.5: valgrind does not know cachestat, so the send path uses another residency "
            "query. System calls are those of the running kernel.")


def markdown_lines(made):
    for label, found in made["cases"].items():
        yield from (f"{label}:", "", "| server | system calls | which | with "
                    f"{MANY} connections | instructions | allocations | frees |", "|---" * 7 + "|")
        for title, v in found.items():
            yield (f"| {title} | {sum(v['system_calls'].values()):.2f} "
                   f"| {by_name(v['system_calls'])} "
                   f"| {sum(v['system_calls_of_many'].values()):.2f} "
                   f"| {v['instructions']:.0f} | {v['allocations']:.2f} | {v['frees']:.2f} |")
        yield ""
    label, found = next(iter(made["cases"].items()))
    if any(title.startswith("pagewise") for title in found):
        yield from (STAND_IN, "")
    for title, v in found.items():
        most = list(v["functions"].items())[:FUNCTIONS]
        yield f"{label}, {title}: " + ", ".join(f"{name} {n:.0f}" for name, n in most)
        yield ""


def markdown(made):
    return "\n".join(markdown_lines(made)) + "\n"
