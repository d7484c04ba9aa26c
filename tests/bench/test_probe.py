"""bench/probe: latency from the turn of a request, and nothing left out."""

import json
import random
import signal
import socket
import subprocess
import threading
import time

import pytest
from loadgen import PATIENCE, PROBE, Server, lost, ok, run

PERCENTILES = {"p50": 5000, "p90": 9000, "p99": 9900, "p99.9": 9990, "p99.99": 9999}
MAX = 100_000_000


def histogram(values):
    return run(PROBE, "--histogram-test", stdin="\n".join(map(str, values)))


def slot_end(value):
    """The greatest number with the same eleven leading bits."""
    shift = max(min(value, MAX).bit_length() - 11, 0)
    return (((min(value, MAX) >> shift) + 1) << shift) - 1


def at_least(result, us):
    return sum(n for low, _, n in result["buckets"] if low >= us)


def respond(server, conn, path):
    conn.sendall(ok())


# ---------------------------------------------------------------- histogram


def test_small_values_are_exact():
    result = histogram(range(1, 1001))
    assert {key: result[key] for key in PERCENTILES} == {
        "p50": 500, "p90": 900, "p99": 990, "p99.9": 999, "p99.99": 1000}
    assert (result["count"], result["mean"], result["max"]) == (1000, 500.5, 1000)
    assert result["buckets"] == [[i, i, 1] for i in range(1, 1001)]


@pytest.mark.parametrize("value, bounds", [
    (0, [0, 0]), (1, [1, 1]), (2047, [2047, 2047]), (2048, [2048, 2049]),
    (4095, [4094, 4095]), (4096, [4096, 4099]), (1_000_000, [999936, 1000447]),
    (MAX, [99942400, 100007935]),
])
def test_bounds_of_a_slot(value, bounds):
    assert histogram([value])["buckets"] == [bounds + [1]]


