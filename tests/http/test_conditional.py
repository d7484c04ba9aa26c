"""Conditional requests in the order of RFC 9110, section 13.2.2."""

import time

import pytest

import tree as t
from responses import http_date

FILE = "/4097.bin"

NOW = http_date(t.MTIME)
BEFORE = http_date(t.MTIME - 1)
AFTER = http_date(t.MTIME + 86400)
FUTURE = http_date(time.time() + 86400)
OTHER = '"other"'
# E stands for the current entity tag, W for its weak form.
E, W = "<E>", "<W>"

IM, INM = "If-Match", "If-None-Match"
IMS, IUS = "If-Modified-Since", "If-Unmodified-Since"

TABLE = [
    # If-Match: strong comparison
    ({IM: E}, 200),
    ({IM: "*"}, 200),
    ({IM: OTHER}, 412),
    ({IM: W}, 412),
    ({IM: OTHER + ", " + E}, 200),
    ({IM: OTHER + "," + E}, 200),
    ({IM: "W/" + OTHER + " , " + E}, 200),
    ({IM: OTHER + ', "another"'}, 412),
    # If-Unmodified-Since
    ({IUS: NOW}, 200),
    ({IUS: AFTER}, 200),
    ({IUS: FUTURE}, 200),
    ({IUS: BEFORE}, 412),
    ({IUS: "garbage"}, 200),
    # If-Match comes first; with it If-Unmodified-Since is ignored
    ({IM: E, IUS: BEFORE}, 200),
    ({IM: OTHER, IUS: AFTER}, 412),
    # If-None-Match: weak comparison
    ({INM: E}, 304),
    ({INM: W}, 304),
    ({INM: "*"}, 304),
    ({INM: OTHER}, 200),
    ({INM: OTHER + ", " + E}, 304),
    ({INM: OTHER + ",, " + W}, 304),
    # A comma within an entity tag separates nothing.
    ({INM: '"a,b", ' + E}, 304),
    ({INM: '"a,' + OTHER[1:] + ", " + E}, 304),
    # If-Modified-Since
    ({IMS: NOW}, 304),
    # A date of another version: a mirror may go back to an older one.
    ({IMS: AFTER}, 200),
    ({IMS: BEFORE}, 200),
    ({IMS: FUTURE}, 200),
    ({IMS: "garbage"}, 200),
    ({IMS: "Thursday, 02-Jan-20 03:04:05 GMT"}, 304),
    ({IMS: "Thu Jan  2 03:04:05 2020"}, 304),
    # The name of the day need not be that of the date.
    ({IMS: "Mon, 02 Jan 2020 03:04:05 GMT"}, 304),
    ({IMS: "Monday, 02-Jan-20 03:04:05 GMT"}, 304),
    ({IMS: "Mon Jan  2 03:04:05 2020"}, 304),
    ({IUS: "Mon, 02 Jan 2020 03:04:04 GMT"}, 412),
    ({IMS: "Day, 02 Jan 2020 03:04:05 GMT"}, 200),
    ({IMS: "Thu, 02 Jan 2020 03:04:05"}, 200),
    ({IMS: "Fri, 31 Feb 2020 03:04:05 GMT"}, 200),
    # If-None-Match comes first; with it If-Modified-Since is ignored
    ({INM: OTHER, IMS: NOW}, 200),
    ({INM: OTHER, IMS: AFTER}, 200),
    ({INM: E, IMS: BEFORE}, 304),
    # the first pair before the second
    ({IM: OTHER, INM: E}, 412),
    ({IM: E, INM: E}, 304),
    ({IM: E, INM: OTHER}, 200),
    ({IUS: BEFORE, INM: E}, 412),
    ({IUS: BEFORE, IMS: NOW}, 412),
    ({IUS: NOW, IMS: NOW}, 304),
    ({IM: OTHER, IMS: NOW}, 412),
    # Range comes last
    ({INM: E, "Range": "bytes=0-1"}, 304),
    ({IM: OTHER, "Range": "bytes=0-1"}, 412),
    ({IM: E, "Range": "bytes=0-1"}, 206),
    ({IUS: NOW, "Range": "bytes=0-1"}, 206),
    ({IMS: NOW, "Range": "bytes=0-1"}, 304),
    ({INM: OTHER, "Range": "bytes=0-1"}, 206),
    ({IM: OTHER, "Range": "bytes=9999999-"}, 412),
    ({IM: E, "Range": "bytes=9999999-"}, 416),
    ({IM: E, "If-Range": OTHER, "Range": "bytes=0-1"}, 200),
    ({IM: E, "If-Range": E, "Range": "bytes=0-1"}, 206),
]


def fill(fields, tag):
    return {n: v.replace(E, tag).replace(W, "W/" + tag) for n, v in fields.items()}


@pytest.mark.parametrize("fields, status", TABLE)
def test_precedence(plain, tree, fields, status):
    tag = plain.get(FILE, "HEAD").get("ETag")
    response = plain.get(FILE, fields=fill(fields, tag))
    assert response.status == status
    assert not response.closes
    if status == 200:
        assert response.body == tree.files[FILE]
    if status == 206:
        assert response.body == tree.files[FILE][:2]


@pytest.mark.parametrize("fields, status", TABLE)
def test_precedence_with_head(plain, fields, status):
    tag = plain.get(FILE, "HEAD").get("ETag")
    assert plain.get(FILE, "HEAD", fields=fill(fields, tag)).status == status


def test_304_carries_the_validators_and_no_body(plain):
    full = plain.get(FILE)
    response = plain.get(FILE, fields={INM: full.get("ETag")})
    assert response.status == 304
    assert response.get("ETag") == full.get("ETag")
    assert response.length in (None, full.length)


def test_connection_goes_on_after_304_and_412(server, tree):
    with server.connect() as c:
        tag = c.ask(FILE).get("ETag")
        assert c.ask(FILE, fields={INM: tag}).status == 304
        assert c.ask(FILE).body == tree.files[FILE]
        assert c.ask(FILE, fields={IM: OTHER}).status == 412
        assert c.ask(FILE).body == tree.files[FILE]
        c.finish()


def test_list_in_several_lines_is_one_list(plain):
    """RFC 9110, 5.3: the lines of a list may be combined."""
    tag = plain.get(FILE, "HEAD").get("ETag")
    assert plain.get(FILE, fields=[(INM, OTHER), (INM, tag)]).status == 304
    assert plain.get(FILE, fields=[(INM, tag), (INM, OTHER)]).status == 304
    assert plain.get(FILE, fields=[(IM, OTHER), (IM, tag)]).status == 200
    assert plain.get(FILE, fields=[(IM, OTHER), (IM, '"another"')]).status == 412


@pytest.mark.parametrize(
    "target, method, status",
    [
        ("/nothing-here", "GET", 404),
        ("/empty/", "GET", 403),
        ("/with-index", "GET", 301),
        (FILE, "POST", 405),
    ],
)
@pytest.mark.parametrize("fields", [{IM: OTHER}, {INM: "*"}, {IUS: BEFORE}, {IM: "*"}])
def test_preconditions_are_ignored_where_there_is_nothing_to_select(
    plain, target, method, status, fields
):
    """RFC 9110, 13.2.1."""
    assert plain.get(target, method, fields=fields).status == status


def test_index_page_is_conditional_too(plain):
    full = plain.get("/with-index/")
    assert full.status == 200
    assert plain.get("/with-index/", fields={INM: full.get("ETag")}).status == 304
