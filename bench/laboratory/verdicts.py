"""One sentence for a table, from its figures: pure, tested with tables.

A rule is a function of a View that returns the sentence, or None where the figures are
missing.  "Ahead of" and "behind" are said only where the ranges of the rounds do not
overlap; else two servers are "level".  With one round nothing is said of that.
"""

import dataclasses
import itertools

from laboratory import scenarios, servers
from laboratory.tables import rows, shown, with_spread

AHEAD, LEVEL, BEHIND, BESIDE = "ahead of", "level with", "behind", "beside"
OURS, OURS_TLS = "nodiskio", "nodiskio-tls"
NOTHING = "–"


@dataclasses.dataclass(frozen=True)
class Cell:
    """A figure of a table; row: the title, with that of the variant."""
    name: str
    row: str
    column: object
    summary: object

    def __str__(self):
        return with_spread(*shown(self.column, self.summary))


def relation(mine, other, better):
    """Of two summaries."""
    if min(mine.count, other.count) < 2:
        return BESIDE
    if mine.low <= other.high and other.low <= mine.high:
        return LEVEL
    return AHEAD if (mine.median > other.median) == (better == "more") else BEHIND


def plain(title):
    """Of a server, in a sentence: "nginx (sendfile)"."""
    first, comma, rest = title.partition(", ")
    return f"{first} ({rest})" if comma else first


def tables(view):
    return list(scenarios.load(view.scenario).tables(view))


def cells(view, table, title):
    """Of the column with this title, those that there are."""
    at = [column.title for column in table.columns].index(title)
    return [Cell(name, row, table.columns[at], found[at])
            for name, row, _, found in rows(view, table) if found[at]]


def of(found, name, variant=""):
    """The cell of a candidate, and variant; None: there is none."""
    fits = (c for c in found if c.name == name and c.row.endswith(variant))
    return next(fits, None)


def peers(view, found, subject=OURS):
    """Of the cells, those of the subject's peers, over TLS if it is; servers with libpagewise are no
    peers."""
    return [c for c in found if view.candidates[c.name]["kind"] == "peer"
            and servers.over_tls(c.name) == servers.over_tls(subject)
            and not c.name.startswith(("nginx-pagewise", "example-"))]


def best(found):
    """The cell with the best median."""
    choose = max if found and found[0].column.better == "more" else min
    return choose(found, key=lambda c: c.summary.median, default=None)


def title(view, cell):
    return plain(view.title(cell.name))


# ------------------------------------------------------------------ rules


def against_best(column, text, subject=OURS, variant="", table=0, also=()):
    """pagewise and the best peer.  text: with {mine}, {who}, {other}, and what stands in
    also, pairs of a word and a candidate."""
    def rule(view):
        found = cells(view, tables(view)[table], column)
        mine, other = of(found, subject, variant), best(peers(view, found, subject))
        if not mine or not other:
            return None
        words = {word: of(found, name) or NOTHING for word, name in also}
        said = relation(mine.summary, other.summary, mine.column.better)
        return (f"pagewise is {said} the best peer, {title(view, other)}: " + text.format(
            mine=mine, other=other, who=title(view, other), **words) + ".")
    return rule


def against(name, column, text, subject=OURS, variant="", base="", table=0, who=None):
    """pagewise and one other candidate; variant, base: how their rows end."""
    def rule(view):
        found = cells(view, tables(view)[table], column)
        mine, other = of(found, subject, variant), of(found, name, base)
        if not mine or not other:
            return None
        said = relation(mine.summary, other.summary, mine.column.better)
        called = who or title(view, other)
        return f"pagewise is {said} {called}: {text.format(mine=mine, other=other)}."
    return rule


def in_cases(column, text, subject=OURS, first=0, last=None, variant="", called="pagewise"):
    """The subject, as it is called, and the best peer in each table: how often it is ahead.  text:
    with {ratio}, the range of the shares of the best peer's, each the median of its rounds."""
    def rule(view):
        counts, ratios = dict.fromkeys((AHEAD, LEVEL, BEHIND, BESIDE), 0), []
        for table in tables(view)[first:last]:
            if column not in [c.title for c in table.columns]:
                continue
            found = cells(view, table, column)
            mine, other = of(found, subject, variant), best(peers(view, found, subject))
            if mine and other:
                counts[relation(mine.summary, other.summary, mine.column.better)] += 1
                ratios.append(share(view, table, mine, other, variant))
        if not ratios:
            return None
        return f"{counted(counts, called)}: {text.format(ratio=between(ratios))}."
    return rule


