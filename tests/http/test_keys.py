"""The table of keys (server/conf/key.c): what --keys, -h and -T print of it, and that all that
conf/keys.py makes from it and from docs/reference is current."""

import pathlib
import re
import subprocess
import sys

import pytest

import harness
from harness import Finished, checked

TOP = pathlib.Path(__file__).resolve().parents[2]
LINE = re.compile(r"(#?)(\w+) = (.*?) +# (.+); (default: .+|[^;]+)")


def bare(value):
    """Without the braces of a list and quotes, which a dump may have."""
    return value.strip().strip("{}").strip('"')


class Key:
    def __init__(self, off, name, value, help_text, rest):
        self.name, self.help = name, help_text
        self.default = None if off else value
        self.described = rest.removeprefix("default: ") if off else None
        found = re.search(r"\w+ to \w+$", rest)
        self.range = found.group() if found else None


@pytest.fixture(scope="module")
def keys():
    run = Finished("--keys")
    assert (run.code, run.err) == (0, "")
    found = []
    for line in run.out.splitlines():
        if line and not line.startswith("# In ") and not line.startswith("# At "):
            match = LINE.fullmatch(line)
            assert match, line
            found.append(Key(*match.groups()))
    assert len(found) > 30 and len({key.name for key in found}) == len(found)
    return found


def test_printed_keys_are_a_configuration(tmp_path):
    lines = Finished("--keys").out.split("# In site ")[0]
    run = checked(tmp_path, lines + 'site "a" { root = "/" }\n')
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


def test_the_defaults_are_those_of_a_dump(tmp_path, keys):
    conf = tmp_path / "p.conf"
    conf.write_text('site "a" { root = "%s" }\n' % tmp_path)
    run = Finished("-T", "-c", str(conf))
    assert (run.code, run.err) == (0, "")
    top = run.out.split("\nsite ")[0]
    held = dict(re.findall(r"^(\w+) = (.+)$", top, re.M))
    described = dict(re.findall(r"^# (\w+): (.+)$", top, re.M))
    assert len(held) > 50 and len(described) > 10
    # A short form of cache_control, which the dump has in its place, and keys that are in no top level.
    ours = [key for key in keys if key.name not in ("include", "expires", "names", "root", "alias")]
    assert set(held) | set(described) == {key.name for key in ours}
    for key in ours:
        assert (key.described or key.default) == (bare(held[key.name]) if key.name in held else described[key.name]), key.name


# ------------------------------------------------------------------ the help of a key


def test_help_of_a_key_has_its_facts_and_its_section(keys):
    options = set(re.findall(r"^    --([\w-]+)", Finished("-h").out, re.M))
    for key in keys:
        run = Finished("-h", key.name)
        assert (run.code, run.err) == (0, ""), key.name
        head, body = re.fullmatch(r"(\w+ = [^\n]+\n\n(?:    [^\n]+\n)+)\n(.+)\n", run.out, re.S).groups()
        facts = dict(re.findall(r"^    (\w+) +(.+)$", head, re.M))
        assert head.startswith(key.name + " = ") and facts["default"] == (key.described or key.default)
        assert facts.get("range") == key.range and re.fullmatch(r"\d+\.\d+", facts["since"])
        option = key.name.replace("_", "-")
        assert facts.get("option") == ("--" + option if option in options - {"root"} else None)
        assert re.search(r"\n\nSee (docs/reference/[\w-]+\.md), pagewise\.conf\(5\)\.$", body), key.name
        assert "\n\n\n" not in run.out and "@" not in re.findall(r"^.", body, re.M)


@pytest.mark.parametrize("words", [["-h", "hot-set"], ["--help", "hot_set"], ["--root", "/", "-h", "hot_set"]])
def test_help_knows_a_key_by_the_name_of_its_option(words):
    run = Finished(*words)
    assert (run.code, run.err) == (0, "") and run.out.startswith("hot_set = ")


@pytest.mark.parametrize("name", ["site", "location"])
def test_help_knows_sections(name):
    run = Finished("-h", name)
    assert (run.code, run.err) == (0, "") and "docs/reference/conf-sites.md" in run.out


def test_help_of_an_unknown_key_names_a_similar_one():
    run = Finished("-h", "thread")
    assert (run.code, run.out) == (2, "") and run.err.endswith("pagewise: thread: unknown key; did you mean threads?\n")
    run = Finished("-h", "x" * 100)
    assert (run.code, run.out) == (2, "") and run.err.endswith(": unknown key; see pagewise --keys\n")


def test_an_option_behind_help_is_no_key():
    assert Finished("-h", "--root", "/").out == Finished("-h").out


# ------------------------------------------------------------------ what is made


@pytest.mark.once
def test_generated_files_are_current():
    done = subprocess.run([sys.executable, TOP / "conf/keys.py", "--check", harness.PAGEWISE], capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_page_of_keys_is_short():
    for path in [*TOP.glob("docs/reference/conf*.md")]:
        assert len(path.read_text().splitlines()) <= 250, path.name
