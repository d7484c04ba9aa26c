"""The hot set while files change, clients are slow or go, and the server ends.

A change is to be noticed within a second; the tests poll for three.
"""

import os
import random
import signal
import struct
import tempfile
import threading
import time
import zlib

import pytest

import tree as t
from harness import request, wait_until
from hot import Hot, pipelined
from responses import multipart, single_part

NOTICED = 3.0
OLD, NEW = b"old " * 1000, b"new!" * 1000


# -------------------------------------------------------- what becomes of a file


class Place:
    """A directory that one change is made in; f and d/f are hot."""

    def __init__(self, root, number):
        self.root = os.path.join(root, str(number))
        self.target = "/%d" % number
        os.makedirs(self.path("d"))
        t.write(self.path("f"), OLD)
        t.write(self.path("d/f"), OLD)

    def path(self, name):
        return os.path.join(self.root, name)


def replace(place):
    t.write(place.path("g"), NEW)
    os.rename(place.path("g"), place.path("f"))


def replace_alike(place):
    """Size and time of modification stay, the inode does not."""
    t.write(place.path("g"), NEW)
    os.rename(place.path("g"), place.path("f"))


def rewrite(place):
    with open(place.path("f"), "r+b") as f:
        f.write(NEW)


def rewrite_alike(place):
    """Only the time of the change tells."""
    t.write(place.path("f"), NEW)


def link_to_another(place):
    t.write(place.path("g"), NEW)
    os.unlink(place.path("f"))
    os.symlink("g", place.path("f"))


def link_outside(place):
    os.unlink(place.path("f"))
    os.symlink("/etc/passwd", place.path("f"))


def become_directory(place):
    os.unlink(place.path("f"))
    os.mkdir(place.path("f"))


def replace_directory(place):
    os.mkdir(place.path("e"))
    t.write(place.path("e/f"), NEW)
    os.rename(place.path("d"), place.path("gone"))
    os.rename(place.path("e"), place.path("d"))


def touch(place):
    os.utime(place.path("f"), (t.MTIME + 5, t.MTIME + 5))


def cut(size):
    return lambda place: os.truncate(place.path("f"), size)


def remove(place):
    os.unlink(place.path("f"))


def forbid(place):
    os.chmod(place.path("f"), 0)


def forbid_directory(place):
    os.chmod(place.path("d"), 0o600)


def rename_directory(place):
    os.rename(place.path("d"), place.path("e"))


# What is done, and what is then answered for which target.
CHANGES = [
    (replace, "/f", 200, NEW),
    (replace_alike, "/f", 200, NEW),
    (rewrite, "/f", 200, NEW),
    (rewrite_alike, "/f", 200, NEW),
    (link_to_another, "/f", 200, NEW),
    (link_outside, "/f", 403, None),
    (become_directory, "/f", 301, None),
    (replace_directory, "/d/f", 200, NEW),
    (touch, "/f", 200, OLD),
    (cut(5), "/f", 200, OLD[:5]),
    (cut(0), "/f", 200, b""),
    (cut(70000), "/f", 200, OLD.ljust(70000, b"\0")),
    (remove, "/f", 404, None),
    (forbid, "/f", 403, None),
    (forbid_directory, "/d/f", 403, None),
    (rename_directory, "/d/f", 404, None),
]


class Watch:
    """One target that is asked for: once its answer is the new one, it stays so."""

    def __init__(self, place, change):
        self.change, path, self.status, self.body = change
        self.place, self.target = place, place.target + path
        self.tag, self.noticed = None, False

    def ask(self, c):
        r = c.ask(self.target)
        if not self.noticed and r.get("ETag") == self.tag and r.body == OLD:
            return
        self.noticed = True
        assert r.status == self.status, self.change
        assert self.body is None or r.body == self.body, self.change


@pytest.mark.slow
def test_every_change_is_noticed_under_load(serve, base):
    root = os.path.join(base, "changes")
    watches = [Watch(Place(root, i), change) for i, change in enumerate(CHANGES)]
    hot = Hot(serve("--root", root, "--workers", "1", "--admin", "127.0.0.1:0",
                    user="nobody" if os.geteuid() == 0 else None))
    with hot.connect(*(w.target for w in watches)) as c:
        for w in watches:
            w.tag = c.ask(w.target).get("ETag")
            w.change(w.place)
            w.ask(c)
        end = time.monotonic() + NOTICED
        while not all(w.noticed for w in watches) and time.monotonic() < end:
            for w in watches:
                w.ask(c)
        assert [w.change for w in watches if not w.noticed] == []
        end = time.monotonic() + 1.2
        while time.monotonic() < end:
            for w in watches:
                w.ask(c)
        c.finish()


