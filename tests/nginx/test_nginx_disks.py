"""A disk that is slow, hangs or fails holds up who asks for its files, and nobody else."""

import contextlib
import errno
import os
import signal
import socket
import subprocess
import time

import pytest

import harness
import mounts
import nginx_server  # has the path of the next
import tree as t
from harness import wait_until
from nginx_server import receive
from ports import free_port  # noqa: F401 pylint: disable=unused-import
from test_slowfs import HOT, SIZE, slow  # noqa: F401 pylint: disable=unused-import

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("nginx")]
SERVER = """server {
	listen unix:@on@;
	root %(fast)s;
	pagewise on;
	pagewise_index index.html;
	location /slow/ { alias %(slow)s/; %(more)s }
	location /short/ { alias %(slow)s/; send_timeout 1s; }
}"""


@pytest.fixture
def fast(tmp_path):
    root = tmp_path / "fast"
    root.mkdir()
    t.write(root / "hot.bin", t.content(9, HOT))
    t.write(root / "large.bin", t.content(8, SIZE))
    return root


@pytest.fixture
def serve(slow, fast, nginx):  # noqa: F811
    def start(more="", main="", **kw):
        text = SERVER % {"fast": fast, "slow": slow.dir, "more": more}
        return nginx(main + text, **kw)
    return start


@pytest.fixture
def curl():
    with contextlib.ExitStack() as undo:
        def start(server, target):
            child = subprocess.Popen(
                ["curl", "-s", "--http2-prior-knowledge", "--unix-socket", server.path("h2"),
                 "http://localhost" + target], stdout=subprocess.PIPE)
            undo.enter_context(child)
            undo.callback(child.kill)
            return child
        yield start


def hot(server):
    assert server.get("on", "/hot.bin").body == t.content(9, HOT)


def worker(server):
    (pid,) = server.workers()
    return pid


@pytest.mark.parametrize("op", ["lookup", "open", "read"])
def test_a_hung_disk_holds_up_nobody_else(serve, slow, op):  # noqa: F811
    server = serve()
    slow.hang(op, "cold.bin")
    s = server.send("on", "/slow/cold.bin")
    slow.wait_held(op)
    for _ in range(3):
        hot(server)
        # The kernel lets one lookup of a directory at a time.
        if op != "lookup":
            assert server.get("on", "/slow/hot.bin").body == t.content(3, HOT)
    slow.release()
    assert receive(s).body == t.content(1, SIZE)


def test_many_hung_requests_hold_up_nobody_else(serve, slow):  # noqa: F811
    server = serve()
    slow.hang("read", "cold")
    held = [server.send("on", "/slow/cold%s.bin" % n) for n in ["", "2"] * 20]
    slow.wait_held("read")
    hot(server)
    slow.release()
    for n, s in zip([1, 2] * 20, held):
        assert receive(s).body == t.content(n, SIZE)


def connection(server, port, address, pid):
    """One from this address that this worker has accepted: the kernel chooses the worker."""
    for _ in range(200):
        s = socket.create_connection(("127.0.0.1", port), harness.PATIENCE, (address, 0))
        s.sendall(nginx_server.request("/hot.bin", close=False))
        if nginx_server.answer(s).get("X-Worker") == str(pid):
            return s
        s.close()
    raise AssertionError("worker %d accepts nothing" % pid)


def test_a_client_of_one_worker_leaves_the_disk_to_a_client_of_another(slow, fast, nginx, free_port):  # noqa: F811
    """Beside others, wherever they are, only one thread opens what is more than four files of a client."""
    port = free_port()
    for n in range(20):
        slow.add("many%d" % n, b"")
    server = nginx("server { listen 127.0.0.1:%d reuseport; root %s; pagewise on; add_header X-Worker $pid; "
                   "location /slow/ { alias %s/; } }" % (port, fast, slow.dir), workers=2)
    wait_until(lambda: len(server.workers()) == 2, "both workers")
    one, other = server.workers()
    with contextlib.ExitStack() as undo:
        def ask(address, pid, name):
            s = undo.enter_context(connection(server, port, address, pid))
            s.sendall(nginx_server.request("/slow/" + name))
            return s
        # A read of this disk delays others.
        slow.hang("open", "cold.bin")
        s = ask("127.0.3.1", one, "cold.bin")
        slow.wait_held("open")
        time.sleep(0.05)
        slow.release()
        receive(s)
        slow.hang("open", "many")
        held = [ask("127.0.3.1", one, "many%d" % n) for n in range(4)]
        slow.wait_held("open", 4)
        held += [ask("127.0.3.1", one, "many%d" % n) for n in range(4, 20)]
        slow.wait_held("open", 5)
        # Its first four have ended for more than a second, when the other worker's client asks.
        slow.hang("open", "many", verb="swap")
        slow.wait_held("open", 1)
        time.sleep(1.2)
        held.append(ask("127.0.3.2", other, "many0"))
        slow.wait_held("open", 2)
        slow.hang("open", "many", verb="swap")
        slow.wait_held("open", 1)
        for _ in range(20):
            assert slow.held("open") == 1
            time.sleep(0.01)
        slow.release()
        assert [receive(s).status for s in held] == [200] * len(held)


