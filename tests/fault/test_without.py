"""What send paths need and a host does not give: told at the start if there is no
doing without it, and done without if there is."""

import os
import re
import resource
import subprocess

import pytest

import harness
import mounts
import tree as t
from laboratory import forbid

SIZE = 3 * t.MIB + 5
WRAPPER = forbid.wrapper(str(forbid.IO_URING_SETUP))


@pytest.fixture
def may_filter():
    done = subprocess.run(WRAPPER + ["true"], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("no seccomp filter: " + done.stderr.decode().splitlines()[-1])


@pytest.fixture
def public(base):
    """A directory that nobody may enter, with a cold file."""
    path = os.path.join(base, "without")
    os.makedirs(path, exist_ok=True)
    t.write(os.path.join(path, "file.bin"), t.content(1, SIZE))
    mounts.drop(os.path.join(path, "file.bin"))
    return path


@pytest.fixture(scope="module")
def disk():
    with mounts.made("ext4") as made:
        yield made


def refused(*command):
    done = subprocess.run(
        [*WRAPPER, harness.PAGEWISE, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=harness.PATIENCE,
        check=False,
    )
    assert done.stdout == b""
    return done.returncode, done.stderr.decode()


WHY = (
    "uring is not available: io_uring is forbidden: check sysctl "
    "kernel.io_uring_disabled and the container's seccomp profile; "
    "use auto, which is available everywhere\n"
)


def test_uring_without_io_uring_is_refused_at_the_start(may_filter, site):
    code, err = refused("--root", str(site), "--send-path", "uring")
    assert (code, err) == (2, "pagewise: --send-path: " + WHY)


def test_ring_without_io_uring_is_refused_at_the_start(may_filter, site):
    code, err = refused("--root", str(site), "--send-path", "ring")
    assert (code, err) == (2, "pagewise: --send-path: ring" + WHY.removeprefix("uring"))


def test_uring_of_a_location_without_io_uring_is_refused_at_the_start(may_filter, site, tmp_path):
    conf = tmp_path / "pagewise.conf"
    conf.write_text(
        harness.configuration({}, [("s", {"root": site}, {"/big/": {"send_path": "uring"}})])
    )
    code, err = refused("-t", "-c", str(conf))
    assert code == 1
    assert err.startswith("pagewise: %s:" % conf)
    assert err.endswith(": send_path: " + WHY)


@pytest.mark.parametrize("path_name", [p for p in harness.FILE_PATHS if p not in ("uring", "ring")])
def test_other_send_paths_work_without_io_uring(may_filter, serve, public, path_name):
    server = serve("--root", public, "--workers", "1", "--send-path", path_name, wrapper=WRAPPER)
    for _ in range(2):
        assert server.get("/file.bin").body == t.content(1, SIZE)


# A filter that forbids it hides whether the kernel has it.
@pytest.mark.parametrize("error", [None, "EPERM", "ENOSYS"])
def test_log_names_the_residency_check_of_this_kernel(may_filter, serve, disk, error):
    t.write(os.path.join(disk.files, "f"), b"it")
    wrapper = forbid.wrapper("%d:%s" % (mounts.CACHESTAT, error)) if error else []
    server = serve("--root", disk.dir, wrapper=wrapper)
    assert server.get("/f").body == b"it"
    there = mounts.has_cachestat() if error is None else error == "EPERM"
    call = "cachestat" if there else "mincore"
    expected = " (ext4): residency: %s where permitted, else RWF_NOWAIT for each page\n" % call
    harness.wait_until(lambda: expected in server.output, expected)


def test_mlock_sends_without_lockable_memory(serve, public):
    if os.geteuid() != 0:
        pytest.skip("only root can become an ordinary user")
    server = serve(
        "--root", public, "--workers", "1", "--send-path", "mlock", user="nobody",
        wrapper=["sh", "-c", 'ulimit -l 0; "$@"; exit $?', "sh"],
    )
    with open("/proc/%d/limits" % server.pid) as limits:
        assert re.search(r"^Max locked memory +0 +0 ", limits.read(), re.M)
    with server.connect(rcvbuf=4096) as c:
        for _ in range(2):
            c.send(harness.request("/file.bin"))
            head = c.read_head()
            assert locked(server) == 0
            assert c.read_body(head).body == t.content(1, SIZE)
        c.finish()


def locked(server):
    """KiB."""
    with open("/proc/%d/status" % server.pid) as status:
        return int(status.read().split("VmLck:")[1].split()[0])


def room_for_one(pid):
    """A limit of descriptors: the file may be opened again, and a pipe needs two."""
    used = {int(name) for name in os.listdir("/proc/%d/fd" % pid)}
    return [n for n in range(len(used) + 2) if n not in used][1]


def test_splice_sends_without_free_descriptors(serve, public):
    server = serve("--root", public, "--workers", "1", "--send-path", "splice")
    with server.connect() as c, server.connect() as d:
        assert c.ask("/file.bin").status == 200
        soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (room_for_one(server.pid), hard))
        for _ in range(2):
            mounts.drop(os.path.join(public, "file.bin"))
            for one in (c, d):
                one.send(harness.request("/file.bin"))
            for one in (c, d):
                assert one.response().body == t.content(1, SIZE)
        c.finish()
        d.finish()
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (soft, hard))
