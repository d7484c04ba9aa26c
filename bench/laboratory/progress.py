"""How far it is: a bar on a terminal, plain lines elsewhere; on standard error."""

import contextlib
import sys


def note(text):
    print(f"lab: {text}", file=sys.stderr, flush=True)


class Lines:
    def __init__(self, total):
        self.total, self.count = total, 0

    def step(self, text):
        self.count += 1
        note(f"{self.count}/{self.total} {text}")

    note = staticmethod(note)


class Bar:
    def __init__(self, bar, total):
        self.bar, self.count = bar, 0
        self.task = bar.add_task("", total=total)

    def step(self, text):
        self.bar.update(self.task, completed=self.count, description=text)
        self.count += 1

    def note(self, text):
        self.bar.console.print(f"lab: {text}", markup=False, highlight=False)


@contextlib.contextmanager
def progress(total):
    """step(text) before each of total steps, note(text) at any time."""
    try:
        from rich.console import Console
        from rich.progress import (BarColumn, MofNCompleteColumn, Progress, TextColumn,
                                   TimeElapsedColumn)
    except ImportError:
        yield Lines(total)
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines(total)
        return
    with Progress(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                  TextColumn("{task.description}"), console=console) as bar:
        yield Bar(bar, total)
