"""Figures in one style: horizontal bars for candidates, lines over time.

matplotlib is imported when the first figure is made, so that a measurement does not
need it.
"""

import contextlib
import itertools

# Those that the report has as variables of its style, where they are light or dark.
INK, GRID = "#20252b", "#dfe3e8"
OURS, PEER, REFERENCE = "#1f6f8b", "#8a8f98", "#b9a26a"
PALE = 0.4           # of the bar that is there to compare with
LINES = ("#1f6f8b", "#d1662b", "#5b8c3e", "#8a4f9e", "#b8912c", "#4f5d75", "#c2405f",
         "#3aa6a0", "#7d5a3c", "#9aa0a8")
ROW, EDGE, WIDTH, NARROW = 0.34, 1.1, 9.5, 4.1  # inches
STYLE = {"text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK,
         "ytick.color": INK, "axes.titlecolor": INK, "figure.facecolor": "none",
         "axes.facecolor": "none", "savefig.facecolor": "none", "grid.color": GRID,
         "grid.linewidth": 0.7, "axes.axisbelow": True, "font.size": 10}
_layout = {"narrow": False}


@contextlib.contextmanager
def narrow():
    """Figures for a telephone: one panel below the other."""
    _layout["narrow"] = True
    try:
        yield
    finally:
        _layout["narrow"] = False


def is_narrow():
    return _layout["narrow"]


def new(view=None, rows=1, columns=1, height=None, shares=None):
    """A figure and its axes; with a view as high as its candidates need."""
    import matplotlib
    from matplotlib.figure import Figure
    matplotlib.rcParams.update(STYLE)
    height = height or ROW * len(view.names) + EDGE
    if is_narrow():
        rows, columns, shares = rows * columns, 1, None
    width = NARROW if is_narrow() else WIDTH
    figure = Figure(figsize=(width, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, width_ratios=shares)
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=9, length=3)
        ax.grid(axis="x")
    return figure, axes


def colour(view, name):
    if view.ours(name):
        return OURS
    return PEER if name in view.servers() else REFERENCE


def bars(ax, view, series, show, pick=lambda values: values, log=False, line=None):
    """A group of bars for each candidate, the medians; whiskers from the least to
    the greatest.  series: pairs of a label and what to get.  The last one is drawn
    in full colour and labelled.  line: a value to compare with."""
    from matplotlib.ticker import MaxNLocator
    thick = 0.8 / len(series)
    for (i, name), (j, (_, get)) in itertools.product(
            enumerate(view.names), enumerate(series)):
        cell, last = view.summary(name, get, pick), j == len(series) - 1
        if cell is None:
            continue
        ax.barh(i + (j - (len(series) - 1) / 2) * thick, cell.median, thick * 0.94,
                color=colour(view, name), alpha=1 if last else PALE,
                xerr=[[cell.median - cell.low], [cell.high - cell.median]],
                error_kw={"ecolor": INK, "elinewidth": 0.8})
        if last:
            ax.annotate(show(cell.median), (cell.high, i + (j - (len(series) - 1) / 2) * thick),
                        xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    if log:
        ax.set_xscale("log")
        shown_plainly(ax.xaxis)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(3 if is_narrow() else 4))
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.10g}".replace(",", " "))
    if line is not None:
        ax.axvline(line, color=INK, linewidth=0.8, linestyle="--")
    ax.margins(x=0.28 if is_narrow() else 0.18)
    first = ax.get_subplotspec().is_first_col()
    ax.set_yticks(range(len(view.names)), [label(view, n) if first else "" for n in view.names])
    ax.invert_yaxis()
    if len(series) > 1:
        legend(ax, series)


def label(view, name):
    """At an axis; in two lines where there is little room."""
    return view.title(name).replace(", ", ",\n", 1) if is_narrow() else view.title(name)


def title(ax, text):
    """Above the legend, if there is one."""
    ax.set_title(text, fontsize=10, loc="left", pad=22 if ax.get_legend() else 6)


def shown_plainly(axis, show=lambda x: f"{x:,.10g}".replace(",", " ")):
    """A logarithmic axis, without powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter
    axis.set_major_locator(LogLocator(numticks=6))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(lambda x, _: show(x))


def legend(ax, series):
    """Above the bars, in neutral colours: each candidate has its own."""
    from matplotlib.patches import Patch
    shades = [PALE] * (len(series) - 1) + [1]
    ax.legend([Patch(color=PEER, alpha=shade) for shade in shades], [text for text, _ in series],
              fontsize=9, frameon=False, ncols=len(series), loc="lower left",
              bbox_to_anchor=(0, 1), borderaxespad=0, handlelength=1.2)


def lines(ax, view, points, log=False):
    """A line for each candidate, over time or another number.  points(name): list of (x, y)."""
    for name, shade in zip(view.names, itertools.cycle(LINES)):
        if data := points(name):
            ax.plot(*zip(*data), label=view.title(name), color=shade, linewidth=1.4)
    if log:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    ax.legend(fontsize=8, frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
