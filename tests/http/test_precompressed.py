"""Compressed siblings: which client gets which, with a length, a tag and ranges of its own."""

import gzip
import itertools
import json
import os
import re
import threading

import pytest

import harness
import responses
import tree as t

from admin import Admin

OLD = 1_600_000_000  # seconds
UNUSED = (r"(pagewise: warning: [^\n]+: not sent in place of the original: [^\n]+\n"
          r"|pagewise: \d+ more times a compressed sibling was not sent[^\n]*\n)+")
SUFFIXES = {"zst": "zstd", "br": "br", "gz": "gzip"}


def put(path, data, when=OLD):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (when, when))


@pytest.fixture
def root(tmp_path):
    top = tmp_path / "site"
    for suffix in ("", ".zst", ".br", ".gz"):
        put(top / ("all.js" + suffix), b"all.js" + suffix.encode())
    put(top / "one.html", b"<p>one" * 100)
    put(top / "one.html.gz", gzip.compress(b"<p>one" * 100))
    put(top / "stale.txt", b"stale.txt", OLD + 1)
    put(top / "stale.txt.br", b"stale.txt.br")
    put(top / "stale.txt.gz", b"stale.txt.gz", OLD + 1)
    put(top / "alone.css.gz", b"alone.css.gz")
    put(top / "none.txt", b"none.txt")
    put(top / "dir/index.html", b"dir/index.html")
    put(top / "dir/index.html.br", b"dir/index.html.br")
    put(top / "lone/index.html.br", b"lone/index.html.br")
    (top / "odd.txt.gz").mkdir()
    put(top / "odd.txt", b"odd.txt")
    return top


@pytest.fixture
def site(serve_conf, root):
    def start(codings=("zst", "br", "gz"), locations=None, **top):
        return serve_conf(top, [("s", {"root": root, "precompressed": codings}, locations or {})])

    return start


def ask(server, target, accept, **kw):
    """(body, Content-Encoding); the answer is right in all else."""
    fields = [] if accept is None else [("Accept-Encoding", accept)]
    answer = server.get(target, fields=fields + kw.pop("fields", []), **kw)
    assert answer.all("Vary") == ["Accept-Encoding"]
    return answer.body.decode("latin-1"), answer.get("Content-Encoding")


WANTS = [
    (None, ""), ("", ""), ("gzip", ".gz"), ("br", ".br"), ("zstd", ".zst"), ("GZip", ".gz"),
    ("gzip, deflate, br, zstd", ".zst"), ("gzip, br", ".br"), ("deflate", ""), ("identity", ""),
    ("gzip;q=0.5, br;q=0.1", ".gz"), ("gzip;q=1.0, br;q=1, zstd;q=0.999", ".br"),
    ("gzip;q=0", ""), ("gzip;q=0, *", ".zst"), ("*", ".zst"), ("*;q=0", ""), ("br;q=0, zstd;q=0, *;q=0.1", ".gz"),
    ("gzip;q=0.5, identity", ""), ("identity;q=0.5, gzip;q=0.5", ".gz"), ("identity;q=0, gzip", ".gz"),
    ("identity;q=0", ""), ("gzip;q=2", ""), ("gzip;q=x, br", ".br"), ("x-gzip", ".gz"), ("X-GZIP;q=0.5", ".gz"), ("x-gzip;q=0, *", ".zst"),
    ("x-gzip;q=0.1, br;q=0.5", ".br"), ("x-gzip;q=0", ""), ("gzip;q=0, x-gzip;q=0, identity;q=0", ""), ("x-zstd, x-br", ""), ("gzip , br;q = 1", ".gz"),
]


@pytest.fixture(scope="module")
def wanted(module_path):
    """A file for each of WANTS, so that each is not ready when it is first asked for."""
    for number in range(len(WANTS)):
        for suffix in ("", ".zst", ".br", ".gz"):
            put(module_path / ("%d.js%s" % (number, suffix)), b"all.js" + suffix.encode())
    return module_path


