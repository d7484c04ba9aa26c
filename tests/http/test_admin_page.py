"""The admin page in a browser: that it draws, on a screen and on a phone."""

import threading

import pytest

from admin import Admin
from browser import Browser
from harness import wait_until

pytestmark = pytest.mark.needs("chromium")

CHARTS = ["traffic", "sources", "requests", "memory", "disk", "loop", "connections"]


@pytest.fixture
def load(serve, tree):
    """A server that somebody asks all the time, and its admin side."""
    server = serve("--root", tree.root, "--admin", "127.0.0.1:0", "--workers", "2")
    end = threading.Event()

    def ask():
        while not end.wait(0.02):
            server.get("/4097.bin")
            server.get("/nothing")

    thread = threading.Thread(target=ask)
    thread.start()
    yield Admin(server)
    end.set()
    thread.join()


def text(browser, id):
    return browser.ask("document.getElementById('%s').textContent" % id)


def points(browser, id):
    return browser.ask("document.getElementById('%s').parentNode.querySelector("
                       "'figure path').getAttribute('d') || ''" % id)


@pytest.mark.parametrize("width, dark", [(1280, False), (360, True)])
def test_page_draws_the_load(load, width, dark):
    with Browser() as browser:
        browser.open(load.url, width, dark=dark)
        wait_until(lambda: points(browser, "requests").count("L") >= 2, "three points")
        assert text(browser, "state") == "live"
        assert text(browser, "process").startswith("version ")
        for id in ("traffic", "requests", "memory", "loop"):
            assert any(c in "123456789" for c in text(browser, id)), id
            assert points(browser, id).startswith("M"), id
        # Every chart says in words what it shows.
        labels = browser.ask("[...document.querySelectorAll('figure svg')].map("
                             "s => s.getAttribute('aria-label'))")
        assert len(labels) == len(CHARTS) and all(": " in label for label in labels)
        assert browser.ask("document.querySelectorAll('#troubles tr').length") >= 5
        # Nothing is cut off at the side, and the colours follow the reader's wish.
        assert browser.ask("document.documentElement.scrollWidth") <= width
        colour = browser.ask("getComputedStyle(document.body).backgroundColor")
        assert (int(colour[4:].split(",")[0]) < 64) == dark
        assert browser.errors == []


def test_page_reports_a_stopped_server_and_continues_later(serve, tree):
    server = serve("--root", tree.root, "--admin", "127.0.0.1:0")
    url = Admin(server).url
    with Browser() as browser:
        browser.open(url, 1280)
        wait_until(lambda: text(browser, "state") == "live", "the page")
        server.stop()
        wait_until(lambda: text(browser, "state").startswith("no answer"), "the bad news")
        serve("--root", tree.root, "--admin", url[len("http://"):-1])
        wait_until(lambda: text(browser, "state") == "live", "the good news")
        wait_until(lambda: "L" in points(browser, "loop"), "points")
