"""The ladders of bench/ladders as tables and bar charts: each rung measured here, and
beside it the figure of the article that it comes from."""

import json
import os
import subprocess

from laboratory import host, plot, report, results
from laboratory.progress import note

NAMES = ("pipes", "pages", "ring")
TITLES = {
    "pipes": "Pipes: throughput, as a multiple of the first rung",
    "pages": "Pages: speed of the first memset, as a multiple of that with 4 KiB pages",
    "ring": "Ring: speed of a write, as a multiple of the bytewise one",
}
LONGEST = 600  # seconds for one


def program(name):
    path = os.path.join(host.TREE, "build", "bench", "ladders", name)
    if not os.access(path, os.X_OK):
        raise RuntimeError(f"{path} is not there: make bench-ladders builds it")
    return path


def measure(name):
    done = subprocess.run([program(name), "--json"], check=True, timeout=LONGEST, text=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


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
    first, also = rungs[0], []
    for one in first["also"]:
        also += [f"{one['measure']}, {one['unit']}".rstrip(", "), "there"]
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
                     *(number(one[key]) for one in rung["also"]
                       for key in ("median", "source")),
                     str(len(rung["values"]))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


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
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    ax.set_yticks(range(len(rungs)), [rung["name"].replace("`", "") for rung in rungs])
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.set_title(TITLES[ladder["ladder"]], fontsize=10, loc="left")
    ax.legend(fontsize=8, frameon=False, loc="lower right")
    return figure


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
        ladder = measure(name)
        results.save(os.path.join(out, f"{name}.json"), ladder)
        chart(ladder, os.path.join(out, f"ladder-{name}.svg"))
        note(f"made {os.path.join(out, f'ladder-{name}.svg')}")
        parts.append(f"![{TITLES[name]}](ladder-{name}.svg)\n\n{table(ladder)}\n\n"
                     f"{about(ladder)}\n")
    path = os.path.join(out, "ladders.md")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(parts))
    note(f"made {path}")
    return "\n".join(parts)
