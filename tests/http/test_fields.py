"""Fields of answers: rules, their short forms, CORS; media types, character set, entity tags."""

import os
import re
import time

import pytest

import harness
import responses

OLD = 1_600_000_000  # seconds


def make(top):
    (top / "v" / "w").mkdir(parents=True)
    for name in ("a.html", "a.txt", "a.png", "a.foo", "v/a.txt", "v/w/a.txt", "v/b.foo"):
        path = top / name
        path.write_text("text of " + name)
        os.utime(path, (OLD, OLD))
    return top


@pytest.fixture(scope="module")
def lent(module_path):
    return make(module_path / "site")


@pytest.fixture
def site(lend_conf, lent):
    def start(settings=None, locations=None, top=None):
        return lend_conf(top or {}, [("s", {"root": lent, **(settings or {})}, locations or {})])

    return start


@pytest.fixture
def root(tmp_path):
    return make(tmp_path / "site")


@pytest.fixture
def site_of_its_own(serve_conf, root):
    """For tests that change files."""
    return lambda settings=None, locations=None, top=None: serve_conf(
        top or {}, [("s", {"root": root, **(settings or {})}, locations or {})])


def three_times(server, target, **kw):
    """From the file, then from the hot set."""
    answers = [server.get(target, **kw) for _ in range(3)]
    for answer in answers[1:]:
        assert [f for f in answer.fields if f[0] != "Date"] == [
            f for f in answers[0].fields if f[0] != "Date"]
    return answers[0]


# ------------------------------------------------------------------ rules


def test_rule_sets_adds_and_removes(site):
    server = site({"header": ["X-A: one", "+X-A: two", "+Link: </a.css>; rel=preload", "-Server",
                              "-Accept-Ranges", "-Last-Modified"]})
    answer = three_times(server, "/a.html")
    assert answer.all("X-A") == ["one", "two"]
    assert answer.get("Link") == "</a.css>; rel=preload"
    for name in ("Server", "Accept-Ranges", "Last-Modified"):
        assert name not in answer
    assert "Date" in answer and "ETag" in answer


def test_rule_replaces_the_servers_own_name(site):
    assert three_times(site({"header": ["Server: mine"]}), "/a.html").all("Server") == ["mine"]


def test_rules_of_a_location_come_after_those_of_the_site(site):
    server = site({"header": ["X-A: site", "X-B: site", "X-C: site"]},
                  {"/v/": {"header": ["X-A: location", "-X-B"]}})
    assert three_times(server, "/a.html").all("X-A") == ["site"]
    answer = three_times(server, "/v/a.txt")
    assert (answer.all("X-A"), answer.all("X-B"), answer.all("X-C")) == (["location"], [], ["site"])


def test_rules_of_the_top_level_are_for_all_sites(site):
    server = site({"header": ["X-B: site"]}, top={"header": ["X-A: top"]})
    answer = server.get("/a.html")
    assert (answer.get("X-A"), answer.get("X-B")) == ("top", "site")


@pytest.mark.parametrize("target, fields, status", [
    ("/a.html", (), 200),
    ("/a.html", [("Range", "bytes=0-1")], 206),
    ("/a.html", [("Range", "bytes=0-1,3-4")], 206),
    ("/a.html", [("If-None-Match", "*")], 304),
    ("/v", (), 301),
    ("/v/", (), 200),
    ("/none", (), 404),
    ("/a.html", [("If-Match", '"x"')], 412),
    ("/a.html", [("Range", "bytes=99-")], 416),
])
def test_answers_below_400_have_all_fields_and_errors_those_marked_always(site, target, fields, status):
    server = site({"header": ["X-A: a", "always X-B: b"], "autoindex": True})
    answer = server.get(target, fields=fields)
    assert answer.status == status
    assert answer.all("X-B") == ["b"]
    assert answer.all("X-A") == (["a"] if status < 400 else [])


