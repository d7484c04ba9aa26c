"""The ladders' tables and charts, from figures that are known."""

import lab
import pytest

from laboratory import ladders

assert lab


def rung(name, median, source, why_not=None):
    return {"name": name, "measure": "a write", "unit": "ns", "median": median,
            "min": median and median * 0.5, "max": median and median * 2,
            "values": [median] * 3, "source": source, "also": [], "why_not": why_not}


@pytest.fixture
def ladder():
    return {
        "ladder": "ring", "source": "another machine", "less_is_faster": True, "notes": "None.",
        "environment": {"kernel": "6.1", "cpu": "a processor", "cpus": 2},
        "options": {"size": 4096},
        "rungs": [rung("bytewise", 100.0, 90.0), rung("mirrored", 4.0, 3.0),
                  rung("ours", 8.0, None), rung("other", None, 5.0, "not here")],
    }


def test_ratio_is_how_much_faster_than_the_first(ladder):
    assert ladders.ratios(ladder, "median") == [1, 25, 12.5, None]
    assert ladders.ratios(ladder, "source") == [1, 30, None, 18]
    ladder["less_is_faster"] = False
    assert ladders.ratios(ladder, "median")[1] == 0.04


def test_table_has_both_figures_and_names_missing_ones(ladder):
    lines = ladders.table(ladder).splitlines()
    assert lines[3] == "| mirrored | 4 | 2–8 | 25 | 3 | 30 | 3 |"
    assert lines[4] == "| ours | 8 | 4–16 | 12.5 | – | – | 3 |"
    assert lines[5].startswith("| other | not here |")
    assert len({line.count("|") for line in lines}) == 1


def test_chart_is_drawn(ladder, tmp_path):
    path = tmp_path / "ring.svg"
    ladders.chart(ladder, path)
    assert path.read_text().count("<svg") == 1


def test_program_that_is_not_built_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(ladders.host, "TREE", str(tmp_path))
    with pytest.raises(RuntimeError, match="make bench-ladders"):
        ladders.measure("ring")
