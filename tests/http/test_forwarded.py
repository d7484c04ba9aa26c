"""client_address: whom trusted_proxies name in X-Forwarded-For or Forwarded, and nobody else."""

import json
import random
import re

import pytest

from harness import request, wait_until
from hot import Hot
from limits import is_refused

TRUSTED = ["127.0.0.1", "10.0.0.0/8", "2001:db8::/32", "unix:"]
OTHER = "127.0.0.9"  # not trusted


class Logged:
    """A server, and the addresses in its log."""

    def __init__(self, server, path):
        self.server, self.path, self.seen = server, path, 0

    def lines(self, n):
        """The next n lines: (target, remote)."""
        wait_until(lambda: self.path.read_text().count("\n") >= self.seen + n, "the lines")
        new = self.path.read_text().splitlines()[self.seen:]
        assert len(new) == n, new
        self.seen += n
        objects = [json.loads(line) for line in new]
        return [(x["target"], x["remote"]) for x in objects]

    def warm(self, *targets):
        """Their answers are ready; the lines about that are not looked at."""
        hot = Hot(self.server)
        hot.connect(*targets).finish()
        self.seen = int(hot.admin.value("pagewise_requests_total"))
        wait_until(lambda: self.path.read_text().count("\n") >= self.seen, "the lines")

    def remote(self, fields=(), source=None, address=None, **kw):
        with self.server.connect(address, source=source) as c:
            c.finish(c.ask("/small", fields=fields, **kw))
        return self.lines(1)[0][1]


@pytest.fixture
def start(serve_conf, site, tmp_path):
    (site / "small").write_bytes(b"small")
    (site / "other").write_bytes(b"other")

    def start(key="x-forwarded-for", **top):
        log = tmp_path / "log"
        top = {"workers": 1, "access_log": log, "log_format": "json", "trusted_proxies": TRUSTED,
               "client_address": key, "admin": "127.0.0.1:0", **top}
        return Logged(serve_conf(top, [("s", {"root": site}, {})]), log)

    return start


def x(value):
    return [("X-Forwarded-For", value)]


def forwarded(value):
    return [("Forwarded", value)]


# --------------------------------------------------------------------- whose word


def test_a_trusted_peer_names_its_client(start):
    assert start().remote(x("192.0.2.1")) == "192.0.2.1"


def test_fields_of_untrusted_peers_are_ignored(start):
    logged = start()
    assert logged.remote(x("192.0.2.1"), source=OTHER) == OTHER
    assert logged.remote(x("127.0.0.1"), source=OTHER) == OTHER


def test_without_the_key_nothing_is_read(start):
    assert start("off").remote(x("192.0.2.1") + forwarded("for=192.0.2.2")) == "127.0.0.1"


def test_only_the_field_of_the_key_counts(start):
    both = x("192.0.2.1") + forwarded("for=192.0.2.2")
    assert start().remote(both) == "192.0.2.1"


def test_forwarded(start):
    logged = start("Forwarded")
    both = x("192.0.2.1") + forwarded("for=192.0.2.2")
    assert logged.remote(both) == "192.0.2.2"
    assert logged.remote(forwarded('for="[2001:db9::1]:80";proto=https, for=10.0.0.1')) \
        == "2001:db9::1"
    assert logged.remote(x("192.0.2.1")) == "127.0.0.1"


def test_a_peer_on_a_unix_socket(start, tmp_path):
    path = str(tmp_path / "s")
    logged = start(listen=["127.0.0.1:0", "unix:" + path])
    assert logged.remote(x("192.0.2.1"), address=path) == "192.0.2.1"
    assert logged.remote(address=path) == "unix:"


def test_a_unix_socket_that_is_not_trusted(start, tmp_path):
    path = str(tmp_path / "s")
    logged = start(listen=["unix:" + path], trusted_proxies=["127.0.0.1"])
    assert logged.remote(x("192.0.2.1"), address=path) == "unix:"


# ------------------------------------------------------------------ which address