def test_a_hung_index_holds_up_nobody_else(serve, slow):  # noqa: F811
    server = serve()
    slow.hang("lookup", "index.html")
    s = server.send("on", "/slow/")
    slow.wait_held("lookup")
    hot(server)
    slow.release()
    assert receive(s).body == b"<p>slow"


@pytest.mark.parametrize("to", ["/hot.bin", "/other"])
def test_the_log_has_the_wait_before_a_redirect(serve, slow, to):  # noqa: F811
    server = serve("error_page 404 =200 %s; } location = /other { return 200 other;" % to)
    slow.hang("lookup", "none")
    s = server.send("on", "/slow/none")
    slow.wait_held("lookup")
    time.sleep(0.3)
    slow.release()
    assert receive(s).status == 200
    wait_until(lambda: "/slow/none" in server.log(), "a line")
    (line,) = (line for line in server.log().splitlines() if "/slow/none" in line)
    assert line.split()[-1] >= "0.300", line


def test_a_disk_that_does_not_answer_in_time_is_503_before_the_header(serve, slow):  # noqa: F811
    server = serve()
    for n, (op, name) in enumerate((("open", "cold.bin"), ("read", "cold2.bin")), 1):
        slow.hang(op, name)
        assert server.get("on", "/short/" + name).status == 503
        hot(server)
        slow.release()
        assert server.get("on", "/slow/" + name).body == t.content(n, SIZE)
    assert "did not respond in time" in server.output()


def test_an_error_of_the_disk_is_500_before_the_header_and_an_end_after_it(serve, slow):  # noqa: F811
    server = serve()
    slow.fail("read", errno.EIO, "cold.bin")
    assert server.get("on", "/slow/cold.bin").status == 500
    slow.release()
    slow.fail("read", errno.EIO, "cold2.bin", 2 * t.MIB)
    s = server.send("on", "/slow/cold2.bin")
    data = everything(s)
    assert data.startswith(b"HTTP/1.1 200") and len(data) < SIZE
    hot(server)
    slow.release()


def everything(sock):
    with sock, sock.makefile("rb") as f:
        return f.read()


@pytest.mark.parametrize("op", ["lookup", "open", "read"])
def test_a_client_that_leaves_leaves_nothing_behind(serve, slow, op):  # noqa: F811
    server = serve()
    hot(server)
    server.get("on", "/slow/hot.bin")
    before = len(server.descriptors(worker(server)))
    slow.hang(op, "cold.bin")
    held = [server.send("on", "/slow/cold.bin") for _ in range(20)]
    slow.wait_held(op)
    for s in held:
        s.close()
    wait_until(lambda: server.output().count("prematurely closed connection") == 20,
               "all to be noticed while the disk hangs")
    assert len([d for d in server.descriptors(worker(server)) if d.startswith("socket:")]) < 20
    slow.release()
    assert server.get("on", "/slow/cold.bin").body == t.content(1, SIZE)
    # The cache of open files may have one more.
    wait_until(lambda: len(server.descriptors(worker(server))) <= before + 1, "descriptors")


def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(serve, slow):  # noqa: F811
    server = serve()
    slow.hang("read", "cold.bin", 2 * t.MIB)
    s = server.send("on", "/slow/cold.bin")
    s.settimeout(0.05)
    while slow.held("read") == 0:
        with contextlib.suppress(TimeoutError):
            assert s.recv(65536) != b""
    s.close()
    slow.release()
    hot(server)
    assert server.get("on", "/slow/cold.bin").body == t.content(1, SIZE)


def test_a_reload_waits_for_a_slow_disk(serve, slow):  # noqa: F811
    server = serve()
    slow.hang("open", "cold.bin")
    first = server.send("on", "/slow/cold.bin")
    slow.wait_held("open")
    slow.hang("read", "cold2.bin")
    second = server.send("on", "/slow/cold2.bin")
    slow.wait_held("read")
    old = worker(server)
    server.reload()
    wait_until(lambda: server.workers().get(old), "the old worker to be told")
    hot(server)
    slow.release()
    assert receive(first).body == t.content(1, SIZE)
    assert receive(second).body == t.content(2, SIZE)
    wait_until(lambda: old not in server.workers(), "the old worker's end")
    assert "open socket" not in server.output()


