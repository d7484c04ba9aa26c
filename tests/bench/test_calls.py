"""bench/lab calls: a request in C, and through the crate for Rust."""

import os

import lab
import pytest

from laboratory import calls


def test_each_program_is_compared_with_that_in_c():
    rows = list(calls.table(1, {"C": (2000.4, 10.0), "Rust, the crate": (2500, 10.1)}))
    assert rows[2:4] == ["| C | 2000 | 1.00 | 10.00 | 1.000 |", "| Rust, the crate | 2500 | 1.25 | 10.10 | 1.010 |"]


def test_a_program_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(calls, "IN_RUST", "/none")
    monkeypatch.setattr(calls, "IN_C", os.devnull)
    monkeypatch.setattr(calls.host, "tool", lambda name: name)
    with pytest.raises(RuntimeError, match="/none is not there: make bench-calls"):
        calls.check()


def test_all_programs_send_the_same_in_miniature():
    lab.needs()
    try:
        calls.check()
    except RuntimeError as why:
        pytest.skip(str(why))
    found = calls.measure(1, 50, 50)
    assert set(found) == set(calls.PROGRAMS)
    assert all(count > 500 and took > 0 for count, took in found.values())
