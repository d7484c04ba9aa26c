"""Every byte is right on every file system, cold and warm, for root and for a
user who owns nothing: what can be asked about residency differs for each."""

import os

import pytest

import mounts
import tree as t
from harness import request
from responses import multipart

pytestmark = pytest.mark.slow

SIZES = [0, 1, 4097, 524289, t.LARGE]


@pytest.fixture(scope="module", params=mounts.params(mounts.KINDS))
def mount(request):
    with mounts.made(request.param) as made:
        for size in SIZES:
            t.sized(made.files, size)
        os.makedirs(os.path.join(made.files, "a/b/c"))
        t.write(os.path.join(made.files, "a/b/c/deep.txt"), b"deep")
        os.symlink("a/b/c/deep.txt", os.path.join(made.files, "link"))
        yield made


@pytest.fixture(params=["root", "nobody"])
def user(request):
    if os.geteuid() != 0:
        if request.param == "root":
            pytest.skip("not root")
        return None
    return None if request.param == "root" else request.param


@pytest.fixture
def server(mount, user, send_path, serve):
    mount.cold()
    server = serve(
        "--root", mount.dir, "--send-path", send_path, "--workers", "1", "--autoindex", user=user
    )
    yield server
    server.stop()


def test_cold_and_warm_files_are_right(mount, server):
    last = os.path.join(mount.dir, "%d.bin" % t.LARGE)
    if mount.kind != "tmpfs":
        assert mounts.resident(last) == 0
    for _ in range(2):
        with server.connect() as c:
            for size in SIZES:
                response = c.ask("/%d.bin" % size)
                assert response.status == 200
                assert response.body == t.content(size, size)
            c.finish()


def test_cold_ranges_are_right(mount, server):
    data = t.content(t.LARGE, t.LARGE)
    name = "/%d.bin" % t.LARGE
    end = t.LARGE - 1
    for first, last in [(4 * t.MIB - 1, 4 * t.MIB), (524287, 1048577), (0, 0), (end, end)]:
        response = server.get(name, fields={"Range": "bytes=%d-%d" % (first, last)})
        assert response.body == data[first : last + 1]
    parts = multipart(server.get(name, fields={"Range": "bytes=3000000-3700000,2000000-2000001"}))
    assert [p.body for p in parts] == [data[3000000:3700001], data[2000000:2000002]]


def test_cold_names_are_found(mount, server):
    """Path lookup, directory listing and symlinks from the disk."""
    assert server.get("/a/b/c/deep.txt").body == b"deep"
    assert server.get("/link").body == b"deep"
    assert server.get("/a/b").status == 301
    assert b"deep.txt" in server.get("/a/b/c/").body
    assert server.get("/a/b/c/missing").status == 404
    assert server.get("/x/y/z").status == 404


@pytest.mark.slow
def test_many_clients_of_one_cold_file(mount, server):
    """Whoever misses the same window waits for the same read."""
    data = t.content(t.LARGE, t.LARGE)
    name = "/%d.bin" % t.LARGE
    connections = [server.connect() for _ in range(20)]
    for c in connections:
        c.send(request(name))
    # All of them at once: a head says when it was made, and the bodies take their time.
    heads = [c.read_head() for c in connections]
    for c, head in zip(connections, heads):
        assert c.read_body(head).body == data
        c.finish()


@pytest.mark.slow
def test_pages_that_are_dropped_in_mid_transfer_come_back(mount, server):
    data = t.content(t.LARGE, t.LARGE)
    name = "%d.bin" % t.LARGE
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/" + name) * 4)
        for _ in range(4):
            head = c.read_head()
            mounts.drop(os.path.join(mount.dir, name))
            assert c.read_body(head).body == data
        c.finish()
