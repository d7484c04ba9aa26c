"""The commit that is measured, by git."""

import os
import subprocess

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# A change there changes no figure.
NOT_MEASURED = ("docs/", "tests/", "README.md", "CHANGELOG.md", "bench/README.md")
CHANGED = "-changed"


def git(*args, tree=TREE):
    """What it prints; "" without git or a repository."""
    try:
        done = subprocess.run(["git", "-c", f"safe.directory={tree}", "-C", tree, *args],
                              timeout=60, check=False, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        return ""
    return done.stdout.rstrip("\n") if done.returncode == 0 else ""


def changes(tree=TREE):
    """Files that differ from the commit, but for those that are not measured."""
    names = [line[3:] for line in git("status", "--porcelain", tree=tree).splitlines()]
    return [name for name in names if not name.startswith(NOT_MEASURED)]


def commit(tree=TREE):
    """The short name of the last one that changed what is measured, with CHANGED behind it
    if files differ from it; "" without a repository."""
    others = [f":(exclude){path.rstrip('/')}" for path in NOT_MEASURED]
    name = git("log", "-1", "--abbrev=10", "--format=%h", "--", ".", *others, tree=tree)
    return name + CHANGED if name and changes(tree) else name
