"""How fast clients are served, and how often: rate, client_rate, burst, request_rate.

Nothing here depends on how fast the machine is: what has come by a time is never more than was
permitted by then, seen from a client that began before the server did; and what has to go on without
waiting would take far longer than a test may if it did.
"""

import contextlib
import os
import selectors
import signal
import time

import pytest

from harness import request, wait_until

K = 1024
HEAD = 1024  # bytes, more than a head has
OTHER = "127.0.0.2"


def share(rate):
    return max(rate // 8, min(256 * K, 2 * rate))


@pytest.fixture
def root(tmp_path):
    top = tmp_path / "site"
    (top / "v").mkdir(parents=True)
    for name, size in (("a.txt", 10), ("v/a.txt", 10), ("64.bin", 64 * K), ("512.bin", 512 * K),
                       ("v/200.bin", 200 * K)):
        (top / name).write_bytes(bytes(i * 7 % 251 for i in range(size)))
        os.utime(top / name, (1_600_000_000, 1_600_000_000))
    return top


@pytest.fixture
def site(serve_conf, root):
    def start(settings=None, locations=None, **top):
        return serve_conf(top, [("s", {"root": root, "autoindex": True, **(settings or {})}, locations or {})])

    return start


def download(server, targets, rate, burst=0, source="127.0.0.1", fields=()):
    """Each target by a connection of its own, all at once; no byte before its time."""
    begin = time.monotonic()
    connections = [server.connect(source=source) for _ in targets]
    which = selectors.DefaultSelector()
    for c, target in zip(connections, targets):
        c.send(request(target, fields=[("Connection", "close"), *fields]))
        which.register(c.sock, selectors.EVENT_READ, c)
    total = 0
    while which.get_map():
        for key, _ in which.select(30):
            before = len(key.data.buf)
            if not key.data.fill():
                which.unregister(key.fileobj)
            total += len(key.data.buf) - before
            permitted = rate * (time.monotonic() - begin) + burst + share(rate) + HEAD * len(targets)
            assert total <= permitted, (total, permitted)
        assert time.monotonic() < begin + 60
    answers = [c.response() for c in connections]
    for c in connections:
        c.sock.close()
    return answers


def bodies(answers):
    assert {answer.status for answer in answers} == {200}
    return [answer.body for answer in answers]


@pytest.mark.slow
def test_rate_is_of_each_connection(site, root, send_path):
    server = site({"rate": "512K"}, send_path=send_path)
    whole = (root / "512.bin").read_bytes()
    for _ in range(2):
        assert bodies(download(server, ["/512.bin"], 512 * K)) == [whole]
    assert bodies(download(server, ["/512.bin"] * 4, 4 * 512 * K, 3 * share(512 * K))) == [whole] * 4


@pytest.mark.slow
def test_requests_of_one_connection_share_its_rate(site, root):
    server = site({"rate": "128K"})
    begin = time.monotonic()
    with server.connect() as c:
        for n in range(1, 6):
            assert c.ask("/64.bin").body == (root / "64.bin").read_bytes()
            assert n * 64 * K <= 128 * K * (time.monotonic() - begin) + share(128 * K)


@pytest.mark.slow
def test_client_rate_is_of_all_connections_of_a_client(site, root):
    server = site({"client_rate": "512K"}, workers=4)
    whole = (root / "512.bin").read_bytes()
    assert bodies(download(server, ["/512.bin"] * 3, 512 * K)) == [whole] * 3
    assert bodies(download(server, ["/512.bin"] * 2, 512 * K, source=OTHER)) == [whole] * 2


@pytest.mark.slow
def test_both_rates(site, root):
    server = site({"rate": "128K", "client_rate": "1M"})
    assert len(bodies(download(server, ["/512.bin"], 128 * K))[0]) == 512 * K


def test_rate_of_one_client_does_not_slow_another(site):
    """The first would take more than an hour, and so would the second after it."""
    server = site({"client_rate": "1K", "burst": "600K"})
    with server.connect() as c:
        c.send(request("/512.bin"))
        c.read_head()
        c.read_exactly(512 * K)
        c.send(request("/512.bin"))
        c.read_head()
        assert len(bodies(download(server, ["/512.bin"], 1 * K, 600 * K, source=OTHER))[0]) == 512 * K


def test_burst_comes_at_once(site):
    for settings in ({"rate": "1K"}, {"client_rate": "1K"}):
        server = site({**settings, "burst": "512K"})
        assert len(bodies(download(server, ["/512.bin"], K, 512 * K))[0]) == 512 * K


def test_rate_of_a_location(site):
    server = site({"rate": "1K"}, {"/v/": {"rate": 0}})
    assert len(server.get("/v/200.bin").body) == 200 * K
    server = site({}, {"/v/": {"rate": "1K"}})
    assert len(server.get("/512.bin").body) == 512 * K


@pytest.mark.slow
def test_locations_that_inherit_a_clients_rate_share_it(site):
    server = site({"client_rate": "256K"}, {"/v/": {"dotfiles": True}})
    answers = download(server, ["/v/200.bin", "/512.bin"], 256 * K)
    assert [len(body) for body in bodies(answers)] == [200 * K, 512 * K]


@pytest.mark.slow
def test_a_location_with_a_rate_of_its_own_has_its_own(site):
    server = site({"client_rate": "1K", "burst": "64K"}, {"/v/": {"client_rate": "1K", "burst": "256K"}})
    with server.connect() as c:
        c.send(request("/512.bin"))
        c.read_head()
        assert len(bodies(download(server, ["/v/200.bin"], K, 256 * K))[0]) == 200 * K


def test_all_kinds_of_bodies(site, root):
    for n in range(300):
        (root / "v" / ("%03d" % n + "x" * 150)).write_bytes(b"")
    server = site({"rate": "128K"})
    size = len(bodies(download(server, ["/v/"], 128 * K))[0])
    assert size > 100 * K
    ranges = [("Range", "bytes=0-99999,200000-299999")]
    (answer,) = download(server, ["/512.bin"], 128 * K, fields=ranges)
    assert answer.status == 206 and len(answer.body) > 200000
    (answer,) = download(server, ["/512.bin"], 128 * K, fields=[("Range", "bytes=1-200000")])
    assert answer.status == 206 and answer.body == (root / "512.bin").read_bytes()[1:200001]


@pytest.mark.http1("streams share the burst")
def test_answers_without_a_body_cost_no_bytes(site):
    """Each would have to wait for hours."""
    server = site({"client_rate": "1K", "burst": "600K"})
    with server.connect() as c, server.connect() as other:
        c.send(request("/512.bin") * 2)
        c.read_head()
        c.read_exactly(512 * K)
        for _ in range(30):
            assert other.ask("/512.bin", "HEAD").length == 512 * K
            assert other.ask("/512.bin", fields=[("If-None-Match", "*")]).status == 304
            assert other.ask("/none").status == 404
            assert other.ask("/v").status == 301


def test_a_pause_is_not_held_against_the_client(site):
    server = site({"rate": "64K"}, send_timeout=1, min_send_rate="1M")
    assert len(bodies(download(server, ["/v/200.bin"], 64 * K))[0]) == 200 * K


def sockets(server):
    count = 0
    for pid in server.processes():
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                count += os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")
    return count


def test_unsent_bytes_of_reset_connections_return_to_the_rate(site):
    """What was taken by connections that are reset would hold others up for minutes."""
    server = site({"client_rate": "1K"}, {"/v/": {"client_rate": "0"}}, workers=1)
    before = sockets(server)
    connections = [server.connect() for _ in range(200)]
    for c in connections:
        c.send(request("/512.bin"))
    # Of the same worker, after them.
    for _ in range(3):
        assert server.get("/v/a.txt").status == 200
    for c in connections:
        c.reset()
    # Who asks before they are gone has to wait for its turn behind them.
    wait_until(lambda: sockets(server) <= before, "the connections to be closed")
    assert server.get("/a.txt").status == 200


def test_ends_in_a_pause(site):
    server = site({"rate": "1K"}, shutdown_timeout=1)
    with server.connect() as c:
        c.send(request("/512.bin"))
        c.read_head()
        server.terminate()
        assert len(c.drain()) < 512 * K
    assert server.wait() == 0
    server.stop()


@pytest.mark.slow
def test_a_reload_lets_a_paced_answer_end(site, root):
    server = site({"rate": "128K"})
    with server.connect() as c:
        c.send(request("/512.bin"))
        c.read_head()
        server.signal(signal.SIGHUP)
        assert c.read_exactly(512 * K) == (root / "512.bin").read_bytes()


# ------------------------------------------------------------------ requests


def ask(server, target="/a.txt", source="127.0.0.1", method="GET"):
    with server.connect(source=source) as c:
        answer = c.ask(target, method)
        c.finish(answer)
        return answer


@pytest.mark.parametrize("rate, most", [("1/h", 3600), ("2/m", 30), ("1/m", 60)])
def test_429_after_the_burst(site, rate, most):
    server = site({"request_rate": rate, "request_burst": 3}, workers=4)
    answers = [ask(server) for _ in range(5)]
    assert [answer.status for answer in answers] == [200] * 3 + [429] * 2
    assert all(1 <= int(answer.get("Retry-After")) <= most for answer in answers[3:])
    assert [ask(server, source=OTHER).status for _ in range(4)] == [200] * 3 + [429]


def test_of_one_connection_each_request_counts(site):
    server = site({"request_rate": "1/h", "request_burst": 5})
    with server.connect() as c:
        c.send(request("/a.txt") * 8)
        assert [c.response().status for _ in range(8)] == [200] * 5 + [429] * 3


def test_every_kind_of_request_counts(site):
    server = site({"request_rate": "1/h", "request_burst": 5})
    found = [ask(server, *args).status for args in (
        ("/none",), ("/v/",), ("/v",), ("/a.txt", "127.0.0.1", "HEAD"), ("/a.txt", "127.0.0.1", "OPTIONS"), ("/a.txt",))]
    assert found == [404, 200, 301, 200, 204, 429]


def test_requests_of_other_locations_do_not_count(site):
    server = site({}, {"/v/": {"request_rate": "1/h", "request_burst": 1}})
    assert [ask(server, "/v/a.txt").status for _ in range(3)] == [200, 429, 429]
    assert [ask(server).status for _ in range(5)] == [200] * 5


def test_locations_that_inherit_share_and_others_do_not(site):
    server = site({"request_rate": "1/h", "request_burst": 2},
                  {"/v/": {"dotfiles": True}, "= /64.bin": {"request_rate": "1/h"}, "= /512.bin": {"request_rate": "off"}})
    assert [ask(server, t).status for t in ("/a.txt", "/v/a.txt", "/a.txt")] == [200, 200, 429]
    assert [ask(server, "/64.bin").status for _ in range(3)] == [200, 200, 429]
    assert [ask(server, "/512.bin").status for _ in range(5)] == [200] * 5


def test_requests_are_accepted_again_after_a_while(site):
    server = site({"request_rate": "2/s", "request_burst": 1})
    begin, good = time.monotonic(), 0
    while good < 4:
        good += ask(server).status == 200
        assert good <= 1 + 2 * (time.monotonic() - begin)
        assert time.monotonic() < begin + 60


def test_denied_clients_do_not_count(site):
    server = site({"request_rate": "1/h", "request_burst": 1, "deny": ["127.0.0.1"]})
    assert [ask(server).status for _ in range(3)] == [403] * 3


def test_behind_a_proxy_it_is_the_client_that_counts(site):
    server = site({"request_rate": "1/h", "request_burst": 2, "deny": ["192.0.2.66"]},
                  trusted_proxies=["127.0.0.1"], client_address="x-forwarded-for")
    with server.connect() as c:
        found = [c.ask("/a.txt", fields=[("X-Forwarded-For", who)]).status for who in (
            "192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.1", "192.0.2.66", "192.0.2.2", "2001:db8::1", "2001:db8::2",
            "2001:db8::3")]
    assert found == [200, 200, 200, 429, 403, 200, 200, 200, 429]


@pytest.mark.parametrize("prefix, most", [
    ("2001:db8:1:1%02x::1", 8), ("2001:db8:1:%x00::1", 16), ("2001:db8:%x::1", 80), ("192.0.2.%d", 80)])
def test_of_ipv6_a_56_has_four_times_the_rate_and_a_48_eight_times(site, prefix, most):
    """40 clients ask two times each, which is what one may."""
    server = site({"request_rate": "1/h", "request_burst": 2},
                  trusted_proxies=["127.0.0.1"], client_address="x-forwarded-for")
    with server.connect() as c:
        found = [c.ask("/a.txt", fields=[("X-Forwarded-For", prefix % i)]).status for i in range(1, 41) for _ in range(2)]
        assert sorted(found) == [200] * most + [429] * (80 - most)
        # What the network refused was not taken from the client.
        assert c.ask("/a.txt", fields=[("X-Forwarded-For", "2001:db8:ffff::1")]).status == 200


@pytest.mark.slow
def test_networks_of_ipv6_share_a_client_rate(site):
    """Sixteen clients of one /48: 1 MiB at 256 KiB/s, where each alone would take two seconds."""
    server = site({"client_rate": "32K"}, trusted_proxies=["127.0.0.1"], client_address="x-forwarded-for")
    begin = time.monotonic()
    clients = [server.connect() for _ in range(16)]
    for i, c in enumerate(clients):
        c.send(request("/64.bin", fields=[("X-Forwarded-For", "2001:db8:1:%x00::1" % (i + 1))]))
    for c in clients:
        assert c.response().status == 200
    assert time.monotonic() - begin > 3
