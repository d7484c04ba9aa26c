"""bench/lab end to end, in miniature, and what it leaves behind: nothing."""

import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import lab
import pytest

from laboratory import host
from laboratory.undo import Undo

pytestmark = pytest.mark.xdist_group("laboratory")  # it sets up the whole machine

PATHS = ("blocking", "nodiskio")


@pytest.fixture(scope="module")
def data(base):
    """Shared, so that it is made once."""
    path = os.path.join(base, "lab-data")
    os.makedirs(path)
    return path


def readahead():
    """Of disks: other tests set up loop devices, and remove them, at the same time."""
    return {path: open(path, encoding="ascii").read()
            for path in glob.glob("/sys/block/*/queue/read_ahead_kb") if "/loop" not in path}


def groups(pid):
    return (glob.glob(f"/sys/fs/cgroup/*/pagewise-lab-{pid}") +
            glob.glob(f"/sys/fs/cgroup/pagewise-lab-{pid}"))


def sharing_network(inode):
    """Processes in the laboratory's own network: its children, wherever they hang."""
    found = []
    for path in glob.glob("/proc/[0-9]*/ns/net"):
        try:
            if os.readlink(path) == inode:
                found.append(path)
        except OSError:
            pass
    return found


def run(data, out, *args):
    return lab.run("run", *args, "--rounds", 1, "--data", data, "--out", out,
                   "--path", ",".join(PATHS))


def test_storm_and_herd_in_miniature(data, tmp_path):
    lab.needs("wrk", "probe", "limits")
    before = readahead()
    status, out, err = run(data, tmp_path / "out", "storm", "herd",
                           *lab.miniature("storm", "herd"))
    assert status == 0, err
    found = lab.rounds(tmp_path / "out")
    assert set(found) == {(s, p) for s in ("storm", "herd") for p in PATHS}
    for path in PATHS:
        values = found["storm", path][0]["values"]["ranges"]
        assert values["alone"]["requests"] > 0 and values["alone"]["cpu"] > 0
        assert values["calm"]["answered"] == values["calm"]["requested"]
        assert values["storm"]["disk_bytes"] > 0
        assert values["storm"]["asleep"]["loops"] == values["stormy"]["asleep"]["loops"] == 1
        assert found["herd", path][0]["values"]["disk_bytes"] >= 1 << 20
    assert out.count("\n| pagewise, ") == 4 and "about" in err
    assert out.count("| | pagewise, blocking | pagewise, nodiskio | with, of without |") == 2
    assert readahead() == before
    assert os.path.getsize(tmp_path / "out" / "report.html") > 10_000


@pytest.mark.needs("fio")
def test_cold_in_miniature_with_fio_beside_it(data, tmp_path):
    lab.needs("wrk", "fio", "limits")
    status, out, err = lab.run(
        "run", "cold", "--rounds", 1, "--data", data, "--out", tmp_path / "out",
        "--path", "nodiskio", *lab.miniature("cold"))
    assert status == 0, err
    found = lab.rounds(tmp_path / "out")
    assert {name for _, name in found} == {"fio-128k", "fio-1m", "nodiskio"}
    for rounds in found.values():
        for case in ("bandwidth", "iops"):
            assert rounds[0]["values"][case]["disk_requests"] > 0
    assert set(found["cold", "nodiskio"][0]["values"]) == {
        "bandwidth", "iops", "bandwidth, random", "iops, random"}
    assert "fio, by 1 MiB" in out


def test_downloads_in_miniature_with_where_the_loop_slept(data, tmp_path):
    lab.needs("replay", "limits")
    status, out, err = run(data, tmp_path / "out", "download", "--path", "nodiskio-owner",
                           *lab.miniature("download"))
    assert status == 0, err
    found = lab.rounds(tmp_path / "out")
    assert {name for _, name in found} == {*PATHS, "nodiskio-owner"}
    for (one,) in found.values():
        assert set(one["values"]) == {"1", "4"}
        for part in one["values"].values():
            assert part["body"] == 64 << 20 and part["turn"] > 0
            assert part["asleep"]["loops"] == 1
    assert "loop asleep" in out and "longest iteration" in out


def test_downloads_over_http2_in_miniature(data, tmp_path):
    """One connection, into memory that nothing limits, with the congestion control asked for."""
    lab.needs("h2load", "replay", "limits", "network")
    status, out, err = lab.run(
        "run", "download", "--rounds", 1, "--data", data, "--out", tmp_path / "out",
        "--path", "nodiskio-tls", "--congestion", "reno", "--no-rfs", *lab.miniature("download"),
        "--set", "download.protocol=http2", "--set", "download.memory=returned")
    assert status == 0, err
    ((one,),) = lab.rounds(tmp_path / "out").values()
    for part in one["values"].values():
        assert part["body"] == 64 << 20 and part["seconds"] > 0
    assert "- TCP: reno\n" in out
    assert "- RFS: not set (not wanted)\n" in out and "- freed memory: not touched" in out


