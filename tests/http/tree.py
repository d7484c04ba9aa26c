"""The tree that the tests serve.  Every byte depends on its position, so that
shifted, repeated and padded bytes are all noticed."""

import os
import random
import secrets
import socket
import stat

MTIME = 1577934245  # Thu, 02 Jan 2020 03:04:05 GMT
# Outside of the root, as a content and as a name.
CANARY = b"canary-" + secrets.token_hex(16).encode()

KIB = 1024
MIB = 1024 * KIB

SIZES = [
    0,
    1,
    4095,
    4096,
    4097,
    65535,
    65536,
    65537,
    524287,
    524288,
    524289,
    MIB + 3,
    5 * MIB + 1,
]
LARGE = 5 * MIB + 1

# Where windows, pages and 64 KiB steps begin.
BOUNDARIES = [4096, 65536, 131072, 524288, MIB, 2 * MIB, 4 * MIB]

HUGE = (1 << 32) + 4096
HUGE_MARKS = [0, (1 << 31) - 65536, (1 << 32) - 65536]
HUGE_MARK_LEN = 131072

BLOCK = 16 * KIB  # of content()


def content(seed, length, offset=0):
    """length bytes at offset of the endless file seed."""
    first, skip = divmod(offset, BLOCK)
    end = (offset + length + BLOCK - 1) // BLOCK
    data = b"".join(random.Random(seed << 32 | block).randbytes(BLOCK) for block in range(first, end))
    return data[skip:skip + length]


def odd_names():
    """Every byte that a name can have, and the names that people have trouble with."""
    names = [b"x" + bytes([b]) + b"y" for b in range(1, 256) if b != ord("/")]
    names += [
        b"with space.txt",
        b" leading",
        b"trailing ",
        "gr\u00fc\u00dfe \u65e5\u672c\u8a9e \U0001f600.txt".encode(),
        b"\"quoted\" 'single'.txt",
        b"100%.txt",
        b"%41.txt",
        b"%2e%2e",
        b"a+b.txt",
        b"a#b.txt",
        b"a?b=c.txt",
        b"a&b&amp;c.txt",
        b"<script>alert(1)<script>",
        b"back\\slash",
        b"semi;colon",
        b"http:colon",
        b"-dash",
        b"~tilde",
        b"a...three",
        b"new\r\nX-Injected: yes",
        b"n" * 255,
    ]
    return [n for n in dict.fromkeys(names)]


def percent(name, keep=b""):
    """Every byte of name percent-encoded, except those of keep."""
    return "".join(
        chr(b) if b in keep else "%%%02X" % b for b in name
    )


def write(path, data, mtime=MTIME):
    with open(path, "wb") as f:
        f.write(data)
    if mtime is not None:
        os.utime(path, (mtime, mtime))


def many(directory, names):
    """Empty files, as links to a few: thousands of inodes take seconds to make and to remove."""
    for number, name in enumerate(names):
        path = os.path.join(directory, name)
        if number % 20000 == 0:
            first = path
            open(path, "xb").close()
        else:
            os.link(first, path)


def sized(root, size, seed=None):
    """Creates size.bin with contents of its own; returns them."""
    data = content(size if seed is None else seed, size)
    write(os.path.join(root, "%d.bin" % size), data)
    return data


