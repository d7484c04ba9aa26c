"""Clients of other people: each fetches files of several sizes and parts of them, on a connection
that stays, and on a second one that resumes the first one's session; bodies are compared by hash."""

import concurrent.futures
import hashlib
import http.client
import io
import json
import os
import random
import subprocess

import pytest

import harness
from browser import Browser
from certificates import Authority
from harness import PATIENCE, request, wait_until

pytestmark = pytest.mark.once
HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = [0, 1, 16383, 16384, 16385, 65536, 300001, 3 << 20]
PARTS = [(0, 0), (16384, 16384), (16380, 49160), (299000, 300000)]  # of the file of 300001 bytes
VERSIONS = ["1.2", "1.3"]


class Site:
    def __init__(self, place):
        self.place = place
        self.root = Authority(place, "root")
        issuer = Authority(place, "issuer", self.root)
        pairs = [issuer.issue(kind=kind).write(place, kind) for kind in ("ecdsa", "rsa")]
        self.log = place / "access.log"
        files = place / "files"
        files.mkdir()
        (files / "index.html").write_text("<title>text</title>")
        self.jobs, self.hashes = [], []
        for size in SIZES:
            data = random.Random(size).randbytes(size)
            (files / str(size)).write_bytes(data)
            self.add("/%d" % size, data)
            for first, last in PARTS if size == 300001 else ():
                self.add("/%d@%d-%d" % (size, first, last), data[first:last + 1])
        self.top = {
            "listen": ["127.0.0.1:0 tls"], "workers": 2, "access_log": self.log,
            "log_format": "json",
            "log_fields": ["status", "tls_version", "tls_session", "tls_handshake_us"],
            "certificate": [cert for cert, _ in pairs],
            "certificate_key": [key for _, key in pairs]}
        self.files = files

    def conf(self, **top):
        path = self.place / "conf"
        path.write_text(harness.configuration(
            {**self.top, **top}, [("s", {"root": self.files}, {})]))
        return path

    def add(self, job, data):
        self.jobs.append(job)
        self.hashes.append(hashlib.sha256(data).hexdigest())

    def logged(self):
        text = self.log.read_text() if self.log.exists() else ""
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return Site(tmp_path_factory.mktemp("clients"))


class Case:
    """A server, and how its log goes on."""

    def __init__(self, site, server):
        self.site, self.server = site, server
        self.port = server.address[1]
        self.url = "https://localhost:%d" % self.port
        self.before = len(site.logged())

    def lines(self, count):
        """That have come into the log."""
        wait_until(lambda: len(self.site.logged()) >= self.before + count, "%d lines" % count)
        return self.site.logged()[self.before:]

    def check(self, hashes, version, resumes=True):
        """All jobs twice: on a connection that is new, and on one that is resumed."""
        jobs = len(self.site.jobs)
        assert hashes == 2 * self.site.hashes
        lines = self.lines(2 * jobs)
        assert {line["tls_version"] for line in lines} == {"TLSv" + version}
        # Workers log at their own pace, so their order is not that of the requests.
        assert sorted(line["tls_session"] for line in lines) == (
            ["full"] * jobs + ["resumed" if resumes else "full"] * jobs)
        # A connection has one figure.
        assert len({line["tls_handshake_us"] for line in lines}) <= 2


@pytest.fixture
def case(serve, site):
    return Case(site, serve("-c", site.conf()))


