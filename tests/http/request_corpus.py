"""Raw requests, and what RFC 9112 and a strict policy make of each.

The policy: what is malformed is refused and the connection closed, so that
nobody reads the rest of it differently; one request has one answer.  The names
of tricks are those of the literature on request smuggling.

All is asked of a site with the files /a (LETTERS), /b, /index.html and the
empty directory /d/, with the default limits.
"""

from collections import namedtuple

import tls

LETTERS = b"abcdefghijklmnopqrstuvwxyz"
GOOD = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
PENDING = b"GET /b HTTP/1.1\r\nHost: h\r\n\r\n"
MAX_HEAD, MAX_TARGET, MAX_FIELDS, MAX_BODY = 16384, 8192, 100, 65536
BODY_EXTRA = 16384  # bytes of extensions and trailers

# statuses: a set for each answer.  ending: what becomes of the connection.
Verdict = namedtuple("Verdict", "statuses ending")


class Case(namedtuple("Case", "name raw verdict source")):
    @property
    def stream(self):
        """The request, and one behind it."""
        return self.raw if self.verdict.ending == INCOMPLETE else self.raw + PENDING

    @property
    def head(self):
        return self.raw.lstrip(b"\r\n").startswith(b"HEAD ")


OPEN = "open"  # the next request is answered
CLOSED = "closed"  # said so, and it is not
TAKEN = "taken"  # it is taken for the rest of a body
DROPPED = "dropped"  # the body is none: the server ends the connection without another answer
INCOMPLETE = "incomplete"  # nothing can follow


def served(*statuses, ending=OPEN):
    return Verdict((set(statuses),), ending)


def refused(*statuses):
    return Verdict((set(statuses),), CLOSED)


def dropped(*statuses):
    return Verdict((set(statuses),), DROPPED)


OK, LAST, PART = served(200), refused(200), served(206)
BAD, CODED, NO_METHOD = refused(400), refused(501), refused(501)
SILENT = Verdict((), INCOMPLETE)
SECURED = OK if tls.ON else BAD  # RFC 9110, 7.4: https is refused where there is none
CASES = []


def add(source, make, rows):
    """rows: (what, verdict), or (name, what, verdict); make: what -> the request."""
    for *name, what, verdict in rows:
        name = name[0] if name else repr(what[:60])[2:-1]
        CASES.append(Case("%s: %s" % (source, name), make(what), verdict, source))


def whole(raw):
    return raw


def line(text):
    return text + b"\r\nHost: h\r\n\r\n"


def target(text):
    return line(b"GET " + text + b" HTTP/1.1")


def fields(text, first=b"GET /a HTTP/1.1"):
    return first + b"\r\nHost: h\r\n" + text + b"\r\n\r\n"


def host(text):
    return b"GET /a HTTP/1.1\r\nHost: " + text + b"\r\n\r\n"


def body(length, text=b"", method=b"GET"):
    return fields(b"Content-Length: " + length, method + b" /a HTTP/1.1") + text


def coded(text):
    return fields(b"Transfer-Encoding: " + text, b"POST /a HTTP/1.1") + b"0\r\n\r\n"


def chunks(text):
    return fields(b"Transfer-Encoding: chunked", b"POST /a HTTP/1.1") + text


def connection(text):
    return fields(b"Connection: " + text)


def header(name):
    return lambda text: fields(name + b": " + text)


def old(text):
    return b"GET /a HTTP/1.0\r\n" + text + b"\r\n"


def padded(size):
    return fields(b"A: " + b"b" * (size - len(fields(b"A: "))))


add("RFC 9112, 3: request line", line, [
    (b"GET /a HTTP/1.1", OK),
    (b"GET  /a HTTP/1.1", BAD), (b"GET /a  HTTP/1.1", BAD), (b"GET /a HTTP/1.1 ", BAD),
    (b" GET /a HTTP/1.1", BAD), (b"\tGET /a HTTP/1.1", BAD), (b"GET\t/a HTTP/1.1", BAD),
    (b"GET /a\tHTTP/1.1", BAD), (b"GET /a HTTP/1.1\t", BAD), (b"GET\x0b/a HTTP/1.1", BAD),
    (b"GET\x0c/a HTTP/1.1", BAD), (b"GET\xa0/a HTTP/1.1", BAD), (b"GET /a\x0bHTTP/1.1", BAD),
    (b"GET /a", BAD), (b"GET /a ", BAD), (b"GET", BAD), (b"GET ", BAD), (b"GET HTTP/1.1", BAD),
    (b"GET  HTTP/1.1", BAD), (b"/a HTTP/1.1", BAD), (b"HTTP/1.1", BAD), (b"GET/a HTTP/1.1", BAD),
    (b"GET /aHTTP/1.1", BAD), (b"GET /a HTTP/1.1 HTTP/1.1", BAD), (b"GET /a b HTTP/1.1", BAD),
    (b"GET /a\x00 HTTP/1.1", BAD), (b"GET /a\x01 HTTP/1.1", BAD), (b"GET /a\x1b[2J HTTP/1.1", BAD),
    (b"GET /a\x7f HTTP/1.1", BAD), (b"GET /\x80 HTTP/1.1", BAD), (b"GET /\xc3\xbc HTTP/1.1", BAD),
    (b"GET /\xff HTTP/1.1", BAD), (b"GET /a\r HTTP/1.1", BAD), (b"GET /a\n HTTP/1.1", BAD),
    (b"GET\r\n/a HTTP/1.1", BAD), (b"GET /a\r\n HTTP/1.1", BAD), (b"GET /a HTTP/1.1\r", BAD),
    (b"GET /a HTTP/1.1\nA: b", BAD), (b"\x00GET /a HTTP/1.1", BAD), (b"\xef\xbb\xbfGET /a HTTP/1.1", BAD),
    (b"GET /a HTTP/1.1\x00", BAD), (b"GET /a?\x00 HTTP/1.1", BAD), (b"GET /a?b c HTTP/1.1", BAD),
])

