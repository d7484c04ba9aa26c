"""The request head, to the letter of RFC 9112.

What one server tolerates another reads differently: that is what request
smuggling is made of.
"""

import pytest

from harness import request

OK = b"GET /4097.bin HTTP/1.1\r\nHost: localhost\r\n\r\n"


def refused(server, raw, status, more=True):
    """raw is answered by status and the end of the connection.

    What follows raw on the connection must not be answered.
    """
    with server.connect() as c:
        c.send(raw + (OK if more else b""))
        response = c.response()
        assert response.status == status, response
        assert response.closes
        c.eof()


BAD = {
    "bare LF after the request line": b"GET / HTTP/1.1\nHost: x\r\n\r\n",
    "bare LF after a field": b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
    "bare LF at the end": b"GET / HTTP/1.1\r\nHost: x\r\n\n",
    "bare CR in the request line": b"GET /\r HTTP/1.1\r\nHost: x\r\n\r\n",
    "bare CR in a value": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
    "bare CR in a name": b"GET / HTTP/1.1\r\nHost: x\r\nA\r: b\r\n\r\n",
    "CR CR LF": b"GET / HTTP/1.1\r\r\nHost: x\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
    "no version but fields": b"GET /\r\nHost: x\r\n\r\n",
    "no target": b"GET HTTP/1.1\r\nHost: x\r\n\r\n",
    "two spaces before the target": b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
    "two spaces before the version": b"GET /  HTTP/1.1\r\nHost: x\r\n\r\n",
    "space after the version": b"GET / HTTP/1.1 \r\nHost: x\r\n\r\n",
    "space before the method": b" GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tab instead of a space": b"GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "space in the target": b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    "8-bit target": b"GET /\xc3\xbc HTTP/1.1\r\nHost: x\r\n\r\n",
    "DEL in the target": b"GET /\x7f HTTP/1.1\r\nHost: x\r\n\r\n",
    "control in the target": b"GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
    "NUL in the target": b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    "lower-case http": b"GET / http/1.1\r\nHost: x\r\n\r\n",
    "HxTP": b"GET / HxTP/1.1\r\nHost: x\r\n\r\n",
    "HTTP/1.": b"GET / HTTP/1.\r\nHost: x\r\n\r\n",
    "HTTP/11": b"GET / HTTP/11\r\nHost: x\r\n\r\n",
    "HTTP/1.10": b"GET / HTTP/1.10\r\nHost: x\r\n\r\n",
    "HTTP/ 1.1": b"GET / HTTP/ 1.1\r\nHost: x\r\n\r\n",
    "method is no token": b"G(T / HTTP/1.1\r\nHost: x\r\n\r\n",
    "8-bit method": b"G\xc4T / HTTP/1.1\r\nHost: x\r\n\r\n",
    "space before the colon": b"GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
    "tab before the colon": b"GET / HTTP/1.1\r\nHost: x\r\nA\t: b\r\n\r\n",
    "space before the colon of Host": b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nHost: x\r\nAb\r\n\r\n",
    "no name": b"GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n",
    "name is no token": b"GET / HTTP/1.1\r\nHost: x\r\nA(b: c\r\n\r\n",
    "8-bit name": b"GET / HTTP/1.1\r\nHost: x\r\nA\xe4: c\r\n\r\n",
    "folded line": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "folded by a tab": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n",
    "first field line begins with a space": b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
    "NUL in a value": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n",
    "control in a value": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\x01c\r\n\r\n",
    "DEL in a value": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\x7fc\r\n\r\n",
    "no Host": b"GET / HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
    "two Hosts on 1.0": b"GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n",
    "Host with a space": b"GET / HTTP/1.1\r\nHost: x y\r\n\r\n",
    "Host with a slash": b"GET / HTTP/1.1\r\nHost: x/y\r\n\r\n",
    "Host with user information": b"GET / HTTP/1.1\r\nHost: u@x\r\n\r\n",
    "Host is a list": b"GET / HTTP/1.1\r\nHost: x, y\r\n\r\n",
    "Host with a bad port": b"GET / HTTP/1.1\r\nHost: x:80a\r\n\r\n",
    "Content-Length is not a number": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: a\r\n\r\n",
    "negative Content-Length": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "signed Content-Length": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n",
    "empty Content-Length": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n",
    "hexadecimal Content-Length": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x1\r\n\r\n",
    "two Content-Lengths that differ": b"GET / HTTP/1.1\r\nHost: x\r\n"
    b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
    "Content-Length list": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 44\r\n\r\n",
    "three blank lines first": b"\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40) + b"\r\n\r\n",
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD.keys())
def test_head_that_is_not_rfc_9112_is_400(plain, raw):
    refused(plain, raw, 400)


