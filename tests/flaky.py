"""Tells failures under load from faults: see tests/run.

A test that fails is run once more, alone.  If it passes then, it is flaky.  A sanitizer's
report, a crash, a wrong byte or a test without end is a fault at once.
"""
import json
import os
import re

import forked

FAILURES = "PAGEWISE_FAILURES"  # in the environment: the file that gets a line of JSON a failure
MOST = 3  # flaky tests of a run that still succeeds
FAULT = re.compile(
    r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|: runtime error: "  # a sanitizer's report
    r"|killed by signal (?!9 )|exit code -|exited with status|[Cc]ore dumped|Segmentation fault"
    r"|the test took more than|crashed while running"  # tests/conftest.py ended it
    r"|ProtocolError|At index \d+ diff: b['\"]|\bis wrong\b")  # wrong bytes


def pytest_runtest_logreport(report):
    """For conftest.py.  Notes a failure; with tests/forked.py the parent does."""
    path = os.environ.get(FAILURES)
    if not path or not report.failed or forked.PROCESS in os.environ:
        return
    output = "\n".join("%s\n%s" % pair for pair in report.sections)
    # Without the test's own lines: they may name a fault that did not happen.
    seen = "\n".join(re.findall(r"^E .*", report.longreprtext, re.M)) or report.longreprtext
    with open(path, "a", encoding="utf-8") as f:
        json.dump({"test": report.nodeid, "text": "%s\n%s" % (report.longreprtext, output),
                   "fault": is_fault(seen + output)}, f)
        f.write("\n")


def is_fault(text):
    return bool(FAULT.search(text))


def candidates(path):
    """{test: [text of each phase that failed]} of a run of pytest, without faults."""
    found, faults = {}, set()
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for line in f:
                one = json.loads(line)
                found.setdefault(one["test"], []).append(one["text"])
                if one["fault"]:
                    faults.add(one["test"])
    return {test: texts for test, texts in found.items() if test not in faults}
