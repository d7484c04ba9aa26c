"""The manual pages of the library: they are as the header has it, no function lacks one, and their examples are
programs."""

import html
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

import harness
import tree as t
from harness import wait_until
from test_exports import exported

pytestmark = pytest.mark.once
MAN = os.path.join(harness.TREE, "docs/man")
PAGES = sorted(name for name in os.listdir(MAN) if name.endswith(".3"))
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-I" + os.path.join(harness.TREE, "lib"), "-Wall", "-Wextra", "-Werror"]


def page(name):
    with open(os.path.join(MAN, name), encoding="utf-8") as f:
        return f.read()


def example(name):
    """The first block of code below EXAMPLES, as a reader copies it."""
    made = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", os.path.join(MAN, name)], capture_output=True,
                          text=True, check=True).stdout
    found = re.search(r'id="EXAMPLES".*?<pre[^>]*>(.*?)</pre>', made, re.S)[1]
    return html.unescape(re.sub(r"<[^>]*>", "", found))


def test_pages_match_header_and_examples():
    subprocess.run([sys.executable, os.path.join(harness.TREE, "conf/man3.py"), "--check"], check=True)


def test_each_exported_function_has_one_page_with_its_prototype_and_the_overview_lists_it():
    named = [name for one in PAGES for name in re.findall(r"^\.Nm (pw_\w+)", page(one), re.M)]
    declared = [name for one in PAGES for name in re.findall(r"^\.Fo (pw_\w+)$", page(one), re.M)]
    wanted = sorted(exported("libpagewise.so", "-D"))
    assert sorted(declared) == wanted
    assert set(wanted) <= set(named)
    overview = page("libpagewise.3").partition("BEGIN functions")[2].partition("END functions")[0]
    assert sorted(re.findall(r"^\.Fn (pw_\w+)", overview, re.M)) == wanted


@pytest.mark.parametrize("name", PAGES)
def test_example_compiles(name, tmp_path):
    (tmp_path / "example.c").write_text(example(name))
    subprocess.run(["cc", *FLAGS, "-fsyntax-only", tmp_path / "example.c"], check=True)


def test_program_of_the_overview_sends_a_file(tmp_path):
    (tmp_path / "program.c").write_text(example("libpagewise.3"))
    library = os.path.join(harness.TREE, "build/asan/libpagewise.a")
    subprocess.run(["cc", *FLAGS, "-g", "-fsanitize=address,undefined", tmp_path / "program.c", library, "-luring",
                    "-pthread", "-o", tmp_path / "program"], check=True)
    body = t.content(3, 5 * t.MIB + 77)
    t.write(tmp_path / "file", body)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with subprocess.Popen([tmp_path / "program", tmp_path, "file", str(port)], stderr=subprocess.PIPE) as child:
        def received():
            try:
                with socket.create_connection(("127.0.0.1", port), harness.PATIENCE) as sock, sock.makefile("rb") as f:
                    return f.read()
            except ConnectionRefusedError:
                return None
        wait_until(lambda: received() == body, "the program to send its file")
        for _ in range(3):
            fd = os.open(tmp_path / "file", os.O_RDONLY)
            os.fdatasync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
            assert received() == body
        child.send_signal(signal.SIGKILL)
        assert child.stderr.read() == b""
