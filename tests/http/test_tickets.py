"""Sessions of TLS are resumed by tickets: at each worker, after what may become of a server
process, under the last two keys, at the site that gave the ticket and at no other."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import harness
import processes
from certificates import Authority, Client
from harness import wait_until
from test_upgrade import program, replace  # a fixture too

DIED = r"pagewise: server process \d+ was killed by signal 9 \(Killed\); starting another one\n"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Paths of a certificate and its key."""
    path = tmp_path_factory.mktemp("pair")
    return Authority(path).issue(names=("DNS:a.test", "DNS:b.test")).write(path, "both")


@pytest.fixture
def tls(serve_conf, site, pair):
    """Starts a server with a site for each name; more: settings at the top."""
    (site / "name").write_bytes(b"text")

    def start(*args, names=("a.test",), more=(), **kw):
        top = {"listen": ["127.0.0.1:0 tls"], "workers": 4, "certificate": [pair[0]],
               "certificate_key": [pair[1]], **dict(more)}
        sites = [(name, {"root": site, "names": [name]}, {}) for name in names]
        return serve_conf(top, sites, *args, **kw)

    return start


@pytest.fixture(params=["1.2", "1.3"])
def client(request):
    return Client(request.param, "a.test")


def resumes(client, server, **kw):
    assert client.get(server, "/name", **kw) == b"text"
    return client.reused


def begin(client, server):
    assert not resumes(client, server)
    assert client.session is not None


def test_session_is_resumed_at_each_worker(tls, client):
    server = tls()
    begin(client, server)
    # Each connection has its own port, and so one of four workers.
    for _ in range(16):
        assert resumes(client, server)


def test_session_is_resumed_after_reloads_and_upgrades(tls, client, program):
    server = tls(binary=program)
    begin(client, server)
    for _ in range(2):
        server.reload()
        assert resumes(client, server)
        replace(program, harness.PAGEWISE)
        server.again(signal.SIGUSR2, "upgraded")
        assert resumes(client, server)


def test_session_is_resumed_after_the_server_process_has_died(tls, client):
    server = tls()
    begin(client, server)
    first = server.pid
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: set(server.processes()) - {first}, "another process")
    assert wait_until(lambda: attempt(client, server), "an answer")
    assert client.reused
    server.stop(messages=DIED)


def attempt(client, server):
    try:
        return client.get(server, "/name") == b"text"
    except OSError:
        return False


def test_two_masters_have_keys_of_their_own(tls, client):
    server = tls()
    begin(client, server)
    server.stop()
    assert not resumes(client, tls())


def test_without_tickets_no_session_is_resumed(tls, client):
    server = tls(more={"session_tickets": False}.items())
    assert not resumes(client, server)
    assert client.session is None or not client.session.has_ticket
    assert not resumes(client, server)


def test_session_is_resumed_at_its_own_site_alone(tls, client):
    server = tls(names=("a.test", "b.test"))
    begin(client, server)
    assert resumes(client, server)
    assert not resumes(client, server, name="b.test")
    assert resumes(client, server)


def test_sites_that_change_places_keep_their_sessions(tls, client, tmp_path):
    server = tls(names=("a.test", "b.test"))
    begin(client, server)
    path = tmp_path / "pagewise.conf"
    top, a, b = re.match(r"(.*)(site \"a.test\".*)(site .*)", path.read_text(), re.S).groups()
    path.write_text(top + b + a)
    server.reload()
    assert not resumes(client, server, name="b.test")
    assert resumes(client, server)


@pytest.mark.parametrize("places", [("a.test", "b.test"), ("b.test", "a.test")])
@pytest.mark.parametrize("verify", ["optional", "require"])
def test_site_that_verifies_clients_resumes_nothing(
        serve_conf, site, pair, tmp_path, client, places, verify):
    (site / "name").write_bytes(b"text")
    authority = Authority(tmp_path, "clients")
    mine = authority.issue("me", extensions="extendedKeyUsage=clientAuth\n")
    client.context.load_cert_chain(*mine.write(tmp_path, "mine"))
    sites = {"a.test": {}, "b.test": {"verify_client": verify, "client_ca": authority.path}}
    server = serve_conf(
        {"listen": ["127.0.0.1:0 tls"], "workers": 2, "certificate": [pair[0]],
         "certificate_key": [pair[1]]},
        [(name, {"root": site, "names": [name], **sites[name]}, {}) for name in places])
    begin(client, server)
    # Neither a session of another site, whose client has shown nothing, nor one of its own.
    assert not resumes(client, server, name="b.test")
    assert resumes(client, server)
    client.session = None
    assert not resumes(client, server, name="b.test")
    assert client.session is None or not client.session.has_ticket
    assert not resumes(client, server, name="b.test")


# ------------------------------------------------------------------- keys that change

PERIOD = 6  # seconds, in place of half a day: debug builds
VERSIONS = pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])


