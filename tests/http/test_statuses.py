"""docs/reference/statuses.md against the sources, and against a server that is provoked."""

import pathlib
import re

import pytest

from harness import request
from test_signed_links import KEYS, link

TOP = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.once
ADMIN = {"HTTP_NOTFOUND": 404, "HTTP_BADMETHOD": 405, "HTTP_SERVUNAVAIL": 503}
LOG_ONLY = 499


def source(name):
    return (TOP / "server" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page():
    """(the part about requests, the part about admin)"""
    return (TOP / "docs/reference/statuses.md").read_text(encoding="utf-8").split("## The admin address")


def test_the_page_has_each_status_that_the_server_can_write(page):
    rows = re.findall(r"^\| (\d{3})(?: ([^|]+))? \| (yes|no) \| .+ \| .+ \|$", page[0], re.M)
    documented = {int(number): (reason, ends == "yes") for number, reason, ends in rows}
    assert len(rows) == len(documented) == len(re.findall(r"^\| \d", page[0], re.M))
    assert documented.pop(LOG_ONLY)
    written = re.findall(r'\{"(\d{3}) ([^"]+)", (\d{3}), (true|false)\}', source("http/head_write.c"))
    assert all(number == same for number, _, same, _ in written)
    assert documented == {int(number): (reason, ends == "true") for number, reason, _, ends in written}


def test_each_status_in_the_sources_has_a_reason_phrase(page):
    """Another number would become 500."""
    known = {int(number) for number in re.findall(r"^\| (\d{3})", page[0], re.M)}
    answered = set()
    for path in [p for room in ("http", "http2", "conn", "content") for p in (TOP / "server" / room).glob("*.c")]:
        answered |= {int(n) for n in re.findall(
            r"(?:response_error|response_text|refuse|refuse_head|head_begin|respond)\((?:[^(),]+|\w+\(\w+\)),\s+(\d{3})\b|"
            r"(?:return|status =) (\d{3});", path.read_text(encoding="utf-8"))
            for n in n if n}
    assert len(answered) > 20
    assert answered <= known, answered - known


def test_the_page_has_the_statuses_of_admin(page):
    documented = {int(n) for n in re.findall(r"^\| (\d{3})", page[1], re.M)}
    found = re.findall(r"refuse\(\s*req, (\w+),", source("admin/admin.c"))
    assert documented == {ADMIN.get(n) or int(n) for n in found}


# ------------------------------------------------------------------ a server that is provoked

# test_tls.py has the first one, and tests/fault the other two.
ELSEWHERE = {421, 500, LOG_ONLY}
PROVOKED = [
    (200, request("/a")),
    (204, request("/a", "OPTIONS")),
    (206, request("/a", fields={"Range": "bytes=0-1"})),
    (301, request("/dir")), (301, request("/301")), (302, request("/302")), (303, request("/303")),
    (304, request("/a", fields={"If-None-Match": "*"})),
    (307, request("/307")), (308, request("/308")),
    (400, request("/a", host=None)), (400, request("/a", fields=[("Host", "b")])), (400, b"GET /a HTTP/1.1\nHost: x\n\n"),
    (401, request("/users/a")),
    (403, request("/dir/")), (403, request("/denied/a")), (403, request("/links/a")), (403, request("/try/403")),
    (404, request("/none")), (404, request("/.hidden")), (404, request("/" + "n" * 300)),
    (405, request("/a", "POST")),
    (408, b"GET /a HTTP/1.1\r\n"),
    (410, request(link("/links/a", expires=1, key=KEYS[1]))), (410, request("/try/410")),
    (412, request("/a", fields={"If-Unmodified-Since": "Fri, 31 Dec 1999 23:59:59 GMT"})),
    (413, request("/a", fields={"Content-Length": str(1 << 20)})),
    (414, request("/" + "a" * 9000)),
    (416, request("/a", fields={"Range": "bytes=100-"})),
    (429, request("/slow/a")),
    (431, request("/a", fields={"Cookie": "c" * 40000})),
    (431, request("/a", fields=[("X-%d" % i, "1") for i in range(200)])),
    (451, request("/try/451")),
    (501, request("/a", fields={"Transfer-Encoding": "gzip"})), (501, request("/a", "BREW")),
    (503, request("/try/503")),
    (505, b"GET /a HTTP/3.0\r\nHost: x\r\n\r\n"),
]


@pytest.fixture
def provoked(serve_conf, site, tmp_path):
    for name in ("dir", "denied", "links", "users", "slow", "try"):
        (site / name).mkdir()
    for name in ("a", "denied/a", "links/a", "users/a", "slow/a", ".hidden"):
        (site / name).write_bytes(b"0123456789")
    (tmp_path / "keys").write_text(KEYS[1] + "\n")
    (tmp_path / "keys").chmod(0o600)
    (tmp_path / "users").write_text("u:$2b$04$ABCDEFGHIJKLMNOPQRSTUuOHKTMj6A9VKZoVxdizhB4LgbxRyhEAO\n")
    locations = {"/try/%d" % n: {"try": ["$path", n]} for n in (403, 410, 451, 503)}
    locations |= {"/denied/": {"deny": "all"}, "/links/": {"signed_links": tmp_path / "keys"},
                  "/users/": {"htpasswd": tmp_path / "users"}, "/slow/": {"request_rate": "1/h", "request_burst": 1}}
    return serve_conf({"workers": 1, "head_timeout": 1}, [("s", {"root": site, "redirect": [
        "/%d /a %d" % (n, n) for n in (301, 302, 303, 307, 308)]}, locations)])


def test_each_status_of_the_page_is_sent(provoked, page):
    ends = {int(n): e == "yes" for n, e in re.findall(r"^\| (\d{3}) [^|]+ \| (yes|no) ", page[0], re.M)}
    provoked.get("/slow/a")
    seen = set()
    for status, text in PROVOKED:
        with provoked.connect() as c:
            c.send(text)
            response = c.response()
            assert response.status == status, text[:80]
            assert response.closes == ends[status], (status, text[:80])
        seen.add(status)
    documented = {int(n) for n in re.findall(r"^\| (\d{3})", page[0], re.M)}
    assert documented == seen | ELSEWHERE
