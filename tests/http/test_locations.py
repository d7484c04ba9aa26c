"""Locations by prefix, exact path and glob, with directories of their own; wildcard names of
sites; and files that are included."""

import os
import pathlib

import pytest

from harness import Finished, configuration


@pytest.fixture
def dirs(tmp_path):
    """a/, b/ and c/, each with the same names and other contents."""
    for name in "abc":
        top = tmp_path / name
        (top / "i" / "deep").mkdir(parents=True)
        for path in ("f", "v.mp4", "i/f", "i/v.mp4", "i/deep/f", "i/index.html"):
            (top / path).write_text(f"{name}:{path}")
    return tmp_path


@pytest.fixture
def located(serve, dirs):
    """A server with these locations in a site of a/."""

    def start(locations):
        conf = dirs / "pagewise.conf"
        conf.write_text(configuration({}, [("s", {"root": dirs / "a"}, locations)]))
        return serve("-c", conf, "--listen", "127.0.0.1:0")

    return start


def body(server, path, **kw):
    answer = server.get(path, **kw)
    return answer.body.decode() if answer.status == 200 else answer.status


def test_root_in_a_location_has_the_whole_path_and_alias_what_follows(dirs, located):
    server = located({"/i/": {"root": dirs / "b"}, "/j/": {"alias": dirs / "c"}})
    assert body(server, "/f") == "a:f"
    assert body(server, "/i/f") == "b:i/f"
    assert body(server, "/i/") == "b:i/index.html"
    assert body(server, "/j/f") == "c:f"
    assert body(server, "/j/i/deep/f") == "c:i/deep/f"
    assert body(server, "/j/i/") == "c:i/index.html"
    # The redirect is about the path that was asked for.
    answer = server.get("/j/i")
    assert (answer.status, answer.get("Location")) == (301, "/j/i/")
    assert body(server, "/j/../f") == "a:f"
    for path in ("/j/../../b/f", "/j/%2e%2e/%2e%2e/b/f", "/j", "/j../f"):
        assert body(server, path) in (400, 404)


def test_exact_path_wins_over_globs_and_these_over_prefixes(dirs, located):
    locations = {
        "/i/": {"root": dirs / "b"},
        "*.mp4": {"root": dirs / "c"},
        "= /i/v.mp4": {"root": dirs / "a"},
    }
    server = located(locations)
    assert body(server, "/v.mp4") == "c:v.mp4"
    assert body(server, "/i/v.mp4") == "a:i/v.mp4"
    assert body(server, "/i/f") == "b:i/f"
    assert body(server, "/f") == "a:f"


def test_alias_with_a_listing_and_the_links_in_it(dirs, located):
    server = located({"/j/": {"alias": dirs / "c", "autoindex": True}})
    page = body(server, "/j/")
    assert "v.mp4" in page
    assert body(server, "/j/i/deep/") != 404
    assert "f" in body(server, "/j/i/deep/")


def test_root_of_a_location_is_watched_by_the_sandbox_and_symlinks_stay_inside(dirs, located):
    os.symlink(dirs / "a" / "f", dirs / "b" / "i" / "out")
    server = located({"/i/": {"root": dirs / "b"}})
    assert body(server, "/i/out") == 403


def test_wildcard_name_is_for_all_names_below_it(dirs, serve):
    conf = dirs / "pagewise.conf"
    sites = [("a", {"root": dirs / "a"}, {}),
             ("b", {"root": dirs / "b", "names": ["*.example.org"]}, {}),
             ("c", {"root": dirs / "c", "names": ["*.x.example.org", "y.example.org"]}, {})]
    conf.write_text(configuration({}, sites))
    server = serve("-c", conf, "--listen", "127.0.0.1:0")
    for host, want in [("example.org", "a"), ("v.example.org", "b"), ("x.example.org", "b"),
                       ("v.x.example.org", "c"), ("y.example.org", "c")]:
        for _ in range(3):  # from the hot set as well
            assert body(server, "/f", host=host) == want + ":f"


def included(dirs, files, main):
    (dirs / "sites").mkdir()
    for name, text in files.items():
        (dirs / "sites" / name).write_text(text)
    conf = dirs / "pagewise.conf"
    conf.write_text(main)
    return conf


