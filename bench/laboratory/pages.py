"""docs/results.md and the pages behind it, from the results of one commit.

A page: what it answers, the sentence of the verdict, the tables, how it was measured.  The
configurations of the servers stand beside the pages, each once.
"""

import os
import re
import shlex
import textwrap

from laboratory import ladders, plan, report, scenarios, source
from laboratory.progress import note
from laboratory.tables import View, markdown as table_markdown
from laboratory.verdicts import enumerated

WIDTH = 100
DIRECTORY, CONFIGURATIONS = "results", "conf"
# Of other commands.
KEPT = tuple(f"{DIRECTORY}/{name}.md" for name in ("freebsd", "judges", "spindle"))
NO_VERDICT = "There are not enough figures for a verdict."
FEW = 5  # rounds, below which figures are not to be cited
INTRODUCTION = """For those who choose a server for files, or doubt our figures: what was measured,
on which machine, and what came out. Each line below is computed from the figures of its table.
The table's page has the figures, the command that makes them, and the peers' configurations."""
READING = (
    "Figures are medians of the rounds, with the least and the greatest in parentheses. "
    "A server is \"ahead\" or \"behind\" where these ranges do not overlap; otherwise servers are "
    "\"level\".",
    "Compare within one table, as ratios: machines differ, and virtual ones are shared.",
    "The server has one core, the load generators have the other one. Where theirs is full, "
    "CPU time per request tells more than requests per second.",
    "What kept an event loop from its clients: \"loop asleep\" is all of its sleeps in calls other than "
    "the wait for events, \"longest call\" the longest of these, and \"longest wait for the CPU\" the most "
    "that it waited between two looks 5 ms apart while it could have run. \"Longest iteration\" lasts from "
    "the end of one wait for events to the next wait; only pagewise reports it.",
    "A dash: there is no such figure, for example no sleep of an event loop whose thread the "
    "laboratory did not know.",
    "[The laboratory](../bench/README.md) describes how a figure is made and how to read it.",
)


def wrapped(text, indent=""):
    """As lines of prose; a link is not broken, nor is a number."""
    text = re.sub(r"(?<=\d) (?=\d{3}\b)", "\N{NO-BREAK SPACE}", " ".join(text.split()))
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False,
                         break_on_hyphens=False)


def item(text):
    return wrapped(f"- {text}", "  ")


def shell(command):
    """Lines of a block, each of which goes on in the next one; an option has its value
    beside it."""
    together = re.sub(r"(--[a-z-]+) (?!--)", "\\1\0", command)
    lines = [line.replace("\0", " ") for line in textwrap.wrap(
        together, WIDTH - 2, subsequent_indent="    ", break_long_words=False,
        break_on_hyphens=False)]
    return ["```sh", *(f"{line} \\" for line in lines[:-1]), lines[-1], "```"]


# ---------------------------------------------------------- configurations


def told_apart(text):
    """What differs from one start to the next is named instead."""
    text = re.sub(r"/[^\s\"';]*/lab-[a-z0-9_]{8}", "RUN", text)
    for port in set(re.findall(r"127\.0\.0\.\d:(\d+)", text) +
                    re.findall(r"(?m)^(?:server\.port =|  port:) *(\d+)", text)):
        text = re.sub(rf"\b{port}\b", "PORT", text)
    return text