@pytest.mark.plain("with SNI, a site is named")
def test_error_that_names_no_site_has_the_fields_of_the_top_level(site):
    server = site({"header": ["always X-A: a"]}, top={"header": ["always X-B: b"]})
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\n\r\n")
        answer = c.response()
        assert answer.status == 400 and answer.get("X-B") == "b" and "X-A" not in answer


DATE, BEFORE = "Wed, 01 Jan 2025 00:00:00 GMT", "Tue, 31 Dec 2024 23:59:59 GMT"


@pytest.mark.parametrize("header", [["Last-Modified: " + DATE], ["-Last-Modified", "+last-modified: " + DATE],
                                    ["Last-Modified: " + BEFORE, "always Last-Modified: " + DATE]])
def test_date_that_a_rule_sets_is_the_one_of_conditions(site, header):
    server = site({"header": header, "autoindex": True})
    for _ in range(3):
        assert server.get("/a.txt").all("Last-Modified") == [DATE]
        for name, value, status in [
                ("If-Modified-Since", DATE, 304), ("If-Modified-Since", BEFORE, 200),
                ("If-Unmodified-Since", DATE, 200), ("If-Unmodified-Since", BEFORE, 412),
                ("If-Range", DATE, 206), ("If-Range", responses.http_date(OLD), 200)]:
            answer = server.get("/a.txt", fields=[(name, value)] + [("Range", "bytes=0-1")] * (name == "If-Range"))
            assert (name, value, answer.status) == (name, value, status)
            assert answer.all("Last-Modified") == ([DATE] if status < 400 else [])
    # It is of files: a listing and an error have no such date.
    for target in ("/", "/none"):
        assert "Last-Modified" not in server.get(target)


def test_without_a_date_there_is_nothing_to_compare(site):
    server = site({"header": ["Last-Modified: " + DATE, "-Last-Modified"]})
    answer = three_times(server, "/a.txt")
    assert "Last-Modified" not in answer and "ETag" in answer
    for date in (responses.http_date(OLD), DATE):
        assert server.get("/a.txt", fields=[("If-Modified-Since", date)]).status == 200
        assert server.get("/a.txt", fields=[("If-Unmodified-Since", date)]).status == 200
        assert server.get("/a.txt", fields=[("If-Range", date), ("Range", "bytes=0-1")]).status == 200


@pytest.mark.parametrize("etag", ["auto", "off", "digest"])
def test_entity_tag_that_a_rule_sets_is_the_one_of_conditions(site, etag):
    server = site({"etag": etag, "header": ['ETag: "v1"']}, {"/v/": {"header": ['ETag: "v2"']}})
    assert three_times(server, "/a.txt").all("ETag") == ['"v1"']
    assert three_times(server, "/v/a.txt").all("ETag") == ['"v2"']
    for target, name, value, status in [
            ("/a.txt", "If-None-Match", '"v1"', 304), ("/a.txt", "If-None-Match", '"v2"', 200),
            ("/a.txt", "If-Match", '"v1"', 200), ("/a.txt", "If-Match", '"v2"', 412),
            ("/a.txt", "If-Range", '"v1"', 206), ("/a.txt", "If-Range", '"v2"', 200),
            ("/v/a.txt", "If-None-Match", '"v2"', 304), ("/v/a.txt", "If-Range", '"v2"', 206)]:
        answer = server.get(target, fields=[(name, value)] + [("Range", "bytes=0-1")] * (name == "If-Range"))
        assert (target, name, value, answer.status) == (target, name, value, status)
    assert "ETag" not in server.get("/none")


