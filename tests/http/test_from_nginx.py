"""docs/guides/from-nginx.md: every line of its last column does what the first one says."""

import base64
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import time

import pytest

import harness
import tls
from certificates import Authority
from harness import wait_until
from test_basic import HASHES, credentials, lines

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "guides/from-nginx.md"
OLD = 1_600_000_000  # seconds


def rows():
    """{task: (in a site, text)}."""
    found, site = {}, None
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            site = line == "## In a site"
        cells = [c.strip() for c in line.strip("|").split(" | ")]
        if not line.startswith("| ") or cells[0] == "task":
            continue
        assert len(cells) == 5 and all(cells), line
        parts = cells[4].split("<br>")
        assert all(re.fullmatch("`[^`]+`", part) for part in parts), line
        assert cells[0] not in found, cells[0]
        found[cells[0]] = site, "\n".join(part.strip("`") for part in parts)
    return found


ROWS = rows()
OVER_TLS = ("Only the newest TLS version", "Disable HTTP/2", "Send all to HTTPS", "HSTS for a year",
            "Require client certificates")
CHECKS = {}


def task(name):
    def add(check):
        assert name not in CHECKS
        CHECKS[name] = check
        return check
    return add


def put(path, text, when=OLD):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, (when, when))


class World:
    """A /srv, a /var and a /run, and the server of a row."""

    def __init__(self, base, serve):
        self.base = base
        self.serve = serve
        for name in ("index.html", "page.html", "b.html", "assets/a.js", "status.json", "a.txt", "a.md",
                     "dir/f", "d/default.htm", ".hidden"):
            put(base / "srv/www" / name, name)
        put(base / "srv/www/404.html", "not here")
        put(base / "srv/www/a.txt.gz", gzip.compress(b"a.txt"))
        put(base / "srv/video/v.mp4", "v.mp4")
        put(base / "srv/disk2/pub/p", "p")
        put(base / "srv/keys", "0123456789abcdef" * 4 + "\n")
        os.chmod(base / "srv/keys", 0o600)
        put(base / "srv/htpasswd", lines(HASHES))
        put(base / "sites/one.conf", 'site "one" { root = "%s/srv/www" }\n' % base)
        (base / "var/log").mkdir(parents=True)
        (base / "run").mkdir()
        (base / "srv/tls").mkdir()
        self.pair = tls.make_pair(base / "srv/tls/www.pem")
        shutil.copy(self.pair, base / "srv/tls/www.key")
        self.authority = Authority(base, "clients")
        shutil.copy(self.authority.path, base / "srv/tls/ca.pem")

    def start(self, name):
        in_site, text = ROWS[name]
        text = re.sub(r'(?<=[" ])/(srv|var|run)/', r"%s/\1/" % self.base, text)
        text = text.replace("unix:/run/", "unix:%s/run/" % self.base)
        text = text.replace("*:8080", "127.0.0.1:0").replace("[::1]:8081", "127.0.0.2:0")
        top = 'listen = {"127.0.0.1:0"}\nstall_log = 0\n'
        if name in OVER_TLS:
            top = 'listen = {"127.0.0.1:0", "127.0.0.1:0 tls"}\ncertificate = {"%s"}\n' % self.pair
        if "listen" in text:
            top = "stall_log = 0\n"
        if "access_log" not in text:
            top += 'access_log = "%s/var/log/all.log"\nlog_format = json\n' % self.base
        root = "" if "root = " in text.split("location")[0] else 'root = "%s/srv/www"\n' % self.base
        if in_site:
            conf = '%ssite "s" {\n%s%s\n}\n' % (top, root, text)
        else:
            site = "" if "include" in text else 'site "s" { root = "%s/srv/www" }\n' % self.base
            conf = "%s%s\n%s" % (top, text, site)
        (self.base / "pagewise.conf").write_text(conf)
        return self.serve("-c", self.base / "pagewise.conf")

    def log(self, name="www.log"):
        return (self.base / "var/log" / name).read_text()


@pytest.fixture
def world(serve, tmp_path):
    return World(tmp_path, serve)


def where(server, target, **kw):
    answer = server.get(target, **kw)
    return answer.status, answer.get("Location")


