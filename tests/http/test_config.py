"""The command line, the configuration file, and what is said when they are
wrong: file, line, key, cause."""

import contextlib
import os
import re
import socket

import pytest

import harness
import processes
import strace
from harness import Finished, configuration


def check(tmp_path, text, *args):
    path = tmp_path / "test.conf"
    path.write_text(text.replace("@ROOT@", str(tmp_path)))
    return path, Finished("-t", "-c", path, *args)


SITE = 'site "s" {\n\troot = "@ROOT@"\n}\n'


def test_check_of_a_valid_file_starts_nothing(tmp_path):
    text = 'listen = {"127.0.0.1:1"}\nworkers = 2\n' + SITE
    path, run = check(tmp_path, text)
    assert (run.code, run.err) == (0, "")
    assert str(path) in run.out


def test_byte_order_mark_is_skipped(tmp_path):
    mark = b"\xef\xbb\xbf"
    (tmp_path / "types").write_bytes(mark + b"text/x-first one\n")
    (tmp_path / "more.conf").write_bytes(mark + b"threads = 0\n")
    conf = tmp_path / "test.conf"
    conf.write_bytes(mark + b'mime_types = "types"\n' + SITE.replace("@ROOT@", str(tmp_path)).encode())
    run = Finished("-t", "-c", conf)
    assert (run.code, run.err) == (0, "")
    conf.write_bytes(mark + b'include = {"more.conf"}\n' + SITE.replace("@ROOT@", str(tmp_path)).encode())
    run = Finished("-t", "-c", conf)
    assert run.code == 1 and "more.conf:1: threads: 0 is out of range" in run.err
    conf.write_bytes(b"\xef\xbb")
    assert Finished("-t", "-c", conf).code == 1


def test_sample_configuration_passes(tmp_path):
    sample = os.path.join(harness.TREE, "conf", "pagewise.conf")
    with open(sample) as f:
        text = f.read()
    # Its directories exist on a server, not here.
    text = re.sub(r'^(\s*#?\s*root\s*=\s*)"[^"]*"', r'\1"%s"' % tmp_path, text, flags=re.M)
    path, run = check(tmp_path, text)
    assert (run.code, run.err) == (0, "")


