#!/usr/bin/env python3
"""Reloads, upgrades and restarts, again and again, while clients ask: none is lost.

    lossless.py [--seconds N] [--every N] [--binary FILE] [--tls] [--http2]

SIGHUP, SIGUSR2 and SIGTERM, for N seconds each; a line each.  At SIGTERM somebody else
holds the socket, as systemd does, and starts the server again.  A signal counts when it
is done with: the server has said so, or has ended in order.  The exit status is 0 if
no request failed and the server had nothing to complain of.  --tls: all of it over TLS.
--http2: most clients speak HTTP/2, in clear text.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "http")]

if "--tls" in sys.argv:
    os.environ["PAGEWISE_TLS"] = "1"  # the harness looks when it is imported

import harness
import tls
from given import Given
from traffic import Traffic

SMALL, LARGE = 700, 16 << 20  # bytes of the files
RATE = 8 << 20  # bytes a second at which the large one is taken


class Site:
    """What is served, and what its files are."""

    def __init__(self, directory):
        self.root = os.path.join(directory, "site")
        os.chmod(directory, 0o755)
        os.mkdir(self.root)
        self.files = [self.file("small", SMALL), self.file("large", LARGE)]
        self.conf = os.path.join(directory, "pagewise.conf")
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write('stall_log = 0\naccess_log = "off"\nworkers = 2\n')
            if tls.ON:
                f.write('certificate = {"%s"}\n' % tls.PAIRS.for_user(None))
            f.write('site "s" { root = "%s" }\n' % self.root)

    def file(self, name, size):
        data = random.Random(name).randbytes(size)
        with open(os.path.join(self.root, name), "wb") as f:
            f.write(data)
        return "/" + name, data


class Signalled:
    """A server that gets a signal, and says when that is done."""

    def __init__(self, site, binary, number, said):
        self.number, self.said = number, said
        self.server = harness.Server(
            "-c", site.conf, "--listen", tls.listen_text("127.0.0.1:0"), binary=binary).start()
        self.address = self.server.address

    def act(self):
        self.server.again(self.number, self.said)

    def end(self):
        harness.wait_until(lambda: len(self.server.processes()) == 1, "the old ones to end")
        self.server.stop()


class Restarted:
    """One that is ended and started again; its socket stays."""

    def __init__(self, site, binary):
        self.conf, self.binary = site.conf, binary
        self.given = Given()
        self.address = ("127.0.0.1", self.given.ports[0])
        self.start()

    def start(self):
        listen = tls.listen_text("%s:%d" % self.address)
        self.server = self.given.start(harness.Server, "-c", self.conf, "--listen", listen,
                                       binary=self.binary).start()

    def act(self):
        self.server.stop()
        self.start()

    def end(self):
        self.server.stop()
        self.given.close()


def run(name, served, site, options):
    """One line, and whether all is well."""
    begun, signals, wrong = time.monotonic(), 0, []
    traffic = Traffic(served.address, *site.files, rate=RATE, **options.clients)
    try:
        with traffic:
            due = begun
            while due < begun + options.seconds:
                due = max(due + options.every, time.monotonic())  # a pace, not a wait
                time.sleep(max(0, due - time.monotonic()))
                traffic.signals += 1
                served.act()
                signals += 1
        traffic.faultless()
        served.end()
    except (AssertionError, OSError) as error:
        wrong.append(str(error))
    finally:
        if not served.server.out.closed:
            served.server.discard()
    print("%s, every %g s for %.0f s: %d requests, %.2f GB, %d downloads across a signal, "
          "%d signals, %d sent again after a pause, %d failed" % (
              name, options.every, time.monotonic() - begun, traffic.total("begun"),
              traffic.total("bytes") / 1e9, traffic.downloads_across, signals,
              traffic.total("again"), len(traffic.failed)), flush=True)
    for text in wrong:
        print(text, file=sys.stderr)
    return not wrong and signals > 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="for each signal")
    parser.add_argument("--every", type=float, default=2, help="seconds from signal to signal")
    parser.add_argument("--binary", default=harness.RELEASE)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--http2", dest="clients", action="store_const", default={},
                        const={"keeping": 1, "single": 1, "multiplexed": 6})
    return parser.parse_args()


def main():
    options = arguments()
    directory = tempfile.mkdtemp(prefix="pagewise-lossless-")
    try:
        site = Site(directory)
        fine = [
            run("SIGHUP", Signalled(site, options.binary, signal.SIGHUP, "reloaded"), site, options),
            run("SIGUSR2", Signalled(site, options.binary, signal.SIGUSR2, "upgraded"), site, options),
            run("SIGTERM", Restarted(site, options.binary), site, options),
        ]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        tls.PAIRS.remove()
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
