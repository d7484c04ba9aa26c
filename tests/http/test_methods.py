"""Methods, versions, and the fields of an answer (RFC 9110, section 9)."""

import re

import pytest

import tree as t
from harness import request
from responses import STRONG_ETAG, http_date


@pytest.mark.every_path
@pytest.mark.parametrize("size", t.SIZES)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_get_sends_the_whole_file(server, tree, size, version):
    response = server.get("/%d.bin" % size, version=version)
    assert response.status == 200
    assert response.length == size
    assert response.body == tree.files["/%d.bin" % size]


@pytest.mark.parametrize("target", ["/4097.bin", "/0.bin", "/", "/with-index/"])
def test_head_is_get_without_the_body(server, target):
    volatile = {"date"}
    get = server.get(target)
    head = server.get(target, "HEAD")
    assert head.status == get.status == 200
    assert [f for f in head.fields if f[0].lower() not in volatile] == [
        f for f in get.fields if f[0].lower() not in volatile
    ]


@pytest.mark.parametrize(
    "target", ["/nothing", "/.git/config", "/with-index", "/empty/", "/special/fifo"]
)
def test_head_of_an_error_has_no_body(plain, target):
    get, head = plain.get(target), plain.get(target, "HEAD")
    assert head.status == get.status >= 300
    assert head.length == get.length


def test_file_has_validators_and_accepts_ranges(plain):
    response = plain.get("/4097.bin")
    assert STRONG_ETAG.match(response.get("ETag"))
    assert response.get("Last-Modified") == http_date(t.MTIME)
    assert response.get("Accept-Ranges") == "bytes"


def test_different_files_have_different_entity_tags(plain):
    tags = {plain.get("/%d.bin" % s).get("ETag") for s in t.SIZES}
    assert len(tags) == len(t.SIZES)


@pytest.mark.parametrize(
    "name, media",
    [
        ("page.html", "text/html"),
        ("PAGE.HTML", "text/html"),
        ("a.css", "text/css"),
        ("a.js", "(text|application)/javascript"),
        ("a.json", "application/json"),
        ("a.txt", "text/plain"),
        ("a.png", "image/png"),
        ("a.jpg", "image/jpeg"),
        ("a.svg", re.escape("image/svg+xml")),
        ("a.mp4", "video/mp4"),
        ("a.pdf", "application/pdf"),
        ("a.unheardof", "application/octet-stream"),
        ("none", "application/octet-stream"),
    ],
)
def test_content_type_follows_the_extension(serve, site, name, media):
    (site / name).write_bytes(b"x")
    response = serve("--root", site).get("/" + name)
    assert re.fullmatch(media + "(; ?charset=[A-Za-z0-9-]+)?", response.get("Content-Type"))


@pytest.mark.parametrize("target", ["*", "/", "/4097.bin"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_options_names_the_methods(plain, target, version):
    response = plain.get(target, "OPTIONS", version=version)
    assert response.status in (200, 204)
    allowed = {m.strip() for v in response.all("Allow") for m in v.split(",")}
    assert allowed == {"GET", "HEAD", "OPTIONS"}
    assert response.body == b""


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_asterisk_is_for_options_only(plain, method):
    assert plain.get("*", method).status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "TRACE", "PATCH"])
@pytest.mark.parametrize("target", ["/4097.bin", "/nothing-here", "/empty/"])
def test_known_method_that_is_not_served_is_405(plain, method, target):
    # 405 carries Allow: the client checks it for every answer.
    assert plain.get(target, method).status == 405


def test_connect_is_405(plain):
    with plain.connect() as c:
        c.send(request("example.com:443", "CONNECT"))
        response = c.response()
        assert response.status == 405
        c.finish(response)


@pytest.mark.parametrize("method", ["FOO", "get", "Get", "GETT", "G", "X-Y", "!#$%&'*+.^_`|~"])
def test_unknown_method_is_501(plain, method):
    assert plain.get("/4097.bin", method).status == 501


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_body_of_a_refused_method_is_not_taken_for_a_request(plain, method):
    smuggled = request("/4097.bin")
    with plain.connect() as c:
        c.send(request("/4096.bin", method, body=smuggled))
        first = c.response()
        assert first.status == 405
        if not first.closes:
            assert c.ask("/4095.bin").length == 4095
        c.finish(first)


def test_server_answers_a_1_0_client_without_host(server, tree):
    response = server.get("/4097.bin", version="1.0", host=None)
    assert response.status == 200
    assert response.body == tree.files["/4097.bin"]


def test_error_bodies_are_small_and_name_the_status(plain):
    response = plain.get("/nothing-here")
    assert response.status == 404
    assert b"404" in response.body
    assert len(response.body) < 2048


def test_error_body_does_not_reflect_the_target(plain):
    response = plain.get("/%3Cscript%3Ealert(1)%3C/script%3E")
    assert response.status == 404
    assert b"<script" not in response.body
