"""proxied: a hit of nginx' proxy_cache while other hits are read from a saturated disk."""

import contextlib
import dataclasses
import os
import shutil
import tempfile
import time

from laboratory import load, servers
from laboratory.bench import MIB
from laboratory.scenarios import storm

TITLE = "Proxied: a response of proxy_cache while other clients read uncached ones"
WHAT = """The scenario storm, but each response is a hit of nginx' proxy_cache. First each file is
requested once, without limits, so that nginx stores it. Then the stored files leave memory, and disk
and memory are limited: 16 connections request one response of 16 KiB, alone, and then while 48
others read responses of 1 MiB. nginx itself opens a stored file, and reads its header: with
libpagewise it has aio threads for that."""
NEEDS = (*storm.NEEDS, "replay")
FULL = {**storm.FULL, "memory_mib": 128, "pick": "random"}
del FULL["hot_set"]
QUICK = {**storm.QUICK, "memory_mib": 64}
CANDIDATES = QUICK_CANDIDATES = ("nginx", "nginx-threads", "nginx-pagewise")
NOTES = [
    *storm.NOTES[:-1],
    "Only contents leave memory: nginx opens files on its event loop, with libpagewise too, so "
    "it would wait there for a name or an inode that is not in memory.",
]
FILLERS = 16         # connections that have nginx store the files
FILLED = 50          # MiB/s, about
STORED = 10          # seconds until the last stored file has its name
files, parts, check = storm.files, storm.parts, storm.check
tables, figures = storm.tables, storm.figures
# The origin is a server of the same worker.
CACHE = """proxy_cache_path {directory} keys_zone=lab:16m max_size=1000g inactive=1d use_temp_path=off;
	server {{
		listen unix:@RUN@/origin;
		root {root};
	}}"""
LOCATION = """proxy_cache lab;
		proxy_cache_valid 200 1d;
		proxy_cache_key $uri;
		location / { proxy_pass http://unix:@RUN@/origin:/; }"""


def seconds(s):
    return storm.seconds(s) + sum(size for _, size in files(s)) / MIB / FILLED


def configured(cand, directory, root):
    """The same with a cache in that directory."""
    if cand.name not in CANDIDATES:
        raise RuntimeError("this server has no configuration with proxy_cache")
    words = {"RULES": CACHE.format(directory=directory, root=root), "TRY": LOCATION}
    if servers.without_library(cand.name):
        words["AIO"] = "aio threads;"
    return dataclasses.replace(cand, words={**cand.words, **words})


@contextlib.contextmanager
def emptied(host):
    """A directory for the server, on the disk that is limited."""
    path = tempfile.mkdtemp(prefix="proxied-", dir=host.data)
    try:
        shutil.chown(path, host.user)
        yield path
    finally:
        shutil.rmtree(path)


def stored(directory):
    """Files that are complete: others have a dot in their names."""
    return [f"{directory}/{name}" for name in os.listdir(directory) if "." not in name]


def fill(bench, server, directory):
    """Has nginx store each file; the stored ones."""
    names = [name for name, _ in files(bench.settings)]
    load.check_replay(bench.replay(server, [f"/{name}" for name in names],
                                   connections=FILLERS).result())
    deadline = time.monotonic() + STORED
    while len(found := stored(directory)) < len(names):
        if time.monotonic() > deadline:
            raise RuntimeError(f"nginx stored {len(found)} of {len(names)} responses")
        time.sleep(0.1)
    return found


def measure(bench, cand, pick):
    s = bench.settings
    with emptied(bench.host) as directory:
        with bench.serve(configured(cand, directory, bench.data)) as server:
            server.warm(f"/{storm.hot(s)}", bench.content(storm.hot(s)))
            found = fill(bench, server, directory)
            bench.host.forget(found)
            server.counters.limit(storm.limits(s))
            return storm.beside(bench, server, pick, lambda: bench.host.forget(found))
