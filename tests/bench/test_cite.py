"""`bench/lab results`: what is measured again, what is refused, and the pages."""

import dataclasses
import os
import re
import subprocess
import types

import lab
import pytest

from laboratory import cite, pages, plan, results, source, verdicts
from laboratory.plan import Page

CONF = "daemon off;\npid /tmp/lab-abcd1234/nginx.pid;\nlisten 127.0.0.1:43210;\n\n\n\n# end\n"
COMMIT = "0123456789"
HOST = {"date": "today", "commit": COMMIT, "kernel": "Linux", "disk": "vda", "TCP": "reno",
        "RFS": "not set (no sysfs)", "freed memory": "touched"}
PAGES = (
    Page("one", plan.BESIDE, "One", "What is one?", "storm",
         verdicts.against_best("hot in the storm, req/s", "{mine}, {who} {other}"),
         ("nodiskio",), ("nginx",), {"seconds": 1, "probe_seconds": 1, "probe_timeout": 1}),
    Page("two", plan.UNCACHED, "Two", "What are two?", "storm",
         verdicts.pair("p99", "{other}", "nginx", "nginx-pagewise"), ("nodiskio",), ("nginx",),
         figures=()),
    Page("three", plan.UNCACHED, "Three", "What are three?", "storm",
         verdicts.span("It keeps {kept}", names=("nodiskio",), kept="of alone"), ("nodiskio",),
         figures=()),
)


def values(rate):
    latency = {"latency_us": {"p50": 100, "p99": 200, "max": 3000}, "own_delay_us": {"p99": 50}}
    return {"random": {
        "alone": {"rate": 50000, "cpu": 1.0, "requests": 100_000}, "calm": latency,
        "stormy": latency, "limit": 1 << 20, "cold": {"bytes": 2 << 20, "seconds": 2.0},
        "storm": {"rate": rate, "t": 2.0, "cpu": 1.0, "disk_bytes": 2 << 20}}}


def fake_run(path, names, rounds, broken=()):
    run = results.Run.create(path, {
        "command": "bench/lab run storm", "host": HOST, "finished": True,
        "left_out": ["H2O: not installed"],
        "scenarios": {"storm": {"settings": {"rounds": rounds, "pick": "random"}}},
        "candidates": {name: {"title": f"title of {name}", "version": "1.2",
                              "kind": "path" if name == "nodiskio" else "peer"}
                       for name in names}})
    for name in names:
        rate, error = 40000 if name == "nodiskio" else 10, "it broke" if name in broken else None
        for number in range(1, rounds + 1):
            run.add(results.Round(
                "storm", name, number, None if error else values(rate + number), error,
                conf=CONF if name == "nginx" else None,
                commands=[["/tmp/lab-abcd1234/server", "-p", "127.0.0.1:43210"]]))


class Laboratory:
    """In place of the real one: notes what it is asked for, and stops before a table."""

    def __init__(self):
        self.asked, self.stop_at, self.fail_at, self.broken = [], None, None, ()

    def __call__(self, arguments):
        name = os.path.basename(arguments[arguments.index("--out") + 1])
        if name == f"{self.stop_at}.part":
            raise KeyboardInterrupt
        self.asked.append(name.removesuffix(".part"))
        if name == f"{self.fail_at}.part":
            return 1
        candidates = [n for option in ("--path", "--peer") if option in arguments
                      for n in arguments[arguments.index(option) + 1].split(",")]
        rounds = int(arguments[arguments.index("--rounds") + 1])
        fake_run(arguments[arguments.index("--out") + 1], candidates, rounds, self.broken)
        return 1 if self.broken else 0


@pytest.fixture
def laboratory(monkeypatch):
    fake = Laboratory()
    monkeypatch.setattr(cite, "laboratory", fake)
    monkeypatch.setattr(cite, "estimate", lambda *_: 60)
    monkeypatch.setattr(cite.source, "commit", lambda: fake.commit)
    monkeypatch.setattr(plan, "PAGES", PAGES)
    fake.commit = COMMIT
    return fake


@pytest.fixture
def args(tmp_path):
    def made(**more):
        return types.SimpleNamespace(**{
            "out": str(tmp_path / "raw"), "rounds": 5, "only": None, "binaries": [],
            "dirty": False, "data": "/nowhere", **more})
    return made


