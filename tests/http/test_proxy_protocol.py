"""listen = {"... proxy"}: PROXY headers of versions 1 and 2."""

import json
import random
import re
import signal
import subprocess
import threading

import pytest

import harness
from given import Given
from harness import request, wait_until
from limits import figure, limited
from proxy_headers import BROKEN, GOOD, v1, v2, v2_crc

OTHER = "127.0.0.9"  # not trusted
CURE = r'; have this proxy send a PROXY header, or remove "proxy" from listen\n'
MISSING = r"pagewise: warning: closed a connection from %s: the PROXY header is missing" + CURE
MALFORMED = r"pagewise: warning: closed a connection from %s: the PROXY header is malformed" + CURE
REFUSED = (r"pagewise: warning: refused a connection from %s: "
           r"max_connections_per_address reached \(%d\); raise it, if many clients share that address\n")


class Logged:
    def __init__(self, server, path):
        self.server, self.path, self.seen = server, path, 0

    def connect(self, header=b"", **kw):
        c = self.server.connect(**kw)
        c.send(header)
        return c

    def remotes(self, n):
        """Of the next n lines."""
        wait_until(lambda: self.path.read_text().count("\n") >= self.seen + n, "the lines")
        new = self.path.read_text().splitlines()[self.seen:]
        assert len(new) == n, new
        self.seen += n
        return [json.loads(line)["remote"] for line in new]

    def remote(self, header, **kw):
        with self.connect(header + request("/small"), **kw) as c:
            assert c.response().body == b"small"
            c.finish()
        return self.remotes(1)[0]


@pytest.fixture
def start(serve_conf, site, tmp_path):
    (site / "small").write_bytes(b"small")

    def start(**top):
        log = tmp_path / "log"
        top = {"workers": 1, "access_log": log, "log_format": "json",
               "listen": ["127.0.0.1:0 proxy"], "trusted_proxies": ["127.0.0.1", "10.0.0.0/8"],
               "admin": str(tmp_path / "admin"), **top}
        logged = Logged(serve_conf(top, [("s", {"root": site}, {})]), log)
        logged.server.admin = str(tmp_path / "admin")
        return logged

    return start


# ------------------------------------------------------------------------ headers


def test_good_headers_of_a_trusted_peer(start):
    logged = start()
    for name, header, client in GOOD:
        assert logged.remote(header) == (client or "127.0.0.1"), name


def test_headers_of_untrusted_peers_are_read_and_ignored(start):
    logged = start()
    for name, header, _ in GOOD:
        assert logged.remote(header, source=OTHER) == OTHER, name


@pytest.mark.parametrize("name, header", BROKEN, ids=[name for name, _ in BROKEN])
def test_malformed_headers_close_the_connection(start, name, header):
    logged = start()
    for source in (OTHER, None):
        with logged.connect(source=source) as c:
            c.send(header + request("/small"))
            assert c.drain() == b""
    assert logged.remote(v1("192.0.2.1")) == "192.0.2.1"
    logged.server.stop(messages=MALFORMED % "127.0.0.1")


def test_a_trusted_peer_without_a_header_is_closed(start):
    logged = start()
    for text in (request("/small"), b"\r\n\r\n" + request("/small"), b"PROXYING", b"x"):
        with logged.connect(text) as c:
            assert c.drain() == b""
    logged.server.stop(messages=MISSING % "127.0.0.1")


def test_untrusted_peers_need_no_header(start):
    """What an untrusted peer says does not matter, so it may as well say nothing."""
    logged = start()
    assert logged.remote(b"", source=OTHER) == OTHER
    assert logged.remote(b"\r\n", source=OTHER) == OTHER
    with logged.connect(b"PUT / HTTP/1.1\r\nHost: a\r\n\r\n", source=OTHER) as c:
        assert c.response().status == 405


