"""tests/lint_commits: what it lets through, and what not."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess

import pytest

PATH = str(pathlib.Path(__file__).resolve().parent.parent / "lint_commits")

_loader = importlib.machinery.SourceFileLoader("lint_commits", PATH)
lint_commits = importlib.util.module_from_spec(importlib.util.spec_from_loader("lint_commits", _loader))
_loader.exec_module(lint_commits)


@pytest.mark.parametrize("subject, wrong", [
    ("docs: merge the two pages on admission", ""),
    ("lib, server: rewrite comments so that each stands alone", ""),
    ("http2: process frames in order", ""),
    ("docs: " + "x" * 30 + " " + "y" * 36, "73 characters, 1 too many"),
    ("HTTP/2 has a limit", "not `area: verb object`"),
    ("Docs: merge the two pages", "not `area: verb object`"),
    ("docs: merge", "not `area: verb object`"),
    ("docs: The two pages", '"The" is not a verb'),
    ("docs: merged the two pages", '"merged" is not an imperative'),
    ("docs: merges the two pages", '"merges" is not an imperative'),
    ("docs: merging the two pages", '"merging" is not an imperative'),
])
def test_subject(subject, wrong):
    found = "".join(lint_commits.faults(subject, "Because.\n"))
    assert wrong in found and bool(found) == bool(wrong)


def test_a_body_is_required():
    assert list(lint_commits.faults("docs: merge pages", "\n")) == ["there is no body that says why"]


def git(tree, *args):
    return subprocess.run(("git", "-C", str(tree), "-c", "user.name=n", "-c", "user.email=e@example.com") + args,
                          check=True, stdout=subprocess.PIPE, timeout=30).stdout.decode().strip()


def test_which_commits_are_checked(tmp_path):
    def commit(*paragraphs):
        git(tmp_path, "commit", "--quiet", "--allow-empty", *(w for p in paragraphs for w in ("-m", p)))
        return git(tmp_path, "rev-parse", "HEAD")

    git(tmp_path, "init", "--quiet")
    start = commit("An old one")
    commit("docs: merge pages", "Two said the same.\n\nThis one stays.")
    commit("docs: cut a page")
    (fault,) = lint_commits.check(tmp_path, start)
    assert fault.endswith("docs: cut a page: there is no body that says why")
    git(tmp_path, "tag", "v1.0")
    assert not lint_commits.check(tmp_path, start)
    commit("Newer")
    assert len(lint_commits.check(tmp_path, start)) == 2
    assert not lint_commits.check(tmp_path, "1" * 40)
    (tmp_path / "unpacked").mkdir()
    assert not lint_commits.check(tmp_path / "unpacked", start)


def test_without_git(tmp_path, monkeypatch):
    assert not lint_commits.check(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not lint_commits.check(tmp_path)