def tidied(text):
    """Without the empty lines that words leave that stand for nothing."""
    text = re.sub(r"[ \t]+$", "", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


class Configurations:
    """By the names of their files, each with its text."""

    def __init__(self):
        self.files = {}

    def add(self, page, candidate, text):
        """The name of the file.  One that another page has already is not kept twice."""
        for name in (f"{candidate}.conf", f"{candidate}-{page}.conf"):
            if self.files.setdefault(name, text) == text:
                return name
        raise AssertionError(f"two configurations of {candidate} for {page}")


# ------------------------------------------------------------- one table


class Drawn:
    """A page with all that belongs to it.  verdict: a sentence; lines: of the page; pictures,
    by name."""

    def __init__(self, measured, configurations):
        self.page, self.measured = measured.page, measured
        self.pictures, self.host, self.versions, self.failed = {}, {}, {}, 0
        if self.page.scenario == plan.LADDERS:
            self.verdict, body = self.of_ladders(measured.ladders())
        else:
            self.verdict, body = self.of_run(measured.run(), configurations)
        self.lines = [*self.head(), *body]

    def head(self):
        yield from (f"# {self.page.title}", "")
        yield from wrapped(f"For those who compare servers. {self.page.question}")
        yield ""
        yield from wrapped(f"**{self.verdict}**")
        yield ""
        if self.page.why:
            yield from (*wrapped(self.page.why), "")

    def picture(self, number, caption, text):
        name = f"{self.page.name}-{number}.svg"
        self.pictures[name] = text
        return [f"![{self.page.title}]({name})", "", *wrapped(f"*{caption}*"), ""]

    def how(self, settings):
        """By which command, when, of what."""
        meta = self.measured.meta
        yield from ("## How it was measured", "", *shell(meta["command"]), "")
        later = f", measured by the laboratory of {meta['laboratory']}" if "laboratory" in meta else ""
        yield from item(f"Commit {meta['commit']}{later}, {meta['date']}, "
                        f"{minutes(meta['seconds'])}.")
        yield from item("The machine is that of [all results](../results.md#the-machine)."
                        f"{settings}")
        for key in ("TCP", "RFS", "freed memory", *(("disk",) if "--readahead" in self.page.options else ())):
            if key in self.host:
                yield from item(f"{key[0].upper()}{key[1:]}: {self.host[key]}.")

    # -------------------------------------------------------------- ladders

    def of_ladders(self, found):
        lines = []
        for number, ladder in enumerate(found, 1):
            lines += self.picture(number, ladders.TITLES[ladder["ladder"]],
                                  report.svg(ladders.drawn(ladder)))
            lines += [*titled(ladders.body(ladder)), *wrapped(ladders.about(ladder)), ""]
        return self.page.verdict(found), [*lines, *self.how("")]

    # ------------------------------------------------------------------ run

    def of_run(self, run, configurations):
        module = scenarios.load(self.page.scenario)
        view = View(run.about, self.page.scenario, run.of(self.page.scenario))
        self.host, self.failed = run.about["host"], len(view.failures())
        self.versions = {view.title(name): view.candidates[name]["version"]
                         for name in view.servers()}
        return (self.page.verdict(view) or NO_VERDICT,
                list(self.body(module, view, configurations, run.about)))

    def body(self, module, view, configurations, about):
        drawn = list(module.figures(view)) if self.page.figures and view.names else []
        for number, (caption, figure) in enumerate(drawn, 1):
            if number - 1 in self.page.figures:
                yield from self.picture(number, caption, report.svg(figure))
        yield from wrapped(module.WHAT)
        yield ""
        for table in module.tables(view):
            yield from titled(table_markdown(view, table))
        if self.page.pairs:
            yield from titled(report.pairs_markdown(module, view))
        yield from failures(view)
        yield from self.how(said(view.settings))
        yield from ("", "## The servers", "")
        yield from servers_table(self.page, view, configurations)
        left = [text for text in about["left_out"] if not text.startswith("scenario ")]
        for text in left:
            yield from item(f"Left out: {text}.")
        yield from ("", "## What the figures do not say", "")
        for text in module.NOTES:
            yield from item(text)


def titled(lines):
    """A title above a table may be long."""
    for line in lines:
        yield from [line] if line.startswith("|") or not line else wrapped(line)


def minutes(seconds):
    return f"{max(seconds / 60, 0.1):.1f} minutes"


def said(settings):
    return " Settings: " + ", ".join(f"{key} {value}" for key, value in settings.items()) + "."


def failures(view):
    """Of rounds, which are listed and not hidden."""
    for one in view.failures():
        yield from item(f"Failed: {view.title(one.candidate)}, round {one.number}: {one.error}")
    if view.failures():
        yield ""


def servers_table(page, view, configurations):
    yield from ("| server | version | configuration | started as |", "|---|---|---|---|")
    for name in view.servers():
        last = [r for r in view.rounds if r.candidate == name][-1]
        link, started = "–", "–"
        if last.conf:
            file = configurations.add(page.name, name, tidied(told_apart(last.conf)))
            link = f"[{file}]({CONFIGURATIONS}/{file})"
        if last.commands:
            argv = told_apart(shlex.join(last.commands[0])).replace("RUN/", "", 1)
            started = f"`{argv}`"
        version = view.candidates[name]["version"]
        yield f"| {view.title(name)} | {version} | {link} | {started} |"
    yield ""


# ------------------------------------------------------------- front page


def front(drawn, commit, others):
    """docs/results.md.  others: measured at another commit."""
    yield from ("# Results", "", *wrapped(INTRODUCTION), "")
    yield from wrapped(scope(drawn, commit))
    yield ""
    yield from part(drawn, others)
    yield from broken(drawn)
    known = {one.page.name: one for one in drawn}
    for group in plan.GROUPS:
        pages = [page for page in plan.PAGES if page.group == group]
        if not any(page.name in known for page in pages):
            continue
        yield from (f"## {group}", "", "| table | verdict |", "|---|---|")
        for page in pages:
            if page.name in known:
                yield (f"| [{page.title}]({DIRECTORY}/{page.name}.md) | "
                       f"{known[page.name].verdict} |")
        yield ""
    yield from machine(drawn)
    yield from ("## How to read it", "")
    for text in READING:
        yield from item(text)
    yield from ("", "## To measure it again", "", "```sh", "sudo make bench-peers",
                "sudo make results", "```", "")
    yield from wrapped("[The laboratory](../bench/README.md#results-that-can-be-cited) has the options.")


def scope(drawn, commit):
    dates = sorted(one.measured.meta["date"] for one in drawn)
    rounds = sorted({one.measured.meta["rounds"] for one in drawn if not one.page.rounds}) or [FEW]
    took = sum(one.measured.meta["seconds"] for one in drawn)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    number = " or ".join(map(str, rounds))
    word = "round" if number == "1" else "rounds"
    others = [f"{one.page.name} ({one.measured.commit})" for one in drawn if one.measured.commit != commit]
    text = (f"All figures are of commit {commit}, in {number} {word}, measured by `make results` "
            f"in {minutes(took)}, {when}.")
    for later in sorted({one.measured.meta.get("laboratory", "") for one in drawn} - {""}):
        names = [one.page.name for one in drawn if one.measured.meta.get("laboratory") == later]
        text += f" The laboratory that measured {enumerated(names)} is of {later}."
    if others:
        text += f" Measured only if named, at another commit: {enumerated(others)}."
    if rounds[0] < FEW:
        text += f" **With fewer than {FEW} rounds they are a rehearsal, not to be cited.**"
    if commit.endswith(source.CHANGED):
        text += " **Files differed from that commit: the figures are not to be cited.**"
    return text


def part(drawn, others):
    """What is not there, said on top."""
    there = {one.page.name for one in drawn}
    missing = [page for page in plan.regular() if page.name not in there]
    if not missing:
        return
    yield from wrapped(f"**{len(missing)} of {len(plan.regular())} tables are not measured at this "
                       f"commit:** {', '.join(page.name for page in missing)}.")
    if others:
        yield from wrapped("Of these, other commits' results were not shown: " + ", ".join(
            f"{one.page.name} ({one.commit})" for one in others) + ".")
    yield ""


def broken(drawn):
    """The same."""
    if bad := [one.page.name for one in drawn if one.failed]:
        yield from wrapped(f"**Rounds failed in {len(bad)} tables,** whose pages list them: "
                           f"{', '.join(bad)}.")
        yield ""


def machine(drawn):
    host, versions = {}, {}
    for one in drawn:
        host = host or one.host
        versions.update(one.versions)
    yield from ("## The machine", "")
    for key, text in host.items():
        if key not in ("date", "commit"):
            yield from item(f"{key}: {text}")
    if versions:
        yield from ("", "## The servers", "", "| server | version |", "|---|---|")
        yield from (f"| {title} | {version} |" for title, version in versions.items())
    yield ""


# ------------------------------------------------------------------- files


def write(docs, measured, others, commit):
    """The pages in the directory docs, in place of those that are there.  Files of
    docs/results that are of no table any more go."""
    if not measured:
        raise RuntimeError(f"nothing is measured at commit {commit}: no pages")
    configurations, files = Configurations(), {}
    drawn = [Drawn(one, configurations) for one in measured]
    files["results.md"] = "\n".join(front(drawn, commit, others)) + "\n"
    for one in drawn:
        files[f"{DIRECTORY}/{one.page.name}.md"] = text_of(one.lines)
        files |= {f"{DIRECTORY}/{name}": text for name, text in one.pictures.items()}
    files |= {f"{DIRECTORY}/{CONFIGURATIONS}/{name}": text
              for name, text in configurations.files.items()}
    remove_others(docs, files)
    for name, text in files.items():
        os.makedirs(os.path.dirname(f"{docs}/{name}"), exist_ok=True)
        with open(f"{docs}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    for one in others:
        note(f"not shown: {one.page.name} is of commit {one.commit}, not of {commit}; measure it "
             "again")
    note(f"made {docs}/results.md and {len(drawn)} of {len(plan.PAGES)} pages behind it")
    return sorted(files)


def text_of(lines):
    """One empty line at a time, and none at the end."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def remove_others(docs, files):
    for directory, _, names in os.walk(f"{docs}/{DIRECTORY}"):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.relpath(path, docs) not in (*files, *KEPT):
                os.unlink(path)
                note(f"removed {path}")
