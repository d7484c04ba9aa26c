"""Settings change how a file is sent, never what is sent."""

import os

import pytest

import mounts
import tree as t
from harness import request, wait_until
from responses import multipart

SIZE = 3 * t.MIB + 5


@pytest.fixture
def file(site):
    path = str(site / "file.bin")
    t.write(path, t.content(6, SIZE))
    return path


SETTINGS = [
    {"readahead": "64K"},
    {"readahead": "100K"},
    {"readahead": "64M"},
    {"cache": "drop"},
    {"cache": "auto"},
    {"cache": "drop", "readahead": "64K", "threads": 1},
    {"open_files": 16},
    {"workers": 4, "cache": "drop"},
]


def label(settings):
    return " ".join("%s=%s" % item for item in settings.items())


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS, ids=label)
def test_bytes_are_right_with_every_setting(serve_conf, site, file, send_path, settings):
    top = {"workers": 1, **settings, "send_path": send_path}
    server = serve_conf(top, [("s", {"root": site}, {})])
    data = t.content(6, SIZE)
    mounts.drop(file)
    connections = [server.connect() for _ in range(4)]
    for c in connections:
        c.send(request("/file.bin") * 2)
        c.send(request("/file.bin", fields={"Range": "bytes=-9,99999-999999"}))
    for c in connections:
        assert c.response().body == data
        assert c.response().body == data
        parts = multipart(c.response())
        assert [p.body for p in parts] == [data[-9:], data[99999:1000000]]
        c.finish()


def test_dropping_evicts_only_fetched_pages(serve, site, file):
    pages = -(-SIZE // 4096)
    mounts.drop(file)
    if mounts.resident(file):
        pytest.skip("this file system keeps everything in memory")
    server = serve("--root", site, "--cache", "drop", "--workers", "1")
    assert server.get("/file.bin").length == SIZE
    # Not all of it at once: on the loopback the receiver holds pages as well.
    wait_until(lambda: mounts.resident(file) < pages, "pages to be dropped")


@pytest.mark.parametrize("cache", ["keep", "drop"])
def test_dropping_keeps_pages_that_were_resident_before(serve, site, file, cache):
    with open(file, "rb") as f:
        f.read()
    pages = mounts.resident(file)
    server = serve("--root", site, "--cache", cache, "--workers", "1")
    for _ in range(3):
        assert server.get("/file.bin").length == SIZE
    server.stop()
    assert mounts.resident(file) == pages


@pytest.mark.slow
def test_more_files_than_descriptors_are_kept(serve_conf, site, send_path):
    """The cache of open files lets go of none that is being sent."""
    count = 40
    for i in range(count):
        t.write(site / ("%d.bin" % i), t.content(i, 300000))
    server = serve_conf(
        {"open_files": 16, "workers": 1, "send_path": send_path}, [("s", {"root": site}, {})]
    )
    connections = [server.connect(rcvbuf=4096) for _ in range(count)]
    for i, c in enumerate(connections):
        c.send(request("/%d.bin" % i))
    for i, c in enumerate(connections):
        assert c.response().body == t.content(i, 300000)
        c.finish()
    wait_until(lambda: open_files(server, ".bin") <= 16, "descriptors to be closed")


def open_files(server, suffix):
    where = "/proc/%d/fd" % server.pid
    return sum(os.readlink(os.path.join(where, n)).endswith(suffix) for n in os.listdir(where))


def test_residency_check_of_a_device_is_logged_once(serve, site, file):
    server = serve("--root", site, "--workers", "2")
    for _ in range(5):
        server.get("/file.bin")
    device = os.stat(file).st_dev
    line = "pagewise: device %d:%d " % (os.major(device), os.minor(device))
    wait_until(lambda: line in server.output, "the line about the device")
    server.stop()
    assert server.final_output.count("pagewise: device ") == 1
