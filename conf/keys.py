#!/usr/bin/env python3
"""Writes what repeats the keys of the configuration, from the two places that have them once.

    keys.py [--check] PAGEWISE

The table of keys (server/conf/key.c), which PAGEWISE prints, has the values, the default, the places, the
version and one line of help; the section of a key in docs/reference/conf-*.md has the rest.  From these come

    docs/reference/conf-*.md         the line of facts below the heading of each key
    docs/reference/configuration.md  the index of all keys
    docs/man/pagewise.conf.5         those pages, for man(1)
    conf/pagewise.conf               the first paragraph of each section, with the default or an example
    server/conf/key_text.txt         the sections, for `pagewise -h KEY`

--check writes nothing, and ends with 1 if one of them would change.
"""

import argparse
import datetime
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True

from manual import TOP, anchor_of, target_of
from texts import blocks_of, filled, mdoc_lines, mdoc_spans, plain, plain_lines

REFERENCE = "docs/reference/"
INDEX = REFERENCE + "configuration.md"
MAN = "docs/man/pagewise.conf.5"
SAMPLE = "conf/pagewise.conf"
TEXT = "server/conf/key_text.txt"
SECTIONS = {"Sites": "site", "Locations": "location"}  # headings of what is no key
WIDTH = 100


class Key:
    """As `pagewise --keys` and `pagewise -h KEY` print it."""

    def __init__(self, pagewise, off, name, help_text):
        self.name, self.described, self.help = name, off == "#", help_text
        self.assignment, facts = re.match(r"(.+)\n\n((?: {4}.+\n)+)", run(pagewise, "-h", name)).groups()
        self.values = self.assignment.partition(" = ")[2]
        facts = dict(re.findall(r"^ {4}(\w+) +(.+)$", facts, re.M))
        self.default, self.allowed, self.since = facts["default"], facts["allowed"], facts["since"]
        self.range, self.option = facts.get("range"), facts.get("option")

    def facts(self):
        """The line below the heading."""
        default = self.default if self.described else "`%s`" % self.default
        parts = ["`%s`%s" % (self.assignment, " (%s)" % self.range if self.range else ""), "default: " + default,
                 self.allowed, *["also `%s`" % self.option] * bool(self.option), "since %s." % self.since]
        return "; ".join(parts)


