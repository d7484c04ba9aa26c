"""What a server learns about a disk with a head (spindle.c), and where it shows that."""

import concurrent.futures
import os
import random

import pytest

import harness
import mounts
from admin import Admin
from browser import Browser
from harness import wait_until
from laboratory import spindle

MIB, PART, RANGES = 1 << 20, 64 << 10, 192
LARGE, DISK = 1024 * MIB, 1280 * MIB
SEEKS, RATE = "pagewise_disk_seeks", "pagewise_disk_measured_bytes_per_second"


@pytest.fixture
def disk(tmp_path):
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("only root can mount FUSE")
    if why := mounts.why_not("ext4"):
        pytest.skip(why)
    if not os.access(harness.SPINDLE, os.X_OK):
        pytest.skip("no spindle at " + harness.SPINDLE)
    os.chmod(tmp_path, 0o755)
    with spindle.mounted(str(tmp_path), DISK, [("large", LARGE)]) as made:
        mounts.forget(os.path.join(made.dir, "large"))
        yield made


def get(server, n):
    """Random ranges, so that the head seeks for each."""
    draw = random.Random(n)
    starts = [draw.randrange(LARGE // PART) * PART for _ in range(n)]

    def ask(start):
        fields = {"Range": "bytes=%d-%d" % (start, start + PART - 1)}
        return server.get("/large", fields=fields).body

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        assert set(threads.map(ask, starts)) == {bytes(PART)}


def test_a_disk_with_a_head_is_found_by_its_rate(serve, disk):
    server = serve("--root", disk.dir, "--admin", "127.0.0.1:0")
    admin = Admin(server)
    id = os.stat(disk.dir).st_dev
    device = "%d:%d" % (os.major(id), os.minor(id))
    get(server, 2)
    assert admin.value(SEEKS, device=device) == admin.value(RATE, device=device) == 0
    get(server, RANGES)
    assert admin.value(SEEKS, device=device) == 1
    # Both are those of reads with a seek each: 1 MiB is added for it.
    assert 0 < admin.value(RATE, device=device) < 200e6
    get(server, 2)
    wait_until(lambda: "is as slow as one disk" in server.output, "the message")
    get(server, 2)
    assert server.output.count("is as slow as one disk that rotates (") == 1
    assert admin.value(SEEKS) == 1


@pytest.mark.needs("chromium")
def test_the_live_page_shows_the_rate_of_a_disk_with_a_head(serve, disk):
    server = serve("--root", disk.dir, "--admin", "127.0.0.1:0")
    shown = ("[...document.querySelectorAll('#devices tr')].filter(r => r.cells[0]"
             ".textContent.endsWith(' ext4, files')).map(r => r.cells[5].textContent).join()")
    with Browser() as browser:
        browser.open(Admin(server).url, 1280)
        get(server, 2)
        wait_until(lambda: browser.ask("document.querySelectorAll('#devices tr').length"), "rows")
        assert browser.ask(shown) == ""
        get(server, RANGES)
        wait_until(lambda: browser.ask(shown).endswith(" MB/s"), "the rate")
        assert browser.errors == []
