"""pagewise precompress: which siblings it makes, what they are like, and that it can be stopped at
any time."""

import contextlib
import ctypes
import ctypes.util
import gzip
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import harness
import mounts
from harness import Finished, wait_until

TEXT = b"All work and no play makes Jack a dull boy.\n" * 400
OLD = 1_600_000_000_123_456_789  # nanoseconds
TEMPORARY = re.compile(r"\.pagewise-[0-9a-f]{16}\.tmp")


def put(path, data=TEXT, when=OLD):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, ns=(when, when))
    return path


def run(*args, code=0):
    done = Finished("precompress", *args)
    assert done.code == code, (done.code, done.out, done.err)
    return done


def library(name):
    return ctypes.CDLL(ctypes.util.find_library(name))


def unzstd(data, size):
    out = ctypes.create_string_buffer(size + 1)
    lib = library("zstd")
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    n = lib.ZSTD_decompress(out, ctypes.c_size_t(size + 1), data, ctypes.c_size_t(len(data)))
    return out.raw[:n]


def unbr(data, size):
    out, n = ctypes.create_string_buffer(size + 1), ctypes.c_size_t(size + 1)
    done = library("brotlidec").BrotliDecoderDecompress(
        ctypes.c_size_t(len(data)), data, ctypes.byref(n), out)
    assert done == 1
    return out.raw[:n.value]


UNDO = {".zst": unzstd, ".br": unbr, ".gz": lambda data, size: gzip.decompress(data)}


def undone(path, suffix, size):
    return UNDO[suffix](pathlib.Path(str(path) + suffix).read_bytes(), size)


def names(top):
    return {str(p.relative_to(top)) for p in top.rglob("*") if not p.is_dir()}


def temporaries(top):
    return [name for name in names(top) if TEMPORARY.fullmatch(os.path.basename(name))]