def perform(laboratory, args):
    """The tables that were measured."""
    laboratory.asked.clear()
    cite.perform(args, None)
    return list(laboratory.asked)


# ------------------------------------------------------------------ the pass


def test_a_pass_measures_each_table_once(laboratory, args, capsys):
    assert perform(laboratory, args()) == ["one", "two", "three"]
    assert "3 tables, 5 rounds each, about 1 minutes" in capsys.readouterr().err
    assert perform(laboratory, args()) == []


def test_a_pass_goes_on_where_it_was_interrupted(laboratory, args):
    laboratory.stop_at = "two"
    with pytest.raises(KeyboardInterrupt):
        cite.perform(args(), None)
    laboratory.stop_at = None
    assert perform(laboratory, args()) == ["two", "three"]


@pytest.mark.parametrize("change", [
    {"rounds": 6}, {"binaries": ["nginx=/opt/nginx"]}])
def test_other_arguments_are_another_measurement(laboratory, args, change):
    perform(laboratory, args())
    assert perform(laboratory, args(**change)) == ["one", "two", "three"]


def test_another_commit_is_measured_anew(laboratory, args):
    perform(laboratory, args())
    laboratory.commit = "fedcba9876"
    assert perform(laboratory, args()) == ["one", "two", "three"]


def test_one_table_is_measured_again_and_the_others_are_kept(laboratory, args):
    perform(laboratory, args())
    assert perform(laboratory, args(only=["two"])) == ["two"]
    same, others = cite.measured(args().out, COMMIT)
    assert [one.page.name for one in same] == ["one", "two", "three"] and others == []


def test_tables_of_another_commit_are_marked(laboratory, args):
    perform(laboratory, args())
    laboratory.commit = "fedcba9876"
    perform(laboratory, args(only=["two"]))
    same, others = cite.measured(args().out, "fedcba9876")
    assert [one.page.name for one in same] == ["two"]
    assert [one.page.name for one in others] == ["one", "three"]


def test_a_table_of_its_own_is_measured_only_if_named_and_with_its_own_rounds(
        laboratory, args, monkeypatch):
    own = dataclasses.replace(PAGES[1], name="own", asked=True, rounds=1)
    monkeypatch.setattr(plan, "PAGES", (*PAGES, own))
    assert perform(laboratory, args()) == ["one", "two", "three"]
    assert perform(laboratory, args(only=["own"])) == ["own"]
    there = cite.found(args().out, own)
    assert there.meta["rounds"] == 1 and "--rounds 1" in there.meta["command"]


def test_a_table_of_its_own_is_never_missing_and_calls_no_pass_a_rehearsal(
        written, laboratory, args, monkeypatch):
    own = dataclasses.replace(PAGES[1], name="own", asked=True, rounds=1)
    monkeypatch.setattr(plan, "PAGES", (*PAGES, own))
    assert "not measured" not in texts(written())["results.md"]
    perform(laboratory, args(only=["own"]))
    front = texts(written())["results.md"]
    assert "in 5 rounds" in front and "rehearsal" not in front and "results/own.md" in front
    laboratory.commit = "fedcba9876"
    perform(laboratory, args())
    front = " ".join(texts(written("fedcba9876"))["results.md"].split())
    assert "results/own.md" in front
    assert f"Measured only if named, at another commit: own ({COMMIT})." in front


def test_a_failed_table_does_not_stop_the_others(laboratory, args, capsys):
    laboratory.fail_at = "two"
    assert perform(laboratory, args()) == ["one", "two", "three"]
    assert "failed: two: status 1, and no results" in capsys.readouterr().err
    laboratory.fail_at = None
    assert perform(laboratory, args()) == ["two"]


