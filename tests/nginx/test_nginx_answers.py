"""Whatever nginx answers without the module, it answers with it."""

import gzip
import hashlib
import itertools
import os
import re
import subprocess

import pytest

import harness
import mounts
import nginx_server
import tree as t

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("nginx")]
SIZES = {"empty": 0, "one": 1, "page.txt": 4097, "edge": 65537, "window": 524288,
         "large": t.MIB + 3, "largest": 5 * t.MIB + 1}
PREFIXES = {
    "plain": "",
    "gzip": "gzip on; gzip_types *; gzip_min_length 0;",
    "static": "gzip_static on;",
    "sub": "sub_filter a b; sub_filter_types *;",
    "ssi": "ssi on; ssi_types *;",
    "copy": "sendfile off;",
    "threads": "aio threads;",
    "directio": "directio 4k; aio threads;",
    "fields": "expires 1h; add_header X-A b always; etag off;",
    "chunk": "sendfile_max_chunk 32k; tcp_nopush off;",
    "rate": "limit_rate 20m; limit_rate_after 100k;",
    "small": "output_buffers 1 4k; postpone_output 0;",
    "slice": "slice 100k;",
    "after": "add_after_body /plain/page.txt; addition_types *;",
    "links": "disable_symlinks on;",
    "missing": "error_page 404 /plain/page.txt;",
    "ahead": "pagewise_readahead 64k;",
    "drop": "pagewise_cache drop;",
    "auto": "pagewise_cache auto;",
}
SERVER = """server {
	listen unix:@%(name)s@;
	listen unix:@%(name)s.h2@ http2;
	listen unix:@%(name)s.tls@ ssl http2;
	ssl_certificate %(run)s/c.pem;
	ssl_certificate_key %(run)s/k.pem;
	root %(root)s;
	%(more)s
	location = /loop { try_files /nothing /plain/one; }
	location /listed/ { alias %(root)s/; autoindex on; autoindex_exact_size on; }
	location /dav/ { alias %(root)s/; dav_methods PUT; }
	%(locations)s
}"""
DATE = "Thu, 02 Jan 2020 03:04:05 GMT"
FIELDS = [
    (),
    ("Range: bytes=0-0",),
    ("Range: bytes=1-70000",),
    ("Range: bytes=-5",),
    ("Range: bytes=65536-",),
    ("Range: bytes=10-20,4000-5000,65000-70000,-3",),
    ("Range: bytes=0-0,2-2",),
    ("Range: bytes=9999999-",),
    ("Range: bytes=5-2",),
    ("If-Modified-Since: " + DATE,),
    ("If-Modified-Since: Thu, 02 Jan 2003 03:04:05 GMT",),
    ("If-Unmodified-Since: Thu, 02 Jan 2003 03:04:05 GMT",),
    ('If-None-Match: "x"',),
    ("If-None-Match: *",),
    ('If-Match: "x"',),
    ("If-Range: " + DATE, "Range: bytes=2-4"),
    ('If-Range: "x"', "Range: bytes=2-4"),
    ("Accept-Encoding: gzip",),
]
OTHERS = ["/", "/plain", "/plain/", "/plain/nothing", "/plain/dir", "/plain/dir/", "/plain/dir?a=b",
          "/plain/dir/index.html", "/plain/a%20name", "/plain/%C3%A4", "/plain/per%25cent",
          "/plain/dir/../one", "/plain//one", "/plain/one/", "/plain/one/two", "/plain/round",
          "/plain/fifo", "/plain/link", "/plain/absolute", "/plain/" + "x" * 300, "/loop",
          "/plain/bare/", "/plain/bare", "/listed/", "/listed/one", "/listed/dir/", "/dav/one",
          "/missing/nothing", "/links/link", "/links/one", "/plain/indexes/", "/plain/has%20dir"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    for seed, (name, size) in enumerate(SIZES.items()):
        t.write(root / name, t.content(seed, size))
    for name in ("a name", "\u00e4", "per%cent"):
        t.write(root / name, name.encode())
    t.write(root / "large.gz", gzip.compress(t.content(5, t.MIB + 3), mtime=0))
    for name in ("dir", "bare", "indexes", "has dir"):
        (root / name).mkdir()
        os.utime(root / name, (t.MTIME, t.MTIME))
    t.write(root / "dir" / "index.html", b"<p>index")
    (root / "indexes" / "index.html").mkdir()
    os.symlink("one", root / "link")
    os.symlink(root / "one", root / "absolute")
    os.symlink("round", root / "round")
    os.mkfifo(root / "fifo")
    return root


@pytest.fixture(scope="module")
def both(start_nginx, root, tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("certificate")
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", tmp_path / "k.pem", "-out", tmp_path / "c.pem", "-days", "2",
         "-subj", "/CN=localhost"], capture_output=True, check=False)
    assert made.returncode == 0, made.stderr
    locations = "".join("location /%s/ { alias %s/; %s }\n" % (name, root, text)
                        for name, text in PREFIXES.items())
    words = {"run": tmp_path, "root": root, "locations": locations}
    return start_nginx(SERVER % {"name": "off", "more": "", **words} +
                 SERVER % {"name": "on", "more": "pagewise on; pagewise_index index.html;", **words})


