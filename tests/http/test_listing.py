"""Generated directory listings."""

import html.parser
import os
import time
import urllib.parse

import pytest

import tree as t
from harness import wait_until
from responses import http_date, parse_http_date


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


@pytest.mark.slow
def test_listing_of_many_files(serve, site):
    t.many(site, ("file-%05d.txt" % i for i in range(3000)))
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


# ------------------------------------------------------------------ validators


HOUR = 3600


def settle(site):
    """Waits until the newest change lies so far back that a second one would be seen."""
    time.sleep(max(0.0, max(p.lstat().st_ctime for p in [site, *site.iterdir()]) + 3 - time.time()))


def ask(server, target="/", method="GET", **fields):
    return server.get(target, method, fields={name.replace("_", "-"): value for name, value in fields.items()})


@pytest.mark.slow
def test_listing_that_has_not_changed_is_not_sent_again(serve, site):
    """By tag and by date; the 304 has the fields that the 200 would have."""
    (site / "f").write_bytes(b"x")
    (site / "d").mkdir()
    settle(site)
    server = serve("--root", site, "--autoindex")
    for target in ("/", "/?sort=time", "/?format=json"):
        page = ask(server, target)
        tag, date = page.get("ETag"), page.get("Last-Modified")
        assert tag.startswith('W/"')
        for method in ("GET", "HEAD"):
            for fields in ({"If_None_Match": tag}, {"If_None_Match": '"x", %s' % tag}, {"If_None_Match": "*"},
                           {"If_None_Match": tag[2:]}, {"If_Modified_Since": date},
                           {"If_None_Match": tag, "If_Modified_Since": http_date(0)}):
                answer = ask(server, target, method, **fields)
                assert (answer.status, answer.body) == (304, b""), fields
                for name in ("ETag", "Last-Modified", "Vary", "Cache-Control"):
                    assert answer.get(name) == page.get(name)
                assert answer.get("Content-Type") is None
        for fields in ({"If_None_Match": 'W/"x"'}, {"If_None_Match": '"x"', "If_Modified_Since": date},
                       {"If_Modified_Since": http_date(parse_http_date(date) - 1)}):
            assert ask(server, target, **fields).body == page.body
        assert ask(server, target, If_Match=tag).status == 412
        assert ask(server, target, If_Unmodified_Since=http_date(0)).status == 412


def test_each_order_and_format_has_a_tag_of_its_own(serve, site):
    (site / "f").write_bytes(b"x")
    server = serve("--root", site, "--autoindex", "--workers", "1")
    targets = ["/", "/?sort=time", "/?sort=size", "/?order=desc", "/?format=json", "/?format=json&order=desc"]
    tags = [ask(server, target).get("ETag") for target in targets]
    assert len(set(tags)) == len(targets)
    assert ask(server, "/", Accept="application/json").get("ETag") == tags[4]


def test_each_worker_and_each_start_has_the_same_tag(serve, site):
    (site / "f").write_bytes(b"x")
    tags = {ask(serve("--root", site, "--autoindex", "--workers", workers)).get("ETag")
            for workers in ("1", "3") for _ in range(2)}
    assert len(tags) == 1


def change_size(where):
    with open(where / "f", "r+b") as f:
        f.write(b"more")
    os.utime(where / "f", (HOUR, HOUR))


def change_type(where):
    (where / "f").unlink()
    (where / "f").mkdir()


CHANGES = {
    "size": change_size,
    "time": lambda where: os.utime(where / "f", (HOUR, HOUR)),
    "added": lambda where: (where / "h").write_bytes(b"x"),
    "removed": lambda where: (where / "f").unlink(),
    "renamed": lambda where: (where / "f").rename(where / "h"),
    "type": change_type,
    "target": lambda where: (where / "d" / "t").write_bytes(b"more"),
}


@pytest.mark.slow
def test_listing_that_has_changed_is_sent_again(serve, site):
    """By tag and by date, though the directory's own times tell only of names."""
    for name in CHANGES:
        (site / name / "d").mkdir(parents=True)
        for file in ("f", "g", "d/t"):
            (site / name / file).write_bytes(b"x")
        (site / name / "l").symlink_to("d/t")
    settle(site)
    server = serve("--root", site, "--autoindex", "--workers", "1")
    pages = {name: ask(server, "/%s/" % name) for name in CHANGES}
    for name, change in CHANGES.items():
        change(site / name)

    def changed(name, **fields):
        answer = ask(server, "/%s/" % name, **fields)
        return (answer.status == 200 and answer.body != pages[name].body
                and answer.get("ETag") != pages[name].get("ETag"))

    for name, page in pages.items():
        wait_until(lambda name=name, page=page: changed(name, If_None_Match=page.get("ETag")), name, 8)
        assert changed(name, If_Modified_Since=page.get("Last-Modified")), name


def test_listing_that_has_just_changed_has_an_earlier_date(serve, site):
    """A second change in the same second would have the same date."""
    server = serve("--root", site, "--autoindex", "--workers", "1")

    def just_changed():
        (site / "f").write_bytes(b"x")
        (site / "f").rename(site / "g")
        page = ask(server)
        return page if parse_http_date(page.get("Date")) <= int(site.stat().st_ctime) + 1 else None

    page = wait_until(just_changed, "an answer within a second of the change")
    assert parse_http_date(page.get("Last-Modified")) < int(site.stat().st_ctime)
    assert ask(server, If_Modified_Since=page.get("Last-Modified")).status == 200


def test_etag_off_and_a_dropped_date_hold_for_listings(serve_conf, site):
    (site / "f").write_bytes(b"x")
    server = serve_conf({"autoindex": True, "workers": 1}, [
        ("s", {"root": site, "etag": "off"}, {"= /": {"header": ["-Last-Modified"]}})])
    page = ask(server)
    assert (page.get("ETag"), page.get("Last-Modified")) == (None, None)
    for fields in ({"If_None_Match": 'W/"x"'}, {"If_Modified_Since": http_date(time.time())}):
        assert ask(server, **fields).body == page.body
