"""What the kernel is asked for, seen by strace: the rules of the design that no
client can see.  With the ordinary binary; sanitizers make calls of their own.
"""

import contextlib
import os
import re
import shutil
import tempfile
import time

import pytest

import h2_raw
import harness
import mounts
import strace
import tree as t
from harness import request, wait_until
from hot import Hot

pytestmark = pytest.mark.needs("strace")

SIZE = 2 * t.MIB + 3
TAIL = SIZE % (512 * t.KIB)  # behind the last window: is copied, and the file compared before it is sent
HEAP_FILES, HEAP_SIZE = 60, 60000  # more than glibc gives a thread at first, 132 KiB

READS = {"read", "pread64", "readv", "preadv", "preadv2", "mmap", "splice", "copy_file_range"}
# Whatever takes a path may wait for a disk.
PATHS = {
    "open", "openat", "openat2", "creat", "stat", "lstat", "newfstatat", "statx", "access",
    "faccessat", "faccessat2", "readlink", "readlinkat", "statfs", "chdir", "name_to_handle_at",
}
# Whatever takes a descriptor and may wait for it.
WAITS = READS | {"sendfile", "sendfile64", "readahead", "fadvise64", "getdents64", "fsync"}


@pytest.fixture(scope="module")
def may_trace(release):
    reason = strace.why_not()
    if reason:
        pytest.skip(reason)


def without_maps_to_ask(calls):
    """Where there is no cachestat mincore is asked, which wants a map: that reads nothing."""
    if mounts.has_cachestat():
        return calls
    asked = {c.args.split(",")[0] for c in calls if c.name == "mincore"}
    return [c for c in calls if c.name != "mmap" or hex(c.result or 0) not in asked]


class Traced:
    """A server under strace, and afterwards what it did."""

    def __init__(self, output, *args, user=None):
        self.output = output
        # strace itself stays what it is: it has to write its output.
        wrapper = strace.STRACE + [output] + (["-u", user] if user else [])
        self.server = harness.Server(
            "--workers", "1", *args, binary=harness.RELEASE, wrapper=wrapper, drops=bool(user)
        ).start()
        self.names = {}
        self.mark = None

    def begin(self):
        """Only what comes after this counts: start-up may wait."""
        self.mark = sum(1 for _ in open(self.output, errors="replace"))

    def end(self):
        self.names = strace.thread_names(self.server.pid)
        self.server.stop()
        self.calls = without_maps_to_ask(
            [c for c in strace.parse(self.output) if c.begin >= (self.mark or 0)])

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

    def start(*args, **kw):
        made.append(Traced(str(tmp_path / "trace"), *args, **kw))
        return made[-1]

    yield start
    for one in made:
        if not one.server.out.closed:
            one.server.discard()


def first_fd(call):
    return call.args.split(",")[0]


