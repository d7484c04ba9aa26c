"""Who may have answers, by address: allow, deny."""

import os
import re

import pytest

from harness import Finished, checked, configuration

OTHER = "127.0.0.2"
OLD = 1_600_000_000  # seconds


def make_files(top):
    (top / "v" / "w").mkdir(parents=True)
    for name in ("index.html", "a.txt", "v/a.txt", "v/w/a.txt", "v/.dot"):
        path = top / name
        path.write_text("text of " + name)
        os.utime(path, (OLD, OLD))
    return top


@pytest.fixture
def root(tmp_path):
    return make_files(tmp_path / "site")


@pytest.fixture(scope="module")
def module_root(module_path):
    return make_files(module_path / "site")


@pytest.fixture
def site(serve_conf, root):
    def start(settings=None, locations=None, top=None):
        return serve_conf(top or {}, [("s", {"root": root, **(settings or {})}, locations or {})])

    return start


def ask(server, target="/a.txt", source="127.0.0.1", method="GET", **kw):
    with server.connect(source=source) as c:
        answer = c.ask(target, method, **kw)
        c.finish(answer)
        return answer


def statuses(server, target="/a.txt"):
    """Of 127.0.0.1 and of OTHER, each in turns, so that what is ready for one would show."""
    both = [[ask(server, target, source).status for source in ("127.0.0.1", OTHER)]
            for _ in range(4)]
    assert all(pair == both[0] for pair in both), both
    return both[0]


@pytest.mark.parametrize("settings, expected", [
    ({}, [200, 200]),
    ({"allow": ["127.0.0.1"]}, [200, 403]),
    ({"allow": ["10.0.0.0/8", "127.0.0.1/32"]}, [200, 403]),
    ({"allow": ["127.0.0.0/8"]}, [200, 200]),
    ({"allow": ["all"]}, [200, 200]),
    ({"allow": ["::ffff:127.0.0.2"]}, [403, 200]),
    ({"allow": ["unix:"]}, [403, 403]),
    ({"allow": []}, [403, 403]),
    ({"deny": ["127.0.0.1"]}, [403, 200]),
    ({"deny": ["all"]}, [403, 403]),
    ({"deny": []}, [200, 200]),
    ({"allow": ["127.0.0.0/8"], "deny": ["127.0.0.2"]}, [200, 403]),
    ({"deny": ["127.0.0.0/8"], "allow": ["127.0.0.2"]}, [403, 403]),
])
def test_allow_and_deny(site, settings, expected):
    assert statuses(site(settings)) == expected


def test_a_list_replaces_the_inherited_one(site):
    server = site({"allow": ["127.0.0.1"]}, top={"deny": ["127.0.0.1"]},
                  locations={"/v/": {"deny": []}, "/v/w/": {"deny": [OTHER], "allow": ["all"]}})
    assert statuses(server) == [403, 403]
    assert statuses(server, "/v/a.txt") == [200, 403]
    assert statuses(server, "/v/w/a.txt") == [200, 403]


def test_a_neighbour_without_rules_stays_ready_for_all(site):
    server = site({}, {"/v/": {"allow": ["127.0.0.1"]}})
    assert statuses(server) == [200, 200]
    assert statuses(server, "/v/a.txt") == [200, 403]


@pytest.mark.parametrize("target, fields", [
    ("/v/a.txt", ()),
    ("/v/a.txt", [("Range", "bytes=0-1")]),
    ("/v/a.txt", [("Range", "bytes=0-1,3-4")]),
    ("/v/a.txt", [("If-None-Match", "*")]),
    ("/v/a.txt", [("If-Match", '"x"')]),
    ("/v/", ()),
    ("/v/?format=json", ()),
    ("/v/w", ()),
    ("/v/none", ()),
    ("/v/.dot", ()),
])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_refused_paths_reveal_nothing_about_files(lend_conf, module_root, target, fields, method):
    server = lend_conf({}, [("s", {"root": module_root, "autoindex": True, "index": []}, {"/v/": {"deny": [OTHER]}})])
    assert ask(server, target, method=method, fields=fields).status != 403
    answer = ask(server, target, OTHER, method, fields=fields)
    assert answer.status == 403
    assert "ETag" not in answer and "Last-Modified" not in answer and "Location" not in answer


def test_no_spelling_of_a_path_bypasses_the_rules(site):
    server = site({}, {"/v/": {"deny": [OTHER]}})
    for target in ("/v/a.txt", "//v//a.txt", "/./v/a.txt", "/x/../v/a.txt", "/%76/a.txt",
                   "/v%2fa.txt", "http://localhost/v/a.txt"):
        assert ask(server, target, OTHER).status == 403, target
        assert ask(server, target).status == 200, target


def test_reload_takes_new_rules(serve_conf, root, tmp_path):
    server = serve_conf({}, [("s", {"root": root, "deny": [OTHER]}, {})])
    assert statuses(server) == [200, 403]
    conf = tmp_path / "pagewise.conf"
    conf.write_text(conf.read_text().replace(OTHER, "127.0.0.1"))
    server.reload()
    assert statuses(server) == [403, 200]


def test_each_request_of_a_connection_is_checked(site):
    server = site({}, {"/v/": {"deny": ["127.0.0.1"]}})
    with server.connect() as c:
        for _ in range(3):
            assert [c.ask(t).status for t in ("/a.txt", "/v/a.txt")] == [200, 403]


# ------------------------------------- ways to a file with settings of its own


