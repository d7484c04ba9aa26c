"""The tier: whatever its disk does, and whatever becomes of its files, each response is right, and none waits
for it longer than a second."""

import os
import random
import re
import signal
import time

import pytest

import mounts
import tree as t
from admin import Admin
from harness import Finished, wait_until
from test_slowfs import fast, slow  # fixtures

SIZE = 5 * t.MIB + 12345
LARGE = 12 * t.MIB  # more than the sockets of both ends take
FILES = 3
SETTLED = 3.1  # s: tier_age is 2, as in lib/disk/fetch.c, and both compare whole ones
COPY = 1.5  # s: lib/disk/pins.h keeps copies for one
LATE = 1.0  # s: TIER_LATE_US
PIECE = 64 << 10  # bytes: TIER_PIECE


@pytest.fixture(scope="module")
def settled(tmp_path_factory):
    """A directory with files whose times are older than a file system's clock is coarse."""
    root = tmp_path_factory.mktemp("settled")
    root.chmod(0o755)
    for n in range(FILES):
        t.write(root / ("%d.bin" % n), t.content(n, SIZE))
    mounts.drop(root / "0.bin")
    if mounts.resident(root / "0.bin"):
        pytest.skip("this file system keeps everything in memory")
    time.sleep(max(0, os.stat(root / "0.bin").st_ctime + SETTLED - time.time()))
    return root


class Tiered:
    def __init__(self, serve_conf, root, tier, **top):
        self.root, self.tier = root, tier
        self.server = serve_conf({"workers": 1, "hot_set": 0, "admin": "127.0.0.1:0", "tier": tier,
                                  "tier_size": "64M", "tier_writes": "100G", "tier_age": 2, **top},
                                 [("s", {"root": root, "cache": "drop"}, {})])

    def figures(self):
        text = Admin(self.server).ask().text
        return {name: float(value) for name, value in re.findall(r"^pagewise_tier_(\w+) (\S+)$", text, re.M)}

    def has_hits(self, least):
        figures = self.figures()
        assert figures["hits_total"] >= least, figures

    def waits(self, name, least=1):
        wait_until(lambda: self.figures()[name] >= least, name)

    def cold(self):
        """No copies and no pages: the next request reads a disk."""
        time.sleep(COPY)
        self.drop()

    def drop(self):
        for n in range(FILES):
            mounts.drop(self.root / ("%d.bin" % n))

    def get(self, n=0, **kw):
        answer = self.server.get("/%d.bin" % n, **kw)
        assert answer.status == 200 and answer.body == t.content(n, SIZE)

    def filled(self, n):
        """A page may have been in use for a moment, so one further request may not do."""
        self.cold()
        self.get(n)
        time.sleep(0.2)
        return self.figures()["windows"] >= 3 * (n + 1)

    def fill(self):
        """The second request for a file has its windows written."""
        self.waits("up")
        self.drop()
        for n in range(FILES):
            self.get(n)
        assert self.figures()["windows"] == 0
        # File by file: eight windows wait to be written at most, and a busy machine may write none of them.
        for n in range(FILES):
            wait_until(lambda n=n: self.filled(n), "all windows of a file")
        self.cold()
        return self


@pytest.fixture
def shm():
    """A directory on another file system than the files."""
    path = "/dev/shm/pagewise-tier-%d" % os.getpid()
    os.mkdir(path)
    yield path
    for name in os.listdir(path):
        os.unlink(os.path.join(path, name))
    os.rmdir(path)


@pytest.fixture
def tiered(serve_conf, settled, shm):
    return Tiered(serve_conf, settled, shm).fill()


def test_windows_come_from_the_tier_and_not_into_the_page_cache(tiered, settled):
    before = tiered.figures()  # a third request may have filled the tier
    tiered.get(0)
    after = tiered.figures()
    assert after["hits_total"] == before["hits_total"] + 3
    assert after["hit_bytes_total"] == before["hit_bytes_total"] + SIZE
    assert mounts.resident(settled / "0.bin") == 0


@pytest.mark.parametrize("first, last", [(0, 10), (1, 2 * t.MIB), (3 * t.MIB + 777, SIZE - 1)])
def test_each_range_is_right(tiered, first, last):
    answer = tiered.server.get("/1.bin", fields={"Range": "bytes=%d-%d" % (first, last)})
    assert answer.body == t.content(1, SIZE)[first:last + 1]


