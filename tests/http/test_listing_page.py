"""What a listing shows and to whom: order, sizes, dates, the way up, JSON, a header."""

import datetime
import html.parser
import json
import os
import re
import urllib.parse

import pytest

import tree as t
from browser import Browser
from harness import request

MTIME = 1795424531  # 2026-11-23 09:02:11 UTC
VOID = {"meta", "link", "br", "hr", "img", "input"}
ENDS_ITSELF = {"tr", "td", "tbody"}  # whose end tag may be left out


class Page(html.parser.HTMLParser):
    """Rows as lists of texts, headings, links; fails if elements do not nest."""

    def __init__(self, body):
        super().__init__()
        self.open, self.rows, self.links, self.sorted = [], [], [], {}
        self.title = self.path = ""
        self.headings, self.names, self.exact, self.orders = [], [], [], []
        self.feed(body.decode())
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "td" and self.open[-1] == "td" or tag in ("tr", "tbody"):
            while self.open[-1] in ("td", "tr"):
                self.open.pop()
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")
            self.exact.append(attrs.get("title"))
        elif tag == "a":
            self.links.append(attrs["href"])
        elif tag == "input":
            assert attrs["type"] == "hidden" and self.open[-1] == "form"
            self.orders.append("?%s=%s" % (attrs["name"], attrs["value"]))
        elif tag == "button":
            self.orders[-1] += "&%s=%s" % (attrs["name"], attrs["value"])
        elif tag == "th":
            self.headings.append("")
            if "aria-sort" in attrs:
                self.sorted[len(self.headings) - 1] = attrs["aria-sort"]

    def handle_endtag(self, tag):
        while self.open[-1] != tag:
            assert self.open[-1] in ENDS_ITSELF, (tag, self.open)
            self.open.pop()
        self.open.pop()

    def handle_data(self, data):
        if "h1" in self.open:
            self.path += data
        elif "title" in self.open:
            self.title += data
        elif "th" in self.open:
            self.headings[-1] += data
        elif "td" in self.open:
            self.rows[-1][-1] += data.rstrip("\n")


def page_of(server, target="/", **kw):
    response = server.get(target, **kw)
    assert response.status == 200
    assert response.get("Content-Type") == "text/html; charset=utf-8"
    return Page(response.body)


def names(server, target="/"):
    """In their order, without the way up."""
    return [row[0] for row in page_of(server, target).rows[1:] if row[0] != "../"]


def make(path, size=0, mtime=MTIME):
    with open(path, "wb") as f:
        f.truncate(size)
    os.utime(path, (mtime, mtime))


@pytest.fixture
def listed(serve, site):
    """Names whose three orders differ."""
    for name, size, age in (("v2", 30, 300), ("v16", 10, 100), ("v152", 20, 200)):
        make(site / name, size, MTIME - age)
    for name in ("b", "a10", "a9"):
        (site / name).mkdir()
        os.utime(site / name, (MTIME, MTIME))
    (site / "l").symlink_to("nowhere")
    os.mkfifo(site / "p")
    os.utime(site / "p", (MTIME, MTIME))
    return serve("--root", site, "--autoindex", "--workers", "1")


DIRS = ["a9/", "a10/", "b/"]


@pytest.mark.parametrize("query, expected", [
    ("", DIRS + ["l", "p", "v2", "v16", "v152"]),
    ("?sort=name&order=desc", DIRS[::-1] + ["v152", "v16", "v2", "p", "l"]),
    ("?sort=time", DIRS + ["v2", "v152", "v16", "p", "l"]),
    ("?sort=time&order=desc", DIRS + ["p", "v16", "v152", "v2", "l"]),
    ("?sort=size", DIRS + ["p", "v16", "v152", "v2", "l"]),
    ("?order=desc&sort=size", DIRS + ["v2", "v152", "v16", "p", "l"]),
    ("?sort=colour&order=up&format=pdf&x", DIRS + ["l", "p", "v2", "v16", "v152"]),
])
def test_rows_are_in_the_requested_order(listed, query, expected):
    for _ in range(2):
        assert names(listed, "/" + query) == expected