@pytest.mark.parametrize("when, etag", [(0, "auto"), (1, "inode")])
def test_time_of_a_reproducible_build_is_no_validator(site_of_its_own, root, when, etag):
    """All versions have it: the Nix store, OSTree, images."""
    server = site_of_its_own({"etag": etag}, top={"workers": 1})
    name = root / "a.txt"
    os.utime(name, (when, when))
    harness.wait_until(lambda: server.get("/a.txt").get("ETag").startswith('"'), "the change to be old")
    first = three_times(server, "/a.txt")
    assert "Last-Modified" not in first
    for date in (responses.http_date(when), responses.http_date(time.time())):
        assert server.get("/a.txt", fields=[("If-Modified-Since", date)]).status == 200
        assert server.get("/a.txt", fields=[("If-Range", date), ("Range", "bytes=0-1")]).status == 200
    assert server.get("/a.txt", fields=[("If-None-Match", first.get("ETag"))]).status == 304
    # Other versions of the same size and time, renamed and in place.
    tags = [first.get("ETag")]
    for version in (b"T", b"U"):
        other = root / "other" if version == b"T" else name
        other.write_bytes(version * len(first.body))
        os.utime(other, (when, when))
        other.rename(name)
        harness.wait_until(lambda: server.get("/a.txt").get("ETag").removeprefix("W/") not in tags, "a new tag")
        answer = server.get("/a.txt", fields=[("If-Range", tags[-1]), ("Range", "bytes=0-1")])
        assert (answer.status, answer.body[:1]) == (200, version)
        tags.append(answer.get("ETag").removeprefix("W/"))


@pytest.mark.parametrize("settings, value", [
    ({"cache_control": "public, max-age=60"}, "public, max-age=60"),
    ({"expires": "30d"}, "max-age=2592000"),
    ({"expires": "90"}, "max-age=90"),
    ({"expires": "1y"}, "max-age=31536000"),
    ({"expires": 0}, "no-cache"),
    ({"expires": "1h", "cache_control": "private"}, "private"),
    ({"expires": "off"}, None),
    ({}, None),
])
def test_cache_control_and_its_short_form(site, settings, value):
    server = site(settings)
    assert three_times(server, "/a.html").get("Cache-Control") == value
    assert server.get("/a.html", fields=[("If-None-Match", "*")]).get("Cache-Control") == value
    assert server.get("/none").get("Cache-Control") is None


def test_listing_is_not_cached_by_default(site):
    server = site({"autoindex": True}, {"/v/": {"expires": "5m"}})
    assert server.get("/").all("Cache-Control") == ["no-cache"]
    assert server.get("/v/").all("Cache-Control") == ["max-age=300"]


def test_security_headers_are_on_errors_too(site):
    server = site({"security_headers": True}, {"/v/": {"security_headers": False},
                                               "= /a.txt": {"header": ["X-Frame-Options: DENY"]}})
    for target in ("/a.html", "/none"):
        answer = server.get(target)
        assert answer.get("X-Content-Type-Options") == "nosniff"
        assert answer.get("X-Frame-Options") == "SAMEORIGIN"
        assert answer.get("Referrer-Policy") == "strict-origin-when-cross-origin"
    assert "X-Frame-Options" not in server.get("/v/a.txt")
    assert server.get("/a.txt").all("X-Frame-Options") == ["DENY"]


@pytest.mark.parametrize("rule, below, errors", [
    ("X-Frame-Options: DENY", ["DENY"], ["SAMEORIGIN"]),
    ("always X-Frame-Options: DENY", ["DENY"], ["DENY"]),
    ("-X-Frame-Options", [], ["SAMEORIGIN"]),
    ("always -X-Frame-Options", [], []),
])
def test_only_rules_with_always_apply_to_errors(site, rule, below, errors):
    server = site({"security_headers": True, "header": [rule]})
    assert server.get("/a.txt").all("X-Frame-Options") == below
    for fields in ([("If-Match", '"x"')], [("Range", "bytes=99-")]):
        assert server.get("/a.txt", fields=fields).all("X-Frame-Options") == errors


# ------------------------------------------------------------------- CORS


