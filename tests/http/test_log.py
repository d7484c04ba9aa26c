"""The access log: one line for every request, which no client can forge."""

import calendar
import json
import os
import random
import re
import signal
import stat
import time

import pytest

import harness
import mounts
import http2
import tree as t
from harness import request, wait_until
from hot import Hot, needed
from http2 import LOGGED
from logs import LINE, JsonLog, Log, sent_bytes


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "access.log")


@pytest.fixture
def logged(serve, tree, log, send_path):
    return serve(
        "--root", tree.root, "--access-log", log.path, "--send-path", send_path, "--workers", "1"
    )


def test_one_line_for_every_request(logged, log, tree):
    plan = [
        ("GET", "/4097.bin", {}, 200),
        ("HEAD", "/4097.bin", {}, 200),
        ("GET", "/%d.bin" % t.LARGE, {}, 200),
        ("GET", "/4097.bin", {"Range": "bytes=0-99"}, 206),
        ("GET", "/4097.bin", {"Range": "bytes=0-99,200-209"}, 206),
        ("GET", "/4097.bin", {"If-None-Match": "*"}, 304),
        ("GET", "/0.bin", {}, 200),
        ("GET", "/nothing?q=1", {}, 404),
        ("GET", "/with-index", {}, 301),
        ("GET", "/empty/", {}, 403),
        ("POST", "/4097.bin", {}, 405),
    ]
    if not http2.ON:  # what says Connection: close is logged with that
        plan.append(("FOO", "/4097.bin", {}, 501))
    with logged.connect() as c:
        sent = []
        for method, target, fields, status in plan:
            if c is None:
                c = logged.connect()
            response = c.ask(target, method, fields=fields)
            assert response.status == status
            sent.append(response)
            if response.closes:
                c.eof()
                c = None
        if c:
            c.finish()
    for m, (method, target, _, status), response in zip(log.lines(len(plan)), plan, sent):
        assert m["line"] == "%s %s %s" % (method, target, LOGGED)
        assert int(m["status"]) == status
        assert int(m["body"]) == len(response.body)
        assert int(m["bytes"]) == len(response.raw) + len(response.body)
        assert int(m["wait"]) <= int(m["duration"])
        assert (m["referer"], m["agent"]) == ("-", "-")


@pytest.mark.http1("streams are logged as they end")
def test_pipelined_requests_are_logged_in_order(logged, log):
    targets = ["/%d.bin?%d" % (s, s) for s in t.SIZES] * 3
    with logged.connect() as c:
        c.send(b"".join(request(x) for x in targets))
        for _ in targets:
            c.response()
        c.finish()
    assert [m["line"].split()[1] for m in log.lines(len(targets))] == targets


def test_time_and_fields_are_those_of_the_request(logged, log):
    before = int(time.time())
    logged.get("/4097.bin", fields={"Referer": "http://a/b?c", "User-Agent": "curl/8 (x; y)"})
    (m,) = log.lines(1)
    assert (m["referer"], m["agent"]) == ("http://a/b?c", "curl/8 (x; y)")
    stamp, zone = m["time"].split()
    at = calendar.timegm(time.strptime(stamp, "%d/%b/%Y:%H:%M:%S"))
    at -= int(zone[0] + "1") * (int(zone[1:3]) * 3600 + int(zone[3:]) * 60)
    assert before - 1 <= at <= time.time() + 1


@pytest.mark.parametrize(
    "field, name", [("User-Agent", "agent"), ("Referer", "referer")]
)
def test_no_field_can_forge_a_line(logged, log, field, name):
    evil = 'x" 200 0 "-" "-" 1 1 1 \\n \\x41 \xff\x80\t"'
    response = logged.get("/4097.bin", fields={field: evil})
    assert response.status == 200
    (m,) = log.lines(1)
    expected = "".join(
        c if " " <= c <= "~" and c not in '"\\' else "\\x%02X" % ord(c) for c in evil
    )
    assert m[name] == expected


def test_target_cannot_forge_a_line(logged, log):
    target = '/%0d%0a127.0.0.1%20-%20-"x\\x22'
    assert logged.get(target).status == 404
    (m,) = log.lines(1)
    assert m["line"] == "GET %s %s" % (target.replace("\\", "\\x5C").replace('"', "\\x22"), LOGGED)


