"""The cache policies of bench/admission as tables: what each reads from the disk, of all bytes that
are asked for, beside the best that does not know the future."""

import json
import os
import subprocess

from laboratory import host
from laboratory.progress import note
from laboratory.tables import count

NAMES = ("photo", "media", "video", "mix")
LONGEST = 300  # seconds for one


def path():
    return os.path.join(host.TREE, "build", "bench", "admission")


def program():
    if not os.access(path(), os.X_OK):
        raise RuntimeError(f"{path()} is not there: make bench-admission builds it")
    return path()


def simulate(name, whole=False, scale=1, memory=None):
    """memory: in MiB, in place of shares of all bytes."""
    argv = [program(), "--scale", str(scale), *(["--whole"] if whole else []),
            *(["--memory", str(memory)] if memory else []), name]
    done = subprocess.run(argv, check=True, timeout=LONGEST, text=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def online(trace):
    """The policies that know nothing of the future and are not ours."""
    return [p for p in trace["policies"] if not p["offline"] and not p["ours"]]


def best(trace):
    """For each size of memory the least of these."""
    return [min(column) for column in zip(*(p["missed"] for p in online(trace)))]


def ratios(trace, policy):
    return [missed / least if least else 1.0
            for missed, least in zip(policy["missed"], best(trace))]


def marked(missed, ratio):
    text = f"{missed:.4f}, {ratio:.3f}"
    return f"**{text}**" if ratio == 1 else text


def table(trace):
    head = ["policy", *(f"{gib:.3g} GiB" for gib in trace["rooms_gib"])]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for policy in trace["policies"]:
        cells = [marked(*pair) for pair in zip(policy["missed"], ratios(trace, policy))]
        lines.append("| " + " | ".join([policy["text"], *cells]) + " |")
    return "\n".join(lines)


def about(trace):
    piece = f"pieces of {trace['piece_kib']} KiB" if trace["piece_kib"] else "whole files"
    return (f"{count(trace['requests'])} requests for {count(trace['files'])} files of "
            f"{trace['unique_gib']:.1f} GiB, {trace['asked_gib']:.0f} GiB asked for; "
            f"{100 * trace['once']:.0f} % of the files are asked for once; cached in {piece}.")


def verdict(traces):
    """Of ours: the worst."""
    worst = max(ratio for trace in traces for policy in trace["policies"] if policy["ours"]
                for ratio in ratios(trace, policy))
    return f"`auto` reads at most {worst:.3f} times what the best online policy reads."


def run(names, whole=False, scale=1):
    traces = []
    for name in names:
        note(f"trace {name}")
        traces.append(simulate(name, whole, scale))
    parts = [verdict(traces)]
    for trace in traces:
        parts += [f"### {trace['trace']}", about(trace), table(trace)]
    return "\n\n".join(parts)