def test_peers_that_connect_and_leave_are_not_logged(start):
    logged = start()
    for text in (b"", b"PROX", b"PROXY TCP4 192.0.2.1", v2("192.0.2.1")[:20]):
        with logged.connect(text) as c:
            c.half_close()
            assert c.drain() == b""
    assert logged.remote(v1("192.0.2.1")) == "192.0.2.1"


def test_a_listener_without_proxy_reads_no_header(start):
    logged = start(listen=["127.0.0.1:0"])
    with logged.connect(v1("192.0.2.1") + request("/small")) as c:
        assert c.response().status == 400


# ------------------------------------------------------------------------- pieces


@pytest.mark.parametrize("header", [v1("192.0.2.1"), v2_crc("192.0.2.1")], ids=["v1", "v2"])
@pytest.mark.parametrize("source, client", [(None, "192.0.2.1"), (OTHER, OTHER)],
                         ids=["trusted", "other"])
@pytest.mark.slow
def test_in_pieces_of_any_size(start, header, source, client):
    logged = start()
    text = header + request("/small")
    rnd = random.Random(3)
    with logged.connect(source=source) as c:
        for byte in text:
            c.send(bytes([byte]))
        assert c.response().body == b"small"
    assert logged.remotes(1) == [client]
    for cut in range(1, len(header) + 3):
        with logged.connect(text[:cut], source=source) as c:
            # So that the second piece is one: the first one was read.
            assert c.quiet(0.002)
            c.send(text[cut:])
            assert c.response().body == b"small"
        assert logged.remotes(1) == [client]
    for _ in range(10):
        with logged.connect(source=source) as c:
            at = 0
            while at < len(text):
                n = rnd.randrange(1, 20)
                c.send(text[at:at + n])
                at += n
            assert c.response().body == b"small"
        assert logged.remotes(1) == [client]


def test_all_requests_after_the_header_are_of_its_client(start):
    logged = start(hot_set="16M")
    clients = ["192.0.2.1", "192.0.2.2", "2001:db9::1"]
    held = {who: logged.connect(v2(who)) for who in clients}
    for _ in range(5):
        for who, c in held.items():
            c.send(request("/small") * 20)
            for _ in range(20):
                assert c.response().body == b"small"
            assert logged.remotes(20) == [who] * 20
    for c in held.values():
        c.finish()


def test_a_second_header_is_no_request(start):
    logged = start()
    with logged.connect(v1("192.0.2.1") + request("/small")) as c:
        assert c.response().status == 200
        c.send(v1("192.0.2.2") + request("/small"))
        assert c.response().status == 400
    assert logged.remotes(2) == ["192.0.2.1"] * 2


# --------------------------------------------------------------------------- time


@pytest.mark.parametrize("text", [b"", b"PROXY TCP4 ", v2("192.0.2.1")[:-1], b"\r\n"],
                         ids=["nothing", "v1", "v2", "either"])
@pytest.mark.parametrize("source", [None, OTHER], ids=["trusted", "other"])
def test_header_must_arrive_within_head_timeout(start, text, source):
    logged = start(head_timeout=1)
    with logged.connect(text, source=source) as c:
        assert c.drain() == b""
    wait_until(lambda: figure(logged.server, "pagewise_timeouts_total", '{kind="head"}') == 1,
               "the count")


@pytest.mark.slow
def test_header_and_head_share_head_timeout(start):
    logged = start(head_timeout=1)
    with logged.connect(v1("192.0.2.1")) as c:
        assert c.drain() == b""
    with logged.connect(v1("192.0.2.1") + b"GET /") as c:
        assert c.response().status == 408
    assert logged.remotes(1) == ["192.0.2.1"]


def test_connections_at_the_end_of_the_server(start):
    logged = start()
    silent = logged.connect()
    begun = logged.connect(b"PROXY TCP4 192.0.2.1 ")
    done = logged.connect(v1("192.0.2.1"))
    wait_until(lambda: figure(logged.server, "pagewise_connections", '{state="head"}') == 3,
               "three of them")
    logged.server.terminate()
    for c in (silent, done):
        assert c.drain() == b""
    # It has begun to say something, and is heard.
    begun.send(b"192.0.2.2 1 2\r\n" + request("/small"))
    assert begun.response().closes
    logged.server.stop()


