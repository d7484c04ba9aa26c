"""One call in a hundred fails, in any of the ways it can, while several clients ask at
once: what they get is right as far as it goes, and then the server is as it was."""

import os
import threading
import time
import traceback

import pytest

import harness
import injection
import responses
import scenario
import walk

pytestmark = pytest.mark.once

LONG = os.environ.get("FAULTS_LONG") == "1"
SECONDS = 60 if LONG else 2
CLIENTS = 4
PER_MILLION = 10000
SEED = int(os.environ.get("FAULTS_SEED", "6"))


class Client(threading.Thread):
    """Asks until the time is over; what was wrong is kept."""

    def __init__(self, server, site, name, scenario_class):
        super().__init__()
        os.mkdir(os.path.join(site, name))
        self.scenario = scenario_class(site, "/" + name, 50)
        self.server = server
        self.error = None
        self.runs = 0

    def begin(self, seconds):
        self.end = time.monotonic() + seconds
        self.start()

    def run(self):
        try:
            while time.monotonic() < self.end:
                self.scenario.tolerantly(self.server)
                self.runs += 1
        except Exception:  # pylint: disable=broad-except
            self.error = traceback.format_exc()


def calm(w):
    """For a moment after an accept that failed, idle connections are closed."""
    try:
        w.scenario.strictly(w.server)
        return True
    except responses.ProtocolError as error:
        assert "closed within the head: b''" in str(error)
        return False


@pytest.mark.parametrize("path", ["hot"] + harness.FILE_PATHS)
def test_one_call_in_a_hundred_fails(tmp_path, path):
    fail_at_random(tmp_path, path, scenario.Scenario)


def test_one_call_in_a_hundred_fails_over_http2(tmp_path):
    module = pytest.importorskip("scenario_http2", reason="no Python module h2")
    fail_at_random(tmp_path, "nodiskio", module.Scenario)


def fail_at_random(tmp_path, path, scenario_class):
    w = walk.Walk(tmp_path, scenario_class, send_path=path)
    try:
        clients = [Client(w.server, os.fspath(w.site), "c%d" % i, scenario_class) for i in range(CLIENTS)]
        w.plan.forget()
        w.plan.chance(PER_MILLION, SEED, [n for n in injection.ON if n in w.plan.index])
        for client in clients:
            client.begin(SECONDS)
        for client in clients:
            client.join()
        failures = w.plan.failures()
        w.plan.heal()
        for client in clients:
            assert client.error is None, "%s\nstderr: %s" % (client.error, w.server.messages)
        harness.wait_until(lambda: calm(w), "idle connections to be kept", 5)
        for _ in range(walk.RUNS):
            w.scenario.strictly(w.server)
        w.descriptors.spare["pipe:[]"] = 2  # piped.c keeps them
        w.well()
        w.end()
    finally:
        w.discard()
    print(sum(c.runs for c in clients), "runs;", sum(failures.values()), "faults:", failures)
    assert len(failures) >= 8 and sum(failures.values()) >= 50
