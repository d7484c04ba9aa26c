"""No target leads outside of the root, whatever it is made of, nor a redirect to another host."""

import os
import re
import unicodedata

import pytest

import tree as t
from harness import request
from path_corpus import CORPUS

# A path of this server: what follows the first slash is no host to any browser.
LOCATION = re.compile(r"/([^/\\][\x21-\x5b\x5d-\x7e]*)?\Z")
TOGETHER = 20


def answers(server, targets):
    """Each on a connection that lasts as long as it may; (target, response) pairs."""
    c, result = server.connect(), []
    for target in targets:
        response = c.ask(target)
        result.append((target, response))
        if response.closes:
            c.finish(response)
            c = server.connect()
    c.finish()
    return result


def no_canary(target, response):
    assert t.CANARY not in response.raw, target
    assert t.CANARY not in response.body, target
    assert b"root:x:0" not in response.body, target


def check_location(target, location):
    path, _, query = location.partition("?")
    assert LOCATION.match(path), (target, location)
    assert "\r" not in query and "\n" not in query


def check(server, rows):
    found = answers(server, [target for target, _ in rows])
    for (target, response), (_, statuses) in zip(found, rows):
        no_canary(target, response)
        assert response.status in statuses, (target, response)
        if "Location" in response:
            check_location(target, response.get("Location"))


def test_no_target_leaves_the_root(server):
    assert len(CORPUS) > 1000
    check(server, CORPUS)


def test_no_target_leaves_the_root_when_repeated(server):
    """From whatever is remembered: open files, names that are not there, ready answers."""
    rows = [row for row in CORPUS if "links" in row[0] or row[1] == {200}]
    assert len(rows) > 80
    check(server, rows * 2)


def test_listings_do_not_name_what_is_outside(listing):
    targets = [target for target, statuses in CORPUS if statuses != {400}]
    for target, response in answers(listing, targets):
        no_canary(target, response)
        assert response.status != 200 or b"<title>Index of /outside" not in response.body


def test_listing_does_not_describe_targets_outside(listing):
    """Neither its size nor its date, nor whether it is a directory; the row of a file has both."""
    text = listing.get("/links/").body.decode("utf-8", "surrogateescape")
    rows = dict(re.findall(r'<a href="([^"]*)" dir=auto>[^<]*</a>(.*)\n', text))
    for name in ["4097.bin", "same-dir"]:
        assert re.fullmatch(r'<td><time datetime=\S+>[-0-9: ]+</time> <td title="4097 bytes">4.0\u00a0KiB', rows[name])
    assert rows["dir-inside/"].endswith("<td>-")
    for name in ["outside-relative", "outside-dir", "proc-root", "dangling"]:
        assert rows[name] == ""


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_are_bytes_and_not_normalised(serve, site, form):
    """Two ways to write one text are two names."""
    name = unicodedata.normalize(form, "\u00e9\u00fc.txt")
    other = unicodedata.normalize({"NFC": "NFD", "NFD": "NFC"}[form], name)
    (site / name).write_bytes(form.encode())
    server = serve("--root", site)
    assert server.get("/" + t.percent(name.encode())).body == form.encode()
    assert server.get("/" + t.percent(other.encode())).status == 404


def test_link_that_is_the_root_itself_confines_as_well(serve, tree, tmp_path):
    (tmp_path / "link").symlink_to(tree.root)
    check(serve("--root", tmp_path / "link", "--workers", "1"), CORPUS)


@pytest.mark.parametrize("dots", [False, True])
@pytest.mark.slow
def test_dotfiles_that_are_served_open_no_way_out(serve_conf, tree, dots):
    server = serve_conf({"dotfiles": dots, "autoindex": True, "workers": 1}, [("s", {"root": tree.root}, {})])
    for target, response in answers(server, [target for target, _ in CORPUS]):
        no_canary(target, response)


def test_request_fields_open_no_way_out(plain):
    """Names of paths in fields that proxies and frameworks obey are nothing here."""
    for field in ["X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Prefix", "X-Accel-Redirect", "X-Sendfile", "Destination",
                  "Referer", "Content-Location"]:
        response = plain.get("/4097.bin", fields={field: "/../outside/secret.txt"})
        no_canary(field, response)
        assert (response.status, response.length) == (200, 4097)


def test_special_files_are_refused_below_a_link_as_well(plain, tree):
    link = tree.path("links/special")
    os.symlink("../special", link)
    try:
        with plain.connect() as c:
            for name in ["fifo", "socket"]:
                c.send(request("/links/special/" + name))
                assert c.response().status == 403
            c.finish()
    finally:
        os.unlink(link)