WRONG = [
    # text before a correct site, line, key, a word of the cause
    ("workers = 0\n", 1, "workers", "range"),
    ("\n# comment\nworkers = 0\n", 3, "workers", "range"),
    ("/* two\nlines */\nworkers = 1025\n", 3, "workers", "range"),
    ("workers = many\n", 1, "workers", "number"),
    ("workers = -1\n", 1, "workers", "number"),
    ("threads = 0\n", 1, "threads", "range"),
    ("threads = 99999999999999999999999\n", 1, "threads", "range"),
    ("\nno_such_key = 1\n", 2, "no_such_key", "unknown"),
    ("send_path = \"teleport\"\n", 1, "send_path", "teleport"),
    ("cache = maybe\n", 1, "cache", "maybe"),
    ("autoindex = perhaps\n", 1, "autoindex", "perhaps"),
    ("readahead = 1\n", 1, "readahead", "range"),
    ("readahead = 12Q\n", 1, "readahead", "size"),
    ("head_timeout = 0\n", 1, "head_timeout", "range"),
    ("max_head_size = 10\n", 1, "max_head_size", "range"),
    ('listen = {"127.0.0.1:99999"}\n', 1, "listen", "port"),
    ('listen = {"localhost:80"}\n', 1, "listen", "localhost"),
    ('listen = {"127.0.0.1:81",\n"127.0.0.1:81"}\n', 2, "listen", "twice"),
    ('admin = "*:8081"\n', 1, "admin", "outside"),
    ("log_format = xml\n", 1, "log_format", "xml"),
    ("stall_log = 60001\n", 1, "stall_log", "range"),
    ("busy_poll = 10001\n", 1, "busy_poll", "range"),
    ("tcp_memory = 65G\n", 1, "tcp_memory", "range"),
    ('\nuser = "no-such-user"\n', 2, "user", "no-such-user"),
    ('user = "4294967295"\n', 1, "user", "no user"),
    ('user = nobody\ngroup = "no-such-group"\n', 2, "group", "no-such-group"),
    ("sandbox = maybe\n", 1, "sandbox", "true or false (also on, yes, off, no)"),
    ("keep_fowner = 1\n", 1, "keep_fowner", "true or false"),
    ('chroot = "/no/such/directory"\n', 1, "chroot", "No such file"),
    ('chroot = "/dev/null"\n', 1, "chroot", "Not a directory"),
    ('mime_types = "/no/such/file"\n', 1, "mime_types", "/no/such/file"),
    ('index = {"a/b"}\n', 1, "index", "a/b"),
    ('listing_header = "a/b"\n', 1, "listing_header", "a/b"),
    ('listing_header = "%s"\n' % ("x" * 256), 1, "listing_header", "xxx"),
    ("# none\nlisten = {}\n", 2, "listen", "empty"),
    ('listen = {"127.0.0.1:1", ""}\n', 1, "listen", "empty"),
    ('root = "/"\n', 1, "root", "site"),
    # What shows only when all is set.
    ("\nclient_address = forwarded\n", 2, "client_address", "no proxy is trusted to send client addresses: set "
     "trusted_proxies to the addresses of your "),
    ('trusted_proxies = {}\nclient_address = "forwarded"\n', 2, "client_address", "no proxy is trusted"),
    ('\nclient_address = "x-real-ip"\ntrusted_proxies = {"127.0.0.1"}\n', 2, "client_address",
     '"x-real-ip" is not x-forwarded-for, forwarded or off'),
    ('live = "/up"\nready = "/%75p"\n', 2, "ready", "/up is already used by live"),
    ('\nlive = "/x"\nready = "/x"\nthreads = 2\n', 3, "ready", "already used by live"),
    ('\nlisten = {"127.0.0.1:1",\n"127.0.0.1:2 tls"}\n', 3, "listen", "needs a certificate for clients without SNI"),
    ("\nverify_client = require\nthreads = 2\n", 2, "verify_client", "has no client_ca"),
    ("\nredirect_https = on\nthreads = 2\n", 2, "redirect_https", "no listen address has tls"),
    # What a reload that adds "tls" to an address would read.
    ('\ncertificate = "/no/such/file"\nthreads = 2\n', 2, "certificate", "/no/such/file"),
    ('\nclient_ca = "/no/such/file"\nthreads = 2\n', 2, "client_ca", "/no/such/file"),
]


@pytest.mark.parametrize(
    "listen, admin, shared",
    [
        ("127.0.0.1:8081", "127.0.0.1:8081", True),
        ("0.0.0.0:8081", "127.0.0.1:8081", True),
        ("*:8081", "127.0.0.9:8081", True),
        ("[::]:8081", "[::1]:8081", True),
        ("[::ffff:127.0.0.1]:8081", "127.0.0.1:8081", True),
        ("127.0.0.1:8080", "127.0.0.1:8081", False),
        ("127.0.0.1:8081", "127.0.0.2:8081", False),
        ("0.0.0.0:8081", "[::1]:8081", False),
        ("127.0.0.1:8081", "[::1]:8081", False),
        ("*:0", "127.0.0.1:0", False),
        ("*:8081", "/run/8081", False),
    ],
)
def test_admin_has_an_address_of_its_own(tmp_path, listen, admin, shared):
    for keys in (['listen = "%s"' % listen, 'admin = "%s"' % admin],
                 ['admin = "%s"' % admin, 'listen = "%s"' % listen]):
        path, run = check(tmp_path, "\n".join(keys) + "\n" + SITE)
        assert run.code == (1 if shared else 0)
        assert not shared or run.err == (
            "pagewise: %s:%d: admin: %s is already used by the sites (listen = %s): choose another address\n"
            % (path, keys.index('admin = "%s"' % admin) + 1, admin, listen))


def test_admin_and_the_default_of_listen(tmp_path):
    _, run = check(tmp_path, 'admin = "127.0.0.1:8080"\n' + SITE)
    assert run.code == 1 and "listen = *:8080" in run.err


@pytest.mark.parametrize("text, line, key, cause", WRONG)
def test_error_names_file_line_key_and_cause(tmp_path, text, line, key, cause):
    path, run = check(tmp_path, text + SITE)
    assert run.code == 1
    assert run.err.startswith("pagewise: %s:%d: %s: " % (path, line, key)), run.err
    assert cause in run.err
    assert run.err.count("\n") == 1


