"""SIGHUP: a symbolic link that was switched or a directory that was replaced is served
from then on, and nobody notices."""

import os
import re
import signal
import threading

import pytest

import tree as t
from harness import request, wait_until

BIG = 24 * t.MIB
REFUSED = r"pagewise: [^\n]*root: [^\n]*\npagewise: the old configuration stays in use\n"


class Release:
    """A directory with a file of its own bytes, and a link "current" to one."""

    def __init__(self, base, name):
        self.base = base
        self.path = base / name
        self.path.mkdir(parents=True)
        (self.path / "name").write_text(name)
        (self.path / ("only-" + name)).write_text(name)
        (self.path / "index.html").write_text("index of " + name)
        self.name = name

    def make_current(self):
        """As `ln -sfn` does it."""
        os.symlink(self.name, self.base / "new")
        os.rename(self.base / "new", self.base / "current")


def releases(base):
    one, two = Release(base, "one"), Release(base, "two")
    one.make_current()
    return one, two


def serves(server, name, **kw):
    return server.get("/name", **kw).body == name.encode()


@pytest.fixture
def deployed(serve, tmp_path):
    one, two = releases(tmp_path)
    return serve("--root", tmp_path / "current", "--workers", "1", "--autoindex"), one, two


def test_switched_link_is_noticed_at_sighup_and_not_before(deployed):
    server, one, two = deployed
    assert serves(server, "one")
    two.make_current()
    assert serves(server, "one")
    assert server.get("/only-two").status == 404
    server.reload()
    assert serves(server, "two")
    assert server.get("/").body == b"index of two"
    assert server.get("/only-two").status == 200
    assert server.get("/only-one").status == 404


def test_link_can_be_switched_again_and_back(deployed):
    server, one, two = deployed
    for release in [two, one, two, one]:
        release.make_current()
        server.reload()
        assert serves(server, release.name)


def test_replaced_directory_is_noticed(serve, tmp_path):
    one, two = Release(tmp_path, "one"), Release(tmp_path, "two")
    server = serve("--root", one.path, "--workers", "1", "--autoindex")
    (two.path / "index.html").unlink()
    assert serves(server, "one")
    os.rename(one.path, tmp_path / "old")
    os.rename(two.path, one.path)
    assert serves(server, "one")
    server.reload()
    assert serves(server, "two")
    assert b"only-two" in server.get("/").body


def test_open_connection_has_one_more_answer_of_the_old_root(deployed):
    server, _, two = deployed
    with server.connect() as c:
        assert c.ask("/name").body == b"one"
        two.make_current()
        server.reload()
        last = c.ask("/name")
        assert last.body == b"one" and last.closes
        c.eof()
    assert serves(server, "two")


@pytest.mark.slow
def test_download_is_finished_from_the_old_root(serve, tmp_path, send_path):
    one, two = releases(tmp_path)
    data = t.content(21, BIG)
    (one.path / "big").write_bytes(data)
    (two.path / "big").write_bytes(b"two")
    server = serve("--root", tmp_path / "current", "--workers", "1", "--send-path", send_path)
    with server.connect(rcvbuf=65536) as c:
        c.send(request("/big"))
        head = c.read_head()
        body = c.read_exactly(65536)
        two.make_current()
        server.reload()
        for entry in one.path.iterdir():
            entry.unlink()
        one.path.rmdir()
        assert server.get("/big").body == b"two"
        assert body + c.read_exactly(head.length - len(body)) == data
        c.eof()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_switch_under_load_loses_no_request(serve, tmp_path, workers):
    one, two = releases(tmp_path)
    server = serve("--root", tmp_path / "current", "--workers", str(workers))
    stop, wrong, seen = threading.Event(), [], set()

    def ask():
        try:
            while not stop.is_set():
                with server.connect() as c:
                    closes = False
                    while not (closes or stop.is_set()):
                        response = c.ask("/name")
                        closes = response.closes
                        seen.add(response.body)
                        if response.status != 200:
                            wrong.append(response)
                    c.finish(response)
        except Exception as error:  # of any kind: it is told in the main thread
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        for release in [two, one] * 5:
            release.make_current()
            server.reload()
            assert serves(server, release.name)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert seen == {b"one", b"two"}


def test_all_workers_have_the_new_root(serve, tmp_path):
    _, two = releases(tmp_path)
    server = serve("--root", tmp_path / "current", "--workers", "4")
    for _ in range(60):
        assert serves(server, "one")
    two.make_current()
    server.reload()
    for _ in range(60):
        assert serves(server, "two")


def test_removed_root_stays_in_use_and_the_cause_is_logged(deployed, tmp_path):
    server, one, two = deployed
    os.unlink(tmp_path / "current")
    server.signal(signal.SIGHUP)
    wait_until(lambda: "stays in use" in server.messages, "the message")
    assert serves(server, "one")
    assert str(tmp_path / "current") in server.messages
    assert os.strerror(2) in server.messages
    assert "reloaded" not in server.output
    two.make_current()
    server.reload()
    assert serves(server, "two")
    server.stop(messages=REFUSED)


def test_all_roots_are_switched_or_none(serve_conf, tmp_path):
    first = releases(tmp_path / "first")
    second = releases(tmp_path / "second")
    server = serve_conf(
        {"workers": 2},
        [
            ("a", {"names": ["a.example"], "root": tmp_path / "first" / "current"}, {}),
            ("b", {"names": ["b.example"], "root": tmp_path / "second" / "current"}, {}),
        ],
    )
    a, b = {"host": "a.example"}, {"host": "b.example"}
    second[1].make_current()
    server.reload()
    assert serves(server, "one", **a) and serves(server, "two", **b)

    os.unlink(tmp_path / "second" / "current")
    first[1].make_current()
    server.signal(signal.SIGHUP)
    wait_until(lambda: "stays in use" in server.messages, "the message")
    assert serves(server, "one", **a) and serves(server, "two", **b)
    server.stop(messages=REFUSED)


def test_old_process_closes_everything(deployed):
    server, _, two = deployed
    with server.connect() as c:
        assert c.ask("/name").body == b"one"
        two.make_current()
        server.reload()
        assert len(server.processes()) == 2
        c.eof()
    wait_until(lambda: len(server.processes()) == 1, "the old process to end")
    assert opened_below(server, two.path) and not opened_below(server, two.base / "one")


def opened_below(server, path):
    where = "/proc/%d/fd" % server.pid
    links = []
    for name in os.listdir(where):
        try:
            links.append(os.readlink(os.path.join(where, name)))
        except FileNotFoundError:
            pass
    return [x for x in links if re.match(re.escape(str(path)) + r"(/|$)", x)]


def test_many_signals_in_a_row_end_with_the_last_root(deployed):
    server, one, two = deployed
    for release in [one] * 49 + [two]:
        release.make_current()
        server.signal(signal.SIGHUP)
    wait_until(lambda: serves(server, "two"), "the last root")