# tests/unit/test_forwarded.c has all forms.
ROWS = [("6.6.6.6, 192.0.2.1, 10.1.1.1, 10.1.1.2", "192.0.2.1"), ("10.1.1.1, 10.1.1.2", "10.1.1.1"),
        ("192.0.2.1, unknown, 10.1.1.1", "10.1.1.1"), ("garbage", "127.0.0.1"), ("", "127.0.0.1"),
        ("::ffff:192.0.2.7", "192.0.2.7")]


@pytest.mark.parametrize("list, client", ROWS, ids=[row[0] or "empty" for row in ROWS])
def test_the_last_untrusted_address_is_the_client(start, list, client):
    assert start().remote(x(list)) == client


def test_several_fields_are_one_list(start):
    logged = start()
    assert logged.remote(x("6.6.6.6") + x("192.0.2.1, 10.1.1.1") + x("10.1.1.2")) == "192.0.2.1"
    assert logged.remote(x("192.0.2.1") + [("Accept", "a")] + x("unknown") + [("Accept", "b")]
                         + x("10.1.1.2")) == "10.1.1.2"
    fields = [pair for i in range(40) for pair in x("10.1.1.%d" % i)]
    assert logged.remote(fields) == "10.1.1.0"


def test_its_name_is_compared_without_case(start):
    assert start().remote([("x-FORWARDED-for", "192.0.2.1")]) == "192.0.2.1"


# ------------------------------------------------------------------ which answers


def test_every_log_line_has_the_client_address(start):
    logged = start()
    fields = x("192.0.2.1")
    for status, kw in ((200, {}), (404, {"target": "/none"}), (405, {"method": "POST"}),
                       (204, {"method": "OPTIONS"}), (400, {"target": "/%zz"}),
                       (206, {"fields": fields + [("Range", "bytes=0-0")]}),
                       (413, {"method": "POST", "fields": fields + [("Content-Length", 1 << 20)]})):
        with logged.server.connect() as c:
            kw = {"fields": fields, **kw}
            assert c.ask(kw.pop("target", "/small"), kw.pop("method", "GET"), **kw).status in (
                status, 405)
        assert logged.lines(1)[0][1] == "192.0.2.1"


def test_a_head_that_is_refused_has_the_peer(start):
    logged = start()
    with logged.server.connect() as c:
        c.send(b"GET /small HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\nbad\r\n\r\n")
        assert c.response().status == 400
    assert logged.lines(1)[0][1] == "127.0.0.1"


@pytest.mark.parametrize("hot", ["0", "16M"])
@pytest.mark.slow
def test_requests_on_one_connection_have_their_own(start, hot):
    """Pipelined, with the same and with other addresses, with ready answers and without."""
    logged = start(hot_set=hot)
    if hot != "0":
        logged.warm("/small", "/other")
    rnd = random.Random(7)
    clients = ["192.0.2.%d" % i for i in range(5)] + ["2001:db9::%x" % i for i in range(1, 4)]
    with logged.server.connect() as c:
        for i in range(30):
            batch = []
            for j in range(rnd.randrange(1, 40)):
                who = rnd.choice(clients + [None])
                target = "/%s?%d-%d" % (rnd.choice(["small", "other"]), i, j)
                if rnd.random() < 0.5:
                    target = target.split("?")[0]
                batch.append((target, who or "127.0.0.1", x(who) if who else []))
            c.send(b"".join(request(target, fields=fields) for target, _, fields in batch))
            for target, *_ in batch:
                assert c.response().body == target[1:6].encode()
            assert logged.lines(len(batch)) == [(target, who) for target, who, _ in batch]
        c.finish()


@pytest.mark.slow
def test_the_same_bytes_from_a_trusted_peer_and_from_another(start):
    """What is known of a block of fields is known to all connections."""
    logged = start()
    logged.warm("/small")
    for i in range(12):
        source = [None, OTHER][i % 2]
        expected = ["192.0.2.1", OTHER][i % 2]
        with logged.server.connect(source=source) as c:
            for _ in range(3):
                assert c.ask("/small", fields=x("192.0.2.1")).status == 200
            c.finish()
        assert logged.lines(3) == [("/small", expected)] * 3