NO_BITS = ('"%s" has bits set after the prefix length: write an address (192.0.2.7), a block (192.0.2.0/24, '
           "2001:db8::/32), all")


def each(cause, *values):
    """Rows: a value, and the cause with the value in it."""
    return [(value, cause % value if "%s" in cause else cause) for value in values]


ADDRESSES = [
    *each('"%s" is not an address: write', "", "localhost", "10.0.0.0/33", "10.0.0.0/", "10.0.0", "::1/129",
          "fe80::1%eth0", "127.0.0.1:80"),
    *each(NO_BITS, "10.0.0.1/8", "2001:db8::1/32"),
]

# What keys of a site refuse, and a part of the cause.  A value without quotes is a string.
VALUES = {
    "allow": ADDRESSES,
    "deny": ADDRESSES,
    "charset": each('"%s" is not a character set: write one such as utf-8', "a b", ""),
    "client_rate": [("1", "1 is less than 1K bytes/s"), ("", "the value is empty")],
    "cors": [
        *each('"%s" is not an origin', "a.example", "https://", "https://a.example/", "https://a b", ""),
        *each('"*" stands for all origins', '{"*", "https://a.example"}', '{"https://a.example", "*"}')],
    "burst": [("-1", "-1 is not a size (0 to 64G)")],
    "default_type": each('"%s" is not a media type', "nonsense", "", "a/b c"),
    "digest": [("sha", "is not true or false")],
    "error_page": [
        *each('"%s" is not an error page: write', "404", "", "200 x", "4x x", "40x x", "600 x"),
        ("404 /nope/x", "/nope/x: No such file"), ("404 /", "/: "), ("404 /dev/zero", "/dev/zero: "),
        ("404 text: ", "the text is empty"), ("404 empty", "empty is empty"),
        ("404 large", "larger than 262144 bytes"),
        ('{"404 text:a", "404 text:b"}', "404 is listed twice"),
    ],
    "etag": each('"%s" is not auto, inode, digest or off', "sha", "md5"),
    "expires": each('"%s" is not a time such as 600, 10m, 12h, 30d', "1x", "", "-1", "1d2", "99999999999"),
    "header": [
        *each('write "Name: value"', "X-A", ": x", "X A: x", "-X-A: x", ""),
        (r"X-A: a\r\nX-B: b", "control character"),
        ("Content-Length: 5", "Content-Length is reserved for the server: remove this rule"),
        ("transfer-encoding: chunked", "transfer-encoding is reserved for the server: remove this rule"),
        ("-Date", "Date is reserved for the server: remove this rule"),
        ("Content-Type: text/html", "use types or default_type"),
        ("-ETag", "write etag = off"),
        ("ETag: v1", "is not an entity tag"),
        (r'ETag: \"v1\", \"v2\"', "is not an entity tag"),
        (r'etag: \"' + "x" * 63 + r'\"', "of at most 64 bytes"),
        ("Last-Modified: yesterday", "is not a date"),
        ("always +last-modified: 2025-01-01", "is not a date"),
        ("X-A: " + "x" * 3000, "longer than"),
        ("{%s}" % ", ".join('"+X-A: %d"' % n for n in range(65)), 'site "s": too many header fields: at most 64 fields'),
    ],
    "htpasswd": [("", "the path is empty"), ("/none", "/none: No such file"), (".", "Is a directory")],
    "precompressed": [*each('"%s" is not zst, br or gz', "gzip", ".gz", ""), ('{"br", "br"}', "br is listed twice")],
    "rate": [("x", "x is not a size (0 to 16G)"), ("17G", "17G is out of range (0 to 16G)"),
             ("1023", "1023 is less than 1K bytes/s: write at least 1K, or 0 for no limit")],
    "realm": [("", "is not a realm: write 1 to 128 printable ASCII characters"),
              *each("is not a realm", r"a\"b", r"a\nb", "\u00e4", "x" * 129)],
    "redirect": [
        *each('write "FROM TO" or "FROM TO STATUS"', "/a", "", "/a /b 301 x"),
        *each("301, 302", "/a /b 200", "/a /b 3o1", "/a /b 304"),
        *each("is not a valid path", "/a?x /b", "*?x /b", "/a%zz /b", "/../a /b", "/a/*/../b /c", "/a%2ab /c"),
        *each("one '/'", "/a b", "/a //evil", "/a ftp://x/", "/a* *", "/a javascript:x", "/a $host/"),
        *each("more than one '*'", "/a*b* /c", "*a* /c", "/a* /**"), *each("after the '/'", "/a* https://h*", "/a* https://*/"),
        ("a /b", "does not begin with '/'"), ("/a https:///x", "has no host"), ("/a /*", "but FROM has none"),
        *each("a URI must not contain", r"/a /b\\c", r"/a /b\r\nX:y", "/a /\u00fc"),
        *each("$host", "/a /$host", "/a https://h/$host", "/a https://$hostname/", "/a https://$hots/",
              "/a https://$host$host/"),
        *each("redirects to itself", "/a /a", "/%61 /a"), ('{"/a /b", "/%61 /c"}', "/a is listed twice"),
    ],
    "request_burst": [("0", "0 is out of range (1 to 1000000)")],
    "request_rate": [
        ("10", '"10" is not a rate: write for example 10/s, 30/m or 1000/h'),
        *each('"%s" is not a rate', "0/s", "1/d", "1/", "/s", "1/ss", "1000001/s"), ("9" * 30 + "/s", "is not a rate"),
    ],
    "signed_links": [("", "the path is empty"), ("none", "No such file"), (".", "Is a directory")],
    "trusted_proxies": [('{"::1"}', "is only allowed at the top level")],
    "try": [
        *each('"%s" is not a step: write ', "", "path", "$pat", "$path.html/", "/dir/", "/", "//x", "/../x", "/.x", "/$path",
              "$path$path", "200", "4040", "40", "=200", "400", "==404", "599"),
        *((steps, '"%s": a step must not contain a space: write {%s}\n' % (steps, form)) for steps, form in (
            ("$path /index.html", '"$path", "/index.html"'), ("$path $path/ =404", '"$path", "$path/", "=404"'),
            ("/a  b", '"/a", "b"'))),
        ('{"$path", "404", "/x"}', "the step after 404 is never tried"),
    ],
    "types": [("nonsense foo", "not a media type (type/subtype)"), ("a/b .foo", "write the extension without its dot")],
}
# The same of keys of the top level.
TOP_VALUES = {
    "listen": [("*:8080 proxy", "*:8080 expects PROXY headers, but no proxy is trusted: set trusted_proxies to "
                                "the addresses of your proxies"),
               ("*:8080 proxi", '"proxi" is not an option of an address: write tls, proxy')],
    **dict.fromkeys(("live", "ready"), each('"%s" is not a path', "ready", "", "/a?b", "/%zz", "on")),
    "log_exclude": [
        ('{"/a", "static"}', '"static" is not a path, a glob, or a status'),
        *each('"%s" is not', "6xx", "99", "600", ""), ("/%s*" % ("x" * 200), "at most 128"),
    ],
    "log_fields": [
        ('{"time", "staus"}', '"staus" is not a log field; did you mean status?'),
        ("nonsense", '"nonsense" is not a log field: the fields are time, remote, user, method, '),
        ('{"time", "host", "time"}', "time is listed twice"), ("", '"" is not a log field'), ("{}", "the list is empty"),
    ],
    "log_level": [("debug", '"debug" is not error, warning or notice')],
    "popular": [("1001", "1001 is out of range (0 to 1000)"), *each("%s is not a number (0 to 1000)", "-1", "x")],
    "trusted_proxies": [*each(NO_BITS + " or unix:", "10.1.2.3/8"),
                        ('{"127.0.0.1", "localhost"}', '"localhost" is not an address')],
}
TRUSTED = 'trusted_proxies = {"192.0.2.7", "10.0.0.0/8", "2001:db8::/32", "::1", "unix:", "all"}\n'


