"""bench/idle: connections that are kept after one request, and the laboratory's scenario."""

import ctypes
import itertools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

import lab
import loadgen
import namespaces
import pytest
import test_scenarios as scenarios
from loadgen import PATIENCE, TREE, Server, ok

from laboratory import report
from laboratory.scenarios import idle

pytestmark = pytest.mark.xdist_group("laboratory")  # it sets up the whole machine

IDLE = os.environ.get("IDLE", os.path.join(TREE, "build/asan/bench/idle"))
MIB = 1 << 20
PR_CAPBSET_DROP = CAP_SYS_RESOURCE = 24  # both


def keep(server, conn, path):
    conn.sendall(ok())


def started(*args, **options):
    return subprocess.Popen([IDLE, *map(str, args)], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **options)


def lines(child):
    out, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def descriptors(child):
    return len(os.listdir(f"/proc/{child.pid}/fd"))


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_each_connection_sends_one_request_and_stays():
    with Server(keep) as server:
        first, last = lines(started("--connections", 40, "--seconds", 0.3, server.url + "/a"))
        assert (server.accepted, server.count()) == (40, {"/a": 40})
    assert first["ready"] == last["held"] == first["connections"] == 40
    assert first["lost"] == last["lost"] == 0
    assert first["errors"] == {} and first["statuses"] == {"200": 40}
    assert first["first_error"] is None


def test_connections_stay_until_a_signal_closes_them():
    with Server(keep) as server:
        child = started("--connections", 20, server.url)
        assert json.loads(child.stdout.readline())["ready"] == 20
        assert all(conn.fileno() != -1 for conn in server.conns)
        child.send_signal(signal.SIGTERM)
        (last,) = lines(child)
        wait_until(lambda: all(conn.fileno() == -1 for conn in server.conns))
    assert (last["held"], last["lost"]) == (20, 0)


def test_connections_that_the_server_closes_later_count_as_lost():
    with Server(keep) as server:
        child = started("--connections", 12, server.url)
        assert json.loads(child.stdout.readline())["ready"] == 12
        open_ = descriptors(child)
        for conn in server.conns[:5]:
            conn.shutdown(loadgen.socket.SHUT_RDWR)
        wait_until(lambda: descriptors(child) == open_ - 5)
        child.send_signal(signal.SIGTERM)
        (last,) = lines(child)
    assert (last["held"], last["lost"]) == (7, 5)


def test_a_connection_closed_after_its_response_does_not_count():
    def answer(server, conn, path):
        conn.sendall(ok(fields="Connection: close\r\n"))
        return False

    with Server(answer) as server:
        first, last = lines(started("--connections", 9, "--seconds", 0.1, server.url))
    assert (first["ready"], last["held"], last["lost"]) == (0, 0, 0)
    assert first["errors"] == {"closed": 9}


def test_a_late_response_counts_as_an_error():
    def answer(server, conn, path):
        server.done.wait(PATIENCE)

    with Server(answer) as server:
        first, _ = lines(started("--connections", 300, "--timeout", 0.3, "--seconds", 0.1,
                                 server.url))
    assert first["ready"] == 0
    assert first["errors"] == {"timeout": 256, "unsent": 44}


def test_the_first_error_is_printed():
    first, _ = lines(started("--connections", 3, "--seconds", 0.1, "http://127.0.0.1:1/"))
    assert first["errors"] == {"connect": 3} and first["first_error"] == "Connection refused"


def test_an_early_signal_prints_the_connections_so_far():
    """Three are told to close, so that it can be seen when their answers were read."""
    answers = itertools.count()

    def answer(server, conn, path):
        if next(answers) >= 3:
            server.done.wait(PATIENCE)
        conn.sendall(ok(fields="Connection: close\r\n"))

    with Server(answer) as server:
        child = started("--connections", 8, server.url)
        wait_until(lambda: len(server.paths) == 8)
        wait_until(lambda: sum(conn.fileno() == -1 for conn in server.conns) == 3)
        child.send_signal(signal.SIGTERM)
        (last,) = lines(child)
    assert "ready" not in last and (last["held"], last["connections"]) == (0, 8)
    assert last["errors"] == {"closed": 3}