@pytest.mark.parametrize("name", [n for n in BAD if "bare" in n or "8-bit" in n])
def test_error_is_found_without_waiting_for_the_end_of_the_head(plain, name):
    """Up to the byte after the offending one, and no further."""
    raw = BAD[name]
    bad = next(
        i
        for i, b in enumerate(raw)
        if b > 0x7E
        or (b == 10 and raw[i - 1] != 13)
        or (b == 13 and raw[i + 1] != 10)
    )
    refused(plain, raw[: bad + 2], 400, more=False)


CONTENT_LENGTH_OVERFLOW = [str(1 << 63), str(1 << 64), "9" * 40]


@pytest.mark.parametrize("value", CONTENT_LENGTH_OVERFLOW)
def test_overflowing_content_length_is_refused(plain, value):
    with plain.connect() as c:
        c.send(request("/", fields={"Content-Length": value}) + OK)
        response = c.response()
        assert response.status in (400, 413)
        assert response.closes
        c.eof()


@pytest.mark.parametrize(
    "value",
    ["chunked", "gzip, chunked", "identity", "Chunked", "chunked, identity", "x"],
)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_any_transfer_encoding_is_501_and_close(plain, value, version):
    raw = request("/", version=version, fields={"Transfer-Encoding": value})
    refused(plain, raw + b"0\r\n\r\n", 501)


def test_transfer_encoding_with_content_length_is_refused(plain):
    raw = request("/", fields={"Transfer-Encoding": "chunked", "Content-Length": "5"})
    with plain.connect() as c:
        c.send(raw + b"0\r\n\r\n" + OK)
        response = c.response()
        assert response.status in (400, 501)
        assert response.closes
        c.eof()


def test_transfer_encoding_with_a_space_before_the_colon_is_400(plain):
    refused(plain, b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n", 400)


@pytest.mark.parametrize("version", ["0.9", "1.2", "1.9", "2.0", "3.0", "9.9"])
def test_other_versions_are_505(plain, version):
    refused(plain, request("/", version=version), 505)


def test_http_2_preface_is_505(plain):
    refused(plain, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, more=False)


def test_method_longer_than_32_is_501(plain):
    refused(plain, request("/", "M" * 33), 501)


GOOD = {
    "one blank line first": b"\r\n" + OK,
    "two blank lines first": b"\r\n\r\n" + OK,
    "no space after the colon": b"GET /4097.bin HTTP/1.1\r\nHost:localhost\r\n\r\n",
    "spaces around the value": b"GET /4097.bin HTTP/1.1\r\nHost: \t localhost \t\r\n\r\n",
    "empty value": b"GET /4097.bin HTTP/1.1\r\nHost: x\r\nA:\r\nB: \r\n\r\n",
    "8-bit value": b"GET /4097.bin HTTP/1.1\r\nHost: x\r\nA: \xc3\xbc\xff\r\n\r\n",
    "tab in a value": b"GET /4097.bin HTTP/1.1\r\nHost: x\r\nA: b\tc\r\n\r\n",
    "token of all kinds": b"GET /4097.bin HTTP/1.1\r\nHost: x\r\n!#$%&'*+.^_`|~09aZ-: c\r\n\r\n",
    "names in any case": b"GET /4097.bin HTTP/1.1\r\nhOsT: x\r\nCONNECTION: keep-alive\r\n\r\n",
    "empty Host": b"GET /4097.bin HTTP/1.1\r\nHost:\r\n\r\n",
    "Host with a port": b"GET /4097.bin HTTP/1.1\r\nHost: x:8080\r\n\r\n",
    "Host is an IPv6 address": b"GET /4097.bin HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n",
    "Content-Length 0": b"GET /4097.bin HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "Upgrade is ignored": b"GET /4097.bin HTTP/1.1\r\nHost: x\r\n"
    b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "h2c is ignored": b"GET /4097.bin HTTP/1.1\r\nHost: x\r\n"
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n",
}


@pytest.mark.parametrize("raw", GOOD.values(), ids=GOOD.keys())
def test_correct_head_is_served_and_the_next_one_as_well(plain, tree, raw):
    with plain.connect() as c:
        c.send(raw + OK)
        for _ in range(2):
            response = c.response()
            assert response.status == 200
            assert response.body == tree.files["/4097.bin"]
        c.finish(response)


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
