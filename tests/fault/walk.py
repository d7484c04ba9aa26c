"""A server whose calls fail one after the other, site by site."""

import os
import shutil

import harness
import injection
import scenario
from harness import wait_until

RUNS = 3  # of a scenario, until nothing of the first is remembered
LOG_PERIOD = 0.1  # seconds, and twice that of server/log/writer.c
TRIES = 12  # to reach a site that has been seen: after another fault that is a matter of chance
OF_A_PATH = {"sendfile", "splice", "vmsplice", "pread", "preadv2", "send", "io_uring_submit"}
TOP = {"workers": 1, "open_files": 16, "autoindex": True, "trace_clients": ["127.0.0.1"]}


class Walk:
    """A server with a plan; told, when it fails, by which fault."""

    def __init__(self, tmp_path, scenario_class=scenario.Scenario, **top):
        self.site = site = tmp_path / "site"
        site.mkdir()
        self.plan = injection.Plan(tmp_path / "plan")
        path = tmp_path / "pagewise.conf"
        top = {**TOP, "access_log": tmp_path / "log", **top}
        path.write_text(harness.configuration(top, [("walk", {"root": site}, {})]))
        self.server = harness.Server("-c", path, binary=injection.FAULT, env=self.plan.env).start()
        self.plan.shared.pid = self.server.pid
        self.scenario = scenario_class(os.fspath(site))
        for _ in range(RUNS):
            self.scenario.strictly(self.server)
        self.descriptors = scenario.Descriptors(self.server, RUNS)
        self.hot = top["send_path"] == "hot" and self.scenario.hot_call
        self.faults = 0
        self.missed = []  # sites that were passed without a fault, and then not again
        self.by_chance = []  # those that were passed after other faults, and then not again

    def sites(self):
        """Those that the scenario passes, {key: (name, place)}."""
        self.plan.forget()
        for _ in range(RUNS):
            self.scenario.strictly(self.server)
        # The log's thread comes later, and the hot set takes in what is two seconds old.
        wait_until(lambda: self.passed("write") >= RUNS, "the log to be written")
        if self.hot:
            wait_until(self.hot_answers, "the hot set to answer")
        return self.plan.seen()

    def passed(self, name):
        return self.plan.shared.calls[self.plan.index[name]].seen

    def hot_answers(self):
        self.scenario.strictly(self.server)
        return self.passed(self.hot) > 0

    def fault(self, *faults, **kw):
        """True if the last of them has happened; in any case all is well afterwards."""
        seen = self.plan.seen()
        usual = all(injection.is_usual(seen[key][0], effect) for key, effect in faults)
        for i in range(TRIES):
            # The faults before it may have had no part in it: every other time it comes alone.
            self.plan.fail(*(faults if i % 2 == 0 else faults[-1:]), **kw)
            if usual:
                self.scenario.strictly(self.server)
            else:
                self.scenario.tolerantly(self.server)
            reached = self.reached()
            if reached:
                break
        self.plan.heal()
        self.well()
        self.faults += reached
        return reached

    def reached(self):
        """The log's thread comes later."""
        try:
            return wait_until(lambda: self.plan.reached, "the fault", LOG_PERIOD)
        except AssertionError:
            return False

    def well(self):
        self.scenario.strictly(self.server)
        assert self.server.processes() == [self.plan.shared.pid], "another process serves"
        if self.descriptors.more(self.scenario.run):
            # Where connections failed, few files were opened in place of older ones.
            for _ in range(RUNS):
                self.scenario.strictly(self.server)
            self.descriptors.check(self.scenario.run)
        assert self.server.running, "it ended with %d" % self.server.process.returncode
        harness.judge(self.server.messages)

    def names(self, faults):
        seen = self.plan.seen()
        return ", then ".join(
            "%s %s at %s" % (seen[key][0], effect, injection.where(seen[key][1]))
            for key, effect in faults
        )

    def told(self, *faults, must=True, **kw):
        """fault(), and a failure says what it was."""
        try:
            reached = self.fault(*faults, **kw)
            if must and not reached:
                (self.missed if len(faults) == 1 else self.by_chance).append(self.names(faults))
            return reached
        except (AssertionError, OSError) as error:
            raise AssertionError(
                "%s: %r\nstderr: %s" % (self.names(faults) + str(kw or ''), error, self.server.messages)
            ) from error

    def end(self):
        """SIGTERM; nothing has leaked, no sanitizer has said anything."""
        self.plan.heal()
        self.server.stop(messages=True)

    def discard(self):
        if not self.server.out.closed:
            self.server.discard()
        shutil.rmtree(self.site)


def walk(w, known, more=()):
    """Each site once with each effect that is not known already, which it is then, and what
    the send path itself calls in any case; more: besides, after so many calls that do not fail, so often.

    A site that is only passed after another fault is reached by that one again.  How many
    sites there are, and how many faults were to happen.
    """
    before = {key: () for key in w.sites()}
    todo, count = list(before), 0
    while todo:
        key = todo.pop()
        name = w.plan.seen()[key][0]
        for effect in injection.effects(name):
            if (key, effect) in known and name not in OF_A_PATH:
                continue
            known.add((key, effect))
            faults = before[key] + ((key, effect),)
            reached = w.told(*faults)
            count += 1
            if not reached and before[key]:
                break
            for skip, times in more:
                w.told(*faults, skip=skip, times=times, must=False)
            if len(faults) == injection.RULES:
                continue
            for new in w.plan.seen():
                if new not in before:
                    before[new] = faults
                    todo.append(new)
    return len(before), count
