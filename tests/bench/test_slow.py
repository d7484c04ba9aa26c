"""bench/slow: thousands of clients that drain slowly, and who is starved."""

import os
import random
import subprocess
import sys
import threading

import loadgen
import namespaces
import pytest
from loadgen import PATIENCE, SLOW, Server, ok, run

FILES = {"/a": 1, "/b": 40_000, "/dir/c d": 100_000}


@pytest.fixture
def root(tmp_path):
    draw = random.Random(1)
    (tmp_path / "dir").mkdir()
    for path, size in FILES.items():
        (tmp_path / path[1:]).write_bytes(draw.randbytes(size))
    (tmp_path / "urls").write_text("/a\n/b?query\n/dir/c%20d\n")
    return tmp_path


def content(root, path):
    return (root / path[1:].split("?")[0].replace("%20", " ")).read_bytes()


def verify(root, answer, urls="urls"):
    with Server(answer) as server:
        result = run(SLOW, "--clients", 5, "--rate", 200_000, "--seconds", 1.5,
                     "--urls", root / urls, "--verify", "--root", root, server.url)
        return result, server.count()


def test_clients_have_the_addresses_that_are_asked_for(root):
    peers = set()

    def answer(_server, conn, path):
        peers.add(conn.getpeername()[0])
        conn.sendall(ok(content(root, path)))

    with Server(answer) as server:
        result = run(SLOW, "--clients", 5, "--rate", 200_000, "--seconds", 1, "--source", 20,
                     "--sources", 3, "--urls", root / "urls", server.url)
    assert peers == {"127.0.0.20", "127.0.0.21", "127.0.0.22"}
    assert result["source_addresses"] == 3


def test_correct_bytes_are_accepted(root):
    result, saw = verify(root, lambda server, conn, path: conn.sendall(ok(content(root, path))))
    assert set(saw) == {"/a", "/b?query", "/dir/c%20d"}
    assert result["errors"] == {} and result["connected"] == 5
    assert result["completed"] >= 1
    assert result["statuses"] == {"200": result["completed"]}
    assert result["body_bytes"] < result["bytes"]


@pytest.mark.parametrize("damage", [
    lambda body: body[:-1] + bytes([body[-1] ^ 1]),
    lambda body: bytes([body[0] ^ 1]) + body[1:],
    lambda body: body[:-1],
    lambda body: body + b"x",
])
def test_wrong_bytes_are_an_error(root, damage):
    (root / "b-only").write_text("/b\n")
    result, saw = verify(
        root, lambda server, conn, path: conn.sendall(ok(damage(content(root, path)))), "b-only")
    assert result["completed"] == 0 and result["statuses"] == {}
    assert set(result["errors"]) == {"verify"}
    assert 1 <= result["errors"]["verify"] <= saw["/b"]


def test_no_client_takes_more_than_its_rate_and_the_rest_waits_in_the_server():
    def pour(server, conn, path):
        conn.setsockopt(loadgen.socket.SOL_SOCKET, loadgen.socket.SO_SNDBUF, 8192)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            n = conn.send(b"x" * 16384)
            with server.lock:
                server.sent += n

    with Server(pour) as server:
        result = run(SLOW, "--clients", 8, "--rate", 50_000, "--seconds", 2, server.url)
        sent = server.sent
    assert (result["connected"], result["errors"], result["completed"]) == (8, {}, 0)
    assert 0 < result["bytes"] <= 8 * 50_000 * result["seconds"]
    assert len(result["bytes_each_second"]) == 2
    assert sum(result["bytes_each_second"]) == result["bytes"]
    assert sent - result["bytes"] < 8 * (56 << 10)


def test_a_burst_is_taken_at_once_and_no_credit():
    def pour(server, conn, path):
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            conn.sendall(b"x" * 16384)

    burst, rate = 300_000, 20_000
    with Server(pour) as server:
        result = run(SLOW, "--clients", 4, "--rate", rate, "--burst", burst, "--seconds", 4,
                     "--rcvbuf", 100_000, server.url)
    assert (result["connected"], result["errors"]) == (4, {})
    assert 4 * burst < result["bytes"] <= 4 * (burst + rate * result["seconds"])


