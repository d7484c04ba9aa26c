"""Responses of HTTP/1, parsed strictly: only what a correct server may send is accepted."""

import email.utils
import re
import time

ALLOWED_METHODS = {"GET", "HEAD", "OPTIONS"}


class ProtocolError(AssertionError):
    """The server's bytes are not what HTTP allows."""


TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9]) ([\x20-\x7e]+)\Z")
FIELD_LINE = re.compile(rb"(" + TOKEN + rb"): ([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)\Z")
IMF_DATE = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-3][0-9] "
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) "
    r"[0-9]{4} [0-2][0-9]:[0-5][0-9]:[0-6][0-9] GMT\Z"
)
STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e]*"\Z')
REPEATABLE = {"allow", "vary", "set-cookie", "cache-control", "link", "x-a"}


def http_date(when):
    return email.utils.formatdate(when, usegmt=True)


def parse_http_date(text):
    if not IMF_DATE.match(text):
        raise ProtocolError("not an IMF-fixdate: %r" % text)
    return email.utils.parsedate_to_datetime(text).timestamp()


class Response:
    def __init__(self, raw, head_only, may_be_chunked=False, asked_at=None):
        """asked_at: when its request was sent; it may be read much later."""
        self.raw = raw
        self.asked_at = asked_at or time.time()
        self.body = b""
        self.head_only = head_only
        self.may_be_chunked = may_be_chunked
        lines = raw[:-4].split(b"\r\n")
        if b"\n" in raw.replace(b"\r\n", b"") or b"\r" in raw.replace(b"\r\n", b""):
            raise ProtocolError("a CR or a LF alone: %r" % raw)
        match = STATUS_LINE.match(lines[0])
        if not match:
            raise ProtocolError("status line: %r" % lines[0])
        self.status = int(match.group(1))
        self.reason = match.group(2).decode()
        self.fields = []
        for line in lines[1:]:
            match = FIELD_LINE.match(line)
            if not match:
                raise ProtocolError("field line: %r" % line)
            self.fields.append((match.group(1).decode(), match.group(2).decode()))
        self.check()

    def all(self, name):
        return [v for n, v in self.fields if n.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        return values[0] if values else None

    def __contains__(self, name):
        return self.get(name) is not None

    @property
    def interim(self):
        return self.status < 200

    @property
    def bodyless(self):
        return self.head_only or self.interim or self.status in (204, 304)

    @property
    def length(self):
        """What Content-Length says, even if no body follows."""
        value = self.get("Content-Length")
        return None if value is None else int(value)

    @property
    def chunked(self):
        return "Transfer-Encoding" in self

    @property
    def closes(self):
        return "close" in [v.lower() for v in self.all("Connection")]

    def __repr__(self):
        return "<%d %s %r>" % (self.status, self.reason, self.fields)

    def check(self):
        for name in {n.lower() for n, _ in self.fields} - REPEATABLE:
            if len(self.all(name)) > 1:
                raise ProtocolError("%s repeated: %r" % (name, self.raw))
        if self.chunked and not self.may_be_chunked:
            raise ProtocolError("Transfer-Encoding: %r" % self.raw)
        if self.chunked and ("Content-Length" in self or self.get("Transfer-Encoding") != "chunked"):
            raise ProtocolError("framing: %r" % self.raw)
        if self.interim:
            return
        if "Date" not in self:
            raise ProtocolError("no Date: %r" % self.raw)
        date = parse_http_date(self.get("Date"))
        if not self.asked_at - 10 <= date <= time.time() + 10:
            raise ProtocolError("Date is not now: %r" % self.raw)
        self.check_validators(date)
        self.check_length()
        self.check_status_fields()

    def check_validators(self, date):
        if "Last-Modified" in self:
            # RFC 9110, 8.8.2.1: never later than the message itself.
            if parse_http_date(self.get("Last-Modified")) > date:
                raise ProtocolError("Last-Modified after Date: %r" % self.raw)
        tag = self.get("ETag")
        if tag is None:
            return
        weak = tag.startswith("W/")
        if not STRONG_ETAG.match(tag.removeprefix("W/")):
            raise ProtocolError("not an entity tag: %r" % self.raw)
        # Weak while a second modification could have the same time, and only then; that of a
        # listing always is.
        # Its date is then a second before that of the file.
        if weak and "Accept" not in self.all("Vary") and "Last-Modified" in self and (
                date - parse_http_date(self.get("Last-Modified")) > 2 + 1):
            raise ProtocolError("a weak entity tag: %r" % self.raw)

    def check_length(self):
        length = self.get("Content-Length")
        if self.status == 204:
            if length is not None:
                raise ProtocolError("204 with Content-Length: %r" % self.raw)
            return
        if length is None:
            if self.status != 304 and not self.chunked:
                raise ProtocolError("no Content-Length: %r" % self.raw)
        elif not re.match(r"(0|[1-9][0-9]*)\Z", length):
            raise ProtocolError("Content-Length: %r" % self.raw)

    def check_status_fields(self):
        if self.status == 405:
            allowed = {m.strip() for v in self.all("Allow") for m in v.split(",")}
            if allowed != ALLOWED_METHODS:
                raise ProtocolError("405 with Allow %r" % allowed)
        if self.status == 416:
            if not re.match(r"bytes \*/[0-9]+\Z", self.get("Content-Range") or ""):
                raise ProtocolError("416 without Content-Range: %r" % self.raw)
        elif self.status != 206 and "Content-Range" in self:
            raise ProtocolError("Content-Range on %d: %r" % (self.status, self.raw))
        if self.status in (301, 302, 307, 308) and "Location" not in self:
            raise ProtocolError("redirect without Location: %r" % self.raw)
        if self.status >= 400 and not self.length:
            raise ProtocolError("an error without a body: %r" % self.raw)
        if self.length and self.status not in (304,) and "Content-Type" not in self:
            raise ProtocolError("a body without Content-Type: %r" % self.raw)


class Part:
    def __init__(self, fields, body):
        self.fields = fields
        self.body = body
        match = re.match(r"bytes (\d+)-(\d+)/(\d+)\Z", fields.get("content-range", ""))
        if not match:
            raise ProtocolError("part without Content-Range: %r" % fields)
        self.first, self.last, self.size = map(int, match.groups())
        if len(body) != self.last - self.first + 1:
            raise ProtocolError("part of %d bytes: %r" % (len(body), fields))


def single_part(response):
    """The range of a 206 with one range."""
    return Part(
        {n.lower(): v for n, v in response.fields}, response.body
    )


def multipart(response):
    """Splits multipart/byteranges (RFC 9110, 14.6; RFC 2046, 5.1.1)."""
    match = re.match(
        r'multipart/byteranges; ?boundary=("?)([0-9A-Za-z\'()+_,./:=?-]{1,70})\1\Z',
        response.get("Content-Type"),
    )
    if not match:
        raise ProtocolError("Content-Type: %r" % response.get("Content-Type"))
    if "Content-Range" in response:
        raise ProtocolError("Content-Range on a multipart answer")
    delimiter = b"--" + match.group(2).encode()
    rest = b"\r\n" + response.body if response.body.startswith(delimiter) else response.body
    preamble, *parts = rest.split(b"\r\n" + delimiter)
    if preamble:
        raise ProtocolError("preamble: %r" % preamble)
    if parts.pop() not in (b"--\r\n", b"--"):
        raise ProtocolError("no closing delimiter: %r" % response.body[-100:])
    result = []
    for part in parts:
        if not part.startswith(b"\r\n"):
            raise ProtocolError("delimiter line: %r" % part[:100])
        head, separator, body = part[2:].partition(b"\r\n\r\n")
        if not separator:
            raise ProtocolError("part without an end of its head: %r" % part[:100])
        fields = {}
        for line in head.split(b"\r\n"):
            match = FIELD_LINE.match(line)
            if not match:
                raise ProtocolError("part field: %r" % line)
            fields[match.group(1).decode().lower()] = match.group(2).decode()
        result.append(Part(fields, body))
    return result
