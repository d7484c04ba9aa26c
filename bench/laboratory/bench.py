"""What a scenario works with while it measures one candidate in one round.

    with bench.serve(cand, Limits(...)) as server:
        server.warm("/hot", bench.content("hot"))
        load = bench.wrk(server, "/hot", connections=16, seconds=5)
        with bench.sampled("hot", server):
            result = load.result()

All that runs ends with the block.  Commands, configuration and samples are kept
for the report.
"""

import contextlib
import random
import time

from laboratory import asleep, load, sampler
from laboratory import host as machine
from laboratory.limits import Limits
from laboratory.servers import Server
from laboratory.undo import Undo, held

MIB, GIB = 1 << 20, 1 << 30
PATIENCE = 30  # seconds, for the first read of what was started


class Bench:
    """settings: those of the scenario; number: of the round, from 1; data: the
    directory that is served; scratch: one for lists, gone after the round; draw:
    random numbers, the same for all candidates of a round."""

    def __init__(self, host, settings, number, seed, scratch):
        self.host, self.settings, self.number = host, settings, number
        self.data, self.scratch = host.data, scratch
        self.draw = random.Random(f"{seed}-{number}")
        self.undo = None
        self.commands, self.conf, self.samples = [], None, {}

    @contextlib.contextmanager
    def confined(self, limits=Limits(), disks=()):
        """For what is no server: yields counters, whose prefix() and --core a
        command needs."""
        self.host.touch(limits.memory or machine.TOUCHED)
        with Undo() as self.undo:
            yield self.host.counters(self.undo, limits, disks)

    @contextlib.contextmanager
    def owned(self, cand, names):
        """The files belong to whom the candidate wants, and to this user afterwards."""
        with Undo() as undo:
            if cand.owner:
                undo.callback(self.host.give, [f"{self.data}/{name}" for name in names], None)
                self.host.give([f"{self.data}/{name}" for name in names], self.host.user)
            yield

    @contextlib.contextmanager
    def serve(self, cand, limits=Limits(), root=None, options=(), disks=(), **more):
        """options: more arguments, for our own program only; disks: those of root, each of which
        is limited; more: as Server has it."""
        with self.confined(limits, disks) as counters:
            server = Server(self.undo, cand, self.host, counters, root or self.data,
                            options if cand.ours else (), **more)
            self.conf = server.conf
            if server.argv not in self.commands:
                self.commands.append(server.argv)
            yield server

    def start(self, counters, argv, seconds):
        """A command in the server's place, confined; a Load."""
        core = f"--core={self.host.server_core}"
        with held():
            started = load.Load(self.undo, [*counters.prefix(), core, *argv], seconds,
                                self.commands)
            counters.child = started.child
            self.undo.callback(counters.kill)
        return started

    @staticmethod
    @contextlib.contextmanager
    def until_it_reads(counters):
        """Waits until what the block started has read from the disk."""
        before, end = counters.sample()["disk_requests"], time.monotonic() + PATIENCE
        yield
        while counters.sample()["disk_requests"] == before:
            if time.monotonic() > end:
                raise RuntimeError(f"nothing was read from the disk within {PATIENCE} s")
            time.sleep(0.01)

    @contextlib.contextmanager
    def sampled(self, label, server):
        """Yields a dict: when the block is over, what it took, and for a server "asleep"
        (see asleep.py), and since it was started "sleeps", as Server.sleeps(), and "turn",
        its longest one.  The samples of each second are kept under the label.  server: or
        the counters."""
        counters, took = getattr(server, "counters", server), {}
        loops = [] if counters is server else server.loops()
        with sampler.Sampler(counters) as seconds, asleep.Watch(loops) as watch:
            before = sampler.sample(counters)
            yield took
            took.update(sampler.difference(before, sampler.sample(counters)))
        self.samples[label] = seconds.samples
        took["asleep"] = watch.result()
        took["sleeps"] = None if counters is server else server.sleeps()
        took["turn"] = None if counters is server else server.longest_turn()

    def wrk(self, server, path="/", urls=None, **options):
        """urls: paths to ask for in turn, instead of the one."""
        return load.wrk(self.undo, self.commands, server.base + path,
                        urls=self.list(urls), **options)

    def probe(self, server, path="/", urls=None, first=True, **options):
        """urls: paths to draw from.  first: false for one that runs beside the one that
        measures."""
        return load.probe(self.undo, self.commands, server.base + path,
                          urls=self.list(urls), first=first and not self.host.one_core, **options)

    def slow(self, server, path="/", urls=None, **options):
        return load.slow(self.undo, self.commands, server.base + path,
                         urls=self.list(urls), **options)

    def replay(self, server, urls, **options):
        """urls: paths to ask for, each once, in this order."""
        return load.replay(self.undo, self.commands, server.base, self.list(urls), **options)

    def h2load(self, server, path, http1=False, **options):
        base = server.base if http1 else server.http2_base
        return load.h2load(self.undo, self.commands, base + path, http1=http1, **options)

    def h2load_each(self, server, urls, streams, **options):
        """urls: paths to request once each."""
        return load.h2load_each(self.undo, self.commands,
                                self.list([server.http2_base + path for path in urls]), streams,
                                **options)

    def h2storm(self, server, path, urls=None, **options):
        """urls: paths that the cold streams ask for in turn."""
        return load.h2storm(self.undo, self.commands, server.http2_base + path,
                            urls=self.list(urls), **options)

    def resets(self, server, path, **options):
        return load.resets(self.undo, self.commands, server.http2_base + path, **options)

    def idle(self, server, path, connections, http2=False, streams=0):
        base = server.http2_base if http2 else server.base
        return load.idle(self.undo, self.commands, base + path, connections, http2=http2,
                         streams=streams)

    def handshake(self, server, path, **options):
        return load.handshake(self.undo, self.commands, server.base + path, **options)

    def list(self, urls):
        return load.list_of(self.scratch, urls) if urls else None

    def shuffled(self, items):
        items = list(items)
        self.draw.shuffle(items)
        return items

    def content(self, name):
        with open(f"{self.data}/{name}", "rb") as f:
            return f.read()

    def forget(self, *names):
        """The contents of these files leave memory; without names everything that
        the disk has, which needs root."""
        if names:
            self.host.forget([f"{self.data}/{name}" for name in names])
        else:
            self.host.forget_all()
