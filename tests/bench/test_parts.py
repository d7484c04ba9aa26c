"""The parts of the laboratory that need neither root nor a load."""

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import time

import lab
import pytest

from laboratory import certificate, data, host, limits, metrics, plan, sampler, scenarios, servers, undo
from laboratory.bench import Bench

# ---------------------------------------------------------------- undo


@pytest.fixture
def signals():
    old = {n: signal.getsignal(n) for n in undo.SIGNALS}
    undo.catch_signals()
    yield
    for number, handler in old.items():
        signal.signal(number, handler)


def test_a_signal_becomes_an_exception_with_the_shells_status(signals):
    with pytest.raises(undo.Stopped) as stopped:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(lab.PATIENCE)
    assert stopped.value.code == 128 + signal.SIGTERM


def test_a_signal_does_not_cut_clean_up_short(signals):
    done = []

    def interrupted():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("to its end")

    with pytest.raises(undo.Stopped):
        with undo.Undo() as stack:
            stack.callback(done.append, "the rest")
            stack.callback(interrupted)
    assert done == ["to its end", "the rest"]


def test_all_is_undone_even_if_one_of_it_fails():
    done = []

    def fail():
        raise OSError("no")

    with pytest.raises(OSError):
        with undo.Undo() as stack:
            stack.callback(done.append, "first")
            stack.callback(fail)
    assert done == ["first"]


def test_a_child_ends_with_its_context():
    with undo.Undo() as stack:
        child = undo.spawn(stack, ["sleep", "1000"])
        assert child.poll() is None
    assert child.returncode == -signal.SIGKILL


# -------------------------------------------------------------- counting


def counters_of(kind, stack):
    if kind == "session":
        return limits.Session(None)
    lab.needs("limits")
    return limits.Cgroups(stack, [host.Disk(lab.TREE)], limits.Limits(memory=1 << 28))


@pytest.mark.parametrize("kind", ["session", "cgroups"])
def test_processes_are_counted_and_ended_with_their_children(kind):
    """The parent sleeps: what is counted is its child, in a session of its own if
    control groups are to find it."""
    busy = ("import os, sys, time\nif os.fork():\n    time.sleep(1000)\n"
            "if sys.argv[1] == 'cgroups': os.setsid()\n"
            "print(os.getpid(), flush=True)\nwhile time.process_time() < 60: pass")
    with undo.Undo() as stack:
        counters = counters_of(kind, stack)
        counters.child = undo.spawn(
            stack, [*counters.prefix(), sys.executable, "-c", busy, kind],
            stdout=subprocess.PIPE, text=True)
        stack.callback(counters.kill)
        worker = int(counters.child.stdout.readline())
        deadline = time.monotonic() + lab.PATIENCE
        while counters.sample()["cpu"] < 0.5:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert set(counters.sample()) == set(limits.COUNTERS)
    assert state(worker) == "Z"


def test_what_several_disks_read_is_added():
    counters = object.__new__(limits.Cgroups)
    counters.disks = ["7:0", "7:1"]
    text = "7:0 Read 5\n7:0 Write 9\n7:1 Read 2\n7:10 Read 100\nTotal 116\n"
    assert counters.total(r"^{} Read (\d+)", text) == 7


def state(pid):
    with contextlib.suppress(OSError):
        return limits.read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0]
    return "Z"


def test_rates_are_between_samples():
    samples = [{"t": 1.0, "sent": 100, "cache": 7}, {"t": 3.0, "sent": 500, "cache": 5}]
    assert sampler.rates(samples, "sent") == [(0.5, 100.0), (2.0, 200.0)]
    assert sampler.rates(samples, "cache") == [(1.0, 7), (3.0, 5)]


def test_difference_counts_what_grows_and_keeps_levels():
    before = {"t": 1.0, "cpu": 0.5, "cache": 9}
    assert sampler.difference(before, {"t": 3.0, "cpu": 0.75, "cache": 4}) == {
        "t": 2.0, "cpu": 0.25, "cache": 4}


def test_the_sampler_goes_on_until_the_end():
    class Counters:
        calls = 0

        def sample(self):
            self.calls += 1
            return {"t": time.monotonic(), "cpu": self.calls, "cache": 0}

    counters = Counters()
    with sampler.Sampler(counters, period=0.01) as s:
        deadline = time.monotonic() + lab.PATIENCE
        while len(s.samples) < 5:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    taken = len(s.samples)
    assert [x["cpu"] for x in s.samples] == list(range(1, taken + 1))
    assert counters.calls == taken + 1


# ------------------------------------------------------ data, candidates


