"""The files of the soak, and who changes them."""

import os
import time

from history import LONGEST, Journal, content, stream

STEADY = ["steady/%03d.bin" % n for n in range(60)]
REPLACED = ["replaced/%02d.bin" % n for n in range(24)]
STRETCHED = ["stretched/%d.bin" % n for n in range(6)]
PASSING = ["steady/passing-%d" % n for n in range(8)]  # names that come and go
SMALL = 100 << 10


def size_of(rng):
    """Mostly small, some with many windows, some with none."""
    kind = rng.random()
    if kind < 0.03:
        return 0
    if kind < 0.7:
        return rng.randint(1, SMALL)
    if kind < 0.95:
        return rng.randint(SMALL, 2 << 20)
    return rng.randint(2 << 20, LONGEST)


class Site:
    def __init__(self, directory, journal, rng):
        self.dir = directory
        self.journal = Journal(journal)
        self.rng = rng
        self.versions = {}
        self.sizes = {}
        self.changes = 0
        for name in STEADY + REPLACED:
            self.replace(name)
        for name in STRETCHED:
            self.stretch(name, SMALL)
        self.changes = 0

    def path(self, name):
        return os.path.join(self.dir, name)

    def replace(self, name):
        """Another version, of another size or the same, by rename."""
        version = self.versions.get(name, -1) + 1
        size = self.sizes.get(name)
        if size is None or self.rng.random() < 0.7:
            size = size_of(self.rng)
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "wb") as f:
            f.write(content(name, version, size))
        self.journal.begin(name, version, size, time.monotonic())
        os.rename(path + ".new", path)
        self.journal.done(name, time.monotonic())
        self.versions[name], self.sizes[name] = version, size
        self.changes += 1

    def stretch(self, name, size):
        """Grows or is cut in place."""
        path = self.path(name)
        old = self.sizes.get(name, 0)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        self.journal.begin(name, 0, size, time.monotonic())
        if size < old:
            os.ftruncate(fd, size)
        else:
            os.pwrite(fd, memoryview(stream(name))[old:size], old)
        self.journal.done(name, time.monotonic())
        os.close(fd)
        self.sizes[name] = size
        self.changes += 1

    def change(self):
        kind = self.rng.random()
        if kind < 0.6:
            self.replace(self.rng.choice(REPLACED))
        elif kind < 0.9:
            name = self.rng.choice(STRETCHED)
            old = self.sizes[name]
            cut = self.rng.random() < 0.3
            size = self.rng.randint(0, old) if cut else old + self.rng.randint(1, 1 << 20)
            self.stretch(name, size if size <= LONGEST else SMALL)
        else:
            path = self.path(self.rng.choice(PASSING))
            if os.path.exists(path):
                os.unlink(path)
            else:
                with open(path, "wb"):
                    pass

    def cool(self):
        """Some of it must be read from the disk again."""
        for name in self.rng.sample(STEADY + REPLACED + STRETCHED, 10):
            fd = os.open(self.path(name), os.O_RDONLY)
            os.fdatasync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
