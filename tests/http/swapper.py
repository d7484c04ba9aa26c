#!/usr/bin/env python3
"""Exchanges pairs of names as fast as it can until its standard input ends; says that it has
begun, and how often.

    swapper.py A B [A B ...]

A process of its own, so that it and the clients do not wait for each other.
"""

import ctypes
import os
import select
import subprocess
import sys

AT_FDCWD = -100
RENAME_EXCHANGE = 2
ROUNDS = 64  # between two looks at standard input


def exchange(libc, a, b):
    if libc.renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fsdecode(a))


class Swapper:
    """with Swapper((a, b), ...) as swapper: ...; swapper.count afterwards."""

    def __init__(self, *pairs):
        names = [os.fspath(name) for pair in pairs for name in pair]
        self.process = subprocess.Popen([sys.executable, __file__, *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.count = 0

    def __enter__(self):
        self.process.stdout.readline()  # on a busy machine it begins late
        return self

    def __exit__(self, *exc):
        output, _ = self.process.communicate()
        assert self.process.returncode == 0
        self.count = int(output)


def main(names):
    libc = ctypes.CDLL(None, use_errno=True)
    pairs = list(zip(names[::2], names[1::2]))
    count = 0
    print("begun", flush=True)
    while not select.select([0], [], [], 0)[0]:
        # An even number: in the end all is where it was.
        for _ in range(ROUNDS):
            for a, b in pairs:
                exchange(libc, a, b)
                count += 1
    print(count)


if __name__ == "__main__":
    main([os.fsencode(name) for name in sys.argv[1:]])
