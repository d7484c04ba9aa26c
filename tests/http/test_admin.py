"""The admin listener: what it counts, and whom it answers."""

import base64
import contextlib
import os
import re
import socket
import stat
import subprocess
import sys

import pytest

import harness
import mounts
import tls
import tree as t
from admin import ADMIN, Admin
from harness import Finished, request, wait_until


@pytest.fixture
def serve_admin(serve, tree):
    def start(*args, **kw):
        server = serve("--root", tree.root, "--admin", "127.0.0.1:0", *args, **kw)
        return server, Admin(server)

    return start


# ------------------------------------------------------------------- figures


@pytest.mark.once
def test_the_page_has_every_metric_of_the_server():
    done = subprocess.run([sys.executable, os.path.join(harness.TREE, "conf/metrics.py"), "--check", harness.PAGEWISE],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_family_is_well_formed(serve_admin, tmp_path):
    conf = tmp_path / "conf"
    conf.write_text('include = "%s"\npopular = 1\n' % tls.PAIRS.conf(None))
    server, admin = serve_admin("--workers", "2", "-c", conf, "--listen",
                                "127.0.0.1:0", "--listen", "127.0.0.1:0 tls",
                                "--agent", "127.0.0.1:0")
    server.get("/4097.bin")
    text = admin.ask().text
    helped = re.findall(r"^# HELP (\S+) \S.*\.$", text, re.M)
    typed = re.findall(r"^# TYPE (\S+) (counter|gauge|histogram)$", text, re.M)
    assert helped == [name for name, _ in typed]
    assert len(set(helped)) == len(helped)
    for name, kind in typed:
        assert (kind == "histogram") == name.endswith(("_handshake_seconds", "_turn_seconds", "_disk_wait_seconds")), name
        assert name.startswith(("pagewise_", "process_"))
        assert name.endswith("_total") == (kind == "counter")
    # No sample without a family, none twice.
    samples = [s for f in admin.families().values() for s in f.samples]
    assert len({(s.name, tuple(sorted(s.labels.items()))) for s in samples}) == len(samples)
    assert all(any(s.name in (n, n + "_bucket", n + "_sum", n + "_count") for n in helped)
               for s in samples)


def test_requests_bytes_and_connections_are_counted(serve_admin, tree):
    server, admin = serve_admin("--workers", "2")
    answers = [server.get(*x) for x in [("/4097.bin",)] * 3 + [("/nothing",)] * 2 +
               [("/4097.bin", "HEAD"), ("/%d.bin" % t.LARGE,), ("/4097.bin", "POST")]]
    admin.wait("pagewise_connections", 0)
    sent = sum(len(a.raw) + len(a.body) for a in answers)
    assert admin.value("pagewise_requests_total", status="200") == 5
    assert admin.value("pagewise_requests_total", status="404") == 2
    assert admin.value("pagewise_requests_total", status="405") == 1
    assert admin.value("pagewise_requests_total") == len(answers)
    assert admin.value("pagewise_sent_bytes_total") == sent
    assert admin.value("pagewise_connections_accepted_total") == len(answers)


def test_refused_requests_are_counted_by_the_place_of_request_rate(serve_conf, tree):
    def sample(site, location):
        return admin.value("pagewise_request_rate_refused_total", site=site, location=location)

    name = 'sl\\ash'
    server = serve_conf(
        {"workers": 2, "admin": "127.0.0.1:0", "request_rate": "1/h", "request_burst": 1},
        [("one", {"names": ["one"], "root": tree.root}, {"/a": {"request_rate": "1/h"}, "= /a": {"request_rate": "1/h"}}),
         (name, {"names": ["two"], "root": tree.root, "request_rate": "1/m"}, {}),
         ("three", {"names": ["three"], "root": tree.root}, {"/x": {"request_rate": "off"}})])
    admin = Admin(server)
    for target, host, times in (("/", "one", 3), ("/a", "one", 4), ("/ab", "one", 5), ("/", "two", 6), ("/", "three", 1)):
        for _ in range(times):
            server.get(target, host=host)
    found = [s.labels for s in admin.families()["pagewise_request_rate_refused"].samples]
    assert len(found) == 4
    assert [sample("", ""), sample("one", "= /a"), sample("one", "/a"), sample(name, "")] == [3, 3, 4, 5]


@pytest.mark.slow
def test_passwords_are_counted(serve_conf, tree, tmp_path):
    hashed = "$2b$11$ABCDEFGHIJKLMNOPQRSTUuOHKTMj6A9VKZoVxdizhB4LgbxRyhEAO"
    (tmp_path / "users").write_text("slow:%s\n" % hashed)
    server = serve_conf({"workers": 1, "admin": "127.0.0.1:0", "disk_timeout": 300},
                        [("s", {"root": tree.root, "htpasswd": tmp_path / "users"}, {})])
    admin = Admin(server)
    assert admin.value("pagewise_password_threads") == 2  # one is for first tries

    def asked(password):
        credentials = base64.b64encode(b"slow:%d" % password).decode()
        return request("/1.bin", fields=[("Authorization", "Basic " + credentials)])

    connections = [server.connect() for _ in range(12)]
    for i, c in enumerate(connections):
        c.send(asked(i))
    statuses = [c.response().status for c in connections]
    admin.wait("pagewise_passwords_hashed_total", statuses.count(401))
    assert admin.value("pagewise_passwords_refused_total") == statuses.count(503) > 0
    assert admin.value("pagewise_password_threads_busy") == admin.value("pagewise_passwords_waiting") == 0
    # One after the other, for seconds.
    connections[0].send(b"".join(asked(100 + i) for i in range(30)))
    wait_until(lambda: admin.value("pagewise_password_threads_busy") == 1, "the thread to be busy")
    connections[0].reset()
    server.stop(messages=r"(?:pagewise: warning: did not verify a password from .*\n)*")


def test_download_is_counted_while_it_is_sent(serve_admin):
    server, admin = serve_admin("--workers", "1")
    with server.connect(rcvbuf=4096) as c:
        c.send(request("/huge.bin"))
        c.read_head()
        admin.wait("pagewise_connections", 1, state="send")
        assert 0 < admin.value("pagewise_sent_bytes_total") < t.HUGE
        assert admin.value("pagewise_requests_total") == 0
        c.reset()
    admin.wait("pagewise_requests_total", 1, status="200")
    admin.wait("pagewise_connections", 0)


@pytest.mark.http1("reads a head, skips a body, lingers: states of HTTP/1")
def test_connections_are_counted_by_what_they_do(serve_admin):
    server, admin = serve_admin("--workers", "1")
    idle, head, lingering, body = [server.connect() for _ in range(4)]
    idle.ask("/1.bin")
    head.send(b"GET / HT")
    lingering.ask("/1.bin", fields={"Connection": "close"})
    lingering.eof()
    body.send(b"GET /1.bin HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
    body.response()
    for state in ("idle", "head", "linger", "body"):
        admin.wait("pagewise_connections", 1, state=state)
    assert admin.value("pagewise_connections") == 4
    for c in (idle, head, lingering, body):
        c.sock.close()
    admin.wait("pagewise_connections", 0)


@pytest.mark.slow
def test_time_outs_are_counted_by_kind(serve_conf, tree):
    server = serve_conf({"admin": "127.0.0.1:0", "head_timeout": 1, "keepalive_timeout": 1},
                        [("s", {"root": tree.root}, {})])
    admin = Admin(server)
    with server.connect() as silent, server.connect() as idle:
        idle.ask("/1.bin")
        silent.eof()
        idle.eof()
    admin.wait("pagewise_timeouts_total", 1, kind="head")
    admin.wait("pagewise_timeouts_total", 1, kind="keepalive")
    assert admin.value("pagewise_timeouts_total") == 2


def test_disk_reads_are_counted(serve, site):
    path = str(site / "cold.bin")
    size = 3 * t.MIB
    t.write(path, t.content(1, size))
    mounts.drop(path)
    if mounts.resident(path):
        pytest.skip("this file system keeps everything in memory")
    server = serve("--root", site, "--admin", "127.0.0.1:0", "--workers", "1")
    admin = Admin(server)
    assert server.get("/cold.bin").body == t.content(1, size)
    admin.wait("pagewise_connections", 0)
    assert admin.value("pagewise_windows_missed_total") >= 1
    assert admin.value("pagewise_disk_fetched_bytes_total") >= size
    # A drop or an unmapping may end between the two.
    wait_until(lambda: admin.value("pagewise_disk_wait_seconds_count") ==
               admin.value("pagewise_disk_jobs_total") >= 1, "jobs, each with a wait")
    assert admin.value("pagewise_disk_wait_seconds_sum") > 0
    assert admin.value("pagewise_requests_disk_wait_seconds_total") > 0
    device = os.stat(path).st_dev
    assert admin.value("pagewise_disk_fetched_bytes_total", queue="files",
                       device="%d:%d" % (os.major(device), os.minor(device))) >= size
    families = admin.families()
    (info,) = [s for s in families["pagewise_disk_info"].samples if s.labels["queue"] == "files"]
    assert info.value == 1 and re.fullmatch(r"[a-z0-9_]+", info.labels["fs"])
    # It is known late: a label of theirs would change.
    assert all("fs" not in s.labels for name, f in families.items() if name != info.name
               for s in f.samples)


def test_histogram_counts_every_turn_of_each_worker(serve_admin):
    server, admin = serve_admin("--workers", "2")
    for _ in range(20):
        server.get("/1.bin")
    family = admin.families()["pagewise_loop_turn_seconds"]
    total = 0
    for worker in "01":
        samples = [s for s in family.samples if s.labels["worker"] == worker]
        buckets = [s for s in samples if s.name.endswith("_bucket")]
        counts = [s.value for s in buckets]
        assert counts == sorted(counts)
        bounds = [float(s.labels["le"]) for s in buckets]
        assert bounds == [2**i / 1e6 for i in range(25)] + [float("inf")]
        (count,) = [s.value for s in samples if s.name.endswith("_count")]
        assert counts[-1] == count
        total += count
    # Each request came by a connection of its own: at least a turn each.
    assert total >= 20
    assert 0 < admin.value("pagewise_loop_turn_longest_seconds", worker="0")


def test_lost_log_lines_are_counted(serve, tree):
    server = serve("--root", tree.root, "--admin", "127.0.0.1:0", "--access-log", "/dev/full")
    admin = Admin(server)
    for _ in range(5):
        server.get("/1.bin")
    admin.wait("pagewise_log_records_lost_total", 5)
    server.stop(messages=r"(pagewise: access log: [0-9]+ records lost[^\n]*\n)+")


def test_process_is_described(serve_admin):
    server, admin = serve_admin("--send-path", "copy")
    (info,) = admin.families()["pagewise_build_info"].samples
    assert (info.value, info.labels["send_path"]) == (1, "copy")
    assert re.fullmatch(r"\d+\.\d+\.\d+", info.labels["version"])
    started = admin.value("process_start_time_seconds")
    assert abs(started - os.stat("/proc/%d" % server.pid).st_ctime) < 60
    assert admin.value("process_resident_memory_bytes") > 1 << 20
    before = admin.value("process_open_fds")
    with server.connect() as c:
        c.ask("/0.bin")
        assert admin.value("process_open_fds") >= before + 1
        c.finish()


# ------------------------------------------------------------------- answers


def test_page_loads_nothing_from_other_hosts(serve_admin):
    _, admin = serve_admin()
    response = admin.ask("/")
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    with open(os.path.join(harness.TREE, "server", "admin", "admin.html")) as f:
        assert response.text == f.read()
    assert not re.search(r'(src|href)="(?!/metrics"|data:,)', response.text)


@pytest.mark.parametrize("path", ["/metrics/", "/x", "//", "/Metrics"])
def test_other_paths_are_404(serve_admin, path):
    _, admin = serve_admin()
    assert admin.ask(path).status == 404
    assert admin.ask("/metrics?x=1").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
@pytest.mark.parametrize("path", ["/", "/metrics"])
def test_other_methods_are_405(serve_admin, path, method):
    _, admin = serve_admin()
    body = b"x" * 100 if method in ("POST", "PUT", "PATCH") else None
    response = admin.ask(path, method, body=body)
    assert response.status == 405
    assert response.headers["Allow"] == "GET, HEAD"


def fields_of(response):
    return {name: value for name, value in response.getheaders() if name != "Date"}


@pytest.mark.parametrize("path, host", [("/", "localhost"), ("/metrics", "localhost"),
                                        ("/x", "localhost"), ("/", "evil.example")])
def test_head_is_get_without_the_body(serve_admin, path, host):
    """RFC 9110, 9.3.2; and the connection goes on behind it."""
    _, admin = serve_admin()
    connection = admin.connect()
    answers = []
    for method in ("HEAD", "GET", "HEAD"):
        connection.request(method, path, headers={"Host": host})
        response = connection.getresponse()
        body = response.read()
        assert len(body) == (int(response.headers["Content-Length"]) if method == "GET" else 0)
        answers.append((response.status, fields_of(response)))
    connection.close()
    if path == "/metrics":  # whose figures change
        assert all(int(fields.pop("Content-Length")) > 0 for _, fields in answers)
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize(
    "host, status",
    [
        ("localhost", 200),
        ("LOCALHOST:8081", 200),
        ("127.0.0.1:8081", 200),
        ("[::1]:8081", 200),
        ("[::1]", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:8081", 403),
        ("[::1].evil.example", 403),
        ("[evil", 403),
        ("x" * 200, 403),
    ],
)
def test_host_with_a_name_is_refused(serve_admin, host, status):
    """DNS rebinding: the page is from elsewhere, and so is the name."""
    _, admin = serve_admin()
    for path in ("/metrics", "/"):
        assert admin.ask(path, Host=host).status == status


def test_garbage_does_not_stop_it(serve_admin):
    _, admin = serve_admin()
    address = admin.url[len("http://"):-1].split(":")
    for raw in (b"\x16\x03\x01\0\n\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 9000 + b"\r\n",
                b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"):
        with harness.Connection((address[0], int(address[1]))) as c:
            c.send(raw)
            with contextlib.suppress(OSError):  # it may have been reset already
                c.half_close()
            c.drain()
    assert admin.ask().status == 200


def test_admin_responds_when_descriptors_are_free_again(tree):
    server = harness.Server("--root", tree.root, "--admin", "127.0.0.1:0", "--workers", "1",
                            wrapper=["sh", "-c", 'ulimit -n 64; exec "$0" "$@"'])
    server.wrapped = False  # the shell has become the server
    try:
        admin = Admin(server.start())
        connections = [server.connect() for _ in range(100)]
        for c in connections:
            with contextlib.suppress(ConnectionError):  # it may have lost its place by now
                c.send(b"GET / HT")
        wait_until(lambda: "pausing" in server.messages, "the end of those for clients")
        host, port = admin.url[len("http://"):-1].split(":")
        connections += [harness.Connection((host, int(port))) for _ in range(20)]
        wait_until(lambda: len(os.listdir("/proc/%d/fd" % server.pid)) == 64, "the end of all")
        waiting = admin.connect()
        waiting.request("GET", "/metrics")
        for c in connections:
            c.sock.close()
        text = waiting.getresponse().read().decode()
        assert re.search(r"^process_max_fds 64$", text, re.M)
        assert re.search(r"^pagewise_accept_failures_total [1-9]", text, re.M)
        waiting.close()
    finally:
        server.stop(messages=r"(pagewise: warning: (cannot accept connections: |closed a )[^\n]*\n)+")


HERD = 700


@pytest.fixture
def herded(serve_conf, tree):
    """A server with 400 descriptors, and the addresses of its admin and agent."""

    def start(**top):
        return serve_conf({"workers": 2, "stall_log": 0, **top}, [("s", {"root": tree.root}, {})],
                          becomes=("prlimit", "--nofile=400:400"))

    return start


def open_descriptors(server):
    return len(os.listdir("/proc/%d/fd" % server.pid))


@pytest.mark.parametrize("key", ["admin", "agent"])
def test_clients_keep_their_descriptors_while_a_herd_connects_to(herded, key):
    server = herded(**{key: "127.0.0.1:0"})
    found = re.search(r"^pagewise: %s at (?:http://)?([\d.]+):(\d+)/?$" % key, server.output, re.M)
    where = (found.group(1), int(found.group(2)))
    before = open_descriptors(server)
    with contextlib.ExitStack() as herd:
        with harness.descriptors(4096):
            for _ in range(HERD):
                c = herd.enter_context(harness.Connection(where))
                with contextlib.suppress(ConnectionError):  # it may have given way already
                    c.send(b"G")
            # The youngest of the herd has a descriptor, so all of them were accepted.
            with harness.Connection(where) as last:
                if key == "admin":
                    last.send(request("/metrics", host="localhost"))
                    assert last.read_head().status == 200
                else:
                    assert last.drain().startswith(b"up ")
        assert open_descriptors(server) < before + 100
        assert server.get("/1.bin").status == 200
    server.stop()


@pytest.mark.slow
def test_a_head_that_comes_byte_by_byte_has_a_total_time(serve_admin):
    _, admin = serve_admin()
    host, port = admin.url[len("http://"):-1].split(":")
    with harness.Connection((host, int(port))) as c:
        c.send(b"GET /metrics HTTP/1.1\r\nX: ")

        def over():
            with contextlib.suppress(ConnectionError):
                c.send(b"y")
            return not c.quiet(1)

        wait_until(over, "its end", patience=120)


def test_admin_is_off_by_default(plain):
    assert not ADMIN.search(plain.output)


def test_many_clients_are_served_and_a_reload_switches_processes(serve_admin):
    server, admin = serve_admin()
    server.get("/1.bin")
    waiting = [admin.connect() for _ in range(20)]
    for c in waiting:
        c.request("GET", "/metrics")
        assert b'pagewise_requests_total{status="200"} 1\n' in c.getresponse().read()
    server.reload()
    for c in waiting:
        c.close()
    waiting = [admin.connect() for _ in range(20)]
    for c in waiting:
        c.request("GET", "/metrics")
        response = c.getresponse()
        assert response.status == 200
        assert b'pagewise_requests_total{status="200"} 1\n' not in response.read()
    # They are still open when the server ends.


# --------------------------------------------------------------- unix socket


def test_socket_is_for_owner_and_group_and_goes_with_the_server(serve, tree, tmp_path):
    path = tmp_path / "admin.sock"
    server = serve("--root", tree.root, "--admin", path)
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert Admin(server).url == "unix:%s" % path
    assert Admin(server).ask("/metrics", Host="any.example").status == 200
    server.stop()
    assert not path.exists()


def test_socket_that_was_left_over_is_replaced(serve, tree, tmp_path):
    path = tmp_path / "admin.sock"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
        s.listen()
    server = serve("--root", tree.root, "--admin", path)
    assert Admin(server).ask().status == 200


def test_socket_of_a_server_that_runs_is_left_alone(serve, tree, tmp_path):
    path = tmp_path / "admin.sock"
    server = serve("--root", tree.root, "--admin", path)
    second = Finished("--root", tree.root, "--listen", "127.0.0.1:0", "--admin", path)
    assert second.code == 1
    assert str(path) in second.err and "another program listens on this" in second.err
    assert Admin(server).ask().status == 200


def test_file_that_is_no_socket_is_left_alone(tree, tmp_path):
    path = tmp_path / "file"
    path.write_text("precious")
    run = Finished("--root", tree.root, "--listen", "127.0.0.1:0", "--admin", path)
    assert run.code == 1
    assert str(path) in run.err
    assert path.read_text() == "precious"


def test_socket_that_took_its_place_is_left_alone(serve, tree, tmp_path):
    path = tmp_path / "admin.sock"
    server = serve("--root", tree.root, "--admin", path)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
        server.stop()
        assert path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="root")
def test_directory_can_give_the_socket_its_group(serve, tree, tmp_path):
    path = tmp_path / "run" / "admin.sock"
    path.parent.mkdir()
    os.chown(path.parent, -1, 12345)
    path.parent.chmod(0o2750)
    serve("--root", tree.root, "--admin", path)
    assert path.stat().st_gid == 12345


# --------------------------------------------------------- failing to start


def test_start_that_fails_leaves_no_socket(tree, tmp_path):
    path = tmp_path / "admin.sock"
    run = Finished("--root", tree.root, "--listen", "127.0.0.1:0", "--admin", path,
                   "--access-log", tmp_path / "no" / "log")
    assert run.code == 1 and "access log" in run.err
    assert not path.exists()


@pytest.mark.parametrize("address", ["0.0.0.0:0", "*:0", "8081", "[::]:0", "192.0.2.1:0"])
def test_address_that_others_can_reach_is_an_error(tree, address):
    run = Finished("--root", tree.root, "--admin", address)
    assert run.code == 2
    assert run.err.startswith("pagewise: --admin: %s is reachable from outside" % address)


def test_address_in_use_is_an_error(serve, tree):
    server = serve("--root", tree.root)
    address = "127.0.0.1:%d" % server.address[1]
    run = Finished("--root", tree.root, "--listen", "127.0.0.1:0", "--admin", address)
    assert run.code == 1
    assert address in run.err and os.strerror(98) in run.err


def test_path_without_a_directory_is_an_error(tree, tmp_path):
    path = tmp_path / "missing" / "socket"
    run = Finished("--root", tree.root, "--listen", "127.0.0.1:0", "--admin", path)
    assert run.code == 1
    assert str(path) in run.err and os.strerror(2) in run.err


def test_path_that_is_too_long_is_an_error(tree):
    run = Finished("--root", tree.root, "--admin", "/" + "x" * 200)
    assert run.code == 2
    assert "too long" in run.err