def test_every_row_has_a_check():
    assert set(ROWS) == set(CHECKS)
    assert len(ROWS) >= 25


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ROWS))
def test_row(world, name):
    CHECKS[name](world, world.start(name))


# -------------------------------------------------------------- in a site


@task("Serve a directory")
def _(world, server):
    assert server.get("/a.txt").body == b"a.txt"


@task("Serve some hosts")
def _(world, server):
    for host in ("a.example", "x.b.example"):
        assert server.get("/a.txt", host=host).status == 200


@task("List directories")
def _(world, server):
    assert b'href="f"' in server.get("/dir/").body


@task("Name the index files")
def _(world, server):
    assert server.get("/").body == b"index.html"
    assert server.get("/d/").body == b"d/default.htm"


@task("Serve a prefix from elsewhere")
def _(world, server):
    assert server.get("/video/v.mp4").body == b"v.mp4"


@task("Serve a subdirectory from another disk")
def _(world, server):
    assert server.get("/pub/p").body == b"p"


@task("Single-page application")
def _(world, server):
    assert server.get("/any/route").body == b"index.html"
    assert server.get("/a.txt").body == b"a.txt"


@task("Paths without .html")
def _(world, server):
    assert server.get("/page").body == b"page.html"
    assert where(server, "/dir") == (301, "/dir/")
    assert server.get("/nope").status == 404


@task("Page for an error")
def _(world, server):
    answer = server.get("/nope")
    assert (answer.status, answer.body) == (404, b"not here")


@task("Redirect a page that moved")
def _(world, server):
    assert where(server, "/a.html?q") == (301, "/b.html?q")
    assert server.get("/b.html").status == 200


@task("Redirect a tree that moved")
def _(world, server):
    assert where(server, "/old/x/y") == (301, "/new/x/y")


@task("Send all to another host")
def _(world, server):
    assert where(server, "/x?q") == (301, "https://www.example.org/x?q")


@task("Let clients cache a prefix for a year")
def _(world, server):
    assert server.get("/assets/a.js").get("Cache-Control") == "max-age=31536000"
    assert "Cache-Control" not in server.get("/a.txt")


@task("Forbid to cache a file")
def _(world, server):
    assert server.get("/status.json").get("Cache-Control") == "no-store"
    assert "Cache-Control" not in server.get("/a.txt")


@task("Set and remove header fields")
def _(world, server):
    answer = server.get("/a.txt")
    assert answer.get("X-Robots-Tag") == "noindex" and "Server" not in answer


@task("Security header fields")
def _(world, server):
    assert server.get("/a.txt").get("X-Content-Type-Options") == "nosniff"


@task("Allow scripts of another site")
def _(world, server):
    answer = server.get("/a.txt", fields=[("Origin", "https://app.example")])
    assert answer.get("Access-Control-Allow-Origin") == "https://app.example"


@task("Serve precompressed files")
def _(world, server):
    answer = server.get("/a.txt", fields=[("Accept-Encoding", "gzip")])
    assert answer.get("Content-Encoding") == "gzip" and gzip.decompress(answer.body) == b"a.txt"


@task("Media type of a suffix")
def _(world, server):
    assert server.get("/a.md").get("Content-Type") == "text/markdown; charset=utf-8"


@task("Hide dot files")
def _(world, server):
    assert server.get("/.hidden").status == 404


@task("Allow only some addresses")
def _(world, server):
    assert server.get("/a.txt").status == 403


@task("Ask for a password")
def _(world, server):
    answer = server.get("/a.txt")
    assert answer.status == 401 and 'realm="Staff"' in answer.get("WWW-Authenticate")
    assert server.get("/a.txt", fields=credentials("y", "secret")).body == b"a.txt"


@task("Send the SHA-256 of a file")
def _(world, server):
    done = harness.Finished("digest", str(world.base / "srv/www"))
    assert done.code == 0, done.err
    digest = base64.b64encode(hashlib.sha256(b"a.txt").digest()).decode()
    wait_until(lambda: server.get("/a.txt").get("Repr-Digest") == "sha-256=:%s:" % digest,
               "the digest")


@task("Limit bytes per second")
def _(world, server):
    put(world.base / "srv/www/big", b"x" * (1536 << 10))
    since = time.monotonic()
    assert len(server.get("/big").body) == 1536 << 10
    # 512K more than the burst, less what may be in the last share.
    assert time.monotonic() - since > 0.4


