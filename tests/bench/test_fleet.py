"""conf/haproxy: HAProxy in front of pagewise, as these files are shipped but for their addresses."""

import contextlib
import http.client
import json
import re
import socket
import subprocess
import tempfile
import urllib.parse

import pytest

import harness
from harness import Finished, wait_until
from laboratory.fleet import balancer
from laboratory.undo import Undo

pytestmark = [
    pytest.mark.needs("haproxy"),
    pytest.mark.plain("HAProxy asks the nodes without TLS"),
    pytest.mark.http1("HAProxy asks the nodes by HTTP/1"),
    pytest.mark.once,
]
NODES = 4
CLIENT = "127.0.0.5"
PATHS = [f"/f{i}" for i in range(40)]
BIG = [f"/big{i}" for i in range(16)]
KEY = "k" * 32


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Fleet:
    def __init__(self, servers, logs, balancer_of):
        self.servers, self.logs, self.balancer_of = servers, logs, balancer_of

    def nodes(self):
        return [balancer.Address("127.0.0.1:%d" % plain, "127.0.0.1:%d" % proxied, free_port())
                for plain, proxied in map(ports, self.servers)]

    def home(self, path):
        """The node that has it: where the redirect leads."""
        answer = self.ask(path)
        assert answer.status == 302, answer
        return urllib.parse.urlsplit(answer.headers["location"]).port

    def ask(self, target, address=None):
        """Not by the harness' client: HAProxy's redirect has no Date."""
        c = http.client.HTTPConnection(*(address or self.address), timeout=harness.PATIENCE,
                                       source_address=(CLIENT, 0))
        with contextlib.closing(c):
            c.request("GET", target, headers={"Host": "files.example.org"})
            answer = c.getresponse()
            answer.body = answer.read()
            return answer

    def get(self, target):
        """As a client that follows a redirect."""
        answer = self.ask(target)
        if answer.status != 302:
            return answer
        to = urllib.parse.urlsplit(answer.headers["location"])
        return self.ask(to.path + ("?" + to.query if to.query else ""), (to.hostname, to.port))

    def asked(self):
        """Lines of the nodes' logs."""
        lines = [json.loads(line) for log in self.logs for line in log.read_text().splitlines()]
        return [line for line in lines if line["target"] != "/ready"]


def ports(server):
    """Without a PROXY header, and with one."""
    return [int(port) for port in re.findall(r"http://127\.0\.0\.1:(\d+)/", server.output)]


@pytest.fixture
def fleet(serve_conf, tmp_path):
    site = tmp_path / "site"
    (site / "v").mkdir(parents=True)
    for path in PATHS:
        (site / path[1:]).write_text("text of " + path)
    for path in BIG:
        with open(site / path[1:], "wb") as big:
            big.truncate(64 << 20)
    (site / "v" / "a").write_text("for who has a link")
    keys = tmp_path / "keys"
    keys.write_text(KEY + "\n")
    keys.chmod(0o600)
    logs = [tmp_path / f"log{i}" for i in range(NODES)]
    top = {"workers": 1, "log_format": "json", "ready": "/ready", "trusted_proxies": ["127.0.0.1"],
           "listen": ["127.0.0.1:0", "127.0.0.1:0 proxy"]}
    servers = [serve_conf({**top, "access_log": log},
                          [("s", {"root": site}, {"/v/": {"signed_links": keys}})]) for log in logs]
    with Undo() as undo, tempfile.TemporaryDirectory(prefix="fleet-") as short:
        def start(mode, edit=lambda text: text):
            made = Fleet(servers, logs, None)
            port = free_port()
            made.address = ("127.0.0.1", port)
            made.keys = keys
            made.balancer = balancer.Balancer(mode, made.nodes(), "127.0.0.1:%d" % port,
                                              short, edit).start(undo)
            made.balancer.all_up()
            return made
        yield start


