"""nginx' own descriptors: its cache of open files, its rules for links, files of other modules."""

import contextlib
import http.client
import os
import resource
import time

import pytest

import harness
import mounts
import nginx_server
import tree as t
from harness import wait_until
from nginx_server import receive
from test_slowfs import HOT, SIZE, slow  # noqa: F401 pylint: disable=unused-import

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("nginx")]
BOTH = """server { listen unix:@off@; root %(root)s; %(more)s }
server { listen unix:@on@; root %(root)s; pagewise on; %(more)s }"""
CACHE = "open_file_cache max=100; open_file_cache_valid 1h; "
# It asks itself: the origin is a server of the same worker.
PROXY = """proxy_cache_path %(cache)s keys_zone=z:1m use_temp_path=on;
server { listen unix:@origin@; root %(root)s; }
server {
	listen unix:@on@;
	root %(root)s;
	pagewise on;
	location /c/ {
		proxy_pass http://unix:@origin@:/;
		proxy_cache z;
		proxy_cache_key $uri$slice_range;
		proxy_cache_valid 200 206 %(valid)s;
		add_header X-Cache $upstream_cache_status;
		%(more)s
	}
	location /x/ { proxy_pass http://unix:@accel@:/; }
	location /internal/ { internal; alias %(slow)s/; }
}
server {
	listen unix:@accel@;
	location / { add_header X-Accel-Redirect /internal$uri; return 200; }
}"""


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    t.write(root / "f", b"one")
    t.write(root / "large", t.content(8, SIZE))
    t.write(root / "hot.bin", t.content(9, HOT))
    return root


def hot(server):
    assert server.get("on", "/hot.bin").body == t.content(9, HOT)


def same(server, target):
    """The answer of the module, which is that of nginx."""
    on, off = server.get("on", target), server.get("off", target)
    assert (on.status, on.body, on.get("ETag")) == (off.status, off.body, off.get("ETag")), target
    return on


@pytest.mark.parametrize("cache", ["", CACHE, CACHE + "open_file_cache_errors on; "])
@pytest.mark.parametrize("rule", ["on", "if_not_owner", "on from=$document_root",
                                  "if_not_owner from=$document_root", "on from=$document_root/dir"])
def test_links_are_followed_as_nginx_follows_them(nginx, tmp_path, root, rule, cache):
    (root / "dir").mkdir()
    t.write(root / "dir" / "f", b"inner")
    os.symlink("f", root / "link")
    os.symlink("dir", root / "linked")
    os.symlink("link", root / "dir" / "dangling")
    os.symlink("../f", root / "dir" / "up")
    os.symlink("f", root / "theirs")
    if os.geteuid() == 0:
        os.lchown(root / "theirs", 12345, 12345)
    os.symlink("root", tmp_path / "current")
    for where in (root, tmp_path / "current"):
        server = nginx(BOTH % {"root": where, "more": cache + "disable_symlinks %s;" % rule})
        answers = [same(server, target).status for _ in range(2) for target in (
            "/f", "/link", "/linked/f", "/linked", "/dir", "/dir/f", "/dir/dangling", "/dir/up",
            "/theirs", "/none", "/dir/none/f", "/linked/none")]
        assert 200 in answers or where != root
        assert {403, 404} <= set(answers) or where != root
        server.stop()


@pytest.mark.parametrize("more", ["", "open_file_cache max=30;", "gzip_static always;"])
def test_many_files_leave_descriptors_to_connections(nginx, root, more):
    for n in range(300):
        t.write(root / ("n%d" % n), b"%d" % n)
        t.write(root / ("n%d.gz" % n), b"%d" % n)
    server = nginx(BOTH % {"root": root, "more": more}, main="worker_rlimit_nofile 160;",
                   connections=32)
    for n in range(300):
        answer = server.get("on", "/n%d" % n)
        assert (answer.status, answer.body) == (200, b"%d" % n)
    (worker,) = server.workers()
    assert len(server.descriptors(worker)) < 150


def asked(sock, target, *fields, method="GET"):
    """What tells two answers apart, on a connection that stays."""
    sock.sendall(nginx_server.request(target, method, fields, close=False))
    answer = nginx_server.answer(sock, method)
    boundary = (answer.get("Content-Type") or "").rpartition("boundary=")[2].encode()
    body = answer.body.replace(boundary, b"") if boundary else answer.body
    return answer.status, answer.get("ETag"), answer.get("Content-Length"), body