# ------------------------------------------------------------------------- limits


def test_the_limit_of_an_address_is_the_clients(start):
    logged = start(max_connections_per_address=2)
    held = {who: [logged.connect(v1(who) + request("/small")) for _ in range(2)]
            for who in ("192.0.2.1", "192.0.2.2", "2001:db9::1")}
    for connections in held.values():
        for c in connections:
            assert c.response().status == 200
    for who in held:
        with logged.connect(v1(who)) as c:
            assert c.drain() == b""
    assert limited(logged.server, "max_connections_per_address") == 3
    # The place is free again.
    held["192.0.2.1"].pop().finish()
    wait_until(lambda: figure(logged.server, "pagewise_connections", '{state="idle"}') == 5,
               "the close")
    with logged.connect(v1("192.0.2.1") + request("/small")) as c:
        assert c.response().status == 200
        c.finish()
    for connections in held.values():
        for c in connections:
            c.finish()
    logged.server.stop(messages="(%s)+([^\n]* more times [^\n]*\n)*" % (
        REFUSED % (r"(192\.0\.2\.[12]|2001:db9::1)", 2)))


def test_the_proxy_itself_is_not_counted(start):
    """Neither before its headers come, nor when it speaks for itself."""
    logged = start(max_connections_per_address=1)
    silent = [logged.connect() for _ in range(4)]
    local = [logged.connect(b"PROXY UNKNOWN\r\n" + request("/small")) for _ in range(4)]
    for c in local:
        assert c.response().status == 200
    for i, c in enumerate(silent):
        c.send(v1("192.0.2.%d" % i) + request("/small"))
        assert c.response().status == 200
    for c in silent + local:
        c.finish()


def test_untrusted_peers_are_counted_by_their_own_address(start):
    logged = start(max_connections_per_address=1)
    first = logged.connect(v1("192.0.2.1") + request("/small"), source=OTHER)
    assert first.response().status == 200
    try:
        with logged.connect(v1("192.0.2.2"), source=OTHER) as c:
            assert c.drain() == b""
    except (ConnectionResetError, BrokenPipeError):
        pass
    first.finish()
    logged.server.stop(messages=REFUSED % (re.escape(OTHER), 1))


def test_the_client_with_many_connections_loses_one(start):
    """Those without a request are counted by who they are, not by the proxy they come through."""
    logged = start(max_connections=4, head_timeout=600)
    honest = logged.connect(v1("192.0.2.1") + b"GET /small HT")
    hoard = [logged.connect(v1("192.0.2.66")) for _ in range(3)]
    wait_until(lambda: figure(logged.server, "pagewise_connections", '{state="head"}') == 4,
               "four of them")
    late = logged.connect(v1("192.0.2.2") + request("/small"))
    assert late.response().status == 200
    assert hoard[0].drain() == b""
    honest.send(b"TP/1.1\r\nHost: a\r\n\r\n")
    assert honest.response().status == 200
    logged.server.stop(messages=r"(pagewise: [^\n]*\n)*pagewise: warning: closed a connection from "
                                r"192\.0\.2\.66 that has sent no request, because descriptors ran out or max_connections was reached "
                                r"\(\d connections from this address\)\n(pagewise: [^\n]*\n)*")


# --------------------------------------------------------------- with other things


def test_with_client_address_the_proxied_peer_has_to_be_trusted(start):
    logged = start(client_address="x-forwarded-for")
    for peer, client in (("10.1.1.1", "198.51.100.7"), ("192.0.2.1", "192.0.2.1"),
                         (None, "198.51.100.7")):
        header = v1(peer) if peer else b"PROXY UNKNOWN\r\n"
        with logged.connect(header) as c:
            for _ in range(3):
                assert c.ask("/small", fields={"X-Forwarded-For": "198.51.100.7"}).status == 200
            c.finish()
        assert logged.remotes(3) == [client] * 3


