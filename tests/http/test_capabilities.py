"""What is left of capabilities(7) in each deployment: CAP_FOWNER, where it is good for no more
than to ask which pages of a file are in memory, else none."""

import os
import re
import signal

import pytest

import landlock as kernel
import strace
import tree as t
from test_sandbox import (ASKED_BY_NOBODY, CONFINED, FREE, KINDS, NO_FILTER, as_root,
                          evict, has_landlock, inside, places, public, status, trials)

pytestmark = as_root

FOWNER = 1 << 3
NONE = {"CapPrm": 0, "CapEff": 0, "CapInh": 0, "CapAmb": 0, "CapBnd": 0}
ONE = {**NONE, "CapPrm": FOWNER, "CapEff": FOWNER}
SAID = "keep_fowner: cannot keep CAP_FOWNER: "


def of(thread):
    return {name: int(thread[name], 16) for name in NONE}


def capabilities(server):
    """Of all threads, which have the same."""
    threads = [of(thread) for thread in status(server)]
    assert len(threads) >= 4
    assert all(thread == threads[0] for thread in threads), threads
    return threads[0]


def own():
    with open("/proc/self/status") as f:
        return of(dict(re.findall(r"^(\w+):\s*(.*)$", f.read(), re.M)))


def setpriv(*args):
    return ["setpriv", *args]


def as_nobody_with(*names):
    which = ",".join("+" + name for name in names)
    return setpriv("--reuid", "nobody", "--regid", "nogroup", "--clear-groups",
                   "--inh-caps", which, "--ambient-caps", which)


@pytest.fixture
def start(serve, release, public):
    """It has served, so that it has all threads."""
    root, data = public

    def run(*args, **kw):
        evict(os.path.join(root, "large"))
        server = serve("--root", root, "--admin", "127.0.0.1:0", *args,
                       **{"drops": True, "binary": release, **kw})
        assert server.get("/large").body == data
        return server

    return run


def test_root_that_becomes_nobody_keeps_one(start):
    server = start()
    assert capabilities(server) == ONE
    server.reload()
    assert capabilities(server) == ONE
    server.again(signal.SIGUSR2, "upgraded")
    assert capabilities(server) == ONE
    assert SAID not in server.output


def test_root_that_stays_root_keeps_its_own_and_passes_none_on(start):
    server = start("--user", "root")
    assert capabilities(server) == {
        **NONE, "CapPrm": own()["CapPrm"], "CapEff": own()["CapEff"]}
    assert SAID not in server.output


def test_ordinary_user_has_none_and_is_told_nothing(start):
    server = start(user="nobody")
    assert capabilities(server) == {**NONE, "CapBnd": own()["CapBnd"]}
    assert SAID not in server.output


def test_key_turns_it_off(serve_conf, public, release):
    server = serve_conf({"keep_fowner": False}, [("s", {"root": public[0]}, {})], drops=True,
                        binary=release)
    assert server.get("/large").body == public[1]
    assert capabilities(server) == NONE
    assert SAID not in server.output


def noted(path):
    """Its time of access is later than that of its last change."""
    st = os.stat(path)
    return st.st_atime_ns > st.st_mtime_ns


@pytest.mark.parametrize("user, keep", [("nobody", True), ("root", True), ("nobody", False)])
def test_access_time_is_not_updated_if_permitted(serve_conf, public, user, keep):
    """It might wait for a journal."""
    files = [os.path.join(public[0], name) for name in ("noted", "control")]
    for path in files:
        t.write(path, t.content(1, 200000))
        os.utime(path, (1_500_000_000, 1_600_000_000))
    with open(files[1], "rb") as f:
        f.read()
    if not noted(files[1]):
        pytest.skip("this file system is mounted with noatime")
    server = serve_conf({"workers": 1, "hot_set": 0, "user": user, "keep_fowner": keep},
                        [("s", {"root": public[0]}, {})], drops=True)
    for _ in range(2):
        assert server.get("/noted").body == t.content(1, 200000)
    assert noted(files[0]) == (not keep)
    server.stop(messages=True)