@pytest.mark.parametrize("mode", balancer.MODES)
def test_shipped_configuration_is_valid(mode, tmp_path):
    """All of it, with the places of an installed HAProxy, but for the map, which has to be there."""
    (tmp_path / "map").write_text("")
    conf = tmp_path / "conf"
    conf.write_text(balancer.shipped(mode).replace("/etc/haproxy/popular.map", str(tmp_path / "map")))
    done = subprocess.run(["haproxy", "-c", "-f", str(conf)], check=False, capture_output=True, text=True,
                          timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower()


def unbounded(text):
    """A request that HAProxy has not quite ended counts as open, and the next one of its node moves on."""
    return re.sub(r"^    hash-balance-factor .*\n", "", text, flags=re.M)


@pytest.mark.parametrize("mode", balancer.MODES)
def test_each_path_has_its_node_and_the_clients_address_is_known(fleet, mode):
    f = fleet(mode, unbounded)
    for _ in range(2):
        for path in PATHS:
            answer = f.get(path)
            assert (answer.status, answer.body) == (200, b"text of " + path.encode())
    wait_until(lambda: len(f.asked()) == 2 * len(PATHS), "the lines")
    assert {line["remote"] for line in f.asked()} == {CLIENT}
    for log in f.logs:  # both times from the same node, and none has all
        names = [json.loads(line)["target"] for line in log.read_text().splitlines()]
        names = [name for name in names if name != "/ready"]
        assert len(names) == 2 * len(set(names)) < 2 * len(PATHS)


@pytest.mark.parametrize("mode", balancer.MODES)
def test_signed_link_works_through_the_balancer(fleet, mode):
    f = fleet(mode)
    assert f.get("/v/a").status == 403
    made = Finished("sign", "--key", str(f.keys), "--expires", "1h", "--client", CLIENT,
                    "https://files.example.org/v/a")
    assert made.code == 0, made.err
    link = made.out.strip().removeprefix("https://files.example.org")
    answer = f.get(link)
    assert (answer.status, answer.body) == (200, b"for who has a link")
    assert f.get(link[:-1] + ("A" if link[-1] != "A" else "B")).status == 403


@pytest.mark.parametrize("mode", balancer.MODES)
def test_only_the_paths_of_a_killed_node_move(fleet, mode):
    f = fleet(mode)
    if mode == "redirect":
        before = {path: f.home(path) for path in PATHS}
    lost = ports(f.servers[0])[0]
    f.servers[0].discard()
    if mode == "proxy":  # also before the balancer has noticed
        for path in PATHS:
            assert f.get(path).body == b"text of " + path.encode()
        return
    f.balancer.until(lambda: f.balancer.states()["n1"] == "DOWN", "n1 down")
    after = {path: f.home(path) for path in PATHS}
    assert {path for path in PATHS if before[path] != after[path]} == {
        path for path in PATHS if before[path] == lost} != set()


def test_killed_node_of_two_is_hidden_while_the_other_is_busy(fleet):
    """hash-balance-factor lets HAProxy skip the busy node, so retries need the dead one marked down."""
    def two_without_checks(text):
        text = balancer.exactly(r"fall 2", "fall 1000", text, 1)
        return balancer.exactly(r"^    server n[34] .*\n", "", text, 2)

    f = fleet("proxy", two_without_checks)
    f.servers[0].discard()
    with contextlib.ExitStack() as held:
        for path in BIG:  # no client reads the rest, so the other node stays busy
            s = held.enter_context(socket.create_connection(f.address, harness.PATIENCE, (CLIENT, 0)))
            s.sendall(b"GET %s HTTP/1.1\r\nHost: files.example.org\r\n\r\n" % path.encode())
            assert s.recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 200"


def test_popular_paths_come_from_every_node(fleet):
    f = fleet("redirect")
    assert len({f.home(PATHS[0]) for _ in range(2 * NODES)}) == 1
    f.balancer.spread([PATHS[0]])
    assert len({f.home(PATHS[0]) for _ in range(2 * NODES)}) == NODES
    assert len({f.home(PATHS[1]) for _ in range(2 * NODES)}) == 1
    f.balancer.spread([])
    assert len({f.home(PATHS[0]) for _ in range(2 * NODES)}) == 1


def test_absolute_form_of_a_target_has_the_same_node(fleet):
    """Its absolute form, which is also that of HTTP/2 in HAProxy."""
    f = fleet("redirect")
    for path in PATHS[:8]:
        assert {f.ask(path).headers["location"], f.ask("http://files.example.org" + path).headers["location"]} == {
            f.ask(path).headers["location"]}
