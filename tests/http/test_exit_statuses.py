"""EXIT STATUS of pagewise(8) and pagewise-tool(8): each is provoked, and the manual has no other."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess

import pytest

import harness
import processes
from harness import Finished, wait_until

pytestmark = pytest.mark.once
MAN = pathlib.Path(__file__).resolve().parents[2] / "docs" / "man"
KEY = "0123456789abcdef" * 4 + "\n"


def documented(page):
    section = re.search(r"^\.Sh EXIT STATUS\n(.*?)^\.El$", (MAN / page).read_text(encoding="utf-8"), re.M | re.S)[1]
    return set(re.findall(r"^\.It (.+)$", section, re.M))


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "key"
    path.write_text(KEY)
    path.chmod(0o600)
    return path


@pytest.fixture
def conf(tmp_path):
    def write(text):
        path = tmp_path / "p.conf"
        path.write_text(text)
        return path

    return write


def test_statuses_of_the_manual_are_these():
    assert documented("pagewise.8") == {"0", "1", "2"}
    assert documented("pagewise-tool.8") == {"0", "1", "2", "128 + number"}


# ----------------------------------------------------------------------- pagewise


def test_0_if_it_was_stopped(serve, site):
    (site / "a").write_bytes(b"a")
    server = serve("--root", site)
    assert server.get("/a").status == 200
    server.stop(codes=(0,))


@pytest.mark.parametrize("words", [["-V"], ["-h"], ["--keys"], ["-t", "--root", "/"], ["-T", "--root", "/"], ["sign", "-h"]])
def test_0_if_it_printed_what_was_asked_for(words):
    run = Finished(*words)
    assert (run.code, run.err) == (0, "") and run.out


def test_0_if_a_link_was_signed(key):
    assert Finished("sign", "--key", key, "/a").code == 0


@pytest.mark.parametrize("words", [[], ["-t"], ["-T"]])
def test_1_if_the_file_is_wrong(conf, words):
    run = Finished(*words, "-c", conf("threads = 0\n"))
    assert run.code == 1 and "p.conf:1: threads" in run.err


def test_1_if_it_cannot_start(site):
    with socket.create_server(("127.0.0.1", 0)) as s:
        run = Finished("--root", site, "--listen", "127.0.0.1:%d" % s.getsockname()[1])
    assert run.code == 1 and "another program listens on this" in run.err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("option", ["-t", "-T"])
def test_1_if_the_output_cannot_be_written(option):
    with open("/dev/full", "wb") as full:
        run = subprocess.run([harness.PAGEWISE, option, "--root", "/"], stdout=full, stderr=subprocess.PIPE, check=False,
                             timeout=harness.PATIENCE)
    assert run.returncode == 1 and b"standard output" in run.stderr


@pytest.mark.parametrize("words", [["--key", "/none", "/a"], ["--expires", "soon", "/a"], ["--client", "me", "/a"], ["a"]])
def test_1_if_a_link_cannot_be_signed(key, words):
    run = Finished("sign", *([] if "--key" in words else ["--key", key]), *words)
    assert run.code == 1 and run.err.startswith("pagewise: sign: ")


def test_1_if_the_tool_is_not_there(tmp_path):
    program = tmp_path / "pagewise"
    program.write_bytes(pathlib.Path(harness.PAGEWISE).read_bytes())
    program.chmod(0o755)
    run = subprocess.run([program, "digest", "/"], capture_output=True, text=True, check=False, timeout=harness.PATIENCE)
    assert run.returncode == 1 and "pagewise: digest: cannot run" in run.stderr


@pytest.mark.parametrize("words", [[], ["--bogus"], ["/srv"], ["--root"], ["--root", "/none"], ["--root", "/", "--threads", "0"],
                                   ["sign"], ["sign", "--bogus"]])
def test_2_if_the_command_line_is_wrong(words):
    run = Finished(*words)
    assert run.code == 2 and run.err and run.out == ""


# ------------------------------------------------------------------------ its tool


@pytest.mark.parametrize("words", [["precompress"], ["digest"], ["assign", "a=1,b=2"]])
def test_0_of_the_tool_if_all_was_done(site, words):
    (site / "empty").mkdir()
    assert Finished(*words, site / "empty").code == 0
    assert Finished(words[0], "-h").code == 0


@pytest.mark.parametrize("words", [["precompress"], ["digest"], ["assign", "a=1,b=2"]])
def test_1_of_the_tool_if_a_directory_is_not_there(tmp_path, words):
    run = Finished(*words, tmp_path / "none")
    assert run.code == 1 and "No such file or directory" in run.err


@pytest.mark.parametrize("order", ["drain", "undrain"])
def test_1_of_the_tool_if_no_server_answers(tmp_path, order):
    run = Finished(order, tmp_path / "none")
    assert run.code == 1 and "cannot connect" in run.err


@pytest.mark.parametrize("words", [["precompress"], ["digest", "--bogus", "/"], ["assign", "a"], ["assign", ",", "/"],
                                   ["drain", "a", "b"], ["undrain", "-x"]])
def test_2_of_the_tool_if_the_command_line_is_wrong(words):
    run = Finished(*words)
    assert run.code == 2 and run.err and run.out == ""


@pytest.mark.skipif(not processes.PROC, reason="no /proc")
@pytest.mark.parametrize("command", ["precompress", "digest"])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_128_and_the_number_of_the_tool_if_a_signal_stopped_it(site, command, number):
    file = site / "big.txt"
    with file.open("wb") as f:
        f.truncate(1 << 40)  # a hole: an hour
    os.utime(file, (1, 1))
    with subprocess.Popen([harness.PAGEWISE, command, "-j", "1", str(site)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        def reads():
            with contextlib.suppress(FileNotFoundError):  # one that was closed just now
                return any(os.path.realpath(fd) == os.path.realpath(file) for fd in pathlib.Path("/proc/%d/fd" % p.pid).iterdir())

        try:
            wait_until(reads, "the work")
            p.send_signal(number)
            _, err = p.communicate(timeout=harness.PATIENCE)
        finally:
            p.kill()
    assert p.returncode == 128 + number and b"stopped by a signal" in err