@pytest.mark.parametrize("path", ["uring", "ring", "aio"])
def test_io_uring_and_the_capability_exclude_each_other(serve_conf, release, public, path):
    """Also if only a location uses it."""
    root, data = public
    server = serve_conf({"workers": 2}, [("s", {"root": root}, {"/x/": {"send_path": path}})], drops=True,
                        binary=release)
    assert server.get("/large").body == data
    assert capabilities(server) == NONE
    assert SAID + "io_uring bypasses the seccomp filter" in server.output


@pytest.mark.parametrize("variable, value, why", [
    ("PAGEWISE_SECCOMP", "0", re.escape(NO_FILTER)),
    ("PAGEWISE_SECCOMP_IDLE", "1", r"no seccomp filter \(the kernel does not enforce it\)"),
])
def test_without_a_filter_the_capability_is_dropped(start, debug, variable, value, why):
    """However it comes that there is none."""
    server = start(binary=debug, env={variable: value, "PAGEWISE_STRICT": None})
    assert capabilities(server) == NONE
    assert SAID + "there is no seccomp filter" in server.output
    server.stop(messages="pagewise: warning: %s.*%s\n" % (re.escape(kernel.NOT_ALL), why))


def test_without_the_sandbox_there_is_no_capability(start):
    server = start("--sandbox", "off")
    assert capabilities(server) == {**NONE, "CapBnd": own()["CapBnd"]}


def test_granted_capability_is_kept_and_no_other(start):
    server = start(becomes=as_nobody_with("fowner", "chown"))
    assert capabilities(server) == {**ONE, "CapBnd": own()["CapBnd"]}


def test_bounding_set_is_emptied_if_permitted(start):
    assert capabilities(start(becomes=as_nobody_with("fowner", "setpcap"))) == ONE
    assert capabilities(start(becomes=as_nobody_with("setpcap"))) == NONE


@pytest.mark.parametrize("started", [
    ["--bounding-set", "-fowner"],
    ["--securebits", "+keep_caps_locked"],
], ids=["bounding", "locked"])
def test_root_without_the_capability_is_warned(start, started):
    server = start(becomes=setpriv(*started))
    assert capabilities(server) == NONE
    assert SAID + "root lacks this capability" in server.output


# ---------------------------------------------------------------- what it is good for


THEIRS = [name for name in FREE if name.endswith("_theirs")]


@has_landlock
@pytest.mark.parametrize("sandbox", ["on", "off"])
def test_the_filter_refuses_all_uses_except_residency_checks(inside, sandbox):
    """Without the sandbox it does permit all of it."""
    server = inside("--sandbox", sandbox, becomes=as_nobody_with("fowner"), drops=True)
    expected = CONFINED if sandbox == "on" else FREE
    for kind in KINDS:
        got = trials(server, kind)
        assert {name: got[name] for name in THEIRS} == {
            name: expected[name] for name in THEIRS}, kind


@pytest.mark.skipif(ASKED_BY_NOBODY != "EPERM", reason="no cachestat, or one for everybody")
@pytest.mark.parametrize("keep, answer", [(True, "0"), (False, "-1 EPERM")])
@pytest.mark.needs("strace")
def test_user_nobody_can_check_files_of_root(serve_conf, release, public, tmp_path, keep, answer):
    if strace.why_not():
        pytest.skip(strace.why_not())
    root, data = public
    trace = tmp_path / "trace"
    server = serve_conf({"keep_fowner": keep, "hot_set": 0}, [("s", {"root": root}, {})],
                        drops=True, binary=release, wrapper=strace.STRACE + [trace])
    assert server.get("/large").body == data
    server.stop()
    # An older strace has no name for it.
    calls = [call for call in strace.parse(trace) if call.name in ("cachestat", "syscall_0x1c3")]
    got = {"%d %s" % (call.result, call.error or "") for call in calls if call.error != "EBADF"}
    assert {text.strip() for text in got} == {answer}
