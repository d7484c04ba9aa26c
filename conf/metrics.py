#!/usr/bin/env python3
"""Writes into docs/reference/metrics.md what each metric is, as the server itself says in # HELP.

    metrics.py [--check] PAGEWISE

A row of its tables is the name with the labels, the text of HELP, and what a reader has to know or do in
addition.  The first two are written from /metrics of a server that has every metric; the third is written
by hand.  A metric without a row, or a row without a metric, is an error.  --check writes nothing, and ends
with 1 if the page would change.  Needs openssl(1) for a certificate.
"""

import argparse
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/reference/metrics.md"
ROW = re.compile(r"^\| `((?:pagewise|process)_\w+)(?:\{[\w,]*\})?` \| (.*?) ?\| (.*?) ?\|$", re.M)
CONF = """listen = {"unix:%(dir)s/http", "127.0.0.1:0 tls"}
admin = "%(dir)s/admin"
agent = "127.0.0.1:0"
certificate = "%(dir)s/pem"
popular = 1
tier = "%(dir)s/tier"
tier_size = 64M
%(user)ssite "a" { root = "%(dir)s/www" request_rate = "9/s" }
"""


def ask(path, target):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % target)
        text = b"".join(iter(lambda: s.recv(65536), b""))
    return text.decode().partition("\r\n\r\n")[2]


def metrics_of(pagewise):
    """The text of /metrics, after a request for a file."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        os.mkdir(directory + "/tier")
        os.mkdir(directory + "/www")
        pathlib.Path(directory, "www", "cert").write_text("a", encoding="ascii")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=a", "-addext", "subjectAltName=DNS:a", "-days", "90", "-keyout", directory + "/pem",
                        "-out", directory + "/cert"], check=True, capture_output=True)
        with open(directory + "/pem", "a", encoding="ascii") as f:
            f.write(pathlib.Path(directory, "cert").read_text(encoding="ascii"))
        conf = CONF % {"dir": directory, "user": 'user = "root"\n' if os.geteuid() == 0 else ""}
        pathlib.Path(directory, "conf").write_text(conf, encoding="utf-8")
        with subprocess.Popen([pagewise, "-c", directory + "/conf"], stdout=subprocess.DEVNULL) as server:
            for _ in range(600):
                with contextlib.suppress(OSError):
                    ask(directory + "/http", b"/cert")
                    break
                time.sleep(0.05)
            text = ask(directory + "/admin", b"/metrics")
            server.terminate()
        return text


def cells(metrics):
    """{name: the first two cells of its row}"""
    labels = {}
    for name, inside in re.findall(r"^(\w+?)(?:_bucket|_sum|_count)?\{(.*)\} \S+$", metrics, re.M):
        labels.setdefault(name, {}).update(dict.fromkeys(re.findall(r'(\w+)="', inside)))
    found = {}
    for name, text in re.findall(r"^# HELP (\w+) (.+)$", metrics, re.M):
        names = ",".join(label for label in labels.get(name, ()) if label not in ("le", "mount"))
        found[name] = "`%s%s` | %s" % (name, "{%s}" % names if names else "", text.replace("|", "\\|"))
    return found


def main():
    parser = argparse.ArgumentParser(description="Writes what each metric is into docs/reference/metrics.md.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("pagewise")
    options = parser.parse_args()
    known = cells(metrics_of(options.pagewise))
    page = PAGE.read_text(encoding="utf-8")
    rows = [name for name, _, _ in ROW.findall(page)]
    wrong = sorted(set(rows) ^ set(known)) + sorted({name for name in rows if rows.count(name) > 1})
    if wrong:
        sys.exit("metrics.py: not in one row of %s and in the server: %s" % (PAGE.name, ", ".join(wrong)))
    text = ROW.sub(lambda row: "| %s | %s |" % (known[row[1]], row[3]), page)
    if text != page and options.check:
        sys.exit("stale: %s: run make metrics" % PAGE.name)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
