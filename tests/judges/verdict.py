"""What a judge found, what of it is explained, and the page that says so."""

import dataclasses
import re


class Absent(Exception):
    """A judge that cannot run here; the text is why."""


@dataclasses.dataclass
class Verdict:
    """passed of cases, in units.  findings: a text for each thing that differs."""
    judge: str
    cases: int
    passed: int
    units: str
    findings: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why a judge's findings that match the pattern are no faults."""
    judge: str
    pattern: str
    why: str


def explain(verdict, reasons):
    """The reasons that apply, each once, and the findings that have none."""
    used, left = [], []
    for text in verdict.findings:
        found = [r for r in reasons if verdict.judge.startswith(r.judge) and re.search(r.pattern, text)]
        used += [r for r in found[:1] if r not in used]
        left += [] if found else [text]
    return used, left


def line(verdict, reasons):
    used, left = explain(verdict, reasons)
    rest = "%d explained, %d not" % (len(verdict.findings) - len(left), len(left))
    return "%s: %d of %d %s%s" % (verdict.judge, verdict.passed, verdict.cases, verdict.units,
                                  "; differ: " + rest if verdict.findings else "")


def row(verdict, reasons):
    used, left = explain(verdict, reasons)
    texts = [r.why for r in used] + ["**not explained**: " + text for text in left]
    return "| %s | %d of %d %s | %s |" % (
        verdict.judge, verdict.passed, verdict.cases, verdict.units,
        "; ".join(texts).replace("|", "\\|") or "–")
