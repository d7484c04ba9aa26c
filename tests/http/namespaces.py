"""New namespaces, for programs that tests start."""

import subprocess

import pytest


def unshare(*args):
    """Returns the command that starts another one in new namespaces: unshare(1) with these arguments.

    Skips the test where that is refused: a kernel, a container or a chroot(2) may have no user namespaces.
    """
    command = ["unshare", *args]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as why:
        pytest.skip("unshare %s is refused: %s" % (args[0], getattr(why, "stderr", "").strip() or why))
    return command
