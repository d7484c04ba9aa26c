"""conf/prometheus and conf/grafana: a real Prometheus scrapes two nodes, and each expression has data."""

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.parse

import pytest

import harness
import tls
from admin import ADMIN
from harness import wait_until

pytestmark = [
    pytest.mark.plain("the listener here has TLS of its own"),
    pytest.mark.http1("it is about the metrics"),
    pytest.mark.once,
]
RULES = os.path.join(harness.TREE, "conf", "prometheus", "rules.yml")
DASHBOARD = os.path.join(harness.TREE, "conf", "grafana", "pagewise.json")
HERE = os.path.dirname(os.path.abspath(__file__))
NAME = re.compile(r"\b(?:pagewise|process)_[a-z0-9_]+|\bpagewise:[a-z0-9_:]+")
CONF = """global:
  scrape_interval: 200ms
  evaluation_interval: 200ms
rule_files: [%s]
scrape_configs:
  - job_name: pagewise
    static_configs:
      - targets: [%s]
"""


def rules():
    """(record or alert, expression) of each rule; the file has no other blocks of text."""
    found, text = [], open(RULES, encoding="utf-8").read()
    for part in re.split(r"^      - (?=record:|alert:)", text, flags=re.M)[1:]:
        kind, name = re.match(r"(record|alert): (\S+)", part).groups()
        one = re.search(r"^        expr: (?:\|\n((?:          .*\n)+)|(.*)$)", part, re.M)
        found.append((kind, name, " ".join((one[1] or one[2]).split())))
    return found


def dashboard():
    with open(DASHBOARD, encoding="utf-8") as f:
        text = json.load(f)
    return [target["expr"] for panel in text["panels"] for target in panel["targets"]]


def of_an_alert(expr):
    """What is compared: the comparison itself has data only while something is wrong."""
    for part in re.split(r" unless on \([^)]*\) ", expr):
        left, n = re.subn(r" ([<>]|==) [0-9. *]+$", "", part)
        assert n == 1, expr
        yield left


def expressions():
    for kind, name, expr in rules():
        yield from [name] if kind == "record" else of_an_alert(expr)
    for expr in dashboard():
        yield (expr.replace("$job", ".*").replace("$instance", ".*").replace("$__rate_interval", "5m"))


@pytest.mark.needs("promtool")
def test_rules_are_valid_and_alert_as_expected(tmp_path):
    shutil.copy(RULES, tmp_path)
    shutil.copy(os.path.join(HERE, "rules.test.yml"), tmp_path)
    for words in (("check", "rules", "rules.yml"), ("test", "rules", "rules.test.yml")):
        done = subprocess.run(["promtool", *words], cwd=tmp_path, check=False, capture_output=True,
                              text=True, timeout=harness.PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr


def test_metrics_of_rules_and_dashboard_are_in_the_manual():
    with open(os.path.join(harness.TREE, "docs", "reference", "metrics.md"), encoding="utf-8") as f:
        known = set(re.findall(r"`((?:pagewise|process)_[a-z0-9_]+)(?:\{[a-z,_]*\})?`", f.read()))
    recorded = {name for kind, name, _ in rules() if kind == "record"}
    used = {name for expr in [*dashboard(), *(expr for _, _, expr in rules())] for name in NAME.findall(expr)}
    assert len(used) > 15
    for name in used:
        assert name in recorded or re.sub(r"_bucket$", "", name) in known, name


class Prometheus:
    def __init__(self, port):
        self.port = port

    def data(self, expr):
        """How many series; None while it does not answer."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.PATIENCE)
        try:
            c.request("GET", "/api/v1/query?" + urllib.parse.urlencode({"query": expr}))
            response = c.getresponse()
            if response.status == 503:  # it is starting
                return None
            answer = json.load(response)
        except ConnectionError:
            return None
        finally:
            c.close()
        assert answer["status"] == "success", (expr, answer)
        return len([r for r in answer["data"]["result"] if r["value"][1] != "NaN"])


@pytest.fixture
def prometheus(tmp_path):
    started = []

    def start(targets):
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        conf = tmp_path / "prometheus.yml"
        conf.write_text(CONF % (RULES, ", ".join('"%s"' % t for t in targets)))
        with open(tmp_path / "prometheus.log", "wb") as log:
            started.append(subprocess.Popen(
                ["prometheus", "--config.file", str(conf), "--storage.tsdb.path", str(tmp_path / "data"),
                 "--web.listen-address", "127.0.0.1:%d" % port], stdout=log, stderr=log))
        made = Prometheus(port)
        wait_until(lambda: made.data("vector(1)"), "Prometheus")
        return made

    yield start
    for process in started:
        process.terminate()
        process.wait(harness.PATIENCE)


def evict(path):
    """Out of the page cache, so that a disk is asked."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


@pytest.mark.needs("prometheus")
@pytest.mark.slow
def test_each_expression_has_data(serve_conf, tmp_path, prometheus, release):
    site = tmp_path / "site"
    site.mkdir()
    (site / "a").write_bytes(bytes(1 << 20))
    tiers = [tmp_path / name for name in ("tier", "tier2")]
    for tier in tiers:
        tier.mkdir()
    servers = [serve_conf({"workers": 1, "listen": ["127.0.0.1:0", "127.0.0.1:0 tls"], "admin": "127.0.0.1:0",
                           "tier": tier, "tier_size": "64M",
                           "agent": "127.0.0.1:0", "certificate": [tls.PAIRS.for_user(None)]},
                          [("s", {"root": site}, {})], binary=release) for tier in tiers]
    p = prometheus([ADMIN.search(s.output)[1].removeprefix("http://").rstrip("/") for s in servers])
    missing = list(dict.fromkeys(expressions()))
    assert len(missing) > 25

    def all_of_them():
        for server in servers:
            evict(site / "a")
            assert server.get("/a").status == 200
            with server.connect() as c:
                assert c.ask("/a", fields=[("Transfer-Encoding", "gzip")]).status == 501
        missing[:] = [expr for expr in missing if not p.data(expr)]
        return not missing

    try:
        wait_until(all_of_them, "data", pause=0.3)
    except AssertionError:
        pytest.fail("no data: %s" % missing)
