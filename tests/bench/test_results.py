"""Results on disk, complete or part of them, and what the report makes of them."""

import json
import os
import re
from html.parser import HTMLParser

import lab
import pytest

from laboratory import report, results, servers, tables
from laboratory.tables import Column, Table, View

HOST = {"date": "today", "kernel": "Linux <x>", "disk": "vda, read_ahead_kb 128"}


def about(*scenarios, **more):
    return {
        "command": "bench/lab run storm", "seed": 1, "quick": False, "host": HOST,
        "candidates": {
            "nodiskio": {"title": "pagewise, nodiskio", "version": "1", "kind": "path"},
            "nginx": {"title": "nginx & more", "version": "2", "kind": "peer"}},
        "scenarios": {name: {"settings": {"rounds": 2}} for name in scenarios},
        "left_out": ["h2o: not installed"], "finished": True, **more}


def storm(rate, stall):
    latency = {"latency_us": {"p50": 100, "p99": 200, "max": stall}, "own_delay_us": {"p99": 50}}
    return {"random": {
        "alone": {"rate": 50000, "cpu": 1.0, "requests": 100_000},
        "calm": latency, "stormy": latency, "limit": 1 << 20,
        "storm": {"rate": rate, "t": 2.0, "cpu": 1.0, "disk_bytes": 2 << 20},
        "cold": {"bytes": 2 << 20, "seconds": 2.0}}}


@pytest.fixture
def finished(tmp_path):
    run = results.Run.create(str(tmp_path / "run"), about("storm"))
    for number, ours, theirs in ((1, 48000, 1.0), (2, 52000, 2.0)):
        run.add(results.Round("storm", "nodiskio", number, storm(ours, 3000),
                              commands=[["pagewise", "--root", "a b"]]))
        run.add(results.Round("storm", "nginx", number, storm(theirs, 4_000_000),
                              conf="daemon off; # <conf>"))
    return run


# ---------------------------------------------------------------- files


def test_saved_results_are_read_again(finished):
    again = results.Run.open(finished.path)
    assert again.about == finished.about
    key = results.Round.file
    assert sorted(again.rounds, key=key) == sorted(finished.rounds, key=key)


def test_a_reader_never_sees_half_a_file(finished, monkeypatch):
    def cut(content, f, **_):
        f.write("{")
        raise KeyboardInterrupt

    monkeypatch.setattr(results.json, "dump", cut)
    with pytest.raises(KeyboardInterrupt):
        finished.add(results.Round("storm", "nginx", 3, storm(1, 1)))
    monkeypatch.undo()
    assert len(results.Run.open(finished.path).rounds) == 4


def test_a_finished_run_does_not_say_that_it_was_stopped(finished):
    assert "stopped" not in report.markdown(finished)


def test_a_run_is_not_overwritten(finished):
    with pytest.raises(RuntimeError, match="holds a run already"):
        results.Run.create(finished.path, about("storm"))


@pytest.mark.parametrize("damage, message", [
    (lambda path: os.unlink(f"{path}/run.json"), "not the directory of a run"),
    (lambda path: os.truncate(f"{path}/run.json", 5), "not written by this laboratory"),
    (lambda path: lab_write(f"{path}/rounds/x.json", "[]"), "not written by this laboratory"),
    (lambda path: lab_write(f"{path}/rounds/x.json", '{"a": 1}'), "not written by"),
    (lambda path: lab_write(f"{path}/run.json", '{"format": 0}'), "another version"),
])
def test_unreadable_results_are_reported(finished, damage, message):
    damage(finished.path)
    with pytest.raises(RuntimeError, match=message):
        results.Run.open(finished.path)


def lab_write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


# --------------------------------------------------------------- tables


def view(*rates):
    rounds = [results.Round("storm", "nginx", i, None if r is None else {"a": {"rate": r}},
                            "broken" if r is None else None) for i, r in enumerate(rates)]
    return View(about("storm"), "storm", rounds)


COLUMN = Column("rate", tables.count, lambda v: v["rate"], "more")
TABLE = Table("", [COLUMN], lambda v: v["a"])


@pytest.mark.parametrize("rates, line", [
    ((30, 10, 20), "| nginx & more | 20 (10–30) | 3 |"),
    ((10,), "| nginx & more | 10 | 1 |"),
    ((10, None), "| nginx & more | 10 | 1 |"),
    ((None,), None),
])
def test_median_spread_and_rounds(rates, line):
    assert list(tables.markdown(view(*rates), TABLE))[2:-1] == ([line] if line else [])