@pytest.fixture
def private(serve_conf, tmp_path):
    root = tmp_path / "root"
    (root / "private").mkdir(parents=True)
    for name in ("private/index.html", "private/a.mp4", "index.html", "hidden.html"):
        (root / name).write_text(name)

    def start(settings, locations, **kw):
        return serve_conf({"workers": 1}, [("s", {"root": root, **settings}, locations)], **kw)

    return start


CLOSED = {"allow": ["192.0.2.0/24"]}


def test_step_of_try_does_not_open_a_restricted_path(private):
    server = private({"try": ["$path", "$path/index.html", "/private/index.html", "/index.html"]},
                     {"/private/": CLOSED})
    for target in ("/private", "/nope"):
        assert server.get(target).body == b"index.html"
    assert server.get("/private/").status == 403
    assert server.get("/private/index.html").status == 403


def test_restricted_index_file_is_skipped(private):
    server = private({"index": ["hidden.html", "index.html"]}, {"= /hidden.html": CLOSED})
    assert server.get("/").body == b"index.html"
    assert server.get("/hidden.html").status == 403


def test_step_below_an_alias_has_the_settings_of_its_path(private, tmp_path):
    server = private({}, {"/app/": {"alias": tmp_path / "root", "try": ["$path", "/index.html", "410"]},
                          "= /app/index.html": CLOSED})
    assert server.get("/app/nope").status == 410
    assert server.get("/app/hidden.html").body == b"hidden.html"


@pytest.mark.parametrize("glob, warned", [
    ("*.mp4", True), ("/priv*", True), ("/private/*.mp4", True), ("/private/x/*", True),
    ("/public/*", False), ("/privat?", True),
])
def test_glob_that_opens_a_restricted_path_is_warned_of(tmp_path, glob, warned):
    run = checked(tmp_path, 'site "s" {\nroot = "/"\nlocation "%s" { expires = 1h }\n'
                    'location "/private/" { deny = {"192.0.2.1"} }\n}\n' % glob)
    assert run.code == 0
    text = 'pagewise: warning: site "s": location "%s" lets all clients read paths of location "/private/"' % glob
    assert (text in run.err) == warned and bool(run.err) == warned


@pytest.mark.parametrize("opened, closed, warned", [
    ("/private/pub/", "/private/", True), ("= /private/a.html", "/private/", True), ("= /a.key", "*.key", True),
    ("*.mp4", "/private/*", True), ("/private/*", "*.key", True), ("/private/*.mp4", "*.key", False),
    ("*.mp4", "*.key", False), ("/private/*", "/public/*", False),
    # The restricted one has precedence, or the paths differ.
    ("/", "/private/", False), ("/private/", "*.key", False), ("/private/", "= /private/a", False),
    ("*", "= /private/a", False), ("= /privat", "/private/", False), ("/public/", "/private/", False),
])
def test_location_that_opens_paths_of_a_restricted_one_is_warned_of(tmp_path, opened, closed, warned):
    """Whatever their kinds are: one location applies, and does not inherit from the other."""
    conf = tmp_path / "p.conf"
    conf.write_text('site "s" {\nroot = "/"\nlocation "%s" {\nexpires = 1h }\n'
                    'location "%s" { deny = {"192.0.2.1"} }\n}\n' % (opened, closed))
    run = Finished("-t", "-c", str(conf))
    name, other = opened.removeprefix("= "), closed.removeprefix("= ")
    assert (run.code, run.err) == (0, (
        'pagewise: warning: site "s": location "%s" lets all clients read paths of location "%s", which restricts '
        'access: set allow, deny, htpasswd or signed_links in both locations (%s:3, %s:5), or allow = {"all"} in '
        'the first if you want that\n' % (name, other, conf, conf)) if warned else "")


PRIVATE = 'location "/private/" { deny = {"192.0.2.1"} }'


@pytest.mark.parametrize("locations", [
    # What says that it is open, or is restricted, and a later glob.
    'location "/private/pub/" { htpasswd = off }\n' + PRIVATE,
    'location "/private/pub/" { signed_links = off }\n' + PRIVATE,
    'location "*.mp4" { allow = {"all"} }\n' + PRIVATE,
    'location "/private/*" { deny = {"192.0.2.1"} }\nlocation "*.mp4" { expires = 1h }',
])
def test_location_that_does_not_open_a_restricted_one_is_not_warned_of(tmp_path, locations):
    run = checked(tmp_path, 'site "s" {\nroot = "/"\n%s\n}\n' % locations)
    assert (run.code, run.err) == (0, "")


@pytest.mark.parametrize("links, rules, warned", [
    ({"12": "21", "Name": "nAME"}, CLOSED, True), ({"Name": "nAME"}, {"expires": "1h"}, False),
    ({"Name": "Nam"}, CLOSED, False), ({"12": "21"}, CLOSED, False), ({}, CLOSED, False)])
def test_root_that_ignores_case_is_warned_of_if_a_location_is_restricted(tmp_path, links, rules, warned):
    """A hard link stands for the other spelling, since file systems that ignore case are rare."""
    root, conf = tmp_path / "root", tmp_path / "p.conf"
    root.mkdir()
    for name, other in links.items():
        (root / name).write_bytes(b"x")
        os.link(root / name, root / other)
    conf.write_text(configuration({}, [("s", {"root": root}, {"/name/": rules})]))
    run = Finished("-t", "-c", str(conf))
    assert run.code == 0
    assert run.err == "" if not warned else re.fullmatch(
        r'pagewise: warning: site "s": %s ignores the case of names, but location "/name/" \(%s:\d+\) restricts '
        r'only paths in this case: set allow, deny, htpasswd or signed_links for the site\n' % (root, conf), run.err)
