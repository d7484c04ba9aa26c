"""SIGHUP reads everything again, or nothing; and no request is lost by it."""

import contextlib
import os
import re
import signal
import socket
import time

import pytest

import strace
import tree as t
from harness import SLOWER, Connection, configuration, request, wait_until
from ports import free_port  # a fixture
from traffic import Traffic

BIG = 24 * t.MIB
STAYS = r"(pagewise: [^\n]*\n)+pagewise: the old configuration stays in use\n"


class Configured:
    """A server, and the file that it was told to read."""

    def __init__(self, serve, path, site):
        self.path, self.site = path, site
        self.write()
        self.server = serve("-c", path)

    def write(self, **top):
        sites = [("s", {"root": self.site}, {})]
        self.path.write_text(configuration({"workers": 1, **top}, sites))

    def reload(self, **top):
        self.write(**top)
        self.server.reload()


@pytest.fixture
def configured(serve, tmp_path, site):
    (site / "name").write_text("one")
    return Configured(serve, tmp_path / "pagewise.conf", site)


def answers(port, host="127.0.0.1"):
    try:
        with Connection((host, port)) as c:
            return c.ask("/name").status == 200
    except ConnectionRefusedError:
        return False


# ------------------------------------------------------------------------- what is read


def test_address_is_added_and_removed(configured, free_port):
    one, two = free_port(), free_port()
    configured.reload(listen=["127.0.0.1:%d" % one])
    assert answers(one) and not answers(two)
    configured.reload(listen=["127.0.0.1:%d" % one, "127.0.0.1:%d" % two])
    assert answers(one) and answers(two)
    configured.reload(listen=["127.0.0.1:%d" % two])
    assert not answers(one) and answers(two)


def test_port_that_the_kernel_chose_stays(configured):
    for _ in range(3):
        configured.reload()
        assert answers(configured.server.address[1])


def test_address_in_place_of_all_addresses_on_the_same_port(configured, free_port):
    port = free_port()
    configured.reload(listen=["*:%d" % port])
    assert answers(port) and answers(port, "127.0.0.2")
    configured.reload(listen=["127.0.0.1:%d" % port])
    assert answers(port) and not answers(port, "127.0.0.2")


def workers_of(pid):
    names = strace.thread_names(pid).values()
    return len([x for x in names if x.startswith("pw-worker")])


@pytest.mark.parametrize("workers", [[4, 1], [1, 3], [3, 2, 5]])
def test_workers_come_and_go_and_every_socket_has_one(configured, workers):
    for n in workers:
        configured.reload(workers=n)
        pid = configured.server.pid
        wait_until(lambda: workers_of(pid) == n, "the workers' names")
        for _ in range(40):
            assert answers(configured.server.address[1])


def test_limits_and_log_are_the_new_ones(configured, tmp_path):
    long = "/name?" + "x" * 500
    assert configured.server.get(long).status == 200
    configured.reload(max_target_size=100, access_log=tmp_path / "log")
    assert configured.server.get(long).status == 414
    wait_until(lambda: (tmp_path / "log").read_text().count("\n") == 1, "the line")


def test_admin_socket_stays_and_goes(configured, tmp_path):
    path = tmp_path / "admin"
    configured.reload(admin=path)
    first = path.stat().st_ino
    configured.reload(admin=path)
    assert path.stat().st_ino == first
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(path))
        s.sendall(request("/metrics", version="1.0"))
        assert s.recv(15).startswith(b"HTTP/1.")
    configured.reload()
    assert not path.exists()


# ---------------------------------------------------------------------------- refused


def refused(configured, **top):
    configured.write(**top)
    configured.server.signal(signal.SIGHUP)
    wait_until(lambda: "stays in use" in configured.server.messages, "the refusal")
    assert answers(configured.server.address[1])
    assert len(configured.server.processes()) == 1
    return configured.server.messages


def test_error_in_the_file_is_reported_with_its_line(configured):
    pid = configured.server.pid
    text = refused(configured, threads=0)
    assert re.search(r"pagewise\.conf:\d+: threads: 0 is out of range", text)
    assert configured.server.pid == pid
    configured.server.stop(messages=STAYS)


def test_address_of_another_program_is_refused(configured):
    with socket.create_server(("127.0.0.1", 0)) as other:
        text = refused(configured, listen=["127.0.0.1:%d" % other.getsockname()[1]])
    assert "another program listens on this" in text
    configured.server.stop(messages=STAYS)


def test_address_of_another_server_with_a_port_of_ours_is_refused(configured, serve, site):
    port = configured.server.address[1]
    ours, other = "127.0.0.1:%d" % port, "127.0.0.3:%d" % port
    serve("--root", site, "--listen", other)
    text = refused(configured, listen=[ours, other])
    assert other in text and "another program listens on this" in text
    configured.server.stop(messages=STAYS)


def test_reload_is_refused_until_the_log_can_be_opened(configured, tmp_path):
    refused(configured, access_log=tmp_path / "no" / "log")
    (tmp_path / "no").mkdir()
    configured.server.reload()
    configured.server.stop(messages=STAYS)


