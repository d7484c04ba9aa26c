#!/usr/bin/env python3
"""Makes one HTML page of the manual, for reading and searching in a browser.

    manual.py FILE

The pages of docs/README.md come in its order, each with its parts behind it, those of man(1) last.
Links between pages lead to places of the one page.  One to a file that the page does not have, such as a
source, becomes plain text.  docs/results/ has pictures for each page and is left out, and so is pagewise.conf(5), which is made from
pages that are there (keys.py).

The index at the end has each key, field of the access log, metric, and message that a page explains.
"""

import base64
import glob
import html
import os
import pathlib
import posixpath
import re
import subprocess
import sys

from markdown_it import MarkdownIt

TOP = pathlib.Path(__file__).resolve().parent.parent
FIRST = "docs/README.md"
LEFT_OUT = re.compile(r"docs/results/|CHANGELOG|pagewise\.conf\.5")
LINK = re.compile(r'<a href="([^"]*)">(.*?)</a>', re.S)
IMAGE = re.compile(r'src="([^":]*\.svg)"')
KEYS, INDEX = "Keys", {"name": "Fields of the access log", "metric": "Metrics", "message": "Messages"}
"""What the index has: headings of the pages of keys, and rows of tables by the first word of their head."""
STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
nav { padding: 1em; border-bottom: 1px solid var(--line); max-height: 40vh; overflow-y: auto; }
nav ul { margin: .3em 0; padding-left: 1.2em; }
main { padding: 0 1em; max-width: 52em; }
section { border-bottom: 1px solid var(--line); padding-bottom: 2em; }
pre, table { overflow-x: auto; display: block; }
pre { background: var(--soft); padding: .6em; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
:not(pre) > code { overflow-wrap: anywhere; }
table { border-collapse: collapse; }
th, td { border: 1px solid var(--line); padding: .3em .5em; text-align: left; vertical-align: top; }
img { max-width: 100%; }
@media (min-width: 70em) {
  nav { position: fixed; top: 0; bottom: 0; width: 17em; max-height: none; border-right: 1px solid var(--line); }
  main { margin-left: 20em; }
}
"""


def slug_of(path):
    """The id of a page: docs/reference/conf-tls.md is reference-conf-tls."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"^docs/(?!README)|\.md$", "", path).lower())


def anchor_of(title):
    """As GitHub makes it of a heading, since the links of the pages are written for it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def target_of(page, link):
    """The path that a link of a page leads to, from the top of the tree, and its fragment."""
    path, _, fragment = html.unescape(link).partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page, fragment


class Page:
    def __init__(self, path):
        self.path, self.id = path, slug_of(path)
        reader = MarkdownIt("commonmark").enable("table")
        tokens = reader.parse((TOP / path).read_text(encoding="utf-8"))
        self.title, self.anchors, self.entries = path, set(), []
        section = head = None
        for i, token in enumerate(tokens):
            if token.type == "heading_open":
                section = self.head(token, tokens[i + 1])
            elif token.type == "thead_open":
                head = tokens[i + 3].content  # behind tr and th
            elif token.type == "tr_open" and (head != "name" or section == "log_fields") and head in INDEX:
                self.row(token, tokens[i + 2], INDEX[head])
        self.body = reader.renderer.render(tokens, reader.options, {})

    def head(self, token, inline):
        title = "".join(part.content for part in inline.children)
        name, number = anchor_of(title), 0
        while name in self.anchors:
            number += 1
            name = "%s-%d" % (anchor_of(title), number)
        self.anchors.add(name)
        if token.tag == "h1":
            self.title = title
        token.attrs["id"] = "%s--%s" % (self.id, name)
        if "/conf-" in self.path and [part.type for part in inline.children] == ["code_inline"]:
            self.entries.append((KEYS, title, token.attrs["id"]))
        return name

    def row(self, token, cell, kind):
        """Each code in the first cell of a row is an entry; a metric without its labels."""
        names = [part.content for part in cell.children if part.type == "code_inline"]
        if kind == INDEX["metric"]:
            names = [name.partition("{")[0] for name in names]
        if names:
            token.attrs["id"] = "%s--entry-%d" % (self.id, len(self.entries))
        self.entries += [(kind, name, token.attrs["id"]) for name in names]

    @property
    def leads_to(self):
        for link, _ in LINK.findall(self.body):
            yield target_of(self.path, link)[0]


class Man:
    def __init__(self, path):
        self.path, self.id, self.title = path, slug_of(path), re.sub(r".*/(.*)\.(\d)", r"\1(\2)", path)
        made = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", TOP / path],
                              check=True, capture_output=True, text=True).stdout
        self.body = re.sub(r'\b(id|href)="(#?)', r'\1="\2%s--' % self.id, re.sub(r'href="(?!#)[^"]*"', "", made))
        self.anchors, self.entries = set(), []


def is_page(path):
    return path.endswith(".md") and not LEFT_OUT.search(path) and (TOP / path).is_file()


def belongs(path, above):
    """Whether a page is a part of another one: it is in its folder, or beside it."""
    return path.startswith(above[:-len(".md")] + "/") or posixpath.dirname(path) == posixpath.dirname(above)


def pages():
    """In the order of docs/README.md; after each of its pages the parts of that one."""
    listed = [FIRST, *filter(is_page, Page(FIRST).leads_to)]
    found = {}
    for path in listed:
        found.setdefault(path, Page(path))
        for part in found[path].leads_to:
            if is_page(part) and part not in listed and belongs(part, path):
                found.setdefault(part, Page(part))
    return [*found.values(), *(Man(path) for path in sorted(glob.glob("docs/man/*.[0-9]", root_dir=TOP))
                               if not LEFT_OUT.search(path))]


def resolved(page, known):
    def link(found):
        to, text = found[1], found[2]
        if re.match(r"[a-z]+:", to):
            return found[0]
        path, fragment = target_of(page.path, to)
        if path not in known:
            return text
        named = fragment and fragment in known[path].anchors
        return '<a href="#%s%s">%s</a>' % (known[path].id, "--" + fragment if named else "", text)

    def image(found):
        data = (TOP / target_of(page.path, found[1])[0]).read_bytes()
        return 'src="data:image/svg+xml;base64,%s"' % base64.b64encode(data).decode()

    if isinstance(page, Man):
        return page.body
    return IMAGE.sub(image, LINK.sub(link, page.body))


def index(all_pages):
    """A list of links for each kind."""
    entries = sorted({entry for page in all_pages for entry in page.entries}, key=lambda e: (e[1].lower(), e))
    for kind in (KEYS, *INDEX.values()):
        yield "<h2>%s</h2>\n<ul>" % kind
        for found, name, anchor in entries:
            if found == kind:
                yield '<li><a href="#%s"><code>%s</code></a></li>' % (anchor, html.escape(name))
        yield "</ul>"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: manual.py FILE")
    all_pages = pages()
    known = {page.path: page for page in all_pages}
    entry = '<li><a href="#%s">%s</a></li>'
    out = ['<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">',
           '<meta name="viewport" content="width=device-width, initial-scale=1">',
           "<title>pagewise: the manual</title>\n<style>%s</style>" % STYLE, "<nav><ul>",
           *[entry % (page.id, html.escape(page.title)) for page in all_pages],
           entry % ("index", "Index"), "</ul></nav>\n<main>"]
    for page in all_pages:
        out.append('<section id="%s">\n%s</section>' % (page.id, resolved(page, known)))
    out += ['<section id="index">\n<h1>Index</h1>', *index(all_pages), "</section>"]
    path = pathlib.Path(sys.argv[1])
    os.makedirs(path.parent, exist_ok=True)
    path.write_text("\n".join(out + ["</main>\n</html>\n"]), encoding="utf-8")


if __name__ == "__main__":
    main()