def test_a_reload_starts_while_a_disk_hangs(serve, slow):  # noqa: F811
    """New workers open nothing that could hang before they serve."""
    server = serve()
    for op in ("lookup", "open", "read"):
        slow.hang(op)
    held = server.send("on", "/slow/cold.bin")
    slow.wait_held("lookup")
    server.reload()
    hot(server)
    slow.release()
    assert receive(held).body == t.content(1, SIZE)


def test_an_end_at_once_does_not_wait_for_a_disk(serve, slow):  # noqa: F811
    server = serve()
    slow.hang("read", "cold.bin")
    s = server.send("on", "/slow/cold.bin")
    slow.wait_held("read")
    server.signal(signal.SIGTERM)
    with contextlib.suppress(ConnectionError):
        assert everything(s) == b""
    # A thread that is in the kernel for good ends when its disk does.
    slow.release()
    server.wait()


@pytest.fixture
def below(slow, fast):  # noqa: F811
    """A mount point on the slow disk, which a worker cannot open without it."""
    where = os.path.join(slow.dir, "dir")
    if subprocess.run(["mount", "--bind", fast, where], check=False, capture_output=True).returncode != 0:
        pytest.skip("cannot mount here")
    yield
    slow.release()
    mounts.unmount(where)


@pytest.mark.usefixtures("below")
@pytest.mark.parametrize("slow", [(0, "fresh")], indirect=True)
def test_a_thread_that_opens_a_mount_outlives_the_pools_of_its_worker(serve, slow, tmp_path):  # noqa: F811
    """It opens the mount point twice: for the second time when nginx has freed the worker's configuration."""
    if not os.access(nginx_server.EVICT, os.R_OK):
        pytest.skip("no " + nginx_server.EVICT)
    linger, exits = tmp_path / "worker", tmp_path / "worker.exits"
    linger.touch()
    preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), nginx_server.EVICT]))
    server = serve(env={"LD_PRELOAD": preload, "LINGER": linger, "MALLOC_PERTURB_": "165"})
    slow.hang("lookup", "dir")
    held = server.send("on", "/slow/dir/hot.bin")
    slow.wait_held("lookup")
    os.kill(worker(server), signal.SIGTERM)
    wait_until(exits.exists, "the exit of the worker")
    slow.hang("lookup", "dir", verb="swap")
    slow.wait_held("lookup")
    slow.release()
    exits.unlink()
    assert everything(held) == b""
    hot(server)


def test_an_upgrade_of_the_program_keeps_what_is_under_way(serve, slow):  # noqa: F811
    server = serve(daemon="on")
    slow.hang("read", "cold.bin")
    s = server.send("on", "/slow/cold.bin")
    slow.wait_held("read")
    old = server.pid
    server.signal(signal.SIGUSR2)
    wait_until(lambda: os.path.exists(server.path("pid.oldbin")) and
               os.path.exists(server.path("pid")), "the new program: " +
               server.output())
    wait_until(lambda: server.pid_file("pid") not in (None, old), "its pid")
    server.signal(signal.SIGQUIT)
    wait_until(lambda: True in server.workers().values(), "the old worker to be told")
    hot(server)
    slow.release()
    assert receive(s).body == t.content(1, SIZE)
    server.wait()
    server.pid = server.pid_file("pid")
    hot(server)
    assert "open socket" not in server.output()


@contextlib.contextmanager
def full_queue(server, slow, targets):  # noqa: F811
    """A thread and 4096 places."""
    held = []
    try:
        for target in targets:
            held.append(server.send("on", target))
        wait_until(lambda: "queue of its disk is full" in server.output(), "a refusal")
        hot(server)
        yield held
    finally:
        slow.release()
        for s in held:
            s.close()


def test_a_full_queue_is_503(serve, slow):  # noqa: F811
    """Of other files, since one file is looked up once."""
    server = serve(main="pagewise_threads 1;", connections=9000)
    slow.hang("lookup", "many")
    with full_queue(server, slow, ["/slow/many/%d" % n for n in range(4096 + 200)]) as held:
        assert receive(held[-1]).status == 503