def refused(tmp_path, text, key, value, cause):
    for name, size in (("empty", 0), ("large", (256 << 10) + 1)):
        with open(tmp_path / name, "wb") as f:
            f.truncate(size)
    before, after = text.split("@KEY@")
    path, run = check(tmp_path, before + "%s = %s" % (key, value if value[:1] in ("{", '"') else '"%s"' % value) + after)
    line = before.count("\n") + 1
    assert run.code == 1
    assert run.err.startswith("pagewise: %s:%d: %s: " % (path, line, key)) and cause in run.err, run.err


def rows(table):
    return [(key, *row) for key, found in table.items() for row in found]


@pytest.mark.parametrize("key, value, cause", rows(VALUES))
def test_value_that_a_site_refuses_is_named_with_the_cause(tmp_path, key, value, cause):
    refused(tmp_path, 'site "s" {\nroot = "@ROOT@"\n@KEY@\n}\n', key, value, cause)


@pytest.mark.parametrize("key, value, cause", rows(TOP_VALUES))
def test_value_that_is_refused_is_named_with_the_cause(tmp_path, key, value, cause):
    refused(tmp_path, "\n@KEY@\n" + SITE, key, value, cause)


@pytest.mark.parametrize("text", [
    TRUSTED + 'client_address = "X-Forwarded-For"\n' + SITE,
    'types = "a/b; foo"\n' + SITE,  # a parameter, and no extension
])
def test_value_that_may_be_is_taken(tmp_path, text):
    _, run = check(tmp_path, text)
    assert (run.code, run.err) == (0, "")


