"""What this kernel's Landlock knows, and what the sandbox says where that is too little."""

import ctypes
import sys

# Its version, or -1.
VERSION = (ctypes.CDLL(None).syscall(444, None, 0, 1) if sys.platform == "linux" else -1)

NOT_ALL = "sandbox: incomplete on this kernel: "
NO_TRUNCATE = (
    "Landlock lacks truncate, TCP, ioctl, signals: a compromised process can truncate "
    "files below the roots that its user can write; chown them to another user")

# The whole line of each process that confines itself here.  Without any Landlock nearly
# everything that tests expect of the sandbox is missing: that is not hidden.
WARNING = "pagewise: warning: %s%s\n" % (NOT_ALL, NO_TRUNCATE) if VERSION in (1, 2) else ""