add("RFC 9112, 2.3: version", lambda text: line(b"GET /a " + text), [
    (b"http/1.1", BAD), (b"Http/1.1", BAD), (b"HxTP/1.1", BAD), (b"HTTPS/1.1", BAD), (b"HTTP /1.1", BAD),
    (b"HTTP/ 1.1", BAD), (b"HTTP/1. 1", BAD), (b"HTTP/1", BAD), (b"HTTP/1.", BAD), (b"HTTP/.1", BAD),
    (b"HTTP/11", BAD), (b"HTTP/1.10", BAD), (b"HTTP/01.1", BAD), (b"HTTP/1.01", BAD), (b"HTTP/1,1", BAD),
    (b"HTTP/-1.1", BAD), (b"HTTP/+1.1", BAD), (b"HTTP/1.x", BAD), (b"HTTP/1.\xb9", BAD),
    (b"HTTP/\xef\xbc\x91.1", BAD), (b"HTTP\\1.1", BAD), (b"HTTP1.1", BAD), (b"RTSP/1.0", BAD),
    (b"HTTP/0.0", refused(505)), (b"HTTP/0.9", refused(505)), (b"HTTP/2.0", refused(505)),
    (b"HTTP/2.1", refused(505)), (b"HTTP/3.0", refused(505)), (b"HTTP/3.7", refused(505)),
    (b"HTTP/9.9", refused(505)),
])

add("RFC 9110, 2.5: a higher minor version is 1.1", whole, [
    *(("HTTP/1.%d" % n, line(b"GET /a HTTP/1.%d" % n), OK) for n in range(2, 10)),
    ("without Host", b"GET /a HTTP/1.2\r\n\r\n", BAD),
    ("keep-alive need not be said", line(b"GET /a HTTP/1.2") + GOOD, Verdict(({200}, {200}), OPEN)),
    ("close", fields(b"Connection: close", b"GET /a HTTP/1.2"), LAST),
])

add("RFC 9112, 2.2: empty lines first", whole, [
    ("one", b"\r\n" + GOOD, OK), ("two", b"\r\n\r\n" + GOOD, OK), ("three", b"\r\n\r\n\r\n" + GOOD, BAD),
    ("LF", b"\n" + GOOD, BAD), ("CR", b"\r" + GOOD, BAD), ("CR CR LF", b"\r\r\n" + GOOD, BAD),
    ("space", b" \r\n" + GOOD, BAD), ("then a space", b"\r\n " + GOOD, BAD), ("then LF", b"\r\n\n" + GOOD, BAD),
    ("between two", GOOD + b"\r\n" + GOOD, Verdict(({200}, {200}), OPEN)),
])

add("RFC 9110, 9: method", lambda text: line(text + b" /a HTTP/1.1"), [
    (b"HEAD", OK), (b"OPTIONS", served(204)), (b"POST", served(405)), (b"PUT", served(405)),
    (b"DELETE", served(405)), (b"PATCH", served(405)), (b"TRACE", served(405)), (b"PROPFIND", served(405)),
    (b"get", NO_METHOD), (b"Get", NO_METHOD), (b"GETT", NO_METHOD), (b"GE", NO_METHOD), (b"G", NO_METHOD),
    (b"HEADER", NO_METHOD), (b"head", NO_METHOD), (b"FOO", NO_METHOD), (b"!#$%&'*+-.^_`|~", NO_METHOD),
    (b"M" * 32, NO_METHOD), (b"M" * 33, NO_METHOD), (b"G(T", BAD), (b"G\xc4T", BAD), (b"G\x00T", BAD),
    (b"GET:", BAD), (b'"GET"', BAD), (b"GET,HEAD", BAD), (b"CONNECT", served(405)),
    (b"GET\r", BAD), (b"G\nT", BAD), (b"\x7fGET", BAD),
])

add("RFC 9112, 3.2: target", target, [
    (b"http://h/a", OK), (b"HTTP://h/a", OK), (b"https://h/a", SECURED), (b"HTTPS://H:443/a", SECURED), (b"http://h:80/a", OK), (b"http://h:/a", OK),
    (b"http://h/a?q", OK), (b"http://[::1]/a", OK), (b"http://[::1]:80/a", OK), (b"http://h/%61", OK),
    (b"http://", BAD), (b"http:///a", BAD), (b"http:/a", BAD), (b"http:a", BAD), (b"http://:80/a", BAD),
    (b"http://h:x/a", BAD), (b"http://[::1/a", BAD), (b"http://u@h/a", BAD), (b"http://u:p@h/a", BAD),
    (b"https://u@h/a", BAD), (b"https://", BAD), (b"https:/a", BAD), (b"httpss://h/a", BAD), (b"http://h/a#f", BAD), (b"http://h\\@i/a", BAD), (b"http://h\\a", BAD), (b"http://h#i/a", BAD),
    (b"http://h%/a", BAD), (b"http://h/../a", BAD), (b"ftp://h/a", BAD), (b"file:///etc/passwd", BAD),
    (b"javascript:1", BAD), (b"h:80", BAD), (b"h", BAD), (b"a", BAD), (b"?q", BAD), (b"#", BAD), (b"*", BAD),
    (b"**", BAD), (b"*/a", BAD), (b"/a#", BAD), (b"/a#f", BAD), (b"/#/a", BAD), (b"/a%", BAD), (b"/a%6", BAD),
    (b"/%6g", BAD), (b"/%zz", BAD), (b"/%u0061", BAD), (b"/a%00", BAD), (b"/%00/a", BAD), (b"/..", BAD),
    (b"/../a", BAD), (b"/%2e%2e/a", BAD), (b"//h/a", served(404)), (b"/a?", OK), (b"/a?%", OK), (b"/a?%00", OK),
    (b"/a?/../..", OK), (b"/%61", OK), (b"/./a", OK), (b"/x/../a", OK), (b"//a", OK), (b"/a%2f", served(404)),
    (b"/\"<>\\^`{|}", served(404)), (b"/d", served(301)), (b"/d/", served(403)),
    (b"/a/", served(404)), (b"/%0d%0aX:%20y", served(404)), (b"/a?%0d%0aX:%20y", OK),
])

