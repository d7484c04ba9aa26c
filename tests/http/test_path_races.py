"""Names that change while they are looked up: what is outside is never sent.

Another process exchanges links, files and directories as fast as it can.  Whatever
the server makes of it (the file inside, 403, 404, 503), the secret is in no answer.
"""

import os
import threading
import time
from collections import Counter

import pytest

import tree as t
from harness import request, wait_until
from responses import ProtocolError
from swapper import Swapper

SECONDS = 1.5
CLIENTS = 2
ALLOWED = {200, 206, 301, 304, 403, 404, 503}
# More names than files are kept open: so each request is a lookup.
NAMES = 400
LINKS = {"f": "f", "sub": "sub", "dir": "dir", "deep": "moved/deep", "g": "g"}
INSIDE = b"what is inside\n"


@pytest.fixture
def places(site, tmp_path):
    """Pairs to exchange.

    f, sub, dir/index.html: what is inside, and a link that leads outside.
    g: a file and a FIFO, which is never opened: nobody would ever write to it.
    moved/deep: goes to another place outside and comes back; from there its links
    with ".." lead to the secret.
    """
    outside = tmp_path / "outside"
    for path in [site / "sub", site / "dir", site / "moved" / "deep", outside / "far" / "other"]:
        path.mkdir(parents=True)
    for path in [outside / "secret.txt", outside / t.CANARY.decode(), outside / "index.html"]:
        path.write_bytes(t.CANARY)
    os.mkfifo(site / "g-fifo")
    for path in [site / "f", site / "g", site / "secret.txt", site / "sub" / "secret.txt", site / "dir" / "index.html",
                 site / "moved" / "deep" / "page"]:
        path.write_bytes(INSIDE)
    (site / "f-link").symlink_to("../outside/secret.txt")
    (site / "sub-link").symlink_to(outside)
    (site / "dir" / "link").symlink_to("../../outside/index.html")
    (site / "moved" / "deep" / "up").symlink_to("../../secret.txt")
    (site / "moved" / "deep" / "up-dir").symlink_to("../..")
    for i in range(NAMES):
        for name, to in LINKS.items():
            (site / ("%s%d" % (name, i))).symlink_to(to)
    return [(site / "f", site / "f-link"), (site / "g", site / "g-fifo"), (site / "sub", site / "sub-link"),
            (site / "dir" / "index.html", site / "dir" / "link"),
            (site / "moved" / "deep", outside / "far" / "other")]


TARGETS = ["/f", "/f-link", "/g", "/g-fifo", "/sub/secret.txt", "/sub-link/secret.txt", "/sub/", "/sub-link/", "/sub",
           "/dir/", "/dir/link", "/moved/deep/up", "/moved/deep/up-dir/secret.txt", "/moved/deep/up-dir/",
           "/moved/deep/page", "/moved/deep/"]
TARGETS += ["/" + name % i for i in range(NAMES) for name in
            ("f%d", "g%d", "sub%d/secret.txt", "dir%d/", "deep%d/up", "deep%d/up-dir/secret.txt", "deep%d/page")]


class Client(threading.Thread):
    """Asks for all targets in turn, some of them for a part, and keeps what it should not have got."""

    def __init__(self, server, until):
        super().__init__()
        self.server, self.until = server, until
        self.count, self.wrong, self.statuses = 0, [], Counter()

    def run(self):
        while time.monotonic() < self.until and not self.wrong:
            try:
                self.ask_all()
            except (ProtocolError, OSError) as error:
                self.wrong.append(repr(error))

    def ask_all(self):
        response = None
        with self.server.connect() as c:
            for i, target in enumerate(TARGETS):
                if time.monotonic() > self.until:
                    break
                fields = {"Range": "bytes=0-"} if i % 3 == 0 else {}
                response = c.ask(target, fields=fields)
                self.count += 1
                self.statuses[response.status] += 1
                if t.CANARY in response.raw + response.body or response.status not in ALLOWED:
                    self.wrong.append((target, response, response.body))
                if response.closes:
                    break
            c.finish(response)


@pytest.mark.slow
def test_files_outside_the_root_are_never_sent(serve, site, places, send_path):
    server = serve("--root", site, "--send-path", send_path, "--workers", "1", "--autoindex")
    with Swapper(*places) as swapper:
        clients = [Client(server, time.monotonic() + SECONDS) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    assert not [wrong for client in clients for wrong in client.wrong]
    assert swapper.count > 0
    statuses = sum((client.statuses for client in clients), Counter())
    print("%s: %d exchanges, answers: %s" % (send_path, swapper.count, statuses))
    # Of each pair one is inside, and one must not be followed.
    assert statuses[200] > 0 and statuses[403] > 0, statuses
    # All is where it was, and that is noticed.
    wait_until(lambda: server.get("/moved/deep/page").body == INSIDE, "the page")
    wait_until(lambda: server.get("/sub-link/secret.txt").status == 403, "the link")


@pytest.mark.slow
def test_cached_response_is_dropped_when_a_link_outside_replaces_the_file(serve, site, places, send_path):
    """What was asked for often enough to be kept in memory, and to be open."""
    (f, link), *_ = places
    server = serve("--root", site, "--send-path", send_path, "--workers", "1")
    if send_path == "hot":
        time.sleep(2.1)  # only a file that has not changed for so long is kept
    with server.connect() as c:
        for _ in range(50):
            assert c.ask("/f").body == INSIDE
        f.rename(site / "aside")
        link.rename(f)
        end = time.monotonic() + 3
        status = 200
        while status == 200:
            assert time.monotonic() < end
            c.send(request("/f"))
            response = c.response()
            assert t.CANARY not in response.raw + response.body
            status = response.status
        assert status == 403
        c.finish()
