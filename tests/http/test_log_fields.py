"""What is logged: the fields of a line, which requests, and which messages, with what priority."""

import json
import os
import re
import signal
import socket
import subprocess

import pytest

import harness
from harness import request, wait_until
from http2 import LOGGED
from logs import FIELDS
from ports import free_port  # a fixture

OLD = 1_600_000_000  # seconds
TEXTS = {"user", "method", "target", "protocol", "referer", "user_agent", "host"}


@pytest.fixture
def site(site):
    (site / "static").mkdir()
    for name in ("a.txt", "b.txt", "static/c.txt"):
        path = site / name
        path.write_text("text of " + name)
        os.utime(path, (OLD, OLD))
    return site


@pytest.fixture
def logged(serve_conf, site, tmp_path):
    """A server with these keys, and its log as lines, once there are so many."""
    path = tmp_path / "access.log"

    def start(**top):
        server = serve_conf({"access_log": path, "workers": 1, **top}, [("s", {"root": site}, {})])

        def lines(count):
            wait_until(lambda: path.exists() and path.read_text().count("\n") >= count, "%d lines" % count)
            found = path.read_text().splitlines()
            assert len(found) == count, found
            return found

        return server, lines

    return start


# ------------------------------------------------------------------ fields


def test_json_has_the_configured_members_in_their_order(logged):
    names = ["status", "target", "time", "host", "referer"]
    server, lines = logged(log_format="json", log_fields=names)
    server.get("/a.txt?q", fields=[("User-Agent", "curl/8")])
    (line,) = lines(1)
    entry = json.loads(line)
    assert list(entry) == names
    assert (entry["status"], entry["target"], entry["host"]) == (200, "/a.txt?q", "localhost")
    assert entry["referer"] is None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry["time"])


def test_all_members_make_the_line_that_json_has_without_the_key(logged):
    fields = [("User-Agent", 'a"b\\c\xff'), ("Referer", "http://a/")]
    server, lines = logged(log_format="json")
    server.get("/a.txt", fields=fields)
    (before,) = lines(1)
    server, lines = logged(log_format="json", log_fields=FIELDS)
    server.get("/a.txt", fields=fields)
    changing = re.compile(r'("time":"[^"]*"|_us":\d+)')
    assert changing.sub("", lines(2)[1]) == changing.sub("", before)


def test_fields_of_combined_are_separated_by_a_space_and_quoted_if_a_client_sent_them(logged):
    server, lines = logged(log_fields=["remote", "method", "target", "protocol", "time", "status", "body_bytes",
                                       "user_agent", "host", "referer", "bytes", "duration_us", "disk_wait_us"])
    answer = server.get("/a.txt", fields=[("User-Agent", 'x" y')])
    (line,) = lines(1)
    assert re.fullmatch(
        r'127\.0\.0\.1 "GET" "/a\.txt" "' + re.escape(LOGGED) + r'" '
        r"\[\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] 200 "
        r'%d "x\\x22 y" "localhost" "-" %d \d+ \d+' % (len(answer.body), len(answer.raw) + len(answer.body)), line)


@pytest.mark.parametrize("form", ["combined", "json"])
@pytest.mark.parametrize("name", FIELDS)
def test_each_field_can_stand_alone_also_where_nothing_was_sent(logged, form, name):
    server, lines = logged(log_format=form, log_fields=[name])
    with server.connect() as c:
        c.send(b"\x01\r\n\r\n")
        assert c.response().status == 400
        c.eof()
    (line,) = lines(1)
    if form == "json":
        value = json.loads(line)[name]
        assert isinstance(value, int if name not in TEXTS | {"time", "remote"} else (str, type(None)))
    elif name in TEXTS:
        assert line == ('"\\x01"' if name == "target" else '"-"')
    else:
        assert re.fullmatch(r"\d+|127\.0\.0\.1|\[.*\]", line)


def test_line_of_longest_fields_has_room(logged):
    names = ["user_agent", "referer", "host", "protocol", "target", "method"]
    for form in ("combined", "json"):
        server, lines = logged(log_format=form, log_fields=names, max_head_size="64K")
        with server.connect() as c:
            c.send(request("/" + "%01" * 900, fields=[("User-Agent", "\xff" * 3000), ("Referer", '"' * 3000)]))
            c.response()
        assert len(lines(1)[0] if form == "combined" else lines(2)[1]) > 4 * 2048


# ---------------------------------------------------------------- requests


def targets(lines):
    return [line.split('"')[1].split()[1] for line in lines]


def test_excluded_paths_and_statuses_are_not_logged_and_are_counted(logged, site):
    server, lines = logged(log_exclude=["/static/*", "/b.t?t", "404", "3xx"], admin=str(site.parent / "admin"))
    asked = [("/static/c.txt", (), 200), ("/b.txt?q=1", (), 200), ("/none", (), 404), ("/static", (), 301),
             ("/a.txt", [("If-None-Match", "*")], 304), ("/static/none", (), 404)]
    for target, fields, status in asked:
        assert server.get(target, fields=fields).status == status
    server.get("/a.txt?last")
    assert targets(lines(1)) == ["/a.txt?last"]
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(harness.PATIENCE)
        s.connect(str(site.parent / "admin"))
        s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    counts = re.findall(r'^pagewise_requests_total\{.*?(\d\d\d)"\} (\d+)', text, re.M)
    assert {code: int(n) for code, n in counts if int(n)} == {"200": 3, "301": 1, "304": 1, "404": 2}


