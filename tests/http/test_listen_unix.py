"""listen = {"unix:PATH"}: a Unix socket in place of an address."""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading

import pytest

import harness
import mounts
import processes
import tree as t
from given import GIVE
from harness import Connection, Finished, checked, configuration, request, wait_until
from responses import multipart

SIZE = 3 * t.MIB + 5
LINUX = pytest.mark.skipif(not processes.PROC, reason="reads /proc/net/unix")
STAYS = r"(pagewise: [^\n]*\n)+pagewise: the old configuration stays in use\n"


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "s")


@pytest.fixture
def start(serve_conf, site, path):
    (site / "name").write_text("one")
    os.utime(site / "name", (1, 1))

    def start(listen=None, top=None, **kw):
        listen = listen or ["unix:" + path]
        return serve_conf({"workers": 1, "listen": listen, **(top or {})},
                          [("s", {"root": site}, {})], **kw)

    return start


def answers(path):
    with Connection(path) as c:
        response = c.ask("/name")
        c.finish(response)
        return response.body == b"one"


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


# ------------------------------------------------------------------------- answers

@pytest.mark.parametrize("key, value, status", [
    ("allow", "all", 200), ("allow", "unix:", 200), ("allow", "::/0", 403),
    ("deny", "all", 403), ("deny", "unix:", 403), ("deny", "::/0", 200)])
def test_rules_all_and_unix_match_a_client_of_a_socket(start, path, key, value, status):
    start(top={key: [value]})
    with Connection(path) as c:
        response = c.ask("/name")
        c.finish(response)
        assert response.status == status


def test_socket_serves_and_its_path_is_printed(start, path):
    server = start()
    assert server.address == path
    assert answers(path)
    assert stat.S_ISSOCK(os.lstat(path).st_mode)


@pytest.mark.parametrize("cache", ["keep", "drop"])
def test_every_send_path_sends_the_right_bytes(start, site, send_path, cache):
    data = t.content(6, SIZE)
    t.write(str(site / "file"), data)
    server = start(top={"send_path": send_path, "cache": cache})
    mounts.drop(str(site / "file"))
    connections = [server.connect() for _ in range(3)]
    for c in connections:
        c.send(request("/file") * 2)
        c.send(request("/file", fields={"Range": "bytes=-9,99999-999999"}))
    for c in connections:
        assert c.response().body == data
        assert c.response().body == data
        parts = multipart(c.response())
        assert [p.body for p in parts] == [data[-9:], data[99999:1000000]]
        c.finish()


def test_a_client_that_reads_slowly_gets_all_of_it(start, site, send_path):
    data = t.content(7, SIZE)
    t.write(str(site / "file"), data)
    server = start(top={"send_path": send_path})
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/file"))
        response = c.read_head()
        while len(c.buf) < response.length:
            c.fill(7001)
        assert bytes(c.buf) == data


def test_small_answers_that_are_ready(start, send_path):
    server = start(top={"send_path": send_path, "hot_set": "16M"})
    with server.connect() as c:
        for _ in range(5):
            assert c.ask("/name").body == b"one"
        c.send(request("/name") * 40)
        for _ in range(40):
            assert c.response().body == b"one"
        c.finish()


@LINUX
def test_a_client_that_reads_nothing_is_closed(start, site):
    t.write(str(site / "file"), t.content(7, SIZE))
    server = start(top={"send_timeout": 1})
    with server.connect() as c:
        c.send(request("/file"))
        c.read_head()
        wait_until(lambda: not connections_of(server.pid), "the close")
        assert len(c.drain()) < SIZE


@pytest.mark.slow
def test_a_client_that_reads_is_not_closed(start, site):
    """What is not acknowledged is asked of the socket, which has no TCP_INFO."""
    data = t.content(7, SIZE)
    t.write(str(site / "file"), data)
    server = start(top={"send_timeout": 3, "min_send_rate": 1000})
    with server.connect() as c:
        c.send(request("/file"))
        response = c.read_head()
        done = threading.Event()
        for _ in range(9):
            c.fill(100000)
            done.wait(0.5)
        body = c.read_body(response).body
        assert body == data


