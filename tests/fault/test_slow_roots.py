"""SIGHUP while a root leads to a file system that hangs."""

import os
import signal

import pytest

import tree as t
from harness import wait_until
from test_slowfs import HOT, fast, slow  # fixtures

HUNG, OTHER = "hung", "other"


class Links:
    """Two roots behind links, both at first on a file system that answers."""

    def __init__(self, base, fast):
        self.base, self.fast = base, fast
        for name in (HUNG, OTHER):
            self.point(name, fast)

    def path(self, name):
        return self.base / name

    def point(self, name, target):
        os.symlink(target, self.base / "new")
        os.rename(self.base / "new", self.path(name))


@pytest.fixture
def links(slow, fast, tmp_path):
    return Links(tmp_path, fast)


@pytest.fixture
def serve_links(slow, links, serve_conf):
    def start(**top):
        sites = [(n, {"names": [n], "root": links.path(n)}, {}) for n in (HUNG, OTHER)]
        return serve_conf({"workers": 2, "access_log": "off", **top}, sites)

    yield start
    slow.release()


def switch(server, links, slow, tmp_path):
    """The first root is opened for as long as the test likes."""
    second = tmp_path / "second"
    second.mkdir()
    (second / "new").write_bytes(b"new")
    slow.hang("lookup", "dir")
    links.point(HUNG, os.path.join(slow.dir, "dir"))
    links.point(OTHER, second)
    server.signal(signal.SIGHUP)
    slow.wait_held("lookup")


def test_hung_root_delays_only_the_reload(serve_links, links, slow, tmp_path):
    server = serve_links()
    switch(server, links, slow, tmp_path)
    for _ in range(20):
        assert server.get("/hot.bin", host=HUNG).body == t.content(9, HOT)
    assert server.get("/new", host=OTHER).status == 404
    slow.release()
    wait_until(lambda: "pagewise: reloaded\n" in server.output, "the reload")
    assert server.get("/file.bin", host=HUNG).body == t.content(4, HOT)
    assert server.get("/new", host=OTHER).status == 200


def test_hung_root_does_not_delay_the_shutdown(serve_links, links, slow, tmp_path):
    server = serve_links(shutdown_timeout=1)
    switch(server, links, slow, tmp_path)
    server.terminate()
    assert server.wait() == 0
    server.stop()
