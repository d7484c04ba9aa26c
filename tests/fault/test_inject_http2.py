"""Each allocation of libnghttp2 and each call of a serving process fails once at each place that requests
over HTTP/2 reach: the client gets the right answer, a reset stream or an end, the next ones the right
answer; nothing is leaked and nothing hangs."""

import os

import pytest

import harness
import injection
import walk
from test_inject_calls import MORE

scenario_http2 = pytest.importorskip("scenario_http2", reason="no Python module h2")

pytestmark = pytest.mark.once

# With make faults: everything with each send path, and with one of them as test_inject_calls.py.
LONG = os.environ.get("FAULTS_LONG") == "1"
# What HTTP/2 has of its own.
OWN = ("nghttp2_", "malloc", "calloc")
SITES = 40  # that it finds at least


@pytest.fixture(scope="module")
def known():
    """What has failed with another send path already."""
    return set()


@pytest.mark.parametrize("path", ["hot"] + harness.FILE_PATHS if LONG else ["nodiskio"])
def test_each_call_fails_once_at_each_site(tmp_path, known, path):
    w = walk.Walk(tmp_path, scenario_http2.Scenario, send_path=path)
    try:
        if LONG:
            sites, tried = walk.walk(w, known, MORE if path == "nodiskio" else [])
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
    assert len(w.missed) <= sites / 10 + 1
