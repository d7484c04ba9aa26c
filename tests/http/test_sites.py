"""Sites by name and locations by prefix; to which of them an error belongs."""

import socket
import time

import pytest

import harness
import tls
from fragments import Recorded, receive
from h2_client import Client
from harness import Finished, request


def make_roots(tmp_path):
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
def roots(tmp_path):
    return make_roots(tmp_path)


@pytest.fixture(scope="module")
def module_roots(module_path):
    return make_roots(module_path)


@pytest.fixture
def sites(lend_conf, module_roots):
    roots = module_roots
    return lend_conf(
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
        (tls.SCHEME + "://second.example", "second"),
        (tls.SCHEME.upper() + "://Second.Example.:443", "second"),
        (tls.SCHEME + "://first.example:", "first"),
    ],
)
def test_absolute_form_wins_over_host(sites, origin, name):
    """RFC 9112, 3.2.2."""
    for host in ("first.example", "second.example"):
        assert sites.get(origin + "/name.txt", host=host).body == name.encode()


@pytest.mark.plain("it has no TLS")
@pytest.mark.parametrize("trusted, status", [({}, 400), (
    {"trusted_proxies": ["127.0.0.1"], "client_address": "x-forwarded-for"}, 200)])
def test_https_without_tls_is_refused_unless_a_trusted_proxy_sends_it(serve_conf, roots, trusted, status):
    """RFC 9110, 7.4."""
    server = serve_conf(trusted, [("one", {"names": ["first.example"], "root": roots / "first"}, {})])
    assert server.get("https://first.example/name.txt").status == status


def test_sites_take_turns_on_one_connection(sites):
    with sites.connect() as c:
        for name in ["first", "second", "second", "first"] * 5:
            assert c.ask("/name.txt", host=name + ".example").body == name.encode()
        c.finish()


def test_sites_do_not_share_open_files(sites):
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


# ------------------------------------------------- errors that need no file

