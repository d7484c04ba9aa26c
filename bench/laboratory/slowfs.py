"""A file system that is slow, or hangs, on command: tests/fault/slowfs, in FUSE."""

import contextlib
import os
import socket
import subprocess
import tempfile
import time

from laboratory import host as machine
from laboratory.undo import Undo, spawn

OPS = ("lookup", "open", "read", "readdir")
PATIENCE = 10  # seconds


class SlowFs:
    """dir is where it is mounted."""

    def __init__(self, base):
        self.source, self.dir = f"{base}/source", f"{base}/mount"
        self.address, self.control = f"{base}/control", socket.socket(socket.AF_UNIX)
        os.mkdir(self.source)
        os.mkdir(self.dir)

    def start(self, undo):
        undo.callback(self.unmount)
        self.child = spawn(undo, [machine.SLOWFS, self.source, self.address, self.dir],
                           stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE
        while not os.path.ismount(self.dir):
            if self.child.poll() is not None:
                raise RuntimeError(f"slowfs: {self.child.stderr.read().strip()}")
            if time.monotonic() > deadline:
                raise RuntimeError("slowfs was not mounted")
            time.sleep(0.02)
        undo.callback(self.control.close)
        self.control.settimeout(PATIENCE)
        self.control.connect(self.address)
        undo.callback(self.release)

    def unmount(self):
        if os.path.ismount(self.dir):
            subprocess.run(["umount", "-l", self.dir], timeout=PATIENCE, check=True)

    def command(self, *words):
        self.control.sendall((" ".join(map(str, words)) + "\n").encode())
        answer = self.control.recv(100)
        if not answer or int(answer) < 0:
            raise RuntimeError(f"slowfs refused {words}")
        return int(answer)

    def set(self, kind, value=0):
        """All operations; kind: delay (value: milliseconds) or hang."""
        for op in OPS:
            self.command("set", op, kind, value, 0, 0)

    def seen(self):
        """Operations so far."""
        return sum(self.command("seen", op) for op in OPS)

    def release(self):
        with contextlib.suppress(OSError):
            self.command("release")


@contextlib.contextmanager
def mounted(where, files):
    """A SlowFs with these files, pairs of a name and a size, of zeros.  where: a
    directory that the server's user can enter."""
    with Undo() as undo:
        base = undo.enter_context(tempfile.TemporaryDirectory(prefix="slowfs-", dir=where))
        os.chmod(base, 0o755)
        slow = SlowFs(base)
        for name, size in files:
            os.makedirs(os.path.dirname(f"{slow.source}/{name}"), exist_ok=True)
            with open(f"{slow.source}/{name}", "wb") as f:
                f.write(bytes(size))
        slow.start(undo)
        yield slow
