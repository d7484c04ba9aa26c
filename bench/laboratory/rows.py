"""`bench/lab rows`: the figures of which none may be behind a peer, in one table.

A row compares pagewise in a table of the plan with the best configuration of each peer.  Its page is
measured with less than the plan has: what the row needs.
"""

import dataclasses
import operator
import os

from laboratory import cite, plan
from laboratory.tables import WAIT, Column, View, shown, times, with_spread
from laboratory.verdicts import NOTHING, OURS, OURS_TLS, best, cells, of, peers, pick, tables

ROUNDS = 3
NO_RFS = "--no-rfs"
CPU, COST, RATE = "CPU µs/request", "CPU s/GiB", "MB/s"
MS = 1000  # in µs
NO_FIGURES = "no figures"
RATIO = Column("", times, None)
COLD = {"paths": (OURS,), "peers": (
    "nginx", "nginx-threads", "nginx-threads-64", "nginx-threads-chunk", "h2o", "h2o-uring", "lighttpd")}
# Of the pages that the rows are of: how they are narrowed.
PAGES = {
    "hot": {"settings": {"cases": "1K,16K,64K,256K,1M,10M"}},
    "module": {"settings": {"cases": "1M"}},
    "http2-large": {},
    "download-http2": {"settings": {"streams": "64"}},
    "download-http2-tls": {"settings": {"streams": "64"}},
    "download": COLD,
    "download-readahead": COLD,
    "slow": {"paths": (OURS,)},
    "thesis": {"settings": {"cache": "keep", "seconds": 3}, "paths": (OURS,),
               "peers": ("nginx", "nginx-threads-64")},
    "handshakes": {"settings": {"cases": "P-256,resumed"}},
    "storm-deployed": {"paths": (OURS, "nodiskio-unprivileged", "nodiskio-refused")},
}


@dataclasses.dataclass(frozen=True)
class Row:
    """table: how its title begins.  wanted: the greatest ratio to the best peer, or the least where
    more is better; with alone, that of the figure itself, of the worst candidate of ours in all such
    tables.  peers: how the names of those that count begin."""
    title: str
    page: str
    table: str
    column: str
    wanted: float
    subject: str = OURS
    peers: str = ""
    alone: bool = False


AHEAD = "download-readahead"
ROWS = (
    Row("hot, 1 KiB", "hot", "1 KiB", CPU, 0.88),
    Row("hot, 16 KiB", "hot", "16 KiB", CPU, 0.84),
    Row("hot, 64 KiB", "hot", "64 KiB", CPU, 0.95),
    Row("hot, 64 KiB, against nginx", "hot", "64 KiB", CPU, 0.85, peers="nginx"),
    Row("hot, 256 KiB", "hot", "256 KiB", CPU, 1.0),
    Row("hot, 1 MiB", "hot", "1 MiB", CPU, 0.95),
    Row("hot, 10 MiB", "hot", "10 MiB", CPU, 0.95),
    Row("module, 1 MiB", "module", "1 MiB", CPU, 1.05, "nginx-pagewise"),
    Row("HTTP/2, 64 streams, hot", "http2-large", "16 MiB", COST, 0.90),
    Row("HTTP/2, 64 streams, hot, rate", "http2-large", "16 MiB", "MiB/s", 1.0),
    Row("HTTP/2, 64 streams, hot, TLS", "http2-large", "16 MiB", COST, 0.95, OURS_TLS),
    Row("HTTP/2, 64 streams, hot, TLS, rate", "http2-large", "16 MiB", "MiB/s", 1.0, OURS_TLS),
    Row("HTTP/2, 64 streams, cold", "download-http2", "64 ×", COST, 0.80),
    Row("HTTP/2, 64 streams, cold, TLS", "download-http2-tls", "64 ×", COST, 0.90, OURS_TLS),
    Row("cold, 64 clients, read_ahead_kb 128", "download", "64 ×", COST, 0.80),
    Row("cold, 64 clients, read_ahead_kb 128, rate", "download", "64 ×", RATE, 1.0),
    Row("cold, 64 clients, read_ahead_kb 8192", AHEAD, "64 ×", COST, 0.95),
    Row("cold, 64 clients, read_ahead_kb 8192, rate", AHEAD, "64 ×", RATE, 1.05),
    Row("cold, one client, read_ahead_kb 128", "download", "1 ×", COST, 0.60),
    Row("cold, one client, read_ahead_kb 8192", AHEAD, "1 ×", COST, 0.95),
    Row("cold, 64 clients, CPU s/GiB", "download", "64 ×", COST, 0.15, alone=True),
    Row("cold, 64 clients, MB/s", "download", "64 ×", RATE, 2200, alone=True),
    Row("cold, one client, CPU s/GiB", "download", "1 ×", COST, 0.18, alone=True),
    Row("cold, one client, MB/s", "download", "1 ×", RATE, 1400, alone=True),
    Row("slow clients", "slow", "", COST, 1.0),
    Row("slow clients, disk bytes", "slow", "", "disk bytes per byte taken", 1.0),
    Row("thesis load", "thesis", "", COST, 0.75),
    Row("handshakes, full", "handshakes", "full", "CPU µs each", 1.0, OURS_TLS, "nginx"),
    Row("handshakes, resumed", "handshakes", "resumed", "CPU µs each", 1.0, OURS_TLS, "nginx"),
    Row("storm as deployed, p99", "storm-deployed", "", "p99", 10 * MS, alone=True),
    Row("storm as deployed, asleep", "storm-deployed", "", "loop asleep", 0, alone=True),
    *(Row(f"{page}, {WAIT}", page, "", WAIT, 2 * MS, alone=True)
      for page in ("download", AHEAD, "download-http2", "download-http2-tls")),
)


