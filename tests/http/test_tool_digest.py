"""pagewise digest: the attribute that it writes, what it skips, and what --check finds."""

import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import harness
import mounts
from harness import Finished, wait_until

NAME = "user.pagewise.sha256"
OLD = 1_600_000_000_123_456_789  # nanoseconds


def put(path, data, when=OLD):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, ns=(when, when))
    return path


def nest(top, levels):
    """Directories in each other; a path of them is too long for one call."""
    fd = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 20, dir_fd=fd)
        inner = os.open("d" * 20, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    return fd


def run(*args, code=0):
    done = Finished("digest", *args)
    assert done.code == code, (done.code, done.out, done.err)
    return done


def attribute(path):
    try:
        return os.getxattr(path, NAME).decode()
    except OSError:
        return None


def wanted(path):
    st = os.stat(path)
    hashed = hashlib.sha256(path.read_bytes()).hexdigest()
    return "%s %d %d.%09d" % (hashed, st.st_size, st.st_mtime_ns // 10**9, st.st_mtime_ns % 10**9)


@pytest.fixture
def site(tmp_path):
    """A directory where users have attributes."""
    probe = put(tmp_path / "site/probe", b"")
    try:
        os.setxattr(probe, NAME, b"")
    except OSError:
        pytest.skip("no extended attributes for users in %s" % tmp_path)
    probe.unlink()
    return tmp_path / "site"


def test_each_file_gets_the_hash_of_sha256sum_size_and_time(site):
    files = [put(site / "a.txt", b"hello\n"), put(site / "b/c.bin", os.urandom(3_000_000)),
             put(site / "empty", b""), put(site / "a.txt.gz", b"sibling"), put(site / "old", b"x", -1_500_000_000)]
    times = [f.stat().st_mtime_ns for f in files]
    done = run(site)
    assert "5 files: 5 digests written, 0 current; 0 errors; 2.9 MiB read" in done.out and done.err == ""
    for file, when in zip(files, times):
        assert attribute(file) == wanted(file)
        assert file.stat().st_mtime_ns == when
    assert attribute(site / "old").endswith(" 1 -2.500000000")


def test_files_with_current_digests_are_not_read(site):
    file = put(site / "a", b"one")
    put(site / "b", b"two")
    run(site)
    assert "0 digests written, 2 current; 0 errors; 0 bytes read" in run(site).out
    put(file, b"new", OLD + 1)
    assert "1 digests written, 1 current" in run(site).out
    assert attribute(file) == wanted(file)
    put(file, b"longer", OLD + 1)
    assert "1 digests written" in run(site).out
    assert "2 digests written" in run("--force", site).out
    os.setxattr(file, NAME, b"x" * 1000)
    os.setxattr(site / "b", NAME, b"")
    assert "2 digests written" in run(site).out
    assert attribute(file) == wanted(file)


def test_links_and_dotfiles_are_left_out(site, tmp_path):
    outside = put(tmp_path / "outside/secret", b"1")
    for name in (".hidden", ".dir/a", ".pagewise-0123456789abcdef.tmp", "a"):
        put(site / name, b"1")
    (site / "link").symlink_to(outside)
    (site / "out").symlink_to(outside.parent)
    assert "1 files: 1 " in run(site).out
    assert attribute(outside) is None and attribute(site / ".hidden") is None
    assert "3 files: 2 digests written, 1 current" in run("--dotfiles", site).out
    assert (site / ".pagewise-0123456789abcdef.tmp").exists()


def test_check_finds_differences_and_writes_nothing(site):
    bad, good, changed, none = (put(site / name, name.encode()) for name in ("bad", "good", "changed", "none"))
    run(site)
    os.removexattr(none, NAME)
    put(changed, b"other", OLD + 1)
    put(bad, b"BAD")
    before = [attribute(f) for f in (bad, good, changed, none)]
    done = run("--check", site, code=1)
    assert done.out.splitlines() == [
        f"{bad}: the content does not match the digest; restore the file, or replace the digest with pagewise digest -f",
        "4 files: 1 verified, 1 differ, 2 without a digest; 0 errors; 7 bytes read"]
    assert [attribute(f) for f in (bad, good, changed, none)] == before
    put(bad, b"bad")
    assert "2 verified, 0 differ" in run("-c", site).out
    assert run("-c", "-q", site).out == ""


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_unwritable_file_is_reported_and_not_read():
    place = pathlib.Path(tempfile.mkdtemp(prefix="pagewise-tool-"))
    try:
        place.chmod(0o755)
        put(place / "a", b"1").chmod(0o644)
        put(place / "b", b"2").chmod(0o666)
        try:
            os.setxattr(place / "a", NAME, b"")
        except OSError:
            pytest.skip("no extended attributes for users in /tmp")
        done = subprocess.run([harness.PAGEWISE, "digest", str(place)], user=65534, group=65533, extra_groups=[],
                              check=False, capture_output=True, text=True)
        assert done.returncode == 1 and "1 errors; 1 bytes read" in done.stdout
        assert done.stderr == (f"pagewise digest: {place}/a: cannot write the attribute: Permission denied; "
                               "run the command as a user that may write the file\n")
        assert attribute(place / "b") == wanted(place / "b")
    finally:
        shutil.rmtree(place)


@pytest.mark.skipif(not os.path.isdir("/proc/sys/fs"), reason="no file system without attributes is at hand")
def test_file_system_without_attributes_is_reported_once():
    done = run("-j", "1", "/proc/sys/fs", code=1)
    assert done.err.count("digests need user extended attributes") == 1 == done.err.count("\n")


@pytest.mark.slow
@mounts.NEEDS["ext4"]
def test_full_disk_ends_it_with_one_message():
    with mounts.full({"f%d" % i: b"%d" % i for i in range(20)}) as top:
        done = run("-j", "1", top, code=1)
        assert re.fullmatch(r"pagewise digest: \S+: cannot store the digest: No space left on device; "
                            r"the remaining files are skipped\n", done.err)
        assert "0 digests written, 0 current; 1 errors" in done.out
        assert all(attribute(os.path.join(top, name)) is None for name in os.listdir(top))
        os.unlink(os.path.join(top, "rest"))
        assert "20 digests written" in run(top).out


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_it_between_two_blocks(site, number, code):
    file = site / "big"
    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as f:
        f.truncate(1 << 40)  # a hole: an hour
    os.utime(file, ns=(OLD, OLD))
    put(site / "small", b"1")
    with subprocess.Popen([harness.PAGEWISE, "digest", "-j", "2", str(site)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        wait_until(lambda: attribute(site / "small"), "the work")
        p.send_signal(number)
        out, err = p.communicate(timeout=60)
    assert p.returncode == code and "; 0 errors" in out and err.count("\n") == 1
    assert attribute(file) is None and attribute(site / "small") == wanted(site / "small")


def test_file_that_changes_while_it_is_read_gets_no_digest(site):
    file = site / "big"
    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as f:
        f.truncate(1 << 40)
    os.utime(file, ns=(OLD, OLD))
    put(site / "small", b"1")
    with subprocess.Popen([harness.PAGEWISE, "digest", "-j", "2", str(site)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        wait_until(lambda: attribute(site / "small"), "the work")
        os.truncate(file, 100)
        out, err = p.communicate(timeout=60)
    assert p.returncode == 1 and "1 digests written" in out
    assert err == f"pagewise digest: {file}: the file changed while it was read; run the command again\n"
    assert attribute(file) is None


@pytest.mark.slow
def test_a_file_that_was_just_written_is_read_later(site):
    """Two writes of one clock tick have one time: a digest between them would be trusted."""
    rng = random.Random(3)
    file = put(site / "a", b"0")
    for _ in range(20):
        data = bytes(rng.choices(b"01", k=4))
        file.write_bytes(data)
        run(site)
        assert attribute(file) == wanted(file)
    fresh = site / "b"
    fresh.write_bytes(b"1")
    st = fresh.stat()
    os.utime(fresh, ns=(st.st_atime_ns, st.st_mtime_ns // 10**9 * 10**9))  # as FAT has it
    begin = fresh.stat().st_mtime
    run(site)
    assert time.time() >= begin + 2 and attribute(fresh) == wanted(fresh)


@pytest.mark.parametrize("args, text", [
    ([], "no directory"), (["-j", "x", "d"], "not a number"), (["-c"], "no directory"),
    (["--codings", "gz", "d"], "unknown option --codings"),
])
def test_bad_command_line(args, text):
    done = run(*args, code=2)
    assert text in done.err and done.err.count("\n") == 1


def test_help():
    assert run("--help").out.startswith("usage: pagewise digest")


@pytest.mark.slow
def test_very_deep_tree_is_walked_to_the_limit(site):
    put(site / "top", b"top")
    fd = nest(site, 2100)
    os.close(os.open("bottom", os.O_WRONLY | os.O_CREAT, dir_fd=fd))
    os.close(fd)
    for command in "digest", "precompress":
        done = subprocess.run(
            ["sh", "-c", 'ulimit -s 256; exec "$0" "$@"', harness.PAGEWISE, command, "-j", "1", site],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 1, done.stderr
        assert done.stderr == "pagewise %s: %s: cannot read the directory: " \
            "the path has more than 2048 directory levels and is skipped\n" % (
                command, str(site) + "/" + "/".join(["d" * 20] * 2049))
        assert "1 errors" in done.stdout
    assert attribute(site / "top") == wanted(site / "top")
    subprocess.run(["rm", "-rf", site], check=True)


def test_names_are_escaped_on_a_terminal(site):
    evil = "\x1b]0;x\x07\npagewise: forged\\\xfc"
    escaped = r"\x1B]0;x\x07\x0Apagewise: forged\x5C\xC3\xBC"
    path = put(site / evil / (evil + ".txt"), b"a")
    run(site)
    when = os.stat(path).st_mtime_ns
    put(path, b"b", when)
    done = run("--check", site, code=1)
    assert done.out.splitlines()[0] == "%s/%s/%s.txt: the content does not match the digest; restore the file, or replace the digest with pagewise digest -f" % (
        site, escaped, escaped)
    os.truncate(path, 1000)
    os.mkdir(str(path) + ".gz")
    done = Finished("precompress", "-c", "gz", site)
    assert done.code == 1
    assert done.err == "pagewise precompress: %s/%s/%s.txt.gz: this sibling is not a regular file: move it away\n" % (
        site, escaped, escaped)
    done = Finished("digest", site / evil / "none")
    assert done.code == 1 and "%s/%s/none: cannot read the directory: No such" % (site, escaped) in done.err
    done = Finished("assign", "a,b", site / evil / "none")
    assert done.code == 1 and "%s/%s/none: No such" % (site, escaped) in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="makes links of another user")
@pytest.mark.parametrize("command", ["digest", "precompress"])
def test_link_of_another_user_is_not_followed(tmp_path, command):
    """Neither the directory that is given, nor a part of its path, nor what an own link leads over."""
    secret = tmp_path / "secret"
    put(secret / "in/page.html", b"x" * 1000)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "link").symlink_to(secret)
    os.chown(theirs, 12345, 12345)
    everybodys = tmp_path / "everybodys"
    everybodys.mkdir()
    everybodys.chmod(0o1777)
    (everybodys / "link").symlink_to(secret)
    groups = tmp_path / "groups"
    groups.mkdir()
    os.chown(groups, 0, 12345)
    groups.chmod(0o2775)
    (groups / "link").symlink_to(secret)
    (tmp_path / "over").symlink_to(theirs / "link")
    (tmp_path / "ours").symlink_to("secret")
    for given in (theirs / "link", theirs / "link/in", str(theirs / "link") + "/", everybodys / "link",
                  groups / "link", tmp_path / "over"):
        done = Finished(command, given)
        assert done.code == 1
        assert done.err == (
            "pagewise %s: %s: cannot read the directory: the path leads through a symbolic link "
            "that another user may change; pass the real path instead\n" % (command, given))
    assert os.listdir(secret / "in") == ["page.html"]
    for given in tmp_path / "ours/in", tmp_path / "ours":
        assert Finished(command, given).code == 0
    # The group of root is root's alone.
    os.chown(groups, 0, 0)
    assert Finished(command, groups / "link").code == 0