def run(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def keys_of(pagewise):
    """In the order of --keys: [(heading, [Key, ...]), ...]"""
    groups = []
    for line in run(pagewise, "--keys").splitlines():
        found = re.match(r"(#?)(\w+) = .*? +# (.+); (?:default: .+|[^;]+)$", line)
        if found:
            groups[-1][1].append(Key(pagewise, *found.groups()))
        elif line.endswith(":"):
            groups.append((line, []))
    return groups


class Section:
    def __init__(self, page, title, text):
        self.page, self.title, self.text = page, title, text
        name = re.fullmatch(r"`(\w+)`", title)
        self.key = name[1] if name else SECTIONS.get(title) if page.path.endswith("conf-sites.md") else None


class Page:
    """A page of docs/reference, with new facts: its title, what stands before the first "##", and its sections."""

    def __init__(self, path, keys):
        self.path, self.keys = path, keys
        # Old facts begin with the key in code.
        self.text = re.sub(r"^## `(\w+)`\n\n(?:`\1 = [^\n]*\n(?:[^\n]+\n)*\n)?", self.head,
                           (TOP / path).read_text(encoding="utf-8"), flags=re.M)
        first, *rest = re.split(r"^## (.+)\n", self.text, flags=re.M)
        self.title, _, self.intro = first.removeprefix("# ").partition("\n")
        self.sections = [Section(self, title, text) for title, text in zip(rest[::2], rest[1::2])]

    def head(self, found):
        if found[1] not in self.keys:
            sys.exit("keys.py: %s: %s has no row in key.c" % (self.path, found[1]))
        return "## `%s`\n\n%s\n\n" % (found[1], "\n".join(filled(self.keys[found[1]].facts(), WIDTH)))


class Book:
    def __init__(self, pagewise):
        self.groups = keys_of(pagewise)
        self.keys = {key.name: key for _, keys in self.groups for key in keys}
        self.index = Page(INDEX, self.keys)
        listed = re.findall(r"^\| \*\*\[.*?\]\((conf-[\w-]+\.md)\)", self.index.text, re.M)
        others = sorted({path.name for path in (TOP / REFERENCE).glob("conf-*.md")} - set(listed))
        self.pages = [Page(REFERENCE + name, self.keys) for name in listed + others]
        self.sections = {}
        for page in self.pages:
            for section in page.sections:
                if section.key:
                    if section.key in self.sections:
                        sys.exit("keys.py: %s: %s has %s already" % (page.path, self.sections[section.key].page.path, section.key))
                    self.sections[section.key] = section
        for name in set(self.keys) - set(self.sections):
            sys.exit("keys.py: %s has no section in docs/reference/conf-*.md" % name)

    def with_index(self):
        lines = ["| key | what it is |", "|---|---|"]
        for page in self.pages:
            keys = [section.key for section in page.sections if section.key in self.keys]
            name = page.path.removeprefix(REFERENCE)
            lines.append("| **[%s](%s)** | |" % (page.title, name))
            lines += ["| [`%s`](%s#%s) | %s |" % (key, name, key, self.keys[key].help.replace("|", "\\|")) for key in keys]
        table = re.compile(r"(?<=\n)\| key \| what it is \|\n(?:\|.*\n)*")
        return table.sub(lambda _: "\n".join(lines) + "\n", self.index.text)

    # ------------------------------------------------------------ as blocks

    def blocks(self, section, refer):
        """refer(words, path, anchor) returns how a text names the place that a link leads to, or ""."""
        path = section.page.path if isinstance(section, Section) else section.path
        text = section.text if isinstance(section, Section) else section.intro

        def link(href, spans, before):
            words = plain(spans)
            if re.match(r"[a-z]+:", href):
                place = href
            else:
                to, anchor = target_of(path, href)
                place = refer(words, to, anchor)
                if words in (to, to.rpartition("/")[2]) and place:
                    return [("text", place)]
            if not place:
                return spans
            place = ("key", place) if place in self.keys else ("text", place)
            if before.endswith("("):
                return [*spans, ("text", ": "), place]
            return [*spans, ("text", " ("), place, ("text", ")")]

        return self.named(blocks_of(text, link))

    def named(self, what):
        """Code that is a key's name becomes a span of its own kind."""
        if isinstance(what, tuple) and what[0] == "code" and what[1] in self.keys:
            return ("key", what[1])
        if isinstance(what, tuple):
            return tuple(self.named(part) for part in what)
        return [self.named(part) for part in what] if isinstance(what, list) else what

    def without_facts(self, section, blocks):
        return blocks[1:] if section.key in self.keys else blocks

    def refer_key(self, words, anchor):
        """The key, "" if the words have it, None if the anchor is no key's."""
        if anchor not in self.keys:
            return None
        return "" if re.search(r"\b%s\b" % anchor, words) else anchor

    # ----------------------------------------------------- pagewise -h KEY

    def key_text(self):
        lines = ["# Made by conf/keys.py (make keys) from docs/reference/conf-*.md."]
        for name in [*SECTIONS.values(), *self.keys]:
            section = self.sections[name]

            def refer(words, to, anchor):
                place = self.refer_key(words, anchor)
                return place if place is not None else "" if to == section.page.path else to

            body = plain_lines(self.without_facts(section, self.blocks(section, refer)), 80)
            wrong = [line for line in body if line.startswith("@")]
            if wrong:
                sys.exit("keys.py: %s: a line begins with @" % name)
            lines += ["@%s %s" % (name, section.page.path), *body]
        return "\n".join(lines) + "\n"

    # ------------------------------------------------------------ the sample

    def example(self, key):
        """The first assignment of a block of the section, else of the page."""
        section = self.sections[key.name]
        for text in section.text, section.page.text:
            for block in re.findall(r"^```conf.*?\n(.*?)^```", text, re.M | re.S):
                found = re.search(r"^[ \t]*(%s = (?:\{[^}]*\}|[^\n#]+?))[ \t]*(?:#.*)?$" % key.name, block, re.M)
                if found:
                    return re.sub(r"\n\s*", " ", found[1])
        sys.exit("keys.py: %s: its section needs an example, a block of conf" % key.name)

    def sample_key(self, key, indent="", line=None):
        """The comment and the assignment of a key."""
        section = self.sections[key.name]
        blocks = self.without_facts(section, self.blocks(section, lambda *_: ""))
        if blocks[0][0] != "para":
            sys.exit("keys.py: %s: its section does not begin with a paragraph" % key.name)
        words = plain(blocks[0][1])
        comment = filled(plain(blocks[0][1]), WIDTH - 4 - 4 * len(indent), "# ", "# ")
        if key.values != "true|false":
            comment.append("# Values: %s%s." % (key.values, " (%s)" % key.range if key.range else ""))
        alternatives = key.values.strip("{}").split("|")
        value = key.default if re.fullmatch(r"\w+", key.default) else '"%s"' % key.default
        if key.values[0] == "{" and key.default not in alternatives:
            value = '{"%s"}' % key.default
        line = line or ("#" + self.example(key) if key.described else "%s = %s" % (key.name, value))
        return [indent + one for one in [*comment, line]]

    def sample(self):
        top, both, inherited, *_ = [keys for _, keys in self.groups]
        lines = SAMPLE_HEAD.splitlines()
        for keys, heading in (top, ""), (both, "These keys may also be set in a site."), (inherited, INHERITED):
            if heading:
                lines += ["", *filled(heading, WIDTH - 4, "# ", "# ")]
            for key in keys:
                lines += ["", *self.sample_key(key, line=SAMPLE_LINES.get(key.name))]
        for line in SAMPLE_SITE.splitlines():
            name = re.fullmatch(r"(\t+)(#?(names|root|alias) = .*)", line)
            first = name and name[3] not in SAMPLE_SITE.partition(line)[0]
            lines += self.sample_key(self.keys[name[3]], name[1], name[2]) if first else [line]
        return "\n".join(lines) + "\n"

    # ------------------------------------------------------------ the manual

    def mdoc_refer(self, words, to, anchor):
        place = self.refer_key(words, anchor)
        if place is not None:
            return place
        pages = {page.path: page for page in [self.index, *self.pages]}
        if to not in pages:
            return to
        page = pages[to]
        titles = {anchor_of(section.title): section.title for section in page.sections}
        title = titles.get(anchor, page.title)
        near = set(re.findall(r"\w{4,}", title.lower())) & set(re.findall(r"\w{4,}", words.lower()))
        return "" if near or words == title else "see %s" % title.upper()

    def mdoc_section(self, section):
        blocks = self.blocks(section, self.mdoc_refer)
        if section.key not in self.keys:
            return [".Ss " + section.title, *mdoc_lines(blocks)]
        key = self.keys[section.key]
        facts = key.facts().partition("`; ")[2] if not key.range else key.facts().partition("` ")[2]
        values = key.values.replace('"', "\\(dq")
        first = mdoc_spans(blocks_of(facts, None)[0][1])
        return [".It Cm %s No = %s" % (key.name, '"%s"' % values if " " in values else values), *first, ".Pp",
                *mdoc_lines(blocks[1:])]

    def mdoc_sections(self, sections):
        lines, within = [], False
        for section in sections:
            if (section.key in self.keys) != within:
                lines.append(".El" if within else ".Bl -tag -width Ds")
                within = not within
            lines += self.mdoc_section(section)
        return lines + [".El"] * within

    def manual(self, date):
        intro = self.blocks(self.index, self.mdoc_refer)
        example = next(text for kind, text in intro if kind == "code")
        lines = [".\\\" Made by conf/keys.py (make keys) from docs/reference/.", ".Dd " + date, *MAN_HEAD.splitlines()]
        lines += mdoc_lines([block for block in intro[1:] if block != ("code", example)])
        lines += self.mdoc_sections([section for section in self.index.sections if section.title != "All keys"])
        for page in self.pages:
            lines += [".Sh " + page.title.upper(), *mdoc_lines(self.blocks(page, self.mdoc_refer)[1:])]
            lines += self.mdoc_sections(page.sections)
        lines += [".Sh EXAMPLES", *mdoc_lines([("code", example)]), ".Sh SEE ALSO", ".Xr pagewise 8 ,", ".Xr pagewise-tool 8"]
        return "\n".join(lines) + "\n"


INHERITED = """The following keys may also be set in a site, and in a location of a site. There, a key that is not set is
inherited."""
SAMPLE_HEAD = """\
# pagewise.conf: the sample configuration.  It has every key with its default value, or an
# example behind a #.  Made by conf/keys.py (make keys).  `pagewise -h KEY` says more about a key;
# the manual is pagewise.conf(5).
#
#     pagewise -t -c pagewise.conf     checks the file
#     pagewise -c pagewise.conf        serves
#
# Relative paths start at the directory of this file.  Sizes take K, M or G (1024 each).  Times
# are seconds.  The order of keys does not matter.
"""
# What the sample sets although its default is a description.
SAMPLE_LINES = {"listen": 'listen = {"*:8080"}'}
SAMPLE_SITE = """
# The first site also answers requests for a host name that no site has.
site "welcome" {
\tnames = {"localhost"}

\troot = "welcome"

\t# For some paths: "/video/" those that begin with it, the longest one wins; "*.mp4"
\t# those that match; "= /x" exactly this one.
\tlocation "/video/" {
\t\t#root = "/srv/disk2"

\t\t#alias = "/srv/disk2/video"

\t\treadahead = 2M
\t\tcache = "auto"
\t}
}
"""
MAN_HEAD = """\
.Dt PAGEWISE.CONF 5
.Os
.Sh NAME
.Nm pagewise.conf
.Nd configuration file of pagewise
.Sh DESCRIPTION
.Xr pagewise 8
reads the file that its option
.Fl c
names.
It has keys with values, and in braces sites with locations; see
.Sx EXAMPLES .
"""


def main():
    parser = argparse.ArgumentParser(description="Writes what repeats the keys of the configuration.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("pagewise")
    options = parser.parse_args()
    stale = []

    def put(path, text):
        old = (TOP / path).read_text(encoding="utf-8") if (TOP / path).exists() else ""
        if text != old:
            stale.append(path)
            if not options.check:
                (TOP / path).write_text(text, encoding="utf-8")

    book = Book(options.pagewise)
    for page in book.pages:
        put(page.path, page.text)
    put(INDEX, book.with_index())
    put(SAMPLE, book.sample())
    put(TEXT, book.key_text())
    old = (TOP / MAN).read_text(encoding="utf-8")
    date = re.search(r"^\.Dd (.+)$", old, re.M)[1]
    if book.manual(date) != old:
        date = datetime.date.today().strftime("%B %-d, %Y")
    put(MAN, book.manual(date))
    for path in stale:
        print(("stale: %s: run make keys" if options.check else "%s") % path, file=sys.stderr if options.check else sys.stdout)
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