@pytest.mark.parametrize("number", range(len(WANTS)), ids=["%s-%s" % row for row in WANTS])
def test_client_gets_its_preferred_coding(lend_conf, wanted, number):
    server = lend_conf({}, [("s", {"root": wanted, "precompressed": ["zst", "br", "gz"]}, {})])
    accept, suffix = WANTS[number]
    want = ("all.js" + suffix, SUFFIXES.get(suffix[1:]))
    for _ in range(3):
        assert ask(server, "/%d.js" % number, accept) == want


def test_servers_order_decides_between_equal_weights(site):
    assert ask(site(["gz", "br"]), "/all.js", "br, gzip, zstd") == ("all.js.gz", "gzip")


def test_two_lists_of_one_client_are_one(site):
    server = site()
    answer = server.get("/all.js", fields=[("Accept-Encoding", "deflate"), ("Accept-Encoding", "br")])
    assert answer.get("Content-Encoding") == "br"


def test_clients_get_only_codings_that_they_accept(site):
    """All of them in turn, on connections that stay, from the hot set as well."""
    server = site()
    wants = {"": "", "gzip": ".gz", "br": ".br", "gzip, br, zstd": ".zst", "identity, gzip;q=0.1": ""}
    with server.connect() as c:
        for accept, suffix in itertools.chain.from_iterable([wants.items()] * 6):
            answer = c.ask("/all.js", fields=[("Accept-Encoding", accept)])
            assert answer.body == ("all.js" + suffix).encode()
            assert answer.get("Content-Encoding") == SUFFIXES.get(suffix[1:])
        c.finish(answer)


def test_sibling_has_the_originals_type_and_a_tag_and_ranges_of_its_own(site):
    server = site()
    plain, packed = (server.get("/all.js", fields=[("Accept-Encoding", a)]) for a in ("", "gzip"))
    assert packed.get("Content-Type") == plain.get("Content-Type") != "application/gzip"
    assert packed.get("ETag") != plain.get("ETag")
    gz = [("Accept-Encoding", "gzip")]
    assert server.get("/all.js", fields=gz + [("If-None-Match", packed.get("ETag"))]).status == 304
    assert server.get("/all.js", fields=gz + [("If-None-Match", plain.get("ETag"))]).status == 200
    part = server.get("/all.js", fields=gz + [("Range", "bytes=-2"), ("If-Range", packed.get("ETag"))])
    assert (part.status, part.body) == (206, b"gz")
    assert part.get("Content-Range") == "bytes 7-8/9" and part.get("Content-Encoding") == "gzip"
    parts = server.get("/all.js", fields=gz + [("Range", "bytes=0-0,-1"), ("If-Range", packed.get("ETag"))])
    assert [p.body for p in responses.multipart(parts)] == [b"a", b"z"]
    assert parts.get("Content-Encoding") == "gzip"
    head = server.get("/all.js", "HEAD", fields=gz)
    assert (head.length, head.get("Content-Encoding")) == (9, "gzip")


@pytest.mark.parametrize("accept", [None, "gzip", "identity"])
def test_svgz_is_svg_with_a_content_coding(site, root, accept):
    """Its format is gzip's: there is no other representation to choose from."""
    packed = gzip.compress(b"<svg/>" * 100)
    put(root / "a.svgz", packed)
    put(root / "A.SVGZ.br", b"twice")
    put(root / "svgz", b"no name in front")
    server = site()
    fields = [] if accept is None else [("Accept-Encoding", accept)]
    for _ in range(3):
        answer = server.get("/a.svgz", fields=fields)
        assert (answer.get("Content-Type"), answer.get("Content-Encoding")) == ("image/svg+xml", "gzip")
        assert answer.body == packed
    answer = server.get("/a.svgz", fields=fields + [("Range", "bytes=2-9")])
    assert (answer.status, answer.get("Content-Encoding"), answer.body) == (206, "gzip", packed[2:10])
    assert server.get("/A.SVGZ", fields=[("Accept-Encoding", "br")]).get("Content-Encoding") == "gzip, br"
    assert "Content-Encoding" not in server.get("/svgz", fields=fields)


def test_svgz_of_another_type_has_no_content_coding(serve_conf, root):
    put(root / "a.svgz", b"packed")
    server = serve_conf({}, [("s", {"root": root, "types": ["application/x-mine svgz"]}, {})])
    answer = server.get("/a.svgz")
    assert answer.get("Content-Type") == "application/x-mine" and "Content-Encoding" not in answer


