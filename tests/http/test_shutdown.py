"""SIGTERM finishes what is being sent, within bounds."""

import signal

import pytest

import tree as t
from harness import Connection, request, wait_until

BIG = 32 * t.MIB


@pytest.fixture
def big(site):
    data = t.content(12, BIG)
    (site / "big").write_bytes(data)
    (site / "small").write_bytes(b"small")
    return data


@pytest.fixture
def start(serve_conf, site):
    def run(send_path="nodiskio", timeout=60, workers=1):
        return serve_conf(
            {"shutdown_timeout": timeout, "send_path": send_path, "workers": workers},
            [("s", {"root": site}, {})],
        )

    return run


def refuses(server):
    try:
        Connection(server.address).sock.close()
    except ConnectionError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.slow
def test_idle_server_ends_at_once_with_0(start, big, number):
    server = start(timeout=600)
    server.get("/small")
    server.signal(number)
    server.stop()


@pytest.mark.slow
def test_idle_connections_do_not_delay_the_end(start, big):
    server = start(timeout=600)
    idle = [server.connect() for _ in range(10)]
    for c in idle[:5]:
        c.ask("/small")
    server.terminate()
    for c in idle:
        c.eof()
    server.stop()


@pytest.mark.slow
def test_download_is_finished_before_the_end(start, big, send_path):
    server = start(send_path)
    with server.connect(rcvbuf=65536) as c:
        c.send(request("/big"))
        head = c.read_head()
        body = c.read_exactly(65536)
        server.terminate()
        wait_until(lambda: refuses(server), "the listener to be closed")
        body += c.read_exactly(head.length - len(body))
        assert body == big
        c.eof()
    server.stop()


@pytest.mark.slow
def test_several_downloads_on_several_workers_are_finished(start, big):
    server = start(workers=2)
    connections = [server.connect(rcvbuf=65536) for _ in range(6)]
    for c in connections:
        c.send(request("/big"))
    heads = [c.read_head() for c in connections]
    server.terminate()
    for c, head in zip(connections, heads):
        assert c.read_body(head).body == big
        c.eof()
    server.stop()


@pytest.mark.slow
def test_download_beyond_the_timeout_is_cut(start, big, send_path):
    server = start(send_path, timeout=1)
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/big"))
        head = c.read_head()
        server.terminate()
        server.wait()
        assert len(c.drain()) < head.length
    server.stop(messages=r"(pagewise: [^\n]*\n)?")


@pytest.mark.parametrize(
    "last",
    [b"nonsense\r\n\r\n", request("/small", fields={"Connection": "close"})],
    ids=["error", "close"],
)
@pytest.mark.slow
def test_shutdown_does_not_wait_for_a_client_to_close(
    start, big, last
):
    # Less than a client may take to close after its last answer.
    server = start(timeout=4)
    with server.connect() as c:
        c.send(last)
        assert c.response().closes
        c.eof()
        server.stop()
    # It was not the timeout that ended it.
    assert "closing the connections" not in server.final_output


@pytest.mark.slow
def test_second_signal_at_once_is_ignored(start, big):
    """timeout(1) and shells signal twice."""
    server = start(timeout=60)
    with server.connect(rcvbuf=65536) as c:
        c.send(request("/big"))
        head = c.read_head()
        # Of the same signal two might be one.
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGINT)
        assert c.read_body(head).body == big
        c.eof()
    server.stop()


@pytest.mark.slow
def test_later_second_signal_aborts_responses(start, big):
    server = start(timeout=60)
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/big"))
        head = c.read_head()

        def ended():
            server.terminate()
            return not server.running

        wait_until(ended, "the end", pause=0.2)
        assert len(c.drain()) < head.length
    server.stop(messages=r"(pagewise: [^\n]*\n)?")


@pytest.mark.slow
def test_sighup_during_the_shutdown_changes_nothing(start, big):
    server = start(timeout=60)
    with server.connect(rcvbuf=65536) as c:
        c.send(request("/big"))
        head = c.read_head()
        server.terminate()
        wait_until(lambda: refuses(server), "the listener to be closed")
        server.signal(signal.SIGHUP)
        assert c.read_body(head).body == big
    server.stop()


@pytest.mark.slow
def test_sigpipe_and_resets_do_not_kill(start, big):
    server = start()
    for _ in range(20):
        with server.connect(rcvbuf=4096) as c:
            c.send(request("/big") * 2)
            c.reset()
    assert server.get("/small").body == b"small"
