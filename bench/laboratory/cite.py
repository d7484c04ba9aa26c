"""The pass over the plan: each table is measured from one commit, and its results are kept,
so that a pass that was interrupted goes on where it stopped.

OUT/NAME is what `bench/lab run` or `ladders` made for a table; page.json in it, which is
written last, says of which commit it is and by which arguments it was made.  Where a laboratory of
a later commit has measured the servers of that one, its "laboratory" names the later one.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
import types

from laboratory import data, ladders, plan, results, run, servers, source
from laboratory.progress import note

LAB = os.path.join(source.TREE, "bench", "lab")
META = "page.json"
FIXED = 4      # seconds that a table takes besides
LADDERS = 90   # seconds
ENDING = 120   # seconds, for a laboratory that was told to end
ROUNDS = 5     # at least, of figures that are to be cited


def command(page, rounds, binaries=()):
    """As somebody types it."""
    return shlex.join(["bench/lab", *page.arguments(rounds, binaries)])


class Measured:
    """A table whose measurement is complete."""

    def __init__(self, page, path):
        self.page, self.path = page, path
        self.meta = results.load(f"{path}/{META}")

    @property
    def commit(self):
        return self.meta["commit"]

    def run(self):
        return results.Run.open(self.path)

    def ladders(self):
        """Those that its laboratory knew."""
        return [results.load(path) for name in ladders.NAMES
                if os.path.exists(path := f"{self.path}/{name}.json")]


def found(out, page):
    """What there is of it, of whatever commit; None: nothing complete."""
    path = f"{out}/{page.name}"
    return Measured(page, path) if os.path.exists(f"{path}/{META}") else None


def done(out, page, commit, args):
    """Whether it need not be measured again."""
    there = found(out, page)
    return bool(there) and (there.commit, there.meta["arguments"]) == (
        commit, page.arguments(args.rounds, args.binaries))


def measured(out, commit):
    """(those of this commit, those of another one), in the plan's order.  What is measured only if
    it is named stays, whatever its commit."""
    there = [one for page in plan.PAGES if (one := found(out, page))]
    shown = [one for one in there if one.commit == commit or one.page.asked]
    return shown, [one for one in there if one not in shown]


# ------------------------------------------------------------- beforehand


def check_source(dirty):
    """The commit; RuntimeError: it is not the one that would be measured."""
    commit = source.commit()
    if not commit:
        raise RuntimeError("results need the commit that they are of, and this tree is no "
                           "repository of git")
    if not dirty and commit.endswith(source.CHANGED):
        some = ", ".join(source.changes()[:5])
        raise RuntimeError(f"the tree differs from its commit: {some}; commit the changes, or "
                           "measure all the same: --dirty")
    return commit


def planned(page, args, host, usable):
    """As bench/lab run plans it."""
    words = types.SimpleNamespace(
        quick=False, long="--long" in page.options, rounds=page.rounds or args.rounds,
        path=list(page.paths), peer=list(page.peers),
        references="--no-references" not in page.options,
        set={page.scenario: {key: str(value) for key, value in page.settings.items()}})
    return run.Plan(page.scenario, words, host, usable)


def estimate(pages, args, host):
    """Seconds; what is missing is said."""
    usable = [cand for cand in servers.every() if not said_unusable(cand, pages)]
    total, files = 0, set()
    for page in pages:
        if page.scenario == plan.LADDERS:
            total += LADDERS
            continue
        one = planned(page, args, host, usable)
        for why in one.missing:
            note(f"cannot be measured: {page.name}: {why}")
        total += one.seconds() + FIXED
        files |= set(one.files())
    return total + sum(size for _, size in data.missing(host.data, files)) / run.WRITING


def said_unusable(cand, pages):
    """Of one that a page names: why it cannot be used."""
    if not any(cand.name in (*page.paths, *page.peers) for page in pages):
        return "not wanted"
    if why := cand.unusable():
        note(f"left out: {cand.title}: {why}")
    return why


# --------------------------------------------------------------- measuring


def measure(page, args, commit):
    """One table, in place of what there was of it; RuntimeError."""
    path, part = f"{args.out}/{page.name}", f"{args.out}/{page.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    arguments = page.arguments(args.rounds, args.binaries)
    begun = time.time()
    status = laboratory([*arguments, "--out", part, *(
        [] if page.scenario == plan.LADDERS else ["--data", args.data])])
    if status > 128:
        raise SystemExit(status)
    if not complete(page, part):
        raise RuntimeError(f"status {status}, and no results")
    results.save(f"{part}/{META}", {
        "commit": commit, "arguments": arguments, "rounds": page.rounds or args.rounds,
        "command": command(page, args.rounds, args.binaries),
        "date": time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(begun)),
        "seconds": round(time.time() - begun)})
    say_failures(page, part)
    shutil.rmtree(path, ignore_errors=True)
    os.rename(part, path)


def failures(page, path):
    """The rounds that failed, which the page lists."""
    if page.scenario == plan.LADDERS:
        return []
    return [r for r in results.Run.open(path).rounds if r.error]


def whole(out, wanted, commit):
    """Whether each of these tables is there, and no round of it failed."""
    there = [found(out, page) for page in wanted]
    return all(one and one.commit == commit and not failures(one.page, one.path) for one in there)


def say_failures(page, path):
    if failed := failures(page, path):
        note(f"{page.name}: {len(failed)} rounds failed, such as {failed[0].candidate}: "
             f"{failed[0].error}; to measure it again: --only {page.name}")


def complete(page, path):
    """Failed rounds are results as well, as long as there are others."""
    if page.scenario == plan.LADDERS:
        return all(os.path.exists(f"{path}/{name}.json") for name in ladders.NAMES)
    if not os.path.exists(f"{path}/run.json"):
        return False
    finished = results.Run.open(path)
    return finished.about["finished"] and any(r.values for r in finished.rounds)


def laboratory(arguments):
    """Its exit status.  It ends in order when this one is told to end."""
    child = subprocess.Popen([sys.executable, LAB, *arguments], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        return child.wait()
    except BaseException:
        child.terminate()
        child.wait(ENDING)
        raise


def perform(args, host, pages=None):
    """All that the plan wants and that is not there, or all of the pages; the commit, and the tables
    that failed."""
    commit = check_source(args.dirty)
    os.makedirs(args.out, exist_ok=True)
    again = pages or args.only
    pages = pages or (plan.chosen(args.only) if args.only else plan.regular())
    todo = [page for page in pages if again or not done(args.out, page, commit, args)]
    if len(todo) < len(pages):
        note(f"{len(pages) - len(todo)} tables of commit {commit} are there already")
    note(f"{len(todo)} tables, {args.rounds} rounds each, about "
         f"{estimate(todo, args, host) / 60:.0f} minutes, results in {args.out}")
    if args.rounds < ROUNDS:
        note(f"fewer than {ROUNDS} rounds: not figures to be cited")
    failed = []
    for number, page in enumerate(todo, 1):
        note(f"table {number} of {len(todo)}: {page.name}")
        try:
            measure(page, args, commit)
        except RuntimeError as why:
            note(f"failed: {page.name}: {why}")
            failed.append(page)
    return commit, failed
