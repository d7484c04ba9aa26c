"""What a server is told about the page cache, where a scenario compares that.

Our paths can keep, drop, or decide by file (--cache).  Those that wait for the disk
on the loop fetched nothing that they could give back, and the peers have no such
option: they are measured once, as "keep".
"""

KEEP = "keep"
WITHOUT = ("blocking", "copy")


def modes(cand, wanted):
    """Pairs of a mode and the arguments for it."""
    if not cand.ours or cand.name in WITHOUT:
        return [(KEEP, ())]
    return [(mode, ("--cache", mode)) for mode in wanted]


def measured(view, wanted):
    """Those of the modes that any of the candidates has."""
    return [mode for mode in wanted
            if any(mode in v for name in view.names for v in view.values(name))]


def of(mode):
    """For a Table's or a figure's pick: the part of a round for this mode, or None."""
    return lambda values: values.get(mode)