@pytest.mark.http1("refused heads of HTTP/1")
@pytest.mark.parametrize(
    "raw, status",
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nBad Name: y\r\n\r\n", 400),
        (b'GET /"\x01\xff HTTP/1.1\r\nHost: x\r\n\r\n', 400),
        (b"GET / HTTP/1.1\n127.0.0.1 - - forged\r\n\r\n", 400),
        (b'\x16\x03\x01"\n\n', 400),
        (request("/", version="2.0"), 505),
        (request("/", fields={"Transfer-Encoding": "gzip"}), 501),
        (request("/" + "a" * 9000), 414),
    ],
)
def test_refused_head_is_one_line_as_well(logged, log, raw, status):
    with logged.connect() as c:
        c.send(raw)
        response = c.response()
        assert response.status == status
        c.eof()
    (m,) = log.lines(1)
    assert int(m["status"]) == status
    assert int(m["bytes"]) == len(response.raw) + len(response.body)


def test_long_fields_are_cut(logged, log):
    logged.get("/4097.bin", fields={"User-Agent": "u" * 5000, "Referer": '"' * 3000})
    (m,) = log.lines(1)
    assert m["agent"] == "u" * 2048
    assert m["referer"] == "\\x22" * 2048


def test_aborted_download_is_logged_with_the_bytes_sent(logged, log):
    with logged.connect(rcvbuf=4096) as c:
        c.send(request("/huge.bin"))
        c.read_head()
        c.reset()
    (m,) = log.lines(1)
    assert m["status"] == "200"
    assert int(m["body"]) < t.HUGE
    assert int(m["body"]) < int(m["bytes"])


def test_connection_without_a_request_is_not_logged(logged, log):
    with logged.connect() as c:
        c.finish()
    logged.get("/1.bin")
    log.lines(1)


def test_sighup_opens_a_new_log_after_rotation(logged, log):
    old = Log(log.path.with_name("access.log.1"))
    logged.get("/1.bin?before")
    log.lines(1)
    os.rename(log.path, old.path)
    logged.get("/1.bin?between")
    old.lines(2)
    logged.reload()
    logged.get("/1.bin?after")
    assert "after" in log.lines(1)[0]["line"]
    assert [m["line"] for m in old.lines(2)] == [
        "GET /1.bin?before " + LOGGED,
        "GET /1.bin?between " + LOGGED,
    ]


def test_sighup_in_the_middle_of_a_download_changes_nothing(logged, log, tree):
    name = "/%d.bin" % t.LARGE
    with logged.connect(rcvbuf=4096) as c:
        c.send(request(name))
        head = c.read_head()
        logged.signal(signal.SIGHUP)
        c.read_body(head)
        assert head.body == tree.files[name]
        c.finish()
    log.lines(1)


def test_log_is_appended_to_and_not_world_readable(serve, tree, log):
    log.path.write_text("what was there\n")
    server = serve("--root", tree.root, "--access-log", log.path)
    server.get("/1.bin")
    server.stop()
    lines = log.text().splitlines(keepends=True)
    assert lines[0] == "what was there\n"
    assert LINE.fullmatch(lines[1]) and len(lines) == 2


def test_new_log_is_private(serve, tree, log):
    serve("--root", tree.root, "--access-log", log.path).get("/1.bin")
    assert stat.S_IMODE(log.path.stat().st_mode) & 0o027 == 0


# ---------------------------------------------------------------------- JSON

@pytest.fixture
def json_log(tmp_path):
    return JsonLog(tmp_path / "json.log")


@pytest.fixture
def json_logged(serve, tree, json_log):
    return serve("--root", tree.root, "--access-log", json_log.path, "--log-format", "json",
                 "--workers", "1")


