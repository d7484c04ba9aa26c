"""docs/reference/messages.md against the messages of the sources, which tests/messages.txt has.

An entry is a row of a table: `message`, cause, cure.  The first cell may have several messages.  In
them a word in capitals stands for what the program fills in.  A message without an entry says its
cause and cure itself.
"""

import pathlib
import re

import pytest

pytestmark = pytest.mark.once
TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = TOP / "docs" / "reference" / "messages.md"
FORMAT = re.compile(r"%%|%[-+ #0-9.*]*(?:ll|l|z)?[a-zA-Z]|%?\{\w+\}")
PREFIX = re.compile(r"^(%s)?(; )?pagewise(?: %s| assign)?:(?: warning:)? ?")


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


def single_words():
    """Literals of one word, which tests/messages leaves out."""
    return {word for path in (TOP / "server").glob("*/*.c") for word in re.findall(r'"([a-zA-Z]+)"', path.read_text())}


def lines():
    return (TOP / "tests" / "messages.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def messages():
    found = [Message(line) for line in lines()]
    assert len(found) > 300
    return [message for message in found if re.search("[a-zA-Z]", FORMAT.sub("", message.text))]


class Entry:
    def __init__(self, row):
        self.cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        self.texts = re.findall(r"`([^`]+)`", self.cells[0])

    def __repr__(self):
        return self.cells[0]


@pytest.fixture(scope="module")
def entries():
    rows = PAGE.read_text(encoding="utf-8").splitlines()
    found = [Entry(row) for row in rows if row.startswith("| `")]
    assert len(found) > 12
    return found


def test_each_entry_has_a_message_a_cause_and_a_cure(entries):
    seen = set()
    for entry in entries:
        assert len(entry.cells) == 3 and all(entry.cells), entry
        assert re.sub(r"`[^`]+`|<br>|\s", "", entry.cells[0]) == "", entry
        for text in entry.texts:
            assert text not in seen, entry
            seen.add(text)


def test_each_entry_is_made_of_messages_of_the_sources(entries, messages):
    stale, words = [], single_words()
    for entry in entries:
        for text in entry.texts:
            left = list(text)
            for start, end in (span for message in messages for span in message.spans(text)):
                left[start:end] = " " * (end - start)
            unknown = [w for w in re.findall("[a-zA-Z]+", "".join(left)) if not w.isupper() and w not in words]
            if unknown:
                stale.append("%s\n    not in the sources: %s" % (text, " ".join(unknown)))
    assert not stale, "\n".join(stale)
