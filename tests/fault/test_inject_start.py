"""Each call of a start fails once at each place that makes it: the server says why and
ends with 1, or does without and serves; in both cases nothing else is said."""

import contextlib
import os
import signal

import pytest

import harness
import injection
import tree as t
import walk
from harness import wait_until

LONG = os.environ.get("FAULTS_LONG") == "1"
SMALL = t.content(3, 5000)
CODES = {1, 2}  # 2: an option that cannot be had here


@pytest.fixture(scope="module")
def known():
    """What has failed with another send path already."""
    return set()


@pytest.fixture
def start(tmp_path):
    """A start, to its end or until it serves."""
    site = tmp_path / "site"
    site.mkdir()
    t.write(site / "small", SMALL)
    plan = injection.Plan(tmp_path / "plan")

    def run(**top):
        conf = tmp_path / "pagewise.conf"
        top = {"workers": 2, "access_log": tmp_path / "log", "admin": "127.0.0.1:0", **top}
        conf.write_text(harness.configuration(top, [("start", {"root": site}, {})]))
        server = harness.Server("-c", conf, binary=injection.FAULT, env=plan.env)
        # It has one more line to say when it serves: that admin is there.
        try:
            wait_until(lambda: not server.running or
                       "admin at" in server.output and harness.SERVING.search(server.output),
                       "a start or an end", 10)
        except AssertionError:
            server.discard()
            raise
        if server.running:
            server.address = harness.SERVING.search(server.output + server.messages).groups()[1:]
            server.address = (server.address[0], int(server.address[1]))
        return server

    run.plan = plan
    return run


def told_and_ended(server):
    """It has said why, and nothing else than that."""
    lines = server.messages.splitlines()
    code = server.wait()
    assert code in CODES, code
    assert lines and all(line.startswith("pagewise: ") for line in lines), lines


def serves(server):
    # The first may miss what has failed; it goes on.
    with contextlib.suppress(OSError, harness.ProtocolError), server.connect() as c:
        response = c.ask("/small")
        assert response.status in (200, 500, 503)
        assert response.status != 200 or response.body == SMALL
    assert server.get("/small").body == SMALL


def outcome(server):
    """"ended" or "served"."""
    try:
        if not server.running:
            told_and_ended(server)
            return "ended"
        serves(server)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0, server.process.returncode
        return "served"
    finally:
        text = server.messages
        server.discard()
        assert not walk.BAD.search(text), text


@pytest.mark.parametrize("path", ["nodiskio", "uring"])
def test_each_call_of_a_start_fails_once_at_each_site(start, known, path):
    plan = start.plan
    assert outcome(start(send_path=path)) == "served"
    outcomes, missed = {"ended": 0, "served": 0}, []
    wrong = []
    for key, (name, place) in plan.seen().items():
        for effect in injection.effects(name)[: None if LONG else 1]:
            if (key, effect) in known and not LONG:
                continue
            known.add((key, effect))
            plan.fail((key, effect))
            try:
                outcomes[outcome(start(send_path=path))] += 1
            except (AssertionError, OSError) as error:
                wrong.append("%s %s at %s: %s" % (name, effect, injection.where(place), error))
            if not plan.reached:
                missed.append("%s %s at %s" % (name, effect, injection.where(place)))
    print(outcomes, "not reached:", *missed, sep="\n")
    assert not wrong, "\n".join(wrong)
    assert sum(outcomes.values()) > 3
    assert len(missed) < 5, missed
