"""The sentence above a table: computed from figures, each rule with a table of its own."""

import dataclasses
import types

import lab  # puts the laboratory on the path
import pytest

from laboratory import cite, plan, scenarios, servers, verdicts
from laboratory.results import Round
from laboratory.stats import Summary
from laboratory.tables import Column, Table, View, count, share
from laboratory.verdicts import AHEAD, BEHIND, BESIDE, LEVEL

assert lab.TREE
TITLES = {"nodiskio": "pagewise, nodiskio", "nodiskio-owner": "pagewise, owner",
          "blocking": "pagewise, blocking", "nginx": "nginx, sendfile", "h2o": "H2O",
          "nginx-pagewise": "nginx, module"}
COLUMN = Column("rate", count, lambda v: v["rate"], "more")
COST = Column("cost", share, lambda v: v["cost"], "less")


@pytest.fixture
def view(monkeypatch):
    """A function: a View of {candidate: rates}, in each of the parts the same.  A cost is
    that of a rate."""
    def made(rates, parts=("a",)):
        rounds = [Round("fake", name, number, {part: {"rate": rate, "cost": rate / 100}
                                               for part in parts})
                  for name, of_it in rates.items() for number, rate in enumerate(of_it, 1)]
        about = {"scenarios": {"fake": {"settings": {}}}, "candidates": {
            name: {"title": TITLES[name], "version": "1",
                   "kind": "path" if name in ("nodiskio", "nodiskio-owner", "blocking")
                   else "peer"} for name in rates}}
        module = dataclasses.make_dataclass("Fake", [])()
        module.tables = lambda _view: [
            Table(part, [COLUMN, COST], lambda v, part=part: v[part]) for part in parts]
        monkeypatch.setattr(verdicts.scenarios, "load", lambda name: module)
        return View(about, "fake", rounds)
    return made


def summary(low, median, high, number=3):
    return Summary(median, low, high, number)


@pytest.mark.parametrize("mine, other, better, word", [
    ((9, 10, 11), (1, 2, 3), "more", AHEAD), ((1, 2, 3), (9, 10, 11), "more", BEHIND),
    ((9, 10, 11), (1, 2, 3), "less", BEHIND), ((1, 2, 3), (9, 10, 11), "less", AHEAD),
    ((1, 5, 9), (9, 10, 11), "more", LEVEL), ((1, 5, 9), (4, 5, 6), "less", LEVEL),
])
def test_a_winner_is_named_only_if_ranges_do_not_overlap(mine, other, better, word):
    assert verdicts.relation(summary(*mine), summary(*other), better) == word


def test_one_round_names_no_winner():
    assert verdicts.relation(summary(9, 9, 9, 1), summary(1, 1, 1, 1), "more") == BESIDE


@pytest.mark.parametrize("rates, sentence", [
    ({"nodiskio": (90, 100, 110), "nginx": (10, 20, 30), "h2o": (40, 50, 60)},
     "pagewise is ahead of the best peer, H2O: it gives 100 (90–110), H2O 50 (40–60), nginx "
     "20 (10–30)."),
    ({"nodiskio": (10, 20, 30), "nginx": (90, 100, 110)},
     "pagewise is behind the best peer, nginx (sendfile): it gives 20 (10–30), nginx (sendfile) "
     "100 (90–110), nginx 100 (90–110)."),
    ({"nodiskio": (90, 100, 110), "h2o": (95, 101, 105), "nginx-pagewise": (900, 900, 900)},
     "pagewise is level with the best peer, H2O: it gives 100 (90–110), H2O 101 (95–105), "
     "nginx –."),
    ({"nodiskio": (90, 100, 110)}, None),
    ({"nginx": (90, 100, 110)}, None),
])
def test_pagewise_beside_the_best_peer(view, rates, sentence):
    rule = verdicts.against_best("rate", "it gives {mine}, {who} {other}, nginx {nginx}",
                                 also=(("nginx", "nginx"),))
    assert rule(view(rates)) == sentence


def test_the_best_is_the_least_where_less_is_better(view):
    rule = verdicts.against_best("cost", "{mine} and {other}")
    assert rule(view({"nodiskio": (100, 100), "nginx": (300, 300), "h2o": (200, 200)})) == (
        "pagewise is ahead of the best peer, H2O: 1.00 and 2.00.")


@pytest.mark.parametrize("ours, said", [
    ((100, 101), "Of 2 cases pagewise is ahead of the best peer in 2: 2.01."),
    ((50, 51), "Of 2 cases pagewise is level with the best peer in 2: 1.01."),
    ((10, 11), "Of 2 cases pagewise is behind the best peer in 2: 0.21."),
])
def test_cases_are_counted(view, ours, said):
    rule = verdicts.in_cases("rate", "{ratio}")
    assert rule(view({"nodiskio": ours, "nginx": (50, 50)}, parts=("a", "b"))) == said


