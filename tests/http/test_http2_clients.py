"""Clients of HTTP/2 of other people: many files on one connection, in clear text and over TLS."""

import hashlib
import random
import shutil
import subprocess

import pytest

import tls
from harness import PATIENCE

pytestmark = pytest.mark.once
SIZES = [0, 1, 16375, 16384, 65536, 300001, 3 << 20]


def run(*command):
    done = subprocess.run(list(map(str, command)), timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, (done.stderr + done.stdout)[-3000:]
    return done.stdout


@pytest.fixture
def hashes(site):
    result = {}
    for size in SIZES:
        data = random.Random(size).randbytes(size)
        (site / str(size)).write_bytes(data)
        result[str(size)] = hashlib.sha256(data).hexdigest()
    return result


@pytest.fixture(params=["http", "https"])
def url(request, serve_conf, site, hashes):
    top = {"workers": 1}
    if request.param == "https":
        top.update(listen=["127.0.0.1:0 tls"], certificate=[tls.PAIRS.for_user(None)])
    server = serve_conf(top, [("s", {"root": site}, {})])
    return "%s://localhost:%d/" % (request.param, server.address[1])


def needs(program):
    return pytest.mark.skipif(not shutil.which(program), reason="no " + program)


def hashes_of(where, names):
    return {name: hashlib.sha256((where / name).read_bytes()).hexdigest() for name in names}


@needs("curl")
def test_curl(url, hashes, tmp_path):
    if b"HTTP2" not in run("curl", "--version"):
        pytest.skip("a curl without HTTP/2")
    out = tmp_path / "out"
    out.mkdir()
    how = ["--http2", "--parallel"] if url.startswith("https") else ["--http2-prior-knowledge"]
    files = [(url + name, "-o", out / name) for name in hashes]
    # With prior knowledge curl 7.88 cannot use a connection again, whosever it is.
    commands = [sum(files, ())] if url.startswith("https") else files
    said = b"".join(run("curl", "-sk", *how, "-w", "%{http_version} %{http_code}\n", *words) for words in commands)
    assert said.split() == [b"2", b"200"] * len(hashes)
    assert hashes_of(out, hashes) == hashes
    part = run("curl", "-sk", how[0], "-r", "16370-16390", url + "300001")
    assert part == random.Random(300001).randbytes(300001)[16370:16391]


@needs("nghttp")
@pytest.mark.parametrize("more", [(), ("-w", "10"), ("-W", "12", "-c", "0"), ("-p", "256")])
def test_nghttp(url, hashes, more):
    """All at once; with small windows, without a table of fields, with a priority."""
    names = [name for name in hashes if name != "0"]
    for name in names:
        assert hashlib.sha256(run("nghttp", "-y", *more, url + name)).hexdigest() == hashes[name]
    run("nghttp", "-ny", *more, *[url + name for name in names])