def test_a_full_queue_ends_the_response_of_another_module(serve, slow):  # noqa: F811
    """nginx has the file open, and would wait for its disk."""
    names = ["a%d" % n for n in range(4096 + 200)]
    for name in names:
        slow.add(name + ".gz", t.content(4, 1000))
    server = serve(main="pagewise_threads 1;", more="gzip_static always;", connections=9000)
    slow.hang("read", "a")
    with full_queue(server, slow, ["/slow/" + name for name in names]) as held:
        assert t.content(4, 100) not in everything(held[-1])


def test_a_truncated_file_ends_the_connection_and_is_never_padded(serve, fast):
    server = serve(more="")
    path = fast / "large.bin"
    s = server.connect("on", rcvbuf=4096)
    s.sendall(nginx_server.request("/large.bin"))
    s.recv(1000)
    os.truncate(path, 100)
    assert len(everything(s)) < SIZE
    t.write(path, t.content(7, SIZE))
    wait_until(lambda: server.get("on", "/large.bin").body == t.content(7, SIZE), "the new file")


@pytest.mark.parametrize("size", [8, 300000])
def test_a_change_in_place_is_noticed_at_once(nginx, tmp_path, size):
    """Each answer has the entity tag, the length and the bytes of one version."""
    server = nginx("server { listen unix:@on@; root %s; pagewise on; }" % tmp_path)
    path, seen = tmp_path / "f", {}
    for version in range(8):
        data = b"%d" % version * (size + version % 3)
        with open(path, "r+b" if version else "wb") as f:
            f.write(data)
            f.truncate()
        os.utime(path, (t.MTIME + version, t.MTIME + version))
        for _ in range(3):
            answer = server.get("on", "/f")
            assert (answer.status, answer.body) == (200, data)
            assert seen.setdefault(answer.get("ETag"), data) == data


def test_a_file_that_grows_meanwhile_ends_the_connection(serve, fast):
    server = serve(more="")
    path = fast / "large.bin"
    s = server.connect("on", rcvbuf=4096)
    s.sendall(nginx_server.request("/large.bin"))
    s.recv(1000)
    with open(path, "ab") as f:
        f.write(b"more")
    assert len(everything(s)) < SIZE
    t.write(path, t.content(7, SIZE))
    wait_until(lambda: server.get("on", "/large.bin").body == t.content(7, SIZE), "the new file")


def test_a_replaced_file_is_sent_to_its_end(serve, fast):
    server = serve()
    path = fast / "large.bin"
    s = server.connect("on", rcvbuf=4096)
    s.sendall(nginx_server.request("/large.bin"))
    first = s.recv(1000)
    t.write(fast / "other", t.content(7, SIZE))
    os.rename(fast / "other", path)
    assert (first + everything(s)).endswith(t.content(8, SIZE))
    wait_until(lambda: server.get("on", "/large.bin").body == t.content(7, SIZE), "the new file")


def test_a_link_of_the_root_that_changes_is_followed(nginx, tmp_path):
    """As deployments do it: current -> releases/2, without a reload."""
    for n in (1, 2):
        (tmp_path / str(n)).mkdir()
        t.write(tmp_path / str(n) / "f", b"release %d" % n)
    os.symlink("1", tmp_path / "current")
    server = nginx("server { listen unix:@on@; root %s/current; pagewise on; }" % tmp_path)
    assert server.get("on", "/f").body == b"release 1"
    os.symlink("2", tmp_path / "next")
    os.rename(tmp_path / "next", tmp_path / "current")
    wait_until(lambda: server.get("on", "/f").body == b"release 2", "the other release")


def test_a_limited_rate_is_nginx_own(nginx, fast):
    server = nginx("server { listen unix:@on@; root %s; pagewise on; limit_rate 2m; }" % fast)
    mounts.drop(fast / "large.bin")
    since = time.monotonic()
    assert server.get("on", "/large.bin").body == t.content(8, SIZE)
    # nginx lets the first second's share go at once.
    assert time.monotonic() - since > 0.3


def test_a_file_that_is_evicted_behind_a_slow_client_comes_whole(nginx, fast):
    server = nginx("server { listen unix:@on@; root %s; pagewise on; }" % fast)
    s = server.connect("on", rcvbuf=4096)
    s.sendall(nginx_server.request("/large.bin"))
    data = b""
    while len(data) < SIZE // 2:
        data += s.recv(200000)
        mounts.drop(fast / "large.bin")
    assert (data + everything(s)).endswith(t.content(8, SIZE))


@pytest.mark.parametrize("more", ["sendfile_max_chunk 16k;", "limit_rate 30k;", "sendfile off;",
                                  "sendfile_max_chunk 16k; pagewise_cache drop;"])
