"""A run as one HTML file that needs nothing else, and as Markdown and pictures for
docs/.

Figures are inline SVG and styles are inline: the file loads nothing.
"""

import html
import io
import os
import re
import shlex

from laboratory import plot, scenarios
from laboratory.tables import (View, markdown as table_markdown, pair_markdown, paired, pairs, rows,
                               shown)

STYLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.css")
COLOURS = {"ink": plot.INK, "line": plot.GRID, "ours": plot.OURS, "peer": plot.PEER,
           "reference": plot.REFERENCE}
PAPER = "#ffffff"
DARK = {"ink": "#e4e8ec", "line": "#333b44", "ours": "#4fb3d3", "peer": "#8f98a3",
        "reference": "#c9b27a", "paper": "#14181d"}
SUBTITLE = "Every way to send a file, measured side by side"
PAIRS = "With and without libpagewise"
# The scenarios whose first figure the report opens with: question -> the first that was run.
OPENING = {"Does a cached file notice others that are not?": ("storm",),
           "Up to which load?": ("knee",),
           "How fast are downloads from the disk?": ("download",),
           "How many bytes does the disk read for each that is sent?": ("zipf", "clients", "slow")}
PART = "This run was stopped or is not finished: the report is partial."


def escape(text):
    return html.escape(str(text), quote=True)


def views(run):
    """(module, view) of each scenario that has a finished round."""
    for name in run.about["scenarios"]:
        view = View(run.about, name, run.of(name))
        if view.rounds:
            yield scenarios.load(name), view


def all_pairs(module, view):
    """Of all tables, or of those that the scenario has for it."""
    for table in getattr(module, "paired", module.tables)(view):
        yield from pairs(view, table)


# ------------------------------------------------------------------- HTML


def drawing(figure, salt=None):
    """Without prologue and metadata, which name addresses; text as text, and colours as
    variables.  salt: for names that are the same each time."""
    from matplotlib import rc_context
    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg"):]
    for name, shade in COLOURS.items():
        text = text.replace(shade, f"var(--{name})")
    return re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)


def svg(figure):
    """A picture of its own, on its own ground."""
    text = drawing(figure, salt="pagewise")
    ground = '<rect width="100%" height="100%" fill="var(--paper)"/>'
    head, end, rest = text.partition(">")
    return f"{head}{end}<style>{colours('svg')}</style>{ground}{rest}"


def colours(selector):
    """As style."""
    def declared(values):
        return "".join(f" --{name}: {value};" for name, value in values.items())

    return (f"{selector} {{{declared({**COLOURS, 'paper': PAPER})} }} "
            f"@media (prefers-color-scheme: dark) {{ {selector} {{{declared(DARK)} }} }}")


def inline(figure):
    """As wide as the page lets it be."""
    return re.sub(r' (width|height)="[\d.]+pt"', "", drawing(figure), count=2)


def best(column, cells):
    """Those that are set off: the best one, and all whose rounds reach into its
    rounds.  With one round each nothing is known of that, and none is."""
    known = [c for c in cells if c and c.count > 1]
    if not column.better or len(known) < 2:
        return []
    if column.better == "more":
        top = max(known, key=lambda c: c.median)
        return [c for c in known if c.high >= top.low]
    top = min(known, key=lambda c: c.median)
    return [c for c in known if c.low <= top.high]


def figure_html(middle, spread):
    small = f"<small>{escape(spread)}</small>" if spread else ""
    return f"<b>{escape(middle)}</b>{small}"


def table_html(view, table):
    lines = list(rows(view, table))
    ideal = [best(column, [cells[i] for name, *_, cells in lines if name in view.servers()])
             for i, column in enumerate(table.columns)]
    yield "<div class=scroll><table>"
    if table.title:
        yield f"<caption>{escape(table.title)}</caption>"
    head = "".join(f"<th>{escape(c.title)}</th>" for c in table.columns)
    yield f"<thead><tr><th>server</th>{head}<th>rounds</th></tr></thead><tbody>"
    for name, title, count, cells in lines:
        kind = view.candidates[name]["kind"]
        texts = []
        for column, cell, top in zip(table.columns, cells, ideal):
            mark = " class=best" if cell in top and kind != "reference" else ""
            texts.append(f"<td{mark}>{figure_html(*shown(column, cell))}</td>")
        yield (f"<tr class={kind}><th>{escape(title)} "
               f"<small>{escape(view.candidates[name]['version'])}</small></th>"
               f"{''.join(texts)}<td>{count}</td></tr>")
    yield "</tbody></table></div>"


def pair_html(pair):
    yield "<div class=scroll><table>"
    if pair.title:
        yield f"<caption>{escape(pair.title)}</caption>"
    head = "".join(f"<th>{escape(text)}</th>" for text in pair.heads)
    yield f"<thead><tr><th></th>{head}</tr></thead><tbody>"
    for line in pair.lines:
        texts = "".join(f"<td>{figure_html(*text)}</td>" for text in paired(line))
        yield f"<tr><th>{escape(line[0].title)}</th>{texts}</tr>"
    yield "</tbody></table></div>"


def pairs_html(module, view):
    if found := list(all_pairs(module, view)):
        yield f"<h3>{PAIRS}</h3>"
        for pair in found:
            yield from pair_html(pair)


def figures_html(module, view):
    """Each in two layouts, of which the style shows one."""
    wide = list(module.figures(view))
    with plot.narrow():
        small = list(module.figures(view))
    for (caption, figure), (_, narrow) in zip(wide, small):
        yield (f"<figure><div class=wide>{inline(figure)}</div>"
               f"<div class=narrow>{inline(narrow)}</div>"
               f"<figcaption>{escape(caption)}</figcaption></figure>")


