"""What is pure in the scenarios after herd; each in miniature."""

import os
import random
import types

import lab
import pytest

from laboratory import cachemodes, disks, limits, report, results, run, scenarios, servers, stats, tables
from laboratory.bench import Bench
from laboratory.scenarios import (clients, crawler, film, grid, handshakes, hung, knee, prefix, proxied, short, slow,
                                  spindle, thesis, week, zipf)
from laboratory.tables import View

pytestmark = pytest.mark.xdist_group("laboratory")  # it sets up the whole machine

MIB, GIB = 1 << 20, 1 << 30
MINIATURE = {
    "thesis": {"seconds": 1, "connections": 8, "memory_mib": 16, "limit_mib": 100, "lead": 0},
    "prefix": {"files": 4, "prefix": "0,1024", "readahead": "2M", "connections": 2},
    "proxied": {"seconds": 1, "probe_seconds": 1, "probe_timeout": 1, "memory_mib": 48,
                "limit_mib": 20, "probe_rate": 100, "cold_connections": 4, "lead": 0.3},
    "knee": {"loads": "10 50", "cold": 0.5, "seconds": 1, "connections": 4,
             "cold_connections": 8, "timeout": 3, "memory_mib": 16, "limit_mib": 20},
    "grid": {"seconds": 0.3, "timeout": 0.3, "memory_mib": 16, "hot": "50 200",
             "cold": "0 20", "lead": 0.3, "cold_connections": 4},
    "slow": {"seconds": 1, "clients": 50, "memory_mib": 16, "lead": 1},
    "clients": {"seconds": 1, "clients": 50, "files": 16, "memory_mib": 16, "lead": 1,
                "ramp": 0.2},
    "zipf": {"s": "0.8,1.2", "cache": "keep,drop,auto", "memory_mib": 16, "warm": 2,
             "counted": 2},
    "crawler": {"memory_mib": 16, "warm": 2, "every": 2},
    "week": {"trace": "media", "scale": "1000", "memory_mib": "16"},
    "short": {"seconds": 1, "downloads": 4, "mib": 16, "files": 20, "connections": 4,
              "memory_mib": 16, "lead": 0.3, "timeout": 3},
    "handshakes": {"seconds": 1, "connections": 4, "rate": 20, "probe_rate": 50,
                   "probe_seconds": 1, "probe_timeout": 5, "lead": 0.3},
    "hung": {"clients": 20, "seconds": 1, "lead": 1, "cold": 8, "timeout": 2, "memory_mib": 32,
             "probe_timeout": 3},
    "spindle": {"streams": "10", "seconds": 5, "ramp": 0.5, "downloads": 4, "lead": 0.5,
                "probe_seconds": 1, "files": 20, "mib": 8, "small": 40, "disk_gib": 1,
                "memory_mib": 256},
    "film": {"films": 4, "mib": 8, "streams": 2, "stream_mib": 8, "lead": 0.3, "disk_gib": 1,
             "memory_mib": 256},
}


# --------------------------------------------------- all of them


def bench():
    """With what a scenario draws from."""
    return Bench(types.SimpleNamespace(data=""), None, 1, 1, "")


NAMES = [f"f{i}" for i in range(50)]


def test_a_file_is_picked_once_or_again_and_again():
    assert sorted(scenarios.picked(bench(), NAMES, "once")) == sorted(NAMES)
    drawn = scenarios.picked(bench(), NAMES, "random")
    assert set(drawn) == set(NAMES) and len(drawn) > 10 * len(NAMES)
    assert drawn == scenarios.picked(bench(), NAMES, "random")


def test_a_shared_file_is_asked_for_by_several_in_turn():
    drawn, times = scenarios.picked(bench(), NAMES, "shared"), scenarios.SHARED
    assert all(len(set(drawn[i:i + times])) == 1 for i in range(0, len(drawn), times))
    assert len(set(drawn[::times])) > 1


def test_a_range_is_within_its_file():
    for asked in scenarios.picked(bench(), NAMES, "ranges"):
        name, _, text = asked.partition("#")
        first, last = map(int, text.split("-"))
        assert name in NAMES and 0 <= first < last < scenarios.SIZE


@pytest.mark.parametrize("quick", [False, True])
def test_where_disks_are_read_the_files_owner_is_measured_too(quick):
    args = types.SimpleNamespace(path=None, peer=None, quick=quick)
    there = {name for name in scenarios.names()
             if any(c.owner for c in run.choose(scenarios.load(name), args, servers.every()))}
    assert there == {"storm", "cold", "download", "slow", "thesis", "zipf", "hung"}


# ---------------------------------------------------------------- thesis