def test_failed_rounds_are_printed_and_listed(laboratory, args, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    laboratory.broken = ("nginx",)
    perform(laboratory, args())
    assert "one: 5 rounds failed, such as nginx: it broke; to measure it again: --only one" in (
        capsys.readouterr().err)
    pages.write(str(tmp_path / "docs"), *cite.measured(args().out, COMMIT), COMMIT)
    text = (tmp_path / "docs/results/one.md").read_text()
    assert "- Failed: title of nginx, round 1: it broke" in text and pages.NO_VERDICT in text
    front = " ".join((tmp_path / "docs/results.md").read_text().split())
    assert "**Rounds failed in 2 tables,** whose pages list them: one, two." in front
    assert not cite.whole(args().out, PAGES, COMMIT) and cite.whole(args().out, PAGES[2:], COMMIT)
    laboratory.broken = ()
    perform(laboratory, args(only=["one", "two"]))
    assert cite.whole(args().out, PAGES, COMMIT)
    assert not cite.whole(args().out, PAGES, "fedcba9876")


def test_old_results_stay_until_the_new_ones_are_complete(laboratory, args):
    perform(laboratory, args())
    laboratory.fail_at = "two"
    _, failed = cite.perform(args(only=["two"]), None)
    assert [page.name for page in failed] == ["two"]
    assert len(cite.measured(args().out, COMMIT)[0]) == 3


# ---------------------------------------------------------------- the commit


def git(tree, *words):
    subprocess.run(["git", "-C", tree, "-c", "user.name=n", "-c", "user.email=e@x", *words],
                   check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def tree(tmp_path):
    git(tmp_path, "init", "-q")
    for name in ("docs/a.md", "lib/a.c", "bench/README.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


@pytest.mark.parametrize("name, dirty", [
    ("lib/a.c", True), ("lib/new.c", True), ("docs/a.md", False), ("docs/results.md", False),
    ("bench/README.md", False)])
def test_a_tree_is_dirty_if_measured_files_differ(tree, name, dirty):
    (tree / name).write_text("2\n")
    assert bool(source.changes(tree)) == dirty
    assert source.commit(tree).endswith(source.CHANGED) == dirty


@pytest.mark.parametrize("name, same", [("docs/a.md", True), ("lib/a.c", False)])
def test_a_commit_of_documentation_makes_no_other_results(tree, name, same):
    before = source.commit(tree)
    (tree / name).write_text("2\n")
    git(tree, "commit", "-qam", "second")
    assert (source.commit(tree) == before) == same


def test_a_dirty_tree_is_refused_without_an_option(monkeypatch):
    monkeypatch.setattr(source, "commit", lambda: COMMIT + source.CHANGED)
    monkeypatch.setattr(source, "changes", lambda: ["lib/a.c"])
    with pytest.raises(RuntimeError, match="differs from its commit: lib/a.c; .* --dirty"):
        cite.check_source(False)
    assert cite.check_source(True) == COMMIT + source.CHANGED


def test_without_a_repository_there_are_no_results(monkeypatch, tmp_path):
    assert source.commit(tmp_path) == ""
    monkeypatch.setattr(source, "commit", lambda: "")
    with pytest.raises(RuntimeError, match="no repository"):
        cite.check_source(True)


# ----------------------------------------------------------------- the pages


@pytest.fixture
def written(laboratory, args, tmp_path):
    """A function: the directory with the pages of what is measured so far."""
    def made(commit=COMMIT):
        pages.write(str(tmp_path / "docs"), *cite.measured(args().out, commit), commit)
        return tmp_path / "docs"
    pytest.importorskip("matplotlib")
    perform(laboratory, args())
    return made


def texts(docs):
    return {str(path.relative_to(docs)): path.read_text(encoding="utf-8")
            for path in docs.rglob("*.md")}


def prose(text):
    return [line for line in text.splitlines() if not line.startswith("|")]


def test_lines_of_prose_are_short(written):
    for name, text in texts(written()).items():
        assert max(map(len, prose(text))) <= pages.WIDTH, name
        assert text.endswith("\n") and "\n\n\n" not in text


def test_the_front_page_has_each_table_its_verdict_and_valid_links(written):
    docs = written()
    front = texts(docs)["results.md"]
    assert ("| [One](results/one.md) | pagewise is ahead of the best peer, title of nginx: "
            "40 003 (40 001–40 005), title of nginx 13 (11–15). |") in front
    assert "[Three](results/three.md) | It keeps 0.80." in front
    assert f"commit {COMMIT}, in 5 rounds" in front and "rehearsal" not in front
    assert "| title of nginx | 1.2 |" in front and "- kernel: Linux" in front
    assert "not measured" not in front


def test_links_and_pictures_are_there(written):
    docs = written()
    for name, text in texts(docs).items():
        for link in re.findall(r"\]\(([^)#]+)", text):
            if "bench/README.md" not in link:
                path = (docs / name).parent / link
                assert path.exists(), f"{name}: {link}"


def test_a_page_has_verdict_table_command_commit_and_configuration(written):
    text = texts(written())["results/one.md"]
    head, _, rest = text.partition("| server |")
    assert text.startswith("# One\n\nFor those who compare servers. What is one?\n\n**pagewise")
    assert "![One](one-1.svg)" in head and "40 003 (40 001–40 005)" in rest
    command = re.search(r"```sh\n(.*?)```", text, re.S).group(1).replace("\\\n    ", "")
    assert command.split() == cite.command(PAGES[0], 5).split()
    assert f"Commit {COMMIT}" in text and "[nginx.conf](conf/nginx.conf)" in text
    assert all(f"\n- {line}.\n" in text for line in (
        "TCP: reno", "RFS: not set (no sysfs)", "Freed memory: touched"))
    assert "`server -p 127.0.0.1:PORT`" in text and "Left out: H2O: not installed." in text


def test_a_later_laboratory_is_named(written, args):
    path = f"{args().out}/one/{cite.META}"
    results.save(path, {**results.load(path), "laboratory": "abcdef0123"})
    found = texts(written())
    assert f"Commit {COMMIT}, measured by the laboratory of abcdef0123, " in found["results/one.md"]
    assert "laboratory of" not in found["results/two.md"]


def test_without_the_figures_a_page_says_that_there_is_no_verdict(written):
    assert pages.NO_VERDICT in texts(written())["results/two.md"]


def test_a_configuration_is_kept_once_without_what_differs_between_starts(written):
    docs = written()
    assert os.listdir(docs / "results/conf") == ["nginx.conf"]
    assert (docs / "results/conf/nginx.conf").read_text() == (
        "daemon off;\npid RUN/nginx.pid;\nlisten 127.0.0.1:PORT;\n\n# end\n")


def test_two_configurations_of_a_server_have_two_names():
    found = pages.Configurations()
    assert [found.add("a", "nginx", "1"), found.add("b", "nginx", "2"),
            found.add("c", "nginx", "1")] == ["nginx.conf", "nginx-b.conf", "nginx.conf"]


def test_a_command_is_broken_between_options():
    lines = pages.shell("bench/lab run storm " + "--set storm.seconds=1 " * 8)
    assert lines[0] == "```sh" and max(map(len, lines)) <= pages.WIDTH
    assert all(not line.rstrip(" \\").endswith("--set") for line in lines)


def test_tables_of_another_commit_are_named_and_not_shown(written, laboratory, args, capsys):
    docs = written()
    laboratory.commit = "fedcba9876"
    perform(laboratory, args(only=["two"]))
    written("fedcba9876")
    front = texts(docs)["results.md"]
    assert "**2 of 3 tables are not measured at this commit:** one, three." in front
    assert f"one ({COMMIT}), three ({COMMIT})" in front
    assert set(texts(docs)) == {"results.md", "results/two.md"}
    assert f"not shown: one is of commit {COMMIT}" in capsys.readouterr().err


def test_few_rounds_and_a_dirty_tree_are_reported_at_the_top(laboratory, args, tmp_path):
    pytest.importorskip("matplotlib")
    laboratory.commit = COMMIT + source.CHANGED
    perform(laboratory, args(rounds=1, dirty=True))
    pages.write(str(tmp_path / "docs"), *cite.measured(args().out, laboratory.commit),
                laboratory.commit)
    front = " ".join(texts(tmp_path / "docs")["results.md"].split())
    assert "in 1 round," in front and "a rehearsal" in front and "Files differed" in front


def test_nothing_measured_makes_no_pages(laboratory, args, tmp_path):
    with pytest.raises(RuntimeError, match="nothing is measured at commit"):
        pages.write(str(tmp_path), *cite.measured(args().out, COMMIT), COMMIT)
    assert not os.path.exists(tmp_path / "results.md")


@pytest.mark.parametrize("words, message", [
    (["--only", "nonsense"], "no table nonsense: there are storm"),
    (["--rounds", "0"], "0: a number from 1 on"),
    (["--peer-binary", "nonsense=/bin/true"], "write NAME=PATH"),
    (["--write", "--dirty", "--out", "/nowhere"],
     "nothing is measured at commit" if source.commit() else "no repository of git"),
])
def test_bad_arguments_are_reported(words, message):
    status, out, err = lab.run("results", *words)
    assert status != 0 and message in err and "Traceback" not in err and out == ""
