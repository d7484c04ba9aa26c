"""Each allocation of libnghttp2 and each call of a serving process fails once at each place that requests
over HTTP/2 reach: the client gets the right answer, a reset stream or an end, the next ones the right
answer; nothing is leaked and nothing hangs."""

import os

import pytest

import harness
import injection
import scenario_http2
import walk

pytestmark = pytest.mark.once

# With make faults: see test_inject_calls.py.
LONG = os.environ.get("FAULTS_LONG") == "1"
MORE = [(1, 1), (2, 1), (3, 1), (5, 1), (8, 1), (0, 2), (0, 5), (0, 20)]
# What HTTP/2 has of its own.
OWN = ("nghttp2_", "malloc", "calloc")
SITES = 20  # that it finds at least


@pytest.mark.parametrize("path", ["hot"] + harness.FILE_PATHS if LONG else ["nodiskio"])
def test_each_call_fails_once_at_each_site(tmp_path, path):
    w = walk.Walk(tmp_path, scenario_http2.Scenario, send_path=path)
    try:
        if LONG:
            sites, tried = walk.walk(w, set(), MORE)
        else:
            names = {key: name for key, (name, _) in w.sites().items() if name.startswith(OWN)}
            sites = tried = len(names)
            for key, name in names.items():
                w.told((key, injection.effects(name)[0]))
        w.end()
    finally:
        w.discard()
    print(sites, "sites;", tried, "to happen;", w.faults, "faults; not reached again:", *w.missed, sep="\n")
    assert sites >= SITES
    assert len(w.missed) <= tried / 20 + 1