def test_a_small_file_that_does_not_go_at_once_comes_whole(nginx, tmp_path, more):
    """It is asked about once, before the header; what is left of it once more."""
    path = tmp_path / "f"
    content = t.content(1, 60000)
    t.write(path, content)
    server = nginx("server { listen unix:@on@; root %s; pagewise on; %s }" % (tmp_path, more))
    mounts.drop(path)
    assert server.get("on", "/f").body == content
    s = server.connect("on")
    s.sendall(nginx_server.request("/f"))
    data = s.recv(10000)
    mounts.drop(path)
    assert (data + everything(s)).endswith(content)


@pytest.fixture
def evicting(nginx, tmp_path):
    """Starts nginx, which has one file that is evicted whenever its client is slow."""
    def start(text, **env):
        if not os.access(nginx_server.EVICT, os.R_OK):
            pytest.skip("no " + nginx_server.EVICT)
        path = tmp_path / "f"
        t.write(path, t.content(1, t.MIB // 2))
        mounts.drop(path)
        preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), nginx_server.EVICT]))
        return path, nginx("server { root %s; pagewise on; %s }" % (tmp_path, text),
                           env={"LD_PRELOAD": preload, "EVICT": path, **env})
    return start


@pytest.mark.parametrize("more", ["", "sendfile off; output_buffers 1 256k;"])
def test_a_file_that_is_evicted_whenever_its_client_is_slow_comes_whole(evicting, more):
    """More of a window may have gone than the library was told, when its rest is fetched again."""
    path, server = evicting("listen unix:@on@; pagewise_cache drop;" + more)
    content = path.read_bytes()
    # Of what it has given back it keeps no answer; and what is resident goes in large windows.
    assert server.get("on", "/f").body == content
    for _ in range(3):
        assert path.read_bytes() == content
        assert server.get("on", "/f", fields=("Range: bytes=0-",)).body == content


@pytest.mark.parametrize("more, end", [
    ("", b""), ("sendfile off; output_buffers 1 256k;", b""), ("ssi on; ssi_types *;", b""),
    ("add_after_body /end; location = /end { return 200 end; }", b"end")])
def test_a_window_that_is_evicted_again_and_again_is_sent_from_memory(evicting, more, end):
    """nginx has a part of it in its queue, and must not send that from the file; a chunk is as long as was said."""
    path, server = evicting("listen unix:@on@; default_type text/html;" + more, EVICT_AGAIN="1")
    assert server.get("on", "/f").body == path.read_bytes() + end
    assert "a page is missing" not in server.output()


def test_the_window_of_a_subrequest_that_is_evicted_before_its_turn_is_fetched_again(evicting, slow):  # noqa: F811
    """nginx keeps what an inactive subrequest sends, and must not send it from the file as it is."""
    path, server = evicting(
        "listen unix:@on@; location /slow/ { alias %s/; } location = /page { ssi on; default_type text/html; "
        "return 200 '<!--#include virtual=\"/slow/hot.bin\"--><!--#include virtual=\"/f\"-->'; }" % slow.dir,
        EVICT_AGAIN="1")
    slow.hang("read", "hot.bin")
    s = server.send("on", "/page")
    slow.wait_held("read")
    # Meanwhile nginx keeps a window of the page's.
    assert server.get("on", "/f").body == path.read_bytes()
    slow.release()
    assert receive(s).body == t.content(3, HOT) + path.read_bytes()
    assert "a page is missing" not in server.output()


def test_a_file_that_is_evicted_behind_http2_is_fetched_again(evicting, curl):
    """nginx sends its queue of frames without the filters, so the queue must not refer to the file."""
    path, server = evicting("listen unix:@on@; listen unix:@h2@ http2;")
    content = path.read_bytes()
    for _ in range(3):
        assert curl(server, "/f").communicate()[0] == content
        mounts.drop(path)
    assert "a page is missing" not in server.output(), server.output()


def test_a_client_of_http2_that_leaves_leaves_nothing_behind(slow, fast, nginx, curl):  # noqa: F811
    server = nginx((SERVER % {"fast": fast, "slow": slow.dir, "more": ""}).replace(
        "root ", "listen unix:@h2@ http2; root ", 1))
    for op, name in (("open", "cold.bin"), ("read", "cold2.bin")):
        slow.hang(op, name)
        client = curl(server, "/slow/" + name)
        slow.wait_held(op)
        hot(server)
        client.kill()
        client.wait()
        wait_until(lambda: not [d for d in server.connections() if d.endswith("h2")], "its end")
        slow.release()
        hot(server)
    assert curl(server, "/slow/cold2.bin").communicate()[0] == t.content(2, SIZE)