def test_a_client_below_half_of_its_rate_for_5_s_is_starved():
    turn = threading.Lock()

    def answer(server, conn, path):
        with turn:
            server.sent += 1
            mine = server.sent
        if mine % 2:
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
            conn.sendall(b"x" * 100_000_000)
        server.done.wait(PATIENCE)

    with Server(answer) as server:
        result = run(SLOW, "--clients", 6, "--rate", 2000, "--seconds", 6.5, server.url)
    assert (result["connected"], result["starved"], result["errors"]) == (6, 3, {})
    assert result["starved_stretches"] >= 3


def test_errors_have_their_kind_and_the_client_comes_again(root):
    def answer(server, conn, path):
        if path == "/garbage":
            conn.sendall(b"SSH-2.0-OpenSSH\r\n")
        else:
            conn.sendall(ok(b"x" * 1000)[:-1])
        return False

    (root / "bad").write_text("/garbage\n/closed\n")
    with Server(answer) as server:
        result = run(SLOW, "--clients", 10, "--rate", 100_000, "--seconds", 2.5,
                     "--urls", root / "bad", server.url)
        saw = server.count()
    assert set(result["errors"]) == {"protocol", "closed"}
    assert result["errors"]["protocol"] <= saw["/garbage"]
    assert result["errors"]["closed"] <= saw["/closed"]
    assert sum(saw.values()) > 10


def test_a_server_that_closes_after_each_answer_is_no_error():
    def answer(server, conn, path):
        conn.sendall(ok(fields="Connection: close\r\n"))
        return False

    with Server(answer) as server:
        result = run(SLOW, "--clients", 4, "--rate", 5000, "--seconds", 1, server.url)
        assert server.accepted > 4
    assert result["errors"] == {} and result["completed"] > 4


def test_a_missing_server_is_an_error():
    result = run(SLOW, "--clients", 3, "--seconds", 0.3, "http://127.0.0.1:1/")
    assert result["errors"] == {"connect": 3}
    assert (result["connected"], result["ramp_seconds"]) == (0, None)


def test_more_clients_than_ports_use_more_addresses():
    unshare = namespaces.unshare("-rn", sys.executable, loadgen.__file__, "40000", "40009")
    result = run(*unshare, SLOW, "--clients", 35, "--rate", 1000, "--seconds", 1.5, "URL")
    assert (result["connected"], result["errors"]) == (35, {})
    assert result["source_addresses"] >= 4


def test_descriptors_are_raised_to_what_the_clients_need():
    def limit():
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096))

    with Server(lambda server, conn, path: conn.sendall(ok())) as server:
        done = subprocess.run(
            [SLOW, "--clients", "200", "--rate", "100", "--seconds", "1.5", server.url],
            preexec_fn=limit, capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert loadgen.json.loads(done.stdout)["connected_max"] == 200


@pytest.mark.parametrize("args", [
    [], ["--verify", "http://127.0.0.1:1/"], ["--root", "/", "http://127.0.0.1:1/"],
    ["--clients", "0", "http://127.0.0.1:1/"], ["http://127.0.0.1:1/", "more"],
])
def test_bad_arguments_are_reported(args):
    done = subprocess.run([SLOW, *args], capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert done.stderr and not done.stdout


def test_in_order_each_client_takes_the_next_and_parts_are_asked_for(tmp_path):
    (tmp_path / "urls").write_text("/a#0-99\n/b\n/c#5-9\n")
    with Server(lambda server, conn, path: conn.sendall(ok(b"x" * 1000))) as server:
        result = run(SLOW, "--clients", 1, "--rate", 20_000, "--seconds", 1, "--in-order",
                     "--urls", tmp_path / "urls", server.url)
        assert result["completed"] >= 4
        assert server.paths[:6] == ["/a", "/b", "/c"] * 2
        assert server.ranges[:4] == ["bytes=0-99", "bytes=5-9"] * 2


def test_clients_start_evenly_over_the_ramp():
    with Server(lambda server, conn, path: conn.sendall(ok(b"x" * 100_000))) as server:
        result = run(SLOW, "--clients", 20, "--rate", 1000, "--seconds", 1, "--ramp", 10,
                     server.url)
    assert 1 <= result["connected_max"] <= 3 and result["ramp_seconds"] is None


def test_a_request_refused_with_503_is_repeated_after_a_second():
    with Server(lambda server, conn, path: conn.sendall(ok(status="503 No"))) as server:
        result = run(SLOW, "--clients", 2, "--rate", 100_000, "--seconds", 2.5, server.url)
    assert 4 <= result["statuses"]["503"] <= 6 and result["errors"] == {}
