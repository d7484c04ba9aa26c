"""agent: what a balancer is told, the orders drain and undrain, and that HAProxy takes it."""

import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest

import harness
import tree as t
from harness import Connection, Finished, request, wait_until

AGENT = re.compile(r"^pagewise: agent at (\S+):(\d+)$", re.M)
DRAINS = r"(pagewise: (draining|drain cancelled): [^\n]*\n)*"


def address(server):
    host, port = AGENT.search(server.output).groups()
    return host, int(port)


def said(where, send=b""):
    with socket.create_connection(where, timeout=harness.PATIENCE) as s:
        if send:
            s.sendall(send)
        with s.makefile("rb") as f:
            return f.read()


@pytest.fixture
def node(serve_conf, site):
    (site / "small").write_bytes(b"small")

    def start(**top):
        return serve_conf({"agent": "127.0.0.1:0", "workers": 1, **top}, [("s", {"root": site}, {})])

    return start


@pytest.fixture
def controlled(node, tmp_path):
    """A server that takes orders, and those."""
    path = tmp_path / "admin"

    def start(**top):
        server = node(admin=["127.0.0.1:0", str(path)], ready="/ready", **top)

        def order(name, code=0):
            done = Finished(name, str(path))
            assert done.code == code, (done.code, done.out, done.err)
            return done

        return server, order

    return start


def lines_until(where, wanted):
    return wait_until(lambda: said(where) == wanted, "%r to be said" % wanted)


def test_line_is_one_word_of_health_and_the_share_in_percent(node):
    server = node()
    where = address(server)
    assert re.fullmatch(rb"up ready [1-9][0-9]?0?%\n", said(where))
    for sent in (b"state\n", b"x" * 3000, b"\0\r\n\r\n"):
        assert said(where, sent).startswith(b"up ")


def test_weight_is_100_percent_on_an_idle_node(node):
    server = node()
    wait_until(lambda: said(address(server)).endswith(b" 100%\n"), "the whole share")


def test_client_that_does_not_close_delays_no_other(node):
    server = node()
    where = address(server)
    held = [socket.create_connection(where) for _ in range(300)]
    assert said(where).startswith(b"up ")
    assert all(s.recv(100).startswith(b"up ") for s in held)
    for s in held:
        s.close()


def test_replaced_process_does_not_cancel_a_drain_or_maint(node):
    """"ready" ends their own maintenance as well: it is said after a start, not after a reload."""
    server = node()
    assert said(address(server)).startswith(b"up ready ")
    server.reload()
    wait_until(lambda: re.fullmatch(rb"up \d+%\n", said(address(server))), "the new process")


def test_drain_is_reported_and_aborts_no_response(controlled):
    server, order = controlled()
    where = address(server)
    with server.connect() as kept:
        assert kept.ask("/ready").status == 200
        assert order("drain").out == "draining: health checks tell balancers to send no new clients\n"
        assert said(where) == b"drain\n"
        answer = kept.ask("/ready")
        assert (answer.status, answer.body) == (503, b"draining\ns: ok\n")
        assert kept.ask("/small").body == server.get("/small").body == b"small"
        order("drain")
        order("undrain")
        assert said(where).startswith(b"up ready ")
        assert kept.ask("/ready").status == 200
    server.stop(messages=DRAINS)


def test_drain_survives_the_server_process(controlled):
    server, order = controlled()
    where = address(server)
    order("drain")
    for word, number in (("reloaded", signal.SIGHUP), ("upgraded", signal.SIGUSR2)):
        server.again(number, word)
        lines_until(where, b"drain\n")
        assert server.get("/ready").status == 503
    order("undrain")
    server.reload()
    wait_until(lambda: said(where).startswith(b"up ready "), "it to come back")
    server.stop(messages=DRAINS)


def test_shutdown_is_reported_until_the_last_response_ends(controlled, site):
    (site / "big").write_bytes(b"x" * 32 * t.MIB)
    server, _ = controlled(shutdown_timeout=600)
    where = address(server)
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/big"))
        c.read_head()
        server.terminate()
        lines_until(where, b"drain\n")
        assert said(where) == b"drain\n"
        c.reset()
    assert server.wait() == 0
    with pytest.raises(OSError):
        said(where)


