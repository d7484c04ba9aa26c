"""A loop that is really stuck is not reported as alive, and is named."""

import pytest

from harness import wait_until
from test_slowfs import fast, slow  # fixtures
from test_systemd import expect, manager, told  # a fixture too

TOLD = r"pagewise: worker 0: no event-loop iteration for \d+\.\d s\n"


def test_stuck_loop_is_named_and_starves_the_watchdog(slow, serve_conf, manager):
    server = serve_conf(
        {"workers": 1, "send_path": "blocking"},
        [("s", {"root": slow.dir}, {})],
        env={"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "2000000"},
    )
    expect(manager, "READY")
    assert told(manager) == {"WATCHDOG": "1"}
    slow.hang("read", "cold.bin")
    with server.connect() as c:
        c.send(b"GET /cold.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
        slow.wait_held("read")
        message = {"WATCHDOG": "1"}
        while "WATCHDOG" in message:
            message = told(manager)
        assert "worker 0: no event-loop iteration for" in message["STATUS"]
        manager.settimeout(2)
        with pytest.raises(TimeoutError):
            told(manager)
        slow.release()
        manager.settimeout(30)
        message = {}
        while "WATCHDOG" not in message:
            message = told(manager)
        assert message == {"WATCHDOG": "1", "STATUS": "serving"}
        assert told(manager) == {"WATCHDOG": "1"}
        wait_until(lambda: "all event loops run again" in server.output, "the notice")
    server.stop(messages=TOLD)


def test_stuck_loop_is_logged_without_a_service_manager(slow, serve_conf):
    server = serve_conf({"workers": 1, "send_path": "blocking", "stall_log": 50},
                        [("s", {"root": slow.dir}, {})])
    slow.hang("read", "cold.bin")
    with server.connect() as c:
        c.send(b"GET /cold.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
        slow.wait_held("read")
        wait_until(lambda: "worker 0: no event-loop iteration for" in server.messages,
                   "the message")
        slow.release()
        wait_until(lambda: "all event loops run again" in server.output, "the notice")
    server.stop(messages="(%s|pagewise: (warning: )?worker 0: (an|the) event.loop [^\n]*\n)+" % TOLD)
