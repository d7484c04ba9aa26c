"""Figures of several panels: one for each candidate, or maps beside each other."""

import itertools
from math import nan

from laboratory import plot

ACROSS = 4                 # panels in a row
PANEL, LEGEND = 1.7, 0.25  # inches in height


def legend(figure, axes):
    """One for all of them, below; of equal labels the first."""
    found = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            found.setdefault(label, handle)
    across = min(len(found), 2) if plot.is_narrow() else len(found)
    below = LEGEND * -(-len(found) // max(across, 1)) / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, below, 1, 1 - below))
    figure.legend(found.values(), found.keys(), loc="lower center", fontsize=9,
                  frameon=False, ncols=max(across, 1))


def each(view, across=ACROSS, height=PANEL):
    """A figure, and pairs of a candidate's name and its axes; scales are shared."""
    down = -(-len(view.names) // across)
    figure, axes = plot.new(rows=down, columns=min(across, len(view.names)), height=height)
    pairs, axes = [], getattr(axes, "flat", [axes])
    for ax, name in itertools.zip_longest(axes, view.names):
        if name is None:
            ax.remove()
            continue
        if pairs:
            ax.sharex(pairs[0][1])
            ax.sharey(pairs[0][1])
        ax.set_title(view.title(name), fontsize=9, loc="left")
        pairs.append((name, ax))
    return figure, pairs


def from_zero(axes, top=None):
    """Of axes that share their scale: from 0 to top, or to a little above all lines."""
    highest = max((y for ax in axes for line in ax.get_lines() for y in line.get_ydata()),
                  default=1)
    axes[0].set_ylim(0, top or 1.1 * highest or 1)


def heat(ax, cells, across, down, show, low, high):
    """A map of cells[row][column] between low and high by their logarithms, each with its
    value; None stays empty.  across, down: what stands at the axes."""
    from matplotlib.colors import LogNorm
    norm = LogNorm(low, high)
    ax.pcolormesh([[nan if cell is None else cell for cell in row] for row in cells],
                  cmap="YlOrRd", norm=norm, edgecolors="white", linewidth=1)
    for y, row in enumerate(cells):
        for x, cell in enumerate(row):
            if cell is not None:
                ax.text(x + 0.5, y + 0.5, show(cell), ha="center", va="center", fontsize=8,
                        color="white" if norm(cell) > 0.6 else "#222222")
    ax.set_xticks([x + 0.5 for x in range(len(across))], across)
    ax.set_yticks([y + 0.5 for y in range(len(down))], down)
