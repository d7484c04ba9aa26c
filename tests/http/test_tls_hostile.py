"""TLS over real sockets: clients that break its rules, flood the server, or end in mid-handshake.

Not with PAGEWISE_TLS (tls_server.py).
"""

import os
import random
import signal
import socket
import time

import pytest

import tls
import tls_peer
from harness import request, wait_until
from limits import connections, figure
from tls_server import all_of, content, end, end_whatever_it_says, pairs, raw, raw_slow, said, served, start  # noqa: F401


def test_clients_leave_in_mid_handshake(start):
    server = start(head_timeout=60)
    whole = tls_peer.record(22, tls_peer.hello_13())
    for text in (b"", whole[:1], whole[:5], whole[:100], whole, whole + whole):
        for how in ("close", "half", "reset"):
            sock = raw(server)
            sock.sendall(text)
            if how == "half":
                sock.shutdown(socket.SHUT_WR)
                all_of(sock)
            elif how == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.close()
    # After the server's messages, before its own last one.
    for version in ("1.2", None):
        sock = tls.Socket(raw(server), tls.client_context(version))
        sock.shake()
        assert sock.raw.recv(1 << 16)
        sock.close()
    end(server)


def test_a_client_that_left_before_its_turn_costs_no_signature(start):
    server = start()
    os.kill(server.pid, signal.SIGSTOP)  # until both the message and the end are there
    sock = raw(server)
    sock.sendall(tls_peer.record(22, tls_peer.hello_13()))
    sock.shutdown(socket.SHUT_WR)
    os.kill(server.pid, signal.SIGCONT)
    assert all_of(sock) == b""
    sock.close()
    end(server)
    assert figure(server, "pagewise_tls_handshakes_total", '{end="closed"}') == 1


def others_are_served(server, held):
    with server.connect(source="127.0.0.3") as c:
        assert c.ask("/small").body == b"small"
        c.finish()
    for sock in held:
        sock.close()
    server.stop(messages=True)


def test_clients_with_a_part_of_a_hello_cannot_keep_out_others(start):
    """It lies in the socket until its rest is there, as bytes do that were not read yet."""
    server = start(max_connections=4, head_timeout=600)
    held = [raw(server, "127.0.0.2") for _ in range(4)]
    for sock in held:
        sock.send(b"\x16")
    wait_until(lambda: connections(server) == 4, "all to be accepted")
    others_are_served(server, held)


@pytest.mark.parametrize("state", ["head", "idle"])
def test_clients_with_a_part_of_a_record_cannot_keep_out_others(start, state):
    server = start(max_connections=4, head_timeout=600, keepalive_timeout=600)
    held = [tls.Socket(raw(server, "127.0.0.2")).open() for _ in range(4)]
    for sock in held:
        if state == "idle":
            sock.sendall(request("/small"))
            assert sock.recv(1 << 16).startswith(b"HTTP/1.1 200")
        sock.raw.sendall(b"\x17")
    wait_until(lambda: figure(server, "pagewise_connections", '{state="%s"}' % state) == 4, "all of them")
    others_are_served(server, held)


def test_a_client_with_a_part_of_a_record_does_not_keep_the_old_process_of_a_reload(start):
    server = start(head_timeout=5)
    with server.connect() as c:
        assert c.ask("/small").body == b"small"
        c.sock.raw.sendall(b"\x17\x03\x03")
        old = server.pid
        server.reload()
        wait_until(lambda: old not in server.processes(), "the old process to end")
        c.eof()
    end(server)


def test_a_request_whose_record_comes_slowly_is_answered_during_a_reload(start):
    """The rest of the record may come after the second that idle connections have."""
    server = start()
    with server.connect() as c:
        assert c.ask("/small").body == b"small"
        c.sock.tls.write(request("/small"))
        record = c.sock.outgoing.read()
        c.sock.raw.sendall(record[:7])
        server.reload()
        time.sleep(1.5)
        c.sock.raw.sendall(record[7:])
        response = c.response()
        assert response.body == b"small" and response.closes
        c.eof()
    end(server)


