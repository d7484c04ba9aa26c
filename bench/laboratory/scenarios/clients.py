"""clients: ten thousand slow clients on cold files, in little memory."""

from laboratory.bench import MIB
from laboratory.scenarios import slow

TITLE = "Clients: ten thousand on thin lines, each with a cold file of its own"
WHAT = """The scenario slow with more and slower clients: each takes 1 Mbit/s, all of them
together 10 Gbit/s, of bytes that nobody else is being sent: a MiB of a 4 MiB file. They go
through the list of all of these in its order. It is one and a half times as long as there are
clients, so it takes some 13 s, and many times what memory holds, until something is asked for
again. With 512 MiB of page cache a client has 52 KiB of it, and what waits in its socket is a
part of that. What two cores, one for the server and one for all of the clients, carry through
the loopback is less than they could take: the share is in the table."""
NEEDS = slow.NEEDS
# rate: bytes/s of each; seconds, lead: as in slow; ramp: seconds until all have come.  Not a
# file for each client: some machines let a process have 20 000 descriptors
FULL = {"rounds": 1, "clients": 10000, "rate": 125000, "seconds": 20, "lead": 30,
        "files": 4096,
        "limit_mib": 4000, "memory_mib": 512, "rcvbuf": 16384, "congestion": "reno",
        "ramp": 20.0}
QUICK = {"clients": 500, "files": 512, "seconds": 5, "lead": 5, "memory_mib": 64,
         "ramp": 2.0}
PARTS = 4  # of a file, each a MiB
CANDIDATES = QUICK_CANDIDATES = ("nodiskio", "nginx")
NOTES = [note for note in slow.NOTES if "Apache" not in note and "several times" not in note] + [
    "The disk has no limit that matters.",
    "Where the kernel reads ahead, it goes on behind the part that was asked for.",
    "nginx has a table of 16 384 connections (bench/peers).",
]


def names(s):
    return [f"clients/{i:05d}" for i in range(1, s.files + 1)]


def files(s):
    return [(name, PARTS * MIB) for name in names(s)]


def pieces(s):
    """The first MiB of each, then the second, and so on: as the load generators take it."""
    return [f"{name}#{i * MIB}-{(i + 1) * MIB - 1}" for i in range(PARTS) for name in names(s)]


seconds = slow.seconds


def measure(bench, cand):
    s = bench.settings
    return slow.clients(bench, cand, names(s), pieces(s),
                       ("--in-order", "--rcvbuf", s.rcvbuf, "--ramp", s.ramp))


tables, figures = slow.tables, slow.figures