def test_headings_are_buttons_that_sort_and_turn_round(listed):
    """No links: a program that follows each link would fetch each order."""

    def headings(target):
        page = page_of(listed, target)
        assert page.headings == ["Name", "Modified (UTC)", "Size"]
        assert not [h for h in page.links if "?" in h and "%3F" not in h]
        return page.orders, page.sorted

    orders, order = headings("/")
    assert orders == ["?order=desc&sort=name", "?order=desc&sort=time", "?order=desc&sort=size"]
    assert order == {0: "ascending"}
    orders, order = headings("/" + orders[2])
    assert orders == ["?order=asc&sort=name", "?order=desc&sort=time", "?order=asc&sort=size"]
    assert order == {2: "descending"}
    orders, order = headings("/?sort=time")
    assert orders[1] == "?order=desc&sort=time"
    assert order == {1: "ascending"}


def test_a_row_has_size_and_date(serve, site):
    make(site / "f", 1467)
    server = serve("--root", site, "--autoindex")
    body = server.get("/").body.decode()
    assert ("<td><time datetime=2026-11-23T09:02:11Z>2026-11-23 09:02</time> "
            '<td title="1467 bytes">1.4\u00a0KiB\n') in body
    assert body.count("UTC") == 1


def test_each_directory_of_the_path_is_a_link(serve, site):
    way = site / "a b" / "<i>" / "\u05d0"
    way.mkdir(parents=True)
    server = serve("--root", site, "--autoindex")
    target = "/" + t.percent("a b/<i>/\u05d0/".encode(), b"/")
    page = page_of(server, target)
    assert page.path == "/a b/<i>/\u05d0/"
    assert page.title == "Index of /a b/<i>/\u05d0/"
    up = page.links
    assert up == ["/./", "/a%20b/", "/a%20b/%3Ci%3E/", "../"]
    for href, path in zip(up, ("/", "/a b/", "/a b/<i>/")):
        url = urllib.parse.urljoin("http://h" + target, href)[len("http://h"):]
        assert page_of(server, url).path == path


def test_listing_is_cached_for_each_order_and_format(listed):
    pages = {}
    targets = ["/", "/?sort=time", "/?sort=size", "/?order=desc", "/?format=json",
               "/?format=json&sort=size"]
    for target in targets * 2:
        body = listed.get(target).body
        assert pages.setdefault(target, body) == body
    assert len(set(pages.values())) == len(targets)


def test_query_of_a_file_is_ignored(listed, site):
    (site / "f").write_bytes(b"content")
    response = listed.get("/f?format=json&sort=size", fields={"Accept": "application/json"})
    assert response.body == b"content"
    assert response.get("Vary") is None
    assert "json" not in response.get("Content-Type")


# ---------------------------------------------------------------------- JSON


def entries(server, target="/?format=json", **kw):
    response = server.get(target, **kw)
    assert response.status == 200
    assert response.get("Content-Type") == "application/json"
    return json.loads(response.body)


def test_json_has_name_type_size_and_time(listed):
    found = entries(listed)
    assert [e["name"] for e in found] == ["a9", "a10", "b", "l", "p", "v2", "v16", "v152"]
    by_name = {e["name"]: e for e in found}
    assert by_name["v2"] == {"name": "v2", "href": "v2", "type": "file", "size": 30,
                             "mtime": "2026-11-23T08:57:11Z"}
    assert by_name["b"] == {"name": "b", "href": "b/", "type": "directory",
                            "mtime": "2026-11-23T09:02:11Z"}
    assert by_name["p"] == {"name": "p", "href": "p", "type": "other",
                            "mtime": "2026-11-23T09:02:11Z"}
    assert by_name["l"] == {"name": "l", "href": "l", "type": "other"}
    when = datetime.datetime.fromisoformat(by_name["b"]["mtime"].replace("Z", "+00:00"))
    assert when.timestamp() == MTIME
    biggest = entries(listed, "/?format=json&sort=size&order=desc")[3]
    assert biggest["name"] == "v2"


def test_a_link_is_shown_as_its_target(serve, site, tmp_path):
    """A directory with its '/', so that a program that reads listings goes into it."""
    (site / "d" / "e").mkdir(parents=True)
    make(site / "d" / "f", 30)
    (site / "to-d").symlink_to("d")
    (site / "d" / "to-f").symlink_to("../d/f")
    (site / "d" / "up").symlink_to("..")
    (site / "d" / "out").symlink_to("../..")
    (site / "d" / "nowhere").symlink_to("none")
    server = serve("--root", site, "--autoindex", "--workers", "1")
    assert page_of(server, "/").links == ["d/", "to-d/"]
    assert page_of(server, "/to-d/").links[1:] == ["../", "e/", "up/", "f", "nowhere", "out", "to-f"]
    found = {e["name"]: e for e in entries(server, "/d/?format=json")}
    assert found["to-f"] == dict(found["f"], name="to-f", href="to-f")
    assert (found["up"]["type"], found["up"]["href"]) == ("directory", "up/")
    assert found["out"] == {"name": "out", "href": "out", "type": "other"}
    assert found["nowhere"] == {"name": "nowhere", "href": "nowhere", "type": "other"}


