"""The request head, to the letter of RFC 9112.

request_corpus.py has what is refused and what is not; here are when, and the limits.
"""

import pytest

import http2
from harness import request
from request_corpus import BAD, CASES

OK = b"GET /4097.bin HTTP/1.1\r\nHost: localhost\r\n\r\n"


def refused(server, raw, status, more=True):
    """raw is answered by status and the end of the connection.

    What follows raw on the connection must not be answered.
    """
    with server.connect() as c:
        c.send(raw + (OK if more else b""))
        response = c.response()
        assert response.status == status, response
        if http2.ON:
            return  # its stream has ended, and no other
        assert response.closes
        c.eof()


def offending(raw):
    """Where the first CR or LF alone is; None: there is none."""
    for i, byte in enumerate(raw[:-1]):
        if (byte == 10 and raw[i - 1 : i] != b"\r") or (byte == 13 and raw[i + 1] != 10):
            return i
    return None


LINE_ENDS = [(case, offending(case.raw)) for case in CASES
             if case.verdict == BAD and offending(case.raw) is not None]


def test_wrong_line_end_is_found_without_waiting_for_the_end_of_the_head(plain):
    """Up to the byte after the offending one, and no further."""
    assert len(LINE_ENDS) > 30
    for case, at in LINE_ENDS:
        refused(plain, case.raw[: at + 2], 400, more=False)


def test_head_split_at_every_byte(server, tree):
    raw = (
        b"\r\nGET /4097.bin?q HTTP/1.1\r\nHost: localhost:80\r\n"
        b"Range: bytes=1-\r\nUser-Agent: x\r\n\r\n"
    )
    with server.connect() as c:
        for cut in range(1, len(raw)):
            c.send(raw[:cut])
            c.send(raw[cut:])
            response = c.response()
            assert response.status == 206
            assert response.body == tree.files["/4097.bin"][1:]
        c.finish(response)


def test_head_sent_byte_by_byte(server, tree):
    raw = request("/4097.bin", fields={"A": "b"})
    with server.connect() as c:
        for i in range(len(raw)):
            c.send(raw[i : i + 1])
        response = c.response()
        assert response.body == tree.files["/4097.bin"]
        c.finish(response)


# ---------------------------------------------------------------- the limits

TOP = {"max_head_size": 4096, "max_target_size": 512, "max_fields": 20}


@pytest.fixture
def limited(serve_conf, tree):
    return serve_conf(TOP, [("s", {"root": tree.root}, {})])


def test_target_of_max_target_bytes_is_served_and_one_more_is_414(limited):
    target = "/4097.bin?" + "q" * (512 - len("/4097.bin?"))
    assert limited.get(target).status == 200
    refused(limited, request(target + "q"), 414)


def test_target_that_never_ends_is_414_at_once(limited):
    refused(limited, b"GET /" + b"a" * 600, 414, more=False)


def padded(size):
    empty = request("/4097.bin", fields={"A": ""})
    return request("/4097.bin", fields={"A": "b" * (size - len(empty))})


def test_head_of_max_head_bytes_is_served_and_one_more_is_431(limited):
    with limited.connect() as c:
        c.send(padded(4096))
        response = c.response()
        assert response.status == 200
        c.finish(response)
    refused(limited, padded(4097), 431)


def test_head_that_never_ends_is_431_at_once(limited):
    refused(limited, b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 5000, 431, more=False)


def test_head_of_max_fields_is_served_and_one_more_is_431(limited):
    fields = [("A", "b")] * 19  # and Host
    assert limited.get("/4097.bin", fields=fields).status == 200
    refused(limited, request("/", fields=fields + [("A", "b")]), 431)


def test_pipelined_heads_do_not_add_up_to_the_limit(limited):
    with limited.connect() as c:
        c.send(padded(3000) * 5)
        for _ in range(5):
            assert c.response().status == 200
        c.finish()