WRONG_SITES = [
    ('site "s" {\n\troot = "/no/such/directory"\n}\n', 2, "/no/such/directory"),
    ('site "s" {\n\troot = "/etc/passwd"\n}\n', 2, "/etc/passwd"),
    ('site "s" {\n}\n', 1, "root"),
    ('site "s" {\n\troot = ""\n}\n', 2, "empty"),
    ('site "s" {\n\troot = "@ROOT@"\n\tport = 1\n}\n', 3, "port"),
    ('site "s" {\n\troot = "@ROOT@"\n\tworkers = 1\n}\n', 3, "top level"),
    ('site "s" {\n\troot = "@ROOT@"\n\tlocation "video" {\n\t}\n}\n', 3, "video"),
    ('site "s" {\n\troot = "@ROOT@"\n\tlocation "/v/" {\n\t\tcache = x\n\t}\n}\n', 4, "cache"),
    ('site "s" {\n\troot = "@ROOT@"\n\tlocation "/v/" {\n\t\tnames = "a"\n\t}\n}\n', 4, "names"),
    ('site "s" {\n\troot = "@ROOT@"\n\tlocation "/v" {\n\t\talias = "/"\n\t}\n}\n', 4, "alias"),
    ('site "s" {\n\troot = "@ROOT@"\n\tnames = {"a b"}\n}\n', 3, "a b"),
    ('site "s" {\n\troot = "@ROOT@"\n\tdeny = {"10.0.0.0/8",\n"localhost"}\n}\n', 4,
     'deny: "localhost" is not an address: write'),
    ('site "s" {\n\troot = "@ROOT@"\n\tdigest = {}\n}\n', 3, "{: not expected here"),
    ('site "s" {\n\troot = "@ROOT@"\n', 1, "not closed"),
    ('site "s" {\n\troot = "@ROOT@\n}\n', 2, "unterminated string"),
    (
        'site "s" {\n\troot = "@ROOT@"\n\tnames = {"a"}\n}\n'
        'site "t" {\n\troot = "@ROOT@"\n\tnames = {"a"}\n}\n',
        7,
        "names",
    ),
]


@pytest.mark.parametrize("text, line, word", WRONG_SITES)
def test_error_in_a_site_names_its_line(tmp_path, text, line, word):
    path, run = check(tmp_path, text)
    assert run.code == 1
    assert run.err.startswith("pagewise: %s:%d: " % (path, line)), run.err
    assert word in run.err


def test_option_overrides_a_line(tmp_path):
    _, run = check(tmp_path, 'admin = "127.0.0.1:1"\n' + SITE, "--listen", "127.0.0.1:2",
                   "--admin", "127.0.0.1:2")
    assert run.code == 1 and run.err.startswith("pagewise: admin: 127.0.0.1:2 is already"), run.err


