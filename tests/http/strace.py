"""Reads what strace wrote: calls by thread, in the order in which they ended."""

import os
import re
import shutil
import subprocess

STRACE = ["strace", "-f", "-y", "-s", "64", "-o"]

ENTRY = re.compile(r"(\d+) +(\w+)\((.*)\Z")
RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)\Z")
UNFINISHED = " <unfinished ...>"
RESULT = re.compile(r"(.*)\) += (-?\d+|0x[0-9a-f]+|\?)(?:<[^>]*>)?(?: .*)?\Z")


def why_not():
    """Why nothing can be traced here, or None."""
    if not shutil.which("strace"):
        return "there is no strace"
    probe = subprocess.run(
        STRACE + ["/dev/null", "true"], capture_output=True, check=False
    )
    return None if probe.returncode == 0 else "ptrace is not permitted"


class Call:
    def __init__(self, tid, name, begin):
        self.tid = tid
        self.name = name
        self.begin = begin  # line number of its start
        self.end = None  # and of its end
        self.args = ""
        self.result = None  # int, or None
        self.error = None  # "EAGAIN"

    def __repr__(self):
        return "%d-%s %d %s(%s) = %s %s" % (
            self.begin, self.end, self.tid, self.name, self.args, self.result, self.error or "",
        )

    def finish(self, rest, line):
        self.args += rest
        self.end = line
        match = RESULT.match(self.args)
        if match:
            self.args = match.group(1)
            error = re.search(r"\) += -1 (E[A-Z0-9]+)", rest)
            self.error = error and error.group(1)
            if match.group(2) != "?":
                self.result = int(match.group(2), 0)


def parse(path):
    calls, open_calls = [], {}
    with open(path, errors="replace") as f:
        for number, line in enumerate(f):
            line = line.rstrip("\n")
            match = RESUMED.match(line)
            if match:
                call = open_calls.pop(int(match.group(1)), None)
                if call:
                    call.finish(match.group(3), number)
                continue
            match = ENTRY.match(line)
            if not match:
                continue
            call = Call(int(match.group(1)), match.group(2), number)
            calls.append(call)
            if match.group(3).endswith(UNFINISHED):
                call.args = match.group(3)[: -len(UNFINISHED)]
                open_calls[call.tid] = call
            else:
                call.finish(match.group(3), number)
    return calls


def thread_names(pid):
    names = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
            names[int(tid)] = f.read().strip()
    return names
