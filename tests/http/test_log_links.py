"""Which symbolic links a log is opened by: those that root has made, or the user that opens
it.  Whoever else may write into the directory would choose a file that root appends to."""

import glob
import os
import pwd
import re
import signal

import pytest

import harness
import namespaces
from harness import wait_until
from http2 import LOGGED

REFUSED = "cannot open the access log %s: the symbolic link belongs to another user: remove it, or create it as root\n"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="not root: cannot give links away")


@pytest.fixture
def logs(tmp_path):
    path = tmp_path / "logs"
    path.mkdir()
    return path


def give_away(link):
    nobody = pwd.getpwnam("nobody")
    os.lchown(link, nobody.pw_uid, nobody.pw_gid)


def logged(server, path, number):
    server.get("/?%d" % number)
    wait_until(lambda: path.exists() and "GET /?%d " % number in path.read_text(), "its line")


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("target", ["absolute", "relative", "over a third"])
def test_our_own_link_is_followed(serve, site, logs, target, exists):
    elsewhere, link = logs.parent / "elsewhere", logs / "log"
    if exists:
        elsewhere.touch()
    if target == "over a third":
        (logs / "third").symlink_to("../elsewhere")
    link.symlink_to({"absolute": elsewhere, "relative": "../elsewhere"}.get(target, "third"))
    logged(serve("--root", site, "--access-log", link), elsewhere, 1)
    assert link.is_symlink()


@as_root
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("hops", [1, 2])
def test_link_of_another_user_is_refused(site, logs, exists, hops):
    victim, link = logs.parent / "victim", logs / "log"
    if exists:
        victim.write_text("it\n")
    link.symlink_to(victim)
    give_away(link)
    if hops == 2:
        (logs / "ours").symlink_to("log")
        link = logs / "ours"
    server = harness.Server("--root", site, "--access-log", link)
    assert server.wait() == 1
    messages = server.messages
    server.discard()
    assert messages == "pagewise: " + REFUSED % link
    assert victim.read_text() == "it\n" if exists else not victim.exists()


@as_root
def test_link_that_another_user_has_put_there_is_refused_by_a_reload(serve, site, logs):
    victim, log = logs.parent / "victim", logs / "log"
    victim.write_text("it\n")
    server = serve("--root", site, "--access-log", log)
    logged(server, log, 1)
    log.rename(logs / "old")
    log.symlink_to(victim)
    give_away(log)
    server.signal(signal.SIGHUP)
    wait_until(lambda: "stays in use" in server.messages, "the refusal")
    logged(server, logs / "old", 2)
    assert victim.read_text() == "it\n"
    server.stop(messages=".*%s.*" % re.escape(REFUSED % log))


def test_links_in_a_circle_are_refused(site, logs):
    (logs / "log").symlink_to("log")
    server = harness.Server("--root", site, "--access-log", logs / "log")
    assert server.wait() == 1
    assert "cannot open the access log" in server.messages
    server.discard()


@pytest.mark.parametrize("name", ["/dev/fd/%d", "/proc/self/fd/%d"])
def test_links_of_proc_open_the_descriptor(serve, site, name):
    ends = os.pipe()
    try:
        server = serve("--root", site, "--access-log", name % ends[1], pass_fds=ends[1:])
        server.get("/?1")
        assert b'"GET /?1 %s"' % LOGGED.encode() in os.read(ends[0], 4096)
    finally:
        for fd in ends:
            os.close(fd)


@as_root
def test_without_proc_the_cause_is_named(serve, site, debug):
    """The limit by TCP's memory and the list of descriptors are read there."""
    bare = (*namespaces.unshare("--mount"), "sh", "-c", 'umount -l /proc && exec "$@"', "sh")
    server = serve("--root", site, becomes=bare, binary=debug)  # sanitizers need /proc
    assert server.get("/").status in (200, 403, 404)
    for text in ("cannot close inherited descriptors: cannot list the open ones",
                 "cannot read how much memory TCP uses"):
        assert text + ": No such file or directory; mount /proc, all of it\n" in server.output


def test_only_the_master_keeps_inherited_descriptors(serve, site):
    """A log may be there; clients have nothing to do with the rest."""
    ends = os.pipe()
    try:
        server = serve("--root", site, "--access-log", "/dev/fd/%d" % ends[1], pass_fds=ends)
        server.reload()
        kept = [os.path.exists("/proc/%d/fd/%d" % (server.master, fd)) for fd in ends]
        assert kept == [True, True]
        pipe = os.readlink("/proc/self/fd/%d" % ends[0])
        names = glob.glob("/proc/%d/fd/*" % server.pid)
        assert [os.readlink(name) for name in names].count(pipe) == 1  # the log
    finally:
        for fd in ends:
            os.close(fd)


def test_fifo_without_a_reader_is_refused(site, logs):
    os.mkfifo(logs / "log")
    server = harness.Server("--root", site, "--access-log", logs / "log")
    assert server.wait() == 1
    assert "it is a FIFO without a reader" in server.messages
    server.discard()


def test_dev_stdout_is_the_standard_output(serve, site):
    server = serve("--root", site, "--access-log", "/dev/stdout")
    server.get("/?1")
    wait_until(lambda: '"GET /?1 %s"' % LOGGED in server.output, "its line")
