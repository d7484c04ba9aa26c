"""The soak in short, and that what goes wrong in it is a failure."""

import contextlib
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

import harness
import report
import soak
from harness import wait_until
from history import Fault, Journal
from soaked import Soaked, family

SOAK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "soak.py")


class Soaking:
    """The program, with a directory of its own for what it makes."""

    def __init__(self, tmp_path, minutes, *more):
        self.report = tmp_path / "soak.md"
        self.scratch = tmp_path / "scratch"
        self.scratch.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, SOAK, "--minutes", str(minutes), "--seed", "1", "--binary",
             harness.PAGEWISE, "--report", self.report, "--processes", "1", "--threads", "6",
             *more],
            env={**os.environ, "TMPDIR": str(self.scratch)}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def named(self, name):
        """The youngest of its processes that is called so, or 0."""
        found = 0
        for pid in family(self.process.pid)[1:]:
            with contextlib.suppress(OSError), open("/proc/%d/comm" % pid) as f:
                found = pid if f.read() == name + "\n" else found
        return found

    def all_serving(self):
        """The clients are there too: a third process besides the master and its child."""
        wait_until(lambda: self.named("pw-server") and len(family(self.process.pid)) >= 4,
                   "the soak to begin", patience=120)

    def end(self):
        """The exit status and the report; nothing is left."""
        self.output = self.process.communicate(timeout=300)[0]
        assert os.listdir(self.scratch) == []
        assert self.report.exists(), self.output
        text = self.report.read_text()
        assert text == self.output.partition("\n")[2]
        return self.process.returncode, text


@pytest.fixture
def soaking(tmp_path):
    made = []

    def start(minutes, *more):
        made.append(Soaking(tmp_path, minutes, *more))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            for pid in family(one.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            one.process.communicate()


def numbers(text):
    return {what: int(n) for what, n in re.findall(r"^\| ([^|]+) \| (\d+)", text, re.M)}


@pytest.mark.parametrize("options", [[], ["--tls", "--http2"]], ids=["plain", "all"])
def test_a_short_run_finds_no_fault(soaking, options):
    status, text = soaking(0.15, *options).end()
    assert status == 0, text
    said = numbers(text)
    assert said["failed"] == 0
    assert said["bytes of bodies verified"] > 1000000
    assert said["requests answered"] > said["actions of clients"] // 2 > 0
    assert said["reloads"] > 0
    assert said.get("certificates exchanged", 0) == (said["reloads"] if options else 0)


@pytest.mark.once
def test_an_interrupt_prints_the_faults_found_so_far(soaking):
    one = soaking(10)
    one.all_serving()
    os.kill(one.process.pid, signal.SIGINT)
    status, text = one.end()
    assert "| failed | 0 |" in text and status in (0, 1)  # 1: before anything was verified


@pytest.mark.once
@pytest.mark.parametrize("name, number, said", [
    ("pw-server", signal.SIGABRT, "killed by"), ("pagewise", signal.SIGABRT, "the server ended"),
    ("pagewise", signal.SIGKILL, "the server ended")])
def test_a_dead_server_process_ends_the_run_as_a_failure(soaking, name, number, said):
    one = soaking(10)
    one.all_serving()
    os.kill(one.named(name), number)
    status, text = one.end()
    assert status == 1
    assert said in text.partition("## Failed: server")[2], text


def broken(client):
    raise KeyError("not what a server does")


def ended(client):
    raise SystemExit


def failures_of(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(soak, "KINDS", {kind: 1})
    Journal(tmp_path / "journal").close()
    clients = soak.Clients(soak.argparse.Namespace(processes=1, threads=2, patience=1, seed=1),
                           ("127.0.0.1", 1), tmp_path / "journal", tmp_path)
    clients.start()
    clients.processes[0].join()
    assert clients.end() == []
    (result,) = clients.results()
    return [f["why"] for f in result["failures"]]


@pytest.mark.once
def test_an_unexpected_exception_of_a_client_is_a_failure(tmp_path, monkeypatch):
    whys = failures_of(tmp_path, monkeypatch, broken)
    assert len(whys) >= report.SHOWN and all("KeyError" in why for why in whys)


@pytest.mark.once
def test_a_client_that_ends_early_is_a_failure(tmp_path, monkeypatch):
    whys = failures_of(tmp_path, monkeypatch, ended)
    assert whys == ["a thread has ended before its time"] * 2


@pytest.mark.once
def test_a_client_that_does_not_end_is_a_failure(tmp_path, monkeypatch):
    begun = multiprocessing.Event()

    def never_ends(client):
        begun.set()
        time.sleep(1000)

    monkeypatch.setattr(soak, "LAST", 0)
    monkeypatch.setattr(soak, "KINDS", {never_ends: 1})
    Journal(tmp_path / "journal").close()
    clients = soak.Clients(soak.argparse.Namespace(processes=1, threads=1, patience=0.1, seed=1),
                           ("127.0.0.1", 1), tmp_path / "journal", tmp_path)
    clients.start()
    begun.wait()
    assert [f["why"] for f in clients.end()] == ["exit status -9"]


@pytest.fixture
def soaked(tmp_path):
    (tmp_path / "root").mkdir()
    one = Soaked(os.fspath(tmp_path), os.fspath(tmp_path / "root"), harness.PAGEWISE,
                 random.Random(1))
    yield one
    if not one.server.out.closed:
        one.server.discard()


@pytest.mark.once
def test_completed_actions_are_counted(soaked):
    soaked.reload()
    soaked.upgrade()
    assert soaked.counts["reloads"] == soaked.counts["upgrades"] == 1
    assert soaked.stop() is None


@pytest.mark.once
def test_failed_actions_are_not_counted(soaked, tmp_path):
    soaked.binary = tmp_path / "fails"
    soaked.binary.write_text("#!/bin/sh\nexit 1\n")
    soaked.binary.chmod(0o755)
    with pytest.raises(Fault, match="not upgraded"):
        soaked.upgrade()
    with pytest.raises(Fault, match="not reloaded"):
        soaked.reload("workers = -1\n")
    assert not +soaked.counts
    assert "cannot upgrade" in soaked.stop()


# ------------------------------------------------------------------- flatness


@pytest.mark.once
def test_flat_means_not_above_the_second_fifth():
    for values, is_flat in (([100] * 100, True), (list(range(100)), False),
                            ([900] * 20 + [100] * 80, True), ([100] * 79 + [119] * 21, False),
                            ([100] * 79 + [118] * 21, True)):
        assert report.flat(values, 8) == is_flat


@pytest.mark.once
def test_forbidden_growth_is_reported():
    samples = [{("all", "PSS"): 1, ("serving", "PSS"): n << 20} for n in range(report.ENOUGH)]
    told = {name: dict(report.rows(name, samples)) for name in report.FLAT}
    assert [list(lines.values()) for lines in told.values()] == [[True, True], [True, False]]
    (line,) = [line for line, right in told["without"].items() if not right]
    assert line == "| server process: PSS, MiB | 10.0 | 36.5 | 90.5 | 99.0 | 99.0 | NO |"