def normal(answer):
    """Without what two answers of one server differ in: a time, the name of a boundary."""
    fields = [(n, "" if n in ("Date", "Expires") else re.sub(r"boundary=\d+", "boundary=N", v))
              for n, v in answer.fields]
    body = re.sub(rb"\r\n--\d{20}", b"\r\n--N", answer.body)
    return answer.status, fields, len(body), hashlib.sha256(body).hexdigest()


def same(server, target, method="GET", fields=()):
    with_it, without = (normal(server.get(name, target, method, fields)) for name in ("on", "off"))
    assert with_it == without, (method, target, fields)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_file_is_answered_the_same(both, root, prefix):
    for name in SIZES:
        for fields in FIELDS if name in ("page.txt", "large") else FIELDS[:4]:
            same(both, "/%s/%s" % (prefix, name), fields=fields)
        same(both, "/%s/%s" % (prefix, name), "HEAD")
        mounts.drop(root / name)
        same(both, "/%s/%s" % (prefix, name))


def test_what_is_no_file_is_answered_the_same(both):
    for target in OTHERS:
        for method in ("GET", "HEAD", "POST", "PUT", "OPTIONS"):
            if method != "PUT" or not target.startswith("/dav"):
                same(both, target, method, ("Content-Length: 0",))


def test_a_request_with_a_body_is_answered_the_same(both):
    for name in ("on", "off"):
        s = both.connect(name)
        s.sendall(nginx_server.request("/plain/one", fields=("Content-Length: 5",), close=False))
        s.sendall(b"12345" + nginx_server.request("/plain/page.txt"))
        first, second = s.makefile("rb"), None
        data = first.read()
        first.close()
        s.close()
        assert data.count(b"HTTP/1.1 200") == 2, (name, data[:200], second)


def test_pipelined_requests_are_answered_in_order(both, root):
    def ask(name):
        with both.connect(name) as s:
            names = ["one", "large", "nothing", "empty", "edge", "dir/", "window", "page.txt"]
            mounts.drop(root / "large")
            s.sendall(b"".join(nginx_server.request("/plain/" + n, close=n == names[-1])
                               for n in names))
            with s.makefile("rb") as f:
                return re.sub(rb"Date: [^\r]*", b"", f.read())

    assert ask("on") == ask("off")


def curl(server, name, target, *options):
    scheme = "https" if name.endswith("tls") else "http"
    done = subprocess.run(
        ["curl", "-sk", "--unix-socket", server.path(name), "-m", str(int(harness.PATIENCE)),
         *options, "%s://localhost%s" % (scheme, target)], capture_output=True, check=False)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.parametrize("listen,options", [
    ("h2", ["--http2-prior-knowledge"]), ("tls", ["--http2"]), ("tls", ["--http1.1"])])
def test_the_same_comes_by_http2_and_tls(both, root, listen, options):
    for name, prefix in itertools.product(("page.txt", "largest"), ("plain", "gzip", "threads")):
        for more in ([], ["-r", "1-70000"]):
            mounts.drop(root / name)
            got = curl(both, "on." + listen, "/%s/%s" % (prefix, name), *options, *more)
            want = curl(both, "off." + listen, "/%s/%s" % (prefix, name), *options, *more)
            assert got == want, (listen, prefix, name, more)


def test_a_listed_directory_and_a_redirect_of_the_index_are_nginx_own(both):
    assert b"dir/" in both.get("on", "/listed/").body
    assert both.get("on", "/plain/dir/").body == b"<p>index"
    assert both.get("on", "/plain/indexes/").status == both.get("off", "/plain/indexes/").status


def test_the_wait_is_in_the_log(both, root):
    mounts.drop(root / "largest")
    both.get("on", "/plain/largest?log")
    both.get("off", "/plain/largest?log")
    harness.wait_until(lambda: both.log().count("?log") == 2, "two lines")
    with_it, without = (line for line in both.log().splitlines() if "?log" in line)
    assert re.search(r" 200 \d+ \d+\.\d{3}$", with_it)
    assert without.endswith(" -")


@pytest.mark.parametrize("text,why", [
    ("pagewise_cache sometimes;", 'invalid value "sometimes"'),
    ("pagewise_readahead 1k;", 'is neither "auto" nor a size of at least 64k'),
    ("pagewise_readahead 1m; pagewise_readahead 1m;", "is duplicate"),
    ("pagewise_index /a;", '"/a" is not a file name'),
    ("pagewise_index $uri;", '"$uri" is not a file name'),
    ("pagewise_threads 0;", "value must be"),
    ("pagewise maybe;", 'it must be "on" or "off"'),
])
def test_a_directive_that_is_wrong_is_refused(tmp_path, text, why):
    reason = nginx_server.why_not()
    if reason:
        pytest.skip(reason)
    code, said = nginx_server.Nginx(tmp_path, text).test()
    assert code != 0
    assert why in said
