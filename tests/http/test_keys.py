"""The table of keys (server/conf/key.c), as --keys prints it, against everything that repeats
it: -h, -T, the manual, the pages of docs/reference and the sample."""

import pathlib
import re

import pytest

from harness import Finished

TOP = pathlib.Path(__file__).resolve().parents[2]
LINE = re.compile(r"(#?)(\w+) = (.*?) +# (.+); (default: .+|[^;]+)")
PLACES = {"# At the top level:": "top level",
          "# At the top level, or in a site:": "top level or site",
          "# At the top level, in a site, or in a location:": "top level, site or location",
          "# In a site:": "site",
          "# In a site, or in a location:": "site or location",
          "# In a location:": "location"}


def bare(value):
    """Without the braces of a list and quotes, which a sample may have."""
    return value.strip().strip("{}").strip('"')


class Key:
    def __init__(self, place, off, name, value, help_text, rest):
        self.place, self.name, self.help = place, name, help_text
        self.default = None if off else value
        self.described = rest.removeprefix("default: ") if off else None
        found = re.search(r"\w+ to \w+$", rest)
        self.range = found.group() if found else None
        self.values = bare(value if off else rest)
        if found:
            self.values = self.values.removesuffix(", " + self.range)


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


# What stands below the heading of a key: `threads = N` (1 to 256); default: `16`; top level; also `--threads`.
FACTS = re.compile(r"`(\w+) = ([^`]+)`(?: \((\w+ to \w+)\))?; default: (.+?); "
                   r"(top level|top level or site|top level, site or location|site|site or location|location)"
                   r"(?:; also `--([\w-]+)`)?\.")
REFERENCE = TOP / "docs/reference"


class Entry:
    def __init__(self, page, facts, text):
        _, values, self.range, self.default, self.place, self.option = facts.groups()
        self.page, self.values, self.text = page, bare(values), text


@pytest.fixture(scope="module")
def entries():
    """What the topic pages say, by key."""
    found = {}
    for path in sorted(REFERENCE.glob("conf-*.md")):
        parts = re.split(r"^## (.+)\n", path.read_text(), flags=re.M)
        for title, text in zip(parts[1::2], parts[2::2]):
            if name := re.fullmatch(r"`(\w+)`", title):
                first, _, rest = text.strip().partition("\n\n")
                facts = FACTS.fullmatch(re.sub(r"\s+", " ", first))
                assert facts and facts[1] == name[1], f"{path.name}: {title}: what are its values?"
                assert name[1] not in found, f"{path.name}: {title}: it is in {found[name[1]].page} as well"
                found[name[1]] = Entry(path.name, facts, rest.strip())
    return found


def test_the_pages_have_every_key_with_range_and_default(keys, entries):
    assert set(entries) == {key.name for key in keys}
    for key in keys:
        entry = entries[key.name]
        assert entry.range == key.range, key.name
        assert entry.default == (f"`{key.default}`" if key.described is None else key.described), key.name
        assert entry.text, f"{key.name}: its page does not say what it does"


def test_the_pages_say_the_values_and_the_place_of_every_key(keys, entries):
    for key in keys:
        assert entries[key.name].values == key.values, key.name
        assert entries[key.name].place == key.place, key.name


def test_the_pages_say_which_keys_are_options(entries):
    options = set(re.findall(r"^    --([\w-]+)", Finished("-h").out, re.M)) - {"root", "keys"}
    assert {entry.option for entry in entries.values() if entry.option} == options
    for name, entry in entries.items():
        assert entry.option in (None, name.replace("_", "-"))


def test_the_defaults_of_the_pages_are_those_of_a_dump(tmp_path, entries):
    conf = tmp_path / "p.conf"
    conf.write_text('site "a" { root = "%s" }\n' % tmp_path)
    run = Finished("-T", "-c", str(conf))
    assert (run.code, run.err) == (0, "")
    top = run.out.split("\nsite ")[0]
    held = dict(re.findall(r"^(\w+) = (.+)$", top, re.M))
    described = dict(re.findall(r"^# (\w+): (.+)$", top, re.M))
    assert len(held) > 50 and len(described) > 10
    # A short form of cache_control, which the dump has in its place.
    ours = {name for name, entry in entries.items() if entry.place.startswith("top level")} - {"include", "expires"}
    assert set(held) | set(described) == ours
    for name in ours:
        assert entries[name].default == (f"`{bare(held[name])}`" if name in held else described[name]), name


def test_the_index_leads_to_every_key(keys, entries):
    text = (REFERENCE / "configuration.md").read_text()
    rows = re.findall(r"^\| \[`(\w+)`\]\(([\w-]+\.md)#(\w+)\) \| (.+) \|$", text, re.M)
    assert sorted(name for name, *_ in rows) == sorted(key.name for key in keys)
    assert len(rows) == len(keys)
    helps = {key.name: key.help for key in keys}
    for name, page, anchor, what in rows:
        assert (page, anchor) == (entries[name].page, name)
        assert what.replace("\\|", "|") == helps[name], name


def test_the_table_of_pages_has_every_key_by_the_titles_of_the_pages(entries):
    text = (REFERENCE / "configuration.md").read_text()
    found = {}
    for title, page, names in re.findall(r"^\| \[([^\]]+)\]\((conf-[\w-]+\.md)\) \| (.+) \|$", text, re.M):
        assert (REFERENCE / page).read_text().startswith(f"# {title}\n"), page
        found |= {name: page for name in re.findall(r"`(\w+)`", names)}
    assert found == {name: entry.page for name, entry in entries.items()}


def test_a_page_of_keys_is_short():
    for path in [REFERENCE / "configuration.md", *REFERENCE.glob("conf-*.md")]:
        assert len(path.read_text().splitlines()) <= 250, path.name