def test_short_ranges_read_pieces_of_windows(tiered, settled):
    """One client that asks for single bytes must not read windows of 2 MiB for each, from either disk."""
    before, rnd, asked = tiered.figures(), random.Random(50), 60
    for _ in range(asked):
        n, at = rnd.randrange(FILES), rnd.randrange(SIZE)
        answer = tiered.server.get("/%d.bin" % n, fields={"Range": "bytes=%d-%d" % (at, at)})
        assert answer.body == t.content(n, SIZE)[at:at + 1]
    after = tiered.figures()
    assert 0 < after["hit_bytes_total"] - before["hit_bytes_total"] <= asked * PIECE
    assert after["misses_total"] == before["misses_total"]
    assert after["written_bytes_total"] == before["written_bytes_total"]
    assert not any(mounts.resident(settled / ("%d.bin" % n)) for n in range(FILES))


def flip_bits(shm):
    """One bit in each 64 KiB of the store."""
    with open(os.path.join(shm, "pagewise-tier.data"), "r+b") as f:
        for at in range(4097, 20 * t.MIB, 64 << 10):
            f.seek(at)
            byte = f.read(1)
            f.seek(at)
            f.write(bytes([byte[0] ^ 1]))


def test_flipped_bits_are_never_sent(tiered, shm):
    flip_bits(shm)
    for n in range(FILES):
        tiered.get(n)
    assert tiered.figures()["corrupt_total"] == 3 * FILES
    tiered.waits("windows")  # they are written again


def test_changed_file_is_never_sent_from_the_tier(tiered, settled):
    changed = bytearray(t.content(2, SIZE))
    changed[t.MIB] ^= 1
    before = os.stat(settled / "2.bin")
    try:
        with open(settled / "2.bin", "r+b") as f:
            f.seek(t.MIB)
            f.write(changed[t.MIB:t.MIB + 1])
        os.utime(settled / "2.bin", ns=(before.st_atime_ns, before.st_mtime_ns))
        time.sleep(1.1)  # the server's own cache of open files
        assert tiered.server.get("/2.bin").body == changed
    finally:
        t.write(settled / "2.bin", t.content(2, SIZE))
        time.sleep(SETTLED)


def test_file_that_changes_while_it_is_sent_is_not_read_again_and_again(serve_conf, tmp_path_factory, shm):
    root = tmp_path_factory.mktemp("changes")
    root.chmod(0o755)
    t.write(root / "0.bin", t.content(0, LARGE))
    time.sleep(SETTLED)
    tiered = Tiered(serve_conf, root, shm)
    tiered.waits("up")

    def filled():
        time.sleep(COPY)
        mounts.drop(root / "0.bin")
        return tiered.figures()["windows"] == LARGE // (2 * t.MIB) or not tiered.server.get("/0.bin")

    wait_until(filled, "all windows")
    before = tiered.figures()["hits_total"]
    with tiered.server.connect(rcvbuf=65536) as c:
        c.send(b"GET /0.bin HTTP/1.1\r\nHost: s\r\n\r\n")
        c.read_head()
        wait_until(lambda: tiered.figures()["hits_total"] > before, "a hit")
        with open(root / "0.bin", "r+b") as f:
            f.write(b"x")
        begun = time.monotonic()
        while c.sock.recv(t.MIB):
            pass
        assert time.monotonic() - begun < 5
    assert tiered.figures()["hits_total"] <= before + LARGE // (2 * t.MIB)
    tiered.server.stop(messages=".*0.bin: changed while it was sent: the response was aborted; "
                                "write a new file and rename it\n")


def test_file_that_changed_soon_before_is_not_written(serve_conf, tmp_path_factory, shm):
    root = tmp_path_factory.mktemp("young")
    root.chmod(0o755)
    for n in range(FILES):
        t.write(root / ("%d.bin" % n), t.content(n, SIZE))
    time.sleep(SETTLED)
    tiered = Tiered(serve_conf, root, shm, tier_age=60)
    tiered.waits("up")
    for _ in range(3):
        tiered.cold()
        for n in range(FILES):
            tiered.get(n)
    assert tiered.figures()["windows"] == tiered.figures()["written_bytes_total"] == 0
    assert tiered.figures()["skipped_total"] == 0


def test_tier_is_there_after_a_kill(tiered, serve_conf, settled, shm):
    tiered.server.kill()
    tiered.server.stop(codes=(-signal.SIGKILL,), messages=True)
    again = Tiered(serve_conf, settled, shm)
    again.waits("up")
    assert again.figures()["windows"] == 3 * FILES
    again.cold()
    again.get(1)
    assert again.figures()["hits_total"] == 3


