"""The server of the soak: told to reload and to become another program, and watched."""

import collections
import contextlib
import glob
import os
import re
import shutil
import signal
import ssl
import tempfile

import harness
import processes
import tls
from client import Way
from history import Fault

SEND_PATHS = ["nodiskio"] * 4 + [p for p in harness.FILE_PATHS if p != "nodiskio"]
OVER_TLS = [p for p in SEND_PATHS if p not in tls.REFUSED]
# On stderr; what is cut is cut by changes.py.
EXPECTED = re.compile(r"pagewise: (access log: \d+ records lost: the log's file or reader is too slow|"
                      r"stretched/\S+: changed while it was sent: [^\n]*|"
                      r"\d+ more responses failed because a file changed)\n")
TOLD = 20000  # characters of stderr: a sanitizer's report is in there


def family(pid):
    """The process and all below it."""
    found = [pid]
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        try:
            with open(path) as f:
                for child in f.read().split():
                    found += family(int(child))
        except OSError:
            pass  # it has just ended
    return found


def measure(pid):
    """Bytes and descriptors of a process; none of one that has just ended."""
    found = collections.Counter()
    try:
        with open("/proc/%d/smaps_rollup" % pid) as f:
            for key, kib in re.findall(r"^(Rss|Pss): +(\d+) kB", f.read(), re.M):
                found[key.upper()] = int(kib) << 10
        found["descriptors"] = len(os.listdir("/proc/%d/fd" % pid))
    except OSError:
        found.clear()
    return found


def sample(master, serving):
    """What both processes have, and all of the server's together."""
    each = {pid: measure(pid) for pid in family(master)}
    parts = {"all": sum(each.values(), collections.Counter()),
             "master": each[master], "serving": each.get(serving)}
    return {(who, what): part[what] for who, part in parts.items() if part for what in part}


# What a site has beside its files, through all reloads.
SITE = """
live = "/live"
ready = "/ready"
trusted_proxies = {"127.0.0.0/8", "unix:"}
client_address = "x-forwarded-for"
header = {"X-Soak: yes", "-Accept-Ranges"}
security_headers = on
expires = 1m
precompressed = {"zst", "br", "gz"}
redirect = {"/moved/* /*", "/gone /steady/ 301"}
try = {"$path", "$path.bin", "404"}
error_page = {"404 text: It is not here.", "5xx text: Later."}
"""


