"""The parts of Markdown that the pages of the manual use: blocks, headings, links, sentences.

A page is read line by line.  Each line has a kind, and prose is joined into paragraphs, so that
the checks of tests/lint_docs and the commands of test_commands.py see the same blocks.
"""

import re

FENCE = re.compile(r"(?P<fence>```+|~~~+)\s*(?P<info>[^`]*)$")
ITEM = re.compile(r"(?P<mark>[-*+]|\d{1,9}[.)])(?P<gap>\s+|$)")
HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
LINK = re.compile(r"!?\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<to>[^()\s]*(?:\([^()\s]*\))?)(?:\s+\"[^\"]*\")?\)")
DEFINITION = re.compile(r"\[(?P<text>[^\]]+)\]:\s+<?(?P<to>[^\s>]+)")
CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
ANCHOR = re.compile(r"<[a-z]+\s[^>]*\b(?:id|name)=\"([^\"]+)\"")
# An abbreviation is no end of a sentence, nor is a point inside of a word or a number.
END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bcf)[.!?][\"'”)*_]*(?=\s+[\"'“(*_]*[A-Z0-9\x01]|\s*$)")


class Block:
    """Code between fences, or lines that are indented (then info is None)."""

    def __init__(self, line, info):
        self.line, self.info, self.lines = line, info, []

    @property
    def text(self):
        return "".join(line + "\n" for line in self.lines)


class Page:
    """kinds[n] is of line n + 1: blank, code, table, heading, text, html."""

    def __init__(self, text):
        self.lines = text.splitlines()
        self.kinds, self.blocks, self.headings, self.paragraphs = [], [], [], []
        self.read()

    def read(self):
        block, fence, levels, blank, joined = None, None, [], True, False
        for number, line in enumerate(self.lines, 1):
            line = line.expandtabs(4)
            rest, indent = line.lstrip(), len(line) - len(line.lstrip())
            if fence:
                self.kinds.append("code")
                if rest.rstrip() == len(rest.rstrip()) * fence[0] and len(rest.rstrip()) >= len(fence):
                    block = fence = None
                else:
                    block.lines.append(line[min(indent, left(levels)):])
                continue
            if not rest:
                self.kinds.append("blank")
                if block:
                    block.lines.append("")
                blank, joined = True, False
                continue
            while levels and indent < levels[-1] and (blank or ITEM.match(rest) or FENCE.match(rest)):
                levels.pop()
            if block and (indent < left(levels) + 4):
                block = None
            if block or (blank and indent >= left(levels) + 4):
                if not block:
                    block = Block(number, None)
                    self.blocks.append(block)
                block.lines.append(line[left(levels) + 4:])
                self.kinds.append("code")
                continue
            blank = False
            item = ITEM.match(rest)
            while item and indent < left(levels) + 4:
                indent += len(item["mark"]) + min(len(item["gap"]), 4)
                levels.append(indent)
                rest, joined = rest[item.end():], False
                item = ITEM.match(rest)
            opening = FENCE.match(rest)
            if opening:
                fence = opening["fence"]
                block = Block(number, opening["info"].strip())
                self.blocks.append(block)
                self.kinds.append("code")
                joined = False
                continue
            self.other(number, rest, joined)
            joined = self.kinds[-1] == "text"
        for one in self.blocks:
            while one.info is None and one.lines and not one.lines[-1]:
                one.lines.pop()

    def other(self, number, rest, joined):
        heading = HEADING.match(rest)
        if heading:
            self.kinds.append("heading")
            self.headings.append((number, heading[2]))
        elif rest.startswith("|"):
            self.kinds.append("table")
        elif rest.startswith("<") and not rest.startswith("<http"):
            self.kinds.append("html")
        elif DEFINITION.match(rest):
            self.kinds.append("definition")
        else:
            self.kinds.append("text")
            rest = re.sub(r"^>\s?", "", rest)
            if joined:
                self.paragraphs[-1][1] += "\n" + rest
            else:
                self.paragraphs.append([number, rest])

    def sentences(self):
        """(line, words) of each sentence of prose; code and a link are what a reader reads."""
        for number, text in self.paragraphs:
            text = CODE.sub("\x01", text)
            text = LINK.sub(lambda m: "" if m[0].startswith("!") else m["text"], text)
            start = 0
            for end in [*(m.end() for m in END.finditer(text)), len(text)]:
                words = [w for w in text[start:end].split() if re.search(r"[\w\x01]", w)]
                if words:
                    yield number + text.count("\n", 0, start + len(text[start:]) - len(text[start:].lstrip())), words
                start = end

    def links(self):
        """(line, target) of each link that is not in code."""
        prose = "\n".join(line if kind != "code" else "" for line, kind in zip(self.lines, self.kinds))
        prose = CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), prose)
        for pattern in (LINK, DEFINITION):
            for found in pattern.finditer(prose):
                yield prose.count("\n", 0, found.start("to")) + 1, found["to"]
        # [![figure](figure.svg)](page.md): the outer one holds the inner one.
        for found in LINK.finditer(prose):
            for inner in LINK.finditer(found["text"]):
                yield prose.count("\n", 0, found.start()) + 1, inner["to"]

    def anchors(self):
        """As GitHub makes them of headings."""
        made = set()
        for _, title in self.headings:
            title = LINK.sub(lambda m: m["text"], title)
            slug = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
            name, number = slug, 0
            while name in made:
                number += 1
                name = "%s-%d" % (slug, number)
            made.add(name)
        prose = "\n".join(line for line, kind in zip(self.lines, self.kinds) if kind != "code")
        return made | set(ANCHOR.findall(prose))


def left(levels):
    """The column at which the text of the innermost list begins."""
    return levels[-1] if levels else 0