def opening_html(parts, drawn):
    """One figure for each question, above all tables; its scenario shows it no more."""
    there = {name_of(module): figures for (module, _), figures in zip(parts, drawn) if figures}
    chosen = [(text, name) for text, names in OPENING.items()
              if (name := next((one for one in names if one in there), None))]
    if not chosen:
        return
    yield "<section class=opening>"
    for text, name in chosen:
        yield f"<div><h2><a href='#{name}'>{escape(text)}</a></h2>{there[name].pop(0)}</div>"
    yield "</section>"


def name_of(module):
    return module.__name__.rpartition(".")[2]


def details(summary_text, lines):
    yield f"<details><summary>{escape(summary_text)}</summary>"
    yield from lines
    yield "</details>"


def commands_html(view):
    """What ran in the last round of each candidate; ports and scratch differ."""
    for name, title in ((n, c["title"]) for n, c in view.candidates.items()):
        mine = [r for r in view.rounds if r.candidate == name]
        if not mine:
            continue
        yield f"<h4>{escape(title)}</h4><pre>"
        yield "\n".join(escape(shlex.join(argv)) for argv in mine[-1].commands)
        yield "</pre>"
        if mine[-1].conf:
            yield f"<pre class=conf>{escape(mine[-1].conf)}</pre>"


def scenario_html(module, view, figures):
    yield f"<section id={name_of(module)}><h2>{escape(module.TITLE)}</h2>"
    yield from figures
    yield f"<p>{escape(module.WHAT)}</p>"
    if view.names:
        for table in module.tables(view):
            yield from table_html(view, table)
        yield from pairs_html(module, view)
    notes = [*module.NOTES, *(f"{view.title(r.candidate)}, round {r.number}, failed: "
                              f"{r.error}" for r in view.failures())]
    yield "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>"
    settings = ", ".join(f"{k} {v}" for k, v in view.settings.items())
    yield from details("Settings, commands and configurations",
                       [f"<p>{escape(settings)}</p>", *commands_html(view)])
    yield "</section>"


def definitions(items):
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>"
                            for k, v in items) + "</dl>"


def host_html(about):
    yield "<section><h2>Where and how</h2>"
    yield definitions([("command", about["command"]), *about["host"].items()])
    yield ("<p>Each figure is the median of the rounds, with the least and the greatest beside "
           "it. Candidates take turns within a round. Compare within one table, as ratios: "
           "machines differ and are shared.</p>")
    if about["left_out"]:
        yield "<h3>Left out</h3><ul>"
        yield "".join(f"<li>{escape(text)}</li>" for text in about["left_out"])
        yield "</ul>"
    yield "</section>"


def page(run):
    """The figures that answer the main questions are on top."""
    about, parts = run.about, list(views(run))
    drawn = [list(figures_html(m, v)) if v.names else [] for m, v in parts]
    state = "" if about["finished"] else (
        f"<p class=part>{PART}</p>")
    with open(STYLE, encoding="utf-8") as f:
        yield ("<!DOCTYPE html><html lang=en><head><meta charset=utf-8>"
               "<meta name=viewport content='width=device-width, initial-scale=1'>"
               "<meta name=color-scheme content='light dark'>"
               f"<title>pagewise: {SUBTITLE}</title><style>{colours(':root')} {f.read()}</style>"
               "</head><body>")
    of = " · ".join(f"{key} {escape(about['host'][key])}" for key in ("commit", "date")
                    if key in about["host"])
    yield (f"<header><h1>pagewise</h1><p>{SUBTITLE}</p><p class=of>{of}</p>{state}</header>"
           "<main>")
    yield from opening_html(parts, drawn)
    for i, (module, view) in enumerate(parts):
        yield from scenario_html(module, view, drawn[i])
    yield from host_html(about)
    yield "</main></body></html>"


# --------------------------------------------------------------- Markdown


def pairs_markdown(module, view):
    if found := list(all_pairs(module, view)):
        yield f"### {PAIRS}"
        yield ""
        for pair in found:
            yield from pair_markdown(pair)


def markdown_lines(run):
    about = run.about
    if not about["finished"]:
        yield f"**{PART}**"
        yield ""
    for key, value in [("command", about["command"]), *about["host"].items()]:
        yield f"- {key}: {value}"
    for module, view in views(run):
        yield ""
        yield f"## {module.TITLE}"
        yield ""
        for table in module.tables(view):
            yield from table_markdown(view, table)
        yield from pairs_markdown(module, view)
        for r in view.failures():
            yield f"- failed: {view.title(r.candidate)}, round {r.number}: {r.error}"
    for text in about["left_out"]:
        yield f"- left out: {text}"


def markdown(run):
    return "\n".join(markdown_lines(run)) + "\n"


# ------------------------------------------------------------------ files


def pictures(run):
    """NAME-N.svg, the Nth figure of a scenario, and its contents."""
    for module, view in views(run):
        name = name_of(module)
        if view.names:
            for n, (_, figure) in enumerate(module.figures(view), 1):
                yield f"{name}-{n}.svg", svg(figure)


def write(run):
    """The files made.  Without matplotlib only the one in Markdown."""
    made = {f"{run.path}/report.md": markdown(run)}
    try:
        made[f"{run.path}/report.html"] = "\n".join(page(run)) + "\n"
        made |= {f"{run.path}/{name}": text for name, text in pictures(run)}
    except ImportError as why:
        raise RuntimeError(f"no report: {why}; sh conf/install-deps.sh bench, then "
                           f"bench/lab report {run.path}") from None
    finally:
        for path, text in made.items():
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    return list(made)