@pytest.mark.parametrize("count", [1, 2, 99, 100, 101, 9999, 10001])
def test_percentiles_are_those_of_the_sorted_values(count):
    draw = random.Random(count)
    values = [int(10 ** draw.uniform(0, 8)) for _ in range(count)]
    result, values = histogram(values), sorted(values)
    for key, part in PERCENTILES.items():
        rank = -(-count * part // 10000)
        assert result[key] == min(slot_end(values[rank - 1]), values[-1]), key
    assert result["max"] == values[-1]
    assert result["mean"] == pytest.approx(sum(values) / count, abs=0.001)


def test_slots_hold_three_digits_and_do_not_overlap():
    draw = random.Random(3)
    values = [int(10 ** draw.uniform(0, 8)) for _ in range(5000)]
    buckets = histogram(values)["buckets"]
    for (low, high, _), (following, _, _) in zip(buckets, buckets[1:]):
        assert high < following
        assert high - low <= low / 1000
    for low, high, n in buckets:
        assert n == sum(low <= value <= high for value in values)


def test_values_beyond_100_s_are_counted_and_the_max_is_true():
    result = histogram([5, MAX + 1, 7 * MAX])
    assert (result["count"], result["over"], result["max"]) == (3, 2, 7 * MAX)
    assert result["buckets"][1] == [99942400, 100007935, 2]


def test_an_empty_histogram_is_all_zero():
    result = histogram([])
    assert (result["count"], result["mean"], result["p99"], result["max"]) == (0, 0, 0, 0)
    assert result["buckets"] == []


# ---------------------------------------------------------------- open loop


def test_a_stall_is_seen_by_every_request_whose_turn_came_in_it():
    def answer(server, conn, path):
        with server.stall:
            server.seen += 1
            if server.seen == 50:
                time.sleep(0.5)
        conn.sendall(ok())

    with Server(answer) as server:
        server.stall, server.seen = threading.Lock(), 0
        result = run(PROBE, "--rate", 100, "--connections", 4, "--seconds", 2,
                     "--timeline", 100, server.url + "/")
    # The stall cannot begin before turn 49, at 0.49 s, and ends 0.5 s later;
    # all but 49 are answered after it.  A closed loop would see it four times.
    assert (result["requested"], result["answered"], result["errors"]) == (200, 200, {})
    assert result["latency_us"]["count"] == 200
    assert at_least(result, 100_000) >= 90 - 49
    assert result["latency_us"]["max"] >= 500_000
    assert result["latency_us"]["p99"] >= 480_000
    timeline = result["timeline"]["max_us"]
    assert len(timeline) == 20
    assert max(timeline) == result["latency_us"]["max"]
    for i in range(5, 9):
        assert timeline[i] >= 990_000 - (i + 1) * 100_000


def test_requests_that_were_given_up_keep_their_waiting_in_the_histogram():
    with Server(lambda server, conn, path: server.done.wait(PATIENCE)) as server:
        result = run(PROBE, "--rate", 50, "--connections", 2, "--seconds", 0.4,
                     "--timeout", 0.5, server.url + "/")
    errors = result["errors"]
    assert (result["requested"], result["answered"]) == (20, 0)
    assert set(errors) <= {"timeout", "unanswered", "unsent"}
    assert errors["timeout"] >= 1 and sum(errors.values()) == 20
    assert result["latency_us"]["count"] == 20
    assert at_least(result, 499_000) == 20
    assert result["achieved_rate"] == 0


def test_every_request_is_accounted_for_by_kind(tmp_path):
    def answer(server, conn, path):
        if path == "/closed":
            conn.sendall(ok(b"x" * 100)[:-1])
            return False
        if path == "/reset":
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            raise OSError
        conn.sendall({"/ok": ok(), "/missing": ok(b"", "404 Not Found"),
                      "/garbage": b"SSH-2.0-OpenSSH\r\n",
                      "/more": ok() + b"x",
                      "/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                      "/length": b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n"}[path])

    kinds = ["ok", "missing", "closed", "reset", "garbage", "more", "chunked", "length"]
    (tmp_path / "urls").write_text("".join("/%s\n" % kind for kind in kinds))
    with Server(answer) as server:
        result = run(PROBE, "--rate", 200, "--connections", 4, "--seconds", 1,
                     "--urls", tmp_path / "urls", server.url)
        saw = server.count()
    assert all(saw["/" + kind] > 0 for kind in kinds)
    assert result["requested"] == 200 == result["answered"] + lost(result)
    assert result["statuses"] == {"200": saw["/ok"], "404": saw["/missing"]}
    assert result["errors"] == {
        "closed": saw["/closed"], "read": saw["/reset"],
        "protocol": saw["/garbage"] + saw["/more"] + saw["/chunked"] + saw["/length"]}
    assert result["latency_us"]["count"] == result["answered"]


# --------------------------------------------------------------- connections


def test_connections_are_kept_and_no_more_are_opened():
    with Server(respond) as server:
        result = run(PROBE, "--rate", 200, "--connections", 3, "--seconds", 0.5,
                     "--spin", server.url + "/")
        assert server.accepted == 3
    assert (result["answered"], result["errors"]) == (100, {})


@pytest.mark.parametrize("answer", [
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
    b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
])
def test_a_server_that_closes_after_its_answer_is_no_error(answer):
    def close_after(server, conn, path):
        conn.sendall(answer)
        return False

    with Server(close_after) as server:
        result = run(PROBE, "--rate", 50, "--connections", 2, "--seconds", 0.4,
                     server.url + "/")
        assert server.accepted >= 20
    assert (result["answered"], result["errors"]) == (20, {})
    assert result["statuses"] == {"200": 20}


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n" + ok(),
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 70\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX-Long: " + b"y" * 500 + b"\r\ncontent-LENGTH:3\r\n\r\nabc",
])
def test_a_head_may_arrive_in_pieces(answer):
    def bytewise(server, conn, path):
        for i in range(len(answer)):
            conn.sendall(answer[i:i + 1])

    with Server(bytewise) as server:
        result = run(PROBE, "--rate", 20, "--connections", 1, "--seconds", 0.5,
                     server.url + "/")
        assert server.accepted == 1
    assert (result["answered"], result["errors"]) == (10, {})


# -------------------------------------------------------------- command line


def test_the_seed_decides_the_order_of_the_targets(tmp_path):
    def order(seed):
        with Server(respond) as server:
            (tmp_path / "urls").write_text(
                "".join("%s/%d\n" % (server.url, i) for i in range(50)))
            run(PROBE, "--rate", 200, "--connections", 1, "--seconds", 0.2,
                "--seed", seed, "--urls", tmp_path / "urls")
            return server.paths

    first = order(7)
    assert len(first) == 40
    assert order(7) == first != order(8)


def test_an_interrupted_run_prints_its_figures():
    with Server(respond) as server:
        probe = subprocess.Popen(
            [PROBE, "--rate", "50", "--seconds", "1000", server.url + "/"],
            stdout=subprocess.PIPE)
        end = time.monotonic() + PATIENCE
        while len(server.paths) < 10 and time.monotonic() < end:
            time.sleep(0.02)
        probe.send_signal(signal.SIGINT)
        result = json.loads(probe.communicate(timeout=PATIENCE)[0])
    assert probe.returncode == 0 and result["interrupted"] is True
    assert 10 <= result["requested"] < 50_000
    assert result["requested"] == result["answered"] + lost(result)


@pytest.mark.parametrize("args, status", [
    (["http://127.0.0.1:1/"], 1), ([], 2), (["ftp://x/"], 2), (["--rate", "0", "/"], 2),
    (["--rate", "fast", "http://127.0.0.1:1/"], 2), (["--nonsense"], 2),
    (["--urls", "/nonexistent", "http://127.0.0.1:1/"], 2),
])
def test_bad_arguments_are_reported(args, status):
    done = subprocess.run([PROBE, *args], capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == status
    assert done.stderr and not done.stdout
