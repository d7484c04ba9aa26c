#!/usr/bin/env python3
"""Makes the manual pages of the library's functions from its header and from examples.

    man3.py [--check]

A comment of lib/pagewise.h that begins with "----- pw_send(3): WHAT" starts the page docs/man/pw_send.3.  The
page has everything up to the next such comment: the functions in the synopsis, then each comment with the
types below it.  Its example is lib/examples/man/pw_send.c.  libpagewise(3) is written by hand, except for its
list of functions and its example, which stand between two comments.  With --check nothing is written, and the
exit status is 1 if a page is not current.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
MAN, EXAMPLES = TOP / "docs/man", TOP / "lib/examples/man"
HEADER, OVERVIEW = TOP / "lib/pagewise.h", MAN / "libpagewise.3"
PAGE = re.compile(r"-+ (pw_\w+)\(3\): (.*)")
PROTOTYPE = re.compile(r"^(\w[\w *]*[ *])(pw_\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\);", re.M)
ROW = re.compile(r"  (\S+(?: \S+)*)\s{2,}(\S.*)$")
ITEM = re.compile(r"(-|\d+\.) +(\S.*)$")
LISTS = {"row": "-tag -width -EINPROGRESS -compact", "-": "-bullet", "1.": "-enum"}
WORD = re.compile(r"([(`\[]*)(.*?)('s|)([.,;:!?)\]']*)$")


class Block:
    """A comment, and the declarations below it."""

    def __init__(self, comment, code):
        self.text = [re.sub(r"^ \* ?", "", line) for line in comment.splitlines()[1:-1]] if "\n" in comment \
            else [comment[2:-2].strip()]
        self.prototypes = [[" ".join(part.split()) for part in found] for found in PROTOTYPE.findall(code)]
        self.types = re.findall(r"^((?:struct|enum) pw_\w+) \{", code, re.M)
        code = re.sub(r"^(?:struct pw_\w+;|#(?:ifdef|if|endif|include)\b.*|extern \"C\" \{|\})$", "", PROTOTYPE.sub("", code), flags=re.M)
        self.code = re.sub(r"\n{3,}", "\n\n", code).strip("\n")

    @property
    def functions(self):
        return [name for _, name, _ in self.prototypes]


def blocks(text):
    parts = re.split(r"^(/\*.*?\*/)$", text, flags=re.M | re.S)
    return [Block(comment, code) for comment, code in zip(parts[1::2], parts[2::2])]


class Page:
    def __init__(self, name, what, block):
        self.name, self.what = name, what
        block.text = block.text[1:]
        self.blocks = [block]

    @property
    def functions(self):
        return [name for block in self.blocks for name in block.functions]


def pages():
    found = []
    for block in blocks(HEADER.read_text(encoding="utf-8")):
        start = PAGE.match(block.text[0])
        if start:
            found.append(Page(start[1], start[2], block))
        elif found:
            found[-1].blocks.append(block)
    return found


def macro_of(word, functions):
    """The macro of mdoc(7) for a word of prose, with its arguments, or None."""
    if word in functions:
        return "Fn " + word
    if re.fullmatch(r"-E[A-Z0-9]+", word):
        return "Fl " + word[1:]
    if re.fullmatch(r"NULL|SIG[A-Z]{3,}|E[A-Z]{3,}|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+", word):
        return "Dv " + word
    if re.fullmatch(r"[a-z0-9_]+\([1-9]\)", word):
        return "Xr %s %s" % (word[:-3], word[-2])
    if re.fullmatch(r"[a-z]\w*(?:_\w+)+(?:\.\w+)*", word):
        return "Fa " + word
    return None


def prose(text, functions):
    """Lines of mdoc(7): a sentence begins a line, and so does each name."""
    line = ""
    for word in re.sub(r"\bstruct (pw_\w+)", "struct\x01\\1", text).split():
        opening, core, ending, closing = WORD.match(word).groups()
        if core.startswith("struct\x01"):
            macro = 'Vt "%s"' % core.replace("\x01", " ")
        else:
            # name(3) ends as a word in brackets does.
            if re.match(r"[a-z0-9_]+\([1-9]$", core) and closing.startswith(")"):
                core, closing = core + ")", closing[1:]
            macro = macro_of(core, functions)
        if macro and not ending:
            if line:
                yield line
            line = ""
            name, arguments = macro.split(" ", 1)
            yield " ".join([".%s" % name, *opening, arguments, *closing])
            continue
        word = word.replace("\x01", " ").replace("\\", "\\e")
        if not line and word[0] in ".'":
            word = "\\&" + word
        line += (" " if line else "") + word
        if re.search(r"[.?!]\)?$", word) and word not in ("e.g.", "i.e.") or len(line) > 70:
            yield line
            line = ""
    if line:
        yield line


def paragraphs(lines):
    """(kind, tag, text): kinds are "", for a paragraph, and the keys of LISTS."""
    kind, tag, text, inside = "", "", [], 0
    for line in [*lines, ""]:
        row, item = ROW.match(line), ITEM.match(line)
        goes_on = kind and line.startswith(" " * inside)
        if text and (not line.strip() or ((row or item) and not goes_on) or (kind and not goes_on)):
            yield kind, tag, " ".join(text)
            kind, tag, text = "", "", []
        if row and not goes_on:
            kind, tag, text, inside = "row", row[1], [row[2]], 4
        elif item and not goes_on:
            kind, tag, text, inside = "-" if item[1] == "-" else "1.", "", [item[2]], 2
        elif line.strip():
            text.append(line.strip())
        else:
            kind = ""


def inline(lines):
    """One line of lines of prose."""
    return ".It " + " ".join(line[1:] if re.match(r"\.[A-Z]", line) else "No " + line for line in lines)


def description(lines, functions):
    listed, first = "", True
    for kind, tag, text in paragraphs(lines):
        if kind != listed:
            if listed:
                yield ".El"
            if kind:
                yield ".Bl " + LISTS[kind]
        if kind:
            yield ".It" if kind != "row" else inline(prose(tag, functions))
        elif not first:
            yield ".Pp"
        yield from prose(text, functions)
        listed, first = kind, False
    if listed:
        yield ".El"


def literal(code):
    """Code as it stands, but indented by four columns instead of a tab."""
    yield ".Bd -literal"
    for line in code.expandtabs(8).splitlines():
        body = line.lstrip()
        indent = len(line) - len(body)
        line = " " * (indent - indent // 8 * 4) + body
        yield re.sub(r"^(?=[.'])", r"\\&", line.replace("\\", "\\e"))
    yield ".Ed"


def example(name):
    code = (EXAMPLES / (name + ".c")).read_text(encoding="utf-8")
    comment, code = re.match(r"/\*(.*?)\*/\n(.*)", code, re.S).groups()
    yield from prose(re.sub(r"\s*\n \* ?", " ", comment), everything)
    yield from literal(code.strip("\n"))


def quoted(text):
    return '"%s"' % text if " " in text else text


def synopsis(page):
    for block in page.blocks:
        for returns, name, arguments in block.prototypes:
            yield ".Ft " + quoted(returns.strip())
            yield ".Fo " + name
            yield from (".Fa " + quoted(argument.strip()) for argument in arguments.split(","))
            yield ".Fc"


def man(page, date, all_pages):
    names = [page.name, *page.functions]
    yield '.\\" Made by conf/man3.py from lib/pagewise.h: change that, and run `make man`.'
    yield from (".Dd " + date, ".Dt %s 3" % page.name.upper(), ".Os", ".Sh NAME")
    yield from (".Nm %s%s" % (name, " ," if name != names[-1] else "") for name in names)
    yield from (".Nd " + page.what, ".Sh SYNOPSIS", ".In pagewise.h", *synopsis(page), ".Sh DESCRIPTION")
    for block in page.blocks:
        names = block.functions or block.types
        if names and block is not page.blocks[0]:
            yield ".Ss " + " , ".join(names).replace(" ,", ",")
        elif block is not page.blocks[0]:
            yield ".Pp"
        yield from description(block.text, everything)
        if block.code:
            yield from literal(block.code)
    yield from (".Sh RETURN VALUES",
                "Functions that return", ".Vt int", "return 0 or a negated", ".Xr errno 2 ,",
                "if the description does not give other values.")
    yield from (".Sh EXAMPLES", *example(page.name), ".Sh SEE ALSO", ".Xr libpagewise 3 ,")
    others = sorted(other.name for other in all_pages if other is not page)
    yield from (".Xr %s 3%s" % (name, " ," if name != others[-1] else "") for name in others)


def index(all_pages):
    yield ".Bl -tag -width pw_fetch(3)"
    for page in all_pages:
        yield ".It Xr %s 3" % page.name
        yield page.what + (":" if page.functions else "")
        last = len(page.functions) - 1
        yield from (".Fn %s%s" % (name, "" if n == last else " ,") for n, name in enumerate(page.functions))
    yield ".El"


def between(text, what, lines):
    """Replaces what stands between the comments `BEGIN what` and `END what`."""
    begin, end = ('.\\" %s %s\n' % (word, what) for word in ("BEGIN", "END"))
    head, _, rest = text.partition(begin)
    return head + begin + "".join(line + "\n" for line in lines) + end + rest.partition(end)[2]


everything = set()


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: man3.py [--check]")
    all_pages = pages()
    everything.update(name for page in all_pages for name in page.functions)
    old = OVERVIEW.read_text(encoding="utf-8")
    date = re.match(r"\.Dd (.*)", old)[1]
    made = {OVERVIEW: between(between(old, "functions", index(all_pages)), "example", example("libpagewise"))}
    for page in all_pages:
        made[MAN / (page.name + ".3")] = "".join(line + "\n" for line in man(page, date, all_pages))
    wrong = {path for path in MAN.glob("pw_*.3") if path not in made}
    wrong |= {path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text}
    for path in sorted(wrong):
        if "--check" in sys.argv:
            print("%s: not as lib/pagewise.h and lib/examples/man have it: run `make man`" % path.relative_to(TOP),
                  file=sys.stderr)
        elif path in made:
            path.write_text(made[path], encoding="utf-8")
        else:
            path.unlink()
    return 1 if wrong and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
