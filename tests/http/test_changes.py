"""Files that change while they are served, and between requests.

A change of the file itself is to be noticed at once, another file in its place within a second;
for the latter the tests poll for three.
"""

import os
import subprocess
import sys
import time

import pytest

import tree as t
from admin import Admin
from harness import request, wait_until
from responses import ProtocolError, parse_http_date

NOTICED = 3.0
REWRITE = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY)
while os.getppid() == int(sys.argv[2]):
    os.pwrite(fd, b"x" * 64, 0)
    time.sleep(0.001)
"""
BIG = 32 * t.MIB
UNBUFFERED = 12 * t.MIB  # more than the sockets of both ends take
# The kernel clears the rest of a folio that is cut, also where it is on its way
# to a client without a copy.  No folio is larger than this.
FOLIO = 8 * t.MIB
CHANGED = r"pagewise: f: changed while it was sent: %s; write a new file and rename it\n"
CUT = CHANGED % "the response was aborted"


@pytest.fixture
def server(serve, site, send_path):
    return serve("--root", site, "--send-path", send_path, "--workers", "1")


def ask(server, target):
    """An answer, or None: a file that just shrank ends the connection."""
    with server.connect() as c:
        try:
            return c.ask(target)
        except (ProtocolError, ConnectionResetError):
            return None


def becomes(server, target, status, body=None):
    def right():
        r = ask(server, target)
        return r is not None and r.status == status and (body is None or r.body == body) and r

    return wait_until(right, "%s to become %d" % (target, status), NOTICED)


def let_clocks_move():
    """Kernel time stamps are as coarse as its tick."""
    time.sleep(0.05)


def test_file_replaced_by_rename(server, site):
    (site / "f").write_bytes(b"old" * 1000)
    old = becomes(server, "/f", 200, b"old" * 1000)
    (site / "g").write_bytes(b"new!" * 1000)
    os.rename(site / "g", site / "f")
    new = becomes(server, "/f", 200, b"new!" * 1000)
    assert new.get("ETag") != old.get("ETag")


def test_file_replaced_by_one_of_the_same_size_and_second(server, site):
    """The nanoseconds tell them apart."""
    for number, (name, data) in enumerate((("f", b"old"), ("g", b"new"))):
        (site / name).write_bytes(data)
        os.utime(site / name, ns=(0, t.MTIME * 10**9 + number))
    old = becomes(server, "/f", 200, b"old")
    os.rename(site / "g", site / "f")
    new = becomes(server, "/f", 200, b"new")
    assert new.get("ETag") != old.get("ETag")


def write_of_second(path, data, second):
    """Writes a version whose time differs only by nanoseconds from that of others of the second."""
    path.write_bytes(data)
    os.utime(path, ns=(0, second * 10**9 + len(data) + data[0]))


@pytest.mark.slow
def test_no_condition_by_date_takes_two_versions_of_a_second_for_one(serve, site):
    """RFC 9110, 8.8.2.2: the date that the first one is sent with must not be that of the second."""
    path = site / "f"
    server = serve("--root", site, "--workers", "1")

    def first():
        second = int(time.time())
        write_of_second(path, b"old" * 100, second)
        r = ask(server, "/f")
        return r if parse_http_date(r.get("Date")) <= second + 1 else None

    date = wait_until(first, "a response within a second of the change").get("Last-Modified")
    second = int(path.stat().st_mtime)
    write_of_second(path, b"new" * 100, second)
    with server.connect() as c:
        wait_until(lambda: time.time() > second + 3, "the change to be settled")
        for name, extra, status in (("If-Range", {"Range": "bytes=0-1"}, 200), ("If-Modified-Since", {}, 200),
                                    ("If-Unmodified-Since", {}, 412)):
            assert c.ask("/f", fields={name: date, **extra}).status == status, name
        settled = c.ask("/f").get("Last-Modified")
        assert parse_http_date(settled) == second
        assert c.ask("/f", fields={"If-Range": settled, "Range": "bytes=0-1"}).status == 206
        assert c.ask("/f", fields={"If-Modified-Since": settled}).status == 304


def test_file_that_goes_back_to_an_older_version_is_sent(server, site):
    """A mirror does so, and apt would keep a Release that does not fit the index."""
    (site / "old").write_bytes(b"old")
    (site / "f").write_bytes(b"new")
    os.utime(site / "old", (t.MTIME, t.MTIME))
    os.utime(site / "f", (t.MTIME + 60, t.MTIME + 60))
    date = becomes(server, "/f", 200, b"new").get("Last-Modified")
    os.rename(site / "old", site / "f")
    becomes(server, "/f", 200, b"old")
    with server.connect() as c:
        assert c.ask("/f", fields={"If-Modified-Since": date}).body == b"old"


def test_file_rewritten_in_place(server, site):
    path = site / "f"
    path.write_bytes(b"old")
    old = becomes(server, "/f", 200, b"old")
    let_clocks_move()
    path.write_bytes(b"new")

    def right():
        r = ask(server, "/f")
        return r and r.body == b"new" and r.get("ETag") != old.get("ETag")

    wait_until(right, "the new entity tag", NOTICED)


def test_log_has_the_cause_if_a_rewritten_file_aborts_responses(server, site):
    """About one in a hundred meets a change between its lookup and its last check."""
    path, end = site / "f", time.monotonic() + 20
    path.write_bytes(b"x" * 64)
    writer = subprocess.Popen([sys.executable, "-c", REWRITE, path, str(os.getpid())])
    try:
        response = ask(server, "/f")
        while response is not None and response.status == 200:
            if time.monotonic() > end:
                pytest.skip("no response met a change")
            response = ask(server, "/f")
    finally:
        writer.kill()
        writer.wait()
    assert response is None or response.status == 503
    server.stop(messages=CUT if response is None else CHANGED % "the client got 503")


def test_file_that_grew_between_requests(server, site):
    path = site / "f"
    path.write_bytes(t.content(1, 100000))
    becomes(server, "/f", 200, t.content(1, 100000))
    let_clocks_move()
    path.write_bytes(t.content(1, 300000))
    becomes(server, "/f", 200, t.content(1, 300000))


def test_file_that_shrank_between_requests(server, site):
    path = site / "f"
    path.write_bytes(t.content(1, 300000))
    becomes(server, "/f", 200, t.content(1, 300000))
    let_clocks_move()
    os.truncate(path, 100000)
    becomes(server, "/f", 200, t.content(1, 100000))
    server.stop(messages="(%s)?" % CUT)


def test_file_removed(server, site):
    (site / "f").write_bytes(b"x")
    becomes(server, "/f", 200)
    (site / "f").unlink()
    becomes(server, "/f", 404)


def test_file_that_appears(server, site):
    becomes(server, "/f", 404)
    (site / "f").write_bytes(b"x")
    becomes(server, "/f", 200, b"x")


def test_file_that_becomes_unreadable(serve, tmp_path, base):
    user = "nobody" if os.geteuid() == 0 else None
    root = os.path.join(base, "readable")
    os.mkdir(root)
    path = os.path.join(root, "f")
    t.write(path, b"x")
    server = serve("--root", root, user=user)
    becomes(server, "/f", 200, b"x")
    os.chmod(path, 0)
    becomes(server, "/f", 403)
    os.chmod(path, 0o644)
    becomes(server, "/f", 200, b"x")


def test_file_that_becomes_a_directory_and_back(server, site):
    path = site / "f"
    path.write_bytes(b"x")
    becomes(server, "/f", 200)
    path.unlink()
    path.mkdir()
    becomes(server, "/f", 301)
    path.rmdir()
    path.write_bytes(b"y")
    becomes(server, "/f", 200, b"y")


def test_file_that_becomes_a_symlink_outside(server, site, tmp_path):
    (tmp_path / "secret").write_bytes(t.CANARY)
    path = site / "f"
    path.write_bytes(b"x")
    becomes(server, "/f", 200)
    path.unlink()
    path.symlink_to("../secret")

    def refused():
        r = ask(server, "/f")
        assert t.CANARY not in r.body
        return r.status in (403, 404)

    wait_until(refused, "the link to be refused", NOTICED)


def test_index_page_that_appears_and_goes(server, site):
    (site / "d").mkdir()
    becomes(server, "/d/", 403)
    (site / "d" / "index.html").write_bytes(b"<p>")
    becomes(server, "/d/", 200, b"<p>")
    (site / "d" / "index.html").unlink()
    becomes(server, "/d/", 403)


def test_directory_replaced(server, site):
    (site / "d").mkdir()
    (site / "d" / "f").write_bytes(b"old")
    (site / "e").mkdir()
    (site / "e" / "f").write_bytes(b"new")
    becomes(server, "/d/f", 200, b"old")
    os.rename(site / "d", site / "gone")
    os.rename(site / "e", site / "d")
    becomes(server, "/d/f", 200, b"new")


# ------------------------------------------------------------- in mid-transfer


def begin(server, target, received=65536):
    """A download of which the client has read the head and a little."""
    c = server.connect(rcvbuf=65536)
    c.send(request(target))
    head = c.read_head()
    assert head.status == 200
    return c, head, c.read_exactly(received)


@pytest.mark.slow
def test_file_truncated_in_mid_transfer_ends_the_connection(server, site):
    """Never padded: fewer bytes, all of them right."""
    data = t.content(7, BIG)
    path = site / "f"
    path.write_bytes(data)
    c, head, body = begin(server, "/f")
    assert head.length == BIG
    os.truncate(path, FOLIO)
    body += c.drain()
    assert len(body) < BIG
    assert data.startswith(body)
    c.sock.close()
    becomes(server, "/f", 200, data[:FOLIO])
    server.stop(messages=CUT)


@pytest.mark.slow
def test_file_emptied_in_mid_transfer_ends_the_connection(server, site):
    data = t.content(8, BIG)
    path = site / "f"
    path.write_bytes(data)
    c, head, body = begin(server, "/f")
    os.truncate(path, 0)
    body += c.drain()
    assert len(body) < BIG
    assert data.startswith(body)
    c.sock.close()
    server.stop(messages=CUT)


@pytest.mark.slow
def test_file_truncated_in_a_multipart_answer_ends_the_connection(server, site):
    data = t.content(9, BIG)
    path = site / "f"
    path.write_bytes(data)
    with server.connect(rcvbuf=65536) as c:
        fields = {"Range": "bytes=0-%d,%d-" % (BIG // 2, BIG // 2 + 100)}
        c.send(request("/f", fields=fields) + request("/f"))
        head = c.read_head()
        assert head.status == 206
        body = c.read_exactly(65536)
        os.truncate(path, t.MIB)
        body += c.drain()
        assert len(body) < head.length
        assert b"HTTP/1.1" not in body
    server.stop(messages=CUT)


def append(path):
    with open(path, "ab") as f:
        f.write(b"z" * t.MIB)


def overwrite(path):
    with open(path, "r+b") as f:
        f.seek(t.MIB)
        f.write(b"z")


LATELY, LONG_AGO = 60, -3600  # a time of the future never ages during the test


@pytest.mark.parametrize("change, since", [(append, LONG_AGO), (overwrite, LONG_AGO), (overwrite, LATELY)])
def test_file_changed_in_mid_transfer_ends_the_connection_before_its_last_byte(
        server, site, change, since):
    """Its bytes may be of two versions, and the entity tag is of one."""
    path = site / "f"
    path.write_bytes(bytes(UNBUFFERED))
    os.utime(path, (time.time() + since,) * 2)
    c, head, body = begin(server, "/f")
    assert head.get("ETag").startswith("W/") == (since == LATELY)
    change(path)
    assert 0 < len(c.drain()) < UNBUFFERED - len(body)
    c.sock.close()
    server.stop(messages=CUT)


@pytest.mark.parametrize("fields", [{}, {"Range": "bytes=1-"}, {"Range": "bytes=0-9,%d-" % t.MIB}])
def test_file_that_was_just_written_and_grows_is_sent_as_it_was(server, site, fields):
    """A recording, an upload, a log: the length and the bytes of its start, with a weak entity tag."""
    path, data = site / "f", t.content(12, UNBUFFERED)
    path.write_bytes(data)
    os.utime(path, (time.time() + LATELY,) * 2)
    with server.connect(rcvbuf=65536) as c:
        c.send(request("/f", fields=fields))
        head = c.read_head()
        assert head.get("ETag").startswith("W/")
        body = c.read_exactly(65536)
        append(path)
        body += c.read_exactly(head.length - len(body))
        assert data[-t.MIB:] in body
        c.finish()


def test_responses_whose_file_changed_are_counted(serve, site):
    path = site / "f"
    path.write_bytes(bytes(UNBUFFERED))
    os.utime(path, (time.time() + LONG_AGO,) * 2)
    server = serve("--root", site, "--workers", "1", "--admin", "127.0.0.1:0")
    admin = Admin(server)
    assert admin.value("pagewise_changed_total") == 0
    c, _, _ = begin(server, "/f")
    append(path)
    c.drain()
    c.sock.close()
    admin.wait("pagewise_changed_total", 1)
    server.stop(messages=CUT)


@pytest.mark.parametrize("size", [8, 5000, 200000])
def test_change_in_place_is_noticed_at_once(server, site, size):
    """Each answer has the entity tag, the length and the bytes of one version."""
    path = site / "f"
    seen = {}
    with server.connect() as c:
        for version in range(8):
            data = b"%d" % version * (size + version % 3)
            with open(path, "r+b" if version else "wb") as f:
                f.write(data)
                f.truncate()
            os.utime(path, (t.MTIME + version, t.MTIME + version))
            for _ in range(3):
                r = c.ask("/f")
                assert (r.status, r.body) == (200, data)
                assert seen.setdefault(r.get("ETag"), data) == data
                part = c.ask("/f", fields={"Range": "bytes=2-"})
                assert (part.status, part.body) == (206, data[2:])
        c.finish()


@pytest.mark.parametrize("how", ["rename", "unlink"])
@pytest.mark.slow
def test_file_removed_in_mid_transfer_is_sent_to_its_end(server, site, how):
    data = t.content(11, BIG)
    path = site / "f"
    path.write_bytes(data)
    c, head, body = begin(server, "/f")
    if how == "rename":
        (site / "g").write_bytes(b"new")
        os.rename(site / "g", path)
    else:
        path.unlink()
    body += c.read_exactly(BIG - len(body))
    assert body == data
    c.finish()
