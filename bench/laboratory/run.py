"""The order of a run: each scenario, each of its rounds, each of its parts if it has any,
each candidate in turn.

Candidates alternate within a round and a part, so that what changes on the machine meets all.
"""

import contextlib
import functools
import os
import shlex
import subprocess
import sys
import tempfile
import time

from laboratory import data, results, scenarios, servers
from laboratory.bench import Bench
from laboratory.progress import note, progress
from laboratory.undo import Undo, held

OVERHEAD = 0.2   # seconds: to start and stop a server
WRITING = 200e6  # bytes a second, when data is made
REFERENCE = "reference"


class Plan:
    """One scenario of a run: its settings and who is measured."""

    def __init__(self, name, args, host, usable):
        self.name, self.module = name, scenarios.load(name)
        self.settings = scenarios.settings(self.module, args.quick, args.set.get(name, {}), args.long)
        if args.rounds:
            self.settings.rounds = args.rounds
        self.missing = host.missing(self.module.NEEDS)
        self.candidates = [] if self.missing else choose(self.module, args, usable)
        referred = getattr(self.module, "referred", lambda name, cand: True)
        self.references = {name: reference for name, reference in
                           getattr(self.module, "REFERENCES", {}).items()
                           if args.references and any(referred(name, cand) for cand in self.candidates)}
        self.parts = getattr(self.module, "parts", lambda s: [None])(self.settings)
        self.measured = getattr(self.module, "measured", lambda name, part: True)

    def steps(self):
        return len(list(self.order())) if self.candidates else 0

    def seconds(self):
        portion = getattr(self.module, "portion", lambda s, cand: 1)
        portions = {cand.name: portion(self.settings, cand) for cand in self.candidates}
        each = self.module.seconds(self.settings)
        return sum(each * portions.get(name, 1) + OVERHEAD for _, _, name, _ in self.order())

    def files(self):
        return list(self.module.files(self.settings)) if self.candidates else []

    def order(self):
        """(round, part or None, name, what to call with a Bench)."""
        functions = {name: function for name, (_, function) in self.references.items()}
        for cand in self.candidates:
            functions[cand.name] = functools.partial(self.measure, cand)
        for number in range(1, self.settings.rounds + 1):
            for part in self.parts:
                for name, function in functions.items():
                    if self.measured(name, part):
                        yield number, part, name, with_part(function, part)

    def measure(self, cand, bench, *part):
        with bench.owned(cand, [name for name, _ in self.files()]):
            return self.module.measure(bench, cand, *part)


def with_part(function, part):
    """What it finds stands under the name of the part."""
    if part is None:
        return function

    return lambda bench: {part: function(bench, part)}


def choose(module, args, usable):
    """Who is measured: those asked for, or the scenario's own choice, or all."""
    encrypted = getattr(module, "TLS", False)
    usable = [c for c in usable if c.tls or not encrypted]
    if getattr(module, "HTTP2", False):
        usable = [c for c in usable if c.http2 is not None]
    if args.path is None and args.peer is None:
        default = getattr(module, "CANDIDATES", None)
        if args.quick:
            default = getattr(module, "QUICK_CANDIDATES", servers.QUICK)
        return [c for c in usable if (c.name in default if default else not c.asked)
                and (not c.owner or getattr(module, "OWNER", False))]
    return [c for c in usable if wanted(c, args)]


def wanted(cand, args):
    """Whether --path and --peer ask for it, if one of them was given."""
    names = (args.path if cand.ours else args.peer) or ()
    return "all" in names or cand.name in names


def sort_out(candidates, args):
    """The usable ones, and a sentence for each that was asked for and is not."""
    usable, left_out = [], []
    explicit = args.path is not None or args.peer is not None
    for cand in candidates:
        if explicit and not wanted(cand, args):
            continue
        if why := cand.unusable():
            left_out.append(f"{cand.title}: {why}")
        else:
            usable.append(cand)
    return usable, left_out


