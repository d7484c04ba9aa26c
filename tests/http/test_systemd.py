"""What a service manager is told, and what it gives: sd_notify(3), sd_listen_fds(3)."""

import os
import re
import signal
import socket
import subprocess
import sys

import pytest

import harness
import tree as t
from given import Given
from harness import Connection, wait_until
from ports import free_port  # a fixture
from traffic import Traffic


@pytest.fixture
def manager(tmp_path):
    """The socket that a service manager listens on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(tmp_path / "notify"))
        s.settimeout(harness.PATIENCE)
        yield s


def told(manager):
    text = manager.recv(4096).decode()
    return dict(line.split("=", 1) for line in text.splitlines())


def expect(manager, name):
    """The next message that is not of the watchdog."""
    while True:
        message = told(manager)
        if "WATCHDOG" not in message:
            assert message.get(name) == "1", message
            return message


@pytest.fixture
def notified(serve, site, manager):
    (site / "small").write_bytes(b"small")

    def start(**env):
        env["NOTIFY_SOCKET"] = manager.getsockname()
        server = serve("--root", site, "--workers", "2", env=env)
        assert expect(manager, "READY")["STATUS"] == "serving"
        return server

    return start


def test_start_reload_and_shutdown_are_notified(notified, manager):
    server = notified()
    server.signal(signal.SIGHUP)
    assert re.fullmatch(r"\d+", expect(manager, "RELOADING")["MONOTONIC_USEC"])
    expect(manager, "READY")
    server.signal(signal.SIGUSR2)
    expect(manager, "RELOADING")
    expect(manager, "READY")
    server.terminate()
    expect(manager, "STOPPING")


def test_refused_reload_is_notified_as_ended(notified, manager, site):
    server = notified()
    os.rename(site, str(site) + ".gone")
    server.signal(signal.SIGHUP)
    expect(manager, "RELOADING")
    assert "refused" in expect(manager, "READY")["STATUS"]
    server.stop(messages=True)


def test_death_and_starts_that_fail_are_in_the_status(notified, manager, site):
    server = notified()
    os.rename(site, str(site) + ".gone")
    os.kill(server.pid, signal.SIGKILL)
    assert told(manager) == {"STATUS": "no server process is running: trying again in 1 s"}
    os.rename(str(site) + ".gone", site)
    # The next one may have begun before.
    wait_until(lambda: told(manager) == {"STATUS": "serving"}, "the status")
    server.stop(messages=True)


@pytest.mark.slow
def test_watchdog_is_fed_also_after_a_reload(notified, manager):
    server = notified(WATCHDOG_USEC="2000000")
    for _ in range(2):
        for _ in range(4):
            assert told(manager) == {"WATCHDOG": "1"}
        server.reload()
        expect(manager, "RELOADING")
        expect(manager, "READY")


def test_watchdog_of_another_process_is_not_fed(notified, manager):
    notified(WATCHDOG_USEC="1000000", WATCHDOG_PID="1")
    manager.settimeout(1)
    with pytest.raises(socket.timeout):
        told(manager)


# ------------------------------------------------------------------ socket activation


@pytest.fixture
def give():
    made = []

    def make(count=1):
        made.append(Given(count))
        return made[-1]

    yield make
    for given in made:
        given.close()


def get(port):
    with Connection(("127.0.0.1", port)) as c:
        response = c.ask("/small")
        c.finish(response)
        return response


@pytest.fixture
def conf(tmp_path, site):
    """A configuration that does not say where to listen."""
    (site / "small").write_bytes(b"small")
    path = tmp_path / "given.conf"
    path.write_text('stall_log = 0\nworkers = 2\nsite "s" { root = "%s" }\n' % site)
    return path


def test_sockets_that_were_given_are_used_and_stay(serve, give, conf):
    given = give(2)
    server = given.start(serve, "-c", conf)
    for act in (lambda: None, server.reload, lambda: server.again(signal.SIGUSR2, "upgraded")):
        act()
        for port in given.ports * 20:
            assert get(port).body == b"small"
    assert len(server.addresses(6)) == 6


def test_address_that_was_chosen_and_given_is_used(serve, give, conf):
    given = give(1)
    server = given.start(serve, "-c", conf, "--listen", "127.0.0.1:%d" % given.ports[0])
    assert server.address[1] == given.ports[0]
    assert get(given.ports[0]).body == b"small"


def test_unused_socket_is_reported(serve, give, conf):
    given = give(1)
    server = given.start(serve, "-c", conf, "--listen", "127.0.0.1:0")
    assert server.address[1] != given.ports[0]
    assert get(server.address[1]).body == b"small"
    server.stop(messages=r"pagewise: warning: socket 127\.0\.0\.1:%d from [^\n]*\n"
                % given.ports[0])


@pytest.mark.slow
def test_restarts_with_a_held_socket_lose_no_request(serve, give, conf, site):
    data = t.content(34, 16 * t.MIB)
    (site / "large").write_bytes(data)
    given = give(1)
    address = ("127.0.0.1", given.ports[0])
    server = given.start(serve, "-c", conf)
    with Traffic(address, ("/small", b"small"), ("/large", data), rate=16 << 20) as traffic:
        for _ in range(3):
            wait_until(lambda: traffic.busy, "the downloads to be under way")
            traffic.signals += 1
            server.stop()
            server = given.start(serve, "-c", conf)
            assert get(given.ports[0]).body == b"small"
    traffic.faultless()


# ------------------------------------------------------------------ systemd's own programs


@pytest.mark.needs("systemd-socket-activate")
def test_systemd_gives_the_socket_and_the_first_client_waits(conf, free_port):
    """It listens, and becomes the server when somebody connects."""
    port = free_port()
    becomes = ["systemd-socket-activate", "-l", "127.0.0.1:%d" % port]
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "PAGEWISE_STRICT"):
        becomes += ["-E", name]
    server = harness.Server("-c", conf, becomes=becomes)
    try:
        wait_until(lambda: "Listening on" in server.messages, "the socket")
        assert get(port).body == b"small"
        server.start()
        assert server.address[1] == port
        for act in (server.reload, lambda: server.again(signal.SIGUSR2, "upgraded")):
            act()
            assert get(port).body == b"small"
        server.stop(messages=r"Listening on [^\n]*\nCommunication attempt [^\n]*\nExecing [^\n]*\n")
    finally:
        if not server.out.closed:
            server.discard()


@pytest.mark.once
@pytest.mark.needs("systemd-analyze")
def test_units_are_what_systemd_understands(tmp_path):
    """But for the program, which is not installed."""
    units = []
    for unit in ("pagewise.service", "pagewise.socket"):
        with open(os.path.join(harness.TREE, "conf/systemd", unit)) as f:
            text = f.read()
        units.append(tmp_path / unit)
        units[-1].write_text(text.replace("/usr/local/sbin/pagewise", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.once
def test_unit_lets_the_server_open_files_and_reload():
    """Its filters do not refuse openat2(2); it reloads where there is no kill(1)."""
    with open(os.path.join(harness.TREE, "conf/systemd/pagewise.service")) as f:
        text = f.read()
    assert not re.search("^(RestrictSUIDSGID|SystemCallFilter)=", text, re.M)
    assert re.search("^ExecReload=/bin/sh -c ", text, re.M)
