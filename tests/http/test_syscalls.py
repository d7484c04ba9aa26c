"""What the kernel is asked for, seen by strace: the rules of the design that no
client can see.  With the ordinary binary; sanitizers make calls of their own.
"""

import os
import re
import shutil
import tempfile

import pytest

import harness
import mounts
import strace
import tree as t
from harness import wait_until

SIZE = 2 * t.MIB + 3

READS = {"read", "pread64", "readv", "preadv", "preadv2", "mmap", "splice", "copy_file_range"}
# Whatever takes a path may wait for a disk.
PATHS = {
    "open", "openat", "openat2", "creat", "stat", "lstat", "newfstatat", "statx", "access",
    "faccessat", "faccessat2", "readlink", "readlinkat", "statfs", "chdir", "name_to_handle_at",
}
# Whatever takes a descriptor and may wait for it.
WAITS = READS | {"sendfile", "sendfile64", "readahead", "fadvise64", "getdents64", "fsync"}


@pytest.fixture(scope="module")
def may_trace():
    reason = strace.why_not()
    if reason:
        pytest.skip(reason)
    if not os.access(harness.RELEASE, os.X_OK):
        pytest.skip("no ordinary binary at " + harness.RELEASE)


class Traced:
    """A server under strace, and afterwards what it did."""

    def __init__(self, output, *args):
        self.output = output
        self.server = harness.Server(
            "--workers", "1", *args, binary=harness.RELEASE, wrapper=strace.STRACE + [output]
        ).start()
        self.names = {}
        self.mark = None

    def begin(self):
        """Only what comes after this counts: start-up may wait."""
        self.mark = sum(1 for _ in open(self.output, errors="replace"))

    def end(self):
        self.names = strace.thread_names(self.server.pid)
        self.server.stop()
        self.calls = [c for c in strace.parse(self.output) if c.begin >= (self.mark or 0)]

    def of(self, name):
        """Calls of the threads whose name begins so."""
        tids = {tid for tid, n in self.names.items() if n.startswith(name)}
        assert tids or name != "pw-worker0", self.names
        return [c for c in self.calls if c.tid in tids]

    def on(self, path):
        """Calls on a descriptor of that file, by whoever."""
        return [c for c in self.calls if "<%s>" % path in c.args]


@pytest.fixture
def traced(may_trace, tmp_path):
    made = []

    def start(*args):
        made.append(Traced(str(tmp_path / "trace"), *args))
        return made[-1]

    yield start
    for one in made:
        if not one.server.out.closed:
            one.server.discard()


def first_fd(call):
    return call.args.split(",")[0]


def reads_into_user_space(calls, path):
    """Reads of more than the one byte that a probe looks at."""
    return [
        c
        for c in calls
        if c.name in READS
        and ("<%s>" % path) in (c.args if c.name == "mmap" else first_fd(c))
        and (c.result or 0) > 1
    ]


def sent_by_sendfile(calls, path):
    return sum(
        c.result
        for c in calls
        if c.name.startswith("sendfile") and "<%s>" % path in c.args and (c.result or 0) > 0
    )


@pytest.fixture
def file(site):
    path = str(site / "file.bin")
    t.write(path, t.content(5, SIZE))
    return path


@pytest.mark.parametrize("path_name", ["nodiskio", "blocking"])
def test_resident_file_goes_by_sendfile_and_never_through_user_space(traced, site, file, path_name):
    run = traced("--root", site, "--send-path", path_name)
    run.begin()
    assert run.server.get("/file.bin").body == t.content(5, SIZE)
    run.end()
    loop = run.of("pw-worker0")
    assert sent_by_sendfile(loop, file) == SIZE
    assert reads_into_user_space(run.calls, file) == []
    # Nor were other threads needed.
    others = [c for c in run.on(file) if c.tid not in {x.tid for x in loop}]
    assert others == []


def test_copying_path_is_seen_to_read(traced, site, file):
    """That the test above can fail."""
    run = traced("--root", site, "--send-path", "copy")
    run.begin()
    assert run.server.get("/file.bin").body == t.content(5, SIZE)
    run.end()
    assert sum(c.result for c in reads_into_user_space(run.calls, file)) >= SIZE
    assert sent_by_sendfile(run.calls, file) == 0


def evict(path):
    mounts.drop(path)
    if mounts.resident(path, t.MIB) is None:
        pytest.skip("this file system does not answer RWF_NOWAIT")
    assert not mounts.resident(path, t.MIB)


