"""Runs the tests in --processes=N processes, which are forked once all tests have been collected.

Those of pytest-xdist import and collect everything, each by itself: with ten of them, and the five sets
of tests/run, that is minutes of processor time.

What takes long begins first: groups (the marker xdist_group), whose tests run one after the other in one
process; then tests that are marked slow, or are not below QUICK.  With the others a process stays in its
module while there are more, because most modules have servers that their tests share.

With --turn=IN,OUT processes of the next set begin as those of this one end, so that no processor idles in
between.  A process begins when it has read a byte from the descriptor IN, or its end, and writes one into
OUT when it ends.  The first byte in OUT is not for a process: few tests are left, the next set may collect.

With --durations=N it also tells which N modules take most of the processor, and which wait most.
"""

import collections
import contextlib
import gc
import itertools
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import sys
import time
import traceback

import pytest

QUICK = ("tests/bench/", "tests/http/")
FEW = 8  # a part of all tests
AHEAD = 2  # tests that wait in a process: the next one tells which fixtures stay, the other fills the gap
PATIENCE = 10  # seconds for a process that has been told to end
PROCESS = "PYTEST_XDIST_WORKER"  # in the environment of a process: its name, as pytest-xdist has it
AT_EXIT = []  # functions that a process calls before it ends
SPENT = pytest.StashKey[dict]()  # {module: Spent}, and what is nobody's below ""


def pytest_addoption(parser):
    group = parser.getgroup("forked")
    group.addoption("--processes", type=int, default=0, metavar="N", help="run the tests in N processes")
    group.addoption("--turn", default="", metavar="IN,OUT", help="descriptors of pipes: see tests/forked.py")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    count = min(session.config.getoption("processes", 0), len(session.items))
    # Errors of the collection are told by pytest's own loop.
    if count == 0 or session.config.option.collectonly or session.testsfailed:
        return None
    Run(session).run(count)
    return True


class Spent:
    """Seconds of the processor are a module's own and those of the programs that have ended with it."""

    def __init__(self):
        self.tests, self.seconds, self.processor = 0, 0.0, 0.0

    def add(self, tests, seconds, processor):
        self.tests += tests
        self.seconds += seconds
        self.processor += processor

    @property
    def waited(self):
        return self.seconds - self.processor