def part(server, target, accept, *fields):
    fields = [("Range", "bytes=-3"), *fields] + ([("Accept-Encoding", accept)] if accept is not None else [])
    answer = server.get(target, fields=fields)
    assert answer.all("Vary") == ["Accept-Encoding"]
    return answer.status, answer.body, answer.get("Content-Encoding")


@pytest.mark.parametrize("accept", [None, "gzip", "gzip, deflate, br, zstd", "br;q=1, identity;q=0.1", "*", "", "gzip;q=0"])
def test_range_is_a_part_of_the_original(site, accept):
    """Programs that send Accept-Encoding by default decode what they get, and cannot decode a part."""
    server = site()
    for _ in range(3):
        assert part(server, "/all.js", accept) == (206, b".js", None)
        # And whole answers are what they were, from the hot set as well.
        assert ask(server, "/all.js", "gzip") == ("all.js.gz", "gzip")
        assert ask(server, "/all.js", "") == ("all.js", None)
    beyond = server.get("/all.js", fields=[("Accept-Encoding", "gzip"), ("Range", "bytes=6-")])
    assert (beyond.status, beyond.get("Content-Range")) == (416, "bytes */6")


@pytest.mark.parametrize("accept, suffix", [("gzip, identity;q=0", ".gz"), ("br, *;q=0", ".br")])
def test_range_is_a_part_of_the_sibling_if_the_client_refuses_identity(site, accept, suffix):
    want = ("all.js" + suffix).encode()[-3:]
    assert part(site(), "/all.js", accept) == (206, want, SUFFIXES[suffix[1:]])


def test_range_is_a_part_of_the_sibling_without_an_original(site):
    server = site()
    assert part(server, "/alone.css", "gzip") == (206, b".gz", "gzip")
    assert part(server, "/alone.css", "br")[0] == 404


def test_head_with_a_range_is_of_the_original_too(site):
    answer = site().get("/all.js", "HEAD", fields=[("Accept-Encoding", "gzip"), ("Range", "bytes=0-1")])
    assert (answer.status, answer.get("Content-Encoding")) == (206, None)
    assert answer.get("Content-Range") == "bytes 0-1/6"


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["If-Range", "If-Match"])
def test_range_is_a_part_of_the_sibling_if_the_client_names_its_tag(site, suffix, name):
    """Whatever the client would rather have for a new download."""
    server = site()
    tag, plain = (server.get("/all.js", "HEAD", fields=[("Accept-Encoding", a)]).get("ETag")
                  for a in (SUFFIXES[suffix], ""))
    for accept in (SUFFIXES[suffix], "gzip, br, zstd"):
        for _ in range(3):
            want = ("all.js." + suffix).encode()[-3:]
            assert part(server, "/all.js", accept, (name, tag)) == (206, want, SUFFIXES[suffix])
            assert part(server, "/all.js", accept, (name, plain)) == (206, b".js", None)
            assert ask(server, "/all.js", "gzip, br, zstd") == ("all.js.zst", "zstd")
    other = part(server, "/all.js", "gzip, br, zstd", (name, '"other"'))
    assert other == (200, b"all.js", None) if name == "If-Range" else other[0] == 412
    # Of one that it does not take, or did not name, it gets none.
    assert part(server, "/all.js", "deflate", (name, tag))[0] == (200 if name == "If-Range" else 412)
    assert part(server, "/all.js", "gzip, br, zstd", (name, "*"))[2] is None


def test_date_of_two_representations_identifies_neither(site, root):
    """A client that has the beginning of one must not get the end of the other."""
    put(root / "two.js", b"two.js", OLD)
    put(root / "two.js.gz", b"two.js.gz", OLD + 60)
    server = site()
    same, later = responses.http_date(OLD), responses.http_date(OLD + 60)
    assert part(server, "/all.js", "gzip", ("If-Range", same)) == (200, b"all.js.gz", "gzip")
    assert part(server, "/all.js", "", ("If-Range", same)) == (206, b".js", None)
    assert part(server, "/two.js", "gzip", ("If-Range", same)) == (206, b".js", None)
    assert part(server, "/two.js", "gzip", ("If-Range", later)) == (206, b".gz", "gzip")
    assert part(server, "/two.js", "gzip", ("If-Range", responses.http_date(OLD + 1))) == (200, b"two.js", None)


