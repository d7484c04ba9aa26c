"""tests/lint_comments: what it lets through, and what not."""

import importlib.machinery
import importlib.util
import pathlib

import pytest

PATH = str(pathlib.Path(__file__).resolve().parent.parent / "lint_comments")

_loader = importlib.machinery.SourceFileLoader("lint_comments", PATH)
lint_comments = importlib.util.module_from_spec(importlib.util.spec_from_loader("lint_comments", _loader))
_loader.exec_module(lint_comments)


@pytest.mark.parametrize("comment, wrong", [
    ("Returns NULL if memory is short.", None),
    ("Often read; offset of the whole file.", None),
    ("Selects user nobody.", None),
    ("default such as \"nobody\"", None),
    ("Of one that was entered: it is closed.", "Of"),
    ("NULL: no memory.", "NULL:"),
    ("-EAGAIN: full.", "-EAGAIN:"),
    ("0: none", "0:"),
    ("Whoever comes.", "Whoever"),
    ("What is sent.", "What"),
    ("Frees it when\n * nobody uses it.", "nobody"),
    ("Pages that were brought\n * in.", "brought in"),
])
def test_words_of_a_comment(comment, wrong):
    found = [w for _, w in lint_comments.faults("int a; /* %s */\n" % comment)]
    assert found == ([wrong] if wrong else [])


def test_line_and_file_are_named(tmp_path):
    for path in ("server/http/range.c", "lib/nginx/module.c"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("int a;\n\n/* Of it. */\nint b;\n")
    assert lint_comments.check(tmp_path) == ['server/http/range.c:3: a comment with "Of": name the actor']