class Soaked:
    """secure: one of its ways has TLS, with another certificate after each reload.

    http2: half of the connections are of HTTP/2.
    """

    def __init__(self, directory, root, binary, rng, secure=False, http2=False):
        self.rng = rng
        self.http2 = http2
        self.pair = os.path.join(directory, "pair.pem") if secure else None
        self.pairs = [tls.make_pair(os.path.join(directory, "%d.pem" % n), kind=kind)
                      for n, kind in enumerate(["ecdsa", "rsa", "ecdsa"] if secure else [])]
        self.path = os.path.join(directory, "pagewise.conf")
        self.log = os.path.join(directory, "access.log")
        self.root = root
        self.counts = collections.Counter({"reloads": 0, "upgrades": 0, "logs rotated": 0})
        self.binary = binary
        self.program = os.path.join(directory, "pagewise")
        # Of a socket's path there are few bytes.
        self.sockets = tempfile.mkdtemp(prefix="pagewise-", dir="/tmp")
        self.replace_program()
        self.configure("workers = 2\n")
        # In a session of its own: a terminal's ^C is not for it.
        self.server = harness.Server("-c", self.path, binary=self.program,
                                     becomes=["setsid"]).start()
        self.serving = self.youngest()

    def ways(self):
        """Beside HTTP/1 to the server's address."""
        found = self.server.addresses(4 if self.pair else 3)
        ways = [Way(found[1], proxied=True), Way(found[2])]
        if self.pair:
            self.secure = found[3]
            ways += [Way(self.secure)] * 3
        if self.http2:
            ways += [Way(way.address, http2=True) for way in [Way(self.server.address), *ways]
                     if not way.proxied]
            ways.append(Way(self.server.address, http2=True))
        return ways

    def replace_program(self):
        """By a copy that is the same, but another file."""
        shutil.copy(self.binary, self.program + ".new")
        os.rename(self.program + ".new", self.program)

    def exchange_certificate(self):
        self.pairs.append(self.pairs.pop(0))
        shutil.copy(self.pairs[0], self.pair + ".new")
        os.chmod(self.pair + ".new", 0o600)
        os.rename(self.pair + ".new", self.pair)

    def check_certificate(self):
        shown = ssl.get_server_certificate(self.secure)
        with open(self.pair, encoding="ascii") as f:
            if shown not in f.read():
                raise Fault("reloaded, but this certificate is shown:\n" + shown)
        self.counts["certificates exchanged"] += 1

    def configure(self, text):
        more = ""
        if self.pair:
            self.exchange_certificate()
            more, text = ', "127.0.0.1:0 tls"', 'certificate = {"%s"}\n%s' % (self.pair, text)
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            f.write('listen = {"127.0.0.1:0", "127.0.0.1:0 proxy", "unix:%s/s"%s}\n'
                    'stall_log = 0\naccess_log = "%s"\nautoindex = true\n'
                    '%s%ssite "soak" { root = "%s" }\n'
                    % (self.sockets, more, self.log, SITE, text, self.root))
        os.rename(self.path + ".new", self.path)

    def random_settings(self):
        return "workers = %d\nsend_path = \"%s\"\nhot_set = %s\nreadahead = %s\ncache = \"%s\"\n" % (
            self.rng.randint(1, 3), self.rng.choice(OVER_TLS if self.pair else SEND_PATHS),
            self.rng.choice(["0", "1M", "16M"]), self.rng.choice(["auto", "128K", "2M"]),
            self.rng.choice(["keep", "drop", "auto"]))

    # Each of these is counted when the server has said that it is done, and it is.

    def youngest(self):
        if not self.server.running:
            return None
        return max(processes.children(self.server.master), key=processes.start_time, default=None)

    def again(self, number, word):
        line, serving = "pagewise: %s\n" % word, self.serving
        before = self.server.output.count(line)
        self.server.signal(number)
        harness.wait_until(lambda: self.server.output.count(line) > before or self.complaints()
                           or not self.server.running, line)
        self.serving = self.youngest()
        if self.server.output.count(line) == before:
            raise Fault("it was not " + word)
        if self.serving == serving:
            raise Fault("%s, but it is process %s that serves, as before" % (word, serving))

    def reload(self, settings=None):
        rotates = self.rng.random() < 0.3 and os.path.exists(self.log)
        if rotates:
            os.rename(self.log, self.log + ".1")
        self.configure(settings or self.random_settings())
        self.again(signal.SIGHUP, "reloaded")
        self.counts["reloads"] += 1
        if rotates and not os.path.exists(self.log):
            raise Fault("reloaded, but there is no new log")
        if self.pair:
            self.check_certificate()
        self.counts["logs rotated"] += rotates

    def upgrade(self):
        self.replace_program()
        self.again(signal.SIGUSR2, "upgraded")
        if not os.path.samefile("/proc/%d/exe" % self.server.master, self.program):
            raise Fault("upgraded, but it is the old program that runs")
        self.counts["upgrades"] += 1

    # ------------------------------------------------------------ how it is

    def sample(self):
        return sample(self.server.master, self.serving)

    def complaints(self):
        return EXPECTED.sub("", self.server.messages)[-TOLD:]

    def trouble(self):
        """Why it makes no sense to go on, or nothing."""
        if not self.server.running:
            return "the server ended with %s" % self.server.process.returncode
        if self.complaints():
            return "it complains"
        if self.youngest() != self.serving:
            return "process %s serves no more" % self.serving
        return None

    def stop(self):
        """SIGTERM; what was wrong with the end, or before."""
        trouble = self.trouble()
        try:
            if self.server.running:
                self.server.terminate()
            code = self.server.wait()
            trouble = trouble or (code != 0 and "exit status %d" % code)
        except (AssertionError, OSError) as why:
            trouble = trouble or str(why)
        complaints = self.complaints()
        with contextlib.suppress(AssertionError):  # of what it said: that is told below
            self.server.discard()
        shutil.rmtree(self.sockets, ignore_errors=True)
        return "%s\nstderr: %s" % (trouble, complaints) if trouble or complaints else None
