"""Each call of the master fails once at each place that a reload passes: the old server
process goes on or a new one has come, and the next reload is as if nothing had been."""

import os
import signal

import pytest

import harness
import injection
import processes
import tree as t
from harness import wait_until

pytestmark = pytest.mark.once

LONG = os.environ.get("FAULTS_LONG") == "1"
SMALL = t.content(4, 2000)


class Reloads:
    def __init__(self, server):
        self.server = server

    @property
    def refused(self):
        return self.server.messages.count("stays in use")

    def settled(self, before, refused):
        """Another process serves, alone, or it was refused."""
        alone = len(processes.children(self.server.master)) == 1
        return alone and (self.server.pid != before or self.refused > refused)

    def once(self):
        """SIGHUP; True: a new process has come, False: it was refused."""
        before, refused = self.server.pid, self.refused
        self.server.signal(signal.SIGHUP)
        wait_until(lambda: self.settled(before, refused), "a reload or its refusal")
        return self.server.pid != before


def test_each_call_of_the_master_fails_once_in_a_reload(tmp_path, site):
    t.write(site / "small", SMALL)
    plan = injection.Plan(tmp_path / "plan")
    server = harness.Server("--root", site, "--workers", "1", binary=injection.FAULT,
                            env=plan.env).start()
    reloads = Reloads(server)
    outcomes = {True: 0, False: 0}
    try:
        plan.shared.pid = server.master
        assert reloads.once()
        plan.forget()
        assert reloads.once()
        for key, (name, place) in plan.seen().items():
            for effect in injection.effects(name)[: None if LONG else 1]:
                plan.fail((key, effect))
                try:
                    done = reloads.once()
                    assert done or not injection.is_usual(name, effect)
                    outcomes[done] += 1
                    assert server.get("/small").body == SMALL
                    plan.heal()
                    assert reloads.once()
                    assert server.get("/small").body == SMALL
                except (AssertionError, OSError) as error:
                    raise AssertionError(
                        "%s %s at %s: %r\nstderr: %s"
                        % (name, effect, injection.where(place), error, server.messages)
                    ) from error
        plan.heal()
        server.stop(messages=True)
    finally:
        if not server.out.closed:
            server.discard()
    print(outcomes)
    assert all(outcomes.values()) and sum(outcomes.values()) >= 6