def pages(wanted=None, rfs=True):
    """Of the plan, as the rows need them."""
    more = plan.ALONE if rfs else (*plan.ALONE, NO_RFS)
    for page in plan.chosen(wanted or PAGES):
        change = PAGES[page.name]
        yield dataclasses.replace(page, **{
            **change, "settings": {**page.settings, **change.get("settings", {})},
            "options": tuple(dict.fromkeys((*page.options, *more)))})


# ------------------------------------------------------------------ lines


def line(view, row):
    """Its texts: ours, the best of each program, the ratio to the best of all, wanted, verdict."""
    found = [(table, cell) for table in tables(view) if table.title.startswith(row.table)
             and row.column in [column.title for column in table.columns]
             for cell in cells(view, table, row.column)]
    if row.alone:
        return alone(view, row, [cell for _, cell in found if view.ours(cell.name)])
    found = [(table, cell) for table, cell in found if table is found[0][0]]
    mine = of([cell for _, cell in found], row.subject)
    others = peers(view, [cell for _, cell in found if cell.name.startswith(row.peers)], row.subject)
    if not mine or not others:
        return [str(mine or NOTHING), NOTHING, NOTHING, f"{row.wanted:.2f}", NO_FIGURES]
    other, table = best(others), found[0][0]
    ratio = view.ratio(mine.name, other.name, mine.column.get, pick(view, table, mine),
                       pick(view, table, other))
    return [str(mine), "; ".join(f"{view.title(cell.name)} {cell}" for cell in of_programs(view, others)),
            with_spread(*shown(RATIO, ratio)), *judged(ratio and ratio.median, row, mine.column, RATIO.show)]


def alone(view, row, ours):
    if not ours:
        return [NOTHING, NOTHING, NOTHING, NOTHING, NO_FIGURES]
    choose = min if ours[0].column.better == "more" else max
    worst = choose(ours, key=lambda cell: cell.summary.median)
    return [f"{view.title(worst.name)} {worst}", NOTHING, NOTHING,
            *judged(worst.summary.median, row, worst.column, worst.column.show)]


def judged(value, row, column, show):
    """What is wanted, and whether it is so."""
    sign, good = {"more": ("≥", operator.ge), "less": ("≤", operator.le)}[column.better]
    said = NO_FIGURES if value is None else "reached" if good(value, row.wanted) else "**not reached**"
    return [f"{sign} {show(row.wanted)}", said]


def of_programs(view, others):
    """The best of the cells of each program: of nginx, of H2O."""
    known = {}
    for cell in others:
        known.setdefault(view.title(cell.name).partition(",")[0], []).append(cell)
    return map(best, known.values())


def view(measured):
    run, scenario = measured.run(), measured.page.scenario
    return View(run.about, scenario, run.of(scenario))


def markdown(views, wanted):
    """views: by pages, of which wanted are those of the rows."""
    yield from (f"- {key}: {text}" for key, text in next(iter(views.values())).host.items())
    yield from ("", "| row | pagewise | the best of each peer | ratio | wanted | |", "|---" * 6 + "|")
    for row in ROWS:
        if row.page in views:
            yield f"| {' | '.join([row.title, *line(views[row.page], row)])} |"
        elif row.page in wanted:
            yield f"| {row.title} | {NOTHING} | {NOTHING} | {NOTHING} | {NOTHING} | {NO_FIGURES} |"
    yield ""
    for page, view in views.items():
        for one in view.failures():
            yield f"- failed: {page}: {view.title(one.candidate)}, round {one.number}: {one.error}"


def run(args, host):
    """Measures the rows' pages, and returns the text of the table, which is in rows.md as well."""
    wanted = list(pages(args.only, args.rfs))
    if not args.write:
        cite.perform(args, host, wanted)
    views = {one.page.name: view(one) for page in wanted if (one := cite.found(args.out, page))}
    if not views:
        raise RuntimeError(f"nothing is measured in {args.out}")
    text = "\n".join(markdown(views, [page.name for page in wanted])) + "\n"
    with open(os.path.join(args.out, "rows.md"), "w", encoding="utf-8") as f:
        f.write(text)
    return text
