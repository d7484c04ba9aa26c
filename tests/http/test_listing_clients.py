"""Programs that read listings as a file system: each name, none twice, nothing from elsewhere."""

import json
import os
import re
import subprocess
import sys

import pytest

import tls
from harness import PATIENCE, wait_until

pytestmark = pytest.mark.once

# Names that a link, a pattern or a shell could misread, in the directory that is listed.
NAMES = [
    "a.csv", "b.csv", "a b.txt", "a+b", "a&b;c=d,e", "it's \"q\"", "<i>", "100%", "%41", "q?x=1", "h#x", "-dash",
    "a:b", "http.csv", "back\\slash", "[x]", "{y}", "$z", "\u00e9\u4e2d", "x" * 200, "sub/c.csv", "sub/deep/d", "a b/e f",
    "http/x", "linked/t",
]
# What a client does with a name that others read as well: wget decodes one twice.
LOST = {"wget": {"%41", "100%"}}


def run(*command, cwd=None, home=None, ok=(0,)):
    env = dict(os.environ, LC_ALL="C.UTF-8", **({"HOME": str(home)} if home else {}))
    done = subprocess.run(list(map(str, command)), timeout=PATIENCE, check=False, cwd=cwd, env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode in ok, (command, (done.stderr + done.stdout)[-3000:].decode(errors="replace"))
    return done


class Data:
    """A server as the guide has it, what is in its directory /data/, and how it is asked for."""

    def __init__(self, serve_conf, site, tmp_path, scheme):
        self.scheme, self.log, self.ca = scheme, tmp_path / "log", tls.PAIRS.for_user(None)
        self.files, self.home = {}, tmp_path / "home"
        self.home.mkdir()
        for name in NAMES:
            path = site / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(name.encode() * 100)
            self.files[name] = path.read_bytes()
        (site / "data" / "link").symlink_to("linked")
        self.files["link/t"] = self.files["linked/t"]
        (site / "other").write_bytes(b"not below /data/")
        top = {"workers": 1, "access_log": self.log, "log_format": "json", "log_fields": ["target", "status"]}
        if scheme == "https":
            top.update(listen=["127.0.0.1:0 tls"], certificate=[self.ca])
        settings = {"root": site, "index": [], "autoindex": True, "digest": True, "etag": "digest", "cors": ["*"]}
        self.server = serve_conf(top, [("data", settings, {})])
        self.url = "%s://localhost:%d/data/" % (scheme, self.server.address[1])

    def check_requests(self, parent=False):
        """Nothing but what is below /data/, and no page in another order; parent: but for "../"."""
        self.server.stop()  # the log is whole then
        logged = [json.loads(line)["target"] for line in self.log.read_text().splitlines()]
        targets = [target for target in logged if not parent or target != "/"]
        assert not [t for t in targets if "sort=" in t or not t.startswith(("/data", "/robots.txt"))], targets


@pytest.fixture(params=["http", "https"])
def data(request, serve_conf, site, tmp_path):
    return Data(serve_conf, site, tmp_path, request.param)


def tree_of(where):
    return {str(p.relative_to(where)): p.read_bytes() for p in where.rglob("*") if p.is_file()}


def mirrored(where, data, pages=False, lost=()):
    """Compares a copy with what is served; pages: the client keeps listings as index.html."""
    found = tree_of(where)
    if pages:
        listings = {name for name in found if os.path.basename(name) == "index.html"}
        dirs = {""} | {os.path.dirname(name) for name in data.files}
        dirs |= {os.path.dirname(d) for d in dirs}
        assert listings == {os.path.join(d, "index.html") for d in dirs}
        found = {name: found[name] for name in found if name not in listings}
    expected = {name: body for name, body in data.files.items() if name not in lost}
    if lost:
        found = {name: found[name] for name in found if name in expected}
    assert sorted(found) == sorted(expected)
    assert found == expected


@pytest.mark.needs("rclone")
def test_rclone(data, tmp_path):
    how = ("--config", "/dev/null", "--http-url", data.url, "--ca-cert", data.ca, "--retries", 1, "--low-level-retries", 1)
    run("rclone", "copy", ":http:", tmp_path / "copy", *how, home=data.home)
    mirrored(tmp_path / "copy", data)
    run("rclone", "check", ":http:", tmp_path / "copy", "--download", *how, home=data.home)
    data.check_requests()


@pytest.mark.needs("lftp")
def test_lftp(data, tmp_path):
    script = "set net:max-retries 1; set ssl:ca-file %s; open %s; " % (data.ca, data.url)
    lines = run("lftp", "-c", script + "cls -l", home=data.home).stdout.decode().splitlines()
    lines = [re.fullmatch(r"(\S+) +(\d*) (\w+ \d+ \d+:\d+) (.*)", line).groups() for line in lines]
    kinds = {name: mode[0] for mode, _, _, name in lines}
    assert {name for name, kind in kinds.items() if kind == "d"} == {"sub/", "a b/", "http/", "link/", "linked/"}
    assert {kind for name, kind in kinds.items() if not name.endswith("/")} == {"-"}
    sizes = {name: size for _, size, _, name in lines}
    assert (sizes["a.csv"], sizes["x" * 200]) == ("500", "20000")
    run("lftp", "-c", script + "mirror . %s" % (tmp_path / "copy"), home=data.home)
    mirrored(tmp_path / "copy", data)
    data.check_requests(parent=True)


@pytest.mark.slow
@pytest.mark.needs("wget")
def test_wget(data, tmp_path):
    """A later visit costs a 304 for each page and each file, once no change is too young for that."""
    how = ("wget", "-S", "-r", "-N", "-np", "-nH", "--ca-certificate", data.ca, "--tries", 1, data.url)

    def statuses():
        said = run(*how, cwd=tmp_path, home=data.home, ok=(0, 8)).stderr.decode(errors="replace")
        mirrored(tmp_path / "data", data, pages=True, lost=LOST["wget"])
        return re.findall(r"^  HTTP/1\.1 (\d+) ", said, re.M)

    first = statuses()
    assert set(first) == {"200", "404"}  # there is no robots.txt
    # Those that it decodes twice it does not find again.
    wait_until(lambda: statuses().count("200") <= len(LOST["wget"]), "a visit that costs a 304 for each page")
    data.check_requests()


@pytest.mark.needs("wget2")
def test_wget2(data, tmp_path):
    """-4: where localhost is ::1 first, version 1.99 does not try the other one after a refusal."""
    run("wget2", "-4", "-q", "-r", "-N", "-np", "-nH", "--ca-certificate", data.ca, "--tries", 1, data.url,
        cwd=tmp_path, home=data.home, ok=(0, 8))
    mirrored(tmp_path / "data", data, pages=True)
    data.check_requests()


@pytest.mark.needs("aria2c")
def test_aria2c(data, tmp_path):
    """Each name of the JSON listing, in parts; a file that was cut is continued."""
    entries = json.loads(run("curl", "-s", "--cacert", data.ca, data.url + "?format=json").stdout)
    urls = [data.url + e["href"] for e in entries if e["type"] == "file"]
    (tmp_path / "urls").write_text("\n".join(urls) + "\n")
    out = tmp_path / "copy"
    out.mkdir()
    (out / "a.csv").write_bytes(data.files["a.csv"][:123])
    run("aria2c", "-q", "-c", "-x", 4, "-k", "1M", "--ca-certificate", data.ca, "-i", tmp_path / "urls", "-d", out,
        home=data.home)
    assert tree_of(out) == {name: body for name, body in data.files.items() if "/" not in name}


def test_curl_continues(data, tmp_path):
    body = data.files["x" * 200]
    (tmp_path / "f").write_bytes(body[:777])
    run("curl", "-s", "-C", "-", "--cacert", data.ca, "-o", tmp_path / "f", data.url + "x" * 200)
    assert (tmp_path / "f").read_bytes() == body


def python(data, script, *args):
    """Runs a script that prints JSON, in a process of its own: these modules start threads."""
    env_script = ("import ssl, sys, json, urllib.parse\n"
                  "url, ca = sys.argv[1:3]\n"
                  "context = ssl.create_default_context(cafile=ca)\n") + script
    return json.loads(run(sys.executable, "-c", env_script, data.url, data.ca, *args, home=data.home).stdout)


FSSPEC = """
import aiohttp, fsspec
async def client(**kw):
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), **kw)
fs = fsspec.filesystem("http", get_client=client)
def names(found):
    return sorted(urllib.parse.unquote(name[len(url):]).replace("./", "") for name in found)
"""


@pytest.mark.slow
@pytest.mark.needs("fsspec", "aiohttp", "requests")
def test_fsspec(data):
    """Its find() once climbed out of the directory until it died of recursion."""
    said = python(data, FSSPEC + """
glob = fs.glob(url + "*.csv")
json.dump({"glob": names(glob), "find": names(fs.find(url)), "deep": names(fs.glob(url + "sub/**")),
           "dirs": sorted(d["name"][len(url):] for d in fs.ls(url) if d["type"] == "directory"),
           "isdir": fs.isdir(url + "sub"), "isfile": fs.isfile(url + "a.csv"),
           "text": fs.cat(glob[0]).decode(), "part": fs.cat_file(glob[0], 2, 7).decode()}, sys.stdout)
""")
    assert said["glob"] == ["a.csv", "b.csv"]
    assert said["find"] == sorted(data.files)
    assert "sub/c.csv" in said["deep"]
    assert said["dirs"] == ["./http/", "a%20b/", "link/", "linked/", "sub/"]
    assert (said["isdir"], said["isfile"]) == (True, True)
    assert said["text"].encode() == data.files["a.csv"]
    assert said["part"].encode() == data.files["a.csv"][2:7]
    data.check_requests()


@pytest.mark.clients
@pytest.mark.needs("zarr", "fsspec", "aiohttp", "requests")
@pytest.mark.parametrize("consolidated", [False, True])
def test_zarr(serve_conf, site, tmp_path, consolidated):
    """Version 2 keeps what it knows of arrays in names that begin with a dot."""
    import zarr

    group = zarr.open_group(str(site / "z"), mode="w")
    group.create_dataset("a/b", data=list(range(1000)), chunks=(100,))
    if consolidated:
        zarr.consolidate_metadata(str(site / "z"))
    settings = {"root": site, "index": [], "autoindex": True,
                "dotfiles": [".zarray", ".zgroup", ".zattrs", ".zmetadata"]}
    server = serve_conf({"workers": 1}, [("data", settings, {})])
    url = "http://localhost:%d/z" % server.address[1]
    how = "zarr.open_consolidated" if consolidated else "zarr.open_group"
    said = run(sys.executable, "-c", "import sys, zarr, fsspec\n"
               "g = %s(fsspec.get_mapper(sys.argv[1]), mode='r')\n"
               "print(int(g['a/b'][:].sum()), g['a/b'].shape)" % how, url, home=tmp_path).stdout
    assert said == b"499500 (1000,)\n"


@pytest.mark.clients
@pytest.mark.needs("osgeo")
def test_gdal(data, tmp_path):
    script = """
from osgeo import gdal
gdal.UseExceptions()
gdal.SetConfigOption("GDAL_HTTP_UNSAFESSL", "YES")  # 3.6 takes a certificate's file for GET alone
found = gdal.ReadDir("/vsicurl/" + url)
f = gdal.VSIFOpenL("/vsicurl/" + url + "a.csv", "rb")
gdal.VSIFSeekL(f, 2, 0)
json.dump({"names": sorted(urllib.parse.unquote(n) for n in found), "part": gdal.VSIFReadL(1, 5, f).decode(),
           "sub": gdal.ReadDir("/vsicurl/" + url + "sub/"),
           "http": gdal.VSIStatL("/vsicurl/" + url + "http.csv").size}, sys.stdout)
"""
    said = python(data, script)
    assert said["names"] == sorted({name.split("/")[0] for name in data.files})
    assert said["part"].encode() == data.files["a.csv"][2:7]
    assert said["sub"] == ["deep", "c.csv"]
    assert said["http"] == len(data.files["http.csv"])
    data.check_requests()


@pytest.mark.clients
@pytest.mark.needs("gdalinfo", "gdal_create")
def test_gdalinfo(serve_conf, site, tmp_path):
    """It looks for files beside the one that it opens, in the listing."""
    run("gdal_create", "-of", "GTiff", "-outsize", 64, 32, "-bands", 1, "-burn", 7, site / "http image.tif")
    (site / "http image.tfw").write_text("2\n0\n0\n-2\n100\n200\n")
    server = serve_conf({"workers": 1, "autoindex": True}, [("data", {"root": site}, {})])
    said = json.loads(run("gdalinfo", "-json", "/vsicurl/http://localhost:%d/http%%20image.tif" % server.address[1],
                          home=tmp_path).stdout)
    assert said["size"] == [64, 32]
