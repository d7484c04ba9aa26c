"""What was set up is undone, whatever happens.

A signal becomes the exception Stopped in the main thread, at once or, while a step
is held together with `held()`, after it.  Undo is an ExitStack whose clean-up no
signal can cut short.
"""

import contextlib
import signal
import subprocess

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(SystemExit):
    """By a signal; the exit status is the shell's."""


_state = {"held": 0, "pending": None}


def _stop(signum, _frame):
    if _state["held"]:
        _state["pending"] = signum
    else:
        raise Stopped(128 + signum)


def catch_signals():
    for number in SIGNALS:
        signal.signal(number, _stop)


@contextlib.contextmanager
def held():
    """Signals wait until the end of the block."""
    _state["held"] += 1
    try:
        yield
    finally:
        _state["held"] -= 1
        pending = _state["pending"]
        if pending and not _state["held"]:
            _state["pending"] = None
            raise Stopped(128 + pending)


class Undo(contextlib.ExitStack):
    def __exit__(self, *exc):
        with held():
            return super().__exit__(*exc)


def spawn(undo, argv, **options):
    """A child in a session of its own, which ends with undo at the latest."""
    with held():
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True,
                                 **options)
        undo.callback(_end, child)
    return child


def _end(child):
    child.kill()
    child.wait()
    for stream in (child.stdout, child.stderr):
        if stream:
            stream.close()
