#!/usr/bin/env python3
"""The soak: everything at once, at random, for long, and every byte of every body verified.

    soak.py [--minutes N] [--seed N] [--binary FILE] [--report FILE]

The seed decides what is done, not when: two runs are alike, not the same.  Two parts of
the same length: first also reloads, upgrades and rotated logs, then the same server to
the end, whose memory can be followed.  Flat means: the median of a part's last fifth is
at most a tenth and 8 MiB (memory), or a tenth and 64 (descriptors), above that of its
second fifth.  The exit status is 0 if nothing failed and all was flat.
"""

import argparse
import collections
import contextlib
import glob
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "http")]

import harness
from changes import Site
from client import FAILURES, KINDS, Client
from history import History

SHOWN = 20  # failures that are told in full
ENOUGH = 100  # samples, to tell whether it is flat
MIB = 1 << 20
SEND_PATHS = ["nodiskio"] * 4 + [p for p in harness.FILE_PATHS if p != "nodiskio"]


# ------------------------------------------------------------------ clients


def client_thread(client, done, failures):
    kinds, weights = list(KINDS), list(KINDS.values())
    while not done.is_set() and len(failures) < SHOWN:
        (kind,) = client.rng.choices(kinds, weights)
        try:
            kind(client)
            client.counts[kind.__name__] += 1
        except FAILURES as why:
            failures.append({"kind": kind.__name__, "time": time.time(), "why": repr(why)[:2000],
                             "where": traceback.format_exc(limit=-4)})
            client.leave()
    client.leave()


def client_process(address, journal, seed, threads, patience, done, out):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    history, failures = History(journal), []
    clients = [Client(address, history, "%s %d" % (seed, n), patience) for n in range(threads)]
    running = [threading.Thread(target=client_thread, args=(c, done, failures)) for c in clients]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    counts = sum((c.counts for c in clients), collections.Counter())
    with open(out, "w", encoding="utf-8") as f:
        json.dump({"counts": counts, "bytes": sum(c.bytes for c in clients),
                   "failures": failures}, f)


# ------------------------------------------------------------------- server


def family(pid):
    """The process and all below it."""
    found = [pid]
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        try:
            with open(path) as f:
                for child in f.read().split():
                    found += family(int(child))
        except OSError:
            pass  # it has just ended
    return found


def pss(pid):
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return int(re.search(r"^Pss:\s+(\d+) kB", f.read(), re.M).group(1)) << 10


def sample(pid):
    """Memory and descriptors of all processes of the server, and how many there are."""
    memory = descriptors = count = 0
    for one in family(pid):
        try:
            memory += pss(one)
            descriptors += len(os.listdir("/proc/%d/fd" % one))
            count += 1
        except (OSError, AttributeError):
            pass  # it has just ended
    return {"memory": memory, "descriptors": descriptors, "processes": count}


def handles(pid, number):
    with open("/proc/%d/status" % pid) as f:
        masks = re.findall(r"^Sig(?:Blk|Cgt):\s+(\w+)", f.read(), re.M)
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


class Soaked:
    """The server and its configuration."""

    def __init__(self, directory, root, binary, rng):
        self.rng = rng
        self.path = os.path.join(directory, "pagewise.conf")
        self.log = os.path.join(directory, "access.log")
        self.root = root
        self.counts = collections.Counter()
        self.configure("workers = 2\n")
        self.server = harness.Server("-c", self.path, binary=binary).start()
        self.configure("workers = 2\n", "127.0.0.1:%d" % self.server.address[1])
        self.pid = self.server.process.pid
        self.upgrades = handles(self.pid, signal.SIGUSR2)

    def configure(self, text, listen="127.0.0.1:0"):
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            f.write('listen = {"%s"}\nstall_log = 0\naccess_log = "%s"\nautoindex = true\n'
                    '%ssite "soak" { root = "%s" }\n' % (listen, self.log, text, self.root))
        os.rename(self.path + ".new", self.path)

    def random_settings(self):
        return "workers = %d\nsend_path = \"%s\"\nhot_set = %s\nreadahead = %s\ncache = \"%s\"\n" % (
            self.rng.randint(1, 3), self.rng.choice(SEND_PATHS),
            self.rng.choice(["0", "1M", "16M"]), self.rng.choice(["auto", "128K", "2M"]),
            self.rng.choice(["keep", "drop", "auto"]))

    def reload(self, settings=None):
        if self.rng.random() < 0.3:
            self.counts["logs rotated"] += 1
            if os.path.exists(self.log):
                os.rename(self.log, self.log + ".1")
        self.configure(settings or self.random_settings(), "127.0.0.1:%d" % self.server.address[1])
        self.server.process.send_signal(signal.SIGHUP)
        self.counts["reloads"] += 1

    def upgrade(self):
        if self.upgrades:
            self.server.process.send_signal(signal.SIGUSR2)
            self.counts["upgrades"] += 1


# ---------------------------------------------------------------------- run


class Turns:
    """What is due now and then."""

    def __init__(self):
        self.due = {}

    def __call__(self, what, seconds):
        now = time.monotonic()
        if now < self.due.setdefault(what, now + seconds):
            return False
        self.due[what] = now + seconds
        return True