def test_every_kind_of_response_has_every_field(serve, tree, json_log):
    """From a file, from memory, by itself and behind another one, a part, a head alone, an error."""
    server = serve("--root", tree.root, "--access-log", json_log.path, "--log-format", "json",
                   "--workers", "1", "--hot-set", "1M", "--admin", "127.0.0.1:0")
    hot = Hot(server)
    fields = {"User-Agent": "curl/8", "Referer": "http://a/"}
    page, answers = "/4097.bin", []
    plan = [("GET", "/%d.bin" % t.LARGE, 200), ("HEAD", page, 200), ("GET", "/none", 404),
            ("GET", "/with-index", 301), ("POST", page, 405)]

    def ask(c, method, target, status):
        answers.append(c.ask(target, method, fields=fields))
        assert answers[-1].status == status
        return hot.count()

    with server.connect() as c:
        for row in plan:
            ask(c, *row)
        plan.append(("GET", page, 200))
        needed()
        while ask(c, *plan[-1]) == 0:
            plan.append(plan[-1])
        c.send(request(page, fields=fields) * 3)
        answers += [c.response() for _ in range(3)]
        plan += plan[-1:] * 3
        c.finish()
    assert hot.count() >= 3
    for line, (method, target, status), answer in zip(json_log.objects(len(plan)), plan, answers):
        assert line == {
            "time": line["time"], "remote": "127.0.0.1", "user": None, "method": method, "target": target,
            "protocol": LOGGED, "status": status, "bytes": len(answer.raw) + len(answer.body),
            "body_bytes": len(answer.body), "referer": "http://a/", "user_agent": "curl/8",
            "host": "localhost", "duration_us": line["duration_us"], "disk_wait_us": line["disk_wait_us"]}
        assert line["time"] and 0 <= line["disk_wait_us"] <= line["duration_us"]


def test_json_line_describes_the_request(json_logged, json_log):
    before = int(time.time())
    response = json_logged.get("/4097.bin?q", fields={"User-Agent": "curl/8"}, host="a.example:1")
    (line,) = json_log.objects(1)
    at = calendar.timegm(time.strptime(line.pop("time"), "%Y-%m-%dT%H:%M:%SZ"))
    assert before - 1 <= at <= time.time() + 1
    assert 0 <= line.pop("disk_wait_us") <= line.pop("duration_us")
    assert line == {
        "remote": "127.0.0.1", "user": None, "method": "GET", "target": "/4097.bin?q", "protocol": LOGGED,
        "status": 200, "bytes": len(response.raw) + 4097, "body_bytes": 4097, "referer": None,
        "user_agent": "curl/8", "host": "a.example:1",
    }


def test_json_of_hostile_fields_keeps_their_bytes(json_logged, json_log):
    """Every byte that the server lets through, in any order."""
    rng = random.Random(4)
    allowed = [9, *range(0x20, 0x7F), *range(0x80, 0x100)]
    values = [bytes(rng.choices(allowed, k=rng.randrange(300))).strip(b" \t") for _ in range(200)]
    values += ["\u00e9\u2028\U0001f600\x85".encode(), b'"}\\n{"status":200}\\', b"\\x41\\u0041",
               b"\xed\xa0\x80\xc0\x80\xf5", bytes(range(0x80, 0x100))]
    with json_logged.connect() as c:
        for value in values:
            c.send(b"GET /1.bin HTTP/1.1\r\nHost: x\r\nReferer: r\r\nUser-Agent: " + value +
                   b"\r\n\r\n")
            assert c.response().status == 200
        c.finish()
    for line, value in zip(json_log.objects(len(values)), values):
        assert sent_bytes(line["user_agent"]) == value
        assert (line["referer"], line["status"]) == ("r", 200)


@pytest.mark.parametrize(
    "raw, line",
    [
        (b'GET /"\x01\xff HTTP/1.1\r\nHost: x\r\n\r\n', (b"GET", b'/"\x01\xff', b"HTTP/1.1")),
        (b"GET / HTTP/1.1\n{}\r\n\r\n", (b"GET", b"/", b"HTTP/1.1")),
        (b'\x16\x03\x01"}\n\n', (None, b'\x16\x03\x01"}', None)),
        (b"\xc3\xa9 \x80\r\n\r\n", (None, b"\xc3\xa9 \x80", None)),
    ],
)
def test_json_of_a_refused_line_keeps_its_bytes(json_logged, json_log, raw, line):
    with json_logged.connect() as c:
        c.send(raw)
        assert c.response().status == 400
        c.eof()
    (x,) = json_log.objects(1)
    values = [x["method"], x["target"], x["protocol"]]
    assert tuple(v if v is None else sent_bytes(v) for v in values) == line


