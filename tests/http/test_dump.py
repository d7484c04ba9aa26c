"""-t says what is served where; -T prints the whole configuration, which reads back as the same."""

import os
import re
import subprocess

import pytest

import harness
from harness import Finished

# Texts that a file has to quote: some that the file or the shell would take apart.
ODD = ["plain", "", " two  words ", 'a "quote"', "it's", "back\\slash\\", "${HOME}", "$HOME", "# no comment",
       "// nor this", "/* nor this */", "{1, 2}", "a, b", "tab\there", "é — ü"]

USERS = "one:$5$abcdefgh$%s\n" % ("x" * 43)


def written(text):
    return '"%s"' % re.sub(r'(["\\$])', r"\\\1", text)


def dump(*args, cwd=None):
    run = Finished("-T", *args, cwd=cwd)
    assert (run.code, run.err) == (0, "")
    return run.out


def read_back(tmp_path, *args, cwd=None):
    """The dump, after it was read from another directory and printed again."""
    first = dump(*args, cwd=cwd)
    again = tmp_path / "elsewhere"
    again.mkdir(exist_ok=True)
    (again / "dump.conf").write_text(first)
    assert dump("-c", again / "dump.conf", cwd="/") == first
    return first


def test_every_key_of_the_sample_reads_back(tmp_path):
    with open(os.path.join(harness.TREE, "conf/pagewise.conf"), encoding="utf-8") as f:
        text = re.sub(r'(\broot = )"[^"]*"', r'\1"%s"' % tmp_path, f.read())
    conf = tmp_path / "p.conf"
    conf.write_text(text)
    said = read_back(tmp_path, "-c", conf)
    known = set(re.findall(r"^#?(\w+) = ", Finished("--keys").out, re.M)) - {"include"}
    assert known - {"names", "root", "alias", "expires"} == set(re.findall(r"^(?:# )?(\w+)(?: =|:)", said, re.M))


def test_texts_are_quoted_correctly(tmp_path):
    conf = tmp_path / "p.conf"
    odd = [text for text in ODD if text]
    conf.write_text("realm = %s\ncors = {}\nsite %s { root = \"/\" location %s { error_page = {%s} } }\n" % (
        written(odd[1]), written("a \"b\""), written("/${x}\\"),
        ", ".join(written("%d text: %s" % (400 + n, text)) for n, text in enumerate(odd))))
    said = read_back(tmp_path, "-c", conf)
    assert 'site "a \\"b\\"" {' in said and 'location "/\\${x}\\\\" {' in said
    for n, text in enumerate(odd):
        shown = written("%d text: %s" % (400 + n, text)).replace("\t", "\\x09")
        assert shown in said


@pytest.mark.parametrize("first,second,wins", [("expires = 10m", "cache_control = private", "expires"),
                                               ("cache_control = private", "expires = 10m", "cache_control")])
def test_the_effective_one_of_two_keys_is_printed(tmp_path, first, second, wins):
    (tmp_path / "more.conf").write_text(second + "\n")
    (tmp_path / "p.conf").write_text('include = {"more.conf"}\n%s\nsite "a" { root = "/" }\n' % first)
    said = read_back(tmp_path, "-c", tmp_path / "p.conf")
    assert re.findall(r"^(expires|cache_control) =", said, re.M) == [wins]


def test_included_files_and_options_are_part_of_it(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/one.conf").write_text(
        'threads = 3\nworkers = 4\nlisten = {"*:1"}\nindex = {"a", "b"}\nsite "one" { root = "." }\n')
    (tmp_path / "p.conf").write_text('include = {"sub/*.conf"}\nthreads = 5\nsite "two" { root = "sub" }\n')
    said = read_back(tmp_path, "-c", "p.conf", "--cache", "drop", "--autoindex", "--listen", "*:2", "--listen",
                     "unix:s", cwd=tmp_path)
    top, two, one = said.split('\nsite "')
    for line in ["threads = 5", "workers = 4", "cache = drop", "autoindex = true", 'index = {"a", "b"}',
                 'listen = {"*:2", "unix:%s/s"}' % tmp_path]:
        assert line in top.splitlines()
    assert two == 'two" {\n\troot = "%s/sub"\n}\n' % tmp_path
    assert one == 'one" {\n\troot = "%s/sub/."\n}\n' % tmp_path


