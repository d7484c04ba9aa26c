"""pagewise assign: the node that a real HAProxy chooses, and what moves with one more."""

import random
import re
import socket
import subprocess

import pytest

import harness
from harness import Finished, wait_until


@pytest.fixture
def files(tmp_path):
    rng = random.Random(19)
    names = ["d%d/%s%d/f%d.bin" % (rng.randrange(40), rng.choice(["x", "é", "a b", "~(c)"]), rng.randrange(5), i)
             for i in range(300)] + ["top%d" % i for i in range(20)]
    for name in names:
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 100)
    (tmp_path / "tree" / ".hidden").mkdir()
    (tmp_path / "tree" / ".hidden" / "f").write_bytes(b"x")
    return tmp_path / "tree"


def run(*args, code=0):
    done = Finished("assign", *args)
    assert done.code == code, (done.code, done.out, done.err)
    return done


def assigned(*args):
    return {path: nodes for *nodes, path in (line.split("\t") for line in run("-q", *args).out.splitlines())}


RINGS = ("2.6", "3.0")


def haproxy_version():
    said = subprocess.run(["haproxy", "-v"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return tuple(int(n) for n in re.match(r"HAProxy version (\d+)\.(\d+)", said).groups())


def rings_of(version):
    """3.0 to 3.2 had theirs until they were mended."""
    return RINGS if (3, 0) <= version <= (3, 2) else RINGS[:1]


class Haproxy:
    """Answers 302 to the name of the server that it chooses."""

    def __init__(self, directory, servers, uri):
        self.path = str(directory / "front")
        conf = directory / "haproxy.cfg"
        conf.write_text("""
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 5s
frontend f
    bind unix@%s
    default_backend nodes
backend nodes
    balance uri %s
    hash-type consistent sdbm avalanche
%s
""" % (self.path, uri, "".join("    server %s 127.0.0.1:1 redir http://%s %s\n" % (name, name, more)
                               for name, more in servers)))
        self.log = open(directory / "haproxy.log", "wb")
        self.process = subprocess.Popen(["haproxy", "-db", "-f", str(conf)], stdout=self.log, stderr=self.log)
        wait_until(self.answers, "haproxy")

    def answers(self):
        try:
            return self.chosen(["/"])
        except OSError:
            return None

    def chosen(self, paths):
        found = {}
        for path in paths:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(harness.PATIENCE)
                s.connect(self.path)
                s.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path.encode())
                with s.makefile("rb") as f:
                    head = f.read().decode().lower()
            assert head.startswith("http/1.1 302 "), head
            found[path] = [head.partition("\r\nlocation: http://")[2].partition("/")[0]]
        return found

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.mark.needs("haproxy")
@pytest.mark.parametrize("servers, nodes", [
    ([("a", ""), ("b", ""), ("c", ""), ("d", "")], "a,b,c,d"),
    ([("a", "weight 100"), ("b", "weight 256"), ("c", "id 9 weight 70"), ("d", "id 1048575 weight 90")], "a:100,b:256,c=9:70,d=1048575:90"),
])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_node_is_the_one_that_haproxy_chooses(files, tmp_path, servers, nodes, depth):
    rings = {ring: assigned("-d", str(depth), "--ring", ring, nodes, str(files)) for ring in RINGS}
    assert assigned("-d", str(depth), nodes, str(files)) == rings["2.6"]
    assert all(len({node for node, in told.values()}) == 4 for told in rings.values())
    haproxy = Haproxy(tmp_path, servers, "path-only" + (" depth %d" % depth if depth else ""))
    try:
        told = haproxy.chosen(rings["2.6"])
        (ring,) = (ring for ring in RINGS if rings[ring] == told)
        assert ring in rings_of(haproxy_version())
        if depth == 1:
            deeper = [path + "/any/thing?x=1" for path in told if path.startswith("/d")]
            assert [x for x in haproxy.chosen(deeper).values()] == [told[p.partition("/any")[0]] for p in deeper]
    finally:
        haproxy.end()


def test_ring_of_haproxy_3_0(tmp_path):
    """As 3.0.11 of Debian 13 has chosen, with "weight 3" of b and "id 9" of c."""
    for n in range(12):
        (tmp_path / ("f%d" % (n + 1))).write_bytes(b"x")
    told = assigned("-d", "0", "--ring", "3.0", "a,b:3,c=9", str(tmp_path))
    assert "".join(told["/f%d" % (n + 1)][0] for n in range(12)) == "abbcbbbccccb"


@pytest.mark.slow
def test_paths_are_those_of_the_depth_and_encoded_as_in_links(files):
    told = assigned("a", str(files) + "//")
    assert set(told) == {"/" + p.name for p in files.iterdir() if p.name != ".hidden"}
    told = assigned("-d", "0", "a", str(files))
    assert len(told) == 320 and not any(" " in p or "é" in p for p in told)
    assert "/.hidden" in assigned("--dotfiles", "a", str(files))


@pytest.mark.slow
def test_only_paths_of_the_new_node_move(files):
    before = assigned("-d", "0", "a,b,c,d", str(files))
    after = assigned("-d", "0", "a,b,c,d,e", str(files))
    moved = assigned("-d", "0", "--add", "e", "a,b,c,d", str(files))
    assert moved == {p: [before[p][0], "e"] for p in before if before[p] != after[p]}
    assert 20 <= len(moved) <= 120  # of 320, a fifth on average


def test_sums_are_printed(files):
    done = run("--add", "c", "a,b", str(files))
    lines = done.err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["a", "b", "c", "moves"]
    counts = [int(line.split()[3]) for line in lines]
    assert sum(counts[:3]) == 320 and counts[3] == counts[2] > 0


@pytest.mark.parametrize("args, code, said", [
    (("a",), 2, "a list of nodes and one directory are needed"),
    (("a", "/", "/"), 2, "a list of nodes and one directory are needed"),
    (("a,,b", "/"), 2, "a node has no name: write NAME[=ID][:WEIGHT]"),
    (("a:0", "/"), 2, 'a: the weight "0" is not a number from 1 to 256'),
    (("a:257", "/"), 2, 'a: the weight "257" is not a number from 1 to 256'),
    (("a=x", "/"), 2, 'a: the id "x" is not a number'),
    (("a,a", "/"), 2, "a is listed twice"),
    (("a=2,b", "/"), 2, "a and b both have the id 2: write each node as NAME=ID"),
    (("--add", "a", "a", "/"), 2, "a is listed twice"),
    (("-d", "101", "a", "/"), 2, '"101" is not a number from 0 to 100'),
    (("--ring", "2.8", "a", "/"), 2, '--ring: "2.8" is not 2.6 or 3.0'),
    (("-j", "2", "a", "/"), 2, "unknown option -j"),
    (("a", "/proc/nothing"), 1, "/proc/nothing: No such file or directory"),
])
def test_command_line_that_is_wrong(args, code, said):
    done = Finished("assign", *args)
    assert done.code == code and said in done.err and done.out == "", (done.code, done.err)
    assert done.err.startswith("pagewise assign: ")
