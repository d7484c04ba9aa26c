"""A Debian root of its own: made by mmdebstrap, with processes of its own, gone at the end."""

import os
import shutil
import socket
import subprocess
import time
import urllib.request

MIRROR = "http://deb.debian.org/debian"
PATIENCE = 120  # seconds, for a server to begin or end
BUILD_SECONDS = 900  # for `make run` to install, build and answer


class Failed(Exception):
    pass


def call(*argv, **kw):
    """What it prints; Failed with that if it fails."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, stdin=subprocess.DEVNULL, **kw)
    if done.returncode != 0:
        raise Failed("%s: status %d\n%s" % (" ".join(argv), done.returncode, done.stdout[-6000:]))
    return done.stdout


class Root:
    """directory is made anew, for a suite; None: it stands.  It shares the network with this
    machine, for apt."""

    def __init__(self, directory, suite, packages=()):
        self.path = os.path.abspath(directory)
        if suite is not None:
            self.make(suite, packages)
        self.start_init()

    def start_init(self):
        # The shell is their init: it waits for whatever has lost its parent.
        self.started("--mount", "--pid", "--fork", "--kill-child", "sh", "-ec",
                     'mount --make-rprivate / && mount --rbind /dev "$1/dev" && '
                     'mount -t sysfs sysfs "$1/sys" && mount -t proc proc "$1/proc" && '
                     '{ mount --rbind /sys/fs/cgroup "$1/sys/fs/cgroup" || true; } && echo started && while :; do sleep 1000; done', "sh", self.path)
        self.enter = ["nsenter", "--target", self.pid, "--mount", "--pid", "chroot", self.path]

    def started(self, *words, **kw):
        self.init = subprocess.Popen(["unshare", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, **kw)
        if self.init.stdout.readline() != "started\n":
            raise Failed("no namespaces here: it needs root")
        with open(f"/proc/{self.init.pid}/task/{self.init.pid}/children", encoding="ascii") as f:
            self.pid = f.read().split()[0]

    def make(self, suite, packages):
        self.remove()
        call("mmdebstrap", "--variant=minbase", "--include=" + ",".join(["ca-certificates", *packages]),
             suite, self.path, MIRROR)
        shutil.copy("/etc/resolv.conf", self.path + "/etc/resolv.conf")
        # The installer and container managers write it; minbase has none.
        self.write("/etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
        # Nothing is started as it is installed, as there is no init.
        self.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)

    def argv(self, *argv):
        return [*self.enter, "/usr/bin/env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/root",
                "DEBIAN_FRONTEND=noninteractive", *argv]

    def run(self, *argv):
        return call(*self.argv(*argv))

    def shell(self, script):
        return self.run("sh", "-ec", script)

    def start(self, *argv, out):
        return subprocess.Popen(self.argv(*argv), stdin=subprocess.DEVNULL, stdout=out,
                                stderr=subprocess.STDOUT)

    def apt(self, *words):
        return self.run("apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0", "--no-install-recommends", *words)

    def write(self, path, text, mode=0o644):
        """In the root: there a link may lead to what it would not be outside."""
        subprocess.run(["chroot", self.path, "/usr/bin/tee", path], input=text, text=True, check=True,
                       stdout=subprocess.DEVNULL)
        call("chroot", self.path, "/bin/chmod", "%o" % mode, path)

    def read(self, path):
        return call("chroot", self.path, "/bin/cat", path)

    def files(self):
        """All that is there, but for what the kernel and the package manager keep."""
        out = self.run("find", "/", "-xdev", "(", "-path", "/proc", "-o", "-path", "/dev", "-o", "-path", "/sys",
                       "-o", "-path", "/tmp", "-o", "-path", "/debs", "-o", "-path", "/var/cache", "-o",
                       "-path", "/var/lib/apt", "-o", "-path", "/var/lib/dpkg", "-o", "-path", "/var/log/apt",
                       ")", "-prune", "-o", "-print")
        return set(out.splitlines())

    def end(self):
        self.init.kill()  # unshare ignores SIGTERM
        self.init.wait()
        self.init.stdout.close()

    def remove(self):
        for _ in range(20):
            if not os.path.exists(self.path):
                return
            call("rm", "-rf", "--one-file-system", self.path)
            time.sleep(0.1)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise Failed("waited in vain: " + what)
        time.sleep(0.02)


def answers(port):
    try:
        with socket.create_connection(("127.0.0.1", port), 1):
            return True
    except OSError:
        return False


def serves_welcome_page(root, tree, log):
    """Runs `make run` in a tree of the root, as a new user would; raises Failed without a page."""
    port = free_port()
    with open(log, "w", encoding="utf-8") as out:
        server = root.start("sh", "-c", f"cd {tree} && exec make run PORT={port}", out=out)
    try:
        end = time.monotonic() + BUILD_SECONDS
        while server.poll() is None and not answers(port) and time.monotonic() < end:
            time.sleep(0.2)
        if not answers(port):
            with open(log, encoding="utf-8") as f:
                raise Failed("make run: " + f.read()[-3000:])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE) as page:
            if b"pagewise" not in page.read():
                raise Failed("make run serves something else")
    finally:
        root.shell("start-stop-daemon --stop --oknodo --name pagewise")
        server.wait()