NS = 10**9


@pytest.mark.parametrize("original, sibling, used", [
    (OLD * NS + 999_999_999, OLD * NS, True),  # brotli -k, pigz -k, tar
    (OLD * NS + 123_456_789, OLD * NS + 123_456_000, True),
    (OLD * NS, OLD * NS - 1, False),
    (OLD * NS + 1, (OLD - 1) * NS, False),
    (OLD * NS + 1, (OLD + 1) * NS, True),
])
def test_whole_seconds_are_compared(site, root, original, sibling, used):
    put(root / "f.txt", b"f.txt")
    put(root / "f.txt.br", b"f.txt.br")
    os.utime(root / "f.txt", ns=(original, original))
    os.utime(root / "f.txt.br", ns=(sibling, sibling))
    server = site()
    assert ask(server, "/f.txt", "br") == (("f.txt.br", "br") if used else ("f.txt", None))
    server.stop(messages="" if used else UNUSED)


def test_unused_sibling_is_counted_and_logged(site, root):
    (root / "loop.txt.gz").symlink_to("loop.txt.gz")
    put(root / "loop.txt", b"loop.txt")
    server = site(workers=1, admin="127.0.0.1:0")
    admin = Admin(server)
    name = "pagewise_siblings_unused_total"
    assert admin.value(name) == 0
    for n, (target, accept) in enumerate([("/stale.txt", "br"), ("/odd.txt", "gzip"), ("/loop.txt", "gzip")]):
        assert ask(server, target, accept)[1] is None
        admin.wait(name, n + 1)
    assert ask(server, "/none.txt", "gzip, br, zstd") == ("none.txt", None)
    assert ask(server, "/all.js", "br")[1] == "br"
    assert admin.value(name) == 3
    server.stop(messages=r"pagewise: warning: stale\.txt\.br: not sent in place of the original: the sibling is older; "
                         r"update it with pagewise precompress, or copy the original's time to it \(touch -r\)\n"
                         r"(pagewise: 2 more times a compressed sibling was not sent[^\n]*\n)?")


def test_real_data_unpacks(site):
    body, coding = ask(site(), "/one.html", "gzip")
    assert coding == "gzip"
    assert gzip.decompress(body.encode("latin-1")) == b"<p>one" * 100


def test_sibling_that_is_older_is_not_used(site, root):
    server = site()
    assert ask(server, "/stale.txt", "br") == ("stale.txt", None)
    assert ask(server, "/stale.txt", "br, gzip;q=0.5") == ("stale.txt.gz", "gzip")
    for _ in range(3):
        assert ask(server, "/all.js", "br")[1] == "br"
    put(root / "all.js", b"newer", OLD + 5)
    harness.wait_until(lambda: ask(server, "/all.js", "br") == ("newer", None), "the change")
    server.stop(messages=UNUSED)


def test_sibling_without_its_original_is_sent_to_clients_that_accept_it(site):
    server = site()
    assert ask(server, "/alone.css", "gzip") == ("alone.css.gz", "gzip")
    assert server.get("/alone.css", fields=[("Accept-Encoding", "gzip")]).get("Content-Type") == (
        "text/css; charset=utf-8")
    assert server.get("/alone.css").status == 404
    assert server.get("/alone.css", fields=[("Accept-Encoding", "br")]).status == 404


def test_index_files_have_siblings_too(site):
    server = site()
    assert ask(server, "/dir/", "br") == ("dir/index.html.br", "br")
    assert ask(server, "/dir/", None) == ("dir/index.html", None)
    assert ask(server, "/lone/", "br") == ("lone/index.html.br", "br")
    assert server.get("/lone/").status == 403