add("RFC 9112, 3.2: form", whole, [
    ("asterisk", line(b"OPTIONS * HTTP/1.1"), served(204)), ("HEAD *", line(b"HEAD * HTTP/1.1"), BAD),
    ("POST *", line(b"POST * HTTP/1.1"), served(405)),
    ("OPTIONS http://h", line(b"OPTIONS http://h HTTP/1.1"), served(204)),
    ("OPTIONS *a", line(b"OPTIONS *a HTTP/1.1"), BAD),
    ("authority", line(b"CONNECT h:80 HTTP/1.1"), served(405)),
    ("absolute, another Host", b"GET http://i/a HTTP/1.1\r\nHost: h\r\n\r\n", OK),
    ("absolute, empty Host", b"GET http://h/a HTTP/1.1\r\nHost:\r\n\r\n", OK),
    ("absolute, no Host", b"GET http://h/a HTTP/1.1\r\n\r\n", BAD),
    ("absolute, two Hosts", b"GET http://h/a HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", BAD),
    ("absolute, malformed Host", b"GET http://h/a HTTP/1.1\r\nHost: h/\r\n\r\n", BAD),
    ("absolute, 1.0", b"GET http://h/a HTTP/1.0\r\n\r\n", LAST),
])

add("RFC 9112, 3.2: Host", host, [
    (b"h", OK), (b"", OK), (b" \t ", OK), (b"\th ", OK), (b"h:80", OK), (b"h:", OK), (b"h:0080", OK), (b"h.", OK),
    (b"[::1]", OK), (b"[::1]:80", OK), (b"127.0.0.1:80", OK), (b"a_b", OK), (b"h%20", OK), (b"h;x", OK),
    (b"h" * 300, OK), (b":80", BAD), (b"h:x", BAD), (b"h:-1", BAD), (b"h:8 0", BAD), (b"h:80:80", BAD),
    (b"::1", BAD), (b"[::1", BAD), (b"::1]", BAD), (b"[::g]", BAD), (b"[::1]x", BAD), (b"[]", BAD),
    (b"[fe80::1%25e]", BAD), (b"[127.0.0.1]", BAD), (b"u@h", BAD), (b"u:p@h", BAD), (b"h/a", BAD), (b"h?x", BAD),
    (b"h#x", BAD), (b"h\\x", BAD), (b"http://h", BAD), (b"h, i", BAD), (b"h,i", OK),
    (b"h i", BAD), (b"h\ti", BAD), (b"h%", BAD), (b"h%zz", BAD), (b"\xc3\xbc", BAD), (b"h\x00", BAD),
    (b"<h>", BAD), (b'"h"', BAD), (b"h|i", BAD), (b"h^i", BAD), (b"h\x7f", BAD), (b"h\r", BAD), (b"h\ri", BAD),
    (b"h\r\n i", BAD), (b"\r\n h", BAD), (b"h\r\nHost: h", BAD), (b"h\r\nhOST: i", BAD), (b"\r\nHost: h", BAD),
])

add("RFC 9112, 3.2: Host", whole, [
    ("none", b"GET /a HTTP/1.1\r\n\r\n", BAD), ("none but others", b"GET /a HTTP/1.1\r\nA: b\r\n\r\n", BAD),
    ("none, 1.0", b"GET /a HTTP/1.0\r\n\r\n", LAST), ("1.0", old(b"Host: h\r\n"), LAST),
    ("twice, 1.0", old(b"Host: h\r\nHost: h\r\n"), BAD), ("malformed, 1.0", old(b"Host: h/\r\n"), BAD),
    ("space before the colon", b"GET /a HTTP/1.1\r\nHost : h\r\n\r\n", BAD),
    ("space before it", b"GET /a HTTP/1.1\r\n Host: h\r\n\r\n", BAD),
    ("last", b"GET /a HTTP/1.1\r\nA: b\r\nhost:h\r\n\r\n", OK),
    ("HEAD and none", b"HEAD /a HTTP/1.1\r\n\r\n", BAD),
])