def reads_into_user_space(calls, path):
    """Reads of more than the two bytes that a probe looks at."""
    return [
        c
        for c in calls
        if c.name in READS
        and ("<%s>" % path) in (c.args if c.name == "mmap" else first_fd(c))
        and (c.result or 0) > 2
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


def by_connection(calls):
    parts = [[]]
    for c in calls:
        if c.name == "accept4" and (c.result or -1) >= 0:
            parts.append([])
        parts[-1].append(c)
    return parts


@pytest.mark.parametrize("path_name", ["nodiskio", "blocking"])
def test_resident_file_goes_by_sendfile_and_never_through_user_space(traced, site, path_name):
    """Once it was sent twice a moment ago: the kernel might evict other pages before sendfile reaches them."""
    run = traced("--root", site, "--send-path", path_name)
    file, size = str(site / "few.bin"), 512 * t.KIB + TAIL  # few calls: a moment ago is not long ago
    t.write(file, t.content(5, size))
    run.begin()
    for _ in range(40):
        assert run.server.get("/few.bin").body == t.content(5, size)
    run.end()
    parts = [(sent_by_sendfile(part, file), sum(c.result for c in reads_into_user_space(part, file)))
             for part in by_connection(run.of("pw-worker0"))]
    assert any(sent + read == size and read <= TAIL for sent, read in parts), parts
    # Nor were other threads needed.
    assert [c for c in run.of("pw-fetch") if "<%s>" % file in c.args] == []


def test_copying_path_reads(traced, site, file):
    """That the test above can fail."""
    run = traced("--root", site, "--send-path", "copy")
    run.begin()
    assert run.server.get("/file.bin").body == t.content(5, SIZE)
    run.end()
    assert sum(c.result for c in reads_into_user_space(run.calls, file)) >= SIZE
    assert sent_by_sendfile(run.calls, file) == 0


def evict(path):
    mounts.drop(path)
    if mounts.resident(path):
        pytest.skip("this file system keeps everything in memory")


def test_pipelined_cached_responses_are_sent_by_one_call(traced, site):
    t.write(site / "f", t.content(1, 100))
    run = traced("--root", site, "--admin", "127.0.0.1:0")
    with Hot(run.server).connect("/f") as c:
        run.begin()
        length = 0
        # Once a second one of them goes the long way.
        for _ in range(3):
            c.send(request("/f") * 16)
            answers = [c.response() for _ in range(16)]
            length = sum(len(r.raw) + len(r.body) for r in answers)
        c.finish()
    run.end()
    sent = [c.result for c in run.of("pw-worker0") if c.name == "sendmsg"]
    assert sent.count(length) >= 2, sent


SENDFILE = re.compile(r"\d+<[^>]*>, \d+<[^>]*>, \[(\d+)\]")
COPY = re.compile(r"\], 1, (\d+), RWF_NOWAIT$")
FETCH = re.compile(r"\d+<[^>]*>, (\d+), (\d+)(?:, POSIX_FADV_WILLNEED)?\Z")


def fetched_before(calls, path, line):
    """The ranges that were asked for from the disk by calls that ended before."""
    out = []
    for c in calls:
        match = FETCH.match(c.args)
        if c.name in ("readahead", "fadvise64") and match and "<%s>" % path in c.args:
            if c.end < line:
                out.append((int(match.group(1)), int(match.group(1)) + int(match.group(2))))
    return sorted(out)


def uncovered(ranges, first, end):
    """The first byte of first..end that no range has, or None."""
    for a, b in ranges:
        if a <= first < b:
            first = b
    return first if first < end else None


def run_cold(traced, path, user=None):
    root = os.path.dirname(path)
    run = traced("--root", root, "--send-path", "nodiskio", "--readahead", "256K", user=user)
    evict(path)
    run.begin()
    assert run.server.get("/file.bin").body == t.content(5, SIZE)
    run.end()
    return run


@pytest.fixture
def public_file(base):
    """For a server that does not own it: cachestat is refused then."""
    where = tempfile.mkdtemp(dir=base)
    os.chmod(where, 0o755)
    path = os.path.join(where, "file.bin")
    t.write(path, t.content(5, SIZE))
    return path


USERS = [None] + (["nobody"] if os.geteuid() == 0 else [])


@pytest.mark.parametrize("user", USERS)
def test_cold_file_is_not_touched_by_the_loop_before_it_is_fetched(traced, public_file, user):
    path = public_file
    run = run_cold(traced, path, user)
    loop, fetch = run.of("pw-worker0"), run.of("pw-fetch")
    copied = reads_into_user_space(loop, path)
    assert sent_by_sendfile(loop, path) + sum(c.result for c in copied) == SIZE
    # Nothing was sent that another thread had not fetched before.
    for c in loop:
        call = (COPY.search(c.args) if c in copied else
                SENDFILE.match(c.args) if c.name.startswith("sendfile") and "<%s>" % path in c.args else None)
        if call:
            first = int(call.group(1))
            ranges = fetched_before(fetch, path, c.begin)
            assert uncovered(ranges, first, first + max(c.result or 0, 1)) is None, c


def fetch_ends(run, path):
    """Lines at which a fetch has ended: the end of its call, and the next call of its thread, which
    may not have had a turn in between to tell the loop."""
    calls = {}
    for c in run.of("pw-fetch"):
        calls.setdefault(c.tid, []).append(c)
    for mine in calls.values():
        for c, after in zip(mine, mine[1:] + [None]):
            if "<%s>" % path in c.args:
                yield from [c.end] + ([after.begin] if after else [])


@pytest.mark.parametrize("user", USERS)
def test_loop_waits_after_a_miss_until_a_fetch_has_ended(traced, public_file, user):
    path = public_file
    run = run_cold(traced, path, user)
    mine = [c for c in run.of("pw-worker0") if "<%s>" % path in c.args and c.name in WAITS]
    ended = list(fetch_ends(run, path))
    assert ended
    for miss, after in zip(mine, mine[1:]):
        if miss.error == "EAGAIN" and miss.name == "preadv2":
            # A fetch may end while the question is on its way back: the tracer sees that end first.
            assert any(miss.begin < end < after.begin for end in ended), (miss, after)


@pytest.mark.parametrize("user", USERS)
def test_loop_only_probes_and_sends(traced, public_file, user):
    """RWF_NOWAIT, sendfile, and no readahead of its own."""
    path = public_file
    run = run_cold(traced, path, user)
    for c in run.of("pw-worker0"):
        if "<%s>" % path not in c.args or c.name not in WAITS:
            continue
        if c.name == "preadv2":
            assert "RWF_NOWAIT" in c.args, c
        elif c.name == "fadvise64":
            assert "POSIX_FADV_RANDOM" in c.args or "POSIX_FADV_NORMAL" in c.args, c
        else:
            assert c.name.startswith("sendfile"), c


def path_calls(calls):
    """Without fstat, which is a newfstatat of nothing."""
    return [c for c in calls if c.name in PATHS and ', "",' not in c.args]


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


@mounts.NEEDS["ext4"]
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


def test_loop_has_its_heap_before_it_serves(traced, site):
    """More memory from the kernel takes a lock that a fetcher may have while it reads."""
    for i in range(HEAP_FILES):
        (site / ("%d.bin" % i)).write_bytes(t.content(i, HEAP_SIZE))
    trace = traced("--root", site)
    time.sleep(2.1)  # what was changed just now is not kept
    trace.server.get("/0.bin")  # the worker's heap is made for its first connection
    trace.begin()
    with contextlib.ExitStack() as connections:
        for i in range(HEAP_FILES):
            c = connections.enter_context(trace.server.connect())
            for _ in range(3):  # what is asked for twice is kept in memory
                assert c.ask("/%d.bin" % i).body == t.content(i, HEAP_SIZE)
    trace.end()
    calls = [c for c in trace.of("pw-worker0") if c.name in ("mprotect", "brk", "mmap", "mremap")]
    # A stack is mapped, then made usable, for a disk thread.
    stacks = {i + n for i, c in enumerate(calls) if "MAP_STACK" in c.args for n in (0, 1)}
    assert [c for i, c in enumerate(calls) if "PROT_NONE" not in c.args and i not in stacks] == []


def test_http2_connection_that_is_alone_sends_many_frames_a_call(traced, site):
    """Beside others it would send four: each call costs some more."""
    data = t.content(5, 8 * t.MIB)
    t.write(os.path.join(site, "many-frames.bin"), data)
    run = traced("--root", site, "--hot-set", "0")
    with h2_raw.Client(run.server.address, window=1 << 30) as c:
        c.send(h2_raw.update(0, 1 << 30) + h2_raw.get(1, b"/many-frames.bin"))
        assert c.body(1) == data
    run.end()
    sent = [c.result for c in run.of("pw-worker") if c.name == "sendto" and c.result]
    assert sum(sent) > len(data)
    assert max(sent) > 8 * 16384
