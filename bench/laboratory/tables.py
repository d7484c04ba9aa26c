"""What the rounds of a scenario add up to: medians and spreads, as tables.

A View is what a scenario's tables() and figures() get.
"""

import dataclasses
import itertools
import math
import typing

from laboratory import servers, stats

WAIT = "longest wait for the CPU"


@dataclasses.dataclass(frozen=True)
class Column:
    title: str
    show: typing.Callable  # a number -> text
    get: typing.Callable   # the values of one round -> a number, or None
    better: str = ""       # "more" or "less": the best are set off


@dataclasses.dataclass(frozen=True)
class Table:
    """pick takes the part of a round's values that the columns are given; None
    where a candidate has none.  variants: a row of each candidate for each of them,
    pairs of a function of its name that says what stands behind its title, and of one
    that takes the part of what pick gave; None where there is none."""
    title: str
    columns: list
    pick: typing.Callable = lambda values: values
    variants: tuple = ((lambda name: "", lambda values: values),)

    def picks(self, part):
        def both(values):
            picked = self.pick(values)
            return None if picked is None else part(picked)
        return both


class View:
    """The finished rounds of one scenario.  names: candidates, in order, of which
    at least one round succeeded."""

    def __init__(self, about, scenario, rounds):
        self.scenario = scenario
        self.host, self.candidates = about.get("host", {}), about["candidates"]
        self.settings = about["scenarios"][scenario]["settings"]
        self.rounds = rounds
        seen = {r.candidate for r in rounds if r.values is not None}
        self.names = [name for name in self.candidates if name in seen]

    def title(self, name):
        return self.candidates[name]["title"]

    def ours(self, name):
        return self.candidates[name]["kind"] == "path"

    def servers(self):
        """Without references, such as fio."""
        return [n for n in self.names if self.candidates[n]["kind"] != "reference"]

    def values(self, name):
        return [r.values for r in self.rounds
                if r.candidate == name and r.values is not None]

    def samples(self, name, label):
        """The samples of each round."""
        return [r.samples[label] for r in self.rounds
                if r.candidate == name and label in r.samples]

    def summary(self, name, get, pick=lambda values: values):
        """Summary of a number over the rounds; None without any."""
        parts = [pick(values) for values in self.values(name)]
        return stats.summary([get(part) for part in parts if part is not None])

    def share_of(self, name, get, pick):
        """A function of a part of a round's values: its number as a share of this
        candidate's in the same round ("round" in both); None for that one itself."""
        base = {v["round"]: v for v in map(pick, self.values(name)) if v}

        def share_of(v):
            other = base.get(v["round"])
            return stats.ratio(get(v), get(other)) if other and other is not v else None
        return share_of

    def of_rounds(self, name, get, pick):
        """A number of each finished round: {round: number}."""
        parts = {r.number: pick(r.values) for r in self.rounds
                 if r.candidate == name and r.values is not None}
        return {number: get(part) for number, part in parts.items() if part is not None}

    def ratio(self, name, base, get, pick, base_pick=None):
        """Summary of a number as a share of another candidate's, over the rounds of both."""
        mine = self.of_rounds(name, get, pick)
        others = self.of_rounds(base, get, base_pick or pick)
        return stats.summary([stats.ratio(mine[number], others[number])
                              for number in mine.keys() & others.keys()])

    def parts(self, names):
        """Those of the parts that any candidate was measured in."""
        known = {part for name in self.names for values in self.values(name) for part in values}
        return [name for name in names if name in known]

    def failures(self):
        return [r for r in self.rounds if r.error]


def under(name):
    """Of a round's values; None where it was not measured: for a Table's pick."""
    return lambda values: values.get(name)


def rows(view, table):
    """(name, title, number of rounds, summaries) for each candidate, and each variant,
    that has any."""
    for name, (label, part) in itertools.product(view.names, table.variants):
        pick = table.picks(part)
        cells = [view.summary(name, column.get, pick) for column in table.columns]
        if any(cells):
            title = ", ".join(filter(None, (view.title(name), label(name))))
            yield name, title, max(cell.count for cell in cells if cell), cells


@dataclasses.dataclass(frozen=True)
class Pair:
    """A server without and with libpagewise.  lines: (column, summary without, with, of
    the ratio), of what is known of both."""
    title: str
    heads: tuple
    lines: list


def pairs(view, table):
    """A Pair for each two candidates of it, and each variant."""
    for name, (label, part) in itertools.product(view.names, table.variants):
        base, pick = servers.without_library(name), table.picks(part)
        lines = [(column, *(view.summary(who, column.get, pick) for who in (base, name)),
                  view.ratio(name, base, column.get, pick)) for column in table.columns]
        if lines := [line for line in lines if line[1] and line[2]]:
            yield Pair(", ".join(filter(None, (table.title, label(name)))),
                       (view.title(base), view.title(name), "with, of without"), lines)


def paired(line):
    """The texts of a line, each as shown() gives them."""
    column, *cells, ratio = line
    return [*(shown(column, cell) for cell in cells), shown(Column("", times, None), ratio)]


def shown(column, cell):
    """Median, and (least–greatest) unless that reads the same."""
    if cell is None:
        return "–", ""
    low, middle, high = map(column.show, (cell.low, cell.median, cell.high))
    return middle, "" if low == high else f"{low}–{high}"


def with_spread(middle, spread):
    return f"{middle} ({spread})" if spread else middle


def pair_markdown(pair):
    if pair.title:
        yield f"{pair.title}:"
        yield ""
    yield "| | " + " | ".join(pair.heads) + " |"
    yield "|---" * (len(pair.heads) + 1) + "|"
    for line in pair.lines:
        texts = [with_spread(*text) for text in paired(line)]
        yield "| " + " | ".join([line[0].title, *texts]) + " |"
    yield ""


def markdown(view, table):
    head = ["server", *(column.title for column in table.columns), "rounds"]
    if table.title:
        yield f"{table.title}:"
        yield ""
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for _, title, count, cells in rows(view, table):
        texts = [with_spread(*shown(column, cell)) for column, cell in zip(table.columns, cells)]
        yield "| " + " | ".join([title, *texts, str(count)]) + " |"
    yield ""


def count(value):
    """A rate or a number, with thousands set apart."""
    return f"{value:,.0f}".replace(",", " ") if value >= 10 else f"{value:.1f}"


def usec(value):
    """A time that is given in microseconds."""
    if value is None or math.isinf(value):
        return "none"
    if value >= 1e6:
        return f"{value / 1e6:.2f} s"
    return f"{value / 1e3:.3g} ms" if value >= 100 else f"{value:.0f} µs"


def loop_columns(parts=lambda values: [values]):
    """How long the event loop slept where it should not, what else kept it from its clients, and
    its longest turn; parts: of the values, a list of what Bench.sampled() gave."""
    def column(title, key, of):
        return Column(title, usec, lambda v: microseconds(asleep(parts(v), key), of), "less")

    return [
        column("loop asleep", "seconds", sum),
        column("longest call", "longest", max),
        column(WAIT, "longest_wait", max),
        Column("longest iteration", usec, lambda v: microseconds(
            [took["turn"] for took in parts(v) if took.get("turn") is not None], max), "less"),
    ]


def asleep(parts, key):
    return [took["asleep"][key] for took in parts if took.get("asleep") and key in took["asleep"]]


def microseconds(seconds, of):
    return of(seconds) * 1e6 if seconds else None


def share(value):
    return f"{value:.2f}"


def times(value):
    """A ratio, which may be large."""
    return share(value) if value < 10 else count(value)


def percent(value):
    return f"{value:.0%}"