add("RFC 9112, 5.1: field name", fields, [
    (b"A:b", OK), (b"A:", OK), (b"a-B_9: c", OK), (b"!#$%&'*+-.^_`|~: b", OK), (b"A: b\r\nA: b", OK),
    (b"n" * 1000 + b": b", OK), (b"A : b", BAD), (b"A\t: b", BAD), (b"A\x0b: b", BAD), (b"A", BAD), (b": b", BAD),
    (b":", BAD), (b"A b: c", BAD), (b"A(b: c", BAD), (b'"A": b', BAD), (b"A/b: c", BAD), (b"A@b: c", BAD),
    (b"A[b]: c", BAD), (b"A{b}: c", BAD), (b"A=b: c", BAD), (b"A,b: c", BAD), (b"A;b: c", BAD), (b"A?b: c", BAD),
    (b"A\\b: c", BAD), (b"\xc3\xa4: c", BAD), (b"A\xff: c", BAD), (b"A\x00: c", BAD), (b"\x00A: c", BAD),
    (b"A\r: c", BAD), (b"\rA: c", BAD), (b"A\n: c", BAD), (b"\nA: c", BAD), (b"A\x7f: c", BAD), (b"\xa0A: c", BAD),
    (b"GET /b HTTP/1.1", BAD), (b"A: b\r\nGET /b HTTP/1.1", BAD), (b"HTTP/1.1 200 OK", BAD),
])

add("RFC 9112, 5.2 and 9110, 5.5: field value", fields, [
    (b"A: \xc3\xbc\xff\x80", OK), (b"A: b\tc", OK), (b"A: \t b \t", OK), (b"A: %0d%0aB: c", OK), (b'A: "b', OK),
    (b"A: (b", OK), (b"A: " + b"b" * 8000, OK), (b"A: b: c", OK), (b"A: b\rc", BAD), (b"A: \r", BAD),
    (b"A: b\r\r\nB: c", BAD), (b"A: b\nB: c", BAD), (b"A: b\n c", BAD), (b"A: b\x00", BAD), (b"A: \x01", BAD),
    (b"A: b\x08", BAD), (b"A: b\x0bc", BAD), (b"A: b\x0cc", BAD), (b"A: \x1b[2J", BAD), (b"A: b\x7f", BAD),
    (b"A: b\r\n c", BAD), (b"A: b\r\n\tc", BAD), (b"A:\r\n b", BAD), (b"A: b\r\n ", BAD), (b"A: b\r\n \r\nB: c", BAD),
    (b" A: b", BAD), (b"\tA: b", BAD), (b"A: b\r\n\rB: c", BAD), (b"A: b\r\n\n", BAD),
])

add("RFC 9112, 6.3: Content-Length", lambda text: body(text, b"12345"), [
    (b"5", OK), (b"00005", OK), (b"0" * 40 + b"5", OK), (b" 5 ", OK), (b"\t5", OK),
    # RFC 9110, 5.5 wants 200; http-parser takes no tab there, and to refuse is on the safe side.
    (b"5\t", BAD),
    (b"+5", BAD), (b"-5", BAD), (b"-0", BAD), (b"0x5", BAD), (b"5.0", BAD), (b"5e0", BAD), (b"5,5", BAD),
    (b"5, 5", BAD), (b",5", BAD), (b"5,", BAD), (b"5;", BAD), (b"5 5", BAD), (b"", BAD), (b" ", BAD), (b"five", BAD),
    (b'"5"', BAD), (b"5\x0b", BAD), (b"\x0b5", BAD), (b"5\x00", BAD), (b"5\xa0", BAD), (b"\xef\xbc\x95", BAD),
    (b"1_0", BAD), (b"5a", BAD), (b"0b101", BAD), (b"0o5", BAD), (b"5\r", BAD), (b"\r\n 5", BAD), (b"5\r\n 0", BAD),
    (b"5\r\nContent-Length: 5", BAD), (b"5\r\ncontent-length: 6", BAD), (b"0\r\nContent-Length: 5", BAD),
    (b"5\r\nContent-Length:", BAD), (b"NaN", BAD), (b"null", BAD), (b"5\nContent-Length: 0", BAD),
    (str(1 << 31).encode(), refused(413)), (str((1 << 32) + 5).encode(), refused(413)),
    (str((1 << 63) - 1).encode(), refused(413)), (str((1 << 63) + 5).encode(), refused(413)),
    (str((1 << 64) - 1).encode(), refused(400, 413)), (str(1 << 64).encode(), refused(400, 413)),
    (str((1 << 64) + 5).encode(), refused(400, 413)), (b"9" * 100, refused(400, 413)),
])

add("RFC 9112, 6.3: body", whole, [
    ("none", body(b"0"), OK), ("of a GET is a request", body(b"%d" % len(GOOD), GOOD), OK),
    ("of a HEAD", body(b"5", b"12345", b"HEAD"), OK), ("of OPTIONS", body(b"5", b"12345", b"OPTIONS"), served(204)),
    ("of a POST is a request", body(b"%d" % len(GOOD), GOOD, b"POST"), served(405)),
    ("of a DELETE", body(b"5", b"12345", b"DELETE"), served(405)),
    ("of an unknown method", body(b"%d" % len(GOOD), GOOD, b"FOO"), NO_METHOD),
    ("is a blank line", body(b"2", b"\r\n"), OK), ("of NULs", body(b"5", bytes(5)), OK),
    ("as large as it may be", body(b"%d" % MAX_BODY, b"x" * MAX_BODY), OK),
    ("one byte larger", body(b"%d" % (MAX_BODY + 1), b"x" * (MAX_BODY + 1)), refused(413)),
    ("larger, POST", body(b"%d" % (MAX_BODY + 1), b"x" * 100, b"POST"), refused(405)),
    ("that is longer than it said", body(b"3", b"12345\r\n\r\n"), Verdict(({200}, {400}), CLOSED)),
    ("that never comes", body(b"1000"), served(200, ending=TAKEN)),
    ("that never comes, HEAD", body(b"1000", b"", b"HEAD"), served(200, ending=TAKEN)),
    ("without a length", line(b"GET /a HTTP/1.1") + b"12345\r\n\r\n", Verdict(({200}, {400}), CLOSED)),
    ("without a length, POST", line(b"POST /a HTTP/1.1") + b"a=b\r\n\r\n", Verdict(({405}, {400}), CLOSED)),
    ("1.0 with keep-alive", old(b"Connection: keep-alive\r\nContent-Length: 5\r\n") + b"12345", OK),
    ("1.0", old(b"Content-Length: 5\r\n") + b"12345", LAST),
    ("GPOST", body(b"6", b"0\r\n\r\nG", b"POST"), served(405)),
])