def fifth(samples, key, number):
    count = len(samples)
    part = samples[count * number // 5:count * (number + 1) // 5]
    return statistics.median(s[key] for s in part)


def flat(samples, key, spare):
    return fifth(samples, key, 4) <= 1.1 * fifth(samples, key, 1) + spare


class Run:
    def __init__(self, options, directory):
        self.options = options
        self.rng = random.Random(options.seed)
        root = os.path.join(directory, "root")
        os.mkdir(root)
        journal = os.path.join(directory, "journal")
        self.site = Site(root, journal, self.rng)
        self.soaked = Soaked(directory, root, options.binary, self.rng)
        self.turns = Turns()
        self.parts = {"with reloads": [], "without": []}
        self.done = multiprocessing.Event()
        self.outs = [os.path.join(directory, "client-%d" % n) for n in range(options.processes)]
        self.clients = [
            multiprocessing.Process(target=client_process, args=(
                self.soaked.server.address, journal, "%s %d" % (options.seed, n),
                options.threads, options.patience, self.done, out))
            for n, out in enumerate(self.outs)]

    def part(self, name, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.soaked.server.running and self.all_alive():
            self.site.change()
            if self.turns("cool", 1):
                self.site.cool()
            if name == "with reloads":
                if self.turns("reload", self.rng.uniform(2, 6)):
                    self.soaked.reload()
                if self.turns("upgrade", self.rng.uniform(5, 12)):
                    self.soaked.upgrade()
            if self.turns("sample", 1):
                self.parts[name].append(sample(self.soaked.pid))
            time.sleep(self.rng.uniform(0.05, 0.25))

    def all_alive(self):
        return all(c.is_alive() for c in self.clients)

    def run(self):
        half = self.options.minutes * 30
        for client in self.clients:
            client.start()
        try:
            self.part("with reloads", half)
            self.soaked.reload("workers = 2\n")
            self.part("without", half)
        except KeyboardInterrupt:
            pass
        self.done.set()
        for client in self.clients:
            client.join()

    def failures(self, results):
        """What the clients say, and how the server ended."""
        found = [f for r in results for f in r["failures"]]
        server = self.soaked.server
        if server.running:
            server.terminate()
        code, text = server.wait(), server.messages
        text = re.sub(r"pagewise: access log: \d+ records lost\n", "", text)
        if code != 0 or text:
            found.append({"kind": "server", "why": "exit status %s, stderr: %s" % (code, text)})
        with contextlib.suppress(AssertionError):  # of what it said
            server.discard()
        return found

    def results(self):
        results = []
        for out in self.outs:
            try:
                with open(out, encoding="utf-8") as f:
                    results.append(json.load(f))
            except (OSError, ValueError) as why:
                results.append({"counts": {}, "bytes": 0,
                                "failures": [{"kind": "client", "why": repr(why)}]})
        return results


# ------------------------------------------------------------------- report


def rows(samples):
    for key, unit, spare in (("memory", MIB, 8), ("descriptors", 1, 64)):
        values = [s[key] / unit for s in samples]
        scaled = [{key: v} for v in values]
        yield (key + (", MiB" if unit > 1 else ""), values[0], fifth(scaled, key, 1),
               fifth(scaled, key, 4), values[-1], max(values), flat(scaled, key, spare))


def report(run, results, failures, seconds):
    """The text, and whether all is well."""
    options, soaked = run.options, run.soaked
    counts = sum((collections.Counter(r["counts"]) for r in results), collections.Counter())
    verified = sum(r["bytes"] for r in results)
    actions = sum(counts[k.__name__] for k in KINDS)
    out = ["# Soak", "",
           "%.1f minutes, seed %s, %s, %d client processes of %d threads." % (
               seconds / 60, options.seed, options.binary, options.processes, options.threads),
           "", "| what | number |", "|---|---|",
           "| bytes of bodies verified | %d (%.1f GiB) |" % (verified, verified / (1 << 30)),
           "| actions of clients | %d |" % actions, "| failed | %d |" % len(failures),
           "| files replaced, grown, cut | %d |" % run.site.changes]
    out += ["| %s | %d |" % pair for pair in sorted(soaked.counts.items())]
    out += ["| %s | %d |" % (name.replace("_", " "), n) for name, n in counts.most_common()]
    fine = not failures and verified > 0
    for name, samples in run.parts.items():
        if len(samples) < ENOUGH:
            out += ["", "Part %s: too short to tell whether it is flat." % name]
            continue
        out += ["", "Part %s:" % name, "",
                "| | first | median of 2nd fifth | median of last fifth | last | peak | flat |",
                "|---|---|---|---|---|---|---|"]
        for key, first, early, late, last, peak, is_flat in rows(samples):
            out.append("| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %s |" % (
                key, first, early, late, last, peak, "yes" if is_flat else "NO"))
            fine = fine and is_flat
    for failure in failures[:SHOWN]:
        out += ["", "## Failed: %s" % failure["kind"], "", "```", failure["why"],
                failure.get("where", ""), "```"]
    return "\n".join(out) + "\n", fine


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--binary", default=harness.RELEASE)
    parser.add_argument("--report", default="soak.md")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--patience", type=float, default=60, help="seconds without a byte")
    return parser.parse_args()


def main():
    options = arguments()
    print("soak: seed %d, %g minutes" % (options.seed, options.minutes), flush=True)
    directory = tempfile.mkdtemp(prefix="pagewise-soak-")
    begin = time.monotonic()
    try:
        run = Run(options, directory)
        run.run()
        results = run.results()
        failures = run.failures(results)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    text, fine = report(run, results, failures, time.monotonic() - begin)
    with open(options.report, "w", encoding="utf-8") as f:
        f.write(text)
    print(text, end="")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
