"""The index at the end of an MP4 file is fetched with its start: a player that asks for it next gets it
although the disk hangs by then, and the disk is read no more often than that."""

import struct

import pytest

import mounts
import tree as t
from harness import wait_until
from hung_disk import LATE, SIZE, disk, make_image  # fixtures
from test_pending import serve_disk  # fixtures
from test_slowfs import fast, slow  # fixtures

INDEX = LATE + 12345  # behind the media data
END = SIZE - INDEX
WINDOW = 2 * t.MIB
FORMATS = {0: b"ftyp", 1: b"RIFF"}  # of cold-N.bin


def film(n):
    box = struct.pack(">I4s24xI4sQ", 32, FORMATS.get(n, b"ftyp"), 1, b"mdat", INDEX - 32)
    return box + t.content(n, SIZE)[len(box):]


@pytest.fixture(scope="module")
def disk_image(tmp_path_factory):
    return make_image(tmp_path_factory.mktemp("films"), film, b"hot")


def part(server, n, first, last):
    answer = server.get("/cold-%d.bin" % n, host="disk", fields={"Range": "bytes=%d-%d" % (first, last)})
    assert answer.status == 206 and answer.body == film(n)[first:last + 1]


def pages(first, end):
    return -(-end // 4096) - first // 4096


@pytest.mark.parametrize("probe", [1, 65535])  # as players ask at first
@pytest.mark.parametrize("path_name", ["nodiskio", "splice", "uring"])
def test_index_arrives_without_the_disk(serve_disk, disk, path_name, probe):
    server = serve_disk(path_name, mp4_index=True)
    disk.cold(0)
    part(server, 0, 0, probe)
    want = pages(0, probe + 1) + pages(INDEX, SIZE)
    wait_until(lambda: mounts.resident(disk.path(0)) >= want, "the index to be in memory")
    disk.hang()
    reads = disk.slow.command("seen", "read")
    part(server, 0, INDEX, SIZE - 1)
    assert disk.slow.command("seen", "read") == reads
    assert mounts.resident(disk.path(0)) == want


def read_by(server, disk, n, first=0):
    """How often the disk is read until all that the server asked for is there."""
    disk.cold(n)
    before = disk.slow.command("seen", "read")
    part(server, n, first, first + 15)
    server.stop()
    return disk.slow.command("seen", "read") - before


@pytest.mark.parametrize("key, n, first", [(False, 0, 0), (True, 1, 0), (True, 0, WINDOW)])
def test_nothing_else_is_read(serve_disk, disk, key, n, first):
    """Without the key, of another format, and from the middle."""
    server = serve_disk("nodiskio", mp4_index=key)
    assert read_by(server, disk, n, first) <= 2
    assert mounts.resident(disk.path(n)) == 1