def without_descriptors(server, sock, target):
    """Until the module has closed what it had open of it, a second after the last use."""
    (worker,) = server.workers()

    def refused():
        time.sleep(1.3)
        server.no_descriptor_is_left(worker)
        sock.sendall(nginx_server.request(target, close=False))
        with contextlib.suppress(http.client.HTTPException, ConnectionError):
            nginx_server.answer(sock)
        return "no descriptor is left" in server.output()
    wait_until(refused, "a refusal")


@pytest.mark.parametrize("more", ["", "sendfile off;", "gzip on; gzip_types *;"])
def test_without_a_free_descriptor_a_file_is_503(nginx, root, more):
    """nginx has it open, and could wait for its disk."""
    server = nginx(BOTH % {"root": root, "more": CACHE + more})
    with server.connect("on") as on, server.connect("off") as off:
        for target in ("/large", "/hot.bin"):
            assert asked(on, target) == asked(off, target)
        without_descriptors(server, on, "/hot.bin")
        for target, *fields in (("/large",), ("/hot.bin",), ("/large", "Range: bytes=5-70000")):
            assert asked(on, target, *fields)[0] == 503, target
            assert asked(off, target, *fields)[0] in (200, 206), target
        (worker,) = server.workers()
        most = resource.prlimit(worker, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (most, most))
        assert asked(on, "/large") == asked(off, "/large")


def test_without_a_free_descriptor_a_hung_disk_holds_up_nobody_else(slow, nginx, root):  # noqa: F811
    """gzip_static opened the file."""
    slow.add("a.gz", t.content(4, SIZE))
    server = nginx("server { listen unix:@on@; root %s; pagewise on; location = /ok { return 200 ok; } "
                   "location /slow/ { alias %s/; gzip_static always; %s } }" % (root, slow.dir, CACHE))
    with server.connect("on") as on, server.connect("on") as other:
        assert asked(on, "/slow/a")[0] == 200
        assert asked(other, "/ok")[0] == 200
        slow.hang("read", "a.gz")
        mounts.drop(os.path.join(slow.dir, "a.gz"))
        without_descriptors(server, on, "/slow/a")
        assert asked(other, "/ok")[0] == 200
        assert slow.held("read") == 0


def test_a_mount_that_could_not_be_opened_once_is_opened_again(nginx, root):
    server = nginx(BOTH % {"root": root, "more": ""})
    with server.connect("on") as first:
        (worker,) = server.workers()
        wait_until(server.connections, "the connection to be accepted")
        server.no_descriptor_is_left(worker)
        assert asked(first, "/hot.bin")[0] in (500, 503)
        most = resource.prlimit(worker, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (most, most))
    with server.connect("on") as on, server.connect("off") as off:
        assert asked(on, "/hot.bin") == asked(off, "/hot.bin")


@pytest.mark.parametrize("more", ["", CACHE])
def test_a_module_may_send_several_files_in_a_response(slow, nginx, root, more):  # noqa: F811
    """On FUSE a disk thread examines each descriptor, so the second waits when the first was sent."""
    if not os.access(nginx_server.SEVERAL, os.R_OK):
        pytest.skip("no " + nginx_server.SEVERAL)
    files = [(slow.dir + "/cold.bin", t.content(1, SIZE)), (slow.dir + "/cold2.bin", t.content(2, SIZE)),
             (root / "large", t.content(8, SIZE)), (slow.dir + "/cold.bin", t.content(1, SIZE)),
             (root / "hot.bin", t.content(9, HOT)), (root / "f", b"one")]
    server = nginx("server { listen unix:@on@; pagewise on; %s several %s; }" %
                   (more, " ".join(str(path) for path, _ in files)),
                   main="load_module %s;" % nginx_server.SEVERAL)
    for _ in range(2):
        assert server.get("on").body == b"".join(content for _, content in files)


def test_a_replaced_file_is_noticed_when_the_cache_of_nginx_says(nginx, root):
    server = nginx(BOTH % {"root": root, "more": CACHE})
    assert same(server, "/f").body == b"one"
    t.write(root / "other", b"two")
    os.rename(root / "other", root / "f")
    for _ in range(3):
        assert same(server, "/f").body == b"one"
        time.sleep(0.6)
    os.unlink(root / "f")
    assert same(server, "/f").body == b"one"
    server.reload()
    wait_until(lambda: server.get("on", "/f").status == 404, "the new worker")