def test_cors_for_all(site):
    server = site({"cors": ["*"]})
    for fields in ((), [("Origin", "https://a.example")]):
        answer = three_times(server, "/a.html", fields=fields)
        assert answer.all("Access-Control-Allow-Origin") == ["*"]
        assert "Content-Range" in answer.get("Access-Control-Expose-Headers")
        assert "Vary" not in answer
    assert server.get("/none").get("Access-Control-Allow-Origin") == "*"


def test_cors_for_listed_origins_sends_no_other_origin(site):
    server = site({"cors": ["https://a.example", "https://b.example:8443"]})
    for _ in range(3):
        for origin in ("https://a.example", "https://b.example:8443", "https://c.example",
                       "https://a.example.evil", "null", "", None):
            fields = () if origin is None else [("Origin", origin)]
            answer = server.get("/a.html", fields=fields)
            allowed = origin in ("https://a.example", "https://b.example:8443")
            assert answer.all("Access-Control-Allow-Origin") == ([origin] if allowed else [])
            assert answer.all("Vary") == ["Origin"]


@pytest.mark.parametrize("cors", [["*"], ["https://a.example", "https://b.example"]])
@pytest.mark.parametrize("target, method, fields, status", [
    ("/a.html", "GET", (), 200),
    ("/a.html", "GET", [("Range", "bytes=0-1")], 206),
    ("/a.html", "GET", [("Range", "bytes=0-1,4-5")], 206),
    ("/a.html", "GET", [("Range", "bytes=99-")], 416),
    ("/a.html", "GET", [("If-None-Match", "*")], 304),
    ("/a.html", "GET", [("If-Match", '"x"')], 412),
    ("/v", "GET", (), 301),
    ("/v/", "GET", (), 403),
    ("/none", "GET", (), 404),
    ("/gone/x", "GET", (), 410),
    ("/secret/x", "GET", (), 401),
    ("/a.html", "OPTIONS", (), 204),
    ("/a.html", "OPTIONS", [("Access-Control-Request-Method", "GET")], 204),
    ("/a.html", "POST", (), 405),
])
def test_scripts_may_read_the_fields_of_every_answer(site, module_path, cors, target, method, fields, status):
    """A script learns the size of a file from the Content-Range of a 416."""
    users = module_path / "users"
    if not users.exists():
        users.write_text("alice:$2y$04$ijQyNVbLNHWvUNUbOsnv9u0kqBxhXGLpZ1mwpfMcnhJ7HbN0ogxeq\n")
    server = site({"cors": cors}, {"/gone/": {"try": ["410"]}, "/secret/": {"htpasswd": users}})
    for _ in range(3):
        answer = server.get(target, method, fields=[("Origin", "https://a.example"), *fields])
        assert answer.status == status
        assert len(answer.all("Access-Control-Expose-Headers")) == 1
        assert {"Content-Range", "ETag"} <= set(answer.get("Access-Control-Expose-Headers").split(", "))
        assert answer.get("Access-Control-Allow-Origin") in ("*", "https://a.example")


def test_preflight_is_answered(site):
    server = site({"cors": ["https://a.example"], "cors_max_age": 60})
    preflight = [("Origin", "https://a.example"), ("Access-Control-Request-Method", "GET")]
    answer = server.get("/a.html", "OPTIONS", fields=preflight)
    assert answer.status == 204
    assert answer.get("Access-Control-Allow-Origin") == "https://a.example"
    assert answer.get("Access-Control-Allow-Methods") == "GET, HEAD, OPTIONS"
    assert answer.get("Access-Control-Max-Age") == "60"
    assert "Range" in answer.get("Access-Control-Allow-Headers")
    plain = server.get("/a.html", "OPTIONS")
    assert plain.status == 204 and "Access-Control-Allow-Methods" not in plain
    other = server.get("/a.html", "OPTIONS", fields=[("Origin", "https://c.example"), preflight[1]])
    assert "Access-Control-Allow-Origin" not in other


# ------------------------------------------------------------ types and tags


