"""Paths that have moved: which rule, where to, and nothing that a client could make of it."""

import random
import urllib.parse

import pytest



SEED = 20261123


@pytest.fixture
def site(serve_conf, tmp_path):
    root = tmp_path / "site"
    (root / "dir").mkdir(parents=True)
    (root / "here.html").write_text("here")

    def start(rules, locations=None, settings=None, more=()):
        sites = [("s", {"root": root, "redirect": rules, **(settings or {})}, locations or {})]
        return serve_conf({"workers": 1}, sites + list(more))

    return start


def where(server, target, host="server.test", **kw):
    """(status, Location) of an answer that is complete."""
    answer = server.get(target, host=host, **kw)
    assert answer.length is not None
    return answer.status, answer.get("Location")


def test_exact_prefix_suffix_and_both(site):
    server = site([
        "/a /b", "/old/* /new/* 301", "*.php /scripts/*", "/v/*/play /watch?v=* 307",
        "/gone/* / 303", "/p https://other.example/x#top 308", "/blank%20path /there",
        "*%20end /tail",
    ])
    assert where(server, "/a") == (302, "/b")
    assert where(server, "/old/x/y") == (301, "/new/x/y")
    assert where(server, "/old/") == (301, "/new/")
    assert where(server, "/d/x.php") == (302, "/scripts/d/x")
    assert where(server, "/v/7/play") == (307, "/watch?v=7")
    assert where(server, "/gone/x") == (303, "/")
    assert where(server, "/p") == (308, "https://other.example/x#top")
    assert where(server, "/blank%20path") == (302, "/there")
    assert where(server, "/the%20end") == (302, "/tail")
    for target in ("/A", "/a/", "/old", "/v/7/pla", "/here.html", "/"):
        assert where(server, target)[1] is None, target
    assert server.get("/here.html").body == b"here"


def test_query_is_kept_before_the_fragment(site):
    server = site(["/a /b", "/q /r?x=1", "/f /g#part", "/v* /w?v=*"])
    assert where(server, "/a?k=%20v&l") == (302, "/b?k=%20v&l")
    assert where(server, "/a?") == (302, "/b?")
    assert where(server, "/q?y=2") == (302, "/r?x=1&y=2")
    assert where(server, "/f?y=2") == (302, "/g?y=2#part")
    assert where(server, "/v7?y=2") == (302, "/w?v=7&y=2")


def test_exact_rules_win_and_others_in_the_order_of_the_list(site):
    server = site(["/a* /1", "/ab* /2", "/abc /3", "* /4"])
    assert where(server, "/a") == (302, "/1")
    assert where(server, "/abx") == (302, "/1")
    assert where(server, "/abc") == (302, "/3")
    assert where(server, "/x") == (302, "/4")


def test_list_of_a_location_replaces_that_of_its_site(site):
    server = site(["/* /moved/*"], {"/moved/": {"redirect": []},
                                    "/other/": {"redirect": ["/other/x /y"]}})
    assert where(server, "/a") == (302, "/moved/a")
    assert where(server, "/moved/a") == (404, None)
    assert where(server, "/other/x") == (302, "/y")
    assert where(server, "/other/z") == (404, None)


def test_host_variable_is_the_requests_host_if_the_site_has_it(site, tmp_path):
    server = site(["/* https://$host/*"], settings={"names": ["*.a.example", "a.example"]},
                  more=[("t", {"root": tmp_path, "redirect": ["/* https://www.$host:8443/*"]}, {})])
    assert where(server, "/x", "a.example:8080") == (302, "https://a.example/x")
    assert where(server, "/x", "b.a.example") == (302, "https://b.a.example/x")
    # Not one that a client has made up: it is the first site's by default.
    assert where(server, "/x", "evil.example") == (302, "https://a.example/x")
    assert where(server, "http://a.example/x", "evil.example") == (302, "https://a.example/x")