add("smuggling: Content-Length", fields, [
    (b"Content-Length : 5", BAD), (b"Content-Length\t: 5", BAD), (b"Content Length: 5", BAD),
    (b"Content-Length\x00: 5", BAD), (b"Content-Length\r: 5", BAD), (b" Content-Length: 5", BAD),
    (b"\nContent-Length: 5", BAD), (b"A: b\nContent-Length: 5", BAD), (b"A: b\rContent-Length: 5", BAD),
    (b"A: b\x00Content-Length: 5", BAD), (b"\x0bContent-Length: 5", BAD), (b"Content-Length", BAD),
    (b"Content-Length;: 5", BAD), (b"Content_Length: 5", OK), (b"X-Content-Length: 5", OK),
    (b"Content-Lengthx: 5", OK), (b"Content-Length2: 5", OK), (b"CONTENT-LENGTH: 0", OK),
    (b"Connection: Content-Length\r\nContent-Length: 0", OK),
])

add("RFC 9112, 6.1: Transfer-Encoding", coded, [(value, served(405)) for value in (
    b"chunked", b"Chunked", b"CHUNKED", b"\tchunked", b" \t chunked \t",
)] + [(value, CODED) for value in (
    b"gzip, chunked", b"chunked, gzip", b"chunked, chunked", b"identity",
    b"identity, chunked", b"chunked, identity", b"chunked;q=1", b"chunked; a=b", b"xchunked", b"chunkedx", b"chunk",
    b"chunked,", b",chunked", b'"chunked"', b"'chunked'", b"chu\tnked", b"chun ked",
    b"chunked foo", b"", b" ", b"deflate", b"\xa0chunked", b"chunked\xa0", b"c\xc4\xa5unked", b"\r\n chunked",
    b"identity\r\ntransfer-encoding: chunked", b"\r\nTransfer-Encoding: chunked", b"[chunked]", b"chunked;", b"{chunked}",
    b"gzip\r\nContent-Length: 5", b"\rchunked", b"chunked\x85",
)] + [(value, BAD) for value in (
    b"\x0bchunked", b"chunked\x0b", b"\x0cchunked", b"\x00chunked", b"chunked\x00", b"chunked\x7f", b"chunked\r",
    b"chunked\nA: b", b"chunked\r\n ,identity", b"chunked\r\nTransfer-Encoding: chunked",
    b"chunked\r\nTransfer-Encoding: identity", b"chunked\r\ntransfer-encoding:", b"chunked\r\nContent-Length: 5",
    b"chunked\r\nA: b\r\nContent-Length: 0",
)])

add("smuggling: Transfer-Encoding", lambda text: fields(text) + b"0\r\n\r\n", [
    (b"Transfer-Encoding:chunked", OK), (b"TRANSFER-ENCODING: chunked", OK),
    (b"Content-Length: 5\r\nTransfer-Encoding: chunked", BAD), (b"tRANSFER-eNCODING: x", CODED),
    (b"Transfer-Encoding : chunked", BAD), (b"Transfer-Encoding\t: chunked", BAD), (b"Transfer-Encoding", BAD),
    (b"Transfer-Encoding\x00: chunked", BAD), (b"Transfer-Encoding\r: chunked", BAD),
    (b"Transfer-Encoding\n: chunked", BAD), (b" Transfer-Encoding: chunked", BAD),
    (b"\tTransfer-Encoding: chunked", BAD), (b"\nTransfer-Encoding: chunked", BAD),
    (b"\x0bTransfer-Encoding: chunked", BAD), (b"Transfer Encoding: chunked", BAD),
    (b"A: b\rTransfer-Encoding: chunked", BAD), (b"A: b\nTransfer-Encoding: chunked", BAD),
    (b"A: b\r\n\rTransfer-Encoding: chunked", BAD), (b"A: \rxTransfer-Encoding: chunked", BAD),
    (b"Transfer\xe2\x80\x90Encoding: chunked", BAD), (b"Transfer-Encoding;: chunked", BAD),
])