@pytest.mark.parametrize("settings, types", [
    ({}, {"/a.html": "text/html; charset=utf-8", "/a.txt": "text/plain; charset=utf-8",
          "/a.png": "image/png", "/a.foo": "application/octet-stream"}),
    ({"charset": "off"}, {"/a.html": "text/html", "/a.txt": "text/plain"}),
    ({"charset": "ISO-8859-15"}, {"/a.txt": "text/plain; charset=ISO-8859-15"}),
    ({"default_type": "text/plain"}, {"/a.foo": "text/plain; charset=utf-8", "/a.png": "image/png"}),
    ({"types": ["text/x-foo foo", "text/plain; charset=latin1 txt"]},
     {"/a.foo": "text/x-foo; charset=utf-8", "/a.txt": "text/plain; charset=latin1", "/a.png": "image/png"}),
])
def test_media_type_and_character_set(site, settings, types):
    server = site(settings)
    for target, value in types.items():
        assert three_times(server, target).all("Content-Type") == [value]


def test_location_has_types_of_its_own_also_for_parts(site):
    server = site({"types": ["text/x-foo foo"]}, {"/v/": {"types": ["a/b foo"], "default_type": "c/d"}})
    assert server.get("/a.foo").get("Content-Type") == "text/x-foo; charset=utf-8"
    assert server.get("/v/b.foo").get("Content-Type") == "a/b"
    answer = server.get("/v/b.foo", fields=[("Range", "bytes=0-1,4-5")])
    assert [part.fields["content-type"] for part in responses.multipart(answer)] == ["a/b", "a/b"]


def test_mirrors_agree_on_the_entity_tag(site_of_its_own, root):
    server = site_of_its_own({}, {"/v/": {"etag": "inode"}})
    os.utime(root / "a.txt", ns=(0, OLD * 10**9 + 123))
    first = three_times(server, "/a.txt").get("ETag")
    copy = root / "copy"
    copy.write_bytes((root / "a.txt").read_bytes())
    os.utime(copy, ns=(0, OLD * 10**9 + 123))
    copy.rename(root / "a.html")
    assert re.fullmatch(r'"[0-9a-f.-]+"', first)
    assert server.get("/a.html").get("ETag") == first
    assert server.get("/v/a.txt").get("ETag").count("-") == first.count("-") + 1


def test_entity_tag_is_weak_for_two_seconds(site_of_its_own, root):
    server = site_of_its_own()
    name = root / "a.txt"
    os.utime(name)
    answer = server.get("/a.txt")
    tag = answer.get("ETag")
    assert tag.startswith('W/"')
    # A weak one is good for caches, not for parts.
    assert server.get("/a.txt", fields=[("If-None-Match", tag)]).status == 304
    assert server.get("/a.txt", fields=[("If-Match", tag)]).status == 412
    assert server.get("/a.txt", fields=[("Range", "bytes=0-1"), ("If-Range", tag)]).status == 200
    os.utime(name, (time.time() - 3,) * 2)
    time.sleep(1.2)
    strong = server.get("/a.txt").get("ETag")
    assert strong.startswith('"')
    assert server.get("/a.txt", fields=[("Range", "bytes=0-1"), ("If-Range", strong)]).status == 206


def test_without_entity_tags_dates_decide(site):
    server = site({"etag": "off"})
    answer = three_times(server, "/a.txt")
    assert "ETag" not in answer
    assert server.get("/a.txt", fields=[("If-None-Match", '""')]).status == 200
    assert server.get("/a.txt", fields=[("If-None-Match", "*")]).status == 304
    assert server.get("/a.txt", fields=[("If-Match", '"x"')]).status == 412
    assert server.get("/a.txt", fields=[("If-Modified-Since", answer.get("Last-Modified"))]).status == 304
    assert server.get("/a.txt", fields=[("Range", "bytes=0-1"),
                                        ("If-Range", answer.get("Last-Modified"))]).status == 206