def test_with_the_memory_of_the_thesis_files_have_its_sizes():
    sizes = list(thesis.sizes(64 * GIB, 1000 * GIB))
    assert all(50 * MIB <= size <= GIB for size in sizes)
    assert min(sizes) < 60 * MIB and max(sizes) > 1000 * MIB
    assert 500 * MIB < sum(sizes) / len(sizes) < 575 * MIB


@pytest.mark.parametrize("memory, smallest, largest", [
    (512, 400 << 10, 8 * MIB), (64, 50 << 10, MIB), (16, 12800, 256 << 10)])
def test_files_shrink_as_memory_does(memory, smallest, largest):
    sizes = list(thesis.sizes(memory * MIB, 8 * memory * MIB))
    assert all(smallest <= size <= largest for size in sizes)
    assert 0 <= sum(sizes) - 8 * memory * MIB < largest


def test_files_are_the_same_each_time_and_a_larger_set_goes_on():
    few, many = (list(thesis.sizes(MIB * 64, n * GIB)) for n in (1, 2))
    assert few == many[:len(few)] and len(few) < len(many)


def thesis_round(number, *cpu, sent=GIB):
    return {"round": number, "t": float(len(cpu)), "cpu": sum(cpu), "sent": sent,
            "disk_bytes": sent, "cpu_each_second": list(cpu)}


def test_cpu_saved_is_the_difference_of_means_of_one_round():
    base = [thesis_round(1, 0.4, 0.5, 0.6), thesis_round(2, 9, 9, 9)]
    found = thesis.saved(base, thesis_round(1, 0.3, 0.4, 0.5))
    expected = stats.difference([0.4, 0.5, 0.6], [0.3, 0.4, 0.5])
    assert found.percent == pytest.approx(-20) == expected.percent
    assert found.percent_half == pytest.approx(expected.percent_half)
    assert thesis.saving(base, thesis_round(1, 0.3, 0.4, 0.5)) == pytest.approx(20)