def test_each_run_says_how_its_loopback_and_its_memory_are_set_up(data, tmp_path):
    """In all of its scenarios, and the machine is as before."""
    lab.needs("replay", "limits", "network")
    before, here = machine_wide(), host.Host(data)
    status, out, err = lab.run(
        "run", "download", "herd", "--rounds", 1, "--data", data, "--out", tmp_path / "out",
        "--path", "nodiskio", *lab.miniature("download", "herd"))
    assert status == 0, err
    assert "- TCP: reno\n" in out and "- freed memory: touched before each measurement " in out
    assert re.search(rf"^- RFS: rps_sock_flow_entries [1-9]\d*, lo: rps_flow_cnt {host.FLOWS}, "
                     rf"rps_cpus {host.mask(here.server_core, here.load_core)}$", out, re.M)
    assert machine_wide() == before


def machine_wide():
    return [open(path, encoding="ascii").read() for path in (host.FLOW_TABLE, host.REPORTING)
            if os.path.exists(path)]


def test_a_loopback_that_cannot_be_steered_is_said(data, monkeypatch):
    here = host.Host(data)
    here.lacks.pop("network", None)
    monkeypatch.setattr(host, "STEER", "echo no sysfs; false")
    assert here.steer() == "RFS not set (table of flows: none; lo: no sysfs)"
    assert here.describe()["RFS"] == "not set (table of flows: none; lo: no sysfs)"


@pytest.mark.parametrize("before, writable, text", [
    (None, True, " and kept (no page reporting)"),
    ("9", True, " and kept (page_reporting_order 11, before the run 9)"),
    ("11", True, " and kept (page_reporting_order 11, before the run 11)"),
    ("9", False, ", but may be given back (page_reporting_order 9, before the run 9)")])
def test_what_becomes_of_freed_memory_is_said_as_it_is(data, tmp_path, monkeypatch, before, writable, text):
    order, here = tmp_path / "order", host.Host(data)
    if before:
        order.write_text(before)
    monkeypatch.setattr(host, "REPORTING", str(order))
    if not writable:
        monkeypatch.setattr(host, "write", refuse)
    with Undo() as undo:
        here.keep_freed_memory(undo)
        assert here.freed == "touched before each measurement" + text
    assert before is None or order.read_text() == before


def refuse(_path, _text):
    raise PermissionError


@pytest.mark.parametrize("cores, text", [
    ((0, 1), "3"), ((2, 2), "4"), ((31, 0), "80000001"), ((32, 1), "1,00000002"),
    ((64,), "1,00000000,00000000")])
def test_cores_are_named_as_sysfs_reads_them(cores, text):
    assert host.mask(*cores) == text


def test_a_congestion_control_that_is_not_there_is_said(data, tmp_path):
    lab.needs("network")
    status, _, err = lab.run("run", "download", "--data", data, "--out", tmp_path / "out",
                             "--congestion", "none-such", *lab.miniature("download"))
    assert status == 1 and "lab: congestion control none-such: " in err


def test_a_user_who_is_not_root_gets_a_partial_run(base, tmp_path):
    """In a copy of the tree, which an ordinary user need not be able to enter."""
    lab.needs("wrk", "probe", "replay", "limit")
    tree = os.path.join(base, "tree")
    for name in ("build/pagewise", *(f"build/bench/{t}" for t in ("probe", "replay", "limit"))):
        os.makedirs(os.path.dirname(f"{tree}/{name}"), exist_ok=True)
        shutil.copy(f"{lab.TREE}/{name}", f"{tree}/{name}")
    shutil.copytree(f"{lab.TREE}/bench", f"{tree}/bench")
    mine = os.path.join(base, "mine")
    os.makedirs(mine)
    user = {}
    if os.geteuid() == 0:
        os.chown(mine, 65534, 65534)
        user = {"user": 65534, "group": 65534, "extra_groups": ()}
    out = os.path.join(mine, "out")
    status, _, err = lab.run(
        "run", "storm", "hot", "--rounds", 1, "--data", f"{mine}/data", "--out", out,
        "--path", "nodiskio", *lab.miniature("hot"), lab=f"{tree}/bench/lab",
        env={**os.environ, "HOME": mine}, cwd=mine, **user)
    assert status == 0, err
    assert "left out: scenario storm: not root" in err
    assert "left out: not root: read_ahead_kb stays" in err
    assert "left out: not root: no network of its own and no RFS" in err
    values = lab.rounds(out)["hot", "nodiskio"][0]["values"]
    assert all(v["requests"] > 0 and v["cpu"] > 0 for v in values.values())
    with open(f"{out}/report.html", encoding="utf-8") as f:
        assert "scenario storm: not root" in f.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_after_a_signal_but_finished_rounds(data, tmp_path, number):
    lab.needs("wrk", "probe", "limits")
    before, out = readahead(), tmp_path / "out"
    scratch = tempfile.mkdtemp(dir=data, prefix="s-")  # the server enters it
    os.chmod(scratch, 0o755)
    child = lab.start("run", "herd", "storm", "--data", data, "--out", out, "--path",
                      "nodiskio", *lab.miniature("herd", "storm"), "--set",
                      "herd.rounds=1", env={**os.environ, "TMPDIR": scratch})
    try:
        wait(lambda: listed(out) and "wrk" in names(child), child)
        network = os.readlink(f"/proc/{child.pid}/ns/net")
        assert groups(child.pid) and len(sharing_network(network)) > 1
        child.send_signal(number)
        _, err = child.communicate(timeout=lab.PATIENCE)
    finally:
        if child.poll() is None:
            child.kill()
    assert child.returncode == 128 + number
    assert f"bench/lab report {out}" in err
    assert "herd-001-nodiskio.json" in listed(out)
    assert groups(child.pid) == [] and readahead() == before
    assert sharing_network(network) == [] and os.listdir(scratch) == []
    status, _, err = lab.run("report", out)
    assert status == 0, err
    assert os.path.exists(out / "report.html")


