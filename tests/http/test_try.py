"""try: files that are looked for one after the other."""

import os

import pytest

from harness import wait_until

OLD = 1_600_000_000  # seconds


@pytest.fixture
def root(tmp_path):
    top = tmp_path / "site"
    for name in ("index.html", "page.html", "both", "both.html", "dir/index.html", "empty/x",
                 "sub/page.html", "s.html.gz", "fall.html", "assets/a.js"):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        os.utime(path, (OLD, OLD))
    (top / ".hidden.html").write_text("hidden")
    return top


@pytest.fixture
def site(serve_conf, root):
    def start(steps, locations=None, **settings):
        return serve_conf({"workers": 1}, [
            ("s", {"root": root, "try": steps, **settings}, locations or {})])

    return start


def body(server, target, **kw):
    """The text of a 200, else the status and Location; the same when it may be in memory."""
    answers = [server.get(target, **kw) for _ in range(3)]
    found = [a.body.decode() if a.status == 200 else (a.status, a.get("Location")) for a in answers]
    assert found[1:] == found[:-1]
    return found[0]


def test_single_page_application(site):
    server = site(["$path", "/index.html"])
    assert body(server, "/both") == "both"
    assert body(server, "/assets/a.js") == "assets/a.js"
    for target in ("/", "/any/route", "/assets", "/assets/", "/page", "/any/?q=1"):
        assert body(server, target) == "index.html", target
    assert body(server, "/dir/") == "dir/index.html"
    answer = server.get("/any/route")
    assert answer.status == 200 and answer.get("Content-Type") == "text/html; charset=utf-8"
    again = server.get("/any/route", fields=[("If-None-Match", answer.get("ETag"))])
    assert again.status == 304
    assert server.get("/any/route", fields=[("Range", "bytes=0-4")]).body == b"index"
    assert server.get("/any/route", "HEAD").length == len("index.html")


def test_single_page_application_whose_scripts_may_be_missing(site):
    """The recipe of the manual: a script that is not there is no page that clients keep."""
    keep = "public, max-age=31536000, immutable"
    server = site(["$path", "/index.html"], {"/assets/": {"try": ["$path", "=404"], "cache_control": keep}})
    assert body(server, "/assets/a.js") == "assets/a.js"
    assert server.get("/assets/a.js").get("Cache-Control") == keep
    assert body(server, "/assets/none.js") == (404, None)
    assert server.get("/assets/none.js").get("Cache-Control") is None
    assert body(server, "/any/route") == "index.html"
    assert server.get("/any/route").get("Cache-Control") is None


def test_names_without_their_suffix(site):
    server = site(["$path", "$path.html", "$path/", "404"])
    assert body(server, "/page") == "page.html"
    assert body(server, "/page.html") == "page.html"
    assert body(server, "/both") == "both"
    assert body(server, "/sub/page") == "sub/page.html"
    assert body(server, "/dir") == (301, "/dir/")
    assert body(server, "/dir?q") == (301, "/dir/?q")
    assert body(server, "/dir/") == "dir/index.html"
    assert body(server, "/empty/") == (404, None)
    assert body(server, "/nope") == (404, None)
    assert body(server, "/page/") == (404, None)
    assert body(server, "/") == "index.html"


def test_order_is_that_of_the_list(site):
    server = site(["$path.html", "$path"])
    assert body(server, "/both") == "both.html"
    assert body(server, "/fall.html") == "fall.html"


def test_only_a_directory_is_sent_to_its_slash(site):
    server = site(["$path/", "/fall.html"])
    assert body(server, "/both") == "fall.html"
    assert body(server, "/dir") == (301, "/dir/")
    assert body(server, "/nope") == "fall.html"


def test_status_may_be_written_as_nginx_does(site):
    server = site(["$path", "=410"])
    assert body(server, "/both") == "both"
    assert body(server, "/nope") == (410, None)


def test_last_step_may_be_a_status(site):
    server = site(["$path", "410"])
    assert body(server, "/nope") == (410, None)
    assert body(server, "/both") == "both"


def test_listing_counts_as_an_existing_step(site):
    server = site(["$path", "/fall.html"], autoindex=True)
    assert 'href="x"' in body(server, "/empty/")
    assert body(server, "/nope/") == "fall.html"


def test_below_an_alias_and_a_root_of_its_own(site, root):
    server = site(["$path"], {"/app/": {"alias": root / "dir", "try": ["$path", "/index.html"]},
                              "/sub/": {"try": ["/fall.html"]}})
    assert body(server, "/app/route") == "dir/index.html"
    assert body(server, "/sub/page.html") == "fall.html"
    assert body(server, "/nope") == (404, None)


def test_siblings_of_each_step(site):
    server = site(["$path", "$path.html", "/fall.html"], precompressed=["gz"])
    answer = server.get("/s", fields=[("Accept-Encoding", "gzip")])
    assert (answer.body, answer.get("Content-Encoding")) == (b"s.html.gz", "gzip")
    assert answer.get("Content-Type") == "text/html; charset=utf-8"
    assert body(server, "/s") == "fall.html"


def test_hidden_names_stay_hidden(site):
    server = site(["$path", "$path.html", "$path/"])
    for target in ("/.hidden", "/.hidden.html", "/dir/.html"):
        assert body(server, target) == (404, None)


def test_answer_is_another_one_when_an_earlier_step_comes_and_goes(site, root):
    """Also if it was in memory."""
    server = site(["$path", "$path.html", "/fall.html"])

    def becomes(text):
        wait_until(lambda: server.get("/late").body.decode() == text, text)

    assert body(server, "/late") == "fall.html"
    (root / "late.html").write_text("second")
    becomes("second")
    (root / "late").write_text("first")
    os.utime(root / "late", (OLD, OLD))
    becomes("first")
    for _ in range(5):
        assert server.get("/late").body == b"first"
    os.unlink(root / "late")
    becomes("second")
    os.unlink(root / "late.html")
    becomes("fall.html")