def test_a_hello_in_pieces(start):
    """As many as it has bytes: tlsfuzzer's test-record-layer-fragmentation sends more than 1000."""
    server = start()
    for size, cut_records in ((1, False), (7, False), (1, True), (16, True)):
        sock = tls.Socket(raw(server))

        def send(flight, size=size, cut_records=cut_records, sock=sock):
            if cut_records:
                content = tls_peer.records(flight)[0][1]
                for at in range(0, len(content), size):
                    sock.raw.sendall(tls_peer.record(22, content[at:at + size]))
            else:
                for at in range(0, len(flight), size):
                    sock.raw.sendall(flight[at:at + size])

        sock.shake_into(send)
        sock.open()
        sock.sendall(request("/small"))
        assert sock.recv(1 << 16)
        sock.close()
    end(server)


def lies():
    """(what, bytes, whether the server has to end it at once)"""
    whole = tls_peer.hello_13()
    yield "longer-record", b"\x16\3\1\x40\x01" + whole, False
    yield "shorter-record", b"\x16\3\1\0\x20" + whole, True
    yield "empty-record", tls_peer.record(22, b"") * 40 + tls_peer.record(22, whole), None
    yield "longer-message", tls_peer.record(22, b"\1\0\xff\xff" + whole[4:]), False
    yield "shorter-message", tls_peer.record(22, b"\1\0\0\x40" + whole[4:]), True
    yield "huge-message", tls_peer.record(22, b"\1\xff\xff\xff" + whole[4:]), True
    yield "longest", tls_peer.record(22, b"\1\0\x40\x70" + bytes(17000 - 4)), True
    yield "beyond-longest", b"\x16\3\1\xff\xff" + bytes(70000), True
    yield "sslv2", b"\x80\x2e\1\0\2\0\x15\0\0\0\x10" + bytes(40), True
    yield "garbage", random.Random(3).randbytes(5000), True
    yield "zeroes", bytes(5000), True
    yield "ones", b"\xff" * 5000, True
    yield "heartbeat", tls_peer.record(24, b"\1\x40\0" + bytes(16)), True
    yield "alert", tls_peer.record(21, b"\2\x28"), True
    yield "warnings", tls_peer.record(21, b"\1\0") * 50, True
    yield "application-data", tls_peer.record(23, request("/small")), True
    yield "change-cipher", tls_peer.record(20, b"\1") * 100, True
    yield "server-hello", tls_peer.record(22, b"\2" + whole[1:]), True
    yield "finished", tls_peer.record(22, tls_peer.message(20, bytes(12))), True
    yield "twice", tls_peer.record(22, whole) * 2, True
    yield "version-0", tls_peer.record(22, whole, 0x0000), None
    yield "version-ffff", tls_peer.record(22, whole, 0xFFFF), None
    yield "hello-again", tls_peer.record(22, tls_peer.hello()) * 3, True
    yield "heartbeat-later", tls_peer.record(22, tls_peer.hello()) + tls_peer.record(
        24, b"\1\x40\0"), True
    yield "many-suites", tls_peer.record(22, tls_peer.hello(suites=[0x0a0a] * 7000)), True
    yield "no-suites", tls_peer.record(22, tls_peer.hello(suites=())), True
    yield "session", tls_peer.record(22, tls_peer.hello(session=bytes(32))), None
    yield "long-session", tls_peer.record(22, tls_peer.hello(session=bytes(33))), True
    yield "ticket", tls_peer.record(22, tls_peer.hello(tls_peer.extension(35, bytes(9000)))), None
    yield "early-data", tls_peer.record(22, tls_peer.hello_13(
        tls_peer.extension(42, b""))) + tls_peer.record(23, bytes(3000)) * 3, None


LIES = list(lies())


@pytest.fixture
def hasty(lend_conf, module_path, pairs):
    small, admin = module_path / "small", str(module_path / "admin")
    if not small.exists():
        small.write_bytes(b"small")
    server = lend_conf({"workers": 1, "admin": admin, "listen": ["127.0.0.1:0 tls"], "certificate": [pairs["default"]],
                        "head_timeout": 1}, [("s", {"root": module_path}, {})])
    server.admin = admin
    return server