def connections_of(pid):
    """Established Unix sockets with a path among the process's descriptors."""
    links = []
    for name in os.listdir("/proc/%d/fd" % pid):
        try:
            links.append(os.readlink("/proc/%d/fd/%s" % (pid, name)))
        except FileNotFoundError:
            pass
    with open("/proc/net/unix") as table:
        rows = [line.split() for line in table][1:]
    ours = {"socket:[%s]" % row[6] for row in rows if len(row) > 7 and row[5] == "03"}
    return [link for link in links if link in ours]


def test_head_timeout_and_idle_time_hold(start):
    server = start(top={"head_timeout": 1, "keepalive_timeout": 1})
    with server.connect() as silent, server.connect() as begun, server.connect() as idle:
        begun.send(b"GET / HT")
        assert idle.ask("/name").status == 200
        assert begun.response().status == 408
        silent.eof()
        idle.eof()


@LINUX
def test_workers_share_it(start, path):
    server = start(top={"workers": 4})
    for _ in range(40):
        assert answers(path)
    listeners = [row for row in open("/proc/net/unix") if row.rstrip().endswith(" " + path)
                 and row.split()[3] == "00010000"]
    assert len(listeners) == 1
    server.stop()


def test_socket_and_address_serve_together(start, path):
    server = start(listen=["127.0.0.1:0", "unix:" + path])
    assert answers(path) and answers(server.address)


# ------------------------------------------------------------------------- the log


@pytest.mark.parametrize("format", ["combined", "json"])
def test_log_has_unix_as_address(start, tmp_path, path, format):
    start(top={"access_log": tmp_path / "log", "log_format": format})
    with Connection(path) as c:
        for _ in range(4):
            c.ask("/name")
        c.finish()
    wait_until(lambda: (tmp_path / "log").read_text().count("\n") == 4, "the lines")
    begin = "unix: - - [" if format == "combined" else '{"time":'
    for line in (tmp_path / "log").read_text().splitlines():
        assert line.startswith(begin)
        assert format == "combined" or '"remote":"unix:"' in line


def test_a_client_with_a_name_is_unix_as_well(start, tmp_path, path):
    start(top={"access_log": tmp_path / "log"})
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "client"))
        s.connect(path)
        s.sendall(request("/name"))
        assert s.recv(12) == b"HTTP/1.1 200"
    wait_until(lambda: (tmp_path / "log").read_text().startswith("unix: - - ["), "the line")


def test_its_clients_are_not_counted_by_address(start, path):
    start(top={"max_connections_per_address": 1})
    held = [Connection(path) for _ in range(5)]
    for c in held:
        assert c.ask("/name").body == b"one"
        c.finish()


@pytest.mark.slow
def test_max_connections_counts_them(start):
    server = start(top={"max_connections": 2})
    held = [server.connect() for _ in range(2)]
    for c in held:
        assert c.ask("/name").status == 200
    held.append(server.connect())
    # The one that has been idle longest gives way.
    assert held[2].ask("/name").status == 200
    held[0].eof()
    server.stop(messages=r"(pagewise: warning: cannot accept connections: max_connections "
                         r"reached \(2\); raise it, if there is memory for more\n)?")


# ------------------------------------------------------------------------- the file


@pytest.mark.parametrize("option, expected", [("", 0o666), (" mode=0660", 0o660),
                                              (" mode=600", 0o600)])
def test_mode_of_the_socket(start, path, option, expected):
    before = os.umask(0o077)
    try:
        start(listen=["unix:" + path + option])
    finally:
        os.umask(before)
    assert mode(path) == expected


def test_a_relative_path_starts_at_the_file(start, tmp_path, path):
    start(listen=["unix:s"])
    assert answers(path)


def test_on_the_command_line_at_the_working_directory(serve, site, path):
    (site / "name").write_text("one")
    serve("--root", site, "--listen", "unix:s mode=0600", cwd=os.path.dirname(path))
    assert answers(path)
    assert mode(path) == 0o600


def test_it_is_removed_at_the_end(start, path):
    start().stop()
    assert not os.path.exists(path)


