"""An ACME server of one's own, Let's Encrypt's Pebble, and uacme(1) as its client.

Both are told of nothing outside this machine: pebble-challtestsrv answers for all names, with
127.0.0.1, and uacme sees Pebble's certificate in place of the system's authorities, in a mount
namespace of its own, since it has no option for that.
"""

import json
import os
import shutil
import ssl
import subprocess
import urllib.request

import tls
from harness import PATIENCE, wait_until

PROGRAMS = ("pebble", "pebble-challtestsrv", "uacme", "unshare")
HOOK = "/usr/share/uacme/uacme.sh"

# libcurl's file, as Debian builds it, and its directory.
AUTHORITIES = "/etc/ssl/certs"
FILE = "ca-certificates.crt"
OWN_MOUNTS = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]

# Answers as soon as it can, and asks for a new proof each time; but Pebble takes an old one where
# rand.Intn(100) is 0 as well, so for one order in a hundred.
QUICK = {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"}


def own_address():
    """That no other test has, so that ports can be chosen."""
    number = os.getpid() & 0xFFFFFF
    return "127.%d.%d.%d" % (number >> 16 & 63 | 64, number >> 8 & 255, number & 255)


def missing():
    """Why there is no ACME here, or None."""
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return "no " + program
    if not os.path.isdir(AUTHORITIES):
        return "no " + AUTHORITIES
    done = subprocess.run([*OWN_MOUNTS, "mount", "--bind", AUTHORITIES, AUTHORITIES],
                          stderr=subprocess.PIPE, check=False)
    return "unshare: " + done.stderr.decode().strip() if done.returncode else None


class Pebble:
    """Asks for proofs at this port of 127.0.0.1, whatever the name."""

    def __init__(self, place, port):
        self.place = str(place)
        self.address = own_address()
        self.authorities = os.path.join(self.place, "authorities")
        os.mkdir(self.authorities)
        self.pair = tls.make_pair(os.path.join(self.authorities, FILE), ["IP:" + self.address])
        self.processes = []
        self.conf = os.path.join(self.place, "pebble.json")
        with open(self.conf, "w", encoding="ascii") as f:
            json.dump({"pebble": {
                "listenAddress": self.address + ":14000",
                "managementListenAddress": self.address + ":15000",
                "certificate": self.pair, "privateKey": self.pair, "httpPort": port}}, f)

    def __enter__(self):
        resolver = self.address + ":8053"
        self.start("pebble-challtestsrv", "-dns01", resolver, "-management",
                   self.address + ":8055", "-defaultIPv6", "", "-http01", "", "-https01", "",
                   "-tlsalpn01", "")
        self.start("pebble", "-config", self.conf, "-dnsserver", resolver)
        for log, text in zip(self.processes, ("Starting management server", "directory available")):
            wait_until(lambda: text in self.said(log), "%r of %s" % (text, log.args[0]))
        return self

    def __exit__(self, *exc):
        for process in self.processes:
            process.kill()
            process.wait()

    def log(self, name):
        return os.path.join(self.place, name + ".log")

    def start(self, *command):
        with open(self.log(command[0]), "wb") as log:
            self.processes.append(subprocess.Popen(
                command, env={**os.environ, **QUICK}, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT))

    def said(self, process):
        with open(self.log(process.args[0]), encoding="utf-8") as f:
            text = f.read()
        assert process.poll() is None, text
        return text

    def authorizations(self):
        """How many it has begun: an order that takes an old proof begins none."""
        return self.said(self.processes[1]).count(" authorizations in the db")

    def root(self):
        """The certificate that clients have to know, PEM; its key exists as long as this server."""
        known = ssl.create_default_context(cafile=self.pair)
        url = "https://%s:15000/roots/0" % self.address
        with urllib.request.urlopen(url, timeout=PATIENCE, context=known) as answer:
            return answer.read().decode()

    def uacme(self, text, challenges):
        """What a shell says to this, with its exit status; in it uacme knows this server."""
        bind = 'mount --bind "$AUTHORITIES" %s; uacme() { command uacme -a "$ACME" "$@"; }\n' % AUTHORITIES
        done = subprocess.run(
            [*OWN_MOUNTS, "sh", "-c", bind + text], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False,
            env={**os.environ, "AUTHORITIES": self.authorities, "UACME_CHALLENGE_PATH": challenges,
                 "ACME": "https://%s:14000/dir" % self.address})
        return done.returncode, done.stdout.decode("utf-8", "replace")
