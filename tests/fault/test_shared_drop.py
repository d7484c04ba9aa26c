"""Many clients read few files with `cache = drop`: what one gives back another is about to send, and
the loop never waits for it."""

import threading

import pytest

import harness
import mounts
import tree as t
from admin import Admin
from test_asleep import slept

FILES = 4
SIZE = 8 << 20
CLIENTS = 16
EACH = 8  # files that a client asks for, one after the other
# Calls that wait for a page.  cachestat(2) does not: before it looks it may wait for the statistics of control
# groups (mem_cgroup_flush_stats_ratelimited in mm/filemap.c).
OF_PAGES = {"sendfile", "splice", "vmsplice", "pread", "preadv2"}


@pytest.fixture
def files(tmp_path):
    """Two sets of files, since a server keeps what many ask for again and again."""
    made = {"/%d.bin" % i: t.content(i, SIZE + i) for i in range(2 * FILES)}
    for target, data in made.items():
        t.write(tmp_path / target[1:], data)
        mounts.drop(tmp_path / target[1:])
        if mounts.resident(tmp_path / target[1:]):
            pytest.skip("this file system keeps everything in memory")
    tmp_path.chmod(0o755)
    whole = list(made.items())
    return tmp_path, dict(whole[:FILES]), dict(whole[FILES:])


def read_all(server, made, first, each, wrong):
    """In a thread: what it raises would only end it."""
    targets = sorted(made)
    for i in range(each):
        target = targets[(first + i) % FILES]
        try:
            if server.get(target).body != made[target]:
                wrong.append(target)
        except Exception as error:
            wrong.append((target, error))


def ask_at_once(server, made, number=CLIENTS, each=EACH):
    wrong = []
    clients = [threading.Thread(target=read_all, args=(server, made, i, each, wrong)) for i in range(number)]
    for c in clients:
        c.start()
    for c in clients:
        c.join()
    assert wrong == []


@pytest.mark.once
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("send_path", ["nodiskio", "splice", "uring"])
def test_loop_never_sleeps_for_pages_that_another_response_dropped(serve, files, send_path, workers):
    root, made, others = files
    # What is read past the page cache need not be given back: windows that are too small for that.
    small = ["--readahead", "128K"] if send_path == "nodiskio" else []
    server = serve(
        "--root", str(root), "--workers", str(workers), "--send-path", send_path, "--cache", "drop",
        "--hot-set", "0", "--admin", "127.0.0.1:0", *small, binary=harness.RELEASE,
    )
    admin = Admin(server)
    # Memory and threads for more clients than later: to get them is to wait for the process' map.
    ask_at_once(server, others, number=2 * CLIENTS, each=1)
    dropped, before = admin.value("pagewise_dropped_bytes_total"), slept(admin)
    ask_at_once(server, made)
    assert admin.value("pagewise_dropped_bytes_total") >= dropped + SIZE
    after = slept(admin)
    assert {c: after.get(c, 0) for c in OF_PAGES} == {c: before.get(c, 0) for c in OF_PAGES}