def test_access_log_needs_its_directory(tmp_path):
    path, run = check(tmp_path, '\naccess_log = "none/log"\n' + SITE)
    where = "pagewise: %s:2: " % path
    cause = "cannot open the access log %s/none/log: its directory does not exist; create it\n" % tmp_path
    assert (run.code, run.err) == (1, where + cause)
    run = Finished("-c", path, "--listen", "127.0.0.1:0")
    assert (run.code, run.err) == (1, where + cause)
    path, run = check(tmp_path, SITE, "--access-log", "none/log")
    assert run.code == 1 and run.err.startswith("pagewise: cannot open the access log none/log")
    (tmp_path / "none").mkdir()
    path, run = check(tmp_path, '\naccess_log = "none/log"\n' + SITE)
    assert (run.code, run.err) == (0, "") and os.listdir(tmp_path / "none") == []
    path, run = check(tmp_path, '\naccess_log = "none"\n' + SITE)
    assert (run.code, run.err) == (
        1, where + "cannot open the access log %s/none: Is a directory\n" % tmp_path)


def test_command_that_is_nearly_one_is_corrected():
    run = Finished("digset", "/srv")
    assert (run.code, run.err) == (2, "pagewise: digset: unknown command; did you mean digest?\n")
    run = Finished("/srv")
    assert run.code == 2 and "write --root DIR to serve a directory" in run.err


def test_file_without_a_site_is_an_error(tmp_path):
    path, run = check(tmp_path, "workers = 1\n")
    assert run.code == 1
    assert str(path) in run.err and 'site "NAME" { root = "DIR" }' in run.err


@pytest.mark.parametrize("name", ["missing.conf", ""])
def test_file_that_cannot_be_read_is_named(tmp_path, name):
    run = Finished("-t", "-c", tmp_path / name)
    assert run.code == 1
    assert str(tmp_path / name) in run.err


NOT_REGULAR = "is not a regular file, so a reload cannot read it again: copy its contents to a regular file\n"


def made(path, kind):
    if kind == "fifo":
        os.mkfifo(path)
    else:
        os.symlink("/dev/null", path)
    return path


@pytest.mark.parametrize("kind", ["fifo", "device"])
@pytest.mark.parametrize("options", [["-t"], []])
def test_configuration_that_is_no_regular_file_is_refused(tmp_path, kind, options):
    path = made(tmp_path / "test.conf", kind)
    run = Finished(*options, "-c", path)
    assert (run.code, run.err) == (1, "pagewise: %s: %s" % (path, NOT_REGULAR))


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_types_that_are_no_regular_file_are_refused(tmp_path, kind):
    types = made(tmp_path / "types", kind)
    path, run = check(tmp_path, 'mime_types = "%s"\n' % types + SITE)
    assert run.code == 1
    assert run.err == "pagewise: %s:1: mime_types: %s: %s" % (path, types, NOT_REGULAR)


def test_configuration_on_stdin_is_a_file_and_no_pipe(tmp_path):
    path = tmp_path / "test.conf"
    path.write_text(SITE.replace("@ROOT@", str(tmp_path)))
    reader, writer = os.pipe()
    os.write(writer, path.read_bytes())
    os.close(writer)
    run = Finished("-t", "-c", "/dev/stdin", stdin=reader)
    os.close(reader)
    assert (run.code, run.err) == (1, "pagewise: /dev/stdin: " + NOT_REGULAR)
    with open(path, "rb") as f:
        assert Finished("-t", "-c", "/dev/stdin", stdin=f).code == 0


def test_broken_file_starts_nothing(tmp_path):
    path = tmp_path / "test.conf"
    path.write_text("workers = 0\n" + SITE.replace("@ROOT@", str(tmp_path)))
    run = Finished("-c", path)
    assert run.code == 1
    assert "serving" not in run.out
    assert run.err.startswith("pagewise: %s:1: workers: " % path)


# -------------------------------------------------------------- command line


def test_version_names_the_program():
    run = Finished("-V")
    assert (run.code, run.err) == (0, "")
    assert re.match(r"pagewise \d+\.\d+\.\d+", run.out)


def test_help_names_every_option():
    run = Finished("-h")
    assert (run.code, run.err) == (0, "")
    for option in (
        "-c", "-t", "-V", "-h", "--listen", "--root", "--workers", "--send-path",
        "--threads", "--readahead", "--cache", "--access-log", "--autoindex",
        "--log-format", "--stall-log", "--admin", "--hot-set",
    ):
        assert option in run.out