@pytest.mark.parametrize("text, ends", [row[1:] for row in LIES], ids=[row[0] for row in LIES])
def test_malformed_records_end_the_handshake(hasty, text, ends):
    """An alert or an end; who is not finished has until head_timeout."""
    with raw(hasty) as sock:
        try:
            sock.sendall(text)
        except (ConnectionResetError, BrokenPipeError):
            assert ends
        all_of(sock)
    end(hasty)


def test_alert_is_sent_although_more_bytes_arrive(start):
    """The alert is not lost in a reset because of what was not read."""
    server = start()
    for _ in range(10):
        assert tls_peer.alerts(said(server, tls_peer.record(22, tls_peer.hello(suites=[0x0a0a]))
                                    + bytes(20000)))
    end(server)


@pytest.mark.slow
def test_key_updates(start, site, content):
    """Many, asking for the server's, while it sends and while it is idle."""
    (site / "big").write_bytes(content)
    server = start()
    peer = tls_peer.Native(raw(server))
    for i in range(300):
        assert peer.update_keys(i % 2 == 0) == 1
        if peer.shake() != 1:
            break
    peer.write(request("/small"))
    peer.read_until(b"small")
    peer.close()
    peer = tls_peer.Native(raw(server))
    peer.write(request("/big", fields={"Connection": "close"}))
    received = peer.read(1000)
    for _ in range(30):
        assert peer.update_keys() == 1 and peer.shake() == 1
        received += peer.read()
    while more := peer.read():
        received += more
    assert received.partition(b"\r\n\r\n")[2] == content
    peer.close()
    end(server)


def test_a_flood_of_key_updates_between_requests(start):
    """Each takes the server as long as twenty records: 32 at once, then one a second."""
    server = start()
    begin, taken = time.monotonic(), 0
    peer = tls_peer.Native(raw(server))
    while taken < 500 and peer.update_keys(False) == 1 and peer.shake() == 1:
        peer.write(request("/small"))
        if not peer.read_until(b"small").endswith(b"small"):
            break
        taken += 1
    assert 32 <= taken <= 33 + time.monotonic() - begin
    peer.close()
    end(server)


def test_a_flood_of_key_updates_that_reads_nothing(start, site, content):
    """Each asks for one of the server's, which nobody reads: that is bounded."""
    (site / "big").write_bytes(content)
    server = start(send_timeout=1)
    sock = raw_slow(server)
    peer = tls_peer.Native(sock)
    peer.write(request("/big") * 5)
    sock.settimeout(0.5)
    try:
        for _ in range(20000):
            peer.update_keys()
            if peer.shake() != 1:
                break
    finally:
        peer.close()
    end_whatever_it_says(server)


def test_handshakes_that_are_not_finished_are_bounded(start):
    server = start(head_timeout=3)
    held = [raw(server) for _ in range(100)]
    for i, sock in enumerate(held):
        sock.sendall(tls_peer.record(22, tls_peer.hello_13())[:[1, 5, 50, 1000][i % 4]])
    for _ in range(5):
        served(server)
    for sock in held:
        all_of(sock)
        sock.close()
    end(server)
    assert figure(server, "pagewise_tls_handshakes_total", '{end="timeout"}') > 0


@pytest.mark.slow
def test_a_flood_of_one_address_leaves_another_one_in(start):
    """One sends ClientHellos as fast as it can and finishes none; another one is served."""
    server = start()
    over = time.monotonic() + 2
    flood = tls_peer.record(22, tls_peer.hello_13())
    held, served = [], 0
    while time.monotonic() < over:
        for _ in range(50):
            sock = raw(server, "127.0.0.2")
            try:
                sock.sendall(flood)
            except (ConnectionResetError, BrokenPipeError):
                pass
            held.append(sock)
        while len(held) > 300:
            held.pop(0).close()
        assert server.get("/small").body == b"small"
        served += 1
    for sock in held:
        sock.close()
    assert served > 0
    end(server)