def test_included_files_have_sites_and_a_directory_of_their_own(dirs, serve):
    conf = included(dirs, {
        "1.conf": 'site "one" { root = "../a" names = {"one"} }\n',
        "2.conf": 'threads = 3\nworkers = 2\nsite "two" { root = "../b" names = {"two"} }\n',
        "3.txt": "nonsense = 1\n",
    }, 'include = "sites/*.conf"\nworkers = 1\nsite "main" { root = "c" }\n')
    server = serve("-c", conf, "--listen", "127.0.0.1:0", "--stall-log", "0")
    for host, want in [("one", "a"), ("two", "b"), ("else", "c")]:
        assert body(server, "/f", host=host) == want + ":f"
    # What the file says itself counts.
    names = [path.read_text() for path in pathlib.Path("/proc/%d/task" % server.pid).glob("*/comm")]
    assert {name for name in names if name.startswith("pw-worker")} == {"pw-worker0\n"}


@pytest.mark.parametrize("files, main, message", [
    ({"a.conf": "\nnonsense = 1\n"}, 'include = "sites/*.conf"\n', "sites/a.conf:2: nonsense: unknown key"),
    ({}, '\ninclude = {"sites/no.conf"}\n', "pagewise.conf:2: include: "),
    ({"a.conf": "workers = 0\n"}, 'include = "sites/a.conf"\n', "sites/a.conf:1: workers: 0 is out of range"),
    ({"a.conf": 'include = "a.conf"\n'}, 'include = "sites/a.conf"\n', "more than 8 deep"),
    ({"a.conf": 'site "s" { root = "/" }\n', "b.conf": '\nsite "s" { root = "/" }\n'},
     'include = "sites/*.conf"\n', 'sites/b.conf:2: site "s": this site is already defined: merge the two blocks'),
    ({}, 'include = "sites/*.conf"\n', "pagewise.conf: no site"),
    ({}, 'site "s" { root = "/"\ninclude = "x" }\n', ":2: include: is only allowed at the top level"),
    ({}, 'include = ""\nsite "s" { root = "/" }\n', ":1: include: "),
])
def test_error_in_an_included_file_has_its_name_and_line(dirs, files, main, message):
    run = Finished("-t", "-c", str(included(dirs, files, main)))
    assert run.code == 1
    assert message in run.err, run.err


def test_reload_reads_included_files_again(dirs, serve):
    conf = included(dirs, {"1.conf": 'site "one" { root = "../a" }\n'}, 'include = "sites/*.conf"\n')
    server = serve("-c", conf, "--listen", "127.0.0.1:0", "--stall-log", "0")
    assert body(server, "/f") == "a:f"
    (dirs / "sites" / "1.conf").write_text('site "one" { root = "../b" }\n')
    server.reload()
    assert body(server, "/f") == "b:f"


@pytest.mark.parametrize("title, literal", [
    ("*.{mp4,webm}", "{mp4,webm}"), ("/[a-z]/", "[a-z]"), ("= /a[0-9].html", "[0-9]"), ("*.(jpg|png)", "(jpg|png)"),
    ("/{a}[b]", "[b]"), ("/a(b)", None), ("/{a}", None), ("/[]", None), ("/a]b[", None), ("/a|b", None),
])
def test_pattern_that_has_no_meaning_in_a_title_is_warned_of(tmp_path, title, literal):
    """It works as written, but somebody meant something else."""
    conf = tmp_path / "p.conf"
    conf.write_text('site "s" {\nroot = "/"\nlocation "%s" {\nexpires = 1h }\n}\n' % title)
    run = Finished("-t", "-c", str(conf))
    assert (run.code, run.err) == (0, (
        'pagewise: warning: %s:3: location "%s" matches "%s" byte by byte, since only * and ? are special: write a '
        'location for each alternative, or ? for any byte\n' % (conf, title, literal)) if literal else "")


def test_pattern_that_has_no_meaning_in_log_exclude_is_warned_of(tmp_path):
    conf = tmp_path / "p.conf"
    conf.write_text('log_exclude = {"/live",\n"*.{ico,png}"}\nsite "s" { root = "/" }\n')
    run = Finished("-t", "-c", str(conf))
    assert (run.code, run.err) == (0, (
        'pagewise: warning: %s:2: log_exclude "*.{ico,png}" matches "{ico,png}" byte by byte, since only * and ? are '
        'special: write a log_exclude for each alternative, or ? for any byte\n' % conf))