def test_cold_file_is_not_touched_by_the_loop_before_it_is_fetched(traced, site, file):
    run = traced("--root", site, "--send-path", "nodiskio", "--readahead", "256K")
    evict(file)
    run.begin()
    assert run.server.get("/file.bin").body == t.content(5, SIZE)
    run.end()
    loop, fetch = run.of("pw-worker0"), run.of("pw-fetch")
    assert reads_into_user_space(loop, file) == []
    assert sent_by_sendfile(loop, file) == SIZE
    mine = [c for c in loop if "<%s>" % file in c.args and c.name in WAITS]
    fetched = [c for c in fetch if "<%s>" % file in c.args]
    assert fetched
    misses = [c for c in mine if c.name == "preadv2" and c.error == "EAGAIN"]
    assert misses
    for miss in misses:
        after = [c for c in mine if c.begin > miss.end]
        if not after:
            continue
        # Before the loop asks again a fetch that ended after the miss lies.
        assert any(miss.end < c.end < after[0].begin for c in fetched), (miss, after[0])


def test_loop_asks_before_every_window_that_it_sends(traced, site, file):
    """Whatever sendfile takes has been probed as resident: RWF_NOWAIT always."""
    run = traced("--root", site, "--send-path", "nodiskio", "--readahead", "256K")
    evict(file)
    run.begin()
    run.server.get("/file.bin")
    run.end()
    for c in run.of("pw-worker0"):
        if "<%s>" % file in first_fd(c) and c.name in READS:
            assert c.name == "preadv2" and "RWF_NOWAIT" in c.args, c
        assert not (c.name in ("readahead", "fadvise64") and "<%s>" % file in c.args), c


def path_calls(calls):
    return [c for c in calls if c.name in PATHS and not (c.name == "newfstatat" and ', "",' in c.args)]


def check_lookups(calls):
    """On the loop: only openat2, only what is cached, only beneath the root."""
    for c in path_calls(calls):
        assert c.name == "openat2", c
        assert "RESOLVE_CACHED" in c.args, c
        assert "RESOLVE_BENEATH" in c.args, c
        assert "RESOLVE_NO_MAGICLINKS" in c.args, c


def test_loop_never_waits_for_a_lookup(traced, site, file):
    (site / "d").mkdir()
    (site / "d" / "index.html").write_bytes(b"index")
    (site / "link").symlink_to("file.bin")
    run = traced("--root", site, "--autoindex")
    run.begin()
    for target in ("/file.bin", "/link", "/d", "/d/", "/missing", "/missing/too", "/"):
        run.server.get(target)
    run.end()
    check_lookups(run.of("pw-worker0"))
    assert any(c.name == "openat2" for c in run.of("pw-worker0"))


def test_all_lookups_stay_beneath_the_root(traced, site, file):
    run = traced("--root", site, "--autoindex")
    run.begin()
    for target in ("/file.bin", "/missing", "/"):
        run.server.get(target)
    run.end()
    for c in run.calls:
        if c.name == "openat2":
            assert "RESOLVE_BENEATH" in c.args and "RESOLVE_NO_MAGICLINKS" in c.args, c


def test_directories_are_read_by_other_threads(traced, site, file):
    run = traced("--root", site, "--autoindex")
    run.begin()
    assert b"file.bin" in run.server.get("/").body
    run.end()
    assert [c for c in run.of("pw-worker0") if c.name.startswith("getdents")] == []
    assert [c for c in run.of("pw-fetch") if c.name.startswith("getdents")]


def test_access_log_is_written_by_another_thread(traced, site, file, tmp_path):
    log = str(tmp_path / "access.log")
    run = traced("--root", site, "--access-log", log)
    run.begin()
    run.server.get("/file.bin")
    wait_until(lambda: os.path.getsize(log) > 0, "the log line")
    run.end()
    writers = {c.tid for c in run.on(log) if c.name in ("write", "writev")}
    assert writers
    assert writers.isdisjoint({c.tid for c in run.of("pw-worker0")})


@pytest.fixture
def disk():
    reason = mounts.why_not("ext4")
    if reason:
        pytest.skip(reason)
    base = tempfile.mkdtemp(prefix="pagewise-mount-")
    made = None
    try:
        made = mounts.Mount("ext4", base)
        yield made
    finally:
        if made:
            made.remove()
        shutil.rmtree(base, ignore_errors=True)


def test_cold_name_is_looked_up_by_another_thread(traced, disk):
    """Nothing of the file system is in memory: not even the name."""
    os.makedirs(os.path.join(disk.files, "a/b"))
    t.write(os.path.join(disk.files, "a/b/file.bin"), t.content(5, SIZE))
    disk.cold()
    run = traced("--root", disk.dir, "--send-path", "nodiskio")
    run.begin()
    assert run.server.get("/a/b/file.bin").body == t.content(5, SIZE)
    run.end()
    loop, fetch = run.of("pw-worker0"), run.of("pw-fetch")
    check_lookups(loop)
    opened = [c for c in loop if c.name == "openat2" and "file.bin" in c.args]
    assert opened[0].error == "EAGAIN"
    assert [
        c
        for c in fetch
        if c.name == "openat2" and "file.bin" in c.args and "RESOLVE_CACHED" not in c.args
    ]


def test_threads_have_names(traced, site, file):
    run = traced("--root", site)
    run.server.get("/file.bin")
    run.end()
    assert any(re.match(r"pw-worker0\Z", n) for n in run.names.values())