def test_more_than_an_address_has_ports_use_more_addresses():
    unshare = namespaces.unshare("-rn", sys.executable, loadgen.__file__, "40000", "40009")
    done = subprocess.run([*unshare, IDLE, "--connections", "35", "--seconds", "0.2", "URL"],
                          capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    first = json.loads(done.stdout.splitlines()[0])
    assert first["ready"] == 35 and first["source_addresses"] >= 4


@pytest.mark.parametrize("args, message", [
    ([], "usage: "),
    (["--connections", "0", "http://127.0.0.1:1/"], "--connections 0: not a number from 1"),
    (["http://127.0.0.1:1/", "more"], "usage: "),
    (["/path"], "not a http:// URL"),
])
def test_bad_arguments_are_reported(args, message):
    done = subprocess.run([IDLE, *args], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    assert done.returncode == 2 and message in done.stderr and not done.stdout


def low_limit():
    """That not even root can raise."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0)


def test_a_low_limit_of_descriptors_is_reported():
    done = subprocess.run([IDLE, "--connections", "100", "http://127.0.0.1:1/"], text=True,
                          capture_output=True, timeout=PATIENCE, check=False,
                          preexec_fn=low_limit)
    assert done.returncode == 1 and not done.stdout
    assert "116 descriptors are needed, the limit (ulimit -Hn) is lower" in done.stderr


# ------------------------------------------------------------- the scenario


def part(user, kernel, rate, cpu, quiet):
    load = {"rate": rate, "requests": 1000, "cpu": cpu / 1000}
    return {"loads": dict.fromkeys(idle.SIZES, load), "quiet": {"cpu": quiet, "t": 2.0},
            "user": user * MIB, "kernel": kernel * MIB}


def values(_cand, _number):
    """1024 connections cost 1 MiB and 8 MiB; with them 90 % of the rate, 120 % of the CPU."""
    return {"before": part(2, 10, 90, 8, 0.0), "idle": part(3, 18, 90, 12, 0.004),
            "after": part(2.5, 11, 110, 12, 0.002), "connections": 1024, "wanted": 2048,
            "took": 1.0}


def test_tables_have_the_cost_of_a_connection_and_the_rate_of_the_load():
    pytest.importorskip("matplotlib")
    seen = scenarios.view(idle, "idle", values)
    made = ["\n".join(scenarios.tables.markdown(seen, table)) for table in idle.tables(seen)]
    assert "1 024 idle connections, not 100 000, by the limit of open files" in made[0]
    assert "| nginx | 2.0 | 3.0 | 2.5 | 1 024 | 8.00 | 0.50 | 2.00 | – | – | – | – | 2 |" in made[0]
    assert len(made) == 3
    for text in made[1:]:
        assert "| nodiskio | 100 | 90 | 0.90 | 10.00 | 12.00 | 1.20 | 2 |" in text
    ((_, figure),) = idle.figures(seen)
    assert report.svg(figure).startswith("<svg")


def test_connections_are_bounded_by_the_limit_of_descriptors():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert idle.held(10) == 10
    assert 2 * idle.servers_connections(idle.held(10**9)) <= hard


@pytest.fixture(scope="module")
def data(base):
    path = os.path.join(base, "idle-data")
    os.makedirs(path)
    return path


def test_idle_in_miniature(data, tmp_path):
    """So many connections take more memory than the server may give back after it has started."""
    lab.needs("wrk", "idle")
    settings = {"idle": 2000, "seconds": 1, "connections": 4, "quiet": 1}
    words = [word for key, value in settings.items() for word in ("--set", f"idle.{key}={value}")]
    status, out, err = lab.run("run", "idle", "--rounds", 1, "--data", data, "--out",
                               tmp_path / "out", "--path", "nodiskio", *words)
    assert status == 0, err
    (found,) = lab.rounds(tmp_path / "out")["idle", "nodiskio"]
    assert found["values"]["connections"] == 2000
    assert found["values"]["idle"]["user"] > found["values"]["before"]["user"] > 0
    for name in idle.PHASES:
        for load in found["values"][name]["loads"].values():
            assert load["requests"] > 0
    assert "keepalive_timeout = 3600" in found["conf"] and re.search(r"\b2\s000 idle connections", out)