@pytest.mark.parametrize("show, value, text", [
    (tables.count, 12345.6, "12 346"), (tables.count, 0.64, "0.6"),
    (tables.usec, 42, "42 µs"), (tables.usec, 388, "0.388 ms"),
    (tables.usec, 98_500, "98.5 ms"), (tables.usec, 4_400_000, "4.40 s"),
    (tables.share, 1.016, "1.02"), (tables.percent, 0.98, "98%"),
])
def test_numbers_as_they_are_shown(show, value, text):
    assert show(value) == text


def test_the_best_are_those_that_cannot_be_told_apart():
    cell = tables.stats.Summary
    first, near, far = cell(100, 95, 105, 3), cell(96, 90, 99, 3), cell(50, 40, 60, 3)
    assert report.best(COLUMN, [far, near, first, None]) == [near, first]
    assert report.best(COLUMN, [cell(100, 100, 100, 1), cell(50, 50, 50, 1)]) == []


# ---------------------------------------------------------------- pairs


@pytest.mark.parametrize("name, without", [
    ("nginx-pagewise", "nginx"), ("nginx-pagewise-tls", "nginx-tls"), ("nodiskio", "blocking"),
    ("nginx", None), ("nginx-threads", None), ("blocking", None), ("nodiskio-owner", None)])
def test_each_server_with_the_library_has_its_pair_without(name, without):
    assert servers.without_library(name) == without


def test_both_candidates_of_a_pair_exist():
    known = {c.name for c in servers.every()}
    pairs = {name: servers.without_library(name) for name in known}
    pairs = {name: base for name, base in pairs.items() if base}
    assert len(pairs) >= 3 and set(pairs.values()) <= known


CANDIDATES = {"nginx": {"title": "nginx", "kind": "peer", "version": "1"},
              "nginx-pagewise": {"title": "nginx, <module>", "kind": "peer", "version": "1"}}


@pytest.fixture
def compared(tmp_path):
    """A function: the run of these rounds of both, rates in the storm."""
    def make(**rates):
        run = results.Run.create(str(tmp_path / "run"), about("storm", candidates=CANDIDATES))
        for name, numbers in rates.items():
            for number, rate in enumerate(numbers, 1):
                values = None if rate is None else storm(rate, 3000)
                run.add(results.Round("storm", name.replace("_", "-"), number, values,
                                      None if values else "broken"))
        return run
    return make


@pytest.mark.parametrize("without, with_, line", [
    ((2, 4), (400, 200), "2.0–4.0) | 300 (200–400) | 125 (50–200) |"),  # by round
    ((100, 0), (50, 80), "0.0–100) | 65 (50–80) | 0.50 |"),  # nothing is no share of 0
    ((100, 200, None), (50, 20, 10), "100–200) | 20 (10–50) | 0.30 (0.10–0.50) |"),
])
def test_a_server_with_the_library_stands_beside_that_without(compared, without, with_, line):
    text = report.markdown(compared(nginx=without, nginx_pagewise=with_))
    _, heading, pairs = text.partition(f"### {report.PAIRS}")
    assert heading and "| | nginx | nginx, <module> | with, of without |" in pairs
    (found,) = [row for row in pairs.splitlines() if row.startswith("| hot in the storm, req/s")]
    assert found.endswith(line)


def test_the_page_has_the_pairs_too(compared):
    pytest.importorskip("matplotlib")
    page = made(compared(nginx=(2,), nginx_pagewise=(400,)))
    text = " ".join(page.text)
    assert page.tags.count("table") == 2 and page.found == []
    assert report.PAIRS in text and "with, of without" in text and "200" in page.text


@pytest.mark.parametrize("rates", [{"nginx": (1,)}, {"nginx_pagewise": (1,)},
                                   {"nginx": (None,), "nginx_pagewise": (1,)}])
def test_a_candidate_without_a_counterpart_has_no_pair(compared, rates):
    assert report.PAIRS not in report.markdown(compared(**rates))


# --------------------------------------------------------------- report


class Loads(HTMLParser):
    """What a browser would fetch: attributes and styles that name something else."""

    def __init__(self, text):
        super().__init__()
        self.found, self.text, self.tags = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for key, value in attrs:
            if key in ("src", "srcset", "data", "poster", "action") or (
                    key in ("href", "xlink:href") and not (value or "").startswith("#")):
                self.found.append((tag, key, value))
            self.found += [(tag, url) for url in re.findall(r"url\((?!['\"]?#)[^)]*", value or "")]

    def handle_data(self, data):
        self.text.append(data)
        self.found += re.findall(r"@import|url\((?!['\"]?#)[^)]*", data)


