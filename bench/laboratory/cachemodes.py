"""What a server is told about the page cache, where a scenario compares that.

Our paths can keep, drop, or decide by file (--cache).  Those that wait for the disk
on the loop fetched nothing that they could give back, and the peers have no such
option: they are measured once, as "keep".  A scenario has a setting `cache`, the modes to
compare, and a round's values have a part for each mode.
"""

from laboratory.scenarios import listed

KEEP, AUTO = "keep", "auto"
ALL = (KEEP, "drop", AUTO)
WITHOUT = ("blocking", "copy")


def wanted(settings):
    """The modes of a scenario's setting."""
    return listed(settings.cache, among=ALL)


def told(cand):
    """Whether it has a choice."""
    return cand.ours and cand.name not in WITHOUT


def modes(cand, settings):
    """Pairs of a mode and the arguments for it."""
    if not told(cand):
        return [(KEEP, ())]
    return [(mode, ("--cache", mode)) for mode in wanted(settings)]


def portion(settings, cand):
    """Of what all modes take."""
    return len(modes(cand, settings)) / len(wanted(settings))


def variants(view):
    """Of a Table: a row for each mode."""
    def label(mode):
        return lambda name: f"cache {mode}" if view.ours(name) and name not in WITHOUT else ""

    return tuple((label(mode), of(mode)) for mode in shown(view))


def shown(view):
    """The modes that any candidate can have been measured with."""
    return list(dict.fromkeys((KEEP, *listed(view.settings["cache"]))))


def of(mode):
    """For a Table's or a figure's pick: the part of a round for this mode, or None."""
    return lambda values: values.get(mode)