def test_host_variable_is_the_requests_host_without_names(site):
    server = site(["/* https://$host/*"])
    assert where(server, "/x", "b.example:80") == (302, "https://b.example/x")
    assert where(server, "/x", "[::1]:80") == (302, "https://[::1]/x")
    with server.connect() as c:
        c.send(b"GET /x HTTP/1.0\r\n\r\n")
        assert c.response().status == 400


def test_methods(site):
    server = site(["/a /b"])
    answer = server.get("/a", "HEAD")
    assert (answer.status, answer.get("Location")) == (302, "/b")
    assert server.get("/a", "POST").status == 405
    assert server.get("/a", "OPTIONS").status == 204


@pytest.mark.parametrize("target", [
    "/out//evil.example/x", "/out/%2fevil.example", "/out/%2F%2Fevil.example", "/out/\\evil.example",
    "/out/%5c%5cevil.example", "/out/.//evil.example", "/out/..%2f/evil.example", "/out//",
    "/out/%0d%0aSet-Cookie:%20a=b", "/out/%0aX:y", "/out/%00", "/out/%09//evil.example",
    "/out/?\\evil", "/out/@evil.example", "/out/:evil.example", "/out/%ff%fe", "/out/?%0d%0aX:y",
    "/out/" + "%2f" * 50 + "evil.example", "/out/http://evil.example",
])
@pytest.mark.parametrize("rule", ["/out* /*", "/out/* /*", "/out/* https://good.example/*"])
def test_no_client_chooses_the_host_or_adds_a_line(lend_conf, module_path, rule, target):
    with lend_conf({"workers": 1}, [("s", {"root": module_path, "redirect": [rule]}, {})]).connect() as c:
        c.send(b"GET %s HTTP/1.1\r\nHost: good.example\r\n\r\n" % target.encode())
        answer = c.response()
    assert answer.status in (302, 400, 404)
    if answer.status != 302:
        return
    location = answer.get("Location")
    assert len(answer.all("Location")) == 1 and "Set-Cookie" not in answer and "X" not in answer
    joined = urllib.parse.urljoin("http://good.example/out/", location.replace("\\", "/"))
    assert urllib.parse.urlsplit(joined).hostname == "good.example", location
    assert all(33 <= ord(ch) < 127 for ch in location)


def test_many_rules_against_a_naive_search(site):
    rng = random.Random(SEED)
    parts = ["a", "b", "ab", "c", "a.b"]

    def path():
        return "/" + "/".join(rng.choice(parts) for _ in range(rng.randrange(1, 4)))

    rules, seen = [], set()
    while len(rules) < 300:
        source = path()
        if rng.random() < 0.5:
            at = rng.randrange(1, len(source) + 1)
            source = source[:at] + "*" + source[at + rng.randrange(0, 3):]
        if source in seen or "//" in source or "/./" in source:
            continue
        seen.add(source)
        rules.append((source, "/to%d/" % len(rules) + ("*" if "*" in source else ""),
                      rng.choice([301, 302, 303, 307, 308])))

    def expected(target):
        for source, to, status in rules:
            if source == target:
                return status, to
        for source, to, status in rules:
            before, star, after = source.partition("*")
            if (star and target.startswith(before) and target.endswith(after)
                    and len(target) >= len(before) + len(after)):
                text = target[len(before):len(target) - len(after)]
                return status, to.replace("*", text.lstrip("/"))
        return 404, None

    server = site(["%s %s %d" % rule for rule in rules])
    with server.connect() as c:
        for target in [path() for _ in range(500)] + [s for s in seen if "*" not in s]:
            answer = c.ask(target)
            assert (answer.status, answer.get("Location")) == expected(target), target


@pytest.mark.slow
def test_ten_thousand_rules(site):
    server = site(["/%d /n/%d" % (n, n) for n in range(10000)])
    for n in (0, 9999, 4242):
        assert where(server, "/%d" % n) == (302, "/n/%d" % n)
    assert where(server, "/10000") == (404, None)
