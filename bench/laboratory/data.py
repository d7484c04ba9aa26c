"""The files that are served: random contents, made once and kept."""

import contextlib
import fcntl
import os
import shutil
import time

MIB = 1 << 20
SPARE = 512 * MIB  # left free on the disk


@contextlib.contextmanager
def locked(path, root, patience=60):
    """One laboratory at a time: it would change the other's disk and cache.  With
    root's rights those are the machine's, else only the files count."""
    os.makedirs(path, exist_ok=True)
    with open("/run/pagewise-lab.lock" if root else f"{path}/.lock", "w",
              encoding="ascii") as lock:
        deadline = time.monotonic() + patience
        while not taken(lock):
            if time.monotonic() >= deadline:
                raise RuntimeError("another laboratory is running: wait for its end")
            time.sleep(0.2)
        yield


def taken(lock):
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def missing(path, files):
    for name, size in files:
        full = os.path.join(path, name)
        if not os.path.exists(full) or os.stat(full).st_size != size:
            yield full, size


def make(path, files):
    """files: pairs of a name below path and a size in bytes."""
    files = sorted(set(files))
    todo = list(missing(path, files))
    need = sum(size for _, size in todo) + SPARE
    free = shutil.disk_usage(path).free
    if free < need:
        raise RuntimeError(f"{path}: {need // MIB} MiB are needed, {free // MIB} MiB "
                           "are free; --data names another directory")
    for name, size in todo:
        os.makedirs(os.path.dirname(name), exist_ok=True)
        fill(name, size)
    if todo:
        os.sync()  # or the first measurement would run beside the writing


def fill(name, size):
    with open(f"{name}.part", "wb") as f:
        while (left := size - f.tell()) > 0:
            f.write(os.urandom(min(left, 16 * MIB)))
    os.rename(f"{name}.part", name)
