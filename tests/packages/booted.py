"""A Debian root in which systemd runs, as on a machine of its own: services start, network and all."""

import ctypes
import os
import re
import subprocess
import threading
import time

from root import Failed, Root

CLONE_NEWNET = 0x40000000
PATIENCE = 60  # seconds
# What systemd wants to find (https://systemd.io/CONTAINER_INTERFACE).
BOOT = """
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do
	touch "$root/dev/$name"
	mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
cd "$root"
pivot_root . mnt
umount -l /mnt
echo started
exec env -i container=pagewise PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb /lib/systemd/systemd --system >/dev/null 2>&1
"""


def cgroups():
    """Where control groups of version 2 are."""
    with open("/proc/self/mountinfo", encoding="ascii") as f:
        found = re.search(r"^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2 ", f.read(), re.M)
    if not found:
        raise Failed("no control groups of version 2 here")
    return found[1]


class Booted(Root):
    """Of a directory that stands, with systemd in it.  It has a network of its own: lo."""

    def start_init(self):
        self.group = f"{cgroups()}/pagewise-{os.getpid()}"
        os.makedirs(self.group, exist_ok=True)
        self.started("--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net", "--cgroup", "sh", "-ec", BOOT,
                     "sh", self.path, preexec_fn=self.join)
        self.enter = ["nsenter", "--target", self.pid, "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"]
        end = time.monotonic() + PATIENCE
        while self.state() not in ("running", "degraded"):
            if self.init.poll() is not None or time.monotonic() > end:
                raise Failed("systemd does not start: " + self.state())
            time.sleep(0.2)

    def join(self):
        with open(self.group + "/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(os.getpid()))

    def state(self):
        done = subprocess.run(self.argv("systemctl", "is-system-running"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=PATIENCE)
        return done.stdout.strip()

    def show(self, unit, key):
        return self.run("systemctl", "show", "--value", "-p", key, unit).strip()

    def in_network(self, function):
        """Calls it in a thread that has the network of the root."""
        result = []

        def call():
            self.join_network()
            result.append(function())

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        return result[0]

    def join_network(self):
        """Of this thread alone."""
        with open(f"/proc/{self.pid}/ns/net", "rb") as f:
            if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), CLONE_NEWNET) != 0:
                raise Failed("setns: " + os.strerror(ctypes.get_errno()))

    def end(self):
        super().end()
        for _ in range(50):
            for where, _, _ in os.walk(self.group, topdown=False):
                try:
                    os.rmdir(where)
                except OSError:
                    pass
            if not os.path.exists(self.group):
                return
            time.sleep(0.1)
