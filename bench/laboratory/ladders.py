"""The ladders of bench/ladders as tables and bar charts: each rung measured here, and
beside it the figure of the article that it comes from."""

import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile

from laboratory import host, plot, report, results
from laboratory.progress import note

NAMES = ("pipes", "gup", "pages", "ring")
TITLES = {
    "pipes": "Pipes: throughput, as a multiple of the first rung",
    "gup": "get_user_pages_fast: speed for a page, as a multiple of that with 4 KiB pages",
    "pages": "Pages: speed of the first memset, as a multiple of that with 4 KiB pages",
    "ring": "Ring: speed of a write, as a multiple of the bytewise one",
}
LONGEST = 600  # seconds for one
SIZES = ("4k", "16k", "64k", "256k", "1m", "2m")  # of the buffer of pipes
BY_SIZE = ("--rounds", "3", "--seconds", "0.1")
# In the profile: functions of the writer's side, by what they do.
PARTS = {
    "copying": r"copy_page_from_iter|_copy_from_iter",
    "allocating pages": r"^_*alloc_(frozen_)?pages",
    "`iov_iter_get_pages`": r"^_*iov_iter_get_pages",
    "entries of the pipe": r"^add_to_pipe",
    "lock": r"^_*mutex_(spin_on|lock|optimistic)",
    "waiting": r"^(wait_for_space|pipe_wait|prepare_to_wait|schedule)",
    "waking": r"^_*wake_up",
}
# Shares of all samples there, in percent, by rung and part.
PROFILED = {
    "`write`, `read`": {"copying": 24.08, "allocating pages": 11.76, "waiting": 4.98, "waking": 2.98},
    "the same, pages touched first": {"`iov_iter_get_pages`": 17.88, "lock": 16.57,
                                      "entries of the pipe": 3.89},
    "the same from huge pages": {"waiting": 14.90, "waking": 8.27, "entries of the pipe": 4.40,
                                 "`iov_iter_get_pages`": 4.24, "lock": 3.92},
}
WRITER = r"pipe_write|vmsplice"
SAMPLES = ("--quiet", "-g", "-F", "4999")
PROFILE = ("--rounds", "1", "--seconds", "1")


def program(name):
    path = os.path.join(host.TREE, "build", "bench", "ladders", name)
    if not os.access(path, os.X_OK):
        raise RuntimeError(f"{path} is not there: make bench-ladders builds it")
    return path


