"""Runs a program that may not call some system calls, as in a container.

    forbid.py NUMBER[:ERROR][,NUMBER...] PROGRAM [ARGUMENT ...]

ERROR is a name of errno(3): EPERM, or ENOSYS as on a kernel that has no such call.
"""

import ctypes
import errno
import signal
import struct
import subprocess
import sys

# <linux/prctl.h>, <linux/seccomp.h>, <linux/bpf_common.h>
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
PR_SET_PDEATHSIG = 1
RET_ERRNO, RET_ALLOW = 0x00050000, 0x7FFF0000
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06

IO_URING_SETUP, CACHESTAT = 425, 451  # the same on every architecture


def wrapper(calls):
    """The command that runs a program so, for any user: nobody else may be able to read this
    file."""
    with open(__file__, encoding="utf-8") as file:
        return [sys.executable, "-c", file.read(), calls]


def forbid(calls):
    """For this process and its children; calls: {number: error}."""
    ops = [(LOAD, 0, 0, 0)]
    for number, error in calls.items():
        ops += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, RET_ERRNO | error)]
    ops.append((RETURN, 0, 0, RET_ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *op) for op in ops))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(ops), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for args in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program)):
        if libc.prctl(*args) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def die_with_parent():
    """Whoever gives up on this program kills it, and knows of no other."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def parse(text):
    calls = (call.partition(":") for call in text.split(","))
    return {int(number): getattr(errno, name or "EPERM") for number, _, name in calls}


if __name__ == "__main__":
    forbid(parse(sys.argv[1]))
    sys.exit(subprocess.call(sys.argv[2:], preexec_fn=die_with_parent))