def test_excluded_path_of_a_cached_response_is_not_logged(logged):
    server, lines = logged(log_exclude=["/static/*"])
    with server.connect() as c:
        for _ in range(5):
            c.send(request("/static/c.txt") * 4 + request("/a.txt"))
            for _ in range(5):
                assert c.response().status == 200
        c.finish()
    assert targets(lines(5)) == ["/a.txt"] * 5


def test_excluded_status_of_a_cached_response_is_not_logged(logged):
    server, lines = logged(log_exclude=["2xx"])
    with server.connect() as c:
        for _ in range(5):
            c.ask("/a.txt")
        c.ask("/none")
        c.finish()
    assert targets(lines(1)) == ["/none"]


@pytest.mark.parametrize("target", ["/static/../a.txt", "/static/%2e%2e/a.txt", "//a.txt", "/%61.txt"])
def test_decoded_path_is_compared(logged, target):
    server, lines = logged(log_exclude=["/static/*", "/b.txt"])
    assert server.get(target).status == 200
    assert server.get("//%62.txt").status == 200
    assert server.get("/a.txt?last").status == 200
    assert targets(lines(2)) == [target, "/a.txt?last"]


def test_refused_request_has_no_path_but_a_status(logged):
    for exclude, logs in ((["*"], True), (["4xx"], False)):
        server, lines = logged(log_exclude=exclude, log_fields=["status"])
        with server.connect() as c:
            c.send(b"/\r\n\r\n")
            assert c.response().status == 400
            c.eof()
        if logs:
            assert lines(1) == ["400"]
    server.stop()
    assert lines(1) == ["400"]


# ---------------------------------------------------------------- messages


@pytest.fixture
def messages(tmp_path, site, free_port):
    """What a server says that warns, serves, is given a wrong configuration, and ends: (out, err)."""
    port = free_port()

    def run(journal=(), **top):
        conf = tmp_path / "p.conf"
        conf.write_text(harness.configuration({"listen": ["127.0.0.1:%d" % port], **top},
                                              [("s", {"root": site}, {})]))
        pairs = [socket.socketpair() for _ in range(2)]
        env = {**os.environ, "PAGEWISE_LANDLOCK": "1"}
        env.pop("JOURNAL_STREAM", None)
        if journal:
            stat = os.fstat(pairs[journal[0]][1].fileno())
            env["JOURNAL_STREAM"] = "%d:%d" % (stat.st_dev, stat.st_ino)
        process = subprocess.Popen([harness.PAGEWISE, "-c", conf, *(["--user", "root"] if os.geteuid() == 0 else [])],
                                   stdin=subprocess.DEVNULL, env=env, stdout=pairs[0][1], stderr=pairs[1][1])
        for ours, theirs in pairs:
            theirs.close()
            ours.settimeout(harness.PATIENCE)
        try:
            wait_until(lambda: answers(port), "an answer")
            conf.write_text("nonsense = 1\n")
            process.send_signal(signal.SIGHUP)
            texts = [""] * 2
            while "stays in use" not in texts[1]:
                texts[1] += pairs[1][0].recv(4096).decode()
            process.terminate()
            for n, (ours, _) in enumerate(pairs):
                texts[n] += b"".join(iter(lambda s=ours: s.recv(4096), b"")).decode()
            assert process.wait(harness.PATIENCE) == 0
        finally:
            process.kill()
            process.wait()
            for ours, _ in pairs:
                ours.close()
        for text in texts:
            harness.judge(text)
        return texts

    return run


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


def test_messages_without_a_journal_have_no_priorities(messages):
    out, err = messages()
    assert "pagewise: serving " in out and "pagewise: the old configuration stays in use\n" in err
    assert all(line.startswith("pagewise: ") for line in (out + err).splitlines())


def test_priorities_are_for_the_journal(messages):
    for both in ((0, 1), (1, 0)):
        texts = messages(journal=both[:1])
        there, elsewhere = texts[both[0]], texts[both[1]]
        assert there and elsewhere
        assert all(re.match(r"<[345]>pagewise: ", line) for line in there.splitlines()), there
        assert all(line.startswith("pagewise: ") for line in elsewhere.splitlines()), elsewhere


def test_error_notice_and_warning_differ(messages):
    out, _ = messages(journal=[0])
    _, err = messages(journal=[1])
    assert "<5>pagewise: serving " in out
    assert "<3>pagewise: " in err and ":1: nonsense: unknown key" in err
    assert "<3>pagewise: the old configuration stays in use\n" in err
    assert re.findall("^(.*)pagewise: warning: sandbox: ", err, re.M) == ["<4>"]


@pytest.mark.parametrize("level, notices, warnings", [
    ("notice", True, True), ("warning", False, True), ("error", False, False)])
def test_level_omits_less_severe_messages(messages, level, notices, warnings):
    out, err = messages(log_level=level)
    assert "stays in use" in err and "unknown key" in err
    assert ("serving" in out, "warning: " in err) == (notices, warnings)
