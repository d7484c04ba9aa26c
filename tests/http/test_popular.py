"""popular: the paths that are asked for most, as a list and as a map for HAProxy."""

import json
import subprocess
import time

import pytest

from admin import Admin
from harness import request
from hot import Hot, pipelined


@pytest.fixture
def counting(serve_conf, site):
    for name in ("a", "b", "c c", "index.html"):
        (site / name).write_text(name)

    def start(**top):
        server = serve_conf({"admin": "127.0.0.1:0", "popular": 3, **top}, [
            ("s", {"root": site}, {}), ('t"', {"names": ["t"], "root": site}, {})])
        return server, Admin(server)

    return start


def paths(admin):
    return [(x["site"], x["path"], x["requests"]) for x in json.loads(admin.ask("/popular").text)["paths"]]


def map_of(admin):
    return admin.ask("/popular.map").text.splitlines()


@pytest.mark.parametrize("hot_set", ["16M", 0])
def test_most_requested_paths_are_listed(counting, hot_set):
    """On one connection, so that most of them take the short way."""
    server, admin = counting(workers=1, hot_set=hot_set)
    assert (paths(admin), map_of(admin)) == ([], [])
    with server.connect() as c:
        for path, times in (("/a", 40), ("/b", 30), ("/", 20), ("/c%20c", 2)):
            for _ in range(times):
                assert c.ask(path).status == 200
    assert paths(admin) == [("s", "/a", 40), ("s", "/b", 30), ("s", "/", 20)]
    assert map_of(admin) == ["/a 40", "/b 30", "/ 20"]
    assert admin.value("pagewise_popular_requests_total") == 92
    assert admin.ask("/popular").headers["Content-Type"] == "application/json"
    assert admin.ask("/popular", "POST").status == 405


def aliases(name, count):
    """Targets of one file, which the list has apart."""
    for mask in range(1, count + 1):
        yield "/" + "".join("%%%02x" % ord(char) if mask >> i & 1 else char for i, char in enumerate(name))


@pytest.mark.slow
@pytest.mark.http1("its responses are sent together")
def test_path_whose_response_fills_the_socket_is_listed(counting, site):
    """The request of this response has moved in the buffer when it is counted.

    The path has no counter then: those of other paths, which were requested more often, have replaced it.
    """
    large = ["/large%02d" % i for i in range(60)]  # together more than the socket has memory for
    for path in large:
        (site / path[1:]).write_bytes(bytes(60000))
    (site / "aliased00").write_text("x")
    (site / "small").write_bytes(bytes(1000))
    server, admin = counting(workers=1, hot_set="16M", popular=len(large) + 1)
    with server.connect(rcvbuf=16384) as c:
        Hot(server).warm(c, "/small")
        for path in large * 3:
            assert c.ask(path).status == 200
        for path in aliases("aliased00", 300):
            c.send(request(path) * 4)
            assert [c.response().status for _ in range(4)] == [200] * 4
        c.send(pipelined(large, method="HEAD"))  # so that all are fresh
        for _ in large:
            assert c.response("HEAD").status == 200
        c.send(pipelined(path for name in large for path in ("/small", name)))
        time.sleep(0.2)
        for _ in range(2 * len(large)):
            assert c.response().status == 200
        for path in large * 6:
            assert c.ask(path).status == 200
    assert {path for _, path, _ in paths(admin)} == {"/small", *large}


def test_workers_are_added_up(counting):
    server, admin = counting(workers=2)
    for _ in range(20):
        server.get("/a")
        server.get("/b?x=1")
    server.get("/a", host="t")
    assert paths(admin) == [("s", "/a", 20), ("s", "/b", 20), ('t"', "/a", 1)]
    assert map_of(admin) == ["/a 20", "/b 20"]


def test_missing_files_and_other_methods_do_not_count(counting):
    server, admin = counting()
    for method, path in (("GET", "/missing"), ("HEAD", "/a"), ("OPTIONS", "/a"), ("POST", "/a")):
        server.get(path, method)
    server.get("/a", fields={"Range": "bytes=0-0"})
    server.get("/a", fields={"Range": "bytes=9-"})
    assert paths(admin) == [("s", "/a", 1)]


def test_map_has_no_text_that_haproxy_interprets(counting, site):
    names = ["a;quit", "a\\b", "a'$(b)", "%41", 'a"', "a<b", "é"]
    for name in ["a;quit", "a\\b", "a'$(b)", "A", 'a"', "a<b"]:
        (site / name).write_text("x")
    server, admin = counting(popular=100)
    asked = ["/" + name for name in names if name.isascii()]
    for path in asked:
        assert server.get(path).status == 200
    assert sorted(x[1] for x in paths(admin)) == sorted(asked)
    assert map_of(admin) == ["/%41 1", "/a'$(b) 1"]


def test_without_the_key_there_is_no_list(counting):
    _, admin = counting(popular=0)
    assert admin.ask("/popular").status == admin.ask("/popular.map").status == 404
    assert "popular" not in admin.ask("/metrics").text


@pytest.mark.needs("haproxy")
def test_haproxy_takes_the_map(counting, tmp_path):
    server, admin = counting()
    server.get("/a")
    (tmp_path / "popular.map").write_text(admin.ask("/popular.map").text)
    conf = tmp_path / "haproxy.cfg"
    conf.write_text("""
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend f
    bind unix@%s
    http-request return status 204 if { path,map_str_int(%s,0) -m int gt 0 }
""" % (tmp_path / "s", tmp_path / "popular.map"))
    done = subprocess.run(["haproxy", "-c", "-f", str(conf)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