def test_half_the_bytes_in_half_the_time_saves_nothing():
    base = [thesis_round(1, 0.4, 0.5, 0.6)]
    assert thesis.saving(base, thesis_round(1, 0.2, 0.25, 0.3, sent=GIB // 2)) == \
        pytest.approx(0)


def test_nothing_is_saved_without_another_candidate():
    base = [thesis_round(1, 0.4, 0.5)]
    assert thesis.saving(base, base[0]) is None and thesis.margin(base, base[0]) is None
    assert thesis.saving([], base[0]) is None
    assert thesis.saving(base, thesis_round(2, 0.4, 0.5)) is None


@pytest.mark.parametrize("rates, share, lost", [
    ([100, 100, 100, 100], 0, 0), ([100, 100, 40, 100], 0.25, 0.15), ([100, 95, 92, 300], 0, 0)])
def test_a_dip_is_a_second_well_below_the_median(rates, share, lost):
    v = {**thesis_round(1, 0.1), "sent_each_second": rates}
    assert (thesis.dips(0, v), thesis.dips(1, v)) == (share, pytest.approx(lost))


def test_without_seconds_no_dips_and_no_interval_are_known():
    v = thesis_round(1, 0.1)
    assert thesis.dips(0, v) is None and thesis.idle_margin(v) is None
    assert thesis.idle_margin(thesis_round(1, 0.4, 0.5, 0.6)) == pytest.approx(
        stats.mean_interval([0.4, 0.5, 0.6])[1])


def test_cpu_time_is_compared_with_each_base_that_was_measured():
    seen = view(thesis, "thesis", thesis_values)
    titles = [column.title for column in thesis.tables(seen)[1].columns]
    assert "against blocking, %" in titles and "against aio, %" not in titles
    cells = {title: cells for _, title, _, cells in tables.rows(seen, thesis.tables(seen)[1])}
    assert cells["nodiskio, cache drop"][0].median == pytest.approx(50)


def test_only_the_new_way_is_measured_without_the_page_cache_too():
    s = scenarios.settings(thesis, False, {})
    paths = {c.name: c for c in (*servers.paths(), *servers.owners())}
    for name, found in {"nodiskio": ["keep", "drop"], "nodiskio-owner": ["keep", "drop"],
                        "aio": ["keep"], "pool": ["keep"], "blocking": ["keep"]}.items():
        assert [mode for mode, _ in thesis.modes(paths[name], s)] == found
        assert thesis.portion(s, paths[name]) == len(found) / 2


def test_the_long_form_has_devices_of_its_own_and_twice_the_data():
    long, full = (scenarios.settings(thesis, False, {}, long) for long in (True, False))
    assert (long.devices, long.seconds, long.data_share) == (8, 600, 16) and full.devices == 1
    assert thesis.files(long) == [] and thesis.files(full) == thesis.made(full)
    with pytest.raises(ValueError, match="storm has no long form"):
        scenarios.settings(scenarios.load("storm"), False, {}, True)


def test_files_are_on_the_devices_in_turn():
    made = [(str(i), i) for i in range(5)]
    assert disks.paths(made, 2) == ["disk0/0", "disk1/1", "disk0/2", "disk1/3", "disk0/4"]
    parts = disks.spread(made, 2)
    assert parts[1] == [("disk1/1", 1), ("disk1/3", 3)]
    assert sorted(name for part in parts for name, _ in part) == sorted(disks.paths(made, 2))


def test_images_that_are_still_mounted_or_do_not_fit_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(disks.os, "access", lambda *_: True)
    with pytest.raises(RuntimeError, match="MiB are needed; --data names another"):
        with disks.mounted(str(tmp_path), "x", [("a", 1 << 60)], 1):
            pass
    monkeypatch.setattr(disks.os.path, "ismount", lambda path: path.endswith("disk1"))
    with pytest.raises(RuntimeError, match="disk1 is mounted, by a run that was killed"):
        with disks.mounted(str(tmp_path), "x", [("a", 1)], 2):
            pass
    monkeypatch.setattr(disks.os, "access", lambda *_: False)
    with pytest.raises(RuntimeError, match="loop devices are not available"):
        with disks.mounted(str(tmp_path), "x", [("a", 1)], 2):
            pass


# ------------------------------------------------------------------ knee


def knee_step(p99_ms, rate=100, answered=1):
    return {"t": 2.0, "cpu": 1.0, "rate": rate, "latency_us": {"p99": 1000 * p99_ms},
            "own_delay_us": {"p99": 7}, "cold_answered": answered, "busiest": 0.75,
            "disk_bytes": MIB, "asleep": None}


@pytest.mark.parametrize("p99s, safe", [
    ({"10": 1, "90": 9, "110": 9.9}, (110, 110)), ({"10": 1, "90": 10, "110": 99}, (10, 110)),
    ({"90": 1, "100": 50, "110": 2}, (90, 110)), ({"10": 200, "90": 1, "110": 1}, (0, 0))],
    ids=["never too long", "a limit is not below itself", "not after a step that is too long",
         "too long at once"])
def test_a_load_is_safe_until_the_p99_first_reaches_the_limit(p99s, safe):
    v = {"steps": {load: knee_step(ms) for load, ms in p99s.items()}}
    assert tuple(knee.safe(v, limit) for limit in knee.SAFE) == safe


def test_a_load_is_not_safe_if_cold_requests_are_not_answered():
    v = {"steps": {"90": knee_step(1, answered=0.99), "100": knee_step(1, answered=0.98),
                   "110": knee_step(1, answered=None)}}
    assert knee.safe(v, 10) == 90


def test_at_100_percent_the_cold_requests_ask_for_what_the_disk_can_read():
    s = scenarios.settings(knee, False, {})
    assert knee.full(s) * s.cold * (100 << 10) == 40 * MIB


def test_cold_requests_have_the_length_of_the_hot_file():
    s = scenarios.settings(knee, False, {})
    for one in knee.ranges(random.Random(1), s):
        first, last = map(int, one.partition("#")[2].split("-"))
        assert 0 <= first and last < MIB and last - first + 1 == 100 << 10


@pytest.mark.parametrize("key, text", [("loads", "10 10"), ("loads", "20 10"), ("loads", "0 10"),
                                       ("cold", "1"), ("cold", "0"), ("kib", "1025")])
def test_knee_refuses_settings_without_effect(key, text):
    with pytest.raises(ValueError, match=key):
        scenarios.settings(knee, False, {key: text})


# ------------------------------------------------------------------ week


def week_view(*, held=46):
    """A round of the trace "media" whose page cache held so many MiB, with a third of the bytes
    from the disk."""
    took = {"disk_bytes": GIB, "body": 3 * GIB, "requests": 9, "t": 1.0, "cpu": 1.0,
            "cache": held * MIB, "round": 1, "asleep": None}
    about = {"scenarios": {"week": {"settings": {"trace": "media", "scale": "50",
                                                 "memory_mib": "64", "cache": "keep,auto"}}},
             "candidates": {"nodiskio": {"title": "ours", "version": "1", "kind": "path"}}}
    values = {"media": {"keep": took, "auto": took}}
    return View(about, "week", [results.Round("week", "nodiskio", 1, values)])


def simulation(monkeypatch, missed):
    """missed: {MiB: of the best online policy}."""
    def simulate(trace, scale, memory):
        policy = {"offline": False, "ours": False}
        return {"policies": [
            {**policy, "name": "lru", "missed": [1.0]},
            {**policy, "name": "good", "missed": [missed[memory]]},
            {**policy, "name": "belady", "missed": [0.1], "offline": True},
            {**policy, "name": "auto", "missed": [0.2], "ours": True},
            {**policy, "name": "linux", "missed": [1.0]},
            {**policy, "name": "linux-large", "missed": [1.0]}]}

    monkeypatch.setattr(week.admission, "simulate", simulate)
    monkeypatch.setattr(week.admission, "path", lambda: "/bin/sh")


def test_the_week_is_compared_with_the_best_online_policy_and_the_memory_that_it_had(monkeypatch):
    simulation(monkeypatch, {"64": 0.3, 46: 0.4})
    (table,) = week.tables(view := week_view())
    assert "good, 0.300" in table.title and "with 46 MiB auto 0.200" in table.title
    share = next(c for c in table.columns if c.title == "of the best online policy's")
    assert share.get(view.values("nodiskio")[0]["media"]["auto"]) == pytest.approx(1 / 3 / 0.4)


def test_without_the_simulation_the_week_is_compared_with_nothing(monkeypatch):
    monkeypatch.setattr(week.admission, "path", lambda: "/nowhere")
    (table,) = week.tables(view := week_view())
    share = next(c for c in table.columns if c.title == "of the best online policy's")
    assert table.title == "media, 64 MiB of memory"
    assert share.get(view.values("nodiskio")[0]["media"]["auto"]) is None


# ------------------------------------------------------------------ zipf


def test_the_first_is_asked_for_n_times_as_often_as_the_nth():
    weights = zipf.weights(100, 1.0)
    assert sum(weights) == pytest.approx(1)
    assert all(weights[0] / w == pytest.approx(n) for n, w in enumerate(weights, 1))
    assert zipf.weights(4, 0) == [0.25] * 4


def test_the_best_hit_ratio_is_that_of_the_harmonic_numbers():
    """H(10) = 7381/2520, and H(100) = 5.187377517639621 (OEIS A001008, A002805)."""
    assert zipf.best_hit_ratio(100, 1.0, 10) == pytest.approx(7381 / 2520 / 5.187377517639621)
    assert zipf.best_hit_ratio(100, 1.0, 100) == pytest.approx(1)


def test_files_are_drawn_as_often_as_they_are_popular():
    items = [f"f{i}" for i in range(50)]
    drawn = zipf.drawn(random.Random(1), items, 0.8, 200_000)
    for item, weight in zip(items, zipf.weights(50, 0.8)):
        expected = weight * len(drawn)
        assert abs(drawn.count(item) - expected) < 5 * expected ** 0.5


def test_the_same_seed_draws_the_same():
    one, same, other = (zipf.drawn(random.Random(seed), range(99), 1.0, 100)
                        for seed in (7, 7, 8))
    assert one == same != other


def test_misses_are_compared_with_those_of_the_same_round():
    """Keep: 2 of 4 MiB, auto: 1."""
    seen = view(zipf, "zipf", zipf_values)
    (text, _) = ("\n".join(tables.markdown(seen, table)) for table in zipf.tables(seen))
    assert "| nodiskio, cache keep | 0.500 | – | 1.000 |" in text
    assert "| nodiskio, cache auto | 0.250 | 0.500 | 0.500 |" in text
    assert "| nginx | 0.500 | 1.000 | – |" in text


# --------------------------------------------------------------- crawler


def test_a_crawler_comes_between():
    assert list(crawler.between("abcdef", "XYZ", 2)) == list("abXcdYefZ")
    assert list(crawler.between("abc", "XYZ", 1)) == list("aXbYcZ")


def test_bytes_of_the_crawler_are_counted_apart():
    """Without: 2 of 4 MiB.  With: 5 of 6, of which 2 of 2 are the crawler's."""
    keep = crawler_values("nginx", 1)["1.0"]["keep"]
    assert (crawler.without(keep), crawler.beside(keep)) == (0.5, 0.75)


# ------------------------------------------------------------------ slow


def test_queues_are_those_of_the_ports_connections(tmp_path):
    """8080 is 1F90; a listening socket's queue is its backlog, not bytes."""
    table = tmp_path / "tcp"
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n"
        "   0: 0100007F:1F90 00000000:0000 0A 00000080:00000003 00:00000000\n"
        "   1: 0100007F:1F90 0100007F:C001 01 00001000:00000000 01:00000014\n"
        "   2: 0100007F:1F90 0100007F:C002 04 00000010:00000007 01:00000014\n"
        "   3: 0100007F:C001 0100007F:1F90 01 00000100:00000000 00:00000000\n")
    assert slow.queued(8080, table) == 0x1010


# ------------------------------------------------------------------ hung


def test_curves_begin_with_all_and_end_with_the_longest():
    v = hung_values("nodiskio", 1)["calm"]
    assert hung.latencies(v) == [(0.001, 1), (0.3, pytest.approx(1 / 9))]
    assert hung.turn_lengths(v) == [(0.512, pytest.approx(2 / 9)), (1.024, pytest.approx(1 / 9))]


# ------------------------------------------------------------- all of them


def test_only_candidates_that_can_drop_are_measured_dropping():
    paths = {c.name: c for c in servers.paths()}
    settings = types.SimpleNamespace(cache="keep,drop")
    assert cachemodes.modes(paths["nodiskio"], settings) == [
        ("keep", ("--cache", "keep")), ("drop", ("--cache", "drop"))]
    for cand in (paths["blocking"], *servers.peers()):
        assert cachemodes.modes(cand, settings) == [("keep", ())]


SETTINGS = {"zipf": {"s": "0.8,1.2"}}


def view(module, name, values):
    about = {
        "candidates": {n: {"title": n, "version": "1", "kind": kind} for n, kind in
                       (("nodiskio", "path"), ("blocking", "path"), ("nginx", "peer"))},
        "scenarios": {name: {"settings": {**module.FULL, **SETTINGS.get(name, {})}}}}
    samples = {mode: [{"t": t, "cpu": t / 4, "sent": int(t * GIB)} for t in (1.0, 2.0)]
               for mode in ("keep", "drop")}
    rounds = [results.Round(name, cand, n, values(cand, n), samples=samples)
              for cand in about["candidates"] for n in (1, 2)]
    return View(about, name, rounds)


def thesis_values(cand, number):
    keep, drop = ({**thesis_round(number, *cpu), "server": cand}
                  for cpu in ((0.2, 0.3), (0.1, 0.15)))
    return {"keep": keep, "drop": drop} if cand == "nodiskio" else {"keep": keep}


def prefix_values(_cand, _number):
    part = {"first": 300, "whole": 9000, "body": 8 * MIB, "t": 2.0, "cpu": 1.0, "disk_bytes": MIB,
            "asleep": None, "turn": 0.001}
    return {prefix.key(*case): part for case in prefix.cases(prefix.FULL)}


def grid_values(_cand, _number):
    cell = {"t": 1.0, "disk_bytes": MIB, "answered": 0.5, "latency_us": {"p99": 300},
            "delay_us": {"p99": 7}}
    return {cold: dict.fromkeys(grid.FULL["hot"].split(), cell)
            for cold in grid.FULL["cold"].split()}


def knee_values(_cand, _number):
    """9 ms up to 80 %, then 50 ms."""
    loads = knee.FULL["loads"].split()
    return {"steps": {load: knee_step(9 if int(load) <= 80 else 50, 20 * int(load))
                      for load in loads}}


def slow_values(_cand, _number):
    return {"t": 2.0, "cpu": 1.0, "disk_bytes": 3 * MIB, "cache": MIB, "resident": MIB,
            "peak": MIB, "queued": MIB, "taken": 2 * MIB,
            "clients": {"starved": 1, "clients": 4, "connected": 4, "errors": {}}}


def asked(disk, body=4):
    return {"t": 2.0, "cpu": 1.0, "disk_bytes": disk * MIB, "body": body * MIB, "cache": MIB,
            "requests": 100}


def zipf_values(cand, number):
    keep, auto = ({**asked(disk), "round": number} for disk in (2, 1))
    return dict.fromkeys(("0.8", "1.2"),
                         {"keep": keep, "auto": auto} if cand == "nodiskio" else {"keep": keep})


def crawler_values(cand, number):
    keep, auto = ({"without": asked(2), "with": asked(disk, 6), "crawled": 2 * MIB,
                   "round": number} for disk in (5, 4))
    return {"1.0": {"keep": keep, "auto": auto} if cand == "nodiskio" else {"keep": keep}}


TURNS = [[bound / 1000, n] for n, bound in enumerate(hung.LONG, 7)]


def hung_values(cand, _number):
    probe = {"latency_us": dict.fromkeys(("p50", "p99", "p99.9", "max"), 300), "requested": 9,
             "answered": 9, "turns": 9, "turn_lengths": TURNS,
             "own_delay_us": {"p99": 7}, "buckets": [[1, 1, 8], [300, 300, 1]]}
    if cand == "nginx":
        probe.update(turns=None, turn_lengths=[])
    return {"calm": probe, "delayed": {**probe, "operations": 32.0}, "hangs": probe,
            "alone": 2.0 * MIB, "beside": 1.0 * MIB, "statuses": {"503": 19, "200": 1}}


def handshakes_values(cand, number):
    """2000 in a second, each for 400 µs."""
    took = {"t": 1.0, "cpu": 0.8, "asleep": None, "sleeps": None, "turn": 0.001}
    latency = {"latency_us": {"p50": 100, "p99": 300, "max": 400}, **took}
    shaken = {"server": cand, "round": number, "handshakes": 2000, "seconds": 1.0,
              "own_cpu": 0.5, "handshake_us": {"p50": 700, "p99": 900}, **took}
    parts = {part: {**shaken, "part": part} for part in handshakes.CASES if part != "beside"}
    return {**parts, "beside": {"calm": latency, "stormy": latency, "shaken": shaken}}


def short_values(_cand, _number):
    part = {"latency_us": {"p50": 100, "p99": 300, "max": 400}, "answered": 9, "requested": 10,
            "t": 1.0, "disk_bytes": MIB, "asleep": None, "turn": 0.001}
    return {"alone": part, "beside": part, "limit": 2 * MIB}


@pytest.mark.parametrize("module, values, how_many, figures, cell", [
    (thesis, thesis_values, 2, 3, "0.250"), (prefix, prefix_values, 3, 1, "0.3 ms"),
    (grid, grid_values, 5, 1, "0.3 ms"),
    (knee, knee_values, 3, 1, "80%"), (slow, slow_values, 1, 1, "1.50"), (clients, slow_values, 1, 1, "1.50"),
    (zipf, zipf_values, 2, 1, "0.250"), (crawler, crawler_values, 1, 1, "0.500"),
    (hung, hung_values, 4, 1, "0.3 ms"), (handshakes, handshakes_values, 4, 1, "2 000"),
    (short, short_values, 1, 1, "90%")],
    ids=["thesis", "prefix", "grid", "knee", "slow", "clients", "zipf", "crawler", "hung", "handshakes", "short"])
def test_tables_and_figures(module, values, how_many, figures, cell):
    pytest.importorskip("matplotlib")
    seen = view(module, module.__name__.rpartition(".")[2], values)
    made = ["\n".join(report.table_html(seen, table)) for table in module.tables(seen)]
    assert len(made) == how_many and cell in made[0]
    assert all(title in "".join(made) for title in ("loop asleep", "longest iteration"))
    drawn = [report.svg(figure) for _, figure in module.figures(seen)]
    assert len(drawn) == figures
    assert all(text.startswith("<svg") and "data:" not in text for text in drawn)


def miniature(name):
    return [word for key, value in MINIATURE[name].items()
            for word in ("--set", f"{name}.{key}={value}")]


@pytest.fixture(scope="module")
def data(base):
    """Shared, so that it is made once."""
    path = os.path.join(base, "scenario-data")
    os.makedirs(path)
    return path


@pytest.fixture
def measured(data, tmp_path):
    """Runs a scenario with nodiskio alone: the values of its only round."""
    def run(name):
        lab.needs("wrk", "probe", "slow", "replay", "limits", "network")
        status, _, err = lab.run("run", name, "--rounds", 1, "--data", data, "--out",
                                 tmp_path / "out", "--path", "nodiskio", *miniature(name))
        assert status == 0, err
        return lab.rounds(tmp_path / "out")[name, "nodiskio"][0]["values"]
    return run


def test_thesis_in_miniature(measured):
    values = measured("thesis")
    assert set(values) == {"keep", "drop"}
    for v in values.values():
        assert v["sent"] > 0 and v["disk_bytes"] > 0 and v["cpu"] > 0 and v["requests"] > 0


def test_thesis_on_two_devices_in_miniature(measured, data, monkeypatch):
    """What both devices read is counted."""
    lab.needs("spindle")  # loop devices
    monkeypatch.setitem(MINIATURE["thesis"], "devices", 2)
    monkeypatch.setitem(MINIATURE["thesis"], "cache", "keep")
    v = measured("thesis")["keep"]
    assert v["disk_bytes"] > 0.6 * v["sent"] > 0
    assert [name for name in os.listdir(data) if name.startswith("disks-2-")]
    assert "disks-2-" not in limits.read("/proc/mounts")


def test_prefix_in_miniature(measured):
    """What is cached is not read from the disk again."""
    values = measured("prefix")
    assert set(values) == {"2M-0", "2M-1024"}
    for v in values.values():
        assert 0 < v["first"] <= v["whole"] and v["body"] == 8 * MIB
    assert values["2M-0"]["disk_bytes"] >= 8 * MIB > values["2M-1024"]["disk_bytes"] >= 4 * MIB


@pytest.mark.parametrize("key, text", [("prefix", "0,2048"), ("prefix", "-1"), ("readahead", ",")])
def test_prefix_refuses_settings_without_a_rest(key, text):
    with pytest.raises(ValueError):
        scenarios.settings(prefix, False, {key: text})


def test_each_readahead_has_a_row_and_each_prefix_a_table():
    seen = view(prefix, "prefix", prefix_values)
    made = prefix.tables(seen)
    assert [table.columns[0].title for table in made] == [
        "first byte, 0 KiB", "first byte, 256 KiB", "first byte, 1024 KiB"]
    assert [title for name, title, *_ in tables.rows(seen, made[1]) if name == "nodiskio"] == [
        "nodiskio, readahead 128K", "nodiskio, readahead 2M"]


def test_knee_in_miniature(measured):
    values = measured("knee")
    assert set(values["steps"]) == {"10", "50"}
    for load, v in values["steps"].items():
        assert v["rate"] == pytest.approx(20 * 1024 / 100 / 0.5 * int(load) / 100)
        assert v["cold_answered"] > 0 and v["answered"] == 1 and v["cpu"] > 0 and v["busiest"] > 0
    assert values["steps"]["50"]["disk_bytes"] > 0


def test_proxied_in_miniature(data, tmp_path):
    lab.needs("wrk", "probe", "replay", "limits", "network")
    cand = next(c for c in servers.peers() if c.name == "nginx-pagewise")
    if why := cand.unusable():
        pytest.skip(why)
    status, _, err = lab.run("run", "proxied", "--rounds", 1, "--data", data, "--out",
                             tmp_path / "out", "--peer", cand.name, *miniature("proxied"))
    assert status == 0, err
    v = lab.rounds(tmp_path / "out")["proxied", cand.name][0]["values"]["random"]
    assert v["alone"]["rate"] > 0 and v["storm"]["rate"] > 0 and v["storm"]["disk_bytes"] > 0
    assert not [name for name in os.listdir(data) if name.startswith("proxied-")]


def test_only_nginx_has_a_proxy_cache():
    with pytest.raises(RuntimeError, match="no configuration with proxy_cache"):
        proxied.configured(types.SimpleNamespace(name="nodiskio"), "/cache", "/data")


def test_grid_in_miniature(measured):
    values = measured("grid")
    assert {(cold, hot) for cold in values for hot in values[cold]} == {
        (cold, hot) for cold in ("0", "20") for hot in ("50", "200")}
    assert values["0"]["200"]["answered"] == 1
    assert sum(v["disk_bytes"] for v in values["20"].values()) > 0


def test_slow_in_miniature(measured):
    values = measured("slow")
    assert values["clients"]["connected"] == 50 and values["clients"]["errors"] == {}
    assert min(values[key] for key in ("resident", "queued", "taken")) > 0


def test_clients_in_miniature(measured):
    values = measured("clients")
    assert values["clients"]["connected"] == 50 and values["clients"]["errors"] == {}
    assert set(values["clients"]["statuses"]) <= {"206"}
    assert values["peak"] >= values["resident"] > 0


def test_zipf_in_miniature(measured):
    values = measured("zipf")
    assert {e: set(modes) for e, modes in values.items()} == dict.fromkeys(
        ("0.8", "1.2"), {"keep", "drop", "auto"})
    for v in (v for modes in values.values() for v in modes.values()):
        assert v["requests"] == 128 and v["body"] == 128 * 256 << 10
        assert 0 < v["disk_bytes"]


def test_week_in_miniature(measured):
    asked = week.requests("media", "1000")
    counted = asked[len(asked) // week.WARM:]
    values = measured("week")["media"]
    assert set(values) == {"keep", "auto"}
    for v in values.values():
        assert v["requests"] == len(counted) > 0
        assert v["body"] == sum(rq.len for rq in counted)
        assert v["disk_bytes"] > 0


def test_crawler_in_miniature(measured):
    for v in measured("crawler")["1.0"].values():
        assert v["without"]["requests"] == 2 * 512 and v["with"]["requests"] == 3 * 512
        assert v["crawled"] == 128 * MIB <= v["with"]["disk_bytes"]


def test_short_in_miniature(measured):
    values = measured("short")
    for part in ("alone", "beside"):
        assert values[part]["answered"] == values[part]["requested"] == 20
    assert values["beside"]["disk_bytes"] > values["alone"]["disk_bytes"] > 0


def test_handshakes_in_miniature(data, tmp_path):
    lab.needs("probe", "handshake")
    status, _, err = lab.run("run", "handshakes", "--rounds", 1, "--data", data, "--out",
                             tmp_path / "out", "--path", "nodiskio,nodiskio-tls",
                             *miniature("handshakes"))
    assert status == 0, err
    found = lab.rounds(tmp_path / "out")
    assert {name for _, name in found} == {"nodiskio-tls"}
    values = found["handshakes", "nodiskio-tls"][0]["values"]
    assert set(values) == set(handshakes.CASES)
    assert values["P-256"]["resumed"] == values["RSA-2048"]["resumed"] == 0
    assert values["resumed"]["resumed"] == values["resumed"]["handshakes"] > 0
    assert values["beside"]["stormy"]["answered"] > 0 and values["beside"]["shaken"]["begun"] > 0


def test_hung_in_miniature(measured):
    lab.needs("fuse")
    values = measured("hung")
    for part in ("calm", "delayed", "hangs"):
        assert values[part]["answered"] == values[part]["requested"] == 1000
        assert values[part]["turns"] > 0
    assert values["delayed"]["operations"] > 0
    assert values["statuses"] == {"503": 20}
    assert values["alone"] > 0 and values["beside"] > 0


def test_spindle_in_miniature(measured):
    lab.needs("fuse", "spindle")
    values = measured("spindle")
    assert values["streams"]["10"]["starved"] == 0
    for part in (values["streams"]["10"], values["downloads"]):
        assert part["rate"] > 0 and 0 < part["busy"] <= 1.5 and part["per_seek"] > 100_000
    assert values["downloads"]["latency_us"]["max"] > 0


def test_spindle_with_two_heads_and_a_crawler_in_miniature(measured, monkeypatch):
    lab.needs("fuse", "spindle")
    for key, value in {"heads": 2, "crawl": 4, "crawl_gib": 1, "disk_gib": 2}.items():
        monkeypatch.setitem(MINIATURE["spindle"], key, value)
    values = measured("spindle")
    for part in (values["streams"]["10"], values["downloads"]):
        assert part["rate"] > 0 and 0 < part["busy"] <= 1.5
    assert values["downloads"]["got"] > 0 and values["downloads"]["ranges"] > 0


def test_each_head_has_a_directory_of_the_root():
    s = scenarios.settings(spindle, False, {"heads": "4"})
    assert {path[:3] for path in spindle.large(s)} == {"h0/", "h1/", "h2/", "h3/"}
    assert len({*spindle.large(s), *spindle.small(s)}) == s.files + s.small
    with pytest.raises(ValueError):
        scenarios.settings(spindle, False, {"heads": "0"})


def test_film_in_miniature(measured):
    lab.needs("fuse", "spindle")
    values = measured("film")
    assert set(values) == set(film.KEYS)
    for part in values.values():
        assert part["film"] > part["index"] > 0 and part["busy"] > 0


def film_values(cand, number):
    part = {"film": 200_000 + number, "index": 90_000, "busy": 0.5}
    return {key: part for key in (film.KEYS if cand == "nodiskio" else film.KEYS[:1])}


def test_the_report_of_film():
    pytest.importorskip("matplotlib")
    seen = view(film, "film", film_values)
    (table,) = film.tables(seen)
    text = "\n".join(tables.markdown(seen, table))
    assert "200 ms" in text and "90 ms" in text
    assert all(report.svg(figure).startswith("<svg") for _, figure in film.figures(seen))


def spindle_values(_cand, number):
    spun = {"rate": 117e6, "busy": 0.9, "per_seek": 2048 << 10}
    return {"streams": {n: {"starved": number, **spun} for n in spindle.FULL["streams"].split(",")},
            "downloads": {"latency_us": {"p50": 1e5, "p99": 2e5, "max": 3e5}, "got": 101e6, **spun}}


def test_the_report_of_spindle():
    pytest.importorskip("matplotlib")
    seen = view(spindle, "spindle", spindle_values)
    made = ["\n".join(tables.markdown(seen, table)) for table in spindle.tables(seen)]
    assert len(made) == len(spindle.FULL["streams"].split(",")) + 1
    assert all("| 117 | 0.90 | 2 048 |" in text for text in made)
    assert all(report.svg(figure).startswith("<svg") for _, figure in spindle.figures(seen))


def test_nginx_hangs_without_the_library_and_not_with_it(data, tmp_path):
    lab.needs("probe", "replay", "limits", "network", "fuse")
    if missing := [c for c in servers.peers() if c.name in hung.PEERS and c.unusable()]:
        pytest.skip(f"{missing[0].name}: {missing[0].unusable()}")
    status, _, err = lab.run("run", "hung", "--rounds", 1, "--data", data, "--out",
                             tmp_path / "out", "--peer", "nginx,nginx-pagewise",
                             *miniature("hung"))
    assert status == 0, err
    without, with_ = (lab.rounds(tmp_path / "out")["hung", name][0]["values"]
                      for name in ("nginx", "nginx-pagewise"))
    for part in ("calm", "delayed", "hangs"):
        assert with_[part]["answered"] == with_[part]["requested"] == 1000
    assert without["calm"]["answered"] == 1000 and without["hangs"]["answered"] == 0
    assert with_["statuses"] == {"503": 20} and without["statuses"] == {}
    assert with_["alone"] > 0 and with_["beside"] > 0