def test_json_of_a_refused_line_in_three_long_parts(json_logged, json_log):
    parts = [b"\x01" * 1364] * 3
    with json_logged.connect() as c:
        c.send(b" ".join(parts))
        assert c.response().status == 400
        c.eof()
    (x,) = json_log.objects(1)
    assert [sent_bytes(x[key]) for key in ("method", "target", "protocol")] == parts
    assert json_logged.get("/4097.bin").status == 200


def test_json_of_long_fields_is_cut(json_logged, json_log):
    json_logged.get("/4097.bin", fields={"User-Agent": "\xc3" * 5000, "Referer": '"' * 3000})
    (x,) = json_log.objects(1)
    assert sent_bytes(x["user_agent"]) == b"\xc3" * 2048
    assert x["referer"] == '"' * 2048


def test_everything_is_in_the_log_after_the_end(serve, tree, log):
    server = serve("--root", tree.root, "--access-log", log.path, "--workers", "2")
    connections = [server.connect() for _ in range(20)]
    for c in connections:
        c.send(request("/1.bin") * 50)
        for _ in range(50):
            c.response()
        c.finish()
    server.stop()
    assert log.text().count("\n") == 1000
    log.lines(1000)


def test_log_on_stdout(tree):
    server = harness.Server("--root", tree.root, "--access-log", "-")
    try:
        server.start()
        server.get("/1.bin?stdout")
        wait_until(lambda: "?stdout" in server.output, "the line on stdout")
        (line,) = [x for x in server.output.splitlines(keepends=True) if "?stdout" in x]
        assert LINE.fullmatch(line)
    finally:
        # Notices, the serving line among them, go to stderr then.
        server.stop(messages=r"(pagewise: [^\n]*\n)*")


def test_log_that_cannot_be_written_does_not_stop_the_server(serve, tree):
    """/dev/full: every write fails, and the loss is reported."""
    server = serve("--root", tree.root, "--access-log", "/dev/full")
    for _ in range(5):
        assert server.get("/1.bin").status == 200
    server.stop(messages=r"(pagewise: access log: [0-9]+ records lost[^\n]*\n)+")


def test_log_without_a_reader_does_not_stop_the_server(serve, tree, tmp_path):
    """A FIFO that is full: records are dropped, counted, and reported."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        server = serve("--root", tree.root, "--access-log", path, "--workers", "1")
        agent = "a" * 2000
        with server.connect() as c:
            for _ in range(200):
                c.send(request("/1.bin", fields={"User-Agent": agent}) * 10)
                for _ in range(10):
                    assert c.response().status == 200
            c.finish()
        server.stop(messages=r"(pagewise: access log: [0-9]+ records lost[^\n]*\n)+")
    finally:
        os.close(reader)


@pytest.fixture
def little(tmp_path):
    """A disk of 64 KiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    path = tmp_path / "little"
    path.mkdir()
    mounts.run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", os.fspath(path))
    yield path
    mounts.run("umount", os.fspath(path))


def targets(path):
    """Of a log that is JSON to its last byte."""
    text = path.read_bytes()
    assert text.endswith(b"\n")
    return [json.loads(line)["target"] for line in text.splitlines()]


def test_on_a_full_disk_every_line_is_whole(serve, tree, little):
    log, rest = little / "access.log", little / "rest"
    rest.write_bytes(b"x" * (60 << 10))
    server = serve("--root", tree.root, "--access-log", log, "--log-format", "json",
                   drops=True)
    with server.connect() as c:
        for n in range(40):
            c.ask("/4097.bin?%d" % n)
        wait_until(lambda: "No space left on device" in server.messages, "a full disk")
        full = targets(log)
        assert 0 < len(full) < 40
        rest.unlink()
        c.ask("/4097.bin?again")
    wait_until(lambda: re.search(rb"again[^\n]*\n$", log.read_bytes()), "a line behind them")
    assert targets(log)[: len(full)] == full
    server.stop(messages=True)
