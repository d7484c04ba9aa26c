"""Removes what tests have made.

ext4 without a journal looks at each inode that was freed in the last minutes before it gives one
out: a run that frees thousands of them makes every new file slow.  Below tests/run, which removes
everything at its end, remove() therefore puts directories aside, and free() their bytes alone.
"""

import itertools
import os
import shutil
import stat

RUN = os.environ.get("PAGEWISE_TESTS")  # the directory of a run of tests/run
ASIDE = "removed"  # in RUN
SMALL = 1 << 16  # bytes of a file that may stay until then
NUMBERS = itertools.count()
WAITING = []  # directories that were put aside; a server that ends later may still send their files


def remove(path):
    path = os.path.abspath(path)
    if RUN and path.startswith(RUN + "/"):
        try:
            WAITING.append(put_aside(path))
            return
        except OSError:
            pass  # the directory is read-only, or a file system of its own
    shutil.rmtree(path, ignore_errors=True)


def put_aside(path):
    where = os.path.join(RUN, ASIDE)
    os.makedirs(where, exist_ok=True)
    aside = os.path.join(where, "%d-%d" % (os.getpid(), next(NUMBERS)))
    os.rename(path, aside)
    return aside


def free():
    """Call when no server has one of them any more: after a test."""
    while WAITING:
        free_bytes(WAITING.pop())


def free_bytes(top):
    """Cuts the large files of a directory that have no other name."""
    for where, _, names in os.walk(top):
        for name in names:
            path = os.path.join(where, name)
            try:
                found = os.lstat(path)
                if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size > SMALL:
                    os.truncate(path, 0)
            except OSError:
                pass  # another user's, immutable, or gone
