#!/usr/bin/env python3
"""The soak: everything at once, at random, for long, and every byte of every body verified.

    soak.py [--minutes N] [--seed N] [--binary FILE] [--report FILE] [--tls] [--http2]

--tls: half of the connections have TLS, and each reload brings another certificate.
--http2: half of them are of HTTP/2.

The seed decides what is done, not when: two runs are alike, not the same.  Two parts of
the same length: first also reloads, upgrades and rotated logs, then the same server to
the end, whose memory can be followed.  Flat means: the median of a part's last fifth is
at most a tenth and 8 MiB (memory), or a tenth and 64 (descriptors), above that of its
second fifth.  The exit status is 0 if nothing failed and all was flat.

SIGINT or SIGTERM ends it early, with the report of what was done until then.
"""

import argparse
import collections
import ctypes
import faulthandler
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "http")]

import harness
from changes import Site
from client import KINDS, Client
from history import History
from report import SHOWN, report
from soaked import Soaked, family

LAST = 60  # seconds for the last action of a client, besides its patience
PR_SET_CHILD_SUBREAPER = 36


def failure(kind, why):
    return {"kind": kind, "time": time.time(), "why": str(why) or repr(why)}


# ------------------------------------------------------------------ clients


def client_thread(client, done, failures):
    kinds, weights = list(KINDS), list(KINDS.values())
    while not done.is_set() and len(failures) < SHOWN:
        (kind,) = client.rng.choices(kinds, weights)
        try:
            kind(client)
            client.counts[kind.__name__] += 1
        except Exception as why:
            failures.append({**failure(kind.__name__, repr(why)[:2000]),
                             "where": traceback.format_exc(limit=-4)})
            client.leave()
    client.leave()
    client.ended = True


def client_process(address, ways, journal, seed, threads, patience, done, out):
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    faulthandler.register(signal.SIGUSR1)
    history, failures = History(journal), []
    clients = [Client(address, history, "%s %d" % (seed, n), patience, ways)
               for n in range(threads)]
    running = [threading.Thread(target=client_thread, args=(c, done, failures)) for c in clients]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    failures += [failure("client", "a thread has ended before its time")
                 for c in clients if not c.ended]
    counts = sum((c.counts for c in clients), collections.Counter())
    with open(out, "w", encoding="utf-8") as f:
        json.dump({"counts": counts, "bytes": sum(c.bytes for c in clients),
                   "failures": failures}, f)


class Clients:
    """Their processes."""

    def __init__(self, options, address, journal, directory, ways=()):
        self.patience = options.patience + LAST
        self.done = multiprocessing.Event()
        self.outs = [os.path.join(directory, "client-%d" % n) for n in range(options.processes)]
        self.processes = [
            multiprocessing.Process(target=client_process, args=(
                address, ways, journal, "%s %d" % (options.seed, n),
                options.threads, options.patience, self.done, out))
            for n, out in enumerate(self.outs)]

    def start(self):
        for process in self.processes:
            process.start()

    def all_alive(self):
        return all(p.is_alive() for p in self.processes)

    def end(self):
        """The failures of those that do not."""
        self.done.set()
        until = time.monotonic() + self.patience
        failures = []
        for process in self.processes:
            process.join(max(0, until - time.monotonic()))
            if process.is_alive():
                os.kill(process.pid, signal.SIGUSR1)  # where it is, on stderr
                process.join(1)
                process.kill()
                process.join()
            if process.exitcode != 0:
                failures.append(failure("client", "exit status %d" % process.exitcode))
        return failures

    def results(self):
        """Of those that ended in order; the others have failed already."""
        for out in self.outs:
            if os.path.exists(out):
                with open(out, encoding="utf-8") as f:
                    yield json.load(f)


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


class Run:
    def __init__(self, options, directory):
        self.options = options
        self.rng = random.Random(options.seed)
        root = os.path.join(directory, "root")
        os.mkdir(root)
        journal = os.path.join(directory, "journal")
        self.site = Site(root, journal, self.rng)
        self.soaked = Soaked(directory, root, options.binary, self.rng, options.tls,
                             options.http2)
        self.clients = Clients(options, self.soaked.server.address, journal, directory,
                               self.soaked.ways())
        self.turns = Turns()
        self.parts = {"with reloads": [], "without": []}
        self.failures = []
        self.stopped = False  # by a signal: the lock of an Event may be held by what it interrupts

    def part(self, name, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.over():
            self.site.change()
            if self.turns("cool", 1):
                self.site.cool()
            if name == "with reloads":
                if self.turns("reload", self.rng.uniform(2, 6)):
                    self.soaked.reload()
                if self.turns("upgrade", self.rng.uniform(5, 12)):
                    self.soaked.upgrade()
            if self.turns("sample", 1):
                self.parts[name].append(self.soaked.sample())
            time.sleep(self.rng.uniform(0.05, 0.25))

    def over(self):
        return self.stopped or self.soaked.trouble() or not self.clients.all_alive()

    def run(self):
        half = self.options.minutes * 30
        self.clients.start()
        try:
            self.part("with reloads", half)
            if not self.over():
                self.soaked.reload("workers = 2\n")
                self.part("without", half)
        except Exception as why:
            self.failures.append({**failure("driver", why), "where": traceback.format_exc(limit=-4)})
        self.failures += self.clients.end()
        ended = self.soaked.stop()
        if ended:
            self.failures.insert(0, failure("server", ended))

    def report(self, seconds):
        counts, verified, failures = collections.Counter(), 0, list(self.failures)
        for result in self.clients.results():
            counts.update(result["counts"])
            verified += result["bytes"]
            failures += result["failures"]
        return report(self.options, self.site, self.soaked, self.parts, counts, verified,
                      [kind.__name__ for kind in KINDS], failures, seconds)


def end_all():
    """Whatever still runs of what was begun here; how it was called."""
    found = []
    for pid in family(os.getpid())[1:]:
        try:
            with open("/proc/%d/stat" % pid) as f:
                stat = f.read()
            if ") Z " not in stat:
                found.append(stat.partition(" (")[2].rpartition(")")[0])
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass  # it has just ended
    return found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--binary", default=harness.RELEASE)
    parser.add_argument("--report", default="soak.md")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--http2", action="store_true")
    parser.add_argument("--patience", type=float, default=60, help="seconds without a byte")
    return parser.parse_args()


def main():
    options = arguments()
    print("soak: seed %d, %g minutes" % (options.seed, options.minutes), flush=True)
    # What its parent leaves alone comes to us.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    directory = tempfile.mkdtemp(prefix="pagewise-soak-")
    begin = time.monotonic()
    try:
        run = Run(options, directory)

        def stop(number, frame):
            run.stopped = True
            signal.signal(number, signal.default_int_handler)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        run.run()
        left = end_all()
        if left:
            run.failures.append(failure("server", "it has left behind: " + " ".join(left)))
        text, fine = run.report(time.monotonic() - begin)
    finally:
        end_all()
        shutil.rmtree(directory, ignore_errors=True)
    with open(options.report, "w", encoding="utf-8") as f:
        f.write(text)
    print(text, end="")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