def listed(path):
    return os.listdir(path / "rounds") if os.path.isdir(path / "rounds") else []


def names(child):
    """Of its children; they may come and go meanwhile."""
    out = subprocess.run(["ps", "-o", "comm=", "--ppid", str(child.pid)], check=False,
                         capture_output=True, text=True, timeout=lab.PATIENCE)
    return out.stdout.split()


def wait(condition, child):
    deadline = time.monotonic() + lab.PATIENCE
    while not condition():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("args, message", [
    (["run", "nonsense"], "invalid choice: 'nonsense'"),
    (["run", "hot", "--path", "nonsense"], "--path nonsense: there are "),
    (["run", "hot", "--peer", "nonsense"], "--peer nonsense: there are nginx"),
    (["run", "hot", "--rounds", "0"], "0: a number from 1 on"),
    (["run", "hot", "--set", "hot.nonsense=1"], "no setting nonsense: there are rounds"),
    (["run", "hot", "--set", "seconds=1"], "write SCENARIO.KEY=VALUE"),
    (["run", "hot", "--set", "hot.seconds=x"], "x is not of the kind of 2"),
    (["run", "hot", "--set", "hot.seconds=-1"], "seconds must be more than 0"),
    (["run", "hot", "--path", ","], "--path: ',': an empty list"),
    (["run", "hot", "--peer", ""], "--peer: '': an empty list"),
    (["run", "zipf", "--set", "zipf.s=,"], "zipf.s=,: an empty list"),
    (["run", "zipf", "--set", "zipf.cache="], "zipf.cache=: cache is empty"),
    (["run", "grid", "--set", "grid.hot= ,"], "grid.hot= ,: an empty list"),
    (["run", "zipf", "--set", "zipf.cache=keep,no"], "no: there are keep, drop, auto"),
    (["run", "hot", "--set", "hot.cases=1K,2K"], "2K: there are 1K, 16K, "),
    (["run", "hot", "--set", "hot.log=maybe"], "maybe: there are off, on"),
    (["report", "/"], "is not the directory of a run"),
    (["run", "download", "--set", "download.memory=new"], "memory: new: recycled or returned"),
    (["run", "download", "--set", "download.protocol=spdy"], "protocol: spdy: http1 or http2"),
])
def test_bad_arguments_are_reported(args, message):
    status, out, err = lab.run(*args)
    assert status != 0 and message in err and "Traceback" not in err
    assert out == ""


def test_what_has_no_long_form_is_refused():
    status, _, err = lab.run("run", "storm", "--long")
    assert status == 2 and "--long: storm has no long form" in err


def test_a_directory_with_files_is_refused_as_output(tmp_path):
    for name in ("run.json", "notes"):
        out, data = tmp_path / f"out-{name}", tmp_path / "data"
        out.mkdir()
        (out / name).write_text("mine")
        status, _, err = lab.run("run", "hot", "--path", "nodiskio", "--data", data,
                                 "--out", out, *lab.miniature("hot"))
        assert status != 0 and str(out) in err and "another --out" in err
        assert not data.exists() and [p.name for p in out.iterdir()] == [name]


def test_list_shows_scenarios_and_candidates():
    status, out, err = lab.run("list")
    assert status == 0, err
    for name in ("storm", "hot", "cold", "herd", *PATHS, "nginx-directio"):
        assert f"\n{name} " in f"\n{out}"