def test_tier_goes_to_the_next_process_at_a_reload(tiered):
    tiered.server.reload()
    tiered.waits("up")
    assert tiered.figures()["windows"] == 3 * FILES
    tiered.cold()
    tiered.get(0)
    assert tiered.figures()["hits_total"] == 3


def test_reload_says_nothing_of_the_process_that_drains(tiered, settled):
    with tiered.server.connect(rcvbuf=65536) as c:
        c.send(b"GET /1.bin HTTP/1.1\r\nHost: s\r\n\r\n")
        c.read_head()
        tiered.server.reload()
        tiered.waits("up")
        assert tiered.figures()["taken"] == 0
    tiered.server.stop()


def test_second_server_says_that_another_one_has_the_tier(tiered, serve_conf, settled, shm, tmp_path):
    other = Tiered(serve_conf, settled, shm)
    wait_until(lambda: "another process uses tier %s" % shm in other.server.messages, "a warning")
    assert other.figures()["taken"] == 1 and other.figures()["up"] == 0
    assert tiered.figures()["taken"] == 0
    other.get(0)
    checked = Finished("-t", "-c", tmp_path / "pagewise.conf")
    assert "tier %s is in use by a running server\n" % shm in checked.out
    tiered.server.stop()
    other.waits("up")
    wait_until(lambda: "tier %s is free: using it" % shm in other.server.output + other.server.messages, "a notice")
    assert other.figures()["taken"] == 0
    other.server.stop(messages="pagewise: warning: another process uses tier .*")


def test_tier_that_is_cut_or_full_of_noise_is_a_miss(tiered, shm):
    noise = random.Random(1)
    for name in ("pagewise-tier.index", "pagewise-tier.data"):
        with open(os.path.join(shm, name), "r+b") as f:
            f.write(noise.randbytes(t.MIB // 8))  # not the checksums in the index
            f.truncate(t.MIB)
    for n in range(FILES):
        tiered.get(n)
    wait_until(lambda: tiered.figures()["errors_total"] > 0, "an error")
    assert tiered.figures()["up"] == 0


def test_full_disk_or_a_directory_that_is_missing_means_no_tier(serve_conf, settled, shm, tmp_path):
    for tier, size in (("/nowhere", "64M"), (shm, "9000G")):
        server = serve_conf({"tier": tier, "tier_size": size}, [("s", {"root": settled, "cache": "drop"}, {})])
        assert server.get("/0.bin").body == t.content(0, SIZE)
        server.stop(messages="pagewise: warning: cannot open tier %s: .*; serving without it\n" % tier)


def test_file_of_another_program_is_left_alone(serve_conf, settled, shm):
    path = os.path.join(shm, "pagewise-tier.data")
    with open(path, "wb") as f:
        f.write(b"precious")
    server = serve_conf({"tier": shm, "tier_size": "64M"}, [("s", {"root": settled, "cache": "drop"}, {})])
    assert server.get("/0.bin").body == t.content(0, SIZE)
    server.stop(messages=r"pagewise: warning: cannot open tier %s: a file there named pagewise-tier\* belongs to another "
                         r"user, is a link, or was not written by pagewise; serving without it\n" % shm)
    with open(path, "rb") as f:
        assert f.read() == b"precious"


def test_tier_that_hangs_holds_a_response_up_for_a_second_at_most(slow, fast, serve_conf, settled):
    tiered = Tiered(serve_conf, settled, slow.dir).fill()
    slow.hang("read", "pagewise-tier.data")
    begun = time.monotonic()
    tiered.get(0)  # while it hangs
    assert time.monotonic() - begun >= LATE
    late = tiered.figures()["late_total"]
    assert late >= 1 and tiered.figures()["up"] == 0
    tiered.get(1)  # is not asked of it
    assert tiered.figures()["late_total"] == late
    slow.release()


def test_tier_whose_writes_hang_or_fail_is_in_nobodys_way(slow, fast, serve_conf, settled):
    tiered = Tiered(serve_conf, settled, slow.dir)
    tiered.waits("up")
    slow.hang("write", "pagewise-tier.data")
    for _ in range(3):
        tiered.cold()
        for n in range(FILES):
            tiered.get(n)
    assert tiered.figures()["windows"] == 0
    slow.release()
    slow.fail("read", 5, "pagewise-tier.data")
    tiered.cold()
    for n in range(FILES):
        tiered.get(n)
    slow.release()