add("smuggling: Transfer-Encoding on other lines", whole, [
    ("1.0", old(b"Transfer-Encoding: chunked\r\n") + b"0\r\n\r\n", BAD),
    ("1.0 with keep-alive", old(b"Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n"), BAD),
    ("HEAD without chunks", fields(b"Transfer-Encoding: chunked", b"HEAD /a HTTP/1.1"), dropped(200)),
    ("OPTIONS without chunks", fields(b"Transfer-Encoding: chunked", b"OPTIONS * HTTP/1.1"), dropped(204)),
    ("in front of Host", b"GET /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\n\r\n0\r\n\r\n", OK),
    ("in front of two Hosts", b"GET /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\nHost: h\r\n\r\n", BAD),
    ("underscore", fields(b"Transfer_Encoding: chunked"), OK),
    ("underscore and chunks", fields(b"Transfer_Encoding: chunked") + b"0\r\n\r\n", Verdict(({200}, {400}), CLOSED)),
    ("another name", fields(b"X-Transfer-Encoding: chunked"), OK), ("TE", fields(b"TE: chunked, trailers"), OK),
    ("Trailer", fields(b"Trailer: Content-Length"), OK),
    ("CL.TE", body(b"%d" % (5 + len(GOOD)) + b"\r\nTransfer-Encoding: chunked", b"0\r\n\r\n" + GOOD, b"POST"), BAD),
    ("TE.CL", fields(b"Transfer-Encoding: chunked\r\nContent-Length: 3", b"POST /a HTTP/1.1") + b"1c\r\n" + GOOD +
     b"0\r\n\r\n", BAD),
    ("CL.0", body(b"%d" % len(GOOD), GOOD, b"POST") + GOOD, Verdict(({405}, {200}), OPEN)),
    ("TE.0", chunks(b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD)) + GOOD, Verdict(({405}, {200}), OPEN)),
])

# tests/unit/test_body.c has the whole grammar, with each cut.
add("RFC 9112, 7.1: chunks", chunks, [(text, served(405)) for text in (
    b"5\r\n12345\r\n0\r\n\r\n", b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n", b"2\r\n\r\n\r\n0\r\n\r\n", b"00000000000000000000\r\n\r\n",
    b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD), b"5;a=b\r\n12345\r\n0\r\n\r\n", b'5 ;\ta="\\";"\r\n12345\r\n0;b\r\n\r\n',
    b"0\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n",
)] + [(text, dropped(405)) for text in (
    b"5;\n12345\r\n0\r\n\r\n", b"5\n12345\n0\n\n", b"0x5\r\n12345\r\n0\r\n\r\n", b"-1\r\n\r\n", b"fffffffffffffffff\r\n",
    b"100000005\r\n12345\r\n0\r\n\r\n", b"5\r\n12345GE\r\n0\r\n\r\n", b"5\r\n1234\r\n0\r\n\r\n", b"5\r\n123456\r\n0\r\n\r\n",
    b"5\r\n12345\n0\r\n\r\n", b"5\r\n123450\r\n\r\n", b"5\r12345\r\n0\r\n\r\n", b"\r\n0\r\n\r\n", b" 0\r\n\r\n", b"0 \r\n\r\n",
    b"0\r\n\n", b"0\r\n\rG", b'5;a="\r\n12345\r\n0\r\n\r\n', b"5;a=\r\n12345\r\n0\r\n\r\n", b"0\r\nA : b\r\n\r\n",
    b"0\r\n A: b\r\n\r\n", b"0\r\nA: b\n\r\n", b"0\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n", GOOD,
)])

DATA = b"x" * MAX_BODY
add("RFC 9112, 7.1: a body that is no request", lambda text: fields(b"Transfer-Encoding: chunked") + text, [
    ("none", b"0\r\n\r\n", OK), ("two", b"0\r\n\r\n" + chunks(b"0\r\n\r\n"), Verdict(({200}, {405}), OPEN)),
    ("then a request", b"3\r\nabc\r\n0\r\n\r\n" + GOOD, Verdict(({200}, {200}), OPEN)),
    ("then an empty line", b"0\r\n\r\n\r\n" + GOOD, Verdict(({200}, {200}), OPEN)),
    ("then no request", b"0\r\n\r\nx\r\n", Verdict(({200}, {400}), CLOSED)),
    ("that never ends", b"100\r\n", served(200, ending=TAKEN)), ("that never begins", b"", dropped(200)),
    ("whose trailers never end", b"0\r\nA: b", served(200, ending=TAKEN)),
    ("as large as it may be", b"%x\r\n%s\r\n0\r\n\r\n" % (MAX_BODY, DATA), OK),
    ("as large as it may be, twice", b"8000\r\n%s\r\n" % DATA[:0x8000] * 2 + b"0\r\n\r\n", OK),
    ("in chunks of a byte", b"1\r\nx\r\n" * 2000 + b"0\r\n\r\n", OK),
    ("one byte larger", b"%x\r\n%sx\r\n0\r\n\r\n" % (MAX_BODY + 1, DATA), dropped(200)),
    ("one byte larger, twice", b"8000\r\n%s\r\n" % DATA[:0x8000] * 2 + b"1\r\nx\r\n0\r\n\r\n", dropped(200)),
    ("zeros in front of a size", b"0" * (BODY_EXTRA - 1) + b"5\r\n12345\r\n0\r\n\r\n", OK),
    ("more zeros in front of a size", b"0" * BODY_EXTRA + b"5\r\n12345\r\n0\r\n\r\n", dropped(200)),
    ("extensions of all chunks", b"1;%s\r\nx\r\n" % (b"a" * 1000) * 17 + b"0\r\n\r\n", dropped(200)),
])

