"""bench/admission: each policy with requests whose answers are worked out by hand, the traces, and
the tables."""

import json
import os
import subprocess

import lab
import pytest

from laboratory import admission

PROGRAM = os.path.join(lab.TREE, "build", "asan", "bench", "admission")
POLICIES = ("lru", "lru-second", "sieve", "s3-fifo", "gdsf", "lfu-da", "tinylfu", "linux",
            "linux-large", "auto", "belady")

pytestmark = pytest.mark.skipif(not os.access(PROGRAM, os.X_OK),
                                reason="make build/asan/bench/admission")


def run(*argv):
    return subprocess.run([PROGRAM, *map(str, argv)], check=True, timeout=120, text=True,
                          stdout=subprocess.PIPE).stdout


@pytest.fixture
def missed(tmp_path):
    """Pages that each request misses: of "1", or of "1/PAGES", or of "1/PAGES/OFF/LEN"."""
    def ask(policy, room, requests, piece=None):
        path = tmp_path / "trace"
        path.write_text("".join(
            f"{one.replace('/', ' ') if '/' in one else one + ' 1'}\n"
            for one in requests.split()))
        out = run("--file", path, "--only", policy, "--room", room,
                  *(("--piece", piece) if piece else ()))
        return " ".join(out.split())
    return ask


def test_lru_evicts_the_least_recently_used_file(missed):
    assert missed("lru", 3, "1 2 3 1 4 2 1") == "1 1 1 0 1 1 0"
    assert missed("lru", 3, "1 2 3 3 2 1 4 1") == "1 1 1 0 0 0 1 0"


def test_second_request_admits(missed):
    assert missed("lru-second", 2, "1 1 1 2 1") == "1 1 0 1 0"


def test_late_second_request_does_not_admit(missed):
    others = " ".join(map(str, range(10, 26)))
    assert missed("lru-second", 2, f"1 {others} 1 1").endswith(" 1 1")


def test_admission_by_size_seldom_admits_large_files(missed):
    assert missed("size-64", 2000, "1/1600 1/1600") == "1600 1600"
    assert missed("lru", 2000, "1/1600 1/1600") == "1600 0"


def test_sieve_keeps_the_order_of_arrival(missed):
    assert missed("sieve", 3, "1 2 3 1 4 2 1") == "1 1 1 0 1 1 0"
    assert missed("sieve", 3, "1 2 3 3 2 1 4 1") == "1 1 1 0 0 0 1 1"


def test_s3_fifo_moves_a_returning_file_to_the_main_queue(missed):
    first, others = (" ".join(map(str, range(*span))) for span in ((1, 12), (12, 23)))
    assert missed("s3-fifo", 10, f"{first} 1 {others} 1").endswith(" 1 0")
    assert missed("lru", 10, f"{first} 1 {others} 1").endswith(" 1 1")


def test_gdsf_evicts_large_files_first(missed):
    requests = "1/4 2/1 3/3 4/1 2/1 3/3"
    assert missed("gdsf", 4, requests) == "4 1 3 1 0 3"
    assert missed("lru", 4, requests) == "4 1 3 1 1 3"


def test_lfu_evicts_the_least_requested_file(missed):
    assert missed("lfu-da", 2, "1 1 2 3 1") == "1 0 1 1 0"


def test_tinylfu_admits_the_more_requested_file(missed):
    assert missed("tinylfu", 100, "1/50 1/50 2/50 2/50 2/50 2/50 1/50") == "50 0 50 50 50 0 50"


def test_belady_admits_no_file_without_a_later_request(missed):
    assert missed("belady", 2, "1 2 3 1 2") == "1 1 1 0 0"


def test_linux_protects_pages_used_twice(missed):
    assert missed("linux", 4, "1 1 2 3 4 5 1") == "1 0 1 1 1 1 0"
    assert missed("linux-large", 4, "1 1 2 3 4 5 1") == "1 0 1 1 1 1 1"


def test_linux_activates_pages_that_return_soon(missed):
    """1 and 9 are active.  2 is evicted and comes back two pages later: it is active then, and
    is still there when two more have come."""
    assert missed("linux", 4, "1 1 9 9 2 3 4 2 6 7 2") == "1 0 1 0 1 1 1 1 1 1 0"


def test_auto_drops_files_requested_once(missed):
    popular = " ".join(["1 2 3 4 5 6"] * 16)
    assert missed("auto", 8, f"{popular} 7 8 7 1").endswith(" 1 1 1 0")
    assert missed("linux", 8, f"{popular} 7 8 7 1").endswith(" 1 1 0 0")


def test_auto_keeps_no_file_larger_than_a_quarter_of_the_cache(missed):
    assert missed("auto", 8, "1/2 1/2 2/1 2/1") == "2 2 1 0"


def test_a_range_uses_the_pieces_that_contain_it(missed):
    assert missed("lru", 100, "1/10/0/3 1/10/2/2 1/10/4/1 1/10/8/2", piece=2) == "4 0 2 2"


@pytest.fixture(scope="module")
def traces():
    return {name: json.loads(run("--scale", 50, name)) for name in admission.NAMES}


def test_a_trace_is_the_same_each_time(traces):
    assert json.loads(run("--scale", 50, "photo")) == traces["photo"]


@pytest.mark.parametrize("name", admission.NAMES)
def test_nothing_is_better_than_knowing_the_future(traces, name):
    by_name = {p["name"]: p["missed"] for p in traces[name]["policies"]}
    assert set(POLICIES) <= set(by_name)
    for policy, shares in by_name.items():
        assert shares == sorted(shares, reverse=True) or policy.startswith("size-")
        for ours, least in zip(shares, by_name["belady"]):
            assert 0 < least <= ours < 1


def test_table_has_the_best_online_policy_in_bold():
    trace = {"trace": "t", "rooms_gib": [1.0], "requests": 2000, "files": 10, "unique_gib": 1,
             "asked_gib": 2, "once": 0.25, "piece_kib": 0, "policies": [
                 {"text": "one", "offline": False, "ours": False, "missed": [0.4]},
                 {"text": "two", "offline": False, "ours": False, "missed": [0.5]},
                 {"text": "future", "offline": True, "ours": False, "missed": [0.2]},
                 {"text": "auto", "offline": False, "ours": True, "missed": [0.42]}]}
    lines = admission.table(trace).splitlines()
    assert lines[2] == "| one | **0.4000, 1.000** |"
    assert lines[3] == "| two | 0.5000, 1.250 |"
    assert lines[4] == "| future | 0.2000, 0.500 |"
    assert "25 % of the files" in admission.about(trace)
    assert admission.verdict([trace]).startswith("`auto` reads at most 1.050 times")
