"""Markdown as blocks, and the writers that keys.py needs: plain text and mdoc(7).

A block is ("para", spans), ("list" or "steps", [blocks of an item, ...]), ("table", rows of cells,
each a list of spans; the first row is the head), ("code", text) or ("head", spans).  A span is (kind,
text); the kinds are text, code, key, strong and em.
"""

import re
import textwrap

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

READER = MarkdownIt("commonmark").enable("table")


def blocks_of(text, link):
    """link(href, spans, the text before it): the spans that stand for a link."""
    return Reader(link).blocks(SyntaxTreeNode(READER.parse(text)).children)


def plain(spans):
    return "".join(text for _, text in spans)


class Reader:
    def __init__(self, link):
        self.link = link

    def blocks(self, nodes):
        return [self.block(node) for node in nodes]

    def block(self, node):
        if node.type in ("paragraph", "heading"):
            return ("para" if node.type == "paragraph" else "head", self.spans(node.children[0].children))
        if node.type in ("bullet_list", "ordered_list"):
            items = [self.blocks(item.children) for item in node.children]
            return ("list" if node.type == "bullet_list" else "steps", items)
        if node.type == "table":
            return ("table", [[self.spans(cell.children[0].children) if cell.children else [] for cell in row.children]
                              for part in node.children for row in part.children])
        if node.type == "fence":
            return ("code", node.content)
        raise ValueError("no writer for " + node.type)

    def spans(self, nodes):
        found = []
        for node in nodes:
            if node.type == "softbreak":
                found.append(("text", " "))
            elif node.type == "code_inline":
                found.append(("code", node.content))
            elif node.type in ("strong", "em"):
                found.append((node.type, plain(self.spans(node.children))))
            elif node.type == "link":
                found += self.link(node.attrs["href"], self.spans(node.children), plain(found))
            elif node.type == "text":
                found.append(("text", node.content))
            else:
                raise ValueError("no writer for " + node.type)
        return found


# ---------------------------------------------------------------- plain text

def filled(text, width, first="", rest=""):
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                         break_on_hyphens=False)


def plain_lines(blocks, width):
    """With an empty line between blocks, none at the end."""
    lines = []
    for kind, what in blocks:
        if lines:
            lines.append("")
        if kind == "para":
            lines += filled(plain(what), width)
        elif kind == "head":
            lines.append(plain(what).upper())
        elif kind == "code":
            lines += ["    " + line if line else "" for line in what.expandtabs(4).splitlines()]
        elif kind == "table":
            lines += plain_table(what, width)
        else:
            for number, item in enumerate(what, 1):
                mark = "- " if kind == "list" else "%d. " % number
                inner = plain_lines(item, width - len(mark))
                lines += [(" " * len(mark) if n else mark) + line if line else "" for n, line in enumerate(inner)]
    return lines


def table_entries(rows):
    """(first cell, [paragraph, ...]) of each row.  With three columns or more the heads name the others."""
    head = rows[0]
    for row in rows[1:]:
        if len(head) == 2:
            yield row[0], [row[1]] if row[1] else []
        else:
            yield row[0], [[*name, ("text", ": "), *cell] if name else cell
                           for name, cell in zip(head[1:], row[1:]) if cell]


def plain_table(rows, width):
    for first, cells in table_entries(rows):
        yield from filled(plain(first), width)
        for cell in cells:
            yield from filled(plain(cell), width, "    ", "    ")


# ---------------------------------------------------------------------- mdoc

CLOSING, OPENING = ".,:;)]?!", "(["
END = re.compile(r"[.?!][)\"']*$")
REFERENCE = re.compile(r"(?<![\w/])([a-z][\w.-]*)\(([1-9])\)")
MACROS = {"code": "Ql", "key": "Cm", "strong": "Sy", "em": "Em"}


def escaped(text):
    text = text.replace("\\", "\\e")
    return re.sub(r"[^\x00-\x7f]", lambda m: "\\[u%04X]" % ord(m[0]), text)


def argument(text, literal=False):
    """One argument of a macro."""
    text = escaped(text).replace('"', "\\(dq")
    if literal:
        text = text.replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    if text in list(CLOSING + OPENING + "|") or re.fullmatch(r"[A-Z%][A-Za-z0-9]{1,2}", text):
        text = "\\&" + text
    return '"%s"' % text if " " in text or not text else text