add("RFC 9112, 7.1: chunks and other fields", whole, [
    ("HEAD", fields(b"Transfer-Encoding: chunked", b"HEAD /a HTTP/1.1") + b"1\r\nx\r\n0\r\n\r\n", OK),
    ("OPTIONS", fields(b"Transfer-Encoding: chunked", b"OPTIONS /a HTTP/1.1") + b"1\r\nx\r\n0\r\n\r\n", served(204)),
    ("404", fields(b"Transfer-Encoding: chunked", b"GET /x HTTP/1.1") + b"1\r\nx\r\n0\r\n\r\n", served(404)),
    ("Range", fields(b"Transfer-Encoding: chunked\r\nRange: bytes=0-0") + b"1\r\nx\r\n0\r\n\r\n", PART),
    ("an unknown method", fields(b"Transfer-Encoding: chunked", b"FOO /a HTTP/1.1") + b"0\r\n\r\n", NO_METHOD),
    ("close", fields(b"Connection: close\r\nTransfer-Encoding: chunked") + b"1\r\nx\r\n0\r\n\r\n", LAST),
    ("close, and no chunks", fields(b"Connection: close\r\nTransfer-Encoding: chunked") + b"x", LAST),
    ("Expect", fields(b"Expect: 100-continue\r\nTransfer-Encoding: chunked") + b"1\r\nx\r\n0\r\n\r\n", LAST),
    ("HTTP/1.2", fields(b"Transfer-Encoding: chunked", b"GET /a HTTP/1.2") + b"0\r\n\r\n", OK),
])

add("RFC 9112, 9: Connection", connection, [
    (b"close", LAST), (b"Close", LAST), (b"CLOSE", LAST), (b"close, keep-alive", LAST), (b"keep-alive, close", LAST),
    (b"foo, close", LAST), (b"close,", LAST), (b", close", LAST), (b"close\t", LAST), (b"a,\tclose ,b", LAST),
    (b"keep-alive\r\nConnection: close", LAST), (b"close\r\nConnection: keep-alive", LAST), (b"closed", OK),
    (b"close-notify", OK), (b"keep-alive", OK), (b"", OK), (b",,", OK), (b"Host", OK), (b"Transfer-Encoding", OK),
    (b"Upgrade", OK), (b"x" * 1000, OK), (b"keep-alive\r\nKeep-Alive: timeout=0, max=0", OK),
    (b"Range\r\nRange: bytes=0-0", PART), (b'"close"', OK), (b"clos\xe9", OK),
])

add("RFC 9112, 9: Connection", whole, [
    ("1.0", old(b""), LAST), ("1.0 keep-alive", old(b"Connection: keep-alive\r\n"), OK),
    ("1.0 Keep-Alive", old(b"Connection: Keep-Alive\r\n"), OK),
    ("1.0 both", old(b"Connection: keep-alive, close\r\n"), LAST),
    ("1.0 another", old(b"Connection: foo\r\n"), LAST), ("1.0 Proxy", old(b"Proxy-Connection: keep-alive\r\n"), LAST),
    ("Proxy", fields(b"Proxy-Connection: close"), OK),
    ("404 and close", fields(b"Connection: close", b"GET /x HTTP/1.1"), refused(404)),
    ("405 and close", fields(b"Connection: close", b"POST /a HTTP/1.1"), refused(405)),
    ("204 and close", fields(b"Connection: close", b"OPTIONS * HTTP/1.1"), refused(204)),
    ("close and a body", fields(b"Connection: close\r\nContent-Length: 5") + b"12345", LAST),
    ("two", GOOD + GOOD, Verdict(({200}, {200}), OPEN)),
    ("close between", GOOD + connection(b"close") + GOOD, Verdict(({200}, {200}), CLOSED)),
    ("a refusal between", GOOD + line(b"GET  / HTTP/1.1") + GOOD, Verdict(({200}, {400}), CLOSED)),
    ("50 at once", GOOD * 50, Verdict(({200},) * 50, OPEN)),
])

add("RFC 9110, 10.1.1: Expect", whole, [
    ("nothing to wait for", fields(b"Expect: 100-continue"), OK),
    ("body of 0", fields(b"Expect: 100-continue\r\nContent-Length: 0"), OK),
    ("body", fields(b"Expect: 100-continue\r\nContent-Length: 5") + b"12345", LAST),
    ("POST", fields(b"Expect: 100-continue\r\nContent-Length: 5", b"POST /a HTTP/1.1") + b"12345",
     refused(405)),
    ("another", fields(b"Expect: 200-ok"), OK),
    ("twice", fields(b"Expect: 100-continue\r\nExpect: 100-continue"), OK), ("empty", fields(b"Expect:"), OK),
    ("1.0", old(b"Expect: 100-continue\r\n"), LAST),
])

