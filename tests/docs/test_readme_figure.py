"""The figure of README.md is that of the table which it links to."""

import pathlib
import re

import pytest

import harness

pytestmark = pytest.mark.once
TREE = pathlib.Path(harness.TREE)


def cell(page, row, column):
    """Of the first table of the page."""
    lines = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("|")]
    head = [text.strip() for text in lines[0]]
    found = next(cells for cells in lines if cells[0].strip() == row)
    return found[head.index(column)].strip()


def test_the_readme_has_the_figure_of_the_storm():
    readme = " ".join((TREE / "README.md").read_text().split())
    said = re.search(r"keeps \*\*(\d+) %\*\* .*?\((\d+) to (\d+) % in five rounds\)", readme).groups()
    table = cell((TREE / "docs/results/storm.md").read_text(), "pagewise, nodiskio", "of alone")
    figures = re.fullmatch(r"([\d.]+) \(([\d.]+)–([\d.]+)\)", table).groups()
    assert said == tuple(f"{100 * float(text):.0f}" for text in figures)
    assert "docs/results/storm-1.svg" in readme
    assert (TREE / "docs/results/storm-1.svg").exists()


KNEE = "![p99 of requests for a cached file, by load](docs/results/knee-1.svg)"


def test_the_readme_shows_the_knee_below_the_storm_once_it_is_measured():
    """`make results ARGS="--only knee"` measures it.  README has room for the picture, and for a
    line such as "[Up to which load](docs/results/knee.md) a cached file stays fast"."""
    readme = (TREE / "README.md").read_text()
    measured = (TREE / "docs/results/knee-1.svg").exists()
    assert ("knee-1.svg" in readme) == measured, f"put this below the storm's picture: {KNEE}"
    if measured:
        assert 0 < readme.index("storm-1.svg") < readme.index("knee-1.svg")
        assert "docs/results/knee.md" in readme