def test_data_is_made_once_and_is_random(tmp_path):
    files = [("a/one", 100_000), ("two", 5)]
    data.make(str(tmp_path), files)
    first = (tmp_path / "a/one").read_bytes()
    assert len(first) == 100_000 and len(set(first)) == 256
    os.truncate(tmp_path / "two", 4)
    data.make(str(tmp_path), files)
    assert (tmp_path / "a/one").read_bytes() == first
    assert (tmp_path / "two").stat().st_size == 5


def test_data_that_does_not_fit_is_not_begun(tmp_path):
    with pytest.raises(RuntimeError, match="are free; --data names another"):
        data.make(str(tmp_path), [("small", 1), ("large", 1 << 60)])
    assert list(tmp_path.iterdir()) == []


def test_one_laboratory_at_a_time(tmp_path):
    path = str(tmp_path)
    with data.locked(path, False):
        with pytest.raises(RuntimeError, match="another laboratory"):
            with data.locked(path, False, patience=0):
                pass
    with data.locked(path, False, patience=0):
        pass


def test_every_send_path_of_the_program_is_a_candidate():
    """With the program's own words as the second opinion: it refuses other names."""
    names = [c.name for c in servers.paths()]
    wrong = subprocess.run([servers.PROGRAM, "-t", "--root", "/", "--send-path", "?"],
                           capture_output=True, text=True, check=False, timeout=lab.PATIENCE)
    assert {"nodiskio", "blocking", "copy"} <= set(names)
    assert all(name in wrong.stderr for name in names)


def test_only_the_default_path_has_a_hot_set():
    default, *others = servers.paths()
    assert "--hot-set" not in default.argv
    assert servers.hot_set(default, "1M") == ("--hot-set", "1M")
    for cand in others:
        assert cand.argv[-2:] == cand.path[-2:] == ("--hot-set", "0")
        assert servers.hot_set(cand, "1M") == ()
    assert all(servers.hot_set(cand, "1M") == () for cand in servers.peers())


def test_a_missing_candidate_is_reported():
    assert servers.peer("x", "X", ["no-such-server"], None).unusable().startswith("not installed")
    ours = servers.path("no-such-path")
    assert "no-such-path" in ours.unusable()


@pytest.mark.parametrize("built, why", [("YES", None), ("NO", "built without io_uring: YES")])
def test_a_peer_can_be_another_program_and_must_be_built_for_it(tmp_path, monkeypatch, built, why):
    there = tmp_path / "some-h2o"
    there.write_text(f"#!/bin/sh\necho h2o version 9.8.7\necho io_uring: {built}\n")
    there.chmod(0o755)
    monkeypatch.setitem(host.programs, "h2o", str(there))
    found = {c.name: c for c in servers.peers()}
    assert found["h2o"].release() == found["h2o-uring"].release() == "9.8.7"
    assert (found["h2o"].unusable(), found["h2o-uring"].unusable()) == (None, why)


def test_a_program_can_be_that_of_one_peer_alone(monkeypatch):
    monkeypatch.setitem(host.programs, "nginx-tls", "/one/nginx")
    found = {c.name: c for c in servers.peers()}
    assert found["nginx-tls"].program() == "/one/nginx" != found["nginx"].program()
    monkeypatch.setitem(host.programs, "nginx", "/all/nginx")
    assert (found["nginx-threads"].program(), found["nginx-tls"].program()) == (
        "/all/nginx", "/one/nginx")


def test_each_configuration_of_nginx_that_is_searched_differs_in_one_word():
    found = {c.name: c for c in servers.peers()}
    for reads, _, _ in servers.NGINX_READS:
        for sends, _, changed in servers.NGINX_SENDS:
            plain, other = found[f"nginx{reads}"], found[f"nginx{reads}{sends}"]
            assert other.asked and not plain.asked and other.title.startswith(plain.title)
            assert {word for word in plain.words if plain.words[word] != other.words[word]} == set(changed)
    for name in (*plan.SENDERS, *plan.DOWNLOADERS, *plan.DOWNLOADERS_TLS):
        assert name in found


def test_candidates_over_tls_have_names_of_their_own_and_run_only_if_named():
    found = {c.name: c for c in servers.every() if c.tls}
    assert {"nodiskio-tls", "nginx-tls", "h2o-tls", "lighttpd-tls", "caddy-tls"} <= set(found)
    assert all(c.asked for c in found.values())
    assert "--listen" not in found["nodiskio-tls"].argv


def test_a_configuration_of_ours_is_added_to_the_one_that_there_is():
    """Else a scenario's own would take the place of what the candidate is about."""
    for cand in (*servers.ruled(), *servers.encrypted()):
        both = servers.configured(cand, "pagewise.conf")
        assert both.conf == (*cand.conf, "pagewise.conf") and len(both.conf) == 2
        assert both.argv.count("-c") == 1


