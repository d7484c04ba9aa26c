"""`bench/lab rows`: which figures are behind the best configuration of a peer."""

import types

import lab  # puts the laboratory on the path
import pytest

from laboratory import cite, plan, rows, scenarios, servers, verdicts
from laboratory.results import Round
from laboratory.rows import Row
from laboratory.tables import Column, Table, View, share

assert lab.TREE
TITLES = {"nodiskio": "pagewise", "nodiskio-owner": "pagewise, owner", "nodiskio-tls": "pagewise, TLS",
          "nginx": "nginx, sendfile", "nginx-push": "nginx, push", "nginx-tls": "nginx, TLS", "h2o": "H2O",
          "nginx-pagewise": "nginx, module"}
COLUMNS = [Column("cost", share, lambda v: v, "less"), Column("rate", share, lambda v: v, "more")]


@pytest.fixture
def view(monkeypatch):
    """A function: a View of {candidate: figures of the rounds}, in two tables."""
    def made(**figures):
        figures = {name.replace("_", "-"): of_it for name, of_it in figures.items()}
        rounds = [Round("fake", name, number, figure) for name, of_it in figures.items()
                  for number, figure in enumerate(of_it, 1)]
        tables = [Table("1 KiB (best: x)", COLUMNS), Table("16 KiB", COLUMNS, lambda v: 100 * v)]
        monkeypatch.setattr(verdicts.scenarios, "load", lambda name: types.SimpleNamespace(
            tables=lambda _view: tables))
        return View({"scenarios": {"fake": {"settings": {}}}, "candidates": {
            name: {"title": TITLES[name], "kind": "path" if name.startswith("nodiskio") else "peer"}
            for name in figures}}, "fake", rounds)
    return made


def line(view, column="cost", wanted=0.9, **more):
    return rows.line(view, Row("", "", "1 KiB", column, wanted, **more))


def test_each_peer_is_there_with_its_best_configuration(view):
    found = line(view(nodiskio=(8, 9, 10), nginx=(20, 20, 20), nginx_push=(10, 10, 10), h2o=(11, 12, 13)))
    assert found == ["9.00 (8.00–10.00)", "nginx, push 10.00; H2O 12.00 (11.00–13.00)",
                     "0.90 (0.80–1.00)", "≤ 0.90", "reached"]


@pytest.mark.parametrize("column, wanted, word", [
    ("cost", 0.89, "**not reached**"), ("cost", 0.9, "reached"), ("rate", 1.0, "**not reached**"),
    ("rate", 0.9, "reached")])
def test_a_ratio_is_wanted_at_most_or_at_least_as_its_column_is_better(view, column, wanted, word):
    assert line(view(nodiskio=(9,), nginx=(10,)), column, wanted)[-1] == word


def test_servers_over_tls_are_compared_with_each_other(view):
    both = view(nodiskio=(9,), nginx=(10,), nodiskio_tls=(90,), nginx_tls=(100,))
    assert line(both)[1:3] == ["nginx, sendfile 10.00", "0.90"]
    assert line(both, subject="nodiskio-tls")[1:3] == ["nginx, TLS 100.00", "0.90"]


def test_a_row_may_be_about_one_peer_or_about_the_module(view):
    all_ = view(nodiskio=(9,), nginx=(10,), h2o=(1,), nginx_pagewise=(11,))
    assert line(all_, peers="nginx")[1:3] == ["nginx, sendfile 10.00", "0.90"]
    assert line(all_, subject="nginx-pagewise", peers="nginx")[:3] == [
        "11.00", "nginx, sendfile 10.00", "1.10"]


def test_a_figure_of_ours_alone_is_the_worst_of_all_tables(view):
    ours = view(nodiskio=(1,), nodiskio_owner=(2,), nginx=(1000,))
    found = rows.line(ours, Row("", "", "", "cost", 150, alone=True))
    assert found[0] == "pagewise, owner 200.00" and found[3:] == ["≤ 150.00", "**not reached**"]
    found = rows.line(ours, Row("", "", "", "rate", 1, alone=True))
    assert found[0] == "pagewise 1.00" and found[3:] == ["≥ 1.00", "reached"]


@pytest.mark.parametrize("figures", [{"nodiskio": (9,)}, {"nginx": (9,)}, {"nodiskio": (9,), "nginx_tls": (9,)}])
def test_a_row_without_figures_says_so(view, figures):
    assert line(view(**figures))[-1] == rows.NO_FIGURES
    assert line(view(**figures), alone=True)[-1] in ("**not reached**", rows.NO_FIGURES)


def test_a_page_without_figures_has_its_rows(view):
    text = "\n".join(rows.markdown({"hot": view(nodiskio=(9,))}, ["hot", "slow"]))
    assert "| hot, 1 KiB | –" in text and "| slow clients | – |" in text and "thesis" not in text


# ------------------------------------------------------------------ the plan


def test_each_row_is_of_a_page_whose_candidates_have_its_subject():
    pages = {page.name: page for page in rows.pages()}
    assert {row.page for row in rows.ROWS} == set(pages) == set(rows.PAGES)
    for row in rows.ROWS:
        page = pages[row.page]
        assert row.alone or row.subject in (*page.paths, *page.peers), row
        assert any(name.startswith(row.peers) for name in page.peers) or row.alone, row
        known = {c.name for c in servers.every()}
        assert {*page.paths, *page.peers} <= known


def test_the_column_of_each_row_says_what_is_better():
    columns, pages = {}, {page.name: page for page in rows.pages()}
    for name in {page.scenario for page in pages.values()}:
        module, settings = scenarios.load(name), {"clients": 1, "rate": 1, "cases": "1K", "log": "off"}
        none = View({"scenarios": {name: {"settings": settings}}, "candidates": {}}, name, [])
        wants = {"hot": (none, False), "http2": (none, "16M, 64"), "download": (none, "1"),
                 "handshakes": (none, "resumed")}.get(name, ())
        found = module.columns(*wants) if hasattr(module, "columns") else module.tables(none)[0].columns
        columns[name] = {column.title: column.better for column in found}
    for row in rows.ROWS:
        assert columns[pages[row.page].scenario][row.column], row


def test_three_rounds_of_all_rows_take_a_quarter_of_an_hour_at_most():
    host, args = types.SimpleNamespace(missing=lambda needs: []), types.SimpleNamespace(rounds=rows.ROUNDS)
    planned = [cite.planned(page, args, host, servers.every()) for page in rows.pages()]
    assert not any(one.references for one in planned)
    assert sum(one.seconds() + cite.FIXED for one in planned) < 15 * 60


def test_a_page_of_rows_has_less_than_that_of_the_plan():
    whole = {page.name: page for page in plan.PAGES}
    for page in rows.pages(["hot", "download"]):
        assert set(page.peers) <= set(whole[page.name].peers)
        assert page.arguments(3).count("--no-references") == 1
        assert rows.NO_RFS not in page.arguments(3)
    assert all(rows.NO_RFS in page.arguments(3) for page in rows.pages(rfs=False))
