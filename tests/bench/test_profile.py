"""bench/lab profile: what callgrind and strace wrote, and a request of the limit."""

import types

import lab
import pytest

from laboratory import callgrind, host, profile
from laboratory.bench import Bench
from laboratory.scenarios import hot

# After the example in the manual, "Callgrind Format Specification"; b calls itself.
EXAMPLE = """# callgrind format
version: 1
creator: test
positions: line
events: Ir
summary: 1060

fl=(1) a.c
fn=(1) a
16 20
cfn=(2) b
calls=3 20
16 400
+2 5
cfi=(2) libc.c
cfn=(3) malloc
calls=2 7
* 60

fn=(2)
-3 100
cfn=(4) b'2
calls=1 20
* 300
fn=(4)
20 300

fl=(2)
fn=(3)
7 60
fi=(1)
+1 1
totals: 486
"""


def test_own_instructions_are_counted_and_not_those_of_callees():
    counts = callgrind.parsed(EXAMPLE)
    assert counts.own == {"a": 25, "b": 400, "malloc": 61}
    assert counts.instructions() == 486
    assert counts.calls == {"b": 4, "malloc": 2}
    assert counts.called(*callgrind.ALLOCATE) == 2


def test_of_a_request_is_the_difference_of_two_runs():
    once = callgrind.Counts({"start": 100, "serve": 50}, {"malloc": 7})
    twice = callgrind.Counts({"start": 100, "serve": 90, "end": 4}, {"malloc": 9})
    each = twice.beyond(once, 10)
    assert each.own == {"start": 0, "serve": 4, "end": 0.4}
    assert each.called("malloc") == 0.2


def test_processes_are_added_and_nothing_is_an_error(tmp_path):
    (tmp_path / "callgrind.1").write_text(EXAMPLE)
    (tmp_path / "callgrind.2").write_text(EXAMPLE)
    assert callgrind.counted(tmp_path).instructions() == 2 * 486
    with pytest.raises(RuntimeError, match="counted nothing"):
        callgrind.counted(tmp_path)


def test_calls_in_straces_table():
    assert profile.table("""% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 53.39    0.328950      109650       300         1 epoll_wait
 42.96    0.264710         224      1178           sendto
------ ----------- ----------- --------- --------- ----------------
100.00    0.593660                  1478         1 total
""") == {"epoll_wait": 300, "sendto": 1178}


@pytest.fixture
def bench(base, tmp_path):
    here = host.Host(base)
    lab.needs("limit", "limits")
    case = hot.CASES["1K"]
    (tmp_path / case.names()[0]).write_bytes(b"x" * case.size)
    here.data = str(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out").chmod(0o777)
    # The server runs as nobody; pytest's directories are for their owner.
    for path in (tmp_path, *tmp_path.parents):
        mode = path.stat().st_mode
        if mode & 0o055 != 0o055:
            path.chmod(mode | 0o055)
    return Bench(here, None, 1, 1, str(tmp_path))


@pytest.mark.needs("strace", "valgrind")
def test_the_limit_does_three_system_calls_and_allocates_nothing(bench):
    case = hot.CASES["1K"]
    seen = profile.of(bench, hot.bare(bench, "send", case), case)
    names = ("epoll_wait", "recvfrom", "sendto")
    assert {name: round(seen["system_calls"][name], 1) for name in names} == dict.fromkeys(
        names, 1)
    assert 100 < seen["instructions"] < 3000 and "memmem" in seen["functions"]
    assert seen["allocations"] == seen["frees"] == 0


def test_without_valgrind_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(profile.machine, "tool", lambda name: None)
    with pytest.raises(RuntimeError, match="install-deps.sh profile"):
        profile.check(types.SimpleNamespace(missing=lambda needs: []))


def test_unknown_names_are_reported():
    status, out, err = lab.run("profile", "--path", "nonsense")
    assert status != 0 and "--path nonsense: there are " in err and out == ""
