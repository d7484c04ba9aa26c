"""What the server gives up before it serves anybody, tried from inside by a debug
build (tests/inside/), with the sandbox and, so that the trials are known to work,
without."""

import contextlib
import ctypes
import errno
import grp
import os
import platform
import pwd
import re
import shutil
import signal
import sys

import pytest

import harness
import landlock as kernel
import mounts
import namespaces
import strace
from harness import wait_until

KINDS = ["worker", "pool"]
SCHED_GETATTR = {"x86_64": 315}.get(platform.machine(), 275)

# What Landlock refuses, and what the filter of system calls does.
BY_LANDLOCK = {name: "EACCES" for name in (
    "read_outside", "write_outside", "create_outside", "write_root", "create_root",
    "empty_root")}
BY_SECCOMP = {name: "ENOSYS" for name in (
    "openat_root", "truncate", "cut", "rename", "link", "mkdir", "chmod", "unlink", "exec", "fork",
    "connect", "bind", "fastopen_to", "fastopen_msg", "option", "option_twin", "option_tcp", "ptrace",
    "kill", "tgkill", "schedule", "affinity", "limit", "setuid", "io_uring", "ring_open",
    "ring_tcp", "ring_udp", "ring_unix", "run_memory", "chmod_theirs", "utimes_theirs",
    "acl_theirs", "flags_theirs", "noatime_theirs", "pageout_theirs", "link_theirs",
    "rename_theirs", "unlink_theirs")}


def cachestat(user):
    """What it answers when that user asks about a file of root: a name of an error, or "ok"."""
    libc = ctypes.CDLL(None, use_errno=True)
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(OSError):
            os.setuid(user)
        fd = os.open("/proc/version", os.O_RDONLY)
        got = libc.syscall(mounts.CACHESTAT, fd, (ctypes.c_uint64 * 2)(0, 1),
                           (ctypes.c_uint64 * 5)(), 0)
        os._exit(ctypes.get_errno() if got == -1 else 0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return errno.errorcode[code] if code else "ok"


# Linux before 6.5 has none, and up to 6.12 it answers everybody.
ASKED_BY_ROOT, ASKED_BY_NOBODY = (
    (cachestat(0), cachestat(pwd.getpwnam("nobody").pw_uid)) if os.geteuid() == 0 else ("ok", "ok"))
# Whether a file is emptied as it is opened is for nobody else to see.
WITHOUT_TRUNCATE = {"read_root": "ok", "ask_theirs": ASKED_BY_ROOT, **BY_LANDLOCK, **BY_SECCOMP,
                    "empty_root": "ok"}
# Since version 3 Landlock sees it.
CONFINED = {**WITHOUT_TRUNCATE, "empty_root": "EACCES" if kernel.VERSION >= 3 else "ok"}
# Without CAP_FOWNER.
NOT_OURS = {**{name: "EPERM" for name in BY_SECCOMP if name.endswith("_theirs")},
            "pageout_theirs": "ok", "ask_theirs": ASKED_BY_NOBODY}

# exec is of a program that does not exist, connect goes where nobody listens, a socket
# that listens is not connected in another way, and cut is of what cannot be written.
TRIED = {"exec": "ENOENT", "cut": "EINVAL", "connect": "ECONNREFUSED", "fastopen_to": "EISCONN",
         "fastopen_msg": "EISCONN", "ring_tcp": "ECONNREFUSED", "ring_unix": "ENOENT"}
FREE = {**{name: "ok" for name in CONFINED}, "ask_theirs": ASKED_BY_ROOT, **TRIED}

# What Landlock does not look at (TCP before version 4) is not looked at in a ring either.
BY_RING = {"io_uring": "ok", "ring_open": "EACCES", "ring_udp": "ok", "ring_unix": "ENOENT",
           "ring_tcp": "EACCES" if kernel.VERSION >= 4 else TRIED["ring_tcp"]}

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="not root: cannot become nobody")


