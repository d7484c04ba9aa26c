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

# tests/unit/test_conditional.c and test_status.c have all values and their order.
TABLE = [
    ({IM: E}, 200), ({IM: W}, 412), ({IM: OTHER + ", " + E}, 200),
    ({IUS: NOW}, 200), ({IUS: BEFORE}, 412), ({IUS: "garbage"}, 200),
    ({INM: W}, 304), ({INM: '"a,b", ' + E}, 304), ({INM: OTHER}, 200),
    # A date of another version: a mirror may go back to an older one.
    ({IMS: NOW}, 304), ({IMS: AFTER}, 200), ({IMS: FUTURE}, 200),
    # The name of the day need not be that of the date.
    ({IMS: "Monday, 02-Jan-20 03:04:05 GMT"}, 304),
    ({IM: E, IUS: BEFORE}, 200), ({INM: OTHER, IMS: NOW}, 200), ({IUS: BEFORE, INM: E, IMS: NOW}, 412),
    ({INM: E, "Range": "bytes=0-1"}, 304), ({INM: OTHER, "Range": "bytes=0-1"}, 206),
    ({IM: E, "Range": "bytes=9999999-"}, 416), ({IM: OTHER, "Range": "bytes=9999999-"}, 412),
    ({IM: E, "If-Range": OTHER, "Range": "bytes=0-1"}, 200),
    ({IM: E, "If-Range": E, "Range": "bytes=0-1"}, 206),
]


def fill(fields, tag):
    return {n: v.replace(E, tag).replace(W, "W/" + tag) for n, v in fields.items()}


@pytest.mark.parametrize("fields, status", TABLE)
def test_precedence(plain, tree, fields, status):
    tag = plain.get(FILE, "HEAD").get("ETag")
    response = plain.get(FILE, fields=fill(fields, tag))
    assert response.status == plain.get(FILE, "HEAD", fields=fill(fields, tag)).status == status
    assert not response.closes
    body = {200: tree.files[FILE], 206: tree.files[FILE][:2]}
    assert response.body == body.get(status, response.body)


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
