"""The table of keys (server/conf/key.c), as --keys prints it, against everything that repeats
it: -h, the manual, docs/reference/configuration.md and the sample."""

import pathlib
import re

import pytest

from harness import Finished

TOP = pathlib.Path(__file__).resolve().parents[2]
LINE = re.compile(r"(#?)(\w+) = (.*?) +# (.+); (default: .+|[^;]+)")
PLACES = {"# At the top level:": "top",
          "# At the top level, or in a site:": "top or site",
          "# At the top level, in a site, or in a location:": "inherited",
          "# In a site:": "site",
          "# In a site, or in a location:": "site",
          "# In a location:": "location"}


class Key:
    def __init__(self, place, off, name, value, help_text, rest):
        self.place, self.name, self.help = place, name, help_text
        self.default = None if off else value
        self.described = rest.removeprefix("default: ") if off else None
        found = re.search(r"\w+ to \w+$", rest)
        self.range = found.group() if found else None


@pytest.fixture(scope="module")
def keys():
    run = Finished("--keys")
    assert (run.code, run.err) == (0, "")
    place, found = None, []
    for line in run.out.splitlines():
        if line in PLACES:
            place = PLACES[line]
        elif line and not line.startswith("# In site "):
            match = LINE.fullmatch(line)
            assert match and place, line
            found.append(Key(place, *match.groups()))
    assert len(found) > 30 and len({key.name for key in found}) == len(found)
    return found


def test_what_it_prints_is_a_configuration(tmp_path):
    lines = Finished("--keys").out.split("# In site ")[0]
    conf = tmp_path / "p.conf"
    conf.write_text(lines + 'site "a" { root = "/" }\n')
    run = Finished("-t", "-c", str(conf))
    assert (run.code, run.err) == (0, "")


def test_help_has_every_option_and_only_keys_with_their_help(keys):
    text = Finished("-h").out
    of_keys = set(re.findall(r"^    --([\w-]+)", text, re.M)) - {"root", "keys"}
    for key in keys:
        option = key.name.replace("_", "-")
        if option in of_keys:
            of_keys.remove(option)
            assert key.help in text
            assert key.range is None or key.range in text
    assert not of_keys


def bare(value):
    """Without the braces of a list and quotes, which a sample may have."""
    return value.strip().strip("{}").strip('"')


def test_the_sample_has_every_key_with_its_default(keys):
    text = (TOP / "conf/pagewise.conf").read_text()
    for key in keys:
        lines = re.findall(r"^\s*(#?)%s = (.+)$" % key.name, text, re.M)
        assert lines, f"{key.name} is not in the sample"
        if key.default is not None:
            assert ("", key.default) in [(off, bare(value)) for off, value in lines], key.name


def test_the_sample_says_the_range_of_every_number(keys):
    text = re.sub(r"\n# ", " ", (TOP / "conf/pagewise.conf").read_text())
    for key in keys:
        assert key.range is None or key.range in text, key.name


def test_the_manual_has_every_key_with_range_and_default(keys):
    text = (TOP / "docs/man/pagewise.conf.5").read_text()
    entries = re.split(r"^\.It Cm (?=\w+ No = )", text, flags=re.M)[1:]
    entries = {entry.split()[0]: re.sub(r"\s+", " ", re.sub(r"^\.\w+ ", "", entry, flags=re.M))
               for entry in entries}
    assert set(entries) == {key.name for key in keys}
    for key in keys:
        entry = entries[key.name]
        assert key.range is None or key.range in entry, key.name
        if key.default is not None:
            assert re.search(r"(?i)default\b|0, not|without\b", entry), key.name
            assert re.search(r"(?<!\w)%s(?!\w)" % re.escape(key.default), entry), key.name


def test_the_tables_have_every_key_with_range_and_default(keys):
    text = (TOP / "docs/reference/configuration.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|([^|]*)\|", text, re.M)
    assert {name for name, *_ in rows} == {key.name for key in keys}
    # The first counts: busy_poll has a table of latencies as well.
    rows = {name: (default.strip(), span.strip()) for name, default, span in reversed(rows)}
    for key in keys:
        default, span = rows[key.name]
        if key.default is not None:
            assert bare(default.strip("`")) == key.default, key.name
        if key.range is not None:
            assert key.range.replace(" to ", "–") in span, key.name
