"""Links that are good until a time, for clients that have one: signed_links, pagewise sign."""

import base64
import hashlib
import hmac
import os
import re
import signal
import time
import urllib.parse

import pytest

from harness import Finished, checked, wait_until

OTHER = "127.0.0.2"
KEYS = ["k" * 32, "0123456789abcdef" * 4, "x" * 256]
LATER = 4_000_000_000  # seconds since the epoch


def signature(path, expires, key=KEYS[0], client=""):
    """As docs/reference/conf-access.md says, by another library."""
    text = "pagewise link 1\n%s\n%s\n" % (expires, client)
    mac = hmac.new(key.encode(), text.encode() + path.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(mac).decode().rstrip("=")


def link(path, expires=LATER, key=KEYS[0], client="", more=""):
    query = "expires=%s" % expires + (f"&client={client}" if client else "")
    return "%s?%s&signature=%s%s" % (
        urllib.parse.quote(path), query,
        signature(path, expires, key, urllib.parse.unquote(client)), more)


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys"
    path.write_text("# new\n%s\n\n# old\n%s\n" % (KEYS[0], KEYS[1]))
    path.chmod(0o600)
    return path


@pytest.fixture
def root(tmp_path):
    top = tmp_path / "site"
    (top / "v" / "dir").mkdir(parents=True)
    for name in ("a.txt", "v/a.txt", "v/b c é.txt", "v/dir/a.txt"):
        (top / name).write_text("text of " + name)
        os.utime(top / name, (1_600_000_000, 1_600_000_000))
    return top


@pytest.fixture
def server(serve_conf, root, keys):
    return serve_conf({}, [("s", {"root": root, "autoindex": True},
                            {"/v/": {"signed_links": keys}})])


def ask(server, target, source="127.0.0.1", method="GET", **kw):
    with server.connect(source=source) as c:
        answer = c.ask(target, method, **kw)
        c.finish(answer)
        return answer


def test_a_signed_link_is_valid_until_it_expires(server):
    for _ in range(3):
        assert server.get("/v/a.txt").status == 403
        answer = server.get(link("/v/a.txt"))
        assert (answer.status, answer.body) == (200, b"text of v/a.txt")
        assert server.get("/a.txt").status == 200
    assert server.get(link("/v/a.txt", int(time.time()) + 600)).status == 200
    assert server.get(link("/v/a.txt", int(time.time()) - 1)).status == 410
    assert server.get(link("/v/a.txt", 1)).status == 410


def test_it_expires_between_two_requests(server):
    expires = int(time.time()) + 2
    target = link("/v/a.txt", expires)
    while server.get(target).status == 200:
        assert time.time() < expires + 30
    assert server.get(target).status == 410


def test_every_response_needs_a_signed_link(server):
    for fields, status in (((), 200), ([("Range", "bytes=0-1")], 206),
                           ([("If-None-Match", "*")], 304), ([("Range", "bytes=99-")], 416)):
        assert server.get(link("/v/a.txt"), fields=fields).status == status
        assert server.get("/v/a.txt", fields=fields).status == 403
    for target, status in (("/v/none", 404), ("/v/dir", 301), ("/v/dir/", 200), ("/v/.x", 404)):
        assert server.get(target).status == 403
        assert server.get(link(target)).status == status
    assert ask(server, link("/v/a.txt"), method="HEAD").status == 200
    assert ask(server, "/v/a.txt", method="HEAD").status == 403


def test_options_needs_no_signed_link(server):
    assert ask(server, "/v/a.txt", method="OPTIONS").status == 204


def test_only_listed_keys_are_valid(server):
    assert server.get(link("/v/a.txt", key=KEYS[1])).status == 200
    assert server.get(link("/v/a.txt", key=KEYS[2])).status == 403


def test_keys_with_a_byte_order_mark(keys, server):
    keys.write_bytes(b"\xef\xbb\xbf" + KEYS[2].encode() + b"\r\n")
    server.reload()
    assert server.get(link("/v/a.txt", key=KEYS[2])).status == 200


def test_the_decoded_path_is_signed(server):
    target = link("/v/b c é.txt")
    assert "%20c%20" in target
    assert server.get(target).status == 200
    good = link("/v/a.txt")
    for same in ("/v//a.txt", "/v/./a.txt", "/%76/a.txt", "/v/x/../a.txt"):
        assert server.get(good.replace("/v/a.txt", same)).status == 200
    for other in ("/v/dir/a.txt", "/v/a.txt/", "/v/A.txt", "/v/a.tx", "/v/a.txt%00"):
        assert server.get(good.replace("/v/a.txt", other)).status in (400, 403)


def test_the_rest_of_a_query_is_not_signed(server):
    assert server.get(link("/v/dir/", more="&format=json")).get("Content-Type") == "application/json"
    assert server.get(link("/v/a.txt", more="&&x")).status == 200
    assert server.get(link("/v/a.txt").replace("?", "?a=b&")).status == 200


def test_changed_links_are_refused(server):
    good = link("/v/a.txt", client="127.0.0.0/8")
    assert server.get(good).status == 200
    where = good.index("?") + 1
    for i in range(where, len(good)):
        for c in "0A-&=%":
            bad = good[:i] + c + good[i + 1:]
            if bad != good:
                assert server.get(bad).status == 403, bad
        assert server.get(good[:i] + good[i + 1:]).status == 403
    for more in ("&expires=1", "&expires=%d" % LATER, "&client=all", "&signature=x"):
        assert server.get(good + more).status == 403, more


@pytest.mark.parametrize("expires", ["0%d" % LATER, "", "-1", "+1", "1e9", "4" * 12, "all"])
def test_a_time_is_written_in_one_way(server, expires):
    assert server.get(link("/v/a.txt", expires)).status == 403


def test_a_field_cannot_flow_into_the_next_one(server):
    """The same text, cut in another way."""
    good = signature("/v/a.txt", LATER, client="127.0.0.1")
    for client in ("127.0.0.1%0A", "", "127.0.0.1%0A%2Fv"):
        target = "/v/a.txt?expires=%d&client=%s&signature=%s" % (LATER, client, good)
        assert server.get(target).status == 403


def test_a_link_for_some_clients(server):
    for client, statuses in (("127.0.0.1", (200, 403)), ("127.0.0.2", (403, 200)),
                             ("127.0.0.0/8", (200, 200)), ("127.0.0.0%2f8", (200, 200)),
                             ("::ffff:127.0.0.1", (200, 403)), ("%3A%3Affff%3A7f00%3A1", (200, 403)),
                             ("10.0.0.0/8", (403, 403)), ("nobody", (403, 403))):
        target = link("/v/a.txt", client=client)
        for _ in range(2):
            assert tuple(ask(server, target, source).status
                         for source in ("127.0.0.1", OTHER)) == statuses, client
    assert ask(server, link("/v/a.txt", 1, client="10.0.0.1")).status == 403


def test_shared_caches_get_private(serve_conf, root, keys):
    site = {"root": root, "signed_links": keys}
    server = serve_conf({}, [("s", site, {"/v/dir/": {"expires": "1h"}})])
    assert server.get(link("/a.txt")).get("Cache-Control") == "private"
    assert server.get(link("/v/dir/a.txt")).get("Cache-Control") == "max-age=3600"
    assert "Cache-Control" not in server.get("/a.txt")


def test_reload_takes_new_keys_and_keeps_the_old_ones_if_they_are_bad(server, keys):
    old, new = link("/v/a.txt", key=KEYS[1]), link("/v/a.txt", key=KEYS[2])
    assert (server.get(old).status, server.get(new).status) == (200, 403)
    keys.write_text("short\n")
    server.signal(signal.SIGHUP)
    wait_until(lambda: "the old configuration stays in use" in server.messages, "the refusal")
    assert "keys:1: a key must have 32 to 256 characters" in server.messages
    assert server.get(old).status == 200
    keys.write_text(KEYS[2])
    server.reload()
    assert (server.get(old).status, server.get(new).status) == (403, 200)
    server.stop(messages=True)


def test_off_turns_the_key_off(serve_conf, root, keys):
    server = serve_conf({"signed_links": keys}, [("s", {"root": root}, {"/v/": {"signed_links": "off"}})])
    assert (server.get("/a.txt").status, server.get("/v/a.txt").status) == (403, 200)


# ------------------------------------------------------------- bad files


@pytest.mark.parametrize("text, cause", [
    ("", ": has no key: create one with openssl rand -hex 32"),
    ("# only this\n", ": has no key"),
    ("\n\nshort\n", ":3: a key must have 32 to 256 characters"),
    ("x" * 257, ":1: a key must have 32 to 256 characters"),
    ("x" * 40 + " y\n", ":1: a key must be visible ASCII characters"),
    ("é" * 40 + "\n", ":1: a key must be visible ASCII characters"),
    ("x" * 40 + "\n" + "\0" * 40, ": contains a NUL byte: save the file as ASCII or UTF-8"),
    ("".join("%040d\n" % n for n in range(9)), ":9: more than 8 keys"),
])
def test_a_bad_file_of_keys_is_an_error(tmp_path, keys, text, cause):
    keys.write_text(text)
    run = checked(tmp_path, 'site "s" {\nroot = "/"\nsigned_links = "keys"\n}\n')
    assert run.code == 1 and f":3: signed_links: {keys}{cause}" in run.err, run.err


def test_a_file_that_others_can_read_is_an_error(tmp_path, keys):
    conf = tmp_path / "p.conf"
    conf.write_text('site "s" {\nroot = "/"\nsigned_links = "keys"\n}\n')
    for mode, code in ((0o600, 0), (0o400, 0), (0o640, 0), (0o644, 1), (0o620, 1), (0o602, 1)):
        keys.chmod(mode)
        run = Finished("-t", "-c", str(conf))
        assert run.code == code
        assert code == 0 or ":3: signed_links: %s: other users can read or write it: chmod 600" % keys in run.err


# ------------------------------------------------------------ pagewise sign


def signed(keys, *args):
    run = Finished("sign", "--key", keys, *args)
    assert (run.code, run.err) == (0, ""), run.err
    return run.out.splitlines()


def test_sign_prints_valid_links(server, keys):
    at = "@%d" % LATER
    assert signed(keys, "--expires", at, "/v/a.txt") == [link("/v/a.txt")]
    assert signed(keys, "--expires", at, "--client", "127.0.0.0/8", "/v/a.txt") == [
        link("/v/a.txt", client="127.0.0.0/8")]
    for text in signed(keys, "/v/a.txt", "/v/b c é.txt", "/v/b%20c%20%c3%a9.txt", "/v/dir/?format=json",
                       "http://example.org/v/a.txt#top"):
        target = re.sub("^http://[^/]*|#.*", "", text)
        assert server.get(target).status == 200, text
    origin, _, _ = signed(keys, "https://example.org")[0].partition("?")
    assert origin == "https://example.org/"


def test_sign_sets_the_expiry(keys):
    for text, seconds in (((), 3600), (("--expires", "90"), 90), (("--expires", "2d"), 172800)):
        before = int(time.time())
        expires = int(re.search(r"expires=(\d+)", signed(keys, *text, "/a")[0]).group(1))
        assert before + seconds <= expires <= time.time() + seconds


@pytest.mark.parametrize("args, code, cause", [
    (("/a",), 2, "usage: pagewise sign"),
    (("--key", "KEYS"), 2, "usage: pagewise sign"),
    (("--key", "KEYS", "--bad", "/a"), 2, "usage: pagewise sign"),
    (("--key", "/none", "/a"), 1, "pagewise: sign: key: /none: No such file"),
    (("--key", "KEYS", "a"), 1, "pagewise: sign: a: invalid URL"),
    (("--key", "KEYS", "/a?b=c&expires=1"), 1, "a link can be signed only once"),
    (("--key", "KEYS", "/a?signature=x"), 1, "a link can be signed only once"),
    (("--key", "KEYS", "/a?client=::1"), 1, "a link can be signed only once"),
    (("--key", "KEYS", "/%zz"), 1, "pagewise: sign: /%zz: invalid URL"),
    (("--key", "KEYS", "--expires", "0", "/a"), 1, "pagewise: sign: 0: invalid time"),
    (("--key", "KEYS", "--expires", "x", "/a"), 1, "pagewise: sign: x: invalid time"),
    (("--key", "KEYS", "--expires", "@" + "9" * 12, "/a"), 1, "invalid time"),
    (("--key", "KEYS", "--client", "me", "/a"), 1, 'pagewise: sign: "me" is not an address: write an address'),
    (("--key", "KEYS", "--client", "10.0.0.1/8", "/a"), 1,
     'sign: "10.0.0.1/8" has bits set after the prefix length: write'),
])
def test_sign_reports_errors(keys, args, code, cause):
    run = Finished("sign", *(str(keys) if a == "KEYS" else a for a in args))
    assert (run.code, run.out) == (code, "") and cause in run.err, run.err


def test_sign_has_a_help():
    run = Finished("sign", "--help")
    assert (run.code, run.err) == (0, "") and run.out.startswith("usage: pagewise sign")
