"""bench/replay: a list of requests, each once, in its order."""

import os
import subprocess
import threading
import time

import loadgen
import pytest
from loadgen import PATIENCE, Server, ok, run

REPLAY = os.environ.get("REPLAY", os.path.join(loadgen.TREE, "build/asan/bench/replay"))
PATHS = [f"/f{i}" for i in range(50)]


@pytest.fixture
def urls(tmp_path):
    (tmp_path / "urls").write_text("".join(f"{path}\n" for path in PATHS))
    return tmp_path / "urls"


def replay(server, urls, *options):
    return run(REPLAY, "--urls", urls, *options, server.url)


def respond(server, conn, path):
    conn.sendall(ok(path.encode() * 1000))


def test_one_connection_asks_in_the_lists_order(urls):
    with Server(respond) as server:
        result = replay(server, urls, "--connections", 1)
        assert server.paths == PATHS and server.accepted == 1
    assert result["requests"] == result["answered"] == len(PATHS)
    assert result["statuses"] == {"200": len(PATHS)} and result["errors"] == {}
    assert result["body_bytes"] == sum(1000 * len(path) for path in PATHS) < result["bytes"]


def test_more_connections_than_one_are_used_and_each_target_is_asked_for_once(urls):
    together = threading.Barrier(7)

    def meet(server, conn, path):
        if path in PATHS[:7]:
            together.wait(PATIENCE)
        respond(server, conn, path)

    with Server(meet) as server:
        result = replay(server, urls, "--connections", 7)
        assert sorted(server.paths) == sorted(PATHS) and server.accepted == 7
    assert result["answered"] == len(PATHS)


@pytest.mark.parametrize("answer, errors, statuses", [
    (lambda server, conn, path: False, {"closed": 50}, {}),
    (lambda server, conn, path: conn.sendall(b"nonsense\r\n"), {"protocol": 50}, {}),
    (lambda server, conn, path: conn.sendall(ok()[:-1]) or False, {"closed": 50}, {}),
    (lambda server, conn, path: conn.sendall(ok(status="503 No")), {}, {"503": 50}),
])
def test_a_failed_request_is_counted_and_not_repeated(urls, answer, errors, statuses):
    with Server(answer) as server:
        result = replay(server, urls, "--connections", 3)
        assert server.count() == dict.fromkeys(PATHS, 1)
    assert (result["errors"], result["statuses"]) == (errors, statuses)


def test_a_server_that_closes_after_each_answer_is_connected_to_again(urls):
    def close(server, conn, path):
        conn.sendall(ok(fields="Connection: close\r\n"))
        return False

    with Server(close) as server:
        result = replay(server, urls, "--connections", 2)
        assert server.accepted == len(PATHS)
    assert result["answered"] == len(PATHS) and result["errors"] == {}


def test_a_missing_server_is_an_error_after_a_while(urls):
    with Server(respond) as server:
        url = server.url
    result = run(REPLAY, "--urls", urls, "--connections", 2, url)
    assert result["errors"] == {"connect": 2, "unsent": 50}


def test_a_run_out_of_time_prints_the_missing_requests(urls):
    def hang(server, conn, path):
        server.done.wait(PATIENCE)

    with Server(hang) as server:
        begin = time.monotonic()
        result = replay(server, urls, "--connections", 3, "--timeout", 0.5)
        assert time.monotonic() - begin >= 0.5
    assert result["answered"] == 0
    assert result["errors"] == {"unanswered": 3, "unsent": 47}


@pytest.mark.parametrize("options", [["--connections", "0"], ["--nonsense"], []])
def test_bad_options_are_refused(options):
    done = subprocess.run([REPLAY, *options], capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2 and done.stderr and not done.stdout