def huge(path):
    """A sparse file beyond 4 GiB; its marks are the same everywhere."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    for mark in HUGE_MARKS:
        length = min(HUGE_MARK_LEN, HUGE - mark)
        os.pwrite(fd, content(4, length, mark), mark)
    os.ftruncate(fd, HUGE)
    os.close(fd)
    os.utime(path, (MTIME, MTIME))


class Tree:
    """base/outside holds the canary; base/root is what is served."""

    def __init__(self, base):
        self.base = base
        self.root = os.path.join(base, "root")
        os.mkdir(self.root)
        self.files = {}  # target -> contents
        self.build()

    def path(self, name):
        return os.path.join(self.root, name)

    def add(self, name, data, mtime=MTIME):
        write(self.path(name), data, mtime)
        self.files["/" + name] = data

    def read(self, name, offset=0, length=None):
        fd = os.open(self.path(name), os.O_RDONLY)
        try:
            size = os.fstat(fd).st_size
            return os.pread(fd, size if length is None else length, offset)
        finally:
            os.close(fd)

    def build(self):
        os.mkdir(os.path.join(self.base, "outside"))
        write(os.path.join(self.base, "outside", "secret.txt"), CANARY)
        write(os.path.join(self.base, "outside", "index.html"), CANARY)
        write(os.path.join(self.base, "outside", CANARY.decode()), CANARY)
        for size in SIZES:
            self.add("%d.bin" % size, content(size, size))
        huge(self.path("huge.bin"))
        self.build_directories()
        self.build_odd()
        self.build_hidden()
        self.build_links()
        self.build_special()

    def build_directories(self):
        for name in ["empty", "with-index", "with-index/nested", "list", "list/sub"]:
            os.mkdir(self.path(name))
        self.add("index.html", b"<title>top</title>\n")
        self.add("with-index/index.html", b"<title>first</title>\n")
        self.add("with-index/nested/index.html", b"<title>nested</title>\n")
        self.add("with-index/page.txt", b"a page\n")
        self.add("list/one.txt", b"one\n")
        self.add("list/two.html", b"two\n")
        self.add("list/.hidden", b"hidden\n")
        os.makedirs(self.path("evil.com/sub"))

    def build_odd(self):
        os.mkdir(self.path("odd"))
        os.mkdir(self.path("odd-dirs"))
        for name in odd_names():
            full = os.fsencode(self.path("odd/")) + name
            write(full, b"I am " + name)
            os.mkdir(os.fsencode(self.path("odd-dirs/")) + name)

    def build_hidden(self):
        self.add(".hidden.txt", b"hidden\n")
        os.makedirs(self.path(".git"))
        self.add(".git/config", b"hidden\n")
        os.makedirs(self.path(".well-known/acme"))
        self.add(".well-known/acme/token", b"token\n")
        self.add(".well-known/.dot", b"hidden\n")
        os.makedirs(self.path(".well-known/.x"))
        self.add(".well-known/.x/f", b"hidden\n")
        self.add("odd/...three", b"hidden\n")

    def build_links(self):
        os.mkdir(self.path("links"))
        for name, to in {
            "same-dir": "4097.bin",
            "up-inside": "../4097.bin",
            "dir-inside": "../with-index",
            "outside-relative": "../../outside/secret.txt",
            "outside-absolute": os.path.join(self.base, "outside", "secret.txt"),
            "outside-dir": "../../outside",
            "outside-and-back": "../../root/4097.bin",
            "inside-absolute": self.path("4097.bin"),
            "proc": "/proc/self/root" + self.base + "/outside/secret.txt",
            "proc-root": "/proc/self/root",
            "proc-cwd": "/proc/self/cwd",
            "proc-fd": "/proc/self/fd/0",
            "slash": "/",
            "parents": "../..",
            "root-itself": "../../root",
            "many-parents": "../" * 40 + "etc/passwd",
            "over-dir-inside": "dir-inside/../../outside/secret.txt",
            "over-outside-dir": "outside-dir/secret.txt",
            "over-link": "outside-relative",
            "over-file": "4097.bin/../../../outside/secret.txt",
            "with-dots": "./../links/.././../outside/./secret.txt",
            "long": "n" * 300,
            "loop-a": "loop-b",
            "loop-b": "loop-a",
            "self": "self",
            "dangling": "nothing-here",
        }.items():
            os.symlink(to, self.path("links/" + name))
        self.add("links/4097.bin", content(99, 4097))
        self.build_chain(41)
        os.mkdir(self.path("links/index-outside"))
        os.symlink("../../../outside/index.html", self.path("links/index-outside/index.html"))

    def build_chain(self, length):
        """links/chain-1 leads to links/4097.bin over length links."""
        for i in range(1, length):
            os.symlink("chain-%d" % (i + 1), self.path("links/chain-%d" % i))
        os.symlink("4097.bin", self.path("links/chain-%d" % length))

    def build_special(self):
        os.mkdir(self.path("special"))
        os.mkfifo(self.path("special/fifo"))
        with socket.socket(socket.AF_UNIX) as s:
            here = os.getcwd()
            os.chdir(self.path("special"))
            s.bind("socket")
            os.chdir(here)
        if os.geteuid() == 0:
            os.mknod(self.path("special/null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            os.mknod(self.path("special/block"), 0o666 | stat.S_IFBLK, os.makedev(7, 200))
        write(self.path("special/unreadable"), b"nobody may read this\n")
        os.chmod(self.path("special/unreadable"), 0)
        os.mkdir(self.path("special/closed"))
        write(self.path("special/closed/file"), b"nobody may read this\n")
        os.chmod(self.path("special/closed"), 0)