def landlock(version):
    return pytest.mark.skipif(
        kernel.VERSION < version,
        reason="Landlock is of version %d, not %d" % (kernel.VERSION, version))


has_landlock = landlock(1)


def status(server):
    """Of each thread, what /proc/PID/status says."""
    path = "/proc/%d/task" % server.pid
    for task in os.listdir(path):
        with open("%s/%s/status" % (path, task)) as f:
            yield dict(re.findall(r"^(\w+):\s*(.*)$", f.read(), re.M))


@pytest.fixture
def places(base):
    """A root and a directory beside it; nobody may do there what it likes."""
    root, outside = (os.path.join(base, "sandbox", name) for name in ("inside", "outside"))
    for place, name in ((root, "index.html"), (root, "victim"), (outside, "secret")):
        os.makedirs(place, exist_ok=True)
        path = os.path.join(place, name)
        with open(path, "w") as f:
            f.write("it\n")
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(place, nobody.pw_uid, nobody.pw_gid)
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
    sticky = os.path.join(root, "sticky")
    os.makedirs(sticky, exist_ok=True)
    os.chmod(sticky, 0o1777)
    for name in ("theirs", "spare1", "spare2"):
        with open(os.path.join(sticky, name), "w") as f:
            f.write("theirs\n")
    yield root, outside
    for place in (root, outside):
        shutil.rmtree(place)


def trials(server, kind):
    """What one of KINDS said of what it tried, by name."""
    def said():
        return re.search(r"^pagewise: inside %s:(.*)$" % kind, server.output, re.M)
    words = harness.wait_until(said, "what was tried inside").group(1).split()
    return dict(word.split("=") for word in words)


@pytest.fixture
def inside(serve, debug, places):
    root, outside = places

    def start(*args, env=None, **kw):
        env = {"PAGEWISE_INSIDE": outside, "PAGEWISE_STRICT": None, **(env or {})}
        return serve("--root", root, "--workers", "1", *args, binary=debug, env=env, **kw)

    return start


STARTS = [
    pytest.param({"drops": True}, CONFINED, id="root", marks=as_root),
    pytest.param({"user": "nobody"} if os.geteuid() == 0 else {},
                 {**CONFINED, "ask_theirs": ASKED_BY_NOBODY}, id="nobody"),
]


@has_landlock
@pytest.mark.parametrize("started, expected", STARTS)
def test_unneeded_actions_fail(inside, started, expected):
    server = inside(**started)
    for kind in KINDS:
        assert trials(server, kind) == expected, kind
    assert server.get("/").body == b"it\n"


@as_root
@pytest.mark.parametrize("started, refused", [
    ({"drops": True}, ["ptrace", "kill", "tgkill", "schedule", "limit",
                       "setuid"]),  # the master is root's
    ({"user": "nobody"}, ["setuid"]),
])
def test_without_the_sandbox_these_actions_succeed(inside, started, refused):
    server = inside("--sandbox", "off", **started)
    for kind in KINDS:
        assert trials(server, kind) == {
            **FREE, **NOT_OURS, **{name: "EPERM" for name in refused}}, kind


@has_landlock
@as_root
def test_root_is_confined_as_well(inside):
    server = inside("--user", "root")
    for kind in KINDS:
        assert trials(server, kind) == CONFINED, kind


@as_root
def test_root_without_the_sandbox_may_do_everything(inside):
    """Else the refusals above would not be the sandbox's."""
    server = inside("--user", "root", "--sandbox", "off")
    for kind in KINDS:
        assert trials(server, kind) == FREE, kind


@has_landlock
@pytest.mark.parametrize("path", ["uring", "ring", "aio"])
def test_io_uring_is_allowed_only_where_it_is_used(inside, path):
    server = inside("--send-path", path)
    for kind in KINDS:
        assert trials(server, kind) == {**CONFINED, **BY_RING}, kind


