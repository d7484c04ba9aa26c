"""What a request costs a program in C, and through the crate for Rust: instructions in user space, by callgrind, and
CPU time.  The programs are bench/calls.c and the crate's example calls."""

import os
import statistics
import subprocess
import tempfile

from laboratory import callgrind, host
from laboratory.profile import OPENAT2

BUILD = os.path.join(host.TREE, "build")
IN_C = os.path.join(BUILD, "bench", "calls")
IN_RUST = os.path.join(BUILD, "cargo", "release", "examples", "calls")
PROGRAMS = {"C": [IN_C], "Rust, a socket of tokio": [IN_RUST, "tokio"], "Rust, the crate": [IN_RUST, "crate"]}
SIZES = (1, 16)  # KiB
COUNTED = 5000   # requests for callgrind, and twice as many
TIMED = 50_000   # requests whose CPU time is measured, in each round
ROUNDS = 5
LONGEST = 600    # seconds of one program
ENV = {**os.environ, "LD_LIBRARY_PATH": BUILD}


def check():
    for name, path, cure in (("valgrind", host.tool("valgrind"), "conf/install-deps.sh profile"),
                             *((path, os.path.exists(path), "make bench-calls") for path in (IN_C, IN_RUST, OPENAT2))):
        if not path:
            raise RuntimeError(f"{name} is not there: {cure}")


def counted(argv):
    with tempfile.TemporaryDirectory(prefix="pagewise-lab-") as out:
        subprocess.run([*callgrind.command(out), *argv], check=True, timeout=LONGEST, env={**ENV, "LD_PRELOAD": OPENAT2})
        return callgrind.counted(out)


def instructions(argv, number):
    """Of a request: what so many more of them take."""
    once = counted([*argv, str(number)])
    return counted([*argv, str(2 * number)]).beyond(once, number).instructions()


def cpu(argv, number):
    """Microseconds of a request."""
    child = subprocess.Popen([*argv, str(number)], env=ENV)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{argv[0]} failed")
    return (usage.ru_utime + usage.ru_stime) * 1e6 / number


def times(requests, number):
    """Rounds in turn, so that what changes on the machine meets all: the medians."""
    found = {title: [] for title in requests}
    for _ in range(ROUNDS):
        for title, argv in requests.items():
            found[title].append(cpu(argv, number))
    return {title: statistics.median(values) for title, values in found.items()}


def measure(kib, number, timed):
    with tempfile.TemporaryDirectory(prefix="pagewise-lab-") as directory:
        with open(f"{directory}/file", "wb") as f:
            f.write(os.urandom(kib << 10))
        requests = {title: [*argv, directory, "file"] for title, argv in PROGRAMS.items()}
        took = times(requests, timed)
        return {title: (instructions(argv, number), took[title]) for title, argv in requests.items()}


def table(kib, found):
    base = found["C"]
    yield f"| {kib} KiB | instructions | of C | CPU µs | of C |"
    yield "|---" * 5 + "|"
    for title, (count, took) in found.items():
        yield f"| {title} | {count:.0f} | {count / base[0]:.2f} | {took:.2f} | {took / base[1]:.3f} |"
    yield ""


def run(number=COUNTED, timed=TIMED):
    check()
    return "\n".join(line for kib in SIZES for line in table(kib, measure(kib, number, timed)))