def test_a_replaced_file_is_noticed_after_open_file_cache_valid(nginx, root):
    server = nginx(BOTH % {"root": root, "more": "open_file_cache max=9; open_file_cache_valid 1s;"})
    assert same(server, "/f").body == b"one"
    t.write(root / "other", b"two")
    os.rename(root / "other", root / "f")
    wait_until(lambda: server.get("on", "/f").body == b"two", "the new file")


def test_an_error_is_cached_as_nginx_caches_it(nginx, root):
    for more, status in ((CACHE, 200), (CACHE + "open_file_cache_errors on;", 404)):
        server = nginx(BOTH % {"root": root, "more": more})
        assert same(server, "/new").status == 404
        t.write(root / "new", b"new")
        # The library, too, remembers for a second that there is no such file.
        wait_until(lambda: server.get("on", "/new").status == status, "what nginx answers")
        assert same(server, "/new").status == status
        os.unlink(root / "new")


@pytest.mark.parametrize("size", [8, 300000])
def test_a_change_in_place_is_never_sent_under_an_old_validator(nginx, root, size):
    server = nginx(BOTH % {"root": root, "more": CACHE})
    seen = {}
    for version in range(8):
        data = b"%d" % version * (size + version % 3)
        with open(root / "v", "r+b" if version else "wb") as f:
            f.write(data)
            f.truncate()
        os.utime(root / "v", (t.MTIME + version, t.MTIME + version))
        for _ in range(3):
            answer = server.get("on", "/v")
            assert (answer.status, answer.body) == (200, data)
            assert seen.setdefault(answer.get("ETag"), data) == data


def test_a_removed_file_is_closed_soon_after_nginx_closes_it(nginx, root):
    server = nginx(BOTH % {"root": root, "more":
                           "open_file_cache max=9 inactive=1s; open_file_cache_valid 1s;"})
    (worker,) = server.workers()
    assert server.get("on", "/f").body == b"one"
    os.unlink(root / "f")

    def closed():
        server.get("on", "/hot.bin")  # nginx expires old files when it opens others
        server.get("on", "/none")
        return not [d for d in server.descriptors(worker) if "(deleted)" in d]
    wait_until(closed, "the file to be closed")


@pytest.mark.parametrize("op", ["lookup", "open", "read"])
@pytest.mark.parametrize("more", [CACHE, "disable_symlinks on;", CACHE + "disable_symlinks on;"])
def test_a_hung_disk_holds_up_nobody_else(slow, nginx, root, op, more):  # noqa: F811
    server = nginx("server { listen unix:@on@; root %s; pagewise on; %s location /slow/ "
                   "{ alias %s/; } }" % (root, more, slow.dir))
    slow.hang(op, "cold.bin")
    s = server.send("on", "/slow/cold.bin")
    slow.wait_held(op)
    for _ in range(3):
        hot(server)
    slow.release()
    assert receive(s).body == t.content(1, SIZE)


def test_large_files_with_directio_do_not_stay_in_memory(nginx, root):
    server = nginx(BOTH % {"root": root, "more": "directio 1m;"})
    for name, size, stays in (("large", SIZE, False), ("hot.bin", HOT, True)):
        path = root / name
        mounts.drop(path)
        assert len(server.get("on", "/" + name).body) == size
        if stays:
            assert mounts.resident(path) > 0
        else:
            wait_until(lambda p=path: mounts.resident(p) == 0, "its pages to be dropped")


@pytest.fixture
def proxy(nginx, root, tmp_path):
    def start(slow_dir="/none", valid="1h", more="", cache=tmp_path / "cache"):
        return nginx(PROXY % {"root": root, "slow": slow_dir, "valid": valid, "more": more,
                              "cache": cache})
    return start


def cached(directory, size=0):
    """The files of a cache with at least this size."""
    paths = [os.path.join(directory, name) for name in os.listdir(directory)]
    return [p for p in paths if os.path.getsize(p) > size]


@pytest.mark.parametrize("more", ["", "aio threads;", "sendfile off;", "gzip on; gzip_types *;",
                                  "slice 1m; proxy_set_header Range $slice_range;",
                                  "pagewise_cache drop;", "open_file_cache max=10;"])
