"""Clients of HTTP/2 of other people: many files on one connection, in clear text and over TLS."""

import hashlib
import json
import os
import random
import re
import subprocess
import urllib.request

import pytest

import tls
from browser import Browser
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


def hashes_of(where, names):
    return {name: hashlib.sha256((where / name).read_bytes()).hexdigest() for name in names}


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


@pytest.mark.slow
@pytest.mark.needs("nghttp")
@pytest.mark.parametrize("more", [(), ("-w", "10"), ("-W", "12", "-c", "0"), ("-p", "256")])
def test_nghttp(url, hashes, more):
    """All at once; with small windows, without a table of fields, with a priority."""
    names = [name for name in hashes if name != "0"]
    for name in names:
        assert hashlib.sha256(run("nghttp", "-y", *more, url + name)).hexdigest() == hashes[name]
    run("nghttp", "-ny", *more, *[url + name for name in names])


# ------------------------------------------------- those of make test-clients

MANY, TOGETHER = 600, 200
LARGE = 64 << 20


@pytest.fixture
def secure(serve_conf, site, tmp_path):
    """A server over TLS with a log of protocol, status and range: its URL, and what the log says."""
    log = tmp_path / "log"
    server = serve_conf(
        {"listen": ["127.0.0.1:0 tls"], "certificate": [tls.PAIRS.for_user(None)], "access_log": log,
         "log_format": "json", "log_fields": ["protocol", "status", "target"], "admin": "127.0.0.1:0"},
        [("s", {"root": site}, {})])

    def logged():
        return [json.loads(line) for line in log.read_text().splitlines()]

    return server, "https://localhost:%d" % server.address[1], logged


@pytest.mark.clients
@pytest.mark.needs("go")
def test_go(secure, site, hashes):
    """Hundreds at once: whole files, parts of them, and one of 64 MiB."""
    _, url, _ = secure
    large = random.Random(LARGE).randbytes(LARGE)
    (site / "large").write_bytes(large)
    right = {"/" + name: value for name, value in hashes.items()}
    data = random.Random(300001).randbytes(300001)
    for first, last in ((0, 0), (16374, 16376), (16380, 49160), (299000, 300000)):
        right["/300001@%d-%d" % (first, last)] = hashlib.sha256(data[first:last + 1]).hexdigest()
    jobs = ["/large"] + random.Random(1).choices(sorted(right), k=MANY) + ["/large"]
    right["/large"] = hashlib.sha256(large).hexdigest()
    said = run("go", "run", os.path.join(os.path.dirname(__file__), "client_http2.go"), url, TOGETHER, *jobs)
    lines = [line.split() for line in said.decode().splitlines()]
    assert sorted(job for job, _, _ in lines) == sorted(jobs)
    assert all((version, value) == ("HTTP/2.0", right[job]) for job, version, value in lines)


FILES = 200
LOADED = """(async () => {
    performance.setResourceTimingBufferSize(1000);
    const names = Array.from({length: %d}, (_, n) => "/small/" + n);
    const texts = await Promise.all(names.map(async name => (await fetch(name)).text()));
    const entries = performance.getEntriesByType("resource").filter(e => e.name.includes("/small/"));
    return {right: texts.filter((text, n) => text === "file " + n).length,
            protocols: [...new Set(entries.map(e => e.nextHopProtocol))], entries: entries.length};
})()"""


def connections(server):
    """That have begun to speak HTTP/2."""
    address = re.search(r"admin at (http://\S+)", server.output).group(1)
    text = urllib.request.urlopen(address + "metrics", timeout=PATIENCE).read().decode()
    return int(re.search(r"^pagewise_http2_connections_total (\d+)", text, re.M).group(1))


@pytest.mark.clients
@pytest.mark.needs("chromium")
def test_chromium_loads_a_page_of_200_files_on_one_connection(secure, site):
    server, url, _ = secure
    (site / "small").mkdir()
    for n in range(FILES):
        (site / "small" / str(n)).write_text("file %d" % n)
    (site / "index.html").write_text("<title>files</title>")
    with Browser("--ignore-certificate-errors") as page:
        page.open(url + "/", 600)
        before = connections(server)
        assert page.ask(LOADED % FILES) == {"right": FILES, "protocols": ["h2"], "entries": FILES}
        assert connections(server) == before


# Where it was, the colour of a pixel, and that it goes on from there.
SEEK = """(async () => {
    const video = document.querySelector("video");
    const event = name => new Promise((resolve, reject) => {
        video.addEventListener(name, resolve, {once: true});
        video.addEventListener("error", () => reject(video.error.message), {once: true});
    });
    if (video.readyState < 1) await event("loadedmetadata");
    const found = [video.duration];
    for (const at of [50, 5, 30]) {
        const done = event("seeked");
        video.currentTime = at;
        await done;
        found.push(video.currentTime);
    }
    const end = event("timeupdate");
    await video.play();
    await end;
    return [...found, video.readyState >= 2 && video.error === null];
})()"""


@pytest.mark.clients
@pytest.mark.needs("ffmpeg", "chromium")
def test_chromium_seeks_in_a_video(secure, site):
    _, url, logged = secure
    # Noise, so that it is too large to be fetched at once.
    run("ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=640x360:rate=25:duration=60",
        "-vf", "noise=alls=60:allf=t", "-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-pix_fmt", "yuv420p",
        "-movflags", "+faststart", site / "video.mp4")
    assert (site / "video.mp4").stat().st_size > 32 << 20
    (site / "index.html").write_text('<link rel="icon" href="data:,"><video src="/video.mp4" preload="metadata" muted></video>')
    with Browser("--ignore-certificate-errors", "--autoplay-policy=no-user-gesture-required") as page:
        page.open(url + "/", 600)
        assert page.ask(SEEK) == [60, 50, 5, 30, True]
        assert page.errors == []
    lines = [line for line in logged() if line["target"] == "/video.mp4"]
    assert len(lines) >= 3 and {line["protocol"] for line in lines} == {"HTTP/2.0"}
    assert {line["status"] for line in lines} == {206}