LENGTH = {"Content-Length": str(1 << 30)}
EARLY = {  # by what is wrong: of a host and a path
    "escape": (400, lambda host, path: request(path + "%00", host=host)),
    "fragment": (400, lambda host, path: request(path + "#f", host=host)),
    "field": (400, lambda host, path: request(path, host=host, fields={"A b": "c"})),
    "chunked twice": (501, lambda host, path: request(path, host=host, fields={"Transfer-Encoding": "chunked, chunked"})),
    "method": (405, lambda host, path: request(path, "POST", host=host)),
    "method and body": (405, lambda host, path: request(path, "PUT", host=host, fields=LENGTH)),
    "body": (413, lambda host, path: request(path, host=host, fields=LENGTH)),
    "large head": (431, lambda host, path: request(path, host=host, fields={"A": "b" * 20000})),
    "fields": (431, lambda host, path: request(path, host=host, fields=[("A", "b")] * 200)),
    "no such method": (501, lambda host, path: request(path, "BREW", host=host)),
}
BROKEN = {  # with Host behind what is wrong: of its line
    "byte in the path": (400, b"GET /\x80 HTTP/1.1\r\n%s\r\n"),
    "space in the path": (400, b"GET /a b HTTP/1.1\r\n%s\r\n"),
    "two spaces": (400, b"GET  / HTTP/1.1\r\n%s\r\n"),
    "no path": (400, b"GET HTTP/1.1\r\n%s\r\n"),
    "field": (400, b"GET / HTTP/1.1\r\nA b: c\r\n%s\r\n"),
    "length": (400, b"GET / HTTP/1.1\r\nContent-Length: x\r\n%s\r\n"),
    "long path": (414, b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n%s\r\n"),
    "large head": (431, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"%s\r\n"),
    "coding": (501, b"GET / HTTP/1.1\r\nTransfer-Encoding: x\r\n%s\r\n"),
    "version": (505, b"GET / HTTP/3.0\r\n%s\r\n"),
}
WITH_PATH = [name for name in EARLY if name not in ("escape", "fragment")]


def early(server, name, host, path="/"):
    status, make = EARLY[name]
    with server.connect() as c:
        c.send(make(host, path))
        return status, c.response()


@pytest.fixture
def marked(serve_conf, roots):
    """Each site, and a location of the second one, says in a field and a page of errors which it is."""
    def mark(name):
        return {"header": ["always X-Place: " + name],
                "error_page": ["4xx text: error of " + name, "5xx text: error of " + name]}

    def start(settings=None, location=None, top=None):
        names = ["first.example", "second.example"]
        certificate = {"certificate": [tls.PAIRS.for_user(None, tuple(names))]}
        return serve_conf({"workers": 3, **certificate, **(top or {})}, [
            ("one", {"names": names[:1], "root": roots / "first", "hsts": "1d", **mark("one")}, {}),
            ("two", {"names": names[1:], "root": roots / "second", **mark("two"), **(settings or {})},
             {"/video/": {**mark("video"), **(location or {})}})])

    return start


def check_place(answer, status, place):
    assert (answer.status, answer.get("X-Place"), answer.body) == (status, place, b"error of " + place.encode())


@pytest.mark.parametrize("name", EARLY)
def test_error_is_of_the_site_that_the_request_names(marked, name):
    """Also if nothing is looked up for it."""
    server = marked()
    hosts = [("first.example", "one"), ("second.example", "two"), ("SECOND.example:80", "two"), ("unknown.example", "one")]
    for host, place in hosts:
        status, answer = early(server, name, host)
        check_place(answer, status, place)
        assert ("Strict-Transport-Security" in answer) == (tls.ON and place == "one")
    if name in WITH_PATH:
        check_place(early(server, name, "second.example", "/video/f.bin")[1], status, "video")


@pytest.mark.http1("HTTP/2 has no lines")
@pytest.mark.parametrize("name", BROKEN)
def test_error_is_of_the_site_whose_name_follows_what_is_wrong(marked, name):
    server = marked()
    status, head = BROKEN[name]
    for host, place in ((b"first.example", "one"), (b"second.example", "two")):
        with server.connect() as c:
            c.send(head % (b"Host: %s\r\n" % host))
            check_place(c.response(), status, place)


@pytest.mark.http1("an authority is all that HTTP/2 has")
def test_error_is_of_the_site_that_an_absolute_target_names(marked):
    server = marked()
    for path, method, status in (("/%00", "GET", 400), ("/", "POST", 405)):
        with server.connect() as c:
            c.send(request("http://second.example" + path, method, host="first.example"))
            check_place(c.response(), status, "two")


NAMELESS = [
    (400, b"GET /a HTTP/1.1\r\n\r\n"), (400, b"GET /%00 HTTP/1.0\r\n\r\n"), (405, b"POST / HTTP/1.0\r\n\r\n"),
    (400, b"GET / HTTP/1.1\r\nHost: second.example\r\nHost: first.example\r\n\r\n"),
    (400, b"GET / HTTP/1.1\r\nHost: second.example/\r\n\r\n"), (400, b"GET / HTTP/1.1\r\nA b: c\r\n\r\nHost: second.example\r\n\r\n"),
    (400, b"GET  / HTTP/1.1\r\nHost: second.example"), (414, b"GET /" + b"a" * 9000), (501, b"G" * 50),
    (505, b"GET / HTTP/3.0\r\n"), (413, b"GET / HTTP/1.0\r\nContent-Length: 100000\r\n\r\n"),
]


def refused(sock, raw):
    """What a server sends in answer to it, on a connection that it ends."""
    with sock:
        sock.sendall(raw)
        c = Recorded(receive(sock, time.monotonic() + harness.PATIENCE))
        return c.response()


@pytest.mark.plain("with SNI, a site is named")
@pytest.mark.parametrize("status, raw", NAMELESS)
def test_error_without_a_site_has_only_fields_of_the_top_level(marked, status, raw):
    server = marked(top={"header": ["always X-Top: yes"]})
    raw = raw.replace(b"POST / HTTP/1.0\r\n", b"POST / HTTP/1.0\r\nConnection: close\r\n")
    answer = refused(socket.create_connection(server.address, harness.PATIENCE), raw)
    assert answer.status == status and "X-Place" not in answer and b"error of" not in answer.body
    assert answer.get("X-Top") == "yes"


@pytest.mark.plain("it speaks TLS itself")
@pytest.mark.parametrize("status, raw", NAMELESS)
def test_error_that_names_no_site_is_of_the_one_in_sni(marked, status, raw):
    server = marked(top={"listen": ["127.0.0.1:0 tls"]})
    raw = raw.replace(b"POST / HTTP/1.0\r\n", b"POST / HTTP/1.0\r\nConnection: close\r\n")
    for name, place in (("second.example", "two"), (None, None)):
        sock = socket.create_connection(server.address, harness.PATIENCE)
        answer = refused(tls.any_context().wrap_socket(sock, server_hostname=name), raw)
        assert (answer.status, answer.get("X-Place")) == (status, place)
        assert "Strict-Transport-Security" not in answer


@pytest.mark.plain("it speaks TLS itself")
def test_request_without_host_is_for_the_site_in_sni(marked):
    server = marked(top={"listen": ["127.0.0.1:0 tls"]})
    for name, body in (("second.example", b"second"), ("first.example", b"first"), (None, b"first")):
        for _ in range(3):
            sock = socket.create_connection(server.address, harness.PATIENCE)
            answer = refused(tls.any_context().wrap_socket(sock, server_hostname=name), b"GET /name.txt HTTP/1.0\r\n\r\n")
            assert answer.body == body
            sock = socket.create_connection(server.address, harness.PATIENCE)
            raw = b"GET /name.txt HTTP/1.1\r\nHost:\r\n\r\n" * 2 + request("/name.txt", host="", fields={"Connection": "close"})
            with tls.any_context().wrap_socket(sock, server_hostname=name) as sock:
                sock.sendall(raw)
                assert receive(sock, time.monotonic() + harness.PATIENCE).count(b"\r\n\r\n" + body) == 3


@pytest.mark.parametrize("name", EARLY)
def test_address_that_is_denied_gets_no_other_error(marked, name):
    """Nor does it by a location that is denied, if the target names one."""
    for server, path, place in ((marked({"deny": ["all"]}, {"deny": []}), "/", "two"),
                                (marked({}, {"deny": ["all"]}), "/video/f.bin", "video")):
        if path == "/" or name in WITH_PATH:
            check_place(early(server, name, "second.example", path)[1], 403, place)
        check_place(early(server, name, "first.example", path)[1], EARLY[name][0], "one")
        server.stop()


@pytest.mark.parametrize("name", EARLY)
def test_error_counts_for_request_rate(marked, name):
    server = marked({"request_rate": "1/h", "request_burst": 2})
    for status in (EARLY[name][0], EARLY[name][0], 429, 429):
        check_place(early(server, name, "second.example")[1], status, "two")
    assert server.get("/name.txt", host="second.example").status == 429
    assert server.get("/name.txt", host="first.example").status == 200


@pytest.mark.plain("it has both, with and without TLS")
def test_correct_request_is_redirected_before_it_is_refused(marked):
    server = marked({"redirect_https": True}, top={"listen": ["127.0.0.1:0", "127.0.0.1:0 tls"]})
    for name in ("method", "method and body", "body"):
        answer = early(server, name, "second.example")[1]
        assert answer.status == 301 and answer.get("Location").startswith("https://second.example")
        assert answer.closes == (name != "method")
    for name in ("field", "escape", "large head"):
        check_place(early(server, name, "second.example")[1], EARLY[name][0], "two")


MISPLACED = {"redirect": 301, "misdirected": 421, "misdirected over HTTP/2": 421, "plain HTTP on a port of TLS": 400}


def misplaced(server, kind):
    """The status of a request that its scheme, or its connection, does not fit."""
    if kind == "misdirected over HTTP/2":
        with Client(server, over_tls=True) as c:
            return c.ask("/name.txt", host="second.example").status
    raw = request("/name.txt", host="second.example", fields={"Connection": "close"})
    sock = socket.create_connection(server.address, harness.PATIENCE)
    if kind == "misdirected":
        sock = tls.any_context().wrap_socket(sock, server_hostname="first.example")
    return refused(sock, raw).status


@pytest.fixture
def misplacing(marked, serve_conf, roots):
    """Servers whose second site is guarded by these settings.  No site is known of plain HTTP on a port
    of TLS, so that the first site's hold."""
    def start(kind, settings):
        if kind == "redirect":
            return marked({"redirect_https": True, **settings}, top={"listen": ["127.0.0.1:0", "127.0.0.1:0 tls"]})
        names = ["second.example", "first.example"] if "plain" in kind else ["first.example", "second.example"]
        pairs = {name: tls.PAIRS.for_user(None, (name,)) for name in names}
        return serve_conf({"workers": 3, "listen": ["127.0.0.1:0 tls"], "certificate": [pairs[names[0]]]}, [
            (name, {"root": roots / "first", "names": [name], "certificate": [pairs[name]],
                    **(settings if name == "second.example" else {})}, {}) for name in names])

    return start


@pytest.mark.plain("it has both, with and without TLS")
@pytest.mark.parametrize("kind", MISPLACED)
def test_address_and_rate_come_before_redirect_and_421(misplacing, kind):
    assert misplaced(misplacing(kind, {}), kind) == MISPLACED[kind]
    assert misplaced(misplacing(kind, {"deny": ["all"]}), kind) == 403
    server = misplacing(kind, {"request_rate": "1/h", "request_burst": 2})
    assert [misplaced(server, kind) for _ in range(4)] == [MISPLACED[kind]] * 2 + [429] * 2


def test_many_names_take_linear_time(tmp_path, release):
    """50 000 names of 50 sites: by pairs this would take minutes.  (ASan with strict_string_checks
    measures the rest of the text at each number.)"""
    conf = tmp_path / "test.conf"
    text = "".join('site "%d" { root = "/" names = {%s} }\n' % (
        i, ", ".join('"h%d-%d.example"' % (i, j) for j in range(1000))) for i in range(50))
    conf.write_text(text)
    assert Finished("-t", "-c", conf, binary=release).code == 0
    conf.write_text(text + 'site "b" { root = "/"\nnames = {"H49-999.Example."} }\n')
    run = Finished("-t", "-c", conf, binary=release)
    assert (run.code, run.err) == (
        1, 'pagewise: %s:52: names: H49-999.Example. is already a name of site "49"\n' % conf)