@has_landlock
def test_a_file_can_be_cut_only_where_a_log_was_opened(inside, tmp_path):
    server = inside("--access-log", tmp_path / "log")
    for kind in KINDS:
        assert trials(server, kind) == {**CONFINED, "cut": "EINVAL"}, kind


# Landlock alone; who is root here may change modes and become root.
WITHOUT_FILTER = {
    **{name: "EACCES" for name in CONFINED}, "read_root": "ok", "chmod": "ok", "exec": "ENOENT", "cut": "EINVAL",
    "fork": "ok", "fastopen_to": "EISCONN", "fastopen_msg": "EISCONN", "option": "ok",
    "option_twin": "ok", "option_tcp": "ok", "ptrace": "EPERM", "kill": "EPERM", "tgkill": "EPERM", "schedule": "ok",
    "affinity": "ok", "limit": "ok", "setuid": "ok", "run_memory": "ok", "ask_theirs": ASKED_BY_ROOT,
    "chmod_theirs": "ok", "utimes_theirs": "ok", "acl_theirs": "ok", "flags_theirs": "ok",
    "noatime_theirs": "ok", "pageout_theirs": "ok", **BY_RING}
NO_LANDLOCK = (
    "no Landlock (Function not implemented): a compromised process can read and write all files "
    "that its user can; use Linux 5.13 or later with landlock in lsm=, and a container that "
    "permits Landlock")
NO_FILTER = "no seccomp filter (Function not implemented)"
WITHOUT_LANDLOCK = {**CONFINED, **{name: "ok" for name in BY_LANDLOCK}}


@as_root
@pytest.mark.parametrize("environment, missing, expected", [
    pytest.param({"PAGEWISE_LANDLOCK": "3"}, "TCP, ioctl, signals", CONFINED,
                 marks=landlock(3), id="3"),
    pytest.param({"PAGEWISE_LANDLOCK": "5"}, "signals", CONFINED, marks=landlock(5),
                 id="5"),
])
def test_older_landlock_is_noted_and_the_filter_stands_in(inside, environment, missing, expected):
    server = inside("--user", "root", env=environment)
    assert "pagewise: %sLandlock lacks %s\n" % (kernel.NOT_ALL, missing) in server.output
    for kind in KINDS:
        assert trials(server, kind) == expected, kind
    assert server.get("/").body == b"it\n"


@as_root
@pytest.mark.parametrize("environment, missing, expected", [
    pytest.param({"LANDLOCK": "0"}, NO_LANDLOCK, WITHOUT_LANDLOCK, id="landlock"),
    pytest.param({"LANDLOCK": "1"}, kernel.NO_TRUNCATE, WITHOUT_TRUNCATE, marks=landlock(1), id="1"),
    pytest.param({"LANDLOCK": "2"}, kernel.NO_TRUNCATE, WITHOUT_TRUNCATE, marks=landlock(2), id="2"),
    pytest.param({"SECCOMP": "0"}, NO_FILTER, WITHOUT_FILTER, marks=landlock(6), id="seccomp"),
    pytest.param({"LANDLOCK": "0", "SECCOMP": "0"}, NO_LANDLOCK + "; " + NO_FILTER, FREE,
                 id="both"),
])
def test_old_kernel_with_a_gap_is_warned_of_and_it_goes_on(inside, environment, missing,
                                                           expected):
    server = inside("--user", "root", env={
        "PAGEWISE_" + name: version for name, version in environment.items()})
    for kind in KINDS:
        assert trials(server, kind) == expected, kind
    assert server.get("/").body == b"it\n"
    server.stop(messages=re.escape("pagewise: warning: %s%s\n" % (kernel.NOT_ALL, missing)))


