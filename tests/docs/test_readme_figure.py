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