def describe(plans, usable, left_out, args, host):
    about = {c.name: {"title": c.title, "version": c.release(),
                      "kind": "path" if c.ours else "peer"} for c in usable}
    for plan in plans:
        for name, (title, _) in plan.references.items():
            about[name] = {"title": title, "version": "", "kind": REFERENCE}
    return {
        "command": shlex.join(["bench/lab", *sys.argv[1:]]), "seed": args.seed,
        "quick": args.quick, "host": host.describe(), "candidates": about,
        "scenarios": {p.name: {"settings": vars(p.settings)} for p in plans if p.candidates},
        "left_out": left_out,
    }


def estimate(plans, path):
    new = sum(size for _, size in data.missing(path, {f for p in plans for f in p.files()}))
    return sum(p.seconds() for p in plans) + new / WRITING


def one(plan, host, args, number, part, name, function):
    finished = results.Round(plan.name, name, number)
    with Undo() as undo:
        scratch = undo.enter_context(tempfile.TemporaryDirectory(prefix="pagewise-lab-"))
        bench = Bench(host, plan.settings, number, args.seed, scratch)
        try:
            values = function(bench)
            host.check_readahead()
            finished.values = values
        except (RuntimeError, OSError, subprocess.SubprocessError) as why:
            finished.error = f"{part + ': ' if part else ''}{type(why).__name__}: {why}"
        finished.commands, finished.conf = bench.commands, bench.conf
        finished.samples = bench.samples
    return finished


def rounds(plans, run, host, args):
    with progress(sum(p.steps() for p in plans)) as bar:
        for plan in plans:
            host.own_network(args.congestion)
            host.steer(args.rfs)
            for number, part, name, function in plan.order():
                bar.step(", ".join(filter(None, (
                    plan.name, f"round {number} of {plan.settings.rounds}", part))) + f": {name}")
                finished = one(plan, host, args, number, part, name, function)
                with held():
                    run.add(finished)
                if finished.error:
                    bar.note(f"{plan.name}: {name}: {finished.error}")


def prepare(args, host):
    """Plans that can be run, and what was left out, said as well."""
    usable, left_out = sort_out(servers.every(), args)
    plans = [Plan(name, args, host, usable) for name in args.scenario]
    for plan in plans:
        left_out += [f"scenario {plan.name}: {why}" for why in plan.missing]
        if not plan.missing and not plan.candidates:
            left_out.append(f"scenario {plan.name}: no candidate for it")
    if not host.root:
        left_out.append("not root: read_ahead_kb stays, servers run as this user, and "
                        "files leave the page cache by posix_fadvise only")
    if "network" in host.lacks:
        left_out.append(host.lacks["network"])
    for text in left_out:
        note(f"left out: {text}")
    return [p for p in plans if p.candidates], usable, left_out


def perform(args, host):
    """The directory of the run.  Raises Stopped with what is finished kept."""
    results.Run.check(args.out)
    host.own_network(args.congestion)
    plans, usable, left_out = prepare(args, host)
    if not plans:
        raise RuntimeError("no scenario is left to run")
    os.umask(0o022)
    os.sched_setaffinity(0, {host.load_core})
    with Undo() as undo:
        undo.enter_context(data.locked(host.data, host.root))
        note(f"{len(plans)} scenarios, {sum(p.steps() for p in plans)} measurements, about "
             f"{max(estimate(plans, host.data) / 60, 0.1):.1f} minutes")
        data.make(host.data, [f for p in plans for f in p.files()])
        host.set_readahead(undo, args.readahead)
        host.share_flows(undo)
        if why := host.steer(args.rfs):
            left_out.append(why)
            note(f"left out: {why}")
        if all(getattr(p.settings, "memory", "") != "returned" for p in plans):
            host.keep_freed_memory(undo)
        about = describe(plans, usable, left_out, args, host)
        run = results.Run.create(args.out, {**about, "finished": False})
        with finished_or_said(run):
            rounds(plans, run, host, args)
        run.describe({"finished": True, "ended": time.strftime("%Y-%m-%d %H:%M %Z")})
    return run


@contextlib.contextmanager
def finished_or_said(run):
    try:
        yield
    except BaseException:
        note(f"stopped; {len(run.rounds)} finished measurements are in {run.path}")
        note(f"a report of them: bench/lab report {shlex.quote(run.path)}")
        raise
