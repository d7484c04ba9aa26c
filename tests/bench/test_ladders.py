"""The ladders' tables and charts, from figures that are known."""

import os
import re
import subprocess

import lab
import pytest

from laboratory import ladders, verdicts

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


def test_only_a_measure_with_a_figure_of_the_source_has_a_column_for_it(ladder):
    for one in ladder["rungs"]:
        one["also"] = [{"measure": "a read", "unit": "ns", "median": 7.0, "source": None}]
    assert "| a read, ns | rounds |" in ladders.table(ladder)
    ladder["rungs"][1]["also"][0]["source"] = 6.0
    lines = ladders.table(ladder).splitlines()
    assert "| a read, ns | there | rounds |" in lines[0] and lines[3].endswith("| 7 | 6 | 3 |")


def test_chart_is_drawn(ladder, tmp_path):
    path = tmp_path / "ring.svg"
    ladders.chart(ladder, path)
    assert path.read_text().count("<svg") == 1


def test_program_that_is_not_built_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(ladders.host, "TREE", str(tmp_path))
    with pytest.raises(RuntimeError, match="make bench-ladders"):
        ladders.measure("ring")


def test_what_stands_beside_the_rungs_is_a_table_and_lines_in_the_chart(ladder, tmp_path):
    ladder["references"] = [{"name": "memory", "median": 12.0, "source": 15.5},
                            {"name": "the last step", "median": None, "source": 62.5}]
    assert "| memory | 12 | 15.5 |" in ladders.body(ladder)
    assert "| the last step | – | 62.5 |" in ladders.body(ladder)
    ladders.chart(ladder, tmp_path / "ring.svg")
    text = (tmp_path / "ring.svg").read_text()
    assert "memory, here" in text and "the last step, there" in text
    assert "the last step, here" not in text


def test_each_size_of_the_buffer_has_a_column(ladder):
    ladder["sizes"] = {"4k": {"bytewise": 1.0, "other": None}, "2m": {"bytewise": 2.0}}
    lines = list(ladders.by_size(ladder))
    assert lines[2] == "|  | 4 KiB | 2 MiB |"
    assert lines[4] == "| bytewise | 1 | 2 |" and lines[7] == "| other | – | – |"


PERF = """pipes
\tffffffff81 copy_page_from_iter
\tffffffff82 pipe_write
\t  10 write

pipes
\tffffffff81 clear_page_erms
\tffffffff83 __alloc_pages_noprof
\tffffffff82 pipe_write

pipes
\tffffffff81 copy_page_to_iter
\tffffffff82 pipe_read

pipes
\tffffffff81 mutex_lock
\tffffffff82 pipe_read

"""


def test_a_profile_counts_the_writers_side_in_all_samples():
    found = ladders.shares(PERF)
    assert found["copying"] == found["allocating pages"] == 0.25
    assert found["lock"] == 0 and set(found) == set(ladders.PARTS)


@pytest.mark.parametrize("text", ["", "pipes\n\tffffffff81 [unknown]\n\t10 main\n\n"])
def test_without_the_kernels_names_there_is_no_profile(text):
    assert ladders.shares(text) is None


def test_a_profile_stands_beside_that_of_the_source(ladder):
    name, there = next(iter(ladders.PROFILED.items()))
    ladder["profile"] = {name: dict.fromkeys(ladders.PARTS, 0.5), "another": dict.fromkeys(ladders.PARTS, 0)}
    lines = list(ladders.profiled(ladder))
    assert f"50.0% ({there['copying']:.1f}%)" in lines[4] and "(" not in lines[5]
    assert set(there) < set(ladders.PARTS)
    for parts in ladder["profile"].values():
        parts["lock"] = 0
    assert list(ladders.profiled(ladder))[4].split(" | ")[5] == "–"
    ladder["profile"] = {"why_not": "perf is not installed"}
    assert list(ladders.profiled(ladder))[0] == "Profile of each rung: – (perf is not installed)."


def test_a_ladder_without_the_sources_figures_is_in_no_verdict(ladder):
    other = {**ladder, "ladder": "gup", "rungs": [rung("one", 1.0, None), rung("two", 9.0, None)]}
    assert "3 of 3" not in verdicts.same_order([ladder, other])
    assert "of 1 of 1 articles" in verdicts.same_order([ladder, other])


@pytest.mark.parametrize("name", ladders.NAMES)
def test_a_ladder_tests_itself(name):
    done = subprocess.run([ladders.program(name), "--self-test"], text=True, check=False,
                          timeout=lab.PATIENCE, stdout=subprocess.PIPE)
    assert done.returncode == 0 and "not ok" not in done.stdout, done.stdout
    assert re.search(r"^1\.\.[1-9]", done.stdout, re.M)


def test_parts_of_a_profile_are_of_rungs_that_there_are():
    done = subprocess.run([ladders.program("pipes"), "--json", "--only", "1", "--rounds", "1",
                           "--seconds", "0.05", "--size", "4k"], text=True, check=True,
                          timeout=lab.PATIENCE, stdout=subprocess.PIPE)
    pipes = ladders.json.loads(done.stdout)
    assert set(ladders.PROFILED) < {one["name"] for one in pipes["rungs"]}
    assert [bool(one["median"]) for one in pipes["rungs"]] == [True] + [False] * 5
    assert pipes["options"]["size"] == os.sysconf("SC_PAGESIZE")