def share(view, table, mine, other, variant):
    """The median of the rounds' ratios; None: there are none."""
    found = view.ratio(mine.name, other.name, mine.column.get,
                       pick(view, table, mine, variant), pick(view, table, other))
    return found.median if found else None


def pick(view, table, cell, variant=""):
    """The part of a round's values that a cell's row is of."""
    parts = (table.picks(part) for label, part in table.variants
             if label(cell.name).endswith(variant))
    return next(part for part in parts if view.of_rounds(cell.name, cell.column.get, part))


def counted(counts, called="pagewise"):
    """ "Of 5 cases pagewise is ahead of the best peer in 3 and level with it in 2"."""
    there = {word: number for word, number in counts.items() if number}
    total, whom, parts = sum(there.values()), "the best peer", []
    if total == 1:
        return f"{called} is {next(iter(there))} {whom}"
    for word, number in there.items():
        parts.append(f"{word} {whom} in {number}")
        whom = "it"
    return f"Of {total} cases {called} is {enumerated(parts)}"


def enumerated(parts):
    """ "a, b and c"."""
    *some, last = parts
    return f"{', '.join(some)} and {last}" if some else last


def between(values):
    """The least and the greatest of shares."""
    known = sorted(v for v in values if v is not None)
    if not known:
        return NOTHING
    low, high = f"{known[0]:.2f}", f"{known[-1]:.2f}"
    return low if low == high else f"{low} to {high}"


def span(text, names=None, variant="", **columns):
    """Over all tables and rows of these candidates (names: how they begin; variant: how their
    rows end): for each word the range of the medians; with _most behind the word, the greatest
    of all rounds."""
    def rule(view):
        words = {}
        for word, column in columns.items():
            found = [c for table in tables(view) if column in [k.title for k in table.columns]
                     for c in cells(view, table, column)
                     if (names is None or c.name.startswith(names)) and c.row.endswith(variant)]
            if not found:
                return None
            medians = sorted(c.summary.median for c in found)
            show = found[0].column.show
            ends = list(dict.fromkeys(map(show, (medians[0], medians[-1]))))
            words[word] = " to ".join(ends)
            words[f"{word}_most"] = show(max(c.summary.high for c in found))
        return text.format(**words) + "."
    return rule


def pair(column, text, without, with_, table=0):
    """The same server without libpagewise and with it, and the median of the rounds'
    ratios."""
    def rule(view):
        found = cells(view, tables(view)[table], column)
        mine, other = of(found, with_), of(found, without)
        if not mine or not other:
            return None
        ratio = view.ratio(with_, without, mine.column.get, tables(view)[table].pick)
        share = f"{ratio.median:.2f}" if ratio else NOTHING
        return text.format(mine=mine, other=other, ratio=share) + "."
    return rule


def both(*rules):
    """Two rules that one question needs: a sentence of each whose figures are there."""
    def rule(view):
        said = [text for one in rules if (text := one(view))]
        return " ".join(text if text is said[0] else text[0].upper() + text[1:]
                        for text in said) or None
    return rule


def same_order(ladders):
    """Of the ladders, not of a View: in how many the rungs have the source's order."""
    known = {one["ladder"]: ordered(one) for one in ladders
             if any(rung["source"] for rung in one["rungs"])}
    same = [name for name, good in known.items() if good]
    others = [name for name in known if name not in same]
    sentence = f"The steps of {len(same)} of {len(known)} articles have the same order here"
    return sentence + (f", but not those of {' and '.join(others)}." if others else ".")


def ordered(ladder):
    """No rung is clearly slower here than one before it, where it is faster there."""
    rungs = [r for r in ladder["rungs"] if not r["why_not"] and r["source"] and r["median"]]
    less = ladder["less_is_faster"]
    for one, two in itertools.pairwise(rungs):
        there = (two["source"] < one["source"]) == less
        here = (two["median"] < one["median"]) == less
        apart = two["min"] > one["max"] or one["min"] > two["max"]
        if there != here and apart:
            return False
    return True