def run(*command, data=None):
    done = subprocess.run(list(map(str, command)), input=data, timeout=PATIENCE, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, (done.stderr + done.stdout)[-3000:]
    return done.stdout


def in_parallel(of):
    """What it returns for each version."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return list(pool.map(of, VERSIONS))


def requests(site, name="localhost"):
    """All of them at once; the connection ends with the last one."""
    jobs = [job.partition("@")[::2] for job in site.jobs]
    texts = [request(path, host=name, fields=[("Range", "bytes=" + part)] if part else [])
             for path, part in jobs[:-1]]
    return b"".join(texts) + request(jobs[-1][0], host=name, fields={"Connection": "close"})


def bodies(site, data):
    """Hashes of what is in a stream of answers."""
    stream = io.BytesIO(data)
    found = []
    for _ in site.jobs:
        response = http.client.HTTPResponse(Once(stream))
        response.begin()
        found.append(hashlib.sha256(response.read()).hexdigest())
    assert stream.read() == b""
    return found


class Once:
    """As a socket of http.client, whose file goes on with the next answer."""

    def __init__(self, stream):
        self.stream = stream

    def makefile(self, mode):
        return Rest(self.stream)


class Rest(io.BufferedIOBase):
    def __init__(self, stream):
        self.read, self.readline, self.readinto = stream.read, stream.readline, stream.readinto


@pytest.mark.parametrize("version", VERSIONS)
def test_curl(case, site, tmp_path, version):
    rounds = []
    for number in range(2):
        for i, job in enumerate(site.jobs):
            path, _, part = job.partition("@")
            rounds += ["--next"] if rounds else []
            rounds += ["-sS", "--fail", "--http1.1", "--cacert", site.root.path, "--tlsv" + version,
                       "--tls-max", version, "-o", tmp_path / ("%d-%d" % (number, i)),
                       case.url + path]
            rounds += ["-r", part] if part else []
            rounds += ["-H", "Connection: close"] if i == len(site.jobs) - 1 else []
    run("curl", *rounds)
    case.check([hashlib.sha256((tmp_path / ("%d-%d" % (number, i))).read_bytes()).hexdigest()
                for number in range(2) for i in range(len(site.jobs))], version,
               resumes=version == "1.3")  # of 1.2 it knows session ids alone


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.slow
def test_openssl(case, site, tmp_path, version):
    """Its own client has a session in a file."""
    session, found = tmp_path / "session", []
    for how in ("-sess_out", "-sess_in"):
        said = run("openssl", "s_client", "-quiet", "-ign_eof", "-verify_return_error", "-CAfile",
                   site.root.path, "-servername", "localhost", "-tls" + version.replace(".", "_"),
                   how, session, "-connect", "127.0.0.1:%d" % case.port, data=requests(site))
        found += bodies(site, said)
    case.check(found, version)


@pytest.mark.needs("gnutls-cli")
@pytest.mark.slow
def test_gnutls(case, site):
    """Its first connection asks for nothing; the second one resumes it.  It takes three seconds for
    that, hence both versions at once."""
    found = in_parallel(lambda version: bodies(site, run(
        "gnutls-cli", "--resume", "--logfile", os.devnull, "--x509cafile", site.root.path,
        "--priority", "NORMAL:-VERS-ALL:+VERS-TLS" + version, "--port", case.port, "localhost",
        data=requests(site))))
    assert found == [site.hashes] * len(VERSIONS)
    lines = case.lines(len(VERSIONS) * len(site.jobs))
    assert {(line["tls_version"], line["tls_session"]) for line in lines} == {
        ("TLSv" + version, "resumed") for version in VERSIONS}


@pytest.mark.clients
@pytest.mark.needs("java")
@pytest.mark.parametrize("version", VERSIONS)
def test_java(case, site, version):
    case.check(run("java", os.path.join(HERE, "Client.java"), case.url, site.root.path, version,
                   *site.jobs).decode().split(), version)


@pytest.mark.clients
@pytest.mark.needs("go")
@pytest.mark.parametrize("version", VERSIONS)
def test_go(case, site, version):
    case.check(run("go", "run", os.path.join(HERE, "client.go"), case.url, site.root.path, version,
                   *site.jobs).decode().split(), version)


FETCH = """(async () => {
    const found = [];
    for (const [path, part] of %s) {
        const answer = await fetch(path, {
            cache: "no-store", headers: part ? {Range: "bytes=" + part} : {}});
        const hash = await crypto.subtle.digest("SHA-256", await answer.arrayBuffer());
        found.push(Array.from(new Uint8Array(hash), x => x.toString(16).padStart(2, "0")).join(""));
    }
    return found;
})()"""


@pytest.mark.clients
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("version", VERSIONS)
def test_chromium(serve, site, version):
    """It has several connections, each of which ends after some answers."""
    case = Case(site, serve("-c", site.conf(max_requests=5)))
    jobs = [job.partition("@")[::2] for job in site.jobs]
    with Browser("--ignore-certificate-errors", "--ssl-version-max=tls" + version) as page:
        page.open(case.url + "/", 600)
        assert page.ask(FETCH % json.dumps(jobs)) == site.hashes
    lines = case.lines(len(jobs) + 1)
    assert {line["tls_version"] for line in lines} == {"TLSv" + version}
    assert {line["tls_session"] for line in lines} == {"full", "resumed"}
