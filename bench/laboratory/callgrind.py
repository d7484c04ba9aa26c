"""What callgrind counted: instructions in each function, and how often it was called.

The format is described in the manual of valgrind, "Callgrind Format Specification".
"""

import collections
import glob
import os
import re

from laboratory.limits import read

COMMAND = ("valgrind", "--tool=callgrind", "--trace-children=yes", "--vgdb=no", "-q")
ALLOCATE = ("malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign")
NAME = re.compile(r"\((\d+)\)(?: (.*))?")


class Counts:
    """own: instructions by function; calls: how often each was called."""

    def __init__(self, own=(), calls=()):
        self.own, self.calls = collections.Counter(own), collections.Counter(calls)

    def instructions(self):
        return sum(self.own.values())

    def called(self, *names):
        return sum(self.calls[name] for name in names)

    def __add__(self, other):
        return Counts(self.own + other.own, self.calls + other.calls)

    def beyond(self, other, number):
        """What this one has more, of each of so many requests."""
        def more(mine, less):
            return {name: (mine[name] - less[name]) / number for name in {*mine, *less}}
        return Counts(more(self.own, other.own), more(self.calls, other.calls))


def command(directory):
    return [*COMMAND, f"--callgrind-out-file={directory}/callgrind.%p"]


def parsed(text):
    counts, names = Counts(), {}
    function = callee = None
    call = False

    def named(word):
        """A name follows its number once; the same one in a cycle has an end such as '2."""
        number, name = NAME.match(word).groups()
        if name:
            names[number] = name.partition("'")[0]
        return names[number]

    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == "fn":
            function = named(value)
        elif key == "cfn":
            callee = named(value)
        elif key == "calls":
            counts.calls[callee] += int(value.split()[0])
            call = True
        elif line[:1] in set("+-*0123456789"):
            if not call:  # else it is what the callee took, all in all
                counts.own[function] += int(line.split()[1])
            call = False
    return counts


def counted(directory):
    """All processes together; RuntimeError if there is none."""
    files = glob.glob(f"{directory}/callgrind.*")
    counts = sum((parsed(read(path)) for path in files), Counts())
    for path in files:
        os.unlink(path)
    if not counts.own:
        raise RuntimeError("callgrind has counted nothing")
    return counts