def test_root_that_is_a_link_is_followed_again_after_sighup(serve, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        t.write(tmp_path / name / "f", name.encode())
    (tmp_path / "root").symlink_to("one")
    hot = Hot(serve("--root", tmp_path / "root", "--workers", "1", "--admin", "127.0.0.1:0"))
    with hot.connect("/f") as c:
        (tmp_path / "root").unlink()
        (tmp_path / "root").symlink_to("two")
        assert c.ask("/f").body == b"one"
    hot.server.reload()
    with hot.connect("/f") as c:
        assert c.ask("/f").body == b"two"
        hot.warm(c, "/f")
        for _ in range(50):
            assert c.ask("/f").body == b"two"
        c.finish()
    hot.server.stop()


def test_file_that_has_just_changed_is_not_cached(serve, site):
    hot = Hot(serve("--root", site, "--workers", "1", "--admin", "127.0.0.1:0"))
    t.write(site / "f", OLD)
    changed = os.stat(site / "f").st_ctime
    with hot.server.connect() as c:
        hot.warm(c, "/f")
        assert int(time.time()) - int(changed) >= 2
        c.finish()


# ------------------------------------------------------------------ slow clients

BIG = 65536


def stamped(version, size=BIG):
    """A file that says which version of it this is, in every line."""
    line = b"%015d\n" % version
    return line * (size // 16)


def version_of(body):
    version = int(body[:16])
    assert body == stamped(version, len(body))
    return version


def put(path, data):
    t.write(str(path) + ".new", data, None)
    os.rename(str(path) + ".new", path)


@pytest.fixture(scope="module")
def versions(base):
    """A root that is settled but for the first time."""
    root = tempfile.mkdtemp(prefix="versions-", dir=base)
    os.chmod(root, 0o755)
    for name in "abcr":
        t.write(os.path.join(root, name), stamped(ord(name)))
    return root


@pytest.fixture
def big(serve, versions):
    return Hot(serve("--root", versions, "--workers", "1", "--admin", "127.0.0.1:0"))


@pytest.mark.slow
def test_slow_reader_of_pipelined_answers(big):
    """Parts of answers, of every length, and new dates on the way."""
    rng = random.Random(3)
    with big.connect("/a", "/b", "/c", rcvbuf=16384) as c:
        before = big.count()
        targets = [rng.choice("abc") for _ in range(40)]
        c.send(pipelined("/" + name for name in targets))
        for i, name in enumerate(targets):
            while len(c.buf) < BIG and rng.random() < 0.8:
                c.fill(rng.randrange(1, 30000))
            if i in (10, 25):
                time.sleep(1.05)
            assert version_of(c.response().body) == ord(name)
        assert big.count() > before + 10
        c.finish()


@pytest.mark.slow
def test_file_that_is_replaced_while_it_is_sent(big, versions):
    """Each answer is one version, the one that its tag names; never an older one."""
    tags, last = {}, ord("r")
    with big.connect("/r", rcvbuf=16384) as c:
        for new in (1000, 1001):
            c.send(pipelined(["/r"] * 60))
            for i in range(60):
                if i == 20:
                    put(os.path.join(versions, "r"), stamped(new))
                    time.sleep(1.1)
                r = c.response()
                version = version_of(r.body)
                assert tags.setdefault(r.get("ETag"), version) == version
                assert version >= last
                last = version
        assert version_of(c.ask("/r").body) == new
        c.finish()


def test_clients_leave_midway(big):
    rng = random.Random(4)
    big.connect("/a", "/b", "/c").finish()
    for _ in range(100):
        c = big.server.connect(rcvbuf=16384)
        c.send(pipelined(["/a"] + [rng.choice(["/a", "/b", "/c"]) for _ in range(20)]))
        for _ in range(rng.randrange(4)):
            c.fill(rng.randrange(1, 200000))
        c.reset()
    wait_until(lambda: big.admin.value("pagewise_connections") == 0, "them to be closed")
    with big.connect("/b") as c:
        assert version_of(c.ask("/b").body) == ord("b")
        c.finish()
    # Counted now and then.
    wait_until(lambda: 3 * BIG < big.bytes() < 5 * BIG, "the three of them")


def test_shutdown_midway(big):
    """What was begun is finished, and for a second also what has come; the last one says so."""
    with big.connect("/a", "/b", rcvbuf=16384) as c:
        targets = ["a", "b"] * 120
        c.send(pipelined("/" + name for name in targets))
        assert version_of(c.response().body) == ord("a")
        time.sleep(0.1)
        big.server.terminate()
        answers = 1
        while c.buf or c.fill():
            last = c.response()
            assert version_of(last.body) == ord(targets[answers])
            answers += 1
    assert answers > 1 and last.closes
    big.server.stop()


# ----------------------------------------------------------- all of it together

FILES = 12
SIZES = [0, 16, 4096, 20480, 65536, 65552]
SECONDS = 5


class World:
    """Files that get new versions by rename; what each was like and when."""

    def __init__(self, root):
        self.root = root
        self.lock = threading.Lock()
        self.born = {}  # (file, version): when it was in its place at the latest
        self.latest = dict.fromkeys(range(FILES), 0)
        self.tags = {}
        for i in range(FILES):
            self.renew(i)

    def path(self, i):
        return os.path.join(self.root, str(i))

    def content(self, i, version):
        seed = zlib.crc32(b"%d %d" % (i, version))
        return struct.pack("<IIQ", i, version, seed) * (SIZES[i % len(SIZES)] // 16)

    def renew(self, i):
        version = self.latest[i] + 1
        put(self.path(i), self.content(i, version))
        with self.lock:
            self.latest[i] = version
            self.born[i, version] = time.monotonic()

    def required(self, i, asked):
        """The least version that may be sent to who asked then."""
        with self.lock:
            return max((v for (f, v), when in self.born.items()
                        if f == i and when < asked - NOTICED), default=1)

    def check(self, i, asked, body, offset, size, tag):
        """body is the bytes from offset on of one version that is not too old."""
        if size == 0:
            return
        assert size == SIZES[i % len(SIZES)]
        first = -offset % 16
        if len(body) < first + 16:
            return
        name, version, _ = struct.unpack_from("<IIQ", body, first)
        assert name == i
        assert body == self.content(i, version)[offset:offset + len(body)]
        assert version >= self.required(i, asked)
        with self.lock:
            assert self.tags.setdefault((i, tag), version) == version


class Client(threading.Thread):
    def __init__(self, server, world, seed, end):
        super().__init__()
        self.server, self.world, self.rng, self.end = server, world, random.Random(seed), end
        self.error, self.answers = None, 0

    def run(self):
        try:
            while time.monotonic() < self.end:
                self.connection()
        except BaseException as error:  # the test's thread raises it
            self.error = error

    def one(self):
        """(request, method, what its answer has to be)."""
        i = min(int(self.rng.expovariate(0.4)), FILES - 1)
        target, size = "/%d" % i, SIZES[i % len(SIZES)]
        kind = self.rng.randrange(24)
        if kind == 0:
            return request(target, "HEAD"), "HEAD", lambda r, at: self.head(r, size)
        if kind == 1:
            return request("/none"), "GET", lambda r, at: self.status(r, 404)
        if kind == 2:
            return (request(target, fields={"If-None-Match": "*"}), "GET",
                    lambda r, at: self.status(r, 304))
        if kind == 3 and size > 32:
            return (request(target, fields={"Range": "bytes=7-%d" % (size - 2)}), "GET",
                    lambda r, at: self.part(i, at, single_part(r), r))
        if kind == 4 and size > 1000:
            return (request(target, fields={"Range": "bytes=0-100,500-999"}), "GET",
                    lambda r, at: [self.part(i, at, p, r) for p in multipart(r)])
        if kind == 5:
            target = "/%%3%d" % i if i < 10 else target + "?q"
        fields = {"X": str(kind)} if kind in (6, 7) else {}
        return request(target, fields=fields), "GET", lambda r, at: self.whole(i, at, r, size)

    @staticmethod
    def status(r, status):
        assert r.status == status

    @staticmethod
    def head(r, size):
        assert (r.status, r.length) == (200, size)

    def part(self, i, at, part, r):
        assert r.status == 206
        self.world.check(i, at, part.body, part.first, part.size, r.get("ETag"))

    def whole(self, i, at, r, size):
        assert (r.status, len(r.body)) == (200, size)
        self.world.check(i, at, r.body, 0, size, r.get("ETag"))

    def connection(self):
        rng = self.rng
        with self.server.connect(rcvbuf=rng.choice([None, 16384])) as c:
            for _ in range(rng.randrange(1, 8)):
                batch = [self.one() for _ in range(rng.choice([1, 1, 3, 20]))]
                data = b"".join(r for r, _, _ in batch)
                at = time.monotonic()
                cut = rng.randrange(len(data) + 1)
                c.send(data[:cut])
                c.send(data[cut:])
                left = rng.randrange(len(batch)) if rng.random() < 0.05 else len(batch)
                for _, method, check in batch[:left]:
                    check(c.response(method), at)
                    self.answers += 1
                if left < len(batch):
                    c.reset()
                    return
            c.finish()


@pytest.mark.parametrize("size", ["16M", "100K"])
@pytest.mark.slow
def test_random_requests_while_files_are_replaced(serve, site, size):
    world = World(site)
    hot = Hot(serve("--root", site, "--workers", "2", "--hot-set", size,
                    "--admin", "127.0.0.1:0"))
    rng = random.Random(11)
    end = time.monotonic() + SECONDS
    clients = [Client(hot.server, world, seed, end) for seed in range(8)]
    for client in clients:
        client.start()
    while time.monotonic() < end:
        time.sleep(0.25)
        world.renew(rng.choice([1, 2, 3, 8, 9]))
    for client in clients:
        client.join()
        if client.error:
            raise client.error
    assert sum(client.answers for client in clients) > 100
    assert hot.count() > 0