@has_landlock
@pytest.mark.parametrize("sandbox", ["on", "off"])
def test_each_server_process_reports_what_the_kernel_lacks(serve, public,
                                                                              sandbox):
    """All that the harness takes for no fault."""
    server = serve("--root", public[0], "--sandbox", sandbox)
    server.gap = ""
    assert server.messages == (kernel.WARNING if sandbox == "on" else "")
    server.again(signal.SIGUSR2, "upgraded")
    expected = kernel.WARNING * 2 if sandbox == "on" else ""
    server.stop(messages=re.escape(expected))


# ---------------------------------------------------------------- the release build


@pytest.fixture
def public(base):
    """A root with a file that all may read, larger than several windows."""
    path = os.path.join(base, "public")
    os.makedirs(path, exist_ok=True)
    data = os.urandom(5 << 20)
    for name, content in (("large", data), ("small", data[:1000]), ("link", None)):
        where = os.path.join(path, name)
        if content is None:
            if not os.path.lexists(where):
                os.symlink("small", where)
            continue
        with open(where, "wb") as f:
            f.write(content)
        os.chmod(where, 0o644)
    os.chmod(path, 0o755)
    return path, data


def evict(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


@as_root
@pytest.mark.parametrize("send_path", harness.SEND_PATHS)
def test_files_are_served_by_every_path(serve, release, public, send_path):
    serves_all(serve("--root", public[0], "--send-path", send_path, "--autoindex", drops=True,
                     binary=release), *public)


@as_root
@pytest.mark.parametrize("send_path", harness.SEND_PATHS)
def test_no_call_of_serving_is_missing_from_the_filter(serve, debug, public, tmp_path, send_path):
    """Any other would end the process."""
    log = tmp_path / "log"
    server = serve("--root", public[0], "--send-path", send_path, "--autoindex", "--admin",
                   "127.0.0.1:0", "--access-log", log, drops=True, binary=debug,
                   env={"PAGEWISE_STRICT": "1"})
    serves_all(server, *public)
    admin = re.search(r"admin at http://([^/:]+):(\d+)/", server.output).groups()
    with harness.Connection((admin[0], int(admin[1]))) as c:
        assert b"pagewise_requests_total" in c.ask("/metrics", host="127.0.0.1:" + admin[1]).body
    wait_until(lambda: b"GET /none" in log.read_bytes(), "a line of the log")
    server.reload()
    serves_all(server, *public)


def serves_all(server, root, data):
    for _ in range(2):
        evict(os.path.join(root, "large"))
        assert server.get("/large").body == data
        assert server.get("/large", fields={"Range": "bytes=3000000-3000099"}).body == (
            data[3000000:3000100])
    for _ in range(4):
        assert server.get("/small").body == data[:1000]
    assert server.get("/link").body == data[:1000]
    assert b'"large"' in server.get("/").body
    assert server.get("/none").status == 404


@as_root
@pytest.mark.parametrize("send_path", ["nodiskio", "uring"])
def test_every_thread_is_nobody_and_confined(serve, release, public, send_path):
    root, data = public
    server = serve("--root", root, "--send-path", send_path, "--admin", "127.0.0.1:0",
                   drops=True, binary=release)
    assert server.get("/large").body == data
    nobody = pwd.getpwnam("nobody")
    threads = list(status(server))
    assert len(threads) >= 4
    for thread in threads:
        assert thread["Uid"].split() == [str(nobody.pw_uid)] * 4
        assert thread["Gid"].split() == [str(nobody.pw_gid)] * 4
        assert thread["Groups"].split() == [str(nobody.pw_gid)]
        assert thread["NoNewPrivs"] == "1"
        assert thread["Seccomp"] == "2"


def scheduling(pid):
    """Of each thread: its name, its policy, and its time slice in ns (0 before Linux 6.12)."""
    libc, attr = ctypes.CDLL(None, use_errno=True), (ctypes.c_uint64 * 6)()
    for tid in map(int, os.listdir("/proc/%d/task" % pid)):
        with open("/proc/%d/task/%d/comm" % (pid, tid), encoding="ascii") as f:
            name = f.read().strip()
        assert libc.syscall(SCHED_GETATTR, tid, attr, ctypes.sizeof(attr), 0) == 0
        yield name, os.sched_getscheduler(tid), attr[3]


def test_loop_preempts_disk_threads(serve, release, public):
    """Also behind the filter of system calls: a loop that wakes up does not wait for the end of their slices."""
    root, data = public
    server = serve("--root", root, drops=True, binary=release)
    assert server.get("/large").body == data
    found = list(scheduling(server.pid))
    loops = [(policy, slice_) for name, policy, slice_ in found if name.startswith("pw-worker")]
    disks = [(policy, slice_) for name, policy, slice_ in found if name == "pw-fetch"]
    assert loops and disks
    for policy, slice_ in disks:
        assert policy == os.SCHED_BATCH
        assert slice_ > max(s for _, s in loops) or slice_ == 0


@as_root
def test_root_becomes_nobody_with_a_message(serve, public):
    server = serve("--root", public[0], drops=True)
    server.reload()
    assert server.output.count("started as root: switching to user nobody") == 1


@as_root
def test_user_and_group_by_name_and_by_number(serve, serve_conf, public):
    site = ("s", {"root": public[0]}, {})
    daemon, tty = pwd.getpwnam("daemon"), grp.getgrnam("tty")
    for server, uid, gid in (
        (serve("--root", public[0], "--user", "daemon"), daemon.pw_uid, daemon.pw_gid),
        (serve("--root", public[0], "--user", "54321", "--group", "tty"), 54321, tty.gr_gid),
        (serve_conf({"user": str(daemon.pw_uid), "group": "12345"}, [site], drops=True),
         daemon.pw_uid, 12345),
    ):
        thread = next(status(server))
        assert thread["Uid"].split() == [str(uid)] * 4
        assert thread["Gid"].split() == [str(gid)] * 4
        assert server.get("/small").status == 200
        assert "becoming" not in server.output


@as_root
def test_user_without_an_entry_needs_a_group(public):
    run = harness.Finished("-t", "--root", public[0], "--user", "54321")
    assert run.code == 1
    assert "54321 has no entry in passwd(5)" in run.err


@as_root
def test_groups_are_those_of_the_user(serve, public):
    entries = [pwd.getpwnam(name) for group in grp.getgrall() for name in group.gr_mem
               if name in {p.pw_name for p in pwd.getpwall()}]
    if not entries:
        pytest.skip("nobody here is in a second group")
    entry = entries[0]
    server = serve("--root", public[0], "--user", entry.pw_name)
    groups = {int(gid) for gid in next(status(server))["Groups"].split()}
    assert groups == set(os.getgrouplist(entry.pw_name, entry.pw_gid))


@as_root
@pytest.mark.parametrize("args, message", [
    (["--user", "daemon"], "user: cannot switch to daemon: not started as root"),
    (["--user", "nobody", "--group", "tty"], "group: cannot switch to tty: not started as root"),
])
def test_only_root_can_change_the_user(public, args, message):
    server = harness.Server("--root", public[0], *args, user="nobody")
    with pytest.raises(AssertionError, match="ended with 1") as error:
        server.start()
    server.discard()
    assert message in str(error.value)


# A new user namespace with the users and groups 0 to 9, whose parent maps them.
LACKS_NOBODY = """
import ctypes, os, sys
wait, go = os.pipe()
ready, tell = os.pipe()
parent = os.getpid()
child = os.fork()
if child == 0:
    os.read(ready, 1)
    for name in ("uid_map", "gid_map"):
        with open("/proc/%d/%s" % (parent, name), "w") as f:
            f.write("0 0 10")
    os.write(go, b"x")
    os._exit(0)
assert ctypes.CDLL(None).unshare(0x10000000) == 0
os.write(tell, b"x")
os.read(wait, 1)
os.waitpid(child, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def one_user():
    return namespaces.unshare("--user", "--map-root-user")


@pytest.mark.parametrize("args", [(), ("--user", "nobody")])
def test_in_a_namespace_of_one_user_the_cure_is_named(public, one_user, args):
    server = harness.Server("--root", public[0], *args, becomes=one_user, drops=True)
    with pytest.raises(AssertionError, match="ended with 1") as error:
        server.start()
    server.discard()
    assert ("cannot switch to user nobody: Operation not permitted: this user namespace has only one user; "
            "set user = root (--user root), who has no rights outside of it") in str(error.value)


def test_the_cure_for_a_namespace_of_one_user_works(serve, public, one_user):
    server = serve("--root", public[0], "--user", "root", becomes=one_user)
    assert server.get("/small").status == 200


@as_root
def test_user_that_a_namespace_lacks_is_named(public):
    namespaces.unshare("--user")  # or LACKS_NOBODY is refused too
    server = harness.Server("--root", public[0], "--user", "nobody", becomes=(
        sys.executable, "-c", LACKS_NOBODY))
    with pytest.raises(AssertionError, match="ended with 1") as error:
        server.start()
    server.discard()
    assert ("cannot switch to user nobody: Invalid argument: this user namespace lacks the user or one of its "
            "groups; map them, or set user = root (--user root)") in str(error.value)


@as_root
def test_user_may_name_the_current_user(serve, public):
    server = serve("--root", public[0], "--user", "nobody", user="nobody")
    assert server.get("/small").status == 200


@as_root
def test_root_that_the_user_cannot_read_is_an_error(base):
    path = os.path.join(base, "private")
    os.makedirs(path, exist_ok=True)
    os.chmod(path, 0o700)
    server = harness.Server("--root", path, drops=True)
    with pytest.raises(AssertionError, match="ended with 1") as error:
        server.start()
    server.discard()
    assert "root: %s: user nobody cannot read it: Permission denied" % path in str(error.value)


@as_root
@pytest.mark.parametrize("option", ["-t", "-T"])
def test_a_check_finds_a_root_that_the_user_cannot_read(base, option):
    path = os.path.join(base, "private-too")
    os.makedirs(path, exist_ok=True)
    os.chmod(path, 0o700)
    refused = harness.Finished(option, "--root", path, "--user", "nobody")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (f"pagewise: root: {path}: user nobody cannot read it: Permission denied; "
                           "chmod o+rx it, or set user\n")
    assert harness.Finished(option, "--root", path, "--user", "root").code == 0
    os.chmod(path, 0o755)
    assert harness.Finished(option, "--root", path, "--user", "nobody").code == 0


@as_root
def test_directories_above_the_root_need_not_be_searchable(serve, base):
    """It was opened before."""
    above = os.path.join(base, "above")
    root = os.path.join(above, "root")
    os.makedirs(root, exist_ok=True)
    with open(os.path.join(root, "file"), "w") as f:
        f.write("it")
    os.chmod(above, 0o700)
    try:
        server = serve("--root", root, drops=True)
        assert server.get("/file").body == b"it"
    finally:
        os.chmod(above, 0o755)


@as_root
def test_log_and_admin_are_opened_before(serve, public, tmp_path):
    """Their directories are root's, and nobody else may enter."""
    os.chmod(tmp_path, 0o700)
    log, admin = tmp_path / "log", tmp_path / "admin"
    server = serve("--root", public[0], "--access-log", log, "--admin", admin, drops=True)
    assert server.get("/small").status == 200
    harness.wait_until(lambda: b"GET /small" in log.read_bytes(), "a line of the log")
    assert admin.is_socket()


@as_root
def test_logs_are_written_from_inside_and_opened_again_by_reload_and_upgrade(
        serve, release, public, tmp_path):
    """As nobody, in a directory that only root may enter."""
    os.chmod(tmp_path, 0o700)
    log = tmp_path / "log"
    server = serve("--root", public[0], "--access-log", log, drops=True, binary=release)
    for number, kind in enumerate((None, signal.SIGHUP, signal.SIGUSR2)):
        if kind:
            log.rename(tmp_path / str(number))
            served = server.output.count("serving ")
            server.again(kind, "reloaded" if kind == signal.SIGHUP else "upgraded")
            # Said by the log's thread, from inside.
            wait_until(lambda: server.output.count("serving ") > served, "the notice")
        assert next(status(server))["Uid"].split() == [str(pwd.getpwnam("nobody").pw_uid)] * 4
        server.get("/small?%d" % number)
        wait_until(lambda: log.exists() and "/small?%d " % number in log.read_text(), "a line")
        assert log.stat().st_uid == 0
        assert [n for n in range(3) if "/small?%d " % n in log.read_text()] == [number]


@as_root
def test_a_log_that_cannot_be_opened_again_stays(serve, public, tmp_path):
    log = tmp_path / "log"
    server = serve("--root", public[0], "--access-log", log, drops=True)
    log.rename(tmp_path / "old")
    log.mkdir()
    server.signal(signal.SIGHUP)
    wait_until(lambda: "stays in use" in server.messages, "the refusal")
    server.get("/small?1")
    wait_until(lambda: "/small?1 " in (tmp_path / "old").read_text(), "a line")
    server.stop(messages=".*cannot open the access log %s: Is a directory\n.*" % log)


@as_root
def test_chroot_is_entered(serve_conf, release, public, base):
    server = serve_conf({"chroot": os.path.join(base, "public"), "user": "nobody"},
                        [("s", {"root": public[0]}, {})], drops=True,
                        binary=release)
    assert os.readlink("/proc/%d/root" % server.pid) == public[0]
    assert server.get("/large").body == public[1]


@as_root
def test_only_root_can_use_chroot(public):
    path = os.path.join(os.path.dirname(public[0]), "chroot.conf")
    with open(path, "w") as f:
        f.write(harness.configuration({"chroot": "/"}, [("s", {"root": public[0]}, {})]))
    server = harness.Server("-c", path, user="nobody")
    with pytest.raises(AssertionError, match="ended with 1") as error:
        server.start()
    server.discard()
    assert "chroot needs root" in str(error.value)


@as_root
@pytest.mark.needs("strace")
def test_large_pages_are_read_as_user_nobody(serve, release, public, tmp_path):
    """os_fetch_folio opens files again by way of /proc."""
    if strace.why_not():
        pytest.skip(strace.why_not())
    trace = os.path.join(str(tmp_path), "trace")
    server = serve("--root", public[0], "--send-path", "nodiskio", "--workers", "1", drops=True,
                   binary=release, wrapper=strace.STRACE + [trace])
    evict(os.path.join(public[0], "large"))
    assert server.get("/large").body == public[1]
    server.stop()
    with open(trace) as f:
        text = f.read()
    tries = re.findall(r'"/proc/self/fd/\d+", [^)]*\) = (-?\d+)', text)
    if not tries:
        pytest.skip("no large pages on this file system")
    assert any(int(result) >= 0 for result in tries), tries


@as_root
@pytest.mark.needs("strace")
def test_server_process_ends_with_its_master_until_it_is_ready(serve, release, public, tmp_path):
    """To become another user takes that back."""
    if strace.why_not():
        pytest.skip(strace.why_not())
    trace = os.path.join(str(tmp_path), "trace")
    server = serve("--root", public[0], drops=True, binary=release,
                   wrapper=strace.STRACE + [trace])
    pid = server.pid
    server.stop()
    with open(trace) as f:
        text = "".join(line for line in f if line.startswith("%d " % pid))
    ready = re.escape(r'"\2\0\0\0')  # CHANNEL_READY
    words = re.findall(r"PR_SET_PDEATHSIG, (\w+)|(setresuid)\(|(sendmsg)\(.*" + ready, text)
    assert ["".join(word) for word in words] == ["SIGKILL", "setresuid", "SIGKILL", "0", "sendmsg"]