def test_refused_reload_closes_its_new_socket_only(configured, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    server, no_log = configured.server, tmp_path / "no" / "log"
    configured.reload(admin=one)
    wait_until(lambda: len(server.processes()) == 1, "the old one's end")
    refused(configured, admin=two, access_log=no_log)
    assert one.exists() and not two.exists()
    configured.write(admin=one, access_log=no_log)
    server.signal(signal.SIGHUP)
    wait_until(lambda: server.messages.count("stays in use") == 2, "the refusal")
    assert one.exists()
    server.stop(messages=STAYS)


# ----------------------------------------------------------------------- nothing is lost


def test_idle_connection_has_a_last_answer_and_an_orderly_end(configured):
    server = configured.server
    with server.connect() as asks, server.connect() as idle, server.connect() as new:
        asks.ask("/name"), idle.ask("/name")
        server.reload()
        for c in (asks, new):
            last = c.ask("/name")
            assert last.status == 200 and last.closes
            c.eof()
        idle.eof()


def test_requests_that_came_together_are_answered_together(configured):
    server = configured.server
    with server.connect() as c:
        c.ask("/name")
        server.reload()
        c.send(request("/name") * 5)
        responses = [c.response() for _ in range(5)]
        assert [r.closes for r in responses] == [False] * 4 + [True]
        c.eof()


@pytest.mark.http1("a head in parts")
def test_request_whose_head_comes_slowly_is_answered(configured):
    server = configured.server
    with server.connect() as c:
        c.send(b"GET /name HTTP/1.1\r\n")
        server.reload()
        time.sleep(1.5)
        c.send(b"Host: localhost\r\n\r\n")
        assert c.response().closes
        c.eof()


def test_many_signals_at_once_are_few_reloads(configured):
    server = configured.server
    for _ in range(200):
        server.signal(signal.SIGHUP)
    wait_until(lambda: len(server.processes()) == 1 and "reloaded" in server.output, "rest")
    assert server.output.count("pagewise: reloaded\n") < 50


@pytest.fixture
def loaded(serve, site):
    """A server with something to download, and what that is."""
    data = t.content(33, BIG)
    (site / "big").write_bytes(data)
    (site / "small").write_bytes(b"small")

    def start(*args):
        return serve("--root", site, "--workers", "2", *args), data

    return start


def under_load(server, data, act, times=10, every=0.5):
    """Acts again and again while requests and downloads run; the answers are all right.

    What comes sooner than the one before is done becomes one with it.
    """
    with Traffic(server.address, ("/small", b"small"), ("/big", data), rate=12 << 20) as traffic:
        for _ in range(times):
            time.sleep(every * SLOWER)
            traffic.signals += 1
            act()
    traffic.faultless()


@pytest.mark.parametrize("send_path", ["nodiskio", "uring", "hot"])
@pytest.mark.slow
def test_reloads_lose_nothing(loaded, send_path):
    server, data = loaded("--send-path", send_path)
    under_load(server, data, lambda: server.signal(signal.SIGHUP))
    wait_until(lambda: len(server.processes()) == 1, "the old ones to end")
    assert server.output.count("pagewise: reloaded\n") > 2


@pytest.mark.slow
def test_shutdown_loses_no_request_that_has_begun(loaded):
    """SIGTERM: who has connected has a right answer, who comes later is told that nobody is there."""
    server, data = loaded()
    with Traffic(server.address, ("/small", b"small"), ("/big", data), rate=24 << 20) as traffic:
        wait_until(lambda: traffic.busy, "the downloads to be under way")
        traffic.ends = True
        traffic.signals += 1
        server.terminate()
        assert server.wait() == 0
    traffic.faultless()


# ------------------------------------------------------------------------- deaths


def test_server_process_that_dies_is_replaced(configured):
    server = configured.server
    first = server.pid
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: server.processes() not in ([], [first]), "another one")
    wait_until(lambda: answers(server.address[1]), "an answer")
    text = "pagewise: server process %d was killed by signal 9 (Killed); " % first
    assert server.messages == text + "starting another one\n"
    server.stop(messages=True)


@pytest.mark.slow
def test_master_exits_after_repeated_deaths(configured):
    server = configured.server

    def given_up():
        pids = server.processes()
        # What looks for leaks at the end is a child as well, and is waited for.
        if "died 5 times within a minute" in server.messages:
            return True
        with contextlib.suppress(OSError):
            # One that never served would be a start that failed.
            if answers(server.address[1]):
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
        return False

    wait_until(given_up, "it to give up")
    assert server.wait() == 1
    server.stop(codes=(1,), messages=True)


def test_signals_from_outside_do_not_reach_the_server_process(configured):
    server = configured.server
    pid = server.pid
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2,
                   signal.SIGUSR1, signal.SIGXFSZ):
        os.kill(pid, number)
    assert answers(server.address[1])
    assert server.processes() == [pid]


def test_ignored_signals_do_not_end_the_master(configured):
    server = configured.server
    for number in (signal.SIGUSR1, signal.SIGXFSZ, signal.SIGPIPE):
        server.signal(number)
    configured.reload()
    assert answers(server.address[1])


@pytest.mark.slow
def test_download_is_finished_when_the_master_dies(loaded):
    server, data = loaded()
    pid = server.pid
    with server.connect(rcvbuf=65536) as c:
        c.send(request("/big"))
        head = c.read_head()
        os.kill(server.master, signal.SIGKILL)
        server.process.wait()
        assert c.read_body(head).body == data
        c.eof()
    wait_until(lambda: not os.path.exists("/proc/%d" % pid), "the server process to end")
    server.stop(codes=(-signal.SIGKILL,))