def test_a_run_has_one_certificate_of_each_kind():
    one, other = certificate.pair("P-256"), certificate.pair("RSA-2048")
    assert certificate.pair("P-256") == one != other
    for cert, key in (one, other):
        assert "BEGIN CERTIFICATE" in cert and "PRIVATE KEY" in key


def test_a_program_is_given_for_a_peer_that_there_is():
    for wrong in ("nginx", "no-such-peer=/bin/true", "nginx=/no/such/program"):
        status, _, err = lab.run("list", "--peer-binary", wrong)
        assert status == 2 and "--peer-binary" in err


def test_files_belong_to_the_measured_owner_only_during_the_measurement(tmp_path):
    lab.needs("root")
    (tmp_path / "f").write_bytes(b"")
    here = host.Host(str(tmp_path))
    bench = Bench(here, None, 1, 1, str(tmp_path))
    (owner,), (path, *_) = servers.owners(), servers.paths()
    for cand, uid in ((owner, pwd.getpwnam("nobody").pw_uid), (path, 0)):
        with bench.owned(cand, ["f"]):
            assert (tmp_path / "f").stat().st_uid == uid
        assert (tmp_path / "f").stat().st_uid == 0
    assert owner.path == path.path and owner.name == f"{path.name}-owner"


@pytest.mark.parametrize("name", scenarios.names())
def test_a_scenario_keeps_the_contract(name):
    module = scenarios.load(name)
    full = scenarios.settings(module, False, {})
    quick = scenarios.settings(module, True, {})
    assert set(module.QUICK) <= set(module.FULL) >= set(getattr(module, "LONG_FORM", ()))
    assert 1 <= quick.rounds <= full.rounds
    assert 0 < module.seconds(quick) <= module.seconds(full)
    assert set(module.NEEDS) <= {
        "wrk", "h2load", "probe", "slow", "replay", "idle", "handshake", "h2storm", "resets", "limit", "fio",
        "root", "network", "disk", "limits", "fuse", "spindle"}
    assert all(isinstance(size, int) and size > 0 for _, size in module.files(quick))
    assert module.TITLE and module.WHAT and module.NOTES


def test_settings_keep_their_type():
    module = scenarios.load("storm")
    assert scenarios.settings(module, True, {"seconds": "7"}).seconds == 7
    with pytest.raises(ValueError, match="no setting nonsense: there are rounds, "):
        scenarios.settings(module, False, {"nonsense": "1"})


def test_an_existing_directory_is_found_above():
    assert host.existing("/proc/no/such/thing") == "/proc"


# --------------------------------------------------------------- metrics

TEXT = """# TYPE turn_seconds histogram
turn_seconds_bucket{worker="0",le="0.001024"} 5
turn_seconds_bucket{worker="0",le="0.004096"} 7
turn_seconds_bucket{worker="0",le="+Inf"} 8
turn_seconds_sum{worker="0"} 1.5
turn_seconds_bucket{worker="1",le="0.001024"} 1
turn_seconds_bucket{worker="1",le="0.004096"} 1
turn_seconds_bucket{worker="1",le="+Inf"} 3
other_turn_seconds_bucket{worker="1",le="+Inf"} 3
"""


@pytest.mark.parametrize("limit, count", [(0.004096, 3), (0.005, 3), (0.002, 5), (9, 3)])
def test_values_above_a_bound_are_counted(limit, count):
    found = metrics.histogram(TEXT, "turn_seconds")
    assert found == {0.001024: 6, 0.004096: 8, float("inf"): 11}
    assert metrics.above(found, limit) == count
    assert metrics.above(metrics.difference(found, found), limit) == 0


def test_the_greatest_of_all_labels_is_found():
    text = 'longest_seconds{worker="0"} 0.25\nlongest_seconds{worker="1"} 1e-06\nother 7\n'
    assert metrics.greatest(text, "longest_seconds") == 0.25
    assert metrics.greatest(text, "other") == 7 and metrics.greatest(text, "oth") is None


def test_the_sleeps_of_all_loops_are_added_up_by_call():
    text = ('pagewise_loop_sleeps_total{worker="0",call="sendfile"} 2\n'
            'pagewise_loop_sleeps_total{worker="1",call="sendfile"} 1\n'
            'pagewise_loop_sleeps_total{worker="1",call="page fault"} 1\n'
            'pagewise_loop_asleep_seconds_total{worker="0",call="sendfile"} 0.5\n'
            'pagewise_loop_asleep_seconds_total{worker="1",call="sendfile"} 0.25\n'
            'pagewise_loop_asleep_seconds_total{worker="1",call="page fault"} 2.5e-05\n')
    assert metrics.sleeps(text) == {"sendfile": [3, 0.75], "page fault": [1, 2.5e-05]}