@pytest.mark.parametrize(
    "args, word",
    [
        (["--nonsense"], "--nonsense"),
        (["-x"], "-x"),
        (["--root"], "--root"),
        (["extra", "--root", "/"], "extra"),
        (["--root", "/", "--workers", "none"], "--workers"),
        (["--root", "/", "--send-path", "teleport"], "teleport"),
        (["--root", "/", "--listen", "nowhere"], "--listen"),
        (["--root", "/no/such/directory"], "/no/such/directory"),
        (["--root", "/", "--listen", "1.2.3.4"], "ADDR:PORT"),
        ([], "--root DIR"),
    ],
)
def test_usage_error_exits_with_2_and_says_why(args, word):
    run = Finished(*args)
    assert run.code == 2
    assert word in run.err
    assert run.out == ""


# ------------------------------------------------------------ failing to start


def test_port_in_use_is_named(site):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        run = Finished("--root", site, "--listen", address)
    assert run.code == 1
    assert run.err.startswith("pagewise: ")
    assert address in run.err
    assert os.strerror(98) in run.err  # Address already in use
    assert "serving" not in run.out


@pytest.mark.parametrize("key", ["admin", "agent"])
def test_port_in_use_by_admin_or_agent_is_named_in_one_line(tmp_path, site, key):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        path = tmp_path / "test.conf"
        path.write_text('listen = "127.0.0.1:0"\n%s = "%s"\nsite "s" {\n\troot = "%s"\n}\n' % (key, address, site))
        run = Finished("-c", path)
    assert run.code == 1
    assert re.fullmatch(r"pagewise: .*%s: %s.*\n" % (re.escape(address), os.strerror(98)), run.err), run.err


def test_two_servers_cannot_share_a_port(serve, site):
    """SO_REUSEPORT is for the workers of one server."""
    address = "127.0.0.1:%d" % serve("--root", site).address[1]
    run = Finished("--root", site, "--listen", address)
    assert run.code == 1
    assert address in run.err


@pytest.mark.skipif(not processes.PROC, reason="a bound socket cannot begin to share its port there")
@pytest.mark.needs("strace")
def test_servers_that_start_together_cannot_share_a_port(site, release):
    """Each takes its time between the calls of its sockets."""
    if strace.why_not():
        pytest.skip(strace.why_not())
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = "127.0.0.1:%d" % free.getsockname()[1]
    slow = [*strace.STRACE, "/dev/null", "-e", "trace=setsockopt", "-e", "inject=setsockopt:delay_enter=200000"]
    with contextlib.ExitStack() as all_of_them:
        servers = [harness.Server("--root", site, "--workers", "1", "--listen", address, binary=release, wrapper=slow)
                   for _ in range(3)]
        for server in servers:
            all_of_them.callback(server.discard)
        harness.wait_until(lambda: all(not s.running or harness.SERVING.search(s.output) for s in servers),
                           "each to serve or end")
        assert sum(s.running for s in servers) == 1


def tried(take):
    try:
        return take()
    except OSError:
        return None


def test_another_address_of_ours_with_that_port_makes_no_difference(serve, site):
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def is_free():
            """Another test may have the port at 127.0.0.1."""
            free.bind(("127.0.0.1", serve("--root", site, "--listen", "127.0.0.3:0").address[1]))
            return free.getsockname()[1]

        port = next(filter(None, (tried(is_free) for _ in range(10))))
        run = Finished("--root", site, "--listen", "127.0.0.1:%d" % port,
                       "--listen", "127.0.0.3:%d" % port)
    assert run.code == 1
    assert "127.0.0.3:%d" % port in run.err and "another program listens on this" in run.err


def test_access_log_that_cannot_be_opened_is_named(site, tmp_path):
    path = tmp_path / "missing" / "access.log"
    run = Finished("--root", site, "--listen", "127.0.0.1:0", "--access-log", path)
    assert run.code == 1
    assert str(path) in run.err


def test_address_of_another_machine_is_named(site):
    run = Finished("--root", site, "--listen", "192.0.2.1:0")
    assert run.code == 1
    assert "192.0.2.1:0" in run.err


def test_written_configuration_is_read_back(tmp_path):
    """The suite's own servers depend on it."""
    text = configuration({"workers": 1}, [("s", {"root": '@ROOT@'}, {"/a/": {"autoindex": True}})])
    path, run = check(tmp_path, text)
    assert (run.code, run.err) == (0, "")