def test_only_regular_files_are_siblings(site):
    server = site()
    assert ask(server, "/odd.txt", "gzip") == ("odd.txt", None)
    assert ask(server, "/none.txt", "gzip, br, zstd") == ("none.txt", None)
    # Asked for by its own name it is what it is.
    assert ask(server, "/all.js.gz", "gzip, br, zstd") == ("all.js.gz", None)
    answer = server.get("/all.js.gz")
    assert answer.get("Content-Type") == "application/gzip"
    # In turn: each name has its own lines.
    assert ask(server, "/all.js", "gzip") == ("all.js.gz", "gzip")
    assert server.get("/all.js.gz").get("Content-Type") == "application/gzip"
    server.stop(messages=UNUSED)


def test_location_without_siblings_sends_no_vary(site, root):
    server = site(locations={"/dir/": {"precompressed": []}})
    answer = server.get("/dir/", fields=[("Accept-Encoding", "br")])
    assert answer.body == b"dir/index.html" and "Vary" not in answer


def test_new_and_removed_siblings_are_noticed(site, root):
    server = site()
    for _ in range(3):
        assert ask(server, "/none.txt", "gzip") == ("none.txt", None)
    put(root / "none.txt.gz", b"packed")
    harness.wait_until(lambda: ask(server, "/none.txt", "gzip") == ("packed", "gzip"), "the sibling")
    (root / "none.txt.gz").unlink()
    harness.wait_until(lambda: ask(server, "/none.txt", "gzip") == ("none.txt", None), "its end")


@pytest.mark.parametrize("send_path", harness.FILE_PATHS)
def test_many_at_once_on_each_path(site, root, send_path):
    big = os.urandom(1 << 20)
    put(root / "big.bin", b"plain")
    put(root / "big.bin.br", big)
    server = site(send_path=send_path)
    wrong = []

    def client(accept, want):
        try:
            for _ in range(5):
                answer = server.get("/big.bin", fields=[("Accept-Encoding", accept)])
                if answer.body != want:
                    wrong.append(len(answer.body))
        except Exception as error:  # a thread's own would only end it
            wrong.append(error)

    threads = [threading.Thread(target=client, args=pair)
               for pair in [("br", big), ("gzip", b"plain")] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def shown(page):
    """The names in a listing, without directories."""
    if page.startswith(b"["):
        return {row["name"] for row in json.loads(page) if row["type"] != "directory"}
    return set(re.findall(r'<a href="([^"/]+)"', page.decode()))


@pytest.mark.parametrize("query", ["", "?format=json", "?sort=size&order=desc"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.slow
def test_listing_does_not_show_siblings(serve_conf, root, query, streamed):
    for name in ("a.gz", "a.br", "a.zst", "b.gz", ".gz", "d.gz", "e.gz.br", "e.gz", "d/x", "link.gz",
                 "a.GZ", "agz", "f", "f.gz/x"):
        put(root / "list" / name, b"1")
    put(root / "list/a", b"1")
    (root / "list/link").symlink_to("a")
    # d and f.gz are directories, b and e are not there; br and gz are configured.
    want = {"a", "a.zst", "a.GZ", "agz", "b.gz", "d.gz", "e.gz", "f", "link"}
    many = {"many.%05d.%s" % (i, "y" * 200) for i in range(1500 if streamed else 0)}
    t.many(root / "list", [name + suffix for name in many for suffix in ("", ".gz")])
    server = serve_conf({"autoindex": True}, [("s", {"root": root, "precompressed": ("br", "gz")}, {
        "/list/": {}, "/all.js": {}})])
    with server.connect(may_be_chunked=True) as c:
        answer = c.ask("/list/" + query)
    assert ("Transfer-Encoding" in answer) == streamed
    assert shown(answer.body) == want | many


def test_listing_shows_siblings_where_they_are_not_sent(serve_conf, root):
    top = {"autoindex": True}
    server = serve_conf(top, [("s", {"root": root, "names": "s", "precompressed": ("gz",)}, {}),
                              ("t", {"root": root, "names": "t"}, {})])
    for _ in range(2):  # one directory, two pages
        for host, siblings in (("s", []), ("t", ["all.js.gz"])):
            names = shown(server.get("/?format=json", host=host).body)
            assert {"all.js", "all.js.br", "alone.css.gz"} <= names
            assert [name for name in names if name == "all.js.gz"] == siblings