def test_leftover_socket_is_replaced(start, path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen()
    start()
    assert answers(path)


def test_after_a_kill_it_starts_again(start, path):
    server = start()
    pids = processes.descendants(server.process.pid)
    server.discard()
    wait_until(lambda: all(map(processes.is_dead, pids)), "its processes to close the socket")
    assert os.path.exists(path)
    start()
    assert answers(path)


def fails_to_start(site, path, message):
    server = harness.Server("--root", site, "--listen", "unix:" + path)
    try:
        assert server.wait() == 1
        assert re.fullmatch("pagewise: " + message + "\n", server.messages)
    finally:
        server.discard()


def test_socket_in_use_is_left_alone(site, path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen()
        fails_to_start(site, path,
                       r"cannot listen on %s: Address already in use: another program "
                       r"listens on this path, or the file is not a socket; choose another path" % path)
        os.stat(path)


def test_a_file_of_another_kind_is_left_alone(site, path):
    with open(path, "w") as f:
        f.write("precious")
    fails_to_start(site, path,
                   r"cannot listen on %s: Address already in use: .*not a socket; choose another path" % path)
    assert open(path).read() == "precious"


def test_missing_directory_is_an_error(site, path):
    fails_to_start(site, path + "/x",
                   r"cannot listen on .*: its directory does not exist; create it")


def test_another_file_in_its_place_is_not_removed(start, path):
    server = start()
    os.unlink(path)
    with open(path, "w") as f:
        f.write("precious")
    server.stop()
    assert open(path).read() == "precious"


# --------------------------------------------------------------- reload and upgrade


class Reloaded:
    def __init__(self, server, tmp_path, site):
        self.server, self.path, self.site = server, tmp_path / "pagewise.conf", site

    def write(self, *listen, **top):
        self.path.write_text(configuration({"workers": 2, "listen": list(listen), **top},
                                           [("s", {"root": self.site}, {})]))

    def reload(self, *listen, **top):
        self.write(*listen, **top)
        self.server.reload()


@pytest.fixture
def reloaded(start, tmp_path, site):
    return Reloaded(start(listen=["127.0.0.1:0"]), tmp_path, site)


def test_added_and_removed_by_a_reload(reloaded, path):
    reloaded.reload("127.0.0.1:0", "unix:" + path)
    assert answers(path)
    first = os.stat(path).st_ino
    reloaded.reload("127.0.0.1:0", "unix:" + path)
    assert answers(path) and os.stat(path).st_ino == first
    reloaded.reload("127.0.0.1:0", "unix:%s2" % path)
    assert not os.path.exists(path) and answers(path + "2")
    reloaded.reload("127.0.0.1:0")
    assert not os.path.exists(path + "2")


def test_a_reload_changes_its_mode(reloaded, path):
    reloaded.reload("127.0.0.1:0", "unix:" + path)
    first = os.stat(path).st_ino
    reloaded.reload("127.0.0.1:0", "unix:%s mode=0600" % path)
    assert mode(path) == 0o600 and os.stat(path).st_ino == first


def test_removed_socket_is_created_again(reloaded, path):
    reloaded.reload("127.0.0.1:0", "unix:" + path)
    os.unlink(path)
    reloaded.reload("127.0.0.1:0", "unix:" + path)
    assert answers(path)


def test_a_reload_that_fails_leaves_all_as_it_was(reloaded, path):
    reloaded.reload("127.0.0.1:0", "unix:" + path)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(path + "2")
        other.listen()
        reloaded.write("127.0.0.1:0", "unix:" + path, "unix:%s3" % path, "unix:%s2" % path)
        reloaded.server.signal(signal.SIGHUP)
        wait_until(lambda: "stays in use" in reloaded.server.messages, "the refusal")
    assert answers(path)
    assert not os.path.exists(path + "3")
    reloaded.server.stop(messages=STAYS)


def test_clients_that_wait_during_a_reload_are_served(reloaded, path):
    """One queue for all: nobody is refused, nobody is lost."""
    reloaded.reload("unix:" + path)
    failed, over = [], threading.Event()

    def ask():
        while not over.is_set():
            try:
                assert answers(path)
            except Exception as error:
                failed.append(error)
                return

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in (1, 3, 2):
        reloaded.reload("unix:" + path, workers=n)
    over.set()
    for thread in threads:
        thread.join()
    assert not failed


def test_an_upgrade_keeps_the_socket(start, path):
    server = start()
    first = os.stat(path).st_ino
    held = Connection(path)
    assert held.ask("/name").status == 200
    server.again(signal.SIGUSR2, "upgraded")
    assert os.stat(path).st_ino == first and answers(path)
    held.sock.close()
    server.stop()
    assert not os.path.exists(path)


# --------------------------------------------------------------- socket activation


def given(serve, path, *args):
    """The server gets a socket that listens there as descriptor 3."""
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen(16)
        return serve(*args, becomes=[sys.executable, "-c", GIVE, "1", str(s.fileno())],
                     pass_fds=[s.fileno()])


def test_passed_socket_is_used_and_not_removed(serve, site, path, tmp_path):
    (site / "name").write_text("one")
    conf = tmp_path / "given.conf"
    conf.write_text('stall_log = 0\nworkers = 2\nsite "s" { root = "%s" }\n' % site)
    server = given(serve, path, "-c", conf)
    assert server.address == path
    for act in (lambda: None, server.reload, lambda: server.again(signal.SIGUSR2, "upgraded")):
        act()
        assert answers(path)
    server.stop()
    assert os.path.exists(path)


def test_configured_and_passed_socket(serve, site, path, tmp_path):
    (site / "name").write_text("one")
    server = given(serve, path, "--root", site, "--listen", "unix:" + path)
    assert answers(path)
    server.reload()
    assert answers(path)
    server.stop()
    assert os.path.exists(path)


# ----------------------------------------------------------------------- the sandbox


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change users")
@pytest.mark.parametrize("more", [{}, {"chroot": "/"}], ids=["user", "chroot"])
def test_with_user_sandbox_and_chroot(serve_conf, release, base, path, more):
    root = os.path.join(base, "unix")
    os.makedirs(root, exist_ok=True)
    t.write(os.path.join(root, "name"), b"one")
    if more:
        more = {"chroot": root}
    server = serve_conf({"workers": 2, "user": "nobody", "listen": ["unix:" + path], **more},
                        [("s", {"root": root}, {})], drops=True, binary=release)
    assert answers(path)
    server.reload()
    assert answers(path)
    server.stop()
    assert not os.path.exists(path)


# ------------------------------------------------------------------------ bad values


BAD = [
    ("unix:", r"the path is empty: write unix:/run/pagewise/http\.sock"),
    ("unix:/" + "x" * 120, r"is too long for a socket path \(at most 10[37] bytes\)"),
    ("unix:@name", r"abstract sockets are not supported: write the path of a file, such as "
                   r"unix:/run/pagewise/http\.sock, or \./@name for a file of this name"),
    ("unix:/run/x mode=0999", r"mode=0999 is not a mode: write octal digits"),
    ("unix:/run/x mode=", r"mode= is not a mode"),
    ("unix:/run/x mode=01777", r"mode=01777 is not a mode"),
    ("unix:/run/x mod=0660", r'"mod=0660" is not an option of an address'),
    ("*:8080 mode=0660", r"mode=0660 is only for Unix sockets: remove it from \*:8080"),
    ("/run/x", r"/run/x is not an address: for a Unix socket write unix:/run/x"),
]


@pytest.mark.parametrize("value, message", BAD, ids=[value[:20] for value, _ in BAD])
def test_errors_have_line_and_cure(tmp_path, value, message):
    run = checked(tmp_path, '\nlisten = {"%s"}\nsite "s" { root = "/" }\n' % value)
    assert run.code == 1
    assert re.search(r"p\.conf:2: listen: .*" + message, run.err)
    run = Finished("-t", "--root", "/", "--listen", value)
    assert run.code == 2 and re.search(r"--listen: .*" + message, run.err)


def test_a_path_that_is_listed_twice(tmp_path):
    run = Finished("-t", "--root", "/", "--listen", "unix:/run/x", "--listen",
                   "unix:/run/x mode=0660")
    assert run.code == 2 and "/run/x is listed twice" in run.err


def test_the_path_of_admin(tmp_path):
    run = Finished("-t", "--root", "/", "--listen", "unix:/run/x", "--admin", "/run/x")
    assert run.code == 1 and "/run/x is already used by the sites" in run.err


def test_check_creates_no_socket(site, path):
    run = Finished("-t", "--root", site, "--listen", "unix:" + path)
    assert (run.code, run.err) == (0, "")
    assert not os.path.exists(path)


# ------------------------------------------------------------------- other programs


def test_curl_fetches_from_it(start, path):
    start()
    text = subprocess.run(["curl", "-s", "--unix-socket", path, "http://localhost/name"],
                          stdout=subprocess.PIPE, check=True, timeout=harness.PATIENCE).stdout
    assert text == b"one"
