"""tests/lint_docs, which `make lint` runs: what it says of pages that are not as they should be."""

import importlib.machinery
import importlib.util
import os
import sys

import pytest

import harness
from pages import Page

pytestmark = [pytest.mark.once, pytest.mark.needs("codespell")]
README = "# Name\n\nFor readers. [Start](docs/start.md)\n"
START = "# Start\n\nA page.\n\n## The first one\n\n## The first one\n\n## `-t`, *and* [a link](x): so_on 2.0\n"


_loader = importlib.machinery.SourceFileLoader("lint_docs", os.path.join(harness.TREE, "tests/lint_docs"))
lint_docs = importlib.util.module_from_spec(importlib.util.spec_from_loader("lint_docs", _loader))
_loader.exec_module(lint_docs)


@pytest.fixture
def lint(tmp_path, monkeypatch, capsys):
    """Spelling, which takes longer than all other checks, only where it is asked for."""
    def check(readme=README, *args, speller=lambda tree: {}, **pages):
        (tmp_path / "docs").mkdir()
        (tmp_path / "README.md").write_text(readme)
        for name, text in {"start": START.replace("(x)", "(start.md)"), **pages}.items():
            (tmp_path / "docs" / (name + ".md")).write_text(text)
        monkeypatch.setattr(lint_docs.Tree, "spelling", speller)
        monkeypatch.setattr(sys, "argv", ["lint_docs", "--tree", str(tmp_path), *args])
        status = lint_docs.main()
        done = capsys.readouterr()
        assert status == (1 if done.err else 0) and not done.out
        return done.err.splitlines()

    return check


SPELLER = lint_docs.Tree.spelling


def test_pages_in_order_are_passed_in_silence(lint):
    assert lint(speller=SPELLER) == []


def test_line_is_too_long(lint):
    assert lint(README + "\n" + "word " * 21 + "\n") == ["README.md:5: width: 105 characters"]


@pytest.mark.parametrize("line", [
    "https://example.org/" + "x" * 100, "- [a link](https://example.org/%s)" % ("x" * 100), "| %s |" % ("word " * 30),
    "```text\n%s\n```" % ("word " * 30)], ids=["url", "link", "table", "code"])
def test_line_that_cannot_be_broken_may_be_long(lint, line):
    assert lint(README + "\n" + line + "\n") == []


@pytest.mark.parametrize("link, why", [
    ("docs/other.md", "there is no such file"), ("docs/start.md#last", "there is no such heading"),
    ("#names", "there is no such heading"), ("../a", "leads out of the tree"), ("/docs/start.md", "leads out of the tree"),
    ("docs/start.md#the-first-one-2", "there is no such heading")])
def test_link_leads_nowhere(lint, link, why):
    assert lint(README + "\n[a\nb](%s)\n" % link) == ["README.md:6: link: %s: %s" % (link, why)]


@pytest.mark.parametrize("link", [
    "docs/start.md", "#name", "docs/start.md#the-first-one", "docs/start.md#the-first-one-1", "docs", "https://example.org/#a",
    "mailto:a@example.org", "docs/start.md#-t-and-a-link-so_on-20"])
def test_link_leads_somewhere(lint, link):
    assert lint(README + "\n[a](%s)\n" % link) == []


def test_link_by_a_definition_and_of_a_figure(lint):
    assert lint(README + "\n[![a](b.svg)](docs/start.md) [c]\n\n[c]: d.md\n") == [
        "README.md:5: link: b.svg: there is no such file", "README.md:7: link: d.md: there is no such file"]


def test_link_in_code_is_none(lint):
    assert lint(README + "\n`[a](b)`\n\n```text\n[a](b)\n```\n") == []


def test_page_is_not_reached(lint):
    assert lint(other="# Other\n\n[Start](start.md)\n") == ["docs/other.md:1: reach: no link leads here from README.md"]

@pytest.mark.parametrize("code, why", [
    ("    code", "code without fences"), ("```\ncode\n```", "no language of LANGUAGES: none"),
    ("```shell\ncode\n```", "no language of LANGUAGES: shell"), ("- item\n\n      code", "code without fences"),
    ("~~~\ncode\n~~~", "no language of LANGUAGES: none")])
def test_block_without_a_language(lint, code, why):
    line = 5 + code[:code.index("code")].count("\n") * (why[0] == "c")
    assert lint(README + "\n" + code + "\n") == ["README.md:%d: block: %s" % (line, why)]


def test_block_in_a_list(lint):
    assert lint(README + "\n1. one\n\n   ```sh\n   true\n   ```\n\n   more\n\n10. two\n\n    more\n    of it\n") == []


def test_readme_is_too_long(lint):
    assert lint(README + "\n" * 118) == ["README.md:121: length: 121 lines"]


def test_sentence_is_too_long(lint):
    start = "# Start\n\nShort.  A 1.5 e.g. `a b. C`,\n" + "word " * 18 + "\n" + "word " * 18 + "end.\nShort.\n"
    assert lint(start=start) == ["docs/start.md:3: sentence: 41 words: A 1.5 e.g. `...`, word word word word ..."]


def test_sentence_ends_with_its_paragraph(lint):
    assert lint(README + "\n- " + "word " * 15 + "\n- " + "word " * 15 + "\n\n" + "word " * 15 + "\n") == []


def test_word_is_misspelt(lint):
    assert lint(README + "\nteh word\n", speller=SPELLER) == ["README.md:5: spelling: teh ==> the"]


def test_pages_can_be_named(lint):
    bad = "\nteh word\n"
    assert lint(README + bad, "docs/start.md", speller=SPELLER, start=START + bad)[0].startswith("docs/start.md:")


def test_block_has_the_text_that_a_reader_copies():
    page = Page("- a\n  ```sh\n  one\n    two\n\n  three\n  ```\n\n      four\n\n      five\nsix\n")
    assert [(b.line, b.info, b.text) for b in page.blocks] == [
        (2, "sh", "one\n  two\n\nthree\n"), (9, None, "four\n\nfive\n")]