def measure(name, *options):
    done = subprocess.run([program(name), "--json", *options], check=True, timeout=LONGEST,
                          text=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def measured(name):
    """Measures a ladder, with what belongs to it alone."""
    ladder = measure(name)
    if name == "pipes":
        ladder["sizes"] = {size: medians(measure(name, "--size", size, *BY_SIZE)) for size in SIZES}
        ladder["profile"] = profile([rung["name"] for rung in ladder["rungs"]])
    return ladder


def medians(ladder):
    return {rung["name"]: rung["median"] for rung in ladder["rungs"]}


# ---------------------------------------------------------------- profile


def profile(names):
    """Returns by rung the share of each part in the samples of perf, or {"why_not": ...}."""
    if not (perf := shutil.which("perf")):
        return {"why_not": "perf is not installed"}
    found = {}
    with tempfile.TemporaryDirectory(prefix="pagewise-lab-") as scratch:
        for number, name in enumerate(names, 1):
            file = f"{scratch}/{number}"
            done = subprocess.run(
                [perf, "record", *SAMPLES, "-o", file, "--", program("pipes"), "--json", "--only",
                 str(number), *PROFILE],
                check=False, timeout=LONGEST, text=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            text = subprocess.run([perf, "script", "-i", file, "-F", "comm,ip,sym"], check=False,
                                  timeout=LONGEST, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL).stdout
            if not (of_rung := shares(text)):
                why = done.stderr.strip().splitlines()
                return {"why_not": f"perf: {why[-1] if why else 'no samples'}"}
            found[name] = of_rung
    return found


def shares(text):
    """Reads what `perf script` printed.  Returns by part its share of all samples, or None without
    the kernel's names, which only root has."""
    stacks = [[line.split(maxsplit=1)[-1] for line in block.splitlines()[1:]]
              for block in text.split("\n\n") if block.strip()]
    writers = [stack for stack in stacks if any(re.search(WRITER, name) for name in stack)]
    if not writers:
        return None
    return {part: sum(any(re.search(pattern, name) for name in stack) for stack in writers) /
            len(stacks) for part, pattern in PARTS.items()}


def times(ladder, value, first):
    """How many times as fast as the first rung; None without one of the two."""
    if not value or not first:
        return None
    return first / value if ladder["less_is_faster"] else value / first


def ratios(ladder, key):
    first = ladder["rungs"][0][key]
    return [times(ladder, rung[key], first) for rung in ladder["rungs"]]


def number(value):
    return "–" if value is None else f"{value:.3g}"


def table(ladder):
    rungs = ladder["rungs"]
    first, also, keys = rungs[0], [], []
    for i, one in enumerate(first["also"]):
        also.append(f"{one['measure']}, {one['unit']}".rstrip(", "))
        keys.append((i, "median"))
        if any(rung["also"][i]["source"] for rung in rungs):
            also.append("there")
            keys.append((i, "source"))
    head = [ladder["ladder"], f"{first['measure']}, {first['unit']}", "least–greatest",
            "× first", "there", "× first there", *also, "rounds"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for rung, here, there in zip(rungs, ratios(ladder, "median"), ratios(ladder, "source")):
        if rung["why_not"]:
            cells = [rung["name"], rung["why_not"], *[""] * (len(head) - 2)]
        else:
            cells = [rung["name"], number(rung["median"]),
                     f"{number(rung['min'])}–{number(rung['max'])}", number(here),
                     number(rung["source"]), number(there),
                     *(number(rung["also"][i][key]) for i, key in keys),
                     str(len(rung["values"]))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def references(ladder):
    """Yields the table of what stands beside the rungs, in their unit."""
    if not (found := ladder.get("references")):
        return
    unit = ladder["rungs"][0]["unit"]
    yield from (f"| beside it, {unit} | here | there |", "|---|---|---|")
    for one in found:
        yield f"| {one['name']} | {number(one['median'])} | {number(one['source'])} |"
    yield ""


def by_size(ladder):
    if not (found := ladder.get("sizes")):
        return
    unit = ladder["rungs"][0]["unit"]
    yield from (f"By the size of the buffer, {unit} (there only 256 KiB):", "")
    yield "| " + " | ".join(["", *(size.upper().replace("K", " KiB").replace("M", " MiB")
                                  for size in found)]) + " |"
    yield "|---" * (len(found) + 1) + "|"
    for rung in ladder["rungs"]:
        yield "| " + " | ".join([rung["name"], *(number(of.get(rung["name"]))
                                                for of in found.values())]) + " |"
    yield ""


def percent(share):
    return "–" if share is None else f"{share:.1%}"


def profiled(ladder):
    """Yields the table of the profile: each part here, and in parentheses there."""
    found = ladder.get("profile", {})
    if "why_not" in found:
        yield from (f"Profile of each rung: – ({found['why_not']}).", "")
    elif found:
        yield from ("Where the writer's side spends its time: share of all samples of both sides, "
                    "by `perf record` (there). A dash: this kernel has no such function, since it "
                    "is part of its caller.", "")
        yield "| " + " | ".join(["", *PARTS]) + " |"
        yield "|---" * (len(PARTS) + 1) + "|"
        known = {part for parts in found.values() for part, share in parts.items() if share}
        for name, parts in found.items():
            there = PROFILED.get(name, {})
            yield "| " + " | ".join([name, *(
                percent(parts[part] if part in known else None) + (
                    f" ({there[part]:.1f}%)" if part in there else "") for part in PARTS)]) + " |"
        yield ""


def body(ladder):
    """Returns the lines of all tables, in Markdown."""
    return [*table(ladder).splitlines(), "", *references(ladder), *by_size(ladder),
            *profiled(ladder)]


def about(ladder):
    here = ladder["environment"]
    options = ", ".join(f"{k} {v}" for k, v in ladder["options"].items())
    return (f"Here: Linux {here['kernel']}, {here['cpu']}, {here['cpus']} CPUs, {options}. "
            f"There: {ladder['source']}. {ladder['notes']}")


def chart(ladder, path):
    with open(path, "w", encoding="utf-8") as f:
        f.write(report.svg(drawn(ladder)))


def drawn(ladder):
    rungs = ladder["rungs"]
    figure, ax = plot.new(height=2 * plot.ROW * len(rungs) + plot.EDGE)
    first = rungs[0]["median"]
    for i, (rung, here, there) in enumerate(
            zip(rungs, ratios(ladder, "median"), ratios(ladder, "source"))):
        if there:
            bar(ax, i + 0.2, there, plot.PEER, "there" if i == 0 else None)
        if here:
            ends = sorted(times(ladder, rung[key], first) for key in ("min", "max"))
            bar(ax, i - 0.2, here, plot.OURS, "here" if i == 0 else None, ends)
    lines(ax, ladder)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    ax.set_yticks(range(len(rungs)), [rung["name"].replace("`", "") for rung in rungs])
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.set_title(TITLES[ladder["ladder"]], fontsize=10, loc="left")
    ax.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(0, -0.04 - 0.16 / len(rungs)),
              ncols=3)
    return figure


def lines(ax, ladder):
    """Draws what stands beside the rungs, as multiples of the first one here, or there."""
    first = ladder["rungs"][0]
    styles = itertools.cycle((":", "--", "-."))
    for one in ladder.get("references", ()):
        style = next(styles)
        for key, base, shade, where in (("median", first["median"], plot.OURS, "here"),
                                        ("source", first["source"], plot.PEER, "there")):
            if one[key] and base:
                ax.axvline(one[key] / base, color=shade, linewidth=1.1, linestyle=style,
                           label=f"{one['name'].replace('`', '')}, {where}")


def bar(ax, at, value, shade, label, ends=None):
    whiskers = ends and [[value - ends[0]], [ends[1] - value]]
    ax.barh(at, value, 0.37, color=shade, label=label, xerr=whiskers,
            error_kw={"ecolor": plot.INK, "elinewidth": 0.8})
    ax.annotate(f"{value:.3g}", (ends[1] if ends else value, at), xytext=(4, 0),
                textcoords="offset points", va="center", fontsize=8)


def run(out):
    """Measures all, and writes ladders.md and a picture of each."""
    os.makedirs(out, exist_ok=True)
    parts = []
    for name in NAMES:
        note(f"ladder {name}")
        ladder = measured(name)
        results.save(os.path.join(out, f"{name}.json"), ladder)
        chart(ladder, os.path.join(out, f"ladder-{name}.svg"))
        note(f"made {os.path.join(out, f'ladder-{name}.svg')}")
        parts.append("\n".join([f"![{TITLES[name]}](ladder-{name}.svg)", "", *body(ladder),
                                about(ladder), ""]))
    path = os.path.join(out, "ladders.md")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(parts))
    note(f"made {path}")
    return "\n".join(parts)
