"""Judges of HTTP/1.1 from PyPI: REDbot, httplint, h11, HTTPX.  installed() first."""

import concurrent.futures
import json
import os
import socket
import subprocess
import sys

from verdict import Absent, Verdict

HERE = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = ("redbot==2.7.1", "httplint==2026.10.4", "h11==0.16.0", "httpx==0.28.1")
PATIENCE = 60  # seconds for one URL
FILES = {"/index.html": 400, "/a.html": 5000, "/a.css": 3000, "/a.js": 3000, "/a.txt": 70000, "/empty.txt": 0,
         "/a.json": 200, "/a.svg": 900, "/a.png": 4000, "/a.pdf": 40000, "/big.bin": 3000000, "/a.gif": 3000,
         "/sp%20ace.txt": 100, "/no-extension": 100, "/.well-known/x.txt": 100, "/dir/a.html": 100,
         "/dir/b.txt": 100}
SIGNATURES = {".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-1.7\n", ".gif": b"GIF89a"}
COMPRESSED = ("/a.html", "/a.css", "/a.js", "/a.txt")
OTHERS = ("/", "/dir/", "/dir", "/none", "/dir/none", "/.hidden", "/%00", "/..%2fetc/passwd", "/old", "/a.html?q=1")
TARGETS = (*FILES, *OTHERS)
FIELDS = (
    (), ("Accept-Encoding: gzip",), ("Accept-Encoding: br, gzip;q=0.5",), ("Range: bytes=0-9",), ("Range: bytes=-5",),
    ("Range: bytes=0-1,3-4",), ("Range: bytes=99999999-",), ("If-None-Match: *",), ("If-Match: \"none\"",),
    ("If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT",), ("If-Unmodified-Since: Thu, 01 Jan 1998 00:00:00 GMT",),
    ("Expect: 100-continue", "Content-Length: 0"), ("Connection: close",),
)
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "TRACE", "BREW")


def installed(place, requirements):
    """Puts the packages into the directory and returns it.  Raises Absent where pip cannot."""
    os.makedirs(place, exist_ok=True)
    stamp = os.path.join(place, "installed.txt")
    text = "\n".join(requirements)
    if not os.path.exists(stamp) or open(stamp, encoding="utf-8").read() != text:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "--root-user-action", "ignore", "--upgrade", "--target", place, *requirements],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise Absent("pip cannot install it: " + (done.stdout.strip().splitlines() or ["no message"])[-1])
        with open(stamp, "w", encoding="utf-8") as f:
            f.write(text)
    return place


def version(requirement):
    return requirement.partition("==")[2]


def send(address, method, target, fields=(), closes=False):
    """The bytes of all responses to one request, until the server closes the connection."""
    lines = ["%s %s HTTP/1.1" % (method, target), "Host: localhost:%d" % address[1], *fields]
    lines += ["Connection: close"] if not closes and "Connection: close" not in fields else []
    with socket.create_connection(address, PATIENCE) as s:
        s.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return b"".join(iter(lambda: s.recv(1 << 18), b""))


def redbot(address, place):
    """Notes of the levels bad and warning differ."""
    env = dict(os.environ, PYTHONPATH=place)

    def notes(target):
        done = subprocess.run(
            [sys.executable, os.path.join(HERE, "redbot_notes.py"), "http://127.0.0.1:%d%s" % (address[1], target)],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
        if done.returncode != 0:
            return ["%s: REDbot failed" % target]
        said = [json.loads(text) for text in done.stdout.splitlines()]
        return ["%s: %s" % (target, summary) for level, _, summary in said if level in ("BAD", "WARN")]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(notes, TARGETS))
    return Verdict("REDbot " + version(REQUIREMENTS[0]), len(TARGETS), sum(not one for one in found), "URLs",
                   sum(found, []))


def httplint(address, place):
    """Lints the raw responses to every method and field of the table.  REDbot checks the clock."""
    env, found, cases = dict(os.environ, PYTHONPATH=place), [], 0
    program = os.path.join(place, "bin", "httplint")
    for target in ("/a.html", "/dir/", "/dir", "/none", "/old"):
        for method, fields in [(m, ()) for m in METHODS] + [("GET", f) for f in FIELDS[1:]]:
            raw = send(address, method, target, fields)
            while raw.startswith(b"HTTP/1.1 100 "):
                raw = raw.partition(b"\r\n\r\n")[2]
            done = subprocess.run([sys.executable, program], input=raw, env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
            name = "%s %s %s" % (method, target, "; ".join(fields))
            cases += 1
            said = done.stdout.decode(errors="replace")
            notes = [text[7:].strip() for text in said.splitlines() if text.startswith(("* [BAD]", "* [WARN]"))]
            notes += ["httplint failed: " + said.strip()[-200:]] * (done.returncode != 0)
            found.append(["%s: %s" % (name, text) for text in notes])
    return Verdict("httplint " + version(REQUIREMENTS[1]), cases, sum(not one for one in found), "responses",
                   sum(found, []))


def h11(address, place):
    """h11's state machine accepts each response, and then the end of the connection."""
    sys.path.insert(0, place)
    import h11 as library

    found, cases = [], 0
    for target in TARGETS:
        for method, fields in [(m, ()) for m in METHODS] + [("GET", f) for f in FIELDS[1:]]:
            raw, cases = send(address, method, target, fields), cases + 1
            client = library.Connection(library.CLIENT)
            headers = [("Host", "localhost"), ("Connection", "close")]
            headers += [tuple(f.split(": ", 1)) for f in fields if not f.startswith("Connection")]
            try:
                client.send(library.Request(method=method, target="/", headers=headers))
                client.send(library.EndOfMessage())
                client.receive_data(raw)
                client.receive_data(b"")
                while type(client.next_event()) is not library.ConnectionClosed:
                    pass
            except library.ProtocolError as error:
                found.append("%s %s %s: %s" % (method, target, "; ".join(fields), error))
    return Verdict("h11 " + version(REQUIREMENTS[2]), cases, cases - len(found), "responses", found)


def httpx(address, place, root):
    """HTTPX decodes and follows: each file has its bytes, also from a part and from a coding."""
    sys.path.insert(0, place)
    import httpx as library

    found, cases = [], 0
    with library.Client(base_url="http://127.0.0.1:%d" % address[1], follow_redirects=True, timeout=PATIENCE) as client:
        for target in FILES:
            with open(os.path.join(root, target[1:].replace("%20", " ")), "rb") as f:
                content = f.read()
            for fields, part in (({}, content), ({"Accept-Encoding": "gzip"}, content),
                                 ({"Range": "bytes=0-99", "Accept-Encoding": "identity"}, content[:100])):
                cases += 1
                got = client.get(target, headers=fields)
                if got.content != part:
                    found.append("%s %s: status %d and other bytes" % (target, fields, got.status_code))
        for target, end in (("/dir", "/dir/"), ("/old", "/a.html")):
            cases += 1
            got = client.get(target)
            if got.status_code != 200 or got.url.path != end:
                found.append("%s: leads to %s, status %d" % (target, got.url, got.status_code))
    return Verdict("HTTPX " + version(REQUIREMENTS[3]), cases, cases - len(found), "responses", found)