class Visit:
    """Of openssl's client, which may bring a session and may be given another one."""

    def __init__(self, server, version, directory, before=None):
        self.began = time.monotonic()
        self.session = directory / ("session%d" % time.monotonic_ns())
        bring = ["-sess_in", before.session] if before else []
        done = subprocess.run(
            ["openssl", "s_client", "-connect", "%s:%d" % server.address, "-ign_eof",
             "-servername", "a.test", version, "-sess_out", self.session, *bring],
            input=b"GET /name HTTP/1.0\r\nHost: a.test\r\n\r\n", stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=harness.PATIENCE, check=False)
        self.text = done.stdout.decode()
        assert "New, TLSv1" in self.text or "Reused, TLSv1" in self.text, self.text
        self.reused = "Reused, TLSv1" in self.text

    @property
    def key(self):
        """The name of the key of the last ticket that it has now."""
        found = re.findall(r"TLS session ticket:\n *0000 - ([0-9a-f -]{47})", self.text)
        return found[-1] if found else None


@VERSIONS
def test_ticket_holds_for_half_a_day(tls, tmp_path, version):
    server = tls()
    first = Visit(server, version, tmp_path)
    assert "TLS session ticket lifetime hint: 43200 (seconds)" in first.text
    assert not first.reused and Visit(server, version, tmp_path, first).reused
    assert Visit(server, version, tmp_path).key == first.key


def change(server, version, tmp_path):
    """The last visit under one key, and the first one under the next."""
    before = Visit(server, version, tmp_path)
    while True:
        after = Visit(server, version, tmp_path)
        if after.key != before.key:
            return before, after
        before = after


@VERSIONS
@pytest.mark.slow
def test_the_last_two_keys_are_accepted_and_the_older_one_is_renewed(
        tls, tmp_path, debug, version):
    server = tls(binary=debug, env={"PAGEWISE_TICKET_SECONDS": str(PERIOD)})

    def checked():
        before, after = change(server, version, tmp_path)
        older = Visit(server, version, tmp_path, before)
        newer = Visit(server, version, tmp_path, after)
        server.reload()
        reloaded = Visit(server, version, tmp_path, before)
        if time.monotonic() - before.began > PERIOD:
            return None  # too late: one more key may have come
        assert older.reused and newer.reused and reloaded.reused
        assert older.key == after.key
        assert newer.key == after.key
        # Of TLS 1.3 a client uses each ticket once.
        assert newer.session.exists() == (version == "-tls1_3")
        return before, after

    before, after = wait_until(checked, "a machine that is quick enough")
    wait_until(lambda: Visit(server, version, tmp_path).key not in (before.key, after.key),
               "the third key")
    assert not Visit(server, version, tmp_path, before).reused


@pytest.mark.slow
def test_key_that_came_after_the_start_outlives_the_server_process(tls, tmp_path, debug):
    server = tls(binary=debug, env={"PAGEWISE_TICKET_SECONDS": str(PERIOD)})

    def checked():
        before, after = change(server, "-tls1_3", tmp_path)
        server.again(signal.SIGUSR2, "upgraded")
        sessions = [Visit(server, "-tls1_3", tmp_path, visit) for visit in (before, after)]
        if time.monotonic() - before.began > PERIOD:
            return False
        assert [session.reused for session in sessions] == [True, True]
        assert sessions[0].key == after.key
        return True

    wait_until(checked, "a machine that is quick enough")


# ------------------------------------------------------------------- where keys are


LINUX = pytest.mark.skipif(not processes.PROC, reason="reads /proc")


def secret_mappings(pid):
    """Memory that is left out of cores and zeroed by fork.  What the kernel may drop as well (dp) is
    the state of getrandom in glibc 2.41."""
    with open("/proc/%d/smaps" % pid) as f:
        flags = re.findall(r"^VmFlags: (.*)$", f.read(), re.M)
    return sum({"dd", "wf"} <= set(line.split()) and "dp" not in line.split() for line in flags)


@LINUX
def test_master_keeps_keys_where_no_core_has_them(tls, pair, tmp_path):
    server = tls()
    assert secret_mappings(server.master) == 1
    path = tmp_path / "pagewise.conf"
    path.write_text(path.read_text() + "session_tickets = false\n")
    server.reload()
    assert secret_mappings(server.master) == 0


@LINUX
def test_master_has_no_keys_without_tls(serve, site):
    assert secret_mappings(serve("--root", site).master) == 0


@LINUX
@pytest.mark.skipif(os.geteuid() != 0, reason="starts a server as nobody")
@pytest.mark.parametrize("with_tls", [True, False])
def test_the_servers_user_cannot_trace_a_server_with_tls(serve, base, pair, with_tls):
    directory = pathlib.Path(tempfile.mkdtemp(dir=base))
    directory.chmod(0o755)
    conf = directory / "pagewise.conf"
    for path in pair:
        shutil.copy(path, directory)
        shutil.chown(directory / os.path.basename(path), "nobody")
    conf.write_text(harness.configuration(
        {"listen": ["127.0.0.1:0" + with_tls * " tls"],
         "certificate": [directory / "both.pem"], "certificate_key": [directory / "both.key"]},
        [("a", {"root": directory}, {})]))
    server = serve("-c", conf, user="nobody")
    # Asks for the same right as ptrace(2), but for Yama.
    look = subprocess.run(["cat", "/proc/%d/environ" % server.pid], user="nobody",
                          group="nogroup", extra_groups=[], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False)
    assert (look.returncode != 0) == with_tls
