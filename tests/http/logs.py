"""Access logs, read as strictly as they can be."""

import json
import re

from harness import wait_until

LINE = re.compile(
    r"(?P<peer>127\.0\.0\.1) - - "
    r"\[(?P<time>\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "
    r'"(?P<line>(?:[ !#-\[\]-~]|\\x[0-9A-F]{2})*)" '
    r"(?P<status>\d{3}) (?P<body>\d+) "
    r'"(?P<referer>(?:[ !#-\[\]-~]|\\x[0-9A-F]{2})*)" '
    r'"(?P<agent>(?:[ !#-\[\]-~]|\\x[0-9A-F]{2})*)" '
    r"(?P<bytes>\d+) (?P<duration>\d+) (?P<wait>\d+)\n"
)


class Log:
    def __init__(self, path):
        self.path = path

    def text(self):
        return self.path.read_text("latin-1") if self.path.exists() else ""

    def lines(self, count):
        """Waits for count lines; all of the log must match the format."""
        wait_until(lambda: self.text().count("\n") >= count, "%d log lines" % count)
        lines = self.text().splitlines(keepends=True)
        matches = [LINE.fullmatch(line) for line in lines]
        assert all(matches), lines
        assert len(matches) == count, lines
        return matches


FIELDS = ["time", "remote", "user", "method", "target", "protocol", "status", "bytes", "body_bytes",
          "referer", "user_agent", "host", "duration_us", "disk_wait_us"]


def sent_bytes(value):
    """What was sent, from what a JSON parser makes of a field."""
    parts = re.split(r"\\x([0-9A-F]{2})", value)
    assert not any("\\" in part for part in parts[::2])
    parts[::2] = [part.encode() for part in parts[::2]]
    parts[1::2] = [bytes.fromhex(part) for part in parts[1::2]]
    return b"".join(parts)


class JsonLog(Log):
    def objects(self, count):
        wait_until(lambda: self.text().count("\n") >= count, "%d log lines" % count)
        raw = self.path.read_bytes()
        assert raw.isascii() and raw.count(b"\n") == count and raw.endswith(b"\n")
        assert not re.search(rb"[\0-\x09\x0b-\x1f\x7f]", raw)
        result = [json.loads(line) for line in raw.splitlines()]
        assert all(list(x) == FIELDS for x in result)
        return result
