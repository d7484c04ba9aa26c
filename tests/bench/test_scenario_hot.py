"""The scenario hot: what it compares with what, in which order, and a run in miniature."""

import pathlib
import time
import types

import lab
import pytest

from laboratory import report, results, run, scenarios, servers, tables
from laboratory.scenarios import hot
from laboratory.tables import View

pytestmark = pytest.mark.xdist_group("laboratory")  # it sets up the whole machine

TITLES = {"limit-send": "reference", "limit-memfd": "reference", "nodiskio": "path",
          "nginx": "peer", "h2o": "peer"}


def measured(server, part, number, us, rate):
    return {"server": server, "part": part, "round": number, "answers": 1_000_000,
            "cpu": us, "t": 2.0, "own_cpu": 1.0, "rate": rate}


def view(figures, log="off,on"):
    """figures: (name, part) -> (CPU µs, requests/s) of each round."""
    about = {
        "candidates": {n: {"title": n, "version": "", "kind": k} for n, k in TITLES.items()},
        "scenarios": {"hot": {"settings": {**hot.FULL, "log": log}}}}
    rounds = {}
    for (name, part), each in figures.items():
        for number, (us, rate) in enumerate(each, 1):
            one = rounds.setdefault((name, number), results.Round("hot", name, number, {}))
            one.values[part] = measured(name, part, number, us, rate)
    return View(about, "hot", list(rounds.values()))


ENOUGH = 100  # requests: some write only when a buffer of 4 KiB is full
OFF, ON = "1K, log off", "1K, log on"
FIGURES = {
    ("limit-send", OFF): [(5, 300), (5, 300), (9, 100)],
    ("limit-memfd", OFF): [(4, 200), (4, 200), (8, 200)],
    ("nodiskio", OFF): [(6, 100), (5, 100), (10, 90)],
    ("nginx", OFF): [(10, 80), (10, 80), (1, 80)],
    ("h2o", OFF): [(8, 50), (8, 50), (20, 50)],
    ("nodiskio", ON): [(8, 90), (8, 95), (10, 90)],
    ("nginx", ON): [(16, 70), (16, 70), (20, 70)],
}


def lines(seen):
    return {table.title: {name: dict(zip((c.title for c in table.columns), cells))
                          for name, _, _, cells in tables.rows(seen, table)}
            for table in hot.tables(seen)}


def test_ratios_are_of_the_same_round_and_their_median_is_told():
    """CPU: the limit is memfd (4), the best peer H2O (8); requests/s: nginx (80).  Medians
    of the ratios, not ratios of medians: 6/4, 5/4, 10/8."""
    seen = lines(view(FIGURES))
    ours = seen["1 KiB (limit-memfd, best peer by CPU time: h2o, by requests/s: nginx)"][
        "nodiskio"]
    assert ours["CPU, of the limit"] == tables.stats.Summary(1.25, 1.25, 1.5, 3)
    assert ours["CPU, of the best peer"] == tables.stats.Summary(0.625, 0.5, 0.75, 3)
    assert ours["requests/s, of the best peer"] == tables.stats.Summary(1.25, 1.125, 1.25, 3)


def test_with_a_log_it_is_compared_with_logging_peers_and_itself_without():
    seen = lines(view(FIGURES))
    ours = seen["1 KiB, access logs on (limit-memfd, best peer by CPU time: nginx, "
                "by requests/s: nginx)"]["nodiskio"]
    assert ours["CPU, of the limit"].median == 2
    assert ours["CPU, of the best peer"] == tables.stats.Summary(0.5, 0.5, 0.5, 3)
    assert ours["CPU, of that without log"].median == pytest.approx(8 / 6)
    assert ours["requests/s, of those without log"].median == 0.95


def test_the_first_table_has_only_the_paths_of_pagewise():
    seen = view(FIGURES)
    first = hot.tables(seen)[0]
    assert [(name, title) for name, title, _, _ in tables.rows(seen, first)] == [
        ("nodiskio", "nodiskio, 1 KiB"), ("nodiskio", "nodiskio, 1 KiB, access logs on")]


def test_unmeasured_candidates_are_not_compared():
    only = {key: value for key, value in FIGURES.items() if key[0] == "nodiskio"}
    ours = lines(view(only))["1 KiB"]["nodiskio"]
    assert ours["requests/s"].median == 100
    assert ours["CPU, of the limit"] is None and ours["CPU, of the best peer"] is None


def test_a_round_in_which_the_other_failed_has_no_ratio():
    fewer = {**FIGURES, ("limit-memfd", OFF): FIGURES["limit-memfd", OFF][:2]}
    seen = lines(view(fewer))
    ours = next(rows for title, rows in seen.items() if title.startswith("1 KiB ("))
    assert ours["nodiskio"]["CPU, of the limit"].count == 2


def test_over_tls_the_limit_and_the_peers_are_those_over_tls(monkeypatch):
    kinds = {"limit-tls": "reference", "nodiskio-tls": "path", "nginx-tls": "peer"}
    monkeypatch.setattr(f"{__name__}.TITLES", {**TITLES, **kinds})
    seen = view({**FIGURES, ("nodiskio-tls", OFF): [(30, 40)], ("nginx-tls", OFF): [(60, 20)],
                 ("limit-tls", OFF): [(20, None)]})
    row = next(rows for title, rows in lines(seen).items() if title.startswith("1 KiB ("))
    assert row["nodiskio-tls"]["CPU, of the limit"].median == 1.5
    assert row["nodiskio-tls"]["CPU, of the best peer"].median == 0.5
    assert row["nodiskio-tls"]["requests/s, of the best peer"].median == 2
    assert row["limit-tls"]["requests/s"] is None
    assert row["nodiskio"]["CPU, of the best peer"].median == 0.625


