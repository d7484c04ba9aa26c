"""Generated directory listings."""

import html.parser
import os
import urllib.parse

import tree as t
from harness import wait_until


class Links(html.parser.HTMLParser):
    """The (href, text) pairs of a page; fails on elements a listing never has."""

    def __init__(self, page):
        super().__init__()
        self.links = []
        self.open = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "img", "iframe"), tag
        if tag == "a":
            self.open = [dict(attrs)["href"], ""]

    def handle_data(self, data):
        if self.open:
            self.open[1] += data

    def handle_endtag(self, tag):
        if tag == "a" and self.open:
            self.links.append(tuple(self.open))
            self.open = None


def links(server, target):
    response = server.get(target)
    assert response.status == 200
    assert response.get("Content-Type").startswith("text/html")
    base = "http://localhost" + target
    found = {}
    for href, text in Links(response.body.decode("utf-8", "surrogateescape")).links:
        absolute = urllib.parse.urljoin(base, href)
        assert absolute.startswith("http://localhost/"), (href, absolute)
        found[absolute[len("http://localhost") :]] = text
    return found


def test_listing_is_off_by_default(plain):
    assert plain.get("/list/").status == 403


def test_listing_names_files_and_directories(listing):
    found = links(listing, "/list/")
    assert {"/list/one.txt", "/list/two.html", "/list/sub/"} <= set(found)
    assert set(found) <= {"/list/one.txt", "/list/two.html", "/list/sub/", "/", "/list/"}
    assert "one.txt" in found["/list/one.txt"]


def test_listing_leaves_dotfiles_out(listing):
    page = listing.get("/list/").body
    assert b".hidden" not in page
    assert b".git" not in listing.get("/odd/").body


def test_listing_of_an_empty_directory(listing):
    assert set(links(listing, "/empty/")) <= {"/", "/empty/"}


def test_listing_links_up_except_in_the_root(listing, serve, site):
    assert "/" in links(listing, "/list/")
    (site / "f").write_bytes(b"x")
    assert set(links(serve("--root", site, "--autoindex"), "/")) - {"/"} == {"/f"}


def test_every_link_of_a_listing_leads_to_its_file(listing):
    names = {n for n in t.odd_names() if not n.startswith(b".")}
    found = links(listing, "/odd/")
    with listing.connect() as c:
        seen = set()
        for target in found:
            if target in ("/", "/odd/"):
                continue
            response = c.ask(target)
            assert response.status == 200, target
            assert response.body.startswith(b"I am "), target
            seen.add(response.body[5:])
        c.finish()
    assert seen == names


def test_every_link_of_a_listing_leads_to_its_directory(listing):
    found = [h for h in links(listing, "/odd-dirs/") if h not in ("/", "/odd-dirs/")]
    assert len(found) == len([n for n in t.odd_names() if not n.startswith(b".")])
    for target in found:
        assert target.endswith("/")
        assert listing.get(target).status == 200, target


def test_names_are_escaped_in_a_listing(listing):
    page = listing.get("/odd/").body
    assert b"<script" not in page
    assert b"&lt;script&gt;" in page
    assert b"\r\nX-Injected" not in page.split(b"\r\n\r\n")[0]
    for name in (b"a&amp;b&amp;amp;c.txt",):
        assert name in page


def test_title_is_escaped_as_well(serve, site):
    name = "<script>'\"&amp;"
    (site / name).mkdir()
    server = serve("--root", site, "--autoindex")
    response = server.get("/" + t.percent(name.encode()) + "/")
    assert response.status == 200
    assert b"<script" not in response.body


def test_index_page_wins_over_the_listing(listing, tree):
    assert listing.get("/with-index/").body == tree.files["/with-index/index.html"]


def test_directory_is_redirected_before_it_is_listed(listing):
    assert listing.get("/list").status == 301


def test_listing_with_head(listing):
    get, head = listing.get("/list/"), listing.get("/list/", "HEAD")
    assert head.status == 200
    assert head.length == get.length


def test_listing_ignores_range_or_honours_it(listing):
    response = listing.get("/list/", fields={"Range": "bytes=0-9"})
    assert response.status in (200, 206)
    whole = listing.get("/list/").body
    assert response.body == (whole if response.status == 200 else whole[:10])


def test_listing_shows_what_was_added_and_removed(listing, serve, site):
    (site / "old").write_bytes(b"x")
    server = serve("--root", site, "--autoindex")
    assert "/old" in links(server, "/")
    (site / "new").write_bytes(b"x")
    (site / "old").unlink()
    wait_until(lambda: {"/new"} == set(links(server, "/")) - {"/"}, "the listing to change", 3)


def test_listing_shows_a_size_that_changed(serve, site):
    """Which the directory's own times do not tell."""
    (site / "f").write_bytes(b"x" * 11)
    server = serve("--root", site, "--autoindex", "--workers", "1")
    assert b">11 B\n" in server.get("/").body
    (site / "f").write_bytes(b"x" * 222)
    wait_until(lambda: b">222 B\n" in server.get("/").body, "the size to change", 8)


def test_listing_is_the_one_of_its_path(serve, site):
    """A directory by another name has the same inode and another page."""
    (site / "one").mkdir()
    (site / "one" / "f").write_bytes(b"x")
    (site / "two").symlink_to("one")
    server = serve("--root", site, "--autoindex", "--workers", "1")
    for _ in range(2):
        for name in (b"one", b"two"):
            assert b"<bdi>" + name + b"</bdi>/</h1>" in server.get(b"/" + name + b"/").body


def test_listing_of_many_files(serve, site):
    for i in range(3000):
        (site / ("file-%05d.txt" % i)).write_bytes(b"")
    server = serve("--root", site, "--autoindex")
    found = [h for h in links(server, "/") if h != "/"]
    assert len(found) == 3000
    assert found == sorted(found)


def test_listing_keeps_the_connection(listing, tree):
    with listing.connect() as c:
        for _ in range(3):
            assert c.ask("/list/").status == 200
            assert c.ask("/4097.bin").body == tree.files["/4097.bin"]
        c.finish()


def test_unreadable_directory_is_not_listed(serve, tree):
    user = "nobody" if os.geteuid() == 0 else None
    server = serve("--root", tree.root, "--autoindex", user=user)
    assert server.get("/special/closed/").status == 403
