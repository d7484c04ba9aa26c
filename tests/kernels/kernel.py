"""Debian's kernels, from where this machine gets its packages, and what each of them
needs to reach the tests: a small root in memory with its modules.

The packages stay in a place of their own: nothing is installed, and the system's own
list of sources is not touched."""

import fcntl
import glob
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import time

# Each release's own one, of which nothing is left out.
SUITES = {"6.1": "bookworm", "6.12": "trixie"}
PACKAGE = "linux-image-amd64"

# For the disk, the host's files, what the tests mount, and TLS.
MODULES = ["virtio_pci", "virtio_blk", "9pnet_virtio", "9p", "crc32c_generic", "ext4", "loop",
           "fuse", "xfs", "btrfs", "overlay", "tls", "gcm", "ctr", "ghash_generic"]
BUSYBOX = "/bin/busybox"
KEPT = 30 * 86400  # seconds; then a newer one is looked for
HERE = os.path.dirname(os.path.abspath(__file__))


class Kernel:
    """image and initrd are files of this machine, kept until this file changes."""

    def __init__(self, series):
        self.series = series
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.place = os.path.join(cache, "pagewise", "kernels", series)
        self.image = os.path.join(self.place, "vmlinuz")
        self.initrd = os.path.join(self.place, "initrd")
        self.root = os.path.join(self.place, "root")
        self.made = os.path.join(self.place, "made")

    def get(self):
        with open(__file__, "rb") as f:
            version = hashlib.sha256(f.read()).hexdigest()
        os.makedirs(os.path.dirname(self.place), exist_ok=True)
        with open(self.place + ".lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.is_new(version):
                shutil.rmtree(self.place, ignore_errors=True)
                os.makedirs(self.place)
                self.fetch()
                with open(self.made, "w", encoding="ascii") as f:
                    f.write(version)
            self.make_initrd()

    def is_new(self, version):
        try:
            with open(self.made, encoding="ascii") as f:
                return f.read() == version and time.time() - os.path.getmtime(self.made) < KEPT
        except FileNotFoundError:
            return False

    def fetch(self):
        apt = Apt(os.path.join(self.place, "apt"), SUITES[self.series])
        files = os.path.join(self.place, "files")
        run("dpkg-deb", "-x", apt.download(apt.needs(PACKAGE, "linux-image-[0-9]")), files)
        shutil.copyfile(one(files, "boot/vmlinuz-*"), self.image)
        os.makedirs(os.path.join(self.root, "modules"))
        for number, content in enumerate(modules(one(files, "lib/modules/*",
                                                     "usr/lib/modules/*"))):
            with open(os.path.join(self.root, "modules", "%02d.ko" % number), "wb") as f:
                f.write(content)
        shutil.rmtree(files)
        shutil.rmtree(apt.place)

    def make_initrd(self):
        for name in ("bin", "dev", "proc", "new"):
            os.makedirs(os.path.join(self.root, name), exist_ok=True)
        shutil.copy(BUSYBOX, os.path.join(self.root, "bin/busybox"))
        shutil.copy(os.path.join(HERE, "init"), os.path.join(self.root, "init"))
        names = sorted(os.path.relpath(os.path.join(where, name), self.root)
                       for where, dirs, files in os.walk(self.root) for name in dirs + files)
        with open(self.initrd, "wb") as f:
            subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], cwd=self.root,
                           input="\n".join(names).encode(), stdout=f, check=True)


def modules(tree):
    """What MODULES are, each behind those on which it depends."""
    with open(os.path.join(tree, "modules.builtin"), encoding="ascii") as f:
        builtin = {module_name(line.strip()) for line in f}
    paths = {module_name(path): path
             for path in glob.glob(tree + "/kernel/**/*.ko*", recursive=True)}
    found = {}

    def add(name):
        if name in found or name in builtin:
            return
        content = read_module(paths[name])
        for needed in re.search(rb"\bdepends=([^\0]*)\0", content).group(1).split(b","):
            if needed:
                add(module_name(needed.decode()))
        found[name] = content

    for name in MODULES:
        add(name)
    return found.values()


class Apt:
    """A suite of Debian, seen from a directory of its own."""

    def __init__(self, place, suite):
        self.place = place
        for name in ("lists/partial", "archives/partial"):
            os.makedirs(os.path.join(place, name))
        with open(os.path.join(place, "sources"), "w", encoding="ascii") as f:
            f.write("deb %s %s main\n" % (mirror(), suite))
        options = {"Dir::Etc::sourcelist": place + "/sources", "Dir::Etc::sourceparts": "-",
                   "Dir::State::lists": place + "/lists", "Dir::Cache": place,
                   "APT::Sandbox::User": "root",
                   "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false"}
        self.options = [w for key, value in options.items() for w in ("-o", key + "=" + value)]
        run("apt-get", "-q", *self.options, "update")

    def needs(self, package, pattern):
        """The package on which this one depends."""
        text = run("apt-cache", *self.options, "show", "--no-all-versions", package)
        return re.search(r"^Depends:.*?\b(%s\S*)" % pattern, text, re.M).group(1)

    def download(self, package):
        run("apt-get", "-q", *self.options, "download", package, cwd=self.place)
        return one(self.place, "*.deb")


def mirror():
    """Where this machine gets Debian itself from."""
    uris = run("apt-get", "download", "--print-uris", "base-files")
    return re.search(r"^'(.*)/pool/", uris, re.M).group(1)


def module_name(path):
    return os.path.basename(path).split(".ko")[0].replace("-", "_")


def read_module(path):
    with open(path, "rb") as f:
        content = f.read()
    return lzma.decompress(content) if path.endswith(".xz") else content


def one(place, *patterns):
    found = [path for pattern in patterns for path in glob.glob(os.path.join(place, pattern))]
    if len(found) != 1:
        raise RuntimeError("%s: %d of %s" % (place, len(found), patterns))
    return found[0]


def run(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError("%s failed:\n%s" % (" ".join(command), done.stdout))
    return done.stdout
