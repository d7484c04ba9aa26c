"""docs/reference/messages-*.md against the messages of the sources, which tests/messages.txt has.

An entry is a row of a table: `message`, cause, cure.  The first cell may have several messages.  In
them a word in capitals stands for what the program fills in.
"""

import pathlib
import re

import pytest

from harness import Finished

pytestmark = pytest.mark.once
TOP = pathlib.Path(__file__).resolve().parents[2]
REFERENCE = TOP / "docs" / "reference"
FORMAT = re.compile(r"%%|%[-+ #0-9.*]*(?:ll|l|z)?[a-zA-Z]|%?\{\w+\}")
PREFIX = re.compile(r"^(%s)?(; )?pagewise(?: %s| assign)?:(?: warning:)? ?")

# Not for readers of messages: wire formats, help, what is measured; misuse of the library, which
# its manual has; the module for nginx, which speaks in nginx's log.
NO_MESSAGES = re.compile(r"""lib/examples/.* | lib/nginx/.* | lib/os/(linux|linux_reclaim|meter|freebsd|linux_lookup)\.c
    | lib/file/file\.c | lib/loop\.c | lib/send/send(_private)?\.[ch]
    | server/admin/metrics\w*\.c | server/conf/(dump|foreign|summary)\.c | server/conn/(invariants|http2|preface)\.c
    | server/content/known\.h | server/http/(proxy_header|range|signed_link)\.c
    | server/http2/(head|stream)\.[ch] | server/tls/record_key\.c | server/tool/(progress|size_text)\.c
    """, re.X)
# The same in files that have messages as well.
PARTS = {
    "server/admin/admin.c": ["text/plain", "text/html", "default-src", "GET, HEAD", "Not Found",
                             "Method Not Allowed"],
    "server/admin/agent.c": ["Questions of", "The share of", "1 while balancers"],
    "server/conf/access.c": ["WWW-Authenticate"],
    "server/conf/args.c": ["default"],
    "server/conf/conf.c": ["certificate: ", "%s: site "],  # before the cause
    "server/conf/error_page.c": ["Content-Type"],
    "server/conf/header.c": ["always", "Accept-Ranges", "Access-Control", ", Authorization", "Server:"],
    "server/conf/key.c": ["; default: ", "("],  # defaults in words
    "server/conf/tls.c": ["Strict-Transport", "; includeSub", "; preload"],
    "server/conf/types.c": ["; charset="],
    "server/content/exchange.c": ["Retry-After"],
    "server/content/file_error.c": ["the response is cut", "the client gets 503"],
    "server/log/format.c": ["pagewise:"],
    "server/log/log.c": ["warning:"],
    "server/process/upgrade.c": [  # what the old program tells the new one
        "configuration ok", "child", "socket", "ticket_key", "pagewise", "withdraw"],
    "server/tls/identity.c": ["PRIVATE KEY", "%Y-"],
    "server/tool/main.c": ["usage: pagewise precompress -h,"],
    "server/tool/order.c": ["POST /", "Host: ", "Content-Length"],
}
# What these print is help.
HELP = {"server/conf/args.c": [["-h"]], "server/conf/key.c": [["--keys"]], "server/conf/sign.c": [["sign"]],
        "server/tool/main.c": [[command, "-h"] for command in ("precompress", "digest", "drain", "assign")]}


def unescaped(text):
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "", "t": "\t"}.get(m[1], m[1]), text)


class Message:
    """One of the sources; what it prints matches its pattern."""

    def __init__(self, line):
        self.file, text = line.split(": ", 1)
        self.text = PREFIX.sub("", unescaped(text))
        self.parts, at, pattern = 0, 0, ""
        for found in [*FORMAT.finditer(self.text), None]:
            part = self.text[at:found.start() if found else None]
            pattern += "(%s)" % re.escape(part) + (".*?" if found and found[0] != "%%" else "%" if found else "")
            at = found.end() if found else at
            self.parts += 1
        self.pattern = re.compile(pattern)
        self.literals = [part for part in FORMAT.split(self.text) if part]

    def __repr__(self):
        return "%s: %s" % (self.file, self.text)

    def spans(self, text):
        """Where its literal parts stand in a text that has all of them."""
        if all(part in text for part in self.literals):
            for found in self.pattern.finditer(text):
                yield from (found.span(i + 1) for i in range(self.parts))


def help_texts():
    return {name: "".join(run.out + run.err for run in (Finished(*words) for words in calls))
            for name, calls in HELP.items()}


def single_words():
    """Literals of one word, which tests/messages leaves out."""
    return {word for path in (TOP / "server").glob("*/*.c") for word in re.findall(r'"([a-zA-Z]+)"', path.read_text())}


def lines():
    return (TOP / "tests" / "messages.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def messages():
    helps, found = help_texts(), []
    for line in lines():
        message = Message(line)
        if NO_MESSAGES.fullmatch(message.file) or not re.search("[a-zA-Z]", FORMAT.sub("", message.text)):
            continue
        raw = unescaped(line.split(": ", 1)[1])
        if any(raw.lstrip().startswith(p) for p in PARTS.get(message.file, ())):
            continue
        if message.file in helps and re.search(".*?".join(map(re.escape, FORMAT.split(raw.strip()))), helps[message.file]):
            continue
        found.append(message)
    assert len(found) > 300
    return found


class Entry:
    def __init__(self, page, row):
        self.page = page
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        self.cells = cells
        self.texts = re.findall(r"`([^`]+)`", cells[0])

    def __repr__(self):
        return "%s: %s" % (self.page, self.cells[0])


@pytest.fixture(scope="module")
def entries():
    found = []
    for page in sorted(REFERENCE.glob("messages-*.md")):
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith("| `"):
                found.append(Entry(page.name, line))
    assert len(found) > 200
    return found


def test_each_entry_has_a_message_a_cause_and_a_cure(entries):
    seen = set()
    for entry in entries:
        assert len(entry.cells) == 3 and all(entry.cells), entry
        assert re.sub(r"`[^`]+`|<br>|\s", "", entry.cells[0]) == "", entry
        for text in entry.texts:
            assert text not in seen, entry
            seen.add(text)


@pytest.mark.slow
def test_each_message_of_the_sources_has_an_entry(entries, messages):
    texts = "\n".join(text for entry in entries for text in entry.texts)
    lacking = [message for message in messages if not any(message.spans(texts))]
    assert not lacking, "no entry in docs/reference/messages-*.md:\n" + "\n".join(map(repr, lacking))


def test_each_entry_is_made_of_messages_of_the_sources(entries, messages):
    stale, words = [], single_words()
    for entry in entries:
        for text in entry.texts:
            left = list(text)
            for start, end in (span for message in messages for span in message.spans(text)):
                left[start:end] = " " * (end - start)
            unknown = [w for w in re.findall("[a-zA-Z]+", "".join(left)) if not w.isupper() and w not in words]
            if unknown:
                stale.append("%s: %s\n    not in the sources: %s" % (entry.page, text, " ".join(unknown)))
    assert not stale, "\n".join(stale)


def test_nothing_is_left_out_that_is_no_more():
    files = {line.split(": ", 1)[0] for line in lines()}
    for pattern in re.sub(r"\s+", "", NO_MESSAGES.pattern).split("|server"):
        assert any(NO_MESSAGES.fullmatch(f) for f in files), pattern
    for name, parts in PARTS.items():
        for part in parts:
            assert any(unescaped(line).startswith("%s: %s" % (name, part)) or
                       re.match(re.escape(name) + r":\s+" + re.escape(part), unescaped(line)) for line in lines()), (name, part)