def processor_seconds(*whose):
    used = [resource.getrusage(one) for one in whose or (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def pytest_terminal_summary(terminalreporter, config):
    spent, most = config.stash.get(SPENT, {}), config.getoption("durations")
    if not spent or most is None:
        return
    for key, title in (("processor", "most of the processor"), ("waited", "longest waits")):
        terminalreporter.section("modules with " + title)
        terminalreporter.write_line("processor   waited  tests")
        rows = sorted(spent.items(), key=lambda row: getattr(row[1], key), reverse=True)
        total = Spent()
        for _, one in rows:
            total.add(one.tests, one.seconds, one.processor)
        for name, one in [("all", total), *rows[:most or None]]:
            terminalreporter.write_line(
                "%8.1f %8.1f %6d  %s" % (one.processor, one.waited, one.tests, name or "between the tests"))


class Queue:
    """Tests that have not begun, as indexes of the collected ones."""

    def __init__(self, items):
        groups, modules = {}, {}
        self.long = collections.deque()
        for index, item in enumerate(items):
            mark = item.get_closest_marker("xdist_group")
            if mark:
                groups.setdefault(mark.args[0], collections.deque()).append(index)
            elif item.get_closest_marker("slow") or not item.nodeid.startswith(QUICK):
                self.long.append(index)
            else:
                modules.setdefault(item.nodeid.partition("::")[0], collections.deque()).append(index)
        self.groups = collections.deque(sorted(groups.values(), key=len, reverse=True))
        self.modules = list(modules.values())
        self.chosen = {}  # by process: the group or module, or long
        self.left = len(items)

    def take(self, process):
        """The next index for a process, or None."""
        if not self.chosen.get(process):
            self.chosen[process] = self.choose()
        tests = self.chosen[process]
        if not tests:
            return None
        self.left -= 1
        return tests.popleft()

    def choose(self):
        if self.groups:
            return self.groups.popleft()
        if self.long:
            return self.long
        chosen = set(map(id, self.chosen.values()))
        modules = [tests for tests in self.modules if tests]
        others = [tests for tests in modules if id(tests) not in chosen]
        return others[0] if others else max(modules, key=len, default=())

    def inherit(self, process, dead, indexes):
        """Gives a process what another one, which has died, has left of its tests."""
        tests = self.chosen.pop(dead, None) or collections.deque()
        tests.extendleft(reversed(indexes))
        self.chosen[process] = tests
        self.left += len(indexes)


class Process:
    """One of them, as the parent sees it."""

    def __init__(self, number, pid):
        self.number, self.pid = number, pid
        self.tests = collections.deque()  # what it runs, and what it has been given
        self.ending = False  # it knows that nothing follows


class Run:
    """The parent."""

    def __init__(self, session):
        self.session, self.config = session, session.config
        self.queue = Queue(session.items)
        self.processes = {}  # by the pipe to each
        self.numbers = itertools.count()
        turn = self.config.getoption("turn")
        self.turn_in, self.turn_out = map(int, turn.split(",")) if turn else (None, None)
        for fd in filter(None, (self.turn_in, self.turn_out)):
            os.set_inheritable(fd, False)
        self.told = False  # that few tests are left
        self.base = self.config._tmp_path_factory.getbasetemp()
        self.spent = self.config.stash.setdefault(SPENT, collections.defaultdict(Spent))

    def run(self, count):
        gc.collect()
        gc.freeze()  # so that the collector writes to no page that the processes share
        try:
            for _ in range(count):
                self.fork(self.turn_in)
            while self.processes:
                for pipe in multiprocessing.connection.wait(list(self.processes)):
                    self.hear(pipe)
        finally:
            self.end()
        ours = processor_seconds(resource.RUSAGE_CHILDREN) - sum(one.processor for one in self.spent.values())
        self.spent[""].add(0, ours, ours)

    def fork(self, turn=None):
        number = next(self.numbers)
        pipe, theirs = multiprocessing.Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            pipe.close()
            for other in self.processes:
                other.close()
            run_process(self, number, theirs, turn)
        theirs.close()
        self.processes[pipe] = process = Process(number, pid)
        return process

    def hear(self, pipe):
        process = self.processes[pipe]
        try:
            index, reports, spent = pipe.recv()
        except (EOFError, OSError):
            self.gone(pipe)  # it has crashed
            return
        if index is None:
            for _ in range(AHEAD):
                self.give(pipe)
        else:
            process.tests.popleft()
            self.spent[self.session.items[index].nodeid.partition("::")[0]].add(1, *spent)
            self.report(self.session.items[index], [
                self.config.hook.pytest_report_from_serializable(config=self.config, data=data) for data in reports])
        self.give(pipe)
        if process.ending and not process.tests:
            self.gone(pipe)

    def give(self, pipe):
        process = self.processes[pipe]
        if process.ending:
            return
        index = self.queue.take(process.number)
        process.ending = index is None
        if index is not None:
            process.tests.append(index)
        with contextlib.suppress(OSError):  # it has died: its end is heard next
            pipe.send(index)
        if self.turn_out is not None and not self.told and self.queue.left <= len(self.session.items) // FEW:
            self.told = True
            write_byte(self.turn_out)

    def report(self, item, reports):
        hook = self.config.hook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def gone(self, pipe):
        process = self.processes.pop(pipe)
        pipe.close()
        os.waitpid(process.pid, 0)
        if process.tests:
            item = self.session.items[process.tests.popleft()]
            self.queue.inherit(self.fork().number, process.number, process.tests)
            self.report(item, [pytest.TestReport(
                nodeid=item.nodeid, location=item.location, keywords={}, outcome="failed", when="call",
                longrepr="the process gw%d crashed while running %s" % (process.number, item.nodeid))])
        elif not process.ending:
            raise RuntimeError("the process gw%d ended before its first test" % process.number)

    def end(self):
        """Those that still run, after an interrupt, hear that nobody listens, or are killed."""
        for pipe in self.processes:
            pipe.close()
        until = time.monotonic() + PATIENCE
        for process in self.processes.values():
            while os.waitpid(process.pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > until:
                    os.kill(process.pid, signal.SIGKILL)
                time.sleep(0.05)


def write_byte(fd):
    with contextlib.suppress(OSError):  # no set follows
        os.write(fd, b".")


# --------------------------------------------------------------------------- a process


class Reports:
    """A plugin that keeps them until the test has ended."""

    def __init__(self, config):
        self.config, self.data = config, []

    def pytest_runtest_logreport(self, report):
        self.data.append(self.config.hook.pytest_report_to_serializable(config=self.config, report=report))

    def take(self):
        data, self.data = self.data, []
        return data


def run_process(run, number, pipe, turn):
    """All of a process; does not return."""
    status = 1
    try:
        os.environ[PROCESS] = "gw%d" % number
        run_tests(run.session, run.base, pipe, turn)
        status = 0
    except (EOFError, ConnectionError, KeyboardInterrupt):
        pass  # the parent has ended, or will
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            run.session._setupstate.teardown_exact(None)
        for function in AT_EXIT:
            with contextlib.suppress(BaseException):
                function()
        if status == 0 and run.turn_out is not None:
            write_byte(run.turn_out)
        os._exit(status)


def run_tests(session, base, pipe, turn):
    config, items = session.config, session.items
    config._tmp_path_factory._basetemp = base / os.environ[PROCESS]
    config._tmp_path_factory._basetemp.mkdir(mode=0o700)
    config.get_terminal_writer()._file = open(os.devnull, "w")  # the parent tells what happened
    # The files that the parent captures into would be shared.
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    reports = Reports(config)
    config.pluginmanager.register(reports)
    if turn is not None:
        os.read(turn, 1)
    pipe.send((None, [], None))
    index = pipe.recv()
    while index is not None:
        following = pipe.recv()
        since, before = time.monotonic(), processor_seconds()
        config.hook.pytest_runtest_protocol(
            item=items[index], nextitem=None if following is None else items[following])
        pipe.send((index, reports.take(), (time.monotonic() - since, processor_seconds() - before)))
        index = following
