"""The load generators over HTTP/2, with our own server: bench/h2storm, and bench/idle --http2."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading

import h2_raw as raw
import pytest
import tls
from harness import wait_until
from loadgen import PATIENCE, TREE, run

from laboratory import host

H2STORM, IDLE, RESETS = (
    os.path.join(TREE, "build/asan/bench", name) for name in ("h2storm", "idle", "resets"))
HOT, COLD = 5000, 100_000


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "root"
    path.mkdir()
    (path / "hot").write_bytes(b"h" * HOT)
    for i in range(10):
        (path / f"cold{i}").write_bytes(b"c" * COLD)
    (tmp_path / "urls").write_text("".join(f"/cold{i}\n" for i in range(10)))
    return path


@pytest.fixture(params=["http", "https"])
def start(serve, root, tmp_path, request):
    """A server with settings: its URL."""
    def started(*settings):
        encrypted = request.param == "https"
        lines = [f'listen = {{"127.0.0.1:0{" tls" * encrypted}"}}', *settings]
        if encrypted:
            lines.append(f'certificate = {{"{tls.PAIRS.for_user(None)}"}}')
        (tmp_path / "conf").write_text("\n".join([*lines, ""]))
        server = serve("-c", tmp_path / "conf", "--root", root, "--access-log", "off", "--stall-log", "0")
        return f"{request.param}://127.0.0.1:{server.address[1]}"
    return started


def ended(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    return done.returncode, done.stdout, done.stderr


def test_hot_and_cold_streams_share_a_connection(start, tmp_path):
    url = start()
    result = run(H2STORM, "--hot", 3, "--cold", 5, "--urls", tmp_path / "urls", "--seconds", 1,
                 f"{url}/hot")
    assert result["errors"] == {} and set(result["statuses"]) == {"200"}
    assert result["connections"] == 1
    assert result["requests"] > 0 and result["cold_requests"] > 0
    assert result["cold_bytes"] > (result["cold_requests"] - 5) * COLD
    assert result["latency_us"]["count"] >= result["requests"]
    assert result["rate"] == pytest.approx(result["requests"] / result["seconds"], rel=0.01)


def test_at_a_rate_each_turn_counts_once(start):
    url = start()
    result = run(H2STORM, "--hot", 4, "--rate", 100, "--seconds", 0.5, "--timeout", PATIENCE,
                 f"{url}/hot")
    assert result["statuses"] == {"200": 50} and result["errors"] == {}
    assert result["latency_us"]["count"] == result["own_delay_us"]["count"] == 50
    assert result["cold_requests"] == result["cold_bytes"] == 0


def test_a_server_that_ends_connections_gets_others_and_no_request_is_lost(start, tmp_path):
    url = start("max_requests = 20")
    result = run(H2STORM, "--hot", 4, "--rate", 200, "--seconds", 1, "--timeout", PATIENCE,
                 "--cold", 3, "--urls", tmp_path / "urls", f"{url}/hot")
    assert result["connections"] >= 200 / 20 and result["errors"] == {}
    assert result["latency_us"]["count"] == 200


def test_missing_files_are_counted_by_status(start):
    url = start()
    result = run(H2STORM, "--hot", 1, "--rate", 10, "--seconds", 0.3, f"{url}/nothing")
    assert set(result["statuses"]) == {"404"}


def test_cold_streams_alone_go_on_until_a_signal(start, tmp_path):
    url = start()
    with subprocess.Popen([H2STORM, "--hot", "0", "--cold", "2", "--urls", tmp_path / "urls",
                           "--seconds", "1000", f"{url}/hot"], text=True,
                          stdout=subprocess.PIPE) as child:
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1)
        child.send_signal(signal.SIGINT)
        result = json.loads(child.communicate(timeout=PATIENCE)[0])
    assert child.returncode == 0 and result["interrupted"]
    assert result["cold_requests"] > 0 == result["requests"] and result["seconds"] < 1000


def test_the_client_requests_a_range(start, tmp_path):
    url = start()
    (tmp_path / "urls").write_text("/cold1#5-9\n")
    result = run(H2STORM, "--hot", 0, "--cold", 1, "--urls", tmp_path / "urls", "--seconds", 0.5,
                 f"{url}/hot")
    assert set(result["statuses"]) == {"206"}
    assert result["cold_bytes"] <= 5 * (result["cold_requests"] + 1)


def test_idle_connections_are_of_http2(start):
    url = start()
    first, last = map(json.loads, ended(
        IDLE, "--connections", 20, "--http2", "--seconds", 0.3, f"{url}/hot")[1].splitlines())
    assert first["ready"] == last["held"] == 20 and first["statuses"] == {"200": 20}
    assert first["errors"] == {} and last["lost"] == 0


def sockets(fds):
    """Counts; a descriptor may be closed between the two calls."""
    count = 0
    for fd in os.listdir(fds):
        with contextlib.suppress(FileNotFoundError):
            count += "socket" in os.readlink(f"{fds}/{fd}")
    return count


def test_idle_connections_that_the_server_ends_are_lost(start):
    url = start("keepalive_timeout = 1")
    with subprocess.Popen([IDLE, "--connections", "5", "--http2", f"{url}/hot"], text=True,
                          stdout=subprocess.PIPE) as child:
        assert json.loads(child.stdout.readline())["ready"] == 5
        fds = f"/proc/{child.pid}/fd"
        wait_until(lambda: sockets(fds) == 0, "all to be closed")
        child.send_signal(signal.SIGTERM)
        result = json.loads(child.communicate(timeout=PATIENCE)[0])
    assert (result["held"], result["lost"]) == (0, 5)


def test_idle_connections_have_streams_that_wait(start):
    url = start("send_timeout = 1")
    with subprocess.Popen([IDLE, "--connections", "2", "--http2", "--streams", "3", f"{url}/hot"], text=True,
                          stdout=subprocess.PIPE) as child:
        assert json.loads(child.stdout.readline())["statuses"] == {"200": 2}
        child.send_signal(signal.SIGTERM)
        result = json.loads(child.communicate(timeout=PATIENCE)[0])
    assert (result["held"], result["lost"]) == (2, 0)


def test_streams_that_wait_are_of_http2():
    status, _, err = ended(IDLE, "--streams", 3, "http://127.0.0.1:1/")
    assert status == 2 and err.startswith("usage: idle")


FLOOD = r"pagewise: warning: aborted an HTTP/2 connection from .*\n"


@pytest.mark.parametrize("over_tls", [False, True], ids=["http", "https"])
def test_resets_go_on_over_connections_that_the_server_ends(serve, root, tmp_path, over_tls):
    lines = [f'listen = {{"127.0.0.1:0{" tls" * over_tls}"}}']
    lines += [f'certificate = {{"{tls.PAIRS.for_user(None)}"}}'] * over_tls
    (tmp_path / "conf").write_text("\n".join([*lines, ""]))
    server = serve("-c", tmp_path / "conf", "--root", root, "--access-log", "off", "--stall-log", "0")
    url = f"http{'s' * over_tls}://127.0.0.1:{server.address[1]}/hot"
    result = run(RESETS, "--rate", 5000, "--seconds", 1, url)
    assert result["resets"] > 200 and result["failed"] == 0
    assert result["connections"] - 1 <= result["calmed"] + result["ended"] <= result["connections"]
    assert result["calmed"] > 0
    server.stop(messages=FLOOD)


def answer_pings(listener):
    """A server that lets clients reset as often as they want."""
    ping = raw.frame(raw.PING, payload=bytes(8))
    while True:
        try:
            conn = listener.accept()[0]
        except OSError:
            return
        with conn, contextlib.suppress(ConnectionResetError):
            text = b""
            while got := conn.recv(1 << 16):
                text = text[-len(ping) + 1:] + got
                if ping in text:
                    conn.sendall(raw.frame(raw.PING, raw.ACK, payload=bytes(8)))


def test_resets_go_on_where_the_server_does_not_end_the_connection():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answer_pings, args=(listener,))
        server.start()
        result = run(RESETS, "--rate", 20_000, "--seconds", 1,
                     f"http://127.0.0.1:{listener.getsockname()[1]}/hot")
        listener.shutdown(socket.SHUT_RDWR)
        server.join()
    assert result["resets"] > 1000 and result["connections"] > 1
    assert (result["calmed"], result["ended"], result["failed"]) == (0, 0, 0)


def test_few_resets_are_no_flood(start):
    result = run(RESETS, "--rate", 30, "--seconds", 1, f"{start()}/hot")
    assert 0 < result["resets"] <= 30 and (result["connections"], result["calmed"]) == (1, 0)


def test_a_server_without_http2_is_reported(start):
    url = start("http2 = false")
    status, out, err = ended(H2STORM, "--seconds", 1, f"{url}/hot")
    if url.startswith("https"):
        assert (status, out) == (1, "") and "cannot connect with HTTP/2" in err
    else:
        assert json.loads(out)["errors"] and json.loads(out)["requests"] == 0
    first = json.loads(ended(IDLE, "--connections", 3, "--http2", "--seconds", 0.1,
                             f"{url}/hot")[1].splitlines()[0])
    assert first["ready"] == 0 and sum(first["errors"].values()) == 3


# -------------------------------------------------------- frames by hand


class Byhand:
    """answer(conn, stream) for each request, on each of its connections."""

    def __init__(self, answer):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.conns = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            conn, _ = self.listener.accept()
            self.conns += 1
            threading.Thread(target=self.serve, args=(conn, self.conns), daemon=True).start()

    def serve(self, conn, number):
        with conn, conn.makefile("rb") as frames:
            frames.read(len(raw.PREFACE))
            conn.sendall(raw.settings() + raw.frame(raw.SETTINGS, raw.ACK))
            while head := frames.read(9):
                frames.read(int.from_bytes(head[:3], "big"))
                if head[3] == raw.HEADERS:
                    conn.sendall(self.answer(number, int.from_bytes(head[5:], "big")))


OK = b"\x88"  # :status 200, by its index


def whole(stream):
    return raw.frame(raw.HEADERS, raw.END_HEADERS | raw.END_STREAM, stream, OK)


def goaway(last):
    return raw.frame(raw.GOAWAY, 0, 0, last.to_bytes(4, "big") + bytes(4))


def test_a_stream_that_the_server_did_not_process_is_requested_again():
    """The first connection answers one, and none after that."""
    server = Byhand(lambda conn, stream: (whole(stream) + goaway(1) if stream == 1 else b"")
                    if conn == 1 else whole(stream))
    result = run(H2STORM, "--hot", 5, "--rate", 1000, "--seconds", 0.02, "--timeout", PATIENCE,
                 f"{server.url}/f")
    assert result["statuses"] == {"200": 20} and result["errors"] == {}
    assert result["connections"] == server.conns == 2


def test_a_stream_that_is_reset_is_an_error():
    server = Byhand(lambda conn, stream: whole(stream) if stream == 1 else raw.frame(
        raw.RST_STREAM, 0, stream, raw.INTERNAL_ERROR.to_bytes(4, "big")))
    result = run(H2STORM, "--hot", 1, "--rate", 100, "--seconds", 0.05, "--timeout", PATIENCE,
                 f"{server.url}/f")
    assert result["statuses"] == {"200": 1} and result["errors"] == {"protocol": 4}


def test_a_request_without_a_response_counts_as_waiting_until_the_end():
    server = Byhand(lambda conn, stream: b"")
    result = run(H2STORM, "--hot", 2, "--rate", 100, "--seconds", 0.1, "--timeout", 0.2,
                 f"{server.url}/f")
    assert result["errors"] == {"unanswered": 2, "unsent": 8}
    assert result["requests"] == 0 and result["latency_us"]["count"] == 10
    assert result["latency_us"]["p50"] >= 200_000


@pytest.mark.parametrize("args, message", [
    ([], "usage: "),
    (["--cold", "3", "http://127.0.0.1:1/"], "usage: "),
    (["--hot", "0", "http://127.0.0.1:1/"], "usage: "),
    (["--rate", "0", "http://127.0.0.1:1/"], "--rate 0: not a number from 0.001"),
    (["/path"], "not a http:// URL"),
])
def test_bad_arguments_are_reported(args, message):
    status, out, err = ended(H2STORM, *args)
    assert (status, out) == (2, "") and message in err


def test_a_missing_server_is_reported():
    status, out, err = ended(H2STORM, "http://127.0.0.1:1/")
    assert (status, out) == (1, "") and "cannot connect" in err


def test_the_laboratory_has_it():
    assert "h2storm" in host.TOOLS_OF_OURS