def made(run):
    report.write(run)
    with open(f"{run.path}/report.html", encoding="utf-8") as f:
        return Loads(f.read())


def test_the_report_loads_nothing_and_has_its_figures(finished):
    pytest.importorskip("matplotlib")
    page = made(finished)
    assert page.found == [] and "script" not in page.tags and "link" not in page.tags
    assert page.tags.count("svg") == 2 and page.tags.count("table") == 1  # wide and narrow
    text = " ".join(page.text)
    for piece in ("50 000", "48 000–52 000", "nginx & more", "Linux <x>", "3 ms", "4.00 s",
                  "daemon off; # <conf>", "pagewise --root 'a b'", "h2o: not installed",
                  "read_ahead_kb 128", "worst stall", "loop asleep", "bench/lab run storm"):
        assert piece in text, piece


def test_the_report_names_the_commit_and_follows_the_readers_colours(finished):
    pytest.importorskip("matplotlib")
    finished.about["host"] = {**HOST, "commit": "0123456789"}
    report.write(finished)
    with open(f"{finished.path}/report.html", encoding="utf-8") as f:
        text = f.read()
    assert "<p class=of>commit 0123456789 · date today</p>" in text
    assert "prefers-color-scheme: dark" in text and "max-width: 640px" in text
    for shade in report.COLOURS.values():  # in the style alone, not in the figures
        assert shade not in text.partition("<main>")[2]
    for name in report.COLOURS:
        assert f"--{name}: " in text and name in report.DARK


def test_figures_side_by_side_have_the_layout_of_a_telephone(finished):
    """The wide one, in half of the page, has letters of 7 pixels."""
    pytest.importorskip("matplotlib")
    report.write(finished)
    with open(f"{finished.path}/report.html", encoding="utf-8") as f:
        style, _, body = f.read().partition("</style>")
    shown = dict(re.findall(r"^\.opening figure \.(wide|narrow) { display: (\w+);", style, re.M))
    assert shown == {"wide": "none", "narrow": "block"}
    assert re.search(r"<section class=opening>.*?<div class=narrow><svg", body, re.S)


def test_a_figure_is_a_picture_of_its_own_too(finished):
    pytest.importorskip("matplotlib")
    report.write(finished)
    with open(f"{finished.path}/storm-1.svg", encoding="utf-8") as f:
        picture = Loads(f.read())
    assert picture.found == [] and picture.tags[0] == "svg"
    assert any("nginx & more" in text for text in picture.text)


def test_a_part_of_a_run_has_a_report_that_says_so(tmp_path):
    pytest.importorskip("matplotlib")
    run = results.Run.create(str(tmp_path / "run"), about("storm", "hot", finished=False))
    run.add(results.Round("storm", "nodiskio", 1, storm(48000, 3000)))
    run.add(results.Round("storm", "nginx", 1, None, "RuntimeError: did not start"))
    page = made(results.Run.open(run.path))
    text = " ".join(page.text)
    with open(f"{run.path}/report.md", encoding="utf-8") as f:
        assert "was stopped" in f.readline()
    assert "was stopped" in text and page.tags.count("svg") == 2
    assert "nginx & more, round 1, failed: RuntimeError: did not start" in text


def test_nothing_finished_is_a_report_as_well(tmp_path):
    pytest.importorskip("matplotlib")
    page = made(results.Run.create(str(tmp_path / "run"), about("storm", finished=False)))
    assert "svg" not in page.tags and "Where and how" in " ".join(page.text)


def test_without_matplotlib_the_tables_are_there(finished, monkeypatch):
    monkeypatch.setitem(lab.sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(lab.sys.modules, "matplotlib", None)
    with pytest.raises(RuntimeError, match="install-deps.sh bench"):
        report.write(finished)
    with open(f"{finished.path}/report.md", encoding="utf-8") as f:
        assert "| pagewise, nodiskio |" in f.read()


def test_rounds_are_plain_json(finished):
    for name in os.listdir(f"{finished.path}/rounds"):
        with open(f"{finished.path}/rounds/{name}", encoding="utf-8") as f:
            assert json.load(f)["scenario"] == "storm"