def test_commands_need_a_unix_socket(controlled, tmp_path):
    server, order = controlled()
    url = re.search(r"^pagewise: admin at http://(\S+):(\d+)/$", server.output, re.M)
    post = b"POST /drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    answer = said((url.group(1), int(url.group(2))), post)
    assert answer.startswith(b"HTTP/1.1 403 ")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(tmp_path / "admin"))
        s.sendall(post.replace(b"POST", b"GET"))
        assert s.recv(1000).startswith(b"HTTP/1.1 405 ")
    assert said(address(server)).startswith(b"up ")


def test_drain_without_ready_and_agent_is_refused(serve_conf, site, tmp_path):
    serve_conf({"admin": str(tmp_path / "a")}, [("s", {"root": site}, {})])
    done = Finished("drain", str(tmp_path / "a"))
    assert (done.code, done.out) == (1, "")
    assert "the server refused the command: 409 Conflict: balancers cannot see the drain: set ready or agent" in done.err


@pytest.mark.parametrize("args, code, said_so", [
    (("drain", "-x"), 2, "unknown option -x"),
    (("drain", "--socket", "/run/x"), 2, "unknown option --socket"),
    (("undrain", "a", "b"), 2, "more than one socket is given"),
    (("drain", "/proc/nothing/admin"), 1, "cannot connect to /proc/nothing/admin: No such file or directory; set admin"),
    (("drain", "/" + "x" * 200), 1, "File name too long"),
])
def test_command_line_that_is_wrong(args, code, said_so):
    done = Finished(*args)
    assert done.code == code and said_so in done.err, (done.code, done.err)
    assert done.err.startswith("pagewise %s: " % args[0])


def test_help_of_drain_and_undrain():
    for name in ("drain", "undrain"):
        done = Finished(name, "-h")
        assert done.code == 0 and done.out.startswith("usage: pagewise drain [SOCKET]\n")
        assert f"is {RUN[sys.platform.startswith('freebsd')]}/pagewise/admin.\n" in done.out


RUN = ["/run", "/var/run"]  # of Linux, of FreeBSD: hier(7)


@pytest.mark.parametrize("system, service", [("linux", "systemd/pagewise.service"), ("freebsd", "rc.d/pagewise")])
def test_default_socket_is_where_the_service_makes_a_directory(system, service):
    tree = pathlib.Path(harness.TREE)
    run = RUN[system == "freebsd"]
    assert f'os_run_directory[] = "{run}";' in (tree / f"lib/os/{system}_process.c").read_text(encoding="utf-8")
    text = (tree / "conf" / service).read_text(encoding="utf-8")
    assert "RuntimeDirectory=pagewise\n" in text or f"install -d -m 755 {run}/${{name}} " in text


# ------------------------------------------------------------------- a real HAProxy


class Haproxy:
    def __init__(self, directory, where, agent):
        self.stats = str(directory / "stats")
        conf = directory / "haproxy.cfg"
        conf.write_text("""
global
    stats socket %s level admin
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
backend nodes
    balance uri
    hash-type consistent sdbm avalanche
    server a %s:%d check inter 200ms weight 100 agent-check agent-addr %s agent-port %d agent-inter 200ms
""" % (self.stats, where[0], where[1], agent[0], agent[1]))
        self.log = open(directory / "haproxy.log", "wb")
        self.process = subprocess.Popen(["haproxy", "-db", "-f", str(conf)], stdout=self.log, stderr=self.log)
        wait_until(lambda: self.command("show info"), "haproxy's socket")

    def command(self, text):
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(harness.PATIENCE)
                s.connect(self.stats)
                s.sendall(text.encode() + b"\n")
                with s.makefile("r") as f:
                    return f.read()
        except OSError:
            return ""

    def server(self):
        lines = self.command("show stat").splitlines()
        names = lines[0].lstrip("# ").split(",")
        (row,) = [dict(zip(names, x.split(","))) for x in lines if x.startswith("nodes,a,")]
        return row

    def wait(self, status, weight=None):
        wait_until(lambda: self.server()["status"].startswith(status)
                   and weight in (None, self.server()["weight"]), "haproxy to say " + status)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.mark.needs("haproxy")
def test_haproxy_follows(controlled, tmp_path):
    server, order = controlled()
    haproxy = Haproxy(tmp_path, server.address, address(server))
    try:
        haproxy.wait("UP", "100")
        order("drain")
        haproxy.wait("DRAIN")
        order("undrain")
        haproxy.wait("UP", "100")
    finally:
        haproxy.end()
    server.stop(messages=DRAINS)
