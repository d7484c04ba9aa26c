#!/usr/bin/env python3
"""nginx with the module under everything at once, all bytes verified.

    tests/nginx/soak_nginx.py --minutes N [--seed N]

Clients ask for whole files and ranges, over HTTP/1.1, fast and slowly, some leave in the middle; files
are replaced and leave memory; nginx is reloaded every few seconds.  At the end nothing may be left: no
old worker, no connection, no descriptor but those of the cache.  Says what was done, and ends with 1 if
a byte was wrong, an answer was missing or something was left.
"""

import argparse
import collections
import contextlib
import os
import random
import shutil
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, *(os.path.join(HERE, "..", name) for name in ("http", "fault")),
                os.path.join(HERE, "..", "..", "bench")]

import harness
import nginx_server
import tree as t

SIZES = [1, 4097, 60000, 65537, 300000, 2 * t.MIB + 1, 9 * t.MIB + 7]
CLIENTS = 12
RELOAD = 5  # seconds
SERVER = """server {
	listen unix:@on@;
	root %(root)s;
	pagewise on;
	location /drop/ { alias %(root)s/; pagewise_cache %(cache)s; }
	location /rate/ { alias %(root)s/; limit_rate 4m; }
	location /copy/ { alias %(root)s/; sendfile off; sendfile_max_chunk 16k; }
}"""
CACHE = ("drop", "keep")  # in turn: a file that may be dropped is asked about more often


def http(root, cache=CACHE[0]):
    return SERVER % {"root": root, "cache": cache}


class Soak:
    def __init__(self, server, root, seed):
        self.server, self.root = server, root
        self.contents = [[t.content(k, size) for k in (n, n + 100)]
                         for n, size in enumerate(SIZES)]
        self.rng = random.Random(seed)
        self.counts = collections.Counter()
        self.wrong = []
        self.ending = threading.Event()

    def client(self, seed):
        rng = random.Random(seed)
        while not self.ending.is_set():
            try:
                self.ask(rng)
            except Exception as e:  # pylint: disable=broad-except
                self.wrong.append("%r after %s" % (e, time.strftime("%H:%M:%S")))

    def ask(self, rng):
        n = rng.randrange(len(SIZES))
        size = SIZES[n]
        target = rng.choice(["", "drop/", "rate/", "copy/"]) + "file%d" % n
        first, last, fields = 0, size - 1, ()
        if rng.random() < 0.4:
            first = rng.randrange(size)
            last = rng.randrange(first, size)
            fields = ("Range: bytes=%d-%d" % (first, last),)
        slow = rng.random() < 0.2
        s = self.server.connect("on", rcvbuf=4096 if slow else None)
        with s:
            s.sendall(nginx_server.request("/" + target, fields=fields))
            if rng.random() < 0.2:
                s.recv(rng.randrange(1, 100000))
                self.counts["left"] += 1
                return
            if slow:
                time.sleep(rng.random())
            with s.makefile("rb") as f:
                head, _, body = f.read().partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 206" if fields else b"HTTP/1.1 200"):
            self.wrong.append("%s %s: %r" % (target, fields, head[:60]))
        elif body not in [content[first:last + 1] for content in self.contents[n]]:
            self.wrong.append("%s %s: %d bytes that differ" % (target, fields, len(body)))
        self.counts["verified"] += 1
        self.counts["bytes"] += len(body)

    def disturb(self):
        """Files leave memory, or are replaced by others of the same size."""
        while not self.ending.wait(0.01):
            n = self.rng.randrange(len(SIZES))
            path = os.path.join(self.root, "file%d" % n)
            if self.rng.random() < 0.05:
                t.write(path + ".new", self.rng.choice(self.contents[n]), None)
                os.rename(path + ".new", path)
                self.counts["replaced"] += 1
                continue
            with open(path, "rb") as f:
                os.fsync(f.fileno())
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.counts["evicted"] += 1

    def run(self, seconds):
        threads = [threading.Thread(target=self.client, args=(self.rng.random(),))
                   for _ in range(CLIENTS)] + [threading.Thread(target=self.disturb)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(self.wrong) < 10:
            time.sleep(min(RELOAD, max(0, end - time.monotonic())))
            self.counts["reloads"] += 1
            self.server.configure(http(self.root, CACHE[self.counts["reloads"] % len(CACHE)]))
            self.server.reload()
        self.ending.set()
        for thread in threads:
            thread.join()

    def left(self):
        """What should not be there any more; the cache closes what nobody asks for in ten seconds."""
        def one():
            return len(self.server.workers()) == 1
        harness.wait_until(one, "old workers to end", 60)
        (pid,) = self.server.workers()
        # The first opens the mount's root, and wakes the cache.
        self.server.get("on", "/file0")
        with contextlib.suppress(AssertionError):
            harness.wait_until(lambda: not self.open_files(pid), "the cache", 30, 0.5)
        return self.open_files(pid) + [d for d in self.server.descriptors(pid) if "pw-soak" in d]

    def open_files(self, pid):
        return [d for d in self.server.descriptors(pid) if d.startswith(self.root)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if reason := nginx_server.why_not():
        sys.exit(reason)
    with contextlib.ExitStack() as undo:
        root = tempfile.mkdtemp(prefix="pw-soak-", dir="/var/tmp")
        undo.callback(shutil.rmtree, root, ignore_errors=True)
        os.chmod(root, 0o755)
        for n, size in enumerate(SIZES):
            t.write(os.path.join(root, "file%d" % n), t.content(n, size), None)
        run = tempfile.mkdtemp(prefix="pw-nginx-")
        undo.callback(shutil.rmtree, run, ignore_errors=True)
        server = nginx_server.Nginx(run, http(root)).start()
        undo.callback(server.stop)
        soak = Soak(server, root, args.seed)
        soak.run(args.minutes * 60)
        left = soak.left()
        server.stop()
        server.healthy()
        print(", ".join("%d %s" % (count, what) for what, count in sorted(soak.counts.items())))
        for what in [*soak.wrong, *("left behind: " + d for d in left)]:
            print(what)
        if soak.wrong or left or not soak.counts["verified"]:
            sys.exit(1)


if __name__ == "__main__":
    main()
