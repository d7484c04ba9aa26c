"""Sites by name and locations by prefix."""

import pytest

import harness
import tls
from harness import request


@pytest.fixture
def roots(tmp_path):
    for name in ("first", "second"):
        root = tmp_path / name
        (root / "video" / "deep").mkdir(parents=True)
        (root / "name.txt").write_text(name)
        (root / "video" / "f.bin").write_bytes(name.encode() * 50000)
        (root / "video" / ".dot").write_text("dot of " + name)
        (root / ".dot").write_text("dot of " + name)
        (root / "video" / "start.html").write_text("start of " + name)
        (root / "video" / "deep" / "f").write_text("deep in " + name)
    return tmp_path


@pytest.fixture
def sites(serve_conf, roots):
    return serve_conf(
        {},
        [
            ("one", {"names": ["first.example", "www.first.example"], "root": roots / "first"}, {}),
            ("two", {"names": ["second.example", "127.0.0.1"], "root": roots / "second"}, {}),
        ],
    )


@pytest.mark.parametrize(
    "host, name",
    [
        ("first.example", "first"),
        ("www.first.example", "first"),
        ("second.example", "second"),
        ("SECOND.Example", "second"),
        ("second.example:8080", "second"),
        ("second.example:", "second"),
        ("second.example.", "second"),
        ("second.example.:80", "second"),
        ("127.0.0.1", "second"),
        ("127.0.0.1:8080", "second"),
        ("unknown.example", "first"),
        ("xsecond.example", "first"),
        ("second.example.org", "first"),
        ("second", "first"),
        ("", "first"),
    ],
)
def test_site_is_chosen_by_host(sites, host, name):
    assert sites.get("/name.txt", host=host).body == name.encode()


def test_first_site_answers_without_host(sites):
    assert sites.get("/name.txt", version="1.0", host=None).body == b"first"


@pytest.mark.parametrize(
    "origin, name",
    [
        ("http://second.example", "second"),
        ("http://SECOND.example:81", "second"),
        ("http://unknown.example", "first"),
    ],
)
def test_absolute_form_wins_over_host(sites, origin, name):
    """RFC 9112, 3.2.2."""
    for host in ("first.example", "second.example"):
        (tls.SCHEME + "://second.example", "second"),
        (tls.SCHEME.upper() + "://Second.Example.:443", "second"),
        (tls.SCHEME + "://first.example:", "first"),
        assert sites.get(origin + "/name.txt", host=host).body == name.encode()


def test_sites_take_turns_on_one_connection(sites):
    with sites.connect() as c:
        for name in ["first", "second", "second", "first"] * 5:
            assert c.ask("/name.txt", host=name + ".example").body == name.encode()
        c.finish()
@pytest.mark.plain("it has no TLS")
@pytest.mark.parametrize("trusted, status", [({}, 400), (
    {"trusted_proxies": ["127.0.0.1"], "client_address": "x-forwarded-for"}, 200)])
def test_https_without_tls_is_refused_unless_a_trusted_proxy_sends_it(serve_conf, roots, trusted, status):
    """RFC 9110, 7.4."""
    server = serve_conf(trusted, [("one", {"names": ["first.example"], "root": roots / "first"}, {})])
    assert server.get("https://first.example/name.txt").status == status




def test_sites_do_not_share_what_they_opened(sites):
    """The same path under two roots is two files."""
    tags = {
        sites.get("/video/f.bin", host=h).get("ETag")
        for h in ("first.example", "second.example")
    }
    assert len(tags) == 2


def test_locations_have_settings_of_their_own(serve_conf, roots, send_path):
    server = serve_conf(
        {"send_path": send_path},
        [
            (
                "s",
                {"root": roots / "first"},
                {
                    "/video/": {"dotfiles": True, "index": ["none.html", "start.html"]},
                    "/video/deep/": {"autoindex": True, "dotfiles": False, "send_path": "copy"},
                },
            ),
        ],
    )
    assert server.get("/.dot").status == 404
    assert server.get("/video/.dot").body == b"dot of first"
    assert server.get("/video/").body == b"start of first"
    assert server.get("/").status == 403
    assert server.get("/video/deep/").status == 200
    assert server.get("/video/deep/f").body == b"deep in first"
    assert server.get("/video/f.bin").body == b"first" * 50000


def test_location_is_found_by_the_decoded_path(serve_conf, roots):
    server = serve_conf(
        {},
        [("s", {"root": roots / "first"}, {"/video/": {"dotfiles": True}})],
    )
    for target in ("/%76ideo/.dot", "//video//.dot", "/x/../video/.dot", "/video%2F.dot"):
        assert server.get(target).status == 200
    for target in ("/video/../.dot", "/.dot?/video/"):
        assert server.get(target).status == 404


def test_command_line_wins_over_the_file(serve_conf, roots):
    server = serve_conf(
        {"autoindex": False},
        [("s", {"root": roots / "first"}, {})],
        "--root",
        roots / "second",
        "--autoindex",
    )
    assert server.get("/name.txt").body == b"second"
    assert server.get("/").status == 200


def test_relative_root_starts_at_the_file(serve, tmp_path):
    """Not at the working directory of whoever starts the server."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "www").mkdir()
    (tmp_path / "conf" / "www" / "f").write_text("found")
    path = tmp_path / "conf" / "pagewise.conf"
    path.write_text(harness.configuration({}, [("s", {"root": "www"}, {})]))
    assert serve("-c", path, cwd="/").get("/f").body == b"found"


def test_several_addresses(serve, site):
    (site / "f").write_bytes(b"x")
    server = serve(
        "--root", site, "--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0", "--access-log", "off"
    )
    found = server.addresses(2)
    assert sorted(host for host, _ in found) == ["127.0.0.1", "127.0.0.2"]
    for address in found:
        with harness.Connection(address) as c:
            c.send(request("/f"))
            assert c.response().body == b"x"
            c.finish()


def test_serving_line_names_the_directory(serve, site):
    assert str(site) in serve("--root", site).output
