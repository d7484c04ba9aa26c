"""Fixtures for tests/nginx."""

import contextlib
import os
import shutil
import tempfile

import pytest

import nginx_server


def starter():
    """Starts nginx with an http block; each ends with the tests, and none may complain."""
    reason = nginx_server.why_not()
    if reason:
        pytest.skip(reason)
    started = []
    with contextlib.ExitStack() as undo:
        def start(http, **kw):
            run = tempfile.mkdtemp(prefix="pw-nginx-")
            undo.callback(shutil.rmtree, run, ignore_errors=True)
            os.chmod(run, 0o755)
            server = nginx_server.Nginx(run, http, **kw)
            undo.callback(server.stop)
            started.append(server)
            return server.start()
        yield start
        for server in started:
            server.stop()
            server.healthy()


@pytest.fixture
def nginx():
    yield from starter()


@pytest.fixture(scope="module")
def start_nginx():
    yield from starter()