def test_on_a_unix_socket(start, tmp_path):
    path = str(tmp_path / "s")
    logged = start(listen=["127.0.0.1:0", "unix:%s mode=0600 proxy" % path],
                   trusted_proxies=["unix:"])
    assert logged.remote(v2("192.0.2.1"), address=path) == "192.0.2.1"
    assert logged.remote(b"PROXY UNKNOWN\r\n", address=path) == "unix:"
    # The other one has no such header.
    assert logged.remote(b"") == "127.0.0.1"


def test_workers_reload_and_upgrade(start):
    logged = start(workers=3)
    for act in (lambda: None, logged.server.reload,
                lambda: logged.server.again(signal.SIGUSR2, "upgraded")):
        act()
        for i in range(12):
            assert logged.remote(v1("192.0.2.%d" % i)) == "192.0.2.%d" % i


def test_on_a_socket_of_the_service_manager(serve, site, tmp_path):
    (site / "small").write_bytes(b"small")
    given, conf = Given(), tmp_path / "given.conf"
    conf.write_text(harness.configuration(
        {"listen": ["127.0.0.1:%d proxy" % given.ports[0]], "trusted_proxies": ["127.0.0.1"],
         "access_log": tmp_path / "log", "log_format": "json"}, [("s", {"root": site}, {})]))
    logged = Logged(given.start(serve, "-c", conf), tmp_path / "log")
    try:
        for act in (lambda: None, logged.server.reload):
            act()
            assert logged.remote(v2("192.0.2.1")) == "192.0.2.1"
    finally:
        given.close()


def test_a_reload_adds_and_removes_proxy(start, tmp_path):
    logged = start()
    path = tmp_path / "pagewise.conf"
    text = path.read_text()
    path.write_text(text.replace("127.0.0.1:0 proxy", "127.0.0.1:0"))
    logged.server.reload()
    assert logged.remote(b"") == "127.0.0.1"
    path.write_text(text)
    logged.server.reload()
    assert logged.remote(v1("192.0.2.1")) == "192.0.2.1"


def test_many_at_a_time(start):
    logged = start(workers=2)
    failed = []

    def ask(n):
        rnd = random.Random(n)
        try:
            for i in range(25):
                who = "192.0.2.%d" % rnd.randrange(250)
                header = rnd.choice([v1, v2, v2_crc])(who)
                logged.connect(header[:rnd.randrange(len(header))]).sock.close()
                with logged.connect(header + request("/small?%s" % who)) as c:
                    assert c.response().body == b"small"
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    wait_until(lambda: logged.path.read_text().count("\n") == 150, "the lines")
    for line in logged.path.read_text().splitlines():
        line = json.loads(line)
        assert line["target"] == "/small?" + line["remote"]


def test_curl_sends_a_header(start):
    logged = start()
    url = "http://%s:%d/small" % logged.server.address
    text = subprocess.run(["curl", "-s", "--haproxy-protocol", url], stdout=subprocess.PIPE,
                          check=True, timeout=harness.PATIENCE).stdout
    assert text == b"small"
    assert logged.remotes(1) == ["127.0.0.1"]


# --------------------------------------------------------------------- bad values


# ------------------------------------------------------------------- who may


def test_allow_and_deny_see_the_real_client(serve_conf, site):
    (site / "small").write_bytes(b"small")
    server = serve_conf({"workers": 1, "trusted_proxies": ["127.0.0.1"],
                         "listen": ["127.0.0.1:0 proxy"]},
                        [("s", {"root": site, "allow": ["192.0.2.0/24"]}, {})])
    for header, source, status in ((v1("192.0.2.1"), None, 200), (v2("198.51.100.1"), None, 403),
                                   (v1("192.0.2.1"), OTHER, 403), (b"PROXY UNKNOWN\r\n", None, 403)):
        with server.connect(source=source) as c:
            c.send(header)
            for _ in range(3):
                assert c.ask("/small").status == status