add("RFC 9110, 7.8: Upgrade", fields, [
    (b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk", OK),
    (b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==", OK),
    (b"Upgrade: TLS/1.0\r\nConnection: Upgrade", OK), (b"Upgrade: HTTP/2.0", OK),
    (b"Upgrade: x\r\nConnection: upgrade, close", LAST),
])

add("RFC 9110, 14: Range", header(b"Range"), [
    (b"bytes=0-0", PART), (b"bytes=0-", PART), (b"bytes=-1", PART), (b"Bytes=0-1", PART), (b"bytes=0-1,3-4", PART),
    (b"bytes=0-1, ,3-4,", PART), (b"bytes=0-99999999999999999999999", PART), (b"bytes=-99999999999999999999999", PART),
    (b"bytes=26-", served(416)), (b"bytes=-0", served(416)), (b"bytes=99999999999999999999999-", served(416)),
    (b"bytes=5-2", OK), (b"bytes=", OK), (b"bytes", OK), (b"", OK), (b"bytes=-", OK), (b"bytes=,", OK),
    (b"octets=0-1", OK), (b"bytes=0x0-1", OK), (b"bytes=+0-1", OK), (b"bytes=0--1", OK), (b"bytes=a-b", OK),
    (b"bytes=0-1;2-3", OK), (b"bytes:0-1", OK), (b"bytes 0-1", OK), (b"bytes=0 - 1", OK), (b"bytes=0-1x", OK),
    (b"bytes=\xef\xbc\x90-1", OK), (b",".join([b"bytes=0-0"] + [b"0-0"] * 32), PART), (b"bytes=0-0\r\nRange: bytes=1-1", OK),
    (b'bytes=0-0\r\nIf-Range: "x"', OK), (b'bytes=0-0\r\nIf-Range: W/"x"', OK), (b"bytes=0-0\r\nIf-Range:", OK),
    (b"bytes=0-0\r\nIf-Range: Sat, 01 Jan 2000 00:00:00 GMT", OK), (b"bytes=0-0\r\nIf-Range: yesterday", OK),
    (b"bytes=99-\r\nIf-None-Match: *", served(304)), (b'bytes=99-\r\nIf-Match: "x"', served(412)),
])

add("RFC 9110, 13: conditions", fields, [
    (b'If-Range: "x"', OK), (b"If-Match: *", OK), (b'If-Match: "x"', served(412)), (b"If-Match: x", served(412)),
    (b"If-Match:", served(412)), (b'If-Match: "x', served(412)), (b'If-Match: W/"x"', served(412)),
    (b"If-None-Match: *", served(304)), (b'If-None-Match: "x"', OK), (b"If-None-Match: x", OK),
    (b'If-None-Match: "x", "', OK), (b"If-None-Match:", OK), (b'If-None-Match: "x"\r\nIf-None-Match: *', OK),
    (b"If-None-Match: " + b'"x", ' * 1000, OK), (b"If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT", OK),
    (b"If-Modified-Since: garbage", OK), (b"If-Modified-Since: Sat, 99 Jan 2000 99:99:99 GMT", OK),
    (b"If-Modified-Since: -1", OK), (b"If-Modified-Since: 99999999999999999999", OK),
    (b"If-Unmodified-Since: Sat, 01 Jan 2000 00:00:00 GMT", served(412)), (b"If-Unmodified-Since: garbage", OK),
])

add("limits", whole, [
    ("head as large as it may be", padded(MAX_HEAD), OK), ("head one byte larger", padded(MAX_HEAD + 1), refused(431)),
    ("name larger than a head", fields(b"n" * MAX_HEAD + b": b"), refused(431)),
    ("value without an end", fields(b"A: " + b"b" * 2 * MAX_HEAD)[:-4], refused(431)),
    ("target as long as it may be", target(b"/a?" + b"q" * (MAX_TARGET - 3)), OK),
    ("target one byte longer", target(b"/a?" + b"q" * (MAX_TARGET - 2)), refused(414)),
    ("HEAD and a target too long", line(b"HEAD /" + b"q" * MAX_TARGET + b" HTTP/1.1"), refused(414)),
    ("target without an end", b"GET /" + b"q" * 2 * MAX_TARGET, refused(414)),
    ("method without an end", b"G" * 1000, refused(501)),
    ("100 fields", fields(b"\r\n".join([b"A: b"] * (MAX_FIELDS - 1))), OK),
    ("101 fields", fields(b"\r\n".join([b"A: b"] * MAX_FIELDS)), refused(431)),
    ("1000 fields", fields(b"\r\n".join([b"A: b"] * 999)), refused(431)),
    ("1000 fields without values", fields(b"\r\n".join([b"A:"] * 999)), refused(431)),
    ("HEAD and 101 fields", fields(b"\r\n".join([b"A: b"] * MAX_FIELDS), b"HEAD /a HTTP/1.1"), refused(431)),
])

add("not HTTP/1", whole, [
    ("HTTP/3", b"PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n", refused(505)), ("SSH", b"SSH-2.0-OpenSSH_9.2\r\n", BAD),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40), BAD), ("NULs", bytes(100), BAD),
    ("SMTP", b"EHLO h\r\n", BAD), ("Redis", b"*1\r\n$4\r\nPING\r\n", BAD), ("memcached", b"stats\r\n", BAD),
    ("PROXY 1", b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" + GOOD, BAD), ("LFs", b"\n" * 100, BAD),
    ("PROXY 2", b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + bytes(12) + GOOD, BAD), ("8-bit", b"\xff" * 100, BAD),
    ("an answer", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", BAD), ("HTTP/0.9", b"GET /a\r\n", BAD),
    ("RTSP", b"OPTIONS rtsp://h/a RTSP/1.0\r\nCSeq: 1\r\n\r\n", BAD), ("spaces", b" " * 100, BAD),
])

add("RFC 9112, 8: incomplete", whole, [
    ("nothing", b"", SILENT), ("a blank line", b"\r\n", SILENT), ("CR", b"\r", SILENT), ("method", b"GET", SILENT),
    ("target", b"GET /a", SILENT), ("version", b"GET /a HTTP/1.1", SILENT), ("CR of a line", b"GET /a HTTP/1.1\r", SILENT),
    ("line", b"GET /a HTTP/1.1\r\n", SILENT), ("name", b"GET /a HTTP/1.1\r\nHo", SILENT),
    ("value", b"GET /a HTTP/1.1\r\nHost: h", SILENT), ("field", b"GET /a HTTP/1.1\r\nHost: h\r\n", SILENT),
    ("last CR", GOOD[:-1], SILENT), ("second request", GOOD + GOOD[:-2], Verdict(({200},), INCOMPLETE)),
])
