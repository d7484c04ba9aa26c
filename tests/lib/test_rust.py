"""The crates of lib/bindings/rust: declarations are those of the header, the example serves files, and cargo can
package them."""

import os
import re
import subprocess

import pytest

import harness
import test_examples
import tree as t
from ports import free_port  # a fixture
from test_examples import BIG, HOT
from test_slowfs import Slowfs, slow  # a fixture

pytestmark = [pytest.mark.once, pytest.mark.needs("cargo"), pytest.mark.xdist_group("rust")]
CRATES = os.path.join(harness.TREE, "lib/bindings/rust")
BUILD = os.path.join(harness.TREE, "build")
ENV = {**os.environ, "CARGO_TARGET_DIR": os.path.join(BUILD, "cargo"), "PAGEWISE_LIB_DIR": BUILD,
       "LD_LIBRARY_PATH": BUILD, "CARGO_TERM_COLOR": "never"}


def cargo(*words, **options):
    return subprocess.run(["cargo", *words], cwd=CRATES, env={**ENV, **options}, capture_output=True, text=True,
                          check=False, timeout=600)


@pytest.fixture(scope="module")
def examples():
    """The directory of what cargo built, without a warning."""
    if cargo("fetch", "--locked", "--offline").returncode != 0:
        fetched = cargo("fetch", "--locked", CARGO_NET_RETRY="0", CARGO_HTTP_TIMEOUT="10")
        if fetched.returncode != 0:
            pytest.skip("cargo cannot fetch tokio: " + fetched.stderr[-200:])
    done = cargo("build", "--quiet", "--locked", "--offline", "--examples")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return os.path.join(ENV["CARGO_TARGET_DIR"], "debug/examples")


@pytest.fixture
def start(examples, monkeypatch, free_port):
    monkeypatch.setattr(test_examples, "PROGRAMS", examples)
    monkeypatch.setenv("LD_LIBRARY_PATH", BUILD)
    started = []

    def run(root):
        started.append(test_examples.Example("server", root, free_port()))
        return started[-1]
    yield run
    for example in started:
        example.stop()


def test_structs_are_those_of_the_header(examples, tmp_path):
    said = subprocess.run([os.path.join(examples, "layout")], env=ENV, capture_output=True, text=True, check=True).stdout
    lines = []
    for name in re.findall(r"^(\S+) \d+$", said, re.M):
        struct, _, field = name.partition(".")
        size = f"offsetof(struct {struct}, {field})" if field else f"sizeof(struct {struct})"
        lines.append(f'printf("{name} %zu\\n", {size});')
    assert len(lines) > 60
    assert test_examples.printed_by_c(lines, tmp_path) == said


def test_files_are_sent_from_memory_and_from_the_disk(start, tmp_path):
    test_examples.send_from_memory_and_disk(start, tmp_path)


def test_clients_that_leave_harm_no_other(start, tmp_path):
    t.write(tmp_path / "big", BIG)
    example = start(tmp_path)
    for _ in test_examples.leave_in_the_middle(example, tmp_path / "big"):
        assert example.ask("/big") == (200, BIG)


@pytest.mark.parametrize("op", ["open", "read"])
def test_a_hung_disk_delays_no_other_request(slow, start, op):
    base = os.path.dirname(slow.dir)
    t.write(os.path.join(base, "hot"), HOT)
    example = start(base)
    slow.hang(op, "cold.bin")
    waiting = [example.leave("/mnt/cold.bin") for _ in range(3)]
    slow.wait_held(op)
    for _ in range(20):
        assert example.ask("/hot") == (200, HOT)
    waiting.pop().close()
    slow.release()
    for sock in waiting:
        with sock:
            assert sock.recv(12) == b"HTTP/1.1 200"
    assert example.ask("/hot") == (200, HOT)


@pytest.mark.parametrize("op, said", [
    ("open", ["the open was dropped\n"]),
    ("read", ["the transmission was dropped, its socket is kept\n", "the socket is gone\n"])])
def test_a_future_that_waits_may_be_dropped(slow, examples, op, said):
    slow.hang(op, "cold.bin")
    with subprocess.Popen([os.path.join(examples, "leave"), slow.dir, "cold.bin"], env=ENV, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout.readline() == said[0]
        slow.release()
        assert child.communicate(timeout=harness.PATIENCE) == ("".join(said[1:]), "")
        assert child.returncode == 0


def test_crates_have_all_that_they_need(examples):
    """What would be published is built from what cargo packed, not from the tree."""
    with open(os.path.join(harness.TREE, "lib/pagewise.h"), encoding="utf-8") as f:
        version = re.search(r'#define PW_VERSION "(.*)"', f.read())[1]
    done = cargo("package", "--workspace", "--locked", "--offline", "--allow-dirty")
    if "unexpected argument '--workspace'" in done.stderr or "no matching package named `pagewise-sys`" in done.stderr:
        pytest.skip("this cargo packages no crates that depend on each other")
    assert done.returncode == 0, done.stderr
    assert "warning" not in re.sub(r"(?m)^warning: manifest has no .*\n.*\n", "", done.stderr), done.stderr
    for name in ("pagewise-sys", "pagewise"):
        assert os.path.exists(os.path.join(ENV["CARGO_TARGET_DIR"], f"package/{name}-{version}.crate"))