def test_a_cached_response_to_a_slow_reader(start, site):
    """It goes on as every other; the block of fields may be forgotten by then."""
    big = bytes(range(256)) * 200
    (site / "big").write_bytes(big)
    logged = start()
    fields = x("192.0.2.1")
    logged.warm("/big", "/small")
    with logged.server.connect(rcvbuf=4096) as c:
        n = 120
        c.send(request("/big", fields=fields) * n)
        for i in range(n):
            assert c.response().body == big
            if i == 3:
                for k in range(300):
                    logged.server.get("/small", fields=x("198.51.100.%d" % (k % 250)))
        c.finish()
    lines = logged.lines(n + 300)
    assert lines.count(("/big", "192.0.2.1")) == n
    assert all(target == "/small" for target, who in lines if who != "192.0.2.1")


def test_heads_that_come_byte_by_byte(start):
    logged = start()
    with logged.server.connect() as c:
        for who in ("192.0.2.1", "192.0.2.2"):
            for byte in request("/small", fields=x("%s, 10.0.0.1" % who)):
                c.send(bytes([byte]))
            assert c.response().status == 200
        c.finish()
    assert logged.lines(2) == [("/small", "192.0.2.1"), ("/small", "192.0.2.2")]


def test_combined_format_and_a_cut_answer(serve_conf, site, tmp_path):
    (site / "large").write_bytes(bytes(16 << 20))
    log = tmp_path / "log"
    server = serve_conf({"workers": 1, "access_log": log, "trusted_proxies": TRUSTED,
                         "client_address": "x-forwarded-for"}, [("s", {"root": site}, {})])
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/large", fields=x("192.0.2.1")))
        c.read_head()
        c.reset()
    wait_until(lambda: log.read_text().count("\n") == 1, "the line")
    assert log.read_text().startswith("192.0.2.1 - - [")


# ------------------------------------------------------------------------- limits


REFUSED = (r"pagewise: warning: refused a connection from %s: "
           r"max_connections_per_address reached \(1\); raise it, if many clients share that address\n")


@pytest.mark.slow
def test_a_trusted_proxy_is_not_counted_by_its_address(start):
    server = start(max_connections_per_address=1).server
    held = [server.connect() for _ in range(5)]
    for c in held:
        assert c.ask("/small").status == 200
    first = server.connect(source=OTHER)
    assert first.ask("/small").status == 200
    assert is_refused(server, OTHER)
    server.stop(messages=REFUSED % re.escape(OTHER))


# ------------------------------------------------------------------- who may


def test_allow_and_deny_see_the_real_client(serve_conf, site):
    """Also where the answer of the same file is ready for others."""
    (site / "small").write_bytes(b"small")
    (site / "in").mkdir()
    (site / "in" / "small").write_bytes(b"inside")
    server = serve_conf({"workers": 1, "trusted_proxies": TRUSTED,
                         "client_address": "x-forwarded-for"},
                        [("s", {"root": site}, {"/in/": {"allow": ["192.0.2.0/24", "127.0.0.9"],
                                                         "deny": ["192.0.2.66"]}})])
    with server.connect() as c:
        for _ in range(3):
            for list, status in (("192.0.2.1", 200), ("192.0.2.66", 403), ("198.51.100.1", 403),
                                 ("192.0.2.1, 198.51.100.1", 403), ("198.51.100.1, 192.0.2.1", 200),
                                 ("192.0.2.1, unknown", 403), ("192.0.2.1, 10.0.0.1", 200)):
                assert c.ask("/in/small", fields=x(list)).status == status, list
            assert c.ask("/small", fields=x("192.0.2.66")).status == 200
            assert c.ask("/in/small").status == 403
        c.finish()
    # An untrusted peer cannot get in, or be kept out, by what it says.
    with server.connect(source=OTHER) as c:
        assert c.ask("/in/small", fields=x("192.0.2.66")).status == 200
    with server.connect(source="127.0.0.8") as c:
        assert c.ask("/in/small", fields=x("192.0.2.1")).status == 403
