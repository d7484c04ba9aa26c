"""Error pages: the page of the status, with this status, from memory."""

import os

import pytest


@pytest.fixture
def site(serve_conf, tmp_path):
    root = tmp_path / "site"
    root.mkdir()
    (root / "f").write_text("file")

    def start(pages, locations=None, **settings):
        return serve_conf({"workers": 1, "error_page": pages}, [
            ("s", {"root": root, **settings}, locations or {})])

    return start


def test_page_of_a_file_and_of_a_text(site, tmp_path):
    (tmp_path / "404.html").write_bytes(b"<h1>\xc3\xbc" + b"x" * 100000)
    (tmp_path / "p.bin").write_bytes(bytes(range(256)))
    server = site([f"404 {tmp_path}/404.html", "4xx text: No.", f"416 {tmp_path}/p.bin"])
    answer = server.get("/nope")
    assert (answer.status, answer.body) == (404, (tmp_path / "404.html").read_bytes())
    assert answer.get("Content-Type") == "text/html; charset=utf-8"
    assert not answer.closes
    answer = server.get("/nope", "HEAD")
    assert (answer.status, answer.length) == (404, 100006)
    answer = server.get("/", "POST")
    assert (answer.status, answer.body) == (405, b"No.")
    assert answer.get("Content-Type") == "text/plain; charset=utf-8" and "Allow" in answer
    answer = server.get("/f", fields=[("Range", "bytes=9-")])
    assert (answer.status, answer.body) == (416, bytes(range(256)))
    assert answer.get("Content-Range") == "bytes */4"
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n")
        answer = c.response()
        assert (answer.status, answer.body) == (400, b"No.") and answer.closes


def test_pages_of_a_location_and_its_types(site, tmp_path):
    (tmp_path / "p.foo").write_text("foo")
    page = f"404 {tmp_path}/p.foo"
    server = site(["404 text: top"], {"/a/": {"error_page": [page], "types": ["x/foo foo"]},
                                      "/b/": {"error_page": []}, "/c/": {"charset": "off"}},
                  error_page=[page])
    assert server.get("/n").get("Content-Type") == "application/octet-stream"
    assert server.get("/a/n").get("Content-Type") == "x/foo"
    assert b"404 Not Found" in server.get("/b/n").body
    assert server.get("/c/n").body == b"foo"


def test_pages_are_those_that_were_read_when_it_started(site, tmp_path):
    page = tmp_path / "404.html"
    page.write_text("one")
    server = site([f"404 {page}"])
    page.write_text("two")
    assert server.get("/n").body == b"one"
    server.reload()
    assert server.get("/n").body == b"two"
    os.unlink(page)
    assert server.get("/n").body == b"two"


def test_pages_one_after_the_other_on_a_connection(site, tmp_path):
    big = os.urandom(256 << 10)
    (tmp_path / "big").write_bytes(big)
    with site([f"404 {tmp_path}/big"]).connect() as c:
        for _ in range(10):
            c.send(b"GET /n HTTP/1.1\r\nHost: h\r\n\r\nGET /f HTTP/1.1\r\nHost: h\r\n\r\n")
        for _ in range(10):
            assert c.response().body == big
            assert c.response().body == b"file"
