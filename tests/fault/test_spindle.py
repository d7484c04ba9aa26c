"""The disk with a head, spindle.c: its counters are its own formula, however busy the
machine is that tests it."""

import concurrent.futures
import math
import os
import random
import subprocess

import pytest

import harness
from harness import wait_until

SIZE, PAGE, MIB = 16 << 30, 4096, 1 << 20
RATE = 190  # bytes per microsecond
ROTATION = 60e6 / 7200


class Disk:
    def __init__(self, base):
        self.image, self.dir = os.path.join(base, "image"), os.path.join(base, "mnt")
        os.mkdir(self.dir)
        with open(self.image, "wb") as f:
            f.truncate(SIZE)
        self.process = subprocess.Popen([harness.SPINDLE, self.image, self.dir],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def mounted(self):
        if self.process.poll() is not None:
            raise AssertionError("spindle ended: " + self.process.stderr.read().decode())
        return os.path.ismount(self.dir)

    def read(self, off, size):
        fd = os.open(os.path.join(self.dir, "disk"), os.O_RDONLY)
        try:
            return os.pread(fd, size, off)
        finally:
            os.close(fd)

    def head(self):
        with open(os.path.join(self.dir, "head"), encoding="ascii") as f:
            return {name: float(n) for name, n in map(str.split, f)}

    def moved(self, offsets, size, at_once=1):
        """What the head did for these reads."""
        before = self.head()
        with concurrent.futures.ThreadPoolExecutor(at_once) as threads:
            list(threads.map(lambda off: self.read(off, size), offsets))
        return {name: n - before[name] for name, n in self.head().items()}


@pytest.fixture
def disk(tmp_path):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no FUSE")
    if not os.access(harness.SPINDLE, os.X_OK):
        pytest.skip("no spindle at " + harness.SPINDLE)
    made = Disk(str(tmp_path))
    try:
        wait_until(made.mounted, "the mount")
        yield made
    finally:
        subprocess.run(["umount", "-l", made.dir], check=False, timeout=harness.PATIENCE)
        made.process.kill()
        made.process.communicate()


def places(n, seed=1):
    draw = random.Random(seed)
    return [draw.randrange(1, SIZE // PAGE) * PAGE for _ in range(n)]


def seek(distance):
    return 500 + 15000 * math.sqrt(distance / SIZE)


def test_random_reads_take_seek_rotation_and_transfer(disk):
    offsets = places(100)
    took = disk.moved(offsets, PAGE)
    ends = [0, *(off + PAGE for off in offsets)]
    assert took["requests"] == took["seeks"] == 100
    assert took["seeking"] == pytest.approx(
        sum(seek(abs(off - end)) for off, end in zip(offsets, ends)), abs=5)
    assert took["busy"] == pytest.approx(
        took["seeking"] + took["turning"] + 100 * PAGE / RATE, abs=5)
    assert took["turning"] / 100 == pytest.approx(ROTATION / 2, rel=0.25)
    # Data sheets have 8.5 + 4.2 ms.
    assert took["busy"] / 100 == pytest.approx(12700, rel=0.15)


def test_the_next_sectors_need_only_the_transfer_time(disk):
    took = disk.moved([i * MIB for i in range(30)], MIB)
    assert took["bytes"] == 30 * MIB and took["seeks"] == 0
    assert took["busy"] == pytest.approx(30 * MIB / RATE, abs=5)


def test_queued_requests_are_reordered(disk):
    offsets = places(300)
    one = disk.moved(offsets[:50], PAGE)
    many = disk.moved(offsets, PAGE, at_once=32)
    assert many["busy"] / 300 < 0.7 * one["busy"] / 50


def test_written_data_is_kept_without_blocks_of_zeros(disk):
    before = disk.head()
    with open(os.path.join(disk.dir, "disk"), "r+b", buffering=0) as f:
        for data, off in ((b"a" * PAGE, 5 * MIB), (bytes(MIB), 6 * MIB)):
            assert os.pwrite(f.fileno(), data, off) == len(data)
    assert disk.head() == before
    assert disk.read(5 * MIB, 2 * PAGE) == b"a" * PAGE + bytes(PAGE)
    assert os.stat(disk.image).st_blocks * 512 < MIB
