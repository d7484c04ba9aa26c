"""The scenarios: one module each, found by name.

A scenario is a module of this package with

    TITLE       one line
    WHAT        a paragraph for the report: what is done, and what the figures are
    NEEDS       what it cannot do without: of "wrk", "h2load", "probe", "slow", "replay",
                "idle", "handshake", "h2storm", "resets", "limit", "fio", "root", "network",
                "disk", "limits", "fuse", "spindle" (see Host.lacks)
    FULL        dict of settings, with "rounds"; --set SCENARIO.KEY=VALUE changes one
    QUICK       dict of those that --quick changes
    LONG_FORM   the same of --long, which needs it
    files(s)    pairs (name below the data directory, bytes) that it serves
    seconds(s)  what one round of one candidate takes, about; with parts, one of these
    measure(bench, cand)
                one round of one candidate: a dict for JSON.  bench: bench.py.
                RuntimeError: what went wrong; the round counts as failed
    tables(view)
                list of tables.Table
    figures(view)
                pairs (caption, matplotlib figure made with plot.py); only here may
                matplotlib be imported, and only through plot.py
    NOTES       list of sentences on what the figures do not say

and, if it likes,

    parts(s)          names of the parts of a round, in order: all take turns in one
                      before the next one begins.  measure and the functions of
                      REFERENCES are given the name as well, and what they find is
                      in the values of the round under it
    measured(name, part)
                      whether this candidate or reference is measured in it; all are if
                      it is not there
    portion(s, cand)  of seconds(s), what this candidate takes; 1 if it is not there
    paired(view)      tables of which the report shows each server with libpagewise beside the
                      same without it; those of tables(view) if it is not there
    check(s)          ValueError: what is wrong with the settings
    CANDIDATES        names that are measured unless others are asked for; all
                      that are usable, and need not be asked for, if it is not there
    QUICK_CANDIDATES  the same with --quick; without it servers.QUICK
    OWNER             true: measured for files of the server's user as well, with the default
                      path, unless others are asked for
    TLS               true: only candidates over TLS are measured
    HTTP2             true: only candidates that speak HTTP/2 are measured
    REFERENCES        dict name -> (title, function of bench): measured in each round
                      before the candidates, and shown with them
    referred(name, cand)
                      whether this reference is of use beside this candidate; all are if
                      it is not there

settings are plain numbers and texts; s and bench.settings have them as attributes.
A text may be a list, for listed().
"""

import importlib
import os
import pkgutil
import types

ORDER = ("storm", "proxied", "hot", "cold", "download", "short", "herd", "prefix", "thesis", "knee", "grid",
         "slow", "clients", "zipf", "crawler", "week", "spindle", "film", "hung", "idle", "handshakes",
         "http2", "streams", "resets")


def names():
    found = {m.name for m in pkgutil.iter_modules([os.path.dirname(__file__)])}
    return [n for n in ORDER if n in found] + sorted(found - set(ORDER))


def load(name):
    return importlib.import_module(f"{__name__}.{name}")


def hot_set_note(name):
    """Of a scenario with files of up to 64 KiB that are hot, and the setting hot_set."""
    return ("pagewise's default path has its hot set here, which answers requests for files of up "
            "to 64 KiB; the other paths have no hot set. So compare the default path with the "
            "peers, and the other paths with each other. All paths alike: "
            f"--set {name}.hot_set=0.")


# How cold files are picked.  What is picked again may have left memory in part.
PICKS = {
    "random": "picked at random, some repeatedly",
    "once": "each at most once",
    "shared": "picked at random, each by several clients at once",
    "ranges": "picked at random, ranges of them at odd offsets",
}
ASKED = 20_000  # that are picked, until they are asked for again in the same order
SHARED = 6      # clients of a file
SIZE = 1 << 20  # bytes of a file of which there are ranges


def picked(bench, names, how):
    """What clients ask for in turn, one after the other."""
    if how == "once":
        return bench.shuffled(names)
    drawn = bench.draw.choices(names, k=ASKED)
    if how == "shared":
        return [name for name in drawn[::SHARED] for _ in range(SHARED)]
    return [ranged(bench.draw, name) for name in drawn] if how == "ranges" else drawn


def ranged(draw, name):
    first, last = sorted(draw.sample(range(SIZE), 2))
    return f"{name}#{first}-{last}"


MORE_THAN_0 = 1e-9


def listed(text, kind=str, among=None):
    """Of words between commas or spaces; ValueError."""
    words = text.replace(",", " ").split()
    if not words:
        raise ValueError("an empty list")
    for word in words:
        if among and word not in among:
            raise ValueError(f"{word}: there are {', '.join(among)}")
    return [kind(word) for word in words]


def settings(scenario, quick, changes, long=False):
    """changes: dict of texts; each becomes what the default is.  long: ValueError if the scenario
    has no long form."""
    if long and not hasattr(scenario, "LONG_FORM"):
        raise ValueError(f"{scenario.__name__.rpartition('.')[2]} has no long form")
    chosen = {**scenario.FULL, **(scenario.QUICK if quick else scenario.LONG_FORM if long else {})}
    for key, text in changes.items():
        if key not in chosen:
            raise ValueError(f"no setting {key}: there are {', '.join(chosen)}")
        kind = type(chosen[key])
        if not text.strip():
            raise ValueError(f"{key} is empty")
        try:
            chosen[key] = kind(text)
        except ValueError:
            raise ValueError(f"{text} is not of the kind of {chosen[key]}") from None
        least = 0 if key == "lead" else MORE_THAN_0
        if kind in (int, float) and not least <= chosen[key] < float("inf"):
            raise ValueError(f"{key} must be more than 0")
    made = types.SimpleNamespace(**chosen)
    getattr(scenario, "check", lambda s: None)(made)
    return made