@pytest.mark.parametrize("counts, text", [
    ({AHEAD: 0, LEVEL: 1, BEHIND: 0}, "pagewise is level with the best peer"),
    ({AHEAD: 2, LEVEL: 0, BEHIND: 0}, "Of 2 cases pagewise is ahead of the best peer in 2"),
    ({AHEAD: 2, LEVEL: 1, BEHIND: 0},
     "Of 3 cases pagewise is ahead of the best peer in 2 and level with it in 1"),
    ({AHEAD: 2, LEVEL: 1, BEHIND: 3},
     "Of 6 cases pagewise is ahead of the best peer in 2, level with it in 1 and behind it in 3"),
])
def test_counts_in_words(counts, text):
    assert verdicts.counted(counts) == text
    assert verdicts.counted(counts, "nginx") == text.replace("pagewise", "nginx")


@pytest.mark.parametrize("values, text", [
    ((0.5, 0.7), "0.50 to 0.70"), ((0.7,), "0.70"), ((0.701, 0.702), "0.70"), ((None,), "–")])
def test_ranges_of_ratios(values, text):
    assert verdicts.between(values) == text


def test_a_span_is_of_medians_and_of_the_greatest_round(view):
    rule = verdicts.span("{rate} of {rate_most}", names=("nodiskio",), rate="rate")
    assert rule(view({"nodiskio": (10, 20, 90), "nodiskio-owner": (30, 40, 50),
                      "nginx": (1, 1, 900)})) == "20 to 40 of 90."


def test_a_span_may_be_of_one_variant(view):
    made = view({"nodiskio": (10, 20, 90), "blocking": (30, 40, 50)})
    assert verdicts.span("{rate}", variant="blocking", rate="rate")(made) == "40."
    assert verdicts.span("{rate}", variant="no such row", rate="rate")(made) is None


def test_a_pair_has_the_median_of_the_ratios_of_its_rounds(view):
    rule = verdicts.pair("rate", "{other}, {mine}, {ratio}", "nginx", "nginx-pagewise")
    assert rule(view({"nginx": (10, 20), "nginx-pagewise": (20, 60)})) == (
        "15 (10–20), 40 (20–60), 2.50.")
    assert rule(view({"nginx": (10, 20)})) is None


def test_two_rules_are_two_sentences(view):
    one = verdicts.span("it was {rate}", rate="rate")
    none = verdicts.against_best("rate", "{mine}")
    assert verdicts.both(one, none, one)(view({"nodiskio": (20,)})) == "it was 20. It was 20."
    assert verdicts.both(none)(view({"nodiskio": (20,)})) is None


@pytest.mark.parametrize("medians, good", [((1, 2, 3), True), ((1, 3, 2), False)])
def test_steps_in_the_order_of_their_source(medians, good):
    rungs = [{"why_not": "", "source": there, "median": here, "min": here, "max": here}
             for there, here in zip((10, 20, 30), medians)]
    ladder = {"ladder": "pipes", "less_is_faster": False, "rungs": rungs}
    assert verdicts.ordered(ladder) == good
    assert ("not those of pipes" in verdicts.same_order([ladder])) == (not good)


# ------------------------------------------------------------------- plan


WITH_SCENARIO = [page for page in plan.PAGES if page.scenario != plan.LADDERS]


@pytest.mark.parametrize("page", WITH_SCENARIO, ids=lambda page: page.name)
def test_a_table_of_the_plan_can_be_measured(page):
    changes = {key: str(value) for key, value in page.settings.items()}
    scenarios.settings(scenarios.load(page.scenario), False, changes, "--long" in page.options)
    known = {c.name: c.ours for c in servers.every()}
    assert all(known[name] for name in page.paths)
    assert not any(known[name] for name in page.peers)
    assert page.group in plan.GROUPS and page.question.endswith("?")


def test_a_pass_with_all_peers_takes_an_hour_and_a_half_at_most():
    host = types.SimpleNamespace(missing=lambda needs: [])
    args = types.SimpleNamespace(rounds=cite.ROUNDS)
    seconds = sum(cite.planned(page, args, host, servers.every()).seconds() + cite.FIXED
                  for page in WITH_SCENARIO if not page.asked) + cite.LADDERS
    assert 45 < seconds / 60 < 90


def test_names_of_tables_are_names_of_files_and_each_is_there_once():
    assert len(set(plan.names())) == len(plan.PAGES)
    assert all(name.replace("-", "").isalnum() and name == name.lower() for name in plan.names())


def test_unknown_tables_are_named_with_those_that_there_are():
    with pytest.raises(ValueError, match="no table nonsense: there are storm, "):
        plan.chosen(["nonsense"])
    assert [page.name for page in plan.chosen(["hot", "storm"])] == ["storm", "hot"]
