"""From a request target to a file: every name that can be there, nothing hidden.

What leads outside of the root is in test_path_corpus.py and test_path_races.py.
"""

import ctypes
import json
import os
import struct

import pytest

import tree as t


def body_of(server, target):
    response = server.get(target)
    assert response.status == 200, (target, response)
    return response.body


# ------------------------------------------------------------------- names


def test_every_odd_name_is_served(server):
    with server.connect() as c:
        for name in t.odd_names():
            response = c.ask("/odd/" + t.percent(name))
            assert response.status == 200, name
            assert response.body == b"I am " + name
        c.finish()


def test_characters_that_need_no_encoding_may_be_sent_raw(plain):
    for name in t.odd_names():
        raw = bytes(b for b in name)
        if all(0x21 <= b <= 0x7E and b not in b"%?#" for b in raw):
            assert body_of(plain, b"/odd/" + raw) == b"I am " + name


def test_hexadecimal_digits_in_either_case(plain, tree):
    assert body_of(plain, "/odd/x%c3y") == b"I am x\xc3y"
    assert body_of(plain, "/odd/x%C3y") == b"I am x\xc3y"
    assert body_of(plain, "/%340%39%37.bin") == tree.files["/4097.bin"]


def test_percent_is_decoded_once(plain):
    assert body_of(plain, "/odd/%2541.txt") == b"I am %41.txt"
    assert body_of(plain, "/odd/%252e%252e") == b"I am %2e%2e"


def test_plus_is_a_plus(plain):
    assert body_of(plain, "/odd/a+b.txt") == b"I am a+b.txt"
    assert plain.get("/odd/with+space.txt").status == 404


def test_query_is_no_part_of_the_name(plain, tree):
    data = tree.files["/4097.bin"]
    for query in ["?", "?x", "?x=/../..", "?a?b", "?%", "?%zz", "?%00"]:
        assert body_of(plain, "/4097.bin" + query) == data


def test_encoded_question_mark_is_part_of_the_name(plain):
    assert body_of(plain, "/odd/a%3Fb=c.txt") == b"I am a?b=c.txt"
    assert plain.get("/odd/a?b=c.txt").status == 404


def test_name_too_long_for_a_file_system_is_404(plain):
    assert plain.get("/" + "n" * 256).status == 404
    assert plain.get("/odd/" + "n" * 300).status == 404


# request_corpus.py and tests/unit/test_target.c have all forms, also of what follows.
@pytest.mark.parametrize("target", ["/%", "/%zz", "/4097.bin%00.html", "/%u0041", "/a#b"])
def test_bad_escape_nul_and_fragment_are_400(plain, target):
    assert plain.get(target).status == 400


@pytest.mark.parametrize("target", ["../4097.bin", "ftp://h/4097.bin", "?q", "http:/4097.bin"])
def test_target_that_is_neither_a_path_nor_an_http_uri_is_400(plain, target):
    assert plain.get(target).status == 400


# ----------------------------------------------------------- dots and slashes


@pytest.mark.parametrize("target", [
    "/.//./4097.bin", "/nothing-there/../4097.bin", "/list/.%2E/4097.bin", "/list%2F..%2F4097.bin"])
def test_dot_segments_and_duplicate_slashes_are_removed(plain, tree, target):
    assert body_of(plain, target) == tree.files["/4097.bin"]


def test_file_with_a_slash_after_it_is_404(plain):
    assert plain.get("/4097.bin/").status == 404
    assert plain.get("/4097.bin/x").status == 404
    assert plain.get("/4097.bin/.").status == 404
    assert plain.get("/4097.bin%2F").status == 404


# --------------------------------------------------------------- directories


@pytest.mark.parametrize(
    "target, location",
    [
        ("/with-index", "/with-index/"),
        ("/with-index/nested", "/with-index/nested/"),
        ("/empty", "/empty/"),
        ("/with-index?", "/with-index/?"),
        ("/with-index?a=b&c=%20/..", "/with-index/?a=b&c=%20/.."),
        ("/with-index?a?b", "/with-index/?a?b"),
        ("/list/../with-index?q", "/with-index/?q"),
        ("//with-index", "/with-index/"),
        ("/%77ith-index", "/with-index/"),
        ("/with-index/.", None),
        ("/with-index/nested/..", None),
    ],
)
def test_directory_without_its_slash_is_redirected(plain, target, location):
    response = plain.get(target)
    if location is None:
        # A dot segment at the end leaves the slash: RFC 3986, 5.2.4.
        assert response.status == 200
        return
    assert response.status == 301
    assert without_origin(response.get("Location")) == location


def without_origin(location):
    """The path and query; an absolute form must name this server."""
    for scheme in ("http://localhost",):
        if location.startswith(scheme + "/"):
            return location[len(scheme) :]
    assert location.startswith("/") and not location.startswith("//"), location
    return location


def test_redirect_of_every_odd_name_leads_to_that_directory(plain):
    for name in t.odd_names():
        response = plain.get("/odd-dirs/" + t.percent(name))
        assert response.status == 301, name
        location = without_origin(response.get("Location"))
        assert location.endswith("/")
        # The client checks that the field is one line of printable ASCII.
        again = plain.get(location)
        assert again.status == 403, (name, location)


def test_redirect_with_a_hostile_host_stays_in_one_field(plain):
    response = plain.get("/with-index", host="evil.example")
    assert response.status == 301
    assert response.get("Location") in ("/with-index/", "http://evil.example/with-index/")