@task("Limit requests per second of a client")
def _(world, server):
    with server.connect() as c:
        statuses = [c.ask("/a.txt").status for _ in range(200)]
    assert statuses[:2] == [200, 200] and 429 in statuses


@task("Links that expire")
def _(world, server):
    assert server.get("/a.txt").status == 403
    signed = harness.Finished("sign", "--key", str(world.base / "srv/keys"), "/a.txt")
    assert signed.code == 0, signed.err
    assert server.get(signed.out.strip()).body == b"a.txt"


# ------------------------------------------------------- at the top level


@task("Choose addresses")
def _(world, server):
    assert server.get("/a.txt").status == 200


@task("Listen on a Unix socket")
def _(world, server):
    assert server.address == str(world.base / "run/www.sock")
    assert server.get("/a.txt").body == b"a.txt"


@task("Client address behind a balancer")
def _(world, server):
    server.get("/a.txt", fields=[("X-Forwarded-For", "192.0.2.7")])
    line = wait_until(lambda: world.log("all.log"), "the log")
    assert json.loads(line)["remote"] == "192.0.2.7"


@task("The PROXY protocol")
def _(world, server):
    with server.connect() as c:
        c.send(b"PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\nGET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n")
        assert c.response().body == b"a.txt"
    line = wait_until(lambda: world.log("all.log"), "the log")
    assert json.loads(line)["remote"] == "192.0.2.7"


@task("Log as JSON")
def _(world, server):
    server.get("/a.txt")
    line = wait_until(lambda: world.log(), "the log")
    assert json.loads(line.splitlines()[0])["status"] == 200


@task("Leave requests out of the log")
def _(world, server):
    server.get("/live")
    server.get("/a.txt")
    wait_until(lambda: "/a.txt" in world.log(), "the log")
    assert "/live" not in world.log()


@task("Limit connections of a client")
def _(world, server):
    with server.connect() as a, server.connect() as b:
        for c in (a, b):
            assert c.ask("/a.txt").status == 200
        with pytest.raises((OSError, AssertionError)):
            server.get("/a.txt")
    server.stop(messages=True)


@task("Path for health checks")
def _(world, server):
    assert server.get("/live").body == b"live\n"
    assert server.get("/ready").body == b"ready\ns: ok\n"


def over_tls(server, context=None, target="/a.txt"):
    """The version, and the answer."""
    with socket.create_connection(server.secure_address(), timeout=harness.PATIENCE) as raw:
        with (context or tls.any_context()).wrap_socket(raw) as s:
            s.sendall(harness.request(target, fields={"Connection": "close"}))
            return s.version(), b"".join(iter(lambda: s.recv(65536), b""))


@task("Speak HTTPS")
def _(world, server):
    assert over_tls(server)[1].endswith(b"\r\n\r\na.txt")


@task("Only the newest TLS version")
def _(world, server):
    assert over_tls(server)[0] == "TLSv1.3"
    context = tls.any_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        over_tls(server, context)


@task("Disable HTTP/2")
def _(world, server):
    context = tls.any_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_connection(server.secure_address(), timeout=harness.PATIENCE) as raw:
        with context.wrap_socket(raw) as s:
            assert s.selected_alpn_protocol() == "http/1.1"


@task("Send all to HTTPS")
def _(world, server):
    status, location = where(server, "/a.txt?q", host="www.example.org:80")
    assert status == 301 and re.fullmatch(r"https://www\.example\.org(:\d+)?/a\.txt\?q", location)
    assert b"a.txt" in over_tls(server)[1]


@task("HSTS for a year")
def _(world, server):
    assert b"\r\nStrict-Transport-Security: max-age=31536000\r\n" in over_tls(server)[1]


@task("Require client certificates")
def _(world, server):
    context = tls.any_context()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        over_tls(server, context)
    mine = world.authority.issue("me", extensions="extendedKeyUsage=clientAuth\n")
    context.load_cert_chain(*mine.write(world.base, "mine"))
    assert over_tls(server, context)[1].endswith(b"a.txt")


@task("Include files")
def _(world, server):
    assert server.get("/a.txt").body == b"a.txt"