def test_an_empty_list_is_no_default(tmp_path):
    (tmp_path / "p.conf").write_text('site "a" { root = "." index = {} location /x { allow = {} } }\n')
    said = read_back(tmp_path, "-c", tmp_path / "p.conf")
    assert "\tindex = {}\n" in said and "\t\tallow = {}\n" in said


def test_relative_paths_of_every_key_become_absolute(tmp_path):
    (tmp_path / "f").write_text("text/x-odd odd\n")
    (tmp_path / "users").write_text(USERS)
    (tmp_path / "p.conf").write_text(
        'admin = "./admin"\naccess_log = "log"\nmime_types = "f"\nchroot = off\nclient_ca = off\n'
        'error_page = {"404 f"}\nlisten = {"unix:s mode=0600"}\n'
        'site "a" { root = "." htpasswd = "users" location "/a/" { alias = "." } }\n')
    said = read_back(tmp_path, "-c", "p.conf", cwd=tmp_path)
    for value in ['admin = {"%s/./admin"}', 'access_log = "%s/log"', 'mime_types = "%s/f"', 'error_page = {"404 %s/f"}',
                  'listen = {"unix:%s/s mode=0600"}', 'root = "%s/."', 'htpasswd = "%s/users"', 'alias = "%s/."']:
        assert value % tmp_path in said
    assert "chroot = off\n" in said and "client_ca = off\n" in said


def test_root_in_place_of_the_sites(tmp_path):
    (tmp_path / "p.conf").write_text('site "a" { root = "." }\n')
    said = read_back(tmp_path, "-c", tmp_path / "p.conf", "--root", ".", cwd=tmp_path)
    assert said.endswith('\nsite "default" {\n\troot = "%s/."\n}\n' % tmp_path)


def test_faulty_configuration_is_not_printed(tmp_path):
    (tmp_path / "p.conf").write_text('threads = 0\nsite "a" { root = "." }\n')
    run = Finished("-T", "-c", tmp_path / "p.conf")
    assert run.code == 1 and run.out == "" and "p.conf:1: threads: 0 is out of range" in run.err


@pytest.mark.parametrize("option", ["-t", "-T"])
def test_unwritable_output_is_an_error(tmp_path, option):
    with open("/dev/full", "w", encoding="ascii") as full:
        run = subprocess.run([harness.PAGEWISE, option, "--root", "/"], stdout=full, text=True, check=False,
                                     stderr=subprocess.PIPE, timeout=harness.PATIENCE)
    assert run.returncode == 1 and run.stderr == "pagewise: cannot write to standard output: No space left on device\n"


PLAN = re.compile(r"memory: \d+ MiB of the (?:machine|control group)\n    hot_set \d+ MiB\n"
                  r"(?:    connections, at most \d+ MiB\n)?    file data to be sent, at most \d+ MiB\n"
                  r"(?:    ulimit -l \(LimitMEMLOCK\) permits this user \d+ MiB .*\n)?")


def test_the_check_prints_what_is_served_where(tmp_path):
    conf = tmp_path / "p.conf"
    for name in "www", "video":
        (tmp_path / name).mkdir()
    (tmp_path / "users").write_text(USERS)
    conf.write_text('listen = {"127.0.0.1:81", "unix:s proxy"}\ntrusted_proxies = {"unix:"}\nadmin = "127.0.0.1:82"\nagent = "127.0.0.1:83"\n'
                    'site "www" { root = "www" names = {"a.example", "*.a.example"} autoindex = true\n'
                    'location "/v/" { alias = "video" autoindex = false }\n'
                    'location "= /x" { htpasswd = "users" }\nlocation "*.mp4" { } }\n'
                    'site "b" { root = "/" names = {"b.example"} location "/" { } }\n')
    run = Finished("-t", "-c", "p.conf", cwd=tmp_path)
    assert (run.code, run.err) == (0, "")
    assert PLAN.sub("memory\n", run.out) == """configuration ok: p.conf
memory
listens on 127.0.0.1:81
listens on unix:s proxy
metrics on 127.0.0.1:82
agent-check on 127.0.0.1:83
site "www": a.example *.a.example (every other name)
    = /x -> www/x (listing, password)
    *.mp4 -> www/ (listing)
    /v/ -> video/
    / -> www/ (listing)
site "b": b.example
    / -> /
"""


@pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists("/usr/bin/setpriv"), reason="needs root and setpriv")
def test_the_check_warns_of_a_low_limit_of_locked_memory():
    run = subprocess.run(["prlimit", "--memlock=1048576:1048576", "setpriv", "--bounding-set=-sys_resource",
                          "--inh-caps=-sys_resource", harness.PAGEWISE, "-t", "--root", "/"],
                         capture_output=True, text=True, check=False, timeout=harness.PATIENCE)
    assert (run.returncode, run.stderr) == (0, "")
    assert "\n    ulimit -l (LimitMEMLOCK) permits this user 1 MiB of locked memory: " in run.stdout


def test_the_check_warns_of_response_caches_that_need_all_memory():
    run = Finished("-t", "--root", "/", "--hot-set", "64G", "--workers", "64")
    assert run.code == 0 and "\n    hot_set needs all of this memory: lower hot_set or workers\n" in run.out


@pytest.mark.slow
def test_the_check_of_very_many_sites_is_short(tmp_path):
    """An upgrade's test has a pipe for its standard output, of which nobody reads all."""
    conf = tmp_path / "p.conf"
    conf.write_text("".join('site "s%d" { root = "." names = {"n%d.example"} }\n' % (n, n) for n in range(2000)))
    run = Finished("-t", "-c", conf)
    assert run.code == 0 and run.out.endswith("\n... and more: -T prints the whole configuration\n")
    assert 30000 < len(run.out) < 33500
    assert dump("-c", conf).count("\nsite ") == 2000


@pytest.mark.slow
def test_the_check_cuts_very_many_names_at_the_end_of_a_line(tmp_path):
    conf = tmp_path / "p.conf"
    conf.write_text("".join('site "s%d" { root = "." names = {%s} }\n' % (
        n, ", ".join('"n%d-%d.example"' % (n, i) for i in range(100))) for n in range(100)))
    run = Finished("-t", "-c", conf)
    assert run.code == 0 and run.out.endswith(".example\n... and more: -T prints the whole configuration\n")


def test_a_server_with_the_dump_serves_the_same(tmp_path, serve):
    (tmp_path / "www").mkdir()
    (tmp_path / "www/a.odd").write_text("one")
    (tmp_path / "gone").write_text("it is gone")
    (tmp_path / "p.conf").write_text(harness.configuration(
        {"header": ['X-Odd: a "b" ${c}'], "expires": "10m", "types": ["text/x-odd odd"]},
        [("a", {"root": "www", "error_page": ["404 gone"], "redirect": ["/old* /new* 302"]}, {})]
    ).replace("${", "\\${"))
    (tmp_path / "dump.conf").write_text(dump("-c", "p.conf", cwd=tmp_path))
    answers = []
    for name in "p.conf", "dump.conf":
        server = serve("-c", tmp_path / name)
        got = [server.get(path) for path in ("/a.odd", "/none", "/oldest")]
        answers.append([(one.status, one.body, [field for field in one.fields if field[0].lower() != "date"])
                        for one in got])
    assert answers[0] == answers[1]
    assert ("X-Odd", 'a "b" ${c}') in answers[0][0][2] and answers[0][1][1] == b"it is gone"


def test_rules_of_header_that_a_file_includes_are_printed(tmp_path):
    (tmp_path / "more.conf").write_text('header = {"X-A: included"}\nindex = {"a.html"}\n')
    conf = tmp_path / "p.conf"
    conf.write_text('include = {"more.conf"}\nheader = {"X-B: own"}\nindex = {"b.html"}\nsite "a" { root = "/" }\n')
    said = read_back(tmp_path, "-c", conf)
    assert 'header = {"X-A: included", "X-B: own"}\n' in said
    assert 'index = {"b.html"}\n' in said
