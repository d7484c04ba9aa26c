"""conf/completion: each shell, asked itself, offers the options of --help and no others."""

import os
import re
import subprocess
import tempfile

import pytest

import harness
from harness import Finished

pytestmark = pytest.mark.once
ZSH, FISH = pytest.mark.needs("zsh"), pytest.mark.needs("fish")

DIR = os.path.join(harness.TREE, "conf/completion")
COMMANDS = ["", "precompress", "digest", "sign", "assign", "drain", "undrain"]


def shell(*argv, script):
    with tempfile.TemporaryDirectory() as home:  # fish writes there
        os.symlink(os.path.abspath(harness.PAGEWISE), os.path.join(home, "pagewise"))
        env = dict(os.environ, HOME=home, TERM="dumb", XDG_CONFIG_HOME=home, XDG_DATA_HOME=home,
                   PATH=home + ":" + os.environ["PATH"])
        run = subprocess.run([*argv, script], capture_output=True, text=True, env=env, check=False,
                             timeout=harness.PATIENCE, cwd="/")
    assert run.stderr == "" and run.returncode == 0, run.stderr
    return run.stdout.split("\n")[:-1]


def bash(words):
    args = " ".join(f"'{word}'" for word in words)
    return shell("bash", "--norc", "-c", script=f"""
. {DIR}/pagewise.bash
COMP_WORDS=({args}); COMP_CWORD={len(words) - 1}
_pagewise; for word in "${{COMPREPLY[@]}}"; do echo "$word"; done""")


def fish(words):
    line = " ".join(words)
    out = shell("fish", "--no-config", "-c", script=f"""
source {DIR}/pagewise.fish; complete -C '{line}'""")
    return [line.split("\t")[0] for line in out]


def zsh_specs(command):
    """What the function hands to _arguments."""
    return shell("zsh", "-f", "-c", script=f"""
_arguments() {{ print -rl -- "$@" }}
words=(pagewise {command or "--"} --); CURRENT=$#words
f() {{ . {DIR}/_pagewise }}; f""")


def zsh_keys():
    spec = next(spec for spec in zsh_specs("") if "--help[" in spec)
    return shell("zsh", "-f", "-c", script=f"""
compadd() {{ shift; print -rl -- "$@" }}
words=(pagewise)
{spec.partition("::key:{")[2].removesuffix("}")}""")


def zsh_commands():
    spec = next(spec for spec in zsh_specs("") if spec.startswith("1:command:("))
    return re.search(r"\((.*)\)", spec).group(1).split()


def zsh_options(command):
    found = [re.match(r"(?:\([^)]*\))?\*?(-[\w-]+)(?=\[)", spec) for spec in zsh_specs(command)]
    return {match.group(1) for match in found if match}


def bash_options(command):
    return set(bash(["pagewise", command, "-"] if command else ["pagewise", "-"]))


def fish_options(command):
    found = set()
    for start in "-", "--":
        found |= set(fish(["pagewise", command, start] if command else ["pagewise", start]))
    return {word for word in found if word.startswith("-")}


def helped(command):
    run = Finished(*[command] if command else [], "-h")
    assert run.code == 0
    options = re.findall(r"^ {2,8}(-\w), (--[\w-]+)|^ {2,8}(--[\w-]+)", run.out, re.M)
    return {option for found in options for option in found if option}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("options", [
    bash_options, pytest.param(zsh_options, marks=ZSH), pytest.param(fish_options, marks=FISH)])
def test_a_shell_offers_the_options_of_help_and_no_others(options, command):
    assert len(helped(command)) > 1
    assert options(command) == helped(command)


def values(text):
    """Of "--cache keep|drop|auto" the words that may be written as they are."""
    return {word for word in text.split("|") if re.fullmatch(r"[a-z0]+", word)}


@pytest.fixture(scope="module")
def choices():
    found = {}
    for option, text in re.findall(r"^    (--[\w-]+) (\S+)", Finished("-h").out, re.M):
        if len(values(text)) > 1:
            found[option] = values(text)
    assert {"--cache", "--sandbox", "--log-format"} <= set(found)
    return found


def zsh_values(words):
    specs = zsh_specs("")
    spec = next(spec for spec in specs if re.match(r"(\*?)%s\[" % words[1], spec))
    return re.search(r"\(([^)]*)\)$", spec).group(1).split()


@pytest.mark.parametrize("offered", [bash, pytest.param(zsh_values, marks=ZSH), pytest.param(fish, marks=FISH)])
def test_values_that_are_words_are_offered(offered, choices):
    for option, words in choices.items():
        assert set(offered(["pagewise", option, ""])) == words, option


@pytest.mark.parametrize("offered", [bash, pytest.param(fish, marks=FISH)])
def test_every_send_path_is_offered(offered):
    paths = Finished("-h").out.splitlines()[-1].split(": ")[1].split()
    assert len(paths) > 3
    assert set(paths) < set(offered(["pagewise", "--send-path", ""]))


@pytest.mark.parametrize("offered", [
    lambda: bash(["pagewise", ""]), pytest.param(lambda: fish(["pagewise", ""]), marks=FISH),
    pytest.param(zsh_commands, marks=ZSH)], ids=["bash", "fish", "zsh"])
def test_a_shell_offers_every_command(offered):
    assert set(COMMANDS) - {""} <= set(offered())


@pytest.mark.parametrize("offered", [
    lambda: bash(["pagewise", "-h", ""]), pytest.param(lambda: fish(["pagewise", "--help", ""]), marks=FISH),
    pytest.param(zsh_keys, marks=ZSH)], ids=["bash", "fish", "zsh"])
def test_a_shell_offers_every_key_behind_help(offered):
    keys = re.findall(r"^#?(\w+) = ", Finished("--keys").out, re.M)
    found = set(offered())
    assert len(keys) > 80 and found >= set(keys) and found - set(keys) <= set(COMMANDS)