@pytest.mark.parametrize(
    "target", ["/", "//", "/with-index/", "/with-index/nested/", "/with-index/nested/.."]
)
def test_index_page(server, tree, target):
    path = {"/with-index/nested/..": "/with-index/", "//": "/"}.get(target, target)
    response = server.get(target)
    assert response.body == tree.files[path + "index.html"]
    assert response.get("Content-Type").startswith("text/html")


def test_directory_without_index_is_403(plain):
    assert plain.get("/empty/").status == 403
    assert plain.get("/list/").status == 403


def test_index_that_is_a_directory_is_no_index(serve, site):
    (site / "index.html").mkdir()
    assert serve("--root", site).get("/").status in (403, 404)


# --------------------------------------------------------------- hidden files


@pytest.mark.parametrize("target", [
    "/.hidden.txt", "/%2ehidden.txt", "/.git/config", "/.git", "/.well-known/.x/f", "/odd/...three",
    "/list/.well-known/x"])
def test_dotfiles_are_404(plain, target):
    assert plain.get(target).status == 404


def test_well_known_is_served(plain):
    assert body_of(plain, "/.well-known/acme/token") == b"token\n"


def test_dotfiles_are_served_if_configured(serve_conf, tree):
    server = serve_conf({"dotfiles": True}, [("s", {"root": tree.root}, {})])
    assert body_of(server, "/.hidden.txt") == b"hidden\n"
    assert body_of(server, "/.git/config") == b"hidden\n"
    assert server.get("/..").status == 400


def test_dotfiles_that_are_named_are_served(serve_conf, site):
    """Each segment with a dot has to be one of the names; a listing shows the same."""
    for name in (".zarray", ".zarray.tmp", ".z", ".disk/info", ".disk/.zattrs", ".disk/.x", ".git/.zarray",
                 "a/.zarray", "a/.git/f", ".well-known/f", ".well-known/.zarray", ".well-known/.x"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(name.encode())
    names = [".zarray", ".zattrs", ".disk"]
    server = serve_conf({"dotfiles": names, "autoindex": True, "workers": 1}, [
        ("s", {"root": site}, {"/a/": {"dotfiles": False}, "/.git/": {"dotfiles": True}})])
    served = {".zarray", ".disk/info", ".disk/.zattrs", ".git/.zarray", ".well-known/f", ".well-known/.zarray"}
    for path in sorted(p for p in site.rglob("*") if p.is_file()):
        name = str(path.relative_to(site))
        response = server.get("/" + name)
        assert (response.status, response.body == name.encode()) == (
            (200, True) if name in served else (404, False)), name
    assert server.get("/.disk/../.zarray").body == b".zarray"
    assert server.get("/%2ezarra%79").body == b".zarray"
    shown = {e["name"] for e in json.loads(server.get("/?format=json").body)}
    assert shown == {".zarray", ".disk", "a"}


# ------------------------------------------------------------------- symlinks


@pytest.mark.parametrize("name", ["same-dir", "up-inside"])
def test_symlink_that_stays_inside_is_followed(server, tree, name):
    expected = {"same-dir": "/links/4097.bin", "up-inside": "/4097.bin"}[name]
    assert body_of(server, "/links/" + name) == tree.files[expected]


def test_symlink_to_a_directory_inside_is_followed(plain, tree):
    assert body_of(plain, "/links/dir-inside/page.txt") == b"a page\n"
    assert plain.get("/links/dir-inside").get("Location").endswith("/links/dir-inside/")


def test_root_that_is_a_symlink_itself_is_fine(serve, site, tmp_path):
    (site / "f").write_bytes(b"x")
    (tmp_path / "link").symlink_to(site)
    assert body_of(serve("--root", tmp_path / "link"), "/f") == b"x"


# -------------------------------------------------- what is no regular file


class OpenWatch:
    """Sees whether a file is opened (inotify)."""

    IN_OPEN = 0x20

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        assert self.fd >= 0
        assert libc.inotify_add_watch(self.fd, os.fsencode(path), self.IN_OPEN) >= 0

    def opened(self):
        try:
            data = os.read(self.fd, 4096)
        except BlockingIOError:
            return False
        return struct.unpack_from("iI", data)[1] & self.IN_OPEN != 0

    def close(self):
        os.close(self.fd)


@pytest.mark.parametrize("name", ["fifo", "socket", "null", "block"])
def test_special_file_is_403_and_never_opened(plain, tree, name):
    path = tree.path("special/" + name)
    if not os.path.exists(path):
        pytest.skip("devices can only be made by root")
    watch = OpenWatch(path)
    try:
        for _ in range(2):
            assert plain.get("/special/" + name).status == 403
        assert not watch.opened()
        if name == "fifo":
            # The watch works: somebody does open it now.
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            assert watch.opened()
    finally:
        watch.close()


def test_unreadable_file_and_directory_are_403(serve, tree):
    """As an ordinary user: root may read everything."""
    user = "nobody" if os.geteuid() == 0 else None
    server = serve("--root", tree.root, user=user)
    assert server.get("/special/unreadable").status == 403
    assert server.get("/special/closed/file").status == 403
    assert server.get("/special/closed/").status == 403
    assert body_of(server, "/4097.bin") == tree.files["/4097.bin"]


# -------------------------------------------------------------- absolute form


@pytest.mark.parametrize("target", ["http://localhost/4097.bin", "HTTP://h:1/4097.bin?q"])
def test_absolute_form(server, tree, target):
    assert body_of(server, target) == tree.files["/4097.bin"]


@pytest.mark.parametrize("target", ["http://localhost", "http://localhost?q"])
def test_absolute_form_without_a_path_is_the_root(plain, tree, target):
    assert body_of(plain, target) == tree.files["/index.html"]
