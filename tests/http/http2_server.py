"""A server for tests of what only HTTP/2 has, and its files.

They are skipped without Python's module h2.
"""

import os

import pytest

import tls
import tree as t

h2_client = pytest.importorskip("h2_client", reason="no Python module h2")
Client, MOST = h2_client.Client, h2_client.MOST

BIG = 16 * t.MIB
NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, CANCEL, CALM = 0, 1, 7, 8, 11
HEAD_FIELDS = {":status", "date", "server", "content-type", "content-length", "last-modified", "etag",
               "accept-ranges"}


@pytest.fixture(scope="module")
def module_files(module_path):
    """Contents by name; old, so that their tags are strong."""
    data = {"small": b"small", "page.html": b"<p>page", "big": t.content(12, BIG),
            "middle": t.content(13, 300001), "empty": b""}
    for name, content in data.items():
        (module_path / name).write_bytes(content)
        os.utime(module_path / name, (1.6e9, 1.6e9))
    return data


@pytest.fixture
def files(site, module_path, module_files):
    """Links: many tests want them, and one is large."""
    for name in module_files:
        os.link(module_path / name, site / name)
    return {"/" + name: content for name, content in module_files.items()}


PATIENT = {"workers": 1, "head_timeout": 600, "keepalive_timeout": 600, "send_timeout": 600}


@pytest.fixture
def start(serve_conf, site, files):
    def run(sites=None, **top):
        return serve_conf({**PATIENT, **top}, sites or [("s", {"root": site}, {})])

    return run


@pytest.fixture
def lent(lend_conf, module_path, module_files):
    return lend_conf(PATIENT, [("s", {"root": module_path}, {})])


def over_tls(start, **top):
    return start(listen=["127.0.0.1:0 tls"], certificate=[tls.PAIRS.for_user(None)], **top)
