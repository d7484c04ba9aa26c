"""The load generators over TLS, and bench/handshake: connections that come and go."""

import json
import os
import socket
import ssl
import subprocess
import threading

import lab
import loadgen
import pytest
from loadgen import PATIENCE, PROBE, SLOW, TREE, Server, ok, run

from laboratory import certificate

HANDSHAKE, IDLE, REPLAY = (os.path.join(TREE, "build/asan/bench", name)
                           for name in ("handshake", "idle", "replay"))
BODY = bytes(range(256)) * 1000  # several records


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    path = tmp_path_factory.mktemp("certificate")
    for name, text in zip(("certificate", "key"), certificate.pair("P-256")):
        (path / name).write_text(text)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(path / "certificate", path / "key")
    return made


def respond(server, conn, path):
    conn.sendall(ok(BODY))


def failing(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    return done.returncode, done.stderr


# ---------------------------------------------------- generators for all


def test_replay_gets_all_of_each_answer(context, tmp_path):
    (tmp_path / "urls").write_text("/a\n/b#1-2\n/c\n")
    with Server(respond, context) as server:
        result = run(REPLAY, "--connections", 2, "--urls", tmp_path / "urls", server.url)
        assert server.count() == {"/a": 1, "/b": 1, "/c": 1} and server.ranges == ["bytes=1-2"]
    assert result["statuses"] == {"200": 3} and result["errors"] == {}
    assert result["body_bytes"] == 3 * len(BODY)


def test_probe_keeps_its_connections(context):
    """Tickets come when nothing was asked for: they are no reason to connect again."""
    with Server(respond, context) as server:
        result = run(PROBE, "--rate", 100, "--seconds", 0.5, "--connections", 4, server.url)
        assert server.accepted == 4
    assert result["answered"] == 50 and result["errors"] == {}


def test_slow_sees_the_files_bytes_however_little_it_takes(context, tmp_path):
    (tmp_path / "f").write_bytes(BODY)
    with Server(respond, context) as server:
        result = run(SLOW, "--clients", 2, "--rate", 1000, "--burst", len(BODY), "--seconds", 2,
                     "--verify", "--root", tmp_path, f"{server.url}/f")
    assert result["errors"] == {} and result["completed"] >= 2


def test_slow_sees_other_bytes(context, tmp_path):
    (tmp_path / "f").write_bytes(BODY[:-1] + b"!")
    with Server(respond, context) as server:
        result = run(SLOW, "--clients", 1, "--rate", 1e6, "--seconds", 1, "--verify", "--root",
                     tmp_path, f"{server.url}/f")
    assert result["errors"].get("verify", 0) >= 1


def test_idle_keeps_connections_and_counts_closed_ones(context):
    with Server(respond, context) as server:
        with subprocess.Popen([IDLE, "--connections", "5", "--seconds", "3", f"{server.url}/"],
                              stdout=subprocess.PIPE, text=True) as child:
            assert json.loads(child.stdout.readline())["ready"] == 5
            one = next(conn for conn in server.conns if isinstance(conn, ssl.SSLSocket))
            one.shutdown(socket.SHUT_RDWR)
            end = json.loads(child.stdout.read())
    assert (end["held"], end["lost"]) == (4, 1)


def test_an_end_without_close_notify_is_not_the_end_of_an_answer(context):
    def cut(server, conn, path):
        conn.sendall(b"HTTP/1.1 200 OK\r\n\r\nsome")
        socket.socket.shutdown(conn, socket.SHUT_RDWR)

    def ended(server, conn, path):
        conn.sendall(b"HTTP/1.1 200 OK\r\n\r\nsome")
        conn.unwrap()

    for answer, errors, statuses in ((cut, {"closed": 1}, {}), (ended, {}, {"200": 1})):
        with Server(answer, context) as server:
            result = run(REPLAY, "--connections", 1, f"{server.url}/")
        assert (result["errors"], result["statuses"]) == (errors, statuses)


def test_a_server_without_tls_is_an_error_and_no_crash():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def refuse():
            with listener.accept()[0] as conn:
                conn.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                conn.recv(65536)

        threading.Thread(target=refuse, daemon=True).start()
        result = run(REPLAY, "--connections", 1,
                     f"https://127.0.0.1:{listener.getsockname()[1]}/")
    assert result["answered"] == 0 and result["errors"]["connect"] == 1


def test_one_server_has_one_scheme(tmp_path):
    (tmp_path / "urls").write_text("http://127.0.0.1:1/a\n")
    status, err = failing(REPLAY, "--urls", tmp_path / "urls", "https://127.0.0.1:1/")
    assert status == 2 and "another scheme" in err


# ------------------------------------------------------------- handshake


def test_full_handshakes_are_not_resumed(context):
    with Server(respond, context) as server:
        result = run(HANDSHAKE, "--connections", 2, "--seconds", 0.5, f"{server.url}/f")
        assert set(server.count()) == {"/f"}
    assert result["handshakes"] >= result["answered"] > 0 == result["resumed"]
    assert result["errors"] == {} and result["handshake_us"]["count"] == result["handshakes"]


def test_with_resume_all_are_resumed(context):
    with Server(respond, context) as server:
        result = run(HANDSHAKE, "--connections", 2, "--seconds", 0.5, "--resume", server.url)
    assert result["resumed"] == result["handshakes"] > 0 and result["errors"] == {}


def test_a_server_without_tickets_is_reported(context):
    context.num_tickets, before = 0, context.num_tickets
    try:
        with Server(respond, context) as server:
            status, err = failing(HANDSHAKE, "--seconds", 0.2, "--resume", server.url)
    finally:
        context.num_tickets = before
    assert status == 1 and "no ticket" in err


def test_without_a_request_none_is_sent_and_a_rate_is_kept(context):
    with Server(respond, context) as server:
        result = run(HANDSHAKE, "--seconds", 1, "--rate", 20, "--no-request", server.url)
        assert server.paths == []
    assert 0 < result["handshakes"] <= result["begun"] <= 21
    assert result["answered"] == 0 and result["errors"] == {}


def test_a_plain_address_is_refused():
    status, err = failing(HANDSHAKE, "http://127.0.0.1:1/")
    assert status == 2 and "not https" in err


def test_the_programs_are_those_that_the_laboratory_uses():
    from laboratory import host
    assert "handshake" in host.TOOLS_OF_OURS and loadgen.TREE == lab.TREE