# Compresses slowly, and well enough; brotli needs a minute for it.
def slow_text(size=64 << 20):
    rng = random.Random(7)
    words = [b"%x " % rng.getrandbits(24) for _ in range(1 << 16)]
    line = b"".join(rng.choices(words, k=1 << 17))
    return (line * (size // len(line) + 1))[:size]


@contextlib.contextmanager
def running(*args, **kw):
    """The tool in the middle of its work."""
    with subprocess.Popen([harness.PAGEWISE, "precompress", *map(str, args)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **kw) as p:
        try:
            yield p
        finally:
            p.kill()


@pytest.fixture
def slow(tmp_path):
    return put(tmp_path / "site/big.txt", slow_text()).parent


def test_siblings_have_the_contents_time_and_mode_of_their_file(tmp_path):
    file = put(tmp_path / "a/b/page.html")
    file.chmod(0o640)
    empty = put(tmp_path / "a/empty.css", b"")
    data = os.urandom(3000).hex().encode() * 50
    large = put(tmp_path / "a/large.json", data)
    done = run(tmp_path)
    assert done.err == ""
    assert names(tmp_path) == {"a/empty.css"} | {
        name + suffix for name in ("a/b/page.html", "a/large.json") for suffix in ("", *UNDO)}
    for suffix in UNDO:
        assert undone(file, suffix, len(TEXT)) == TEXT
        assert undone(large, suffix, len(data)) == data
        st = os.stat(str(file) + suffix)
        assert (st.st_mtime_ns, st.st_mode & 0o7777) == (OLD, 0o640)
    assert empty.stat().st_size == 0
    sizes = {s: os.stat(str(file) + s).st_size + os.stat(str(large) + s).st_size for s in UNDO}
    for suffix, size in sizes.items():
        line = next(x for x in done.out.splitlines() if x.startswith(suffix[1:]))
        assert " 2 made, " in line
        less = 100 * (1 - size / (len(TEXT) + len(data)))
        assert "(%.1f %% less)" % less in line


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_owner_and_group_are_kept(tmp_path):
    file = put(tmp_path / "page.html")
    os.chown(file, 1234, 5678)
    run(tmp_path)
    st = os.stat(str(file) + ".gz")
    assert (st.st_uid, st.st_gid) == (1234, 5678)


@pytest.fixture
def open_place():
    """Below /tmp, for one who is not root: pytest's directories are closed."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="pagewise-tool-"))
    yield place
    shutil.rmtree(place)


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_group_that_cannot_be_kept_gets_no_more_than_others(open_place):
    put(open_place / "a.txt").chmod(0o664)
    put(open_place / "b.txt").chmod(0o640)
    for path in (open_place, open_place / "a.txt", open_place / "b.txt"):
        os.chown(path, 65534, 4321)
    subprocess.run([harness.PAGEWISE, "precompress", "-c", "gz", str(open_place)], user=65534, group=65533,
                   extra_groups=[], check=True, stdout=subprocess.DEVNULL)
    for name, mode in (("a.txt.gz", 0o644), ("b.txt.gz", 0o600)):
        st = os.stat(open_place / name)
        assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (65534, 65533, mode)


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_unwritable_directory_is_reported(open_place):
    put(open_place / "a.txt")
    open_place.chmod(0o755)
    done = subprocess.run([harness.PAGEWISE, "precompress", "-c", "gz", str(open_place)], user=65534, group=65533,
                          extra_groups=[], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"pagewise precompress: {open_place}/a.txt.gz: cannot write this sibling: Permission denied\n"


def test_only_outdated_siblings_are_made_again(tmp_path):
    file = put(tmp_path / "a.txt")
    run(tmp_path)
    before = {s: os.stat(str(file) + s).st_ino for s in UNDO}
    assert "3 current" in run(tmp_path).out
    assert {s: os.stat(str(file) + s).st_ino for s in UNDO} == before
    put(tmp_path / "a.txt.br", b"newer is current as well", OLD + 1)
    put(tmp_path / "a.txt.gz", b"one nanosecond older", OLD - 1)
    assert "2 current" in run(tmp_path).out
    assert (tmp_path / "a.txt.br").read_bytes() == b"newer is current as well"
    assert undone(file, ".gz", len(TEXT)) == TEXT
    run("--force", tmp_path)
    assert undone(file, ".br", len(TEXT)) == TEXT


def test_sibling_of_a_version_that_was_taken_back_is_replaced(tmp_path):
    """Its time is that of the newer version."""
    file = put(tmp_path / "a.txt", TEXT + b"new", OLD + 60 * 10**9)
    run("-c", "gz", tmp_path)
    assert gzip.decompress((tmp_path / "a.txt.gz").read_bytes()) == TEXT + b"new"
    put(file, TEXT, OLD)
    run("-c", "gz", tmp_path)
    assert gzip.decompress((tmp_path / "a.txt.gz").read_bytes()) == TEXT
    assert (tmp_path / "a.txt.gz").stat().st_mtime_ns == OLD
    put(file, b"short", OLD - 60 * 10**9)
    run("-c", "gz", tmp_path)
    assert not (tmp_path / "a.txt.gz").exists()


def test_incompressible_file_has_no_sibling_and_loses_an_older_one(tmp_path):
    put(tmp_path / "noise.txt", os.urandom(5000))
    put(tmp_path / "noise.txt.gz", b"of another one", OLD - 1)
    put(tmp_path / "noise.txt.br", b"current", OLD)
    put(tmp_path / "small.txt", b"x" * 200)
    put(tmp_path / "small.txt.zst", b"of another one", OLD - 1)
    done = run(tmp_path)
    assert names(tmp_path) == {"noise.txt", "noise.txt.br", "small.txt"}
    assert "1 current, 5 not smaller, 2 removed; 0 errors" in done.out
    run("-f", tmp_path)  # what is current may be another program's, which compresses better
    assert names(tmp_path) == {"noise.txt", "noise.txt.br", "small.txt"}


def test_only_compressible_files_get_siblings(tmp_path):
    site, outside = tmp_path / "site", tmp_path / "outside"
    put(outside / "secret.txt")
    for name in ("pic.png", "pic.svgz", "v.mp4", "x.zip", "no_suffix", ".hidden.txt", ".dir/a.txt", "a.txt.gz", "b.css.br"):
        put(site / name)
    wanted = ["a.svg", "b.JS", "c.xml", "d.wasm", "e.ttf", "f.webmanifest", "g.html", "h.csv"]
    for name in wanted:
        put(site / name)
    (site / "link.txt").symlink_to("g.html")
    (site / "out").symlink_to(outside)
    (site / "out.txt").symlink_to(outside / "secret.txt")
    before = names(site)
    run("-c", "gz", site)
    assert names(site) == before | {name + ".gz" for name in wanted}
    assert names(outside) == {"secret.txt"}
    run("-c", "br", "--dotfiles", site)
    assert {".hidden.txt.br", ".dir/a.txt.br"} <= names(site)


def test_directory_that_is_given_may_be_a_link_and_there_may_be_several(tmp_path):
    put(tmp_path / "one/a.txt")
    put(tmp_path / "two/b.txt")
    (tmp_path / "link").symlink_to("one")
    run("-c", "gz", tmp_path / "link", tmp_path / "two")
    assert names(tmp_path / "one") == {"a.txt", "a.txt.gz"}
    assert names(tmp_path / "two") == {"b.txt", "b.txt.gz"}


@pytest.mark.slow
def test_codings_levels_suffixes_and_sizes(tmp_path):
    put(tmp_path / "a.bin", slow_text(100_000))
    put(tmp_path / "b.txt", slow_text(100_000))
    run("--codings", "gz", "--suffixes", ".bin,dat", "-l", "gz=1", tmp_path)
    assert names(tmp_path) == {"a.bin", "a.bin.gz", "b.txt"}
    fast = os.stat(tmp_path / "a.bin.gz").st_size
    run("--codings", "gz", "--suffixes", "bin", "--level", "gz=9", "-f", tmp_path)
    assert os.stat(tmp_path / "a.bin.gz").st_size < fast
    run("-m", "100001", "-j", "1", tmp_path)
    assert names(tmp_path) == {"a.bin", "a.bin.gz", "b.txt"}
    run("-m", "100000", "-c", "br,zst", "--level=br=1,zst=1", tmp_path)
    assert names(tmp_path) == {"a.bin", "a.bin.gz", "b.txt", "b.txt.br", "b.txt.zst"}
    assert run("-q", "-f", tmp_path).out == ""


def test_gzip_names_no_file_and_no_time(tmp_path):
    put(tmp_path / "a.txt")
    put(tmp_path / "b.txt", when=OLD + 10**10)
    run(tmp_path)
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()


@pytest.mark.parametrize("size, level", [(9 << 20, 19), (9 << 20, 22), (1000, 22)])
def test_zstd_window_is_what_browsers_take(tmp_path, size, level):
    """At most 8 MiB (RFC 9659, 3): byte 5 of a frame that is no single segment says it."""
    put(tmp_path / "a.txt", (b"%d " % level * size)[:size])
    run("-c", "zst", "-l", "zst=%d" % level, tmp_path)
    head = (tmp_path / "a.txt.zst").read_bytes()[:6]
    single = head[4] & 0x20
    window = size if single else (1 << 10 + (head[5] >> 3)) * (8 + (head[5] & 7)) // 8
    assert head[:4] == b"\x28\xb5\x2f\xfd" and window <= 8 << 20 if not single else size <= 8 << 20


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_it_and_leaves_nothing(slow, number, code):
    with running("-c", "br", slow) as p:
        wait_until(lambda: temporaries(slow), "the work")
        p.send_signal(number)
        out, err = p.communicate(timeout=60)
    assert p.returncode == code
    assert names(slow) == {"big.txt"}
    assert "1 errors" not in out and err.count("\n") == 1 and "stopped by a signal" in err


@pytest.mark.slow
def test_next_run_removes_files_of_a_killed_run_and_no_others(slow, tmp_path):
    with running("-c", "br", slow) as p:
        wait_until(lambda: temporaries(slow), "the work")
        p.kill()
    left = temporaries(slow)
    assert len(left) == 1
    put(slow / ".pagewise-0123456789abcdef.tm", b"not ours")
    put(slow / ".pagewise-0123456789ABCDEF.tmp", b"not ours")
    with running("-c", "br", slow) as p:
        wait_until(lambda: set(temporaries(slow)) - set(left), "the work")
        mine = set(temporaries(slow)) - set(left)
        run("-c", "gz", "-l", "gz=1", slow)
        assert set(temporaries(slow)) == mine
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=60)
    assert names(slow) == {"big.txt", "big.txt.gz", ".pagewise-0123456789abcdef.tm",
                           ".pagewise-0123456789ABCDEF.tmp"}


def test_file_that_changes_while_it_is_read_gets_no_sibling(tmp_path):
    file = put(tmp_path / "big.txt", slow_text(8 << 20))
    with running("-c", "br", "-l", "br=9", tmp_path) as p:
        wait_until(lambda: temporaries(tmp_path), "the work")
        with file.open("r+b") as f:
            f.write(b"changed")
        out, err = p.communicate(timeout=120)
    assert p.returncode == 1
    assert err == f"pagewise precompress: {file}: the file changed while it was read; run the command again\n"
    assert names(tmp_path) == {"big.txt"}
    run("-c", "br", "-l", "br=1", tmp_path)
    assert undone(file, ".br", 8 << 20)[:7] == b"changed"


@mounts.NEEDS["ext4"]
def test_full_disk_ends_it_with_one_message_and_nothing_of_a_sibling_stays():
    data = os.urandom(20000).hex().encode()
    with mounts.full({"f%d.txt" % i: data for i in range(20)}) as top:
        before = sorted(os.listdir(top))
        done = run("-j", "1", top, code=1)
        assert re.fullmatch(r"pagewise precompress: \S+/f\d+\.txt\.zst: cannot write this sibling: "
                            r"No space left on device; the remaining files are skipped\n", done.err)
        assert "; 1 errors" in done.out
        assert sorted(os.listdir(top)) == before


def test_sibling_that_is_no_regular_file_stays(tmp_path):
    put(tmp_path / "a.txt")
    (tmp_path / "a.txt.gz").mkdir()
    (tmp_path / "a.txt.br").symlink_to("/etc/passwd")
    done = run(tmp_path, code=1)
    assert done.err.count("this sibling is not a regular file") == 2
    assert (tmp_path / "a.txt.gz").is_dir() and (tmp_path / "a.txt.br").is_symlink()
    assert undone(tmp_path / "a.txt", ".zst", len(TEXT)) == TEXT


def test_names_at_the_limit(tmp_path):
    put(tmp_path / ("n" * 248 + ".txt"))
    put(tmp_path / ("m" * 247 + ".txt"))
    done = run(tmp_path, code=1)
    assert done.err.count("too long") == 1
    assert len(names(tmp_path)) == 7


def test_many_files_in_a_deep_tree(tmp_path):
    deep = tmp_path
    for i in range(100):
        deep = deep / ("d%d" % i)
        put(deep / "a.txt", b"%d" % i * 500)
        put(deep / "b.txt", b"%d." % i * 500)
    done = run("-j", "7", "-l", "zst=1,br=1,gz=1", tmp_path)
    assert len(names(tmp_path)) == 800 and "200 files;" in done.out


def test_progress_is_shown_only_on_terminals(slow):
    main, other = pty.openpty()
    with running("-c", "br", slow, stdin=other) as p:
        wait_until(lambda: temporaries(slow), "the work")
        p.send_signal(signal.SIGTERM)
        assert "files" not in p.communicate(timeout=60)[1]
    with subprocess.Popen([harness.PAGEWISE, "precompress", "-c", "br", str(slow)],
                          stdout=subprocess.PIPE, stderr=other) as p:
        os.close(other)
        seen = b""
        while b"0/1 files" not in seen:
            seen += os.read(main, 4096)
        p.send_signal(signal.SIGTERM)
        while True:  # what the terminal does not take would hold it up
            try:
                seen += os.read(main, 4096)
            except OSError:
                break
        p.communicate(timeout=60)
    os.close(main)
    assert b"\r[....." in seen and b"of 64.0 MiB" in seen
    # The line is gone when something else is said.
    assert b"\r\x1b[Kpagewise precompress: stopped" in seen.replace(b"\r\n", b"\n")


@pytest.mark.parametrize("args, text", [
    ([], "no directory"), (["-c", "gzip", "x"], "is not zst, br or gz"), (["-c", "gz,gz", "x"], "twice"),
    (["-l", "gz=10", "x"], "1 to 9"), (["-l", "gz", "x"], "CODING=N"), (["-l", "br=-1", "x"], "0 to 11"),
    (["-j", "0", "x"], "1 to 1024"), (["-j"], "needs a value"), (["--what", "x"], "unknown option --what"),
    (["-m", "1K", "x"], "not a number"), (["-c", "", "x"], "is not zst"),
    (["-s", "a,,b", "x"], "is empty"), (["-s", ",".join("a" * 65), "x"], "more than 64"),
])
def test_bad_command_line_ends_it_before_anything_is_done(args, text):
    done = run(*args, code=2)
    assert text in done.err and done.err.count("\n") == 1, done.err


def test_help_and_directories_that_are_not_there(tmp_path):
    assert run("-h").out.startswith("usage: pagewise precompress")
    put(tmp_path / "is/a.txt")
    done = run("-c", "gz", tmp_path / "not", tmp_path / "is", code=1)
    assert f"{tmp_path}/not: cannot read the directory: No such file" in done.err
    assert names(tmp_path) == {"is/a.txt", "is/a.txt.gz"}


def test_missing_tool_is_reported_with_its_places(tmp_path):
    program = tmp_path / "sbin/pagewise"
    program.parent.mkdir()
    shutil.copy(harness.PAGEWISE, program)
    done = subprocess.run([program, "precompress", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"looks for pagewise-tool in {tmp_path}/sbin and" in done.stderr
    libexec = tmp_path / "libexec"
    libexec.mkdir()
    shutil.copy(os.path.join(os.path.dirname(harness.PAGEWISE), "pagewise-tool"), libexec)
    put(tmp_path / "www/a.txt")
    done = subprocess.run([program, "precompress", str(tmp_path / "www")], capture_output=True, text=True,
                          check=True)
    assert " 1 made" in done.stdout


def test_server_sends_the_siblings(serve_conf, tmp_path):
    root = tmp_path / "www"
    put(root / "a.html")
    run(root)
    server = serve_conf({"autoindex": True}, [("s", {"root": root, "precompressed": ("zst", "br", "gz")}, {})])
    for suffix, coding in ((".zst", "zstd"), (".br", "br"), (".gz", "gzip")):
        answer = server.get("/a.html", fields=[("Accept-Encoding", coding)])
        assert answer.get("Content-Encoding") == coding
        assert UNDO[suffix](answer.body, len(TEXT)) == TEXT
    assert server.get("/").body.count(b"a.html") == 2  # its link and its name