@pytest.mark.slow
def test_a_link_in_a_large_listing_is_shown_as_its_target(serve, site):
    (site / "d").mkdir()
    for n in range(6000):
        (site / ("%05d" % n)).symlink_to("d")
    server = serve("--root", site, "--autoindex", "--workers", "1")
    with server.connect(may_be_chunked=True) as c:
        response = c.ask("/")
        assert response.chunked
        assert set(Page(response.body).links) == {"d/"} | {"%05d/" % n for n in range(6000)}
        c.finish()


def test_json_of_an_empty_directory_is_an_empty_array(serve, site):
    assert entries(serve("--root", site, "--autoindex")) == []


def test_json_has_every_name_and_its_link_leads_to_it(listing):
    found = entries(listing, "/odd/?format=json")
    wanted = {n for n in t.odd_names() if not n.startswith(b".")}
    assert {urllib.parse.unquote_to_bytes(e["href"]) for e in found} == wanted
    for entry in found:
        name = urllib.parse.unquote_to_bytes(entry["href"])
        assert not re.search(r"[^\w.~!$()*+,;=@%-]", entry["href"])
        assert entry["name"] == name.decode("utf-8", "replace")
        assert listing.get("/odd/" + entry["href"]).body == b"I am " + name


@pytest.mark.parametrize("accept, is_json", [
    (["application/json"], True),
    (["application/json;q=0.5, text/html;q=0.4"], True),
    (["text/html", "application/json"], False),
    (["application/json", "text/html;q=0.9"], True),
    (["application/*, text/html;q=0.1"], True),
    (["application/json, */*"], False),
    (["application/json;q=0"], False),
    (["application/json;q=7"], False),
    (["*/*"], False),
    (["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], False),
])
def test_accept_decides_unless_the_query_does(listed, accept, is_json):
    fields = [("Accept", value) for value in accept]
    with listed.connect() as c:
        for target, expected in (("/", is_json), ("/?format=json", True),
                                 ("/?format=html", False)):
            response = c.ask(target, fields=fields)
            assert response.get("Content-Type").startswith(
                "application/json" if expected else "text/html")
            assert response.get("Vary") == "Accept"
        c.finish()


def test_head_of_json_is_that_of_get(listed):
    get, head = listed.get("/?format=json"), listed.get("/?format=json", "HEAD")
    assert (head.length, head.get("Content-Type")) == (get.length, "application/json")


@pytest.mark.slow
def test_large_listing_is_a_json_array_as_well(serve, site):
    t.many(site, ("%05d-\u00e9" % n for n in range(9000)))
    server = serve("--root", site, "--autoindex", "--workers", "1")
    with server.connect(may_be_chunked=True) as c:
        response = c.ask("/?format=json&sort=size")
        assert response.chunked
        assert response.get("Content-Type") == "application/json"
        assert response.get("Vary") == "Accept"
        found = json.loads(response.body)
        assert {e["name"] for e in found} == {"%05d-\u00e9" % n for n in range(9000)}
        assert all(e["type"] == "file" and e["size"] == 0 for e in found)
        response = c.ask("/?sort=time")
        page = Page(response.body)
        assert b"not sorted" in response.body
        assert len(page.rows) == 9001 and page.sorted == {}
        assert page.orders == []
        c.finish()
    with server.connect() as c:
        c.send(request("/?format=json", version="1.0"))
        assert len(json.loads(c.drain().partition(b"\r\n\r\n")[2])) == 9000


# -------------------------------------------------------------------- header

MOST = 64 << 10  # of a header's text


@pytest.fixture
def headed(serve_conf, site):
    """A server that shows a file, and what it shows above the table."""

    class Headed:
        def __init__(self, name, **settings):
            top = {"autoindex": True, "listing_header": name, "workers": 1}
            self.server = serve_conf(dict(top, **settings), [("s", {"root": site}, {})])

        def above(self, target="/"):
            body = self.server.get(target).body
            return body[body.index(b"</h1>\n") + 6:body.index(b"<table id=list>")]

    return Headed


def test_header_of_html_is_shown_as_it_is(headed, site):
    (site / "README.html").write_bytes(b"<p>1 < 2 &amp; <b>\xc3\xa9</b>")
    (site / "sub").mkdir()
    shown = headed("README.html")
    assert shown.above() == b"<header><p>1 < 2 &amp; <b>\xc3\xa9</b></header>\n"
    assert shown.above("/sub/") == b""
    assert b'<a href="README.html"' in shown.server.get("/").body
    assert len(entries(shown.server)) == 2


def test_header_of_text_is_escaped(headed, site):
    (site / "README.txt").write_bytes(b"<script>\n\ta & \"b\"\r\n\x07\xe4\xb8\xad\n")
    assert headed("README.txt").above() == (
        b"<header><pre>\n&lt;script&gt;\n\ta &amp; &quot;b&quot;\r\n"
        b"\xef\xbf\xbd\xe4\xb8\xad\n</pre></header>\n")


@pytest.mark.parametrize("size, shown", [(0, True), (MOST, True), (MOST + 1, False)])
def test_header_is_bounded(headed, site, size, shown):
    (site / "h.html").write_bytes(b"x" * size)
    assert (headed("h.html").above() != b"") == shown


def test_header_whose_text_grows_too_long_is_not_shown(headed, site):
    (site / "h").write_bytes(b"<" * (MOST // 4))
    assert headed("h").above().count(b"&lt;") == MOST // 4
    (site / "h").write_bytes(b"<" * (MOST // 4 + 1))
    assert headed("h").above() == b""


def test_only_text_below_the_root_is_a_header(headed, site, tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    (site / "latin").write_bytes(b"caf\xe9")
    (site / "dir").mkdir()
    os.mkfifo(site / "fifo")
    (site / "out").symlink_to(tmp_path / "secret")
    (site / "up").symlink_to("../secret")
    (site / "good").write_bytes(b"good")
    (site / "inside").symlink_to("good")
    for name in ("latin", "dir", "fifo", "out", "up", "none"):
        assert headed(name).above() == b"", name
    assert headed("inside").above() == b"<header><pre>\ngood</pre></header>\n"


def test_header_with_a_dot_is_shown_where_such_names_are(headed, site):
    (site / ".header").write_bytes(b"x")
    assert headed(".header").above() == b""
    assert b"x" in headed(".header", dotfiles=True).above()


def test_header_belongs_to_its_site_and_location(serve_conf, site):
    """Two sites may have one directory; the page of one is not the other's."""
    (site / "a").write_bytes(b"text of a")
    (site / "b").write_bytes(b"text of b")
    (site / "sub").mkdir()
    (site / "sub" / "a").write_bytes(b"text of sub/a")
    server = serve_conf({"autoindex": True, "workers": 1}, [
        ("one", {"root": site, "names": ["one"], "listing_header": "a"},
         {"/sub/": {"listing_header": "off"}}),
        ("two", {"root": site, "names": ["two"], "listing_header": "b"}, {})])
    for _ in range(2):
        for host in ("one", "two"):
            body = server.get("/", host=host).body
            assert (b"text of a" in body, b"text of b" in body) == (host == "one", host == "two")
        assert b"text of" not in server.get("/sub/", host="one").body


@pytest.mark.slow
def test_header_of_a_large_listing_is_shown_as_well(headed, site):
    (site / "h").write_bytes(b"x" * MOST)
    t.many(site, ("%05d" % n for n in range(6000)))
    with headed("h").server.connect(may_be_chunked=True) as c:
        response = c.ask("/")
        assert response.chunked and b"x" * MOST in response.body
        assert len(Page(response.body).rows) == 6002
        c.finish()


# ------------------------------------------------------------------- a browser


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width, dark", [(1280, False), (1280, True), (390, False), (390, True)])
def test_page_is_readable_on_a_screen_and_on_a_phone(listing, width, dark):
    with Browser() as browser:
        browser.open("http://%s:%d/odd/" % listing.address, width, dark=dark)
        assert browser.ask("document.compatMode") == "CSS1Compat"
        # Nothing is cut off at the side, and no name overlaps its size or date.
        assert browser.ask("document.documentElement.scrollWidth") <= width
        assert browser.ask("""[...document.querySelectorAll('#list tbody tr')].every(tr => {
            const [name, ...rest] = [...tr.cells].map(td => td.getBoundingClientRect());
            return rest.every(r => r.width == 0 || r.left >= name.right - 1 || r.top >= name.bottom - 1); })""")
        colour = browser.ask("getComputedStyle(document.body).backgroundColor")
        assert (int(colour[4:].split(",")[0]) < 64) == dark
        assert browser.ask("document.querySelectorAll('script').length") == 0