def words_of(spans):
    """Words, each a list of (macro or "", text) that nothing separates."""
    words, joined = [], False
    for kind, text in spans:
        if kind != "text":
            parts = [(MACROS[kind], text)]
        else:
            parts = []
            for n, part in enumerate(REFERENCE.split(text)):
                if n % 3 == 0:
                    parts.append(("", part))
                elif n % 3 == 1:
                    parts.append(("Xr", part))
                else:
                    parts[-1] = ("Xr", parts[-1][1] + " " + part)
        for macro, part in parts:
            pieces = [part] if macro else re.split(r"\s+", part)
            for n, piece in enumerate(pieces):
                if n:
                    joined = False
                if not piece:
                    continue
                if joined:
                    words[-1].append((macro, piece))
                else:
                    words.append([(macro, piece)])
                joined = True
    return words


def macro_line(word, alone=True):
    """A word that has a macro, as the arguments of a line; not alone, Ql must not enclose what follows."""
    args, glued = [], False
    alone = alone and len([macro for macro, _ in word if macro]) == 1
    for n, (macro, text) in enumerate(word):
        if macro == "Xr":
            args = ["No", "\\&("] if args == ["("] else args
            args += ["Ns"] * glued + ["Xr", *text.split()]
        elif macro:
            opening = [args.pop()] if n and args[-1:] in (["("], ["["]) else []
            args += ["Ns"] * (glued and not opening)
            if macro == "Ql" and not alone:
                args += [*opening, "So", argument(text, True), "Sc"]
            else:
                args += [macro, *opening, argument(text, True)]
        else:
            last = n == len(word) - 1
            if n == 0:
                lead = re.match(r"[(\[]*$", text)
                args += list(text) if lead and len(text) == 1 else ["No", argument(text)]
                glued = True
                continue
            body = text.rstrip(CLOSING) if last else text
            if not last and text in OPENING:
                args += ["Ns", "No", argument(text)]
            elif not last and body and all(c in CLOSING for c in body):
                args += list(body)
            elif body:
                closing = re.match("[%s]*" % re.escape(CLOSING), body)[0]
                args += [*closing, "Ns", "No", argument(body[len(closing):])] if body != closing else list(closing)
            args += list(text[len(body):])
        glued = True
    return args


def mdoc_spans(spans):
    lines, words = [], words_of(spans)
    text = []

    def flush():
        if text:
            line = escaped(" ".join(text))
            lines.extend(textwrap.wrap(("\\&" if line[0] in ".'" else "") + line, 90, break_long_words=False,
                                       break_on_hyphens=False))
            text.clear()

    for word in words:
        if all(not macro for macro, _ in word):
            text.append("".join(part for _, part in word))
            if END.search(text[-1]):
                flush()
        else:
            flush()
            lines.append("." + " ".join(macro_line(word)))
    flush()
    return ["\\&" + line if line[0] == "'" else line for line in lines]


def mdoc_tag(spans):
    """The same on one line, for .It."""
    args, plainly, words = [], False, words_of(spans)
    for word in words:
        if all(not macro for macro, _ in word):
            args += ["No"] * (not plainly) + [argument("".join(part for _, part in word))]
            plainly = True
        else:
            args += macro_line(word, len(words) == 1)
            plainly = False
    return " ".join(args)


def mdoc_lines(blocks):
    lines = []
    for n, (kind, what) in enumerate(blocks):
        if kind == "para":
            lines += [".Pp"] * (n > 0) + mdoc_spans(what)
        elif kind == "head":
            lines += [".Pp"] * (n > 0) + [".Sy " + argument(plain(what))]
        elif kind == "code":
            lines.append(".Bd -literal -offset indent" + " -compact" * (n == 0))
            for line in what.expandtabs(4).splitlines():
                line = escaped(line)
                lines.append("\\&" + line if line[:1] in (".", "'") else line)
            lines.append(".Ed")
        elif kind == "table":
            lines.append(".Bl -tag -width Ds")
            for first, cells in table_entries(what):
                lines.append(".It " + mdoc_tag(first))
                for m, cell in enumerate(cells):
                    lines += [".br"] * (m > 0) + mdoc_spans(cell)
            lines.append(".El")
        else:
            lines.append(".Bl -bullet" if kind == "list" else ".Bl -enum")
            for item in what:
                lines += [".It", *mdoc_lines(item)]
            lines.append(".El")
    return lines
