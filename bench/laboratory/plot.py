"""Figures in one style: horizontal bars for candidates, lines over time.

matplotlib is imported when the first figure is made, so that a measurement does not
need it.
"""

import itertools

OURS, PEER, REFERENCE = "#1f6f8b", "#8a8f98", "#b9a26a"
PALE = 0.35          # of the bar that is there to compare with
LINES = ("#1f6f8b", "#d1662b", "#5b8c3e", "#8a4f9e", "#b8912c", "#4f5d75", "#c2405f",
         "#3aa6a0", "#7d5a3c", "#9aa0a8")
ROW, EDGE, WIDTH = 0.34, 1.1, 9.5  # inches


def new(view=None, rows=1, columns=1, height=None, shares=None):
    """A figure and its axes; with a view as high as its candidates need."""
    from matplotlib.figure import Figure
    height = height or ROW * len(view.names) + EDGE
    figure = Figure(figsize=(WIDTH, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, width_ratios=shares)
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=9, length=3)
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
    for (i, name), (j, (label, get)) in itertools.product(
            enumerate(view.names), enumerate(series)):
        cell, last = view.summary(name, get, pick), j == len(series) - 1
        if cell is None:
            continue
        ax.barh(i + (j - (len(series) - 1) / 2) * thick, cell.median, thick * 0.94,
                color=colour(view, name), alpha=1 if last else PALE,
                xerr=[[cell.median - cell.low], [cell.high - cell.median]],
                error_kw={"ecolor": "#333333", "elinewidth": 0.8},
                label=label if name == view.names[0] else None)
        if last:
            ax.annotate(show(cell.median), (cell.high, i + (j - (len(series) - 1) / 2) * thick),
                        xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    if log:
        ax.set_xscale("log")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.10g}".replace(",", " "))
    if line is not None:
        ax.axvline(line, color="#333333", linewidth=0.8, linestyle="--")
    ax.margins(x=0.18)
    first = ax.get_subplotspec().is_first_col()
    ax.set_yticks(range(len(view.names)), [view.title(n) if first else "" for n in view.names])
    ax.invert_yaxis()
    if len(series) > 1:
        ax.legend(fontsize=8, frameon=False, loc="lower right")


def lines(ax, view, points):
    """A line for each candidate over time.  points(name): list of (x, y)."""
    for name, shade in zip(view.names, itertools.cycle(LINES)):
        if data := points(name):
            ax.plot(*zip(*data), label=view.title(name), color=shade, linewidth=1.4)
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=8, frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
