"""Each call of a serving process fails once at each place that makes it, in each way
that its manual page has.  Of what a kernel may do at any time (EINTR, EAGAIN, less than
was asked for) the client notices nothing; else it gets the right answer, 500, 503 or an
early end, and the next ones the right answer; nothing is leaked."""

import os

import pytest

import harness
import walk

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("inject_calls")]  # known is of one process

# With make faults: at the second call and later ones of a run, and several in a row.
MORE = [(1, 1), (2, 1), (3, 1), (5, 1), (8, 1), (0, 2), (0, 5), (0, 20)]
# What it finds at least: copy has the fewest calls of its own.
SITES, TRIED = 35, 12
LONG = os.environ.get("FAULTS_LONG") == "1"


@pytest.fixture(scope="module")
def known():
    """What has failed with another send path already."""
    return set()


@pytest.mark.parametrize("path", ["hot"] + harness.FILE_PATHS)
def test_each_call_fails_once_at_each_site(tmp_path, known, path):
    w = walk.Walk(tmp_path, send_path=path)
    try:
        sites, tried = walk.walk(w, set() if LONG else known, MORE if LONG else [])
        w.end()
    finally:
        w.discard()
    print(sites, "sites;", tried, "to happen;", w.faults, "faults; not reached again:", *w.missed,
          "passed by chance:", *w.by_chance, sep="\n")
    assert sites >= SITES and tried >= TRIED
    assert len(w.missed) <= tried / 20 + 1
    assert len(w.by_chance) <= tried / 10 + 1