def test_a_cached_response_comes_whole_after_it_was_evicted(proxy, root, tmp_path, more):
    server = proxy(more=more)
    for n in range(3):
        answer = server.get("on", "/c/large")
        assert (answer.body, answer.get("X-Cache")) == (t.content(8, SIZE), "HIT" if n else "MISS")
        part = server.get("on", "/c/large", fields=("Range: bytes=100000-2500000",))
        assert part.body == t.content(8, SIZE)[100000:2500001]
        wait_until(lambda: cached(tmp_path / "cache"), "a file of the cache")
        for path in cached(tmp_path / "cache"):
            mounts.drop(path)
    lines = [line for line in server.log().splitlines() if "/c/large" in line]
    assert not lines[-1].endswith(" -"), "the module has sent it"


def test_a_cached_response_on_a_hung_disk_holds_up_nobody_else(slow, proxy):  # noqa: F811
    server = proxy(cache=slow.source)
    assert server.get("on", "/c/large").get("X-Cache") == "MISS"
    wait_until(lambda: server.get("on", "/c/large").get("X-Cache") == "HIT", "a cached response")
    server.stop()
    (path,) = [p for p in cached(slow.source, SIZE) if "." not in os.path.basename(p)]
    server = proxy(cache=slow.dir)
    slow.hang("read", os.path.basename(path), 2 * t.MIB)
    with server.send("on", "/c/large") as s:
        data = b""
        s.settimeout(0.05)
        while slow.held("read") == 0:
            with contextlib.suppress(TimeoutError):
                data += s.recv(65536)
        for _ in range(3):
            hot(server)
        slow.release()
        s.settimeout(harness.PATIENCE)
        with s.makefile("rb") as f:
            data += f.read()
    assert b"X-Cache: HIT" in data[:1000]
    assert data.endswith(t.content(8, SIZE))


def test_a_cached_response_that_is_confirmed_meanwhile_comes_whole(proxy, root):
    """nginx then writes a new header into the file that others are being sent."""
    server = proxy(valid="1s", more="proxy_cache_revalidate on;")
    server.get("on", "/c/large")
    s = server.connect("on", rcvbuf=4096)
    s.sendall(nginx_server.request("/c/large"))
    first = s.recv(1000)
    wait_until(lambda: server.get("on", "/c/large").get("X-Cache") == "REVALIDATED", "that")
    with s, s.makefile("rb") as f:
        assert (first + f.read()).endswith(t.content(8, SIZE))


def test_an_accelerated_redirect_to_a_hung_disk_holds_up_nobody_else(slow, proxy):  # noqa: F811
    server = proxy(slow_dir=slow.dir)
    for op, name, n in (("lookup", "cold.bin", 1), ("open", "cold2.bin", 2)):
        slow.hang(op, name)
        s = server.send("on", "/x/" + name)
        slow.wait_held(op)
        hot(server)
        slow.release()
        assert receive(s).body == t.content(n, SIZE)


def test_a_compressed_file_on_a_hung_disk_holds_up_nobody_else(slow, nginx, root):  # noqa: F811
    """gzip_static opens it, and the library reads it."""
    slow.add("a.gz", t.content(4, SIZE))
    server = nginx("server { listen unix:@on@; root %s; pagewise on; location /slow/ { alias %s/; "
                   "gzip_static always; } }" % (root, slow.dir))
    slow.hang("read", "a.gz")
    s = server.send("on", "/slow/a")
    slow.wait_held("read")
    for _ in range(3):
        hot(server)
    slow.release()
    assert receive(s).body == t.content(4, SIZE)


def test_clients_that_leave_while_a_descriptor_is_examined_leave_nothing(slow, nginx, root):  # noqa: F811
    slow.add("a.gz", t.content(4, SIZE))
    server = nginx("server { listen unix:@on@; root %s; pagewise on; location /slow/ { alias %s/; "
                   "gzip_static always; } }" % (root, slow.dir))
    slow.hang("read", "a.gz")
    held = [server.send("on", "/slow/a") for _ in range(5)]
    slow.wait_held("read")
    for s in held:
        s.close()
    hot(server)
    slow.release()
    assert server.get("on", "/slow/a").body == t.content(4, SIZE)