def test_the_limit_over_tls_is_measured_beside_candidates_over_tls_alone():
    for names, limits in ((["nodiskio"], {"limit-send", "limit-sendfile", "limit-memfd"}),
                          (["nodiskio-tls"], {"limit-tls"})):
        args = types.SimpleNamespace(quick=False, long=False, references=True, rounds=1, path=names,
                                     peer=None, set={})
        host = types.SimpleNamespace(missing=lambda needs: [])
        plan = run.Plan("hot", args, host, servers.every())
        assert set(plan.references) == limits
        args.references = False
        assert run.Plan("hot", args, host, servers.every()).references == {}


@pytest.mark.parametrize("name, part, is_measured", [
    ("nginx-chunk", "256K, log off", False), ("nginx-chunk", "1M, log off", True),
    ("nginx-threads-whole", "1K, log on", False), ("nginx-push", "1K, log on", True),
    ("limit-send", "1K, log on", False), ("limit-send", "1K, log off", True)])
def test_what_cannot_differ_is_not_measured(name, part, is_measured):
    assert hot.measured(name, part) == is_measured


def test_the_report_has_figures_of_it():
    pytest.importorskip("matplotlib")
    seen = view(FIGURES)
    assert [report.svg(figure)[:4] for _, figure in hot.figures(seen)] == ["<svg"]


def test_all_take_turns_in_one_part_before_the_next():
    args = types.SimpleNamespace(quick=False, long=False, references=True, rounds=2,
                                 path=["nodiskio"], peer=None,
                                 set={"hot": {"cases": "1K,1M", "log": "off,on"}})
    host = types.SimpleNamespace(missing=lambda needs: [])
    plan = run.Plan("hot", args, host, servers.paths())
    names = ["limit-send", "limit-sendfile", "limit-memfd", "nodiskio"]
    order = [(number, part, name) for number, part, name, _ in plan.order()]
    assert order == [(number, f"{case}, log {log}", name) for number in (1, 2)
                     for case in ("1K", "1M") for log in ("off", "on")
                     for name in (names if log == "off" else names[-1:])]
    assert plan.steps() == len(order) == 20


def test_parts_of_a_round_are_joined_also_if_one_failed(tmp_path):
    made = results.Run.create(str(tmp_path / "run"), {"scenarios": {}})
    made.add(results.Round("hot", "nginx", 1, {"a": 1}, commands=[["x"]]))
    made.add(results.Round("hot", "nginx", 1, None, "b: broken", commands=[["x"], ["y"]]))
    made.add(results.Round("hot", "nginx", 1, {"c": 3}))
    made.add(results.Round("hot", "nginx", 2, {"a": 2}))
    for finished in (made, results.Run.open(made.path)):
        assert [(r.number, r.values, r.error) for r in finished.rounds] == [
            (1, {"a": 1, "c": 3}, "b: broken"), (2, {"a": 2}, None)]
        assert finished.rounds[0].commands == [["x"], ["y"]]


def test_hot_in_miniature(base, tmp_path):
    lab.needs("wrk", "replay", "limit", "network")
    status, _, err = lab.run(
        "run", "hot", "--rounds", 1, "--data", base, "--out", tmp_path / "out", "--path",
        "nodiskio", *lab.miniature("hot"))
    assert status == 0, err
    found = {name: rounds[0]["values"] for (_, name), rounds in
             lab.rounds(tmp_path / "out").items()}
    parts = set(hot.parts(scenarios.settings(hot, False, {"cases": lab.MINIATURE["hot"]["cases"]})))
    assert set(found) == {"limit-send", "limit-sendfile", "limit-memfd", "nodiskio"}
    for name, values in found.items():
        assert set(values) == {p for p in parts if "limit" not in name or "log off" in p}
        assert all(v["requests"] > 0 and v["cpu"] > 0 for v in values.values())


@pytest.mark.parametrize("case, expected", [("64K", 10), ("1M", 5.5), ("16M", 0.34375)])
def test_large_answers_are_counted_by_their_bytes(case, expected):
    result = {"requests": 10, "bytes": 5.5 * (1 << 20)}
    assert hot.answers(result, hot.CASES[case]) == expected


@pytest.mark.parametrize("cand", [*servers.paths()[:1], *servers.peers()], ids=lambda c: c.name)
def test_with_an_access_log_it_has_lines(cand, base):
    from laboratory import host, limits, undo
    if cand.unusable():
        pytest.skip(cand.unusable())
    here = host.Host(base)
    (root := pathlib.Path(base, f"log-{cand.name}")).mkdir(mode=0o755)
    (root / "file").write_bytes(b"hello")
    for on in (False, True):
        with undo.Undo() as stack:
            server = servers.Server(stack, cand, here, here.counters(stack, limits.Limits()),
                                    str(root), access_log=on)
            log = f"{server.run}/access.log"
            server.warm("/file", b"hello", times=ENOUGH)
            deadline = time.monotonic() + lab.PATIENCE
            while on and not lines_of(log):
                assert time.monotonic() < deadline, server.argv
                time.sleep(0.05)
            server.child.terminate()
            server.child.wait(lab.PATIENCE)
            assert bool(lines_of(log)) == on, server.argv


def lines_of(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.readlines()
    except FileNotFoundError:
        return []
