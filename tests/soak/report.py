"""What the soak has to say at its end."""

import os
import platform
import statistics
import subprocess

SHOWN = 20  # failures that are told in full
ENOUGH = 100  # samples, to tell whether it is flat
WARM = 0.1  # of a part: what it begins with is no measure
MIB = 1 << 20

UNITS = {"PSS": MIB, "RSS": MIB}
SPARE = {"PSS": 8 * MIB, "RSS": 8 * MIB, "descriptors": 64}
LABELS = {"PSS": "PSS, MiB", "RSS": "RSS, MiB"}
WHO = {"all": "all processes", "master": "master", "serving": "server process"}

# With each reload the server process is another one, with other settings.
FLAT = {"with reloads": ["all", "master"], "without": ["all", "master", "serving"]}


def fifth(values, number):
    count = len(values)
    return statistics.median(values[count * number // 5:count * (number + 1) // 5])


def flat(values, spare):
    return fifth(values, 4) <= 1.1 * fifth(values, 1) + spare


def rows(name, samples):
    """A line of the table each, and whether it is flat where it must be."""
    for who in WHO:
        for what in SPARE:
            values = [s[who, what] for s in samples if (who, what) in s]
            if len(values) < ENOUGH:
                continue
            is_flat = flat(values, SPARE[what])
            values = values[int(len(values) * WARM):]
            shown = [values[0], fifth(values, 1), fifth(values, 4), values[-1], max(values)]
            verdict = ("yes" if is_flat else "NO") if who in FLAT[name] else ""
            yield "| %s: %s | %s | %s |" % (
                WHO[who], LABELS.get(what, what),
                " | ".join("%.1f" % (v / UNITS.get(what, 1)) for v in shown), verdict), verdict != "NO"


def version(binary):
    done = subprocess.run([binary, "-V"], capture_output=True, text=True, check=False)
    return done.stdout.strip().replace("\n", ", ")


def report(options, site, soaked, parts, counts, verified, kinds, failures, seconds):
    """The text, and whether all is well."""
    actions = sum(counts.pop(kind, 0) for kind in kinds)
    table = [("bytes of bodies verified", "%d (%.1f GiB)" % (verified, verified / (1 << 30))),
             ("requests answered", counts.pop("requests answered", 0)),
             ("actions of clients", actions), ("failed", len(failures)),
             *((what, soaked.counts[what]) for what in soaked.counts),
             ("files replaced, grown, cut", site.changes), *counts.most_common()]
    out = ["# Soak", "",
           "%.1f minutes of %g, seed %s, %d client processes of %d threads." % (
               seconds / 60, options.minutes, options.seed, options.processes, options.threads),
           "%s: %s. %s %s, %d processors." % (
               options.binary, version(options.binary), platform.system(), platform.release(),
               os.cpu_count()),
           "", "| what | number |", "|---|---|", *("| %s | %s |" % pair for pair in table)]
    fine = not failures and verified > 0
    for name, samples in parts.items():
        if len(samples) < ENOUGH:
            out += ["", "Part %s: too short to tell whether it is flat." % name]
            continue
        out += ["", "Part %s, after its first tenth:" % name, "",
                "| | first | median of 2nd fifth | median of last fifth | last | peak | flat |",
                "|---|---|---|---|---|---|---|"]
        for line, right in rows(name, samples):
            out.append(line)
            fine = fine and right
    for failure in failures[:SHOWN]:
        out += ["", "## Failed: %s" % failure["kind"], "", "```", failure["why"],
                failure.get("where", ""), "```"]
    return "\n".join(out) + "\n", fine
