"""An ACME server of one's own, Let's Encrypt's Pebble, and dehydrated(1) as its client.

Both know nothing outside this machine: pebble-challtestsrv resolves every name to 127.0.0.1, and
dehydrated's curl trusts Pebble's certificate alone.  `make build/pebble/pebble` builds the current
Pebble, which offers challenges that older ones lack; without it the system's is used.
"""

import json
import os
import ssl
import subprocess
import urllib.request

import tls
from harness import PATIENCE, wait_until

BUILT = os.path.join(os.path.dirname(__file__), "../../build/pebble/pebble")
PEBBLE = BUILT if os.access(BUILT, os.X_OK) else "pebble"
RESOLVER = "pebble-challtestsrv"

# Answers as soon as it can, and asks for a new proof each time; but Pebble takes an old one where
# rand.Intn(100) is 0 as well, so for one order in a hundred.
QUICK = {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"}


def own_address():
    """That no other test has, so that ports can be chosen."""
    number = os.getpid() & 0xFFFFFF
    return "127.%d.%d.%d" % (number >> 16 & 63 | 64, number >> 8 & 255, number & 255)


def dns_option():
    """Returns the resolver's option for its address: newer ones call it -dnsserver."""
    done = subprocess.run([RESOLVER, "-help"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    return "-dnsserver" if "-dnsserver" in done.stdout else "-dns01"


class Pebble:
    """Asks for proofs at this port of 127.0.0.1, whatever the name."""

    def __init__(self, place, port):
        self.place = str(place)
        self.address = own_address()
        self.pair = tls.make_pair(os.path.join(self.place, "pebble.pem"), ["IP:" + self.address])
        self.processes = []
        self.conf = os.path.join(self.place, "pebble.json")
        with open(self.conf, "w", encoding="ascii") as f:
            json.dump({"pebble": {
                "listenAddress": self.address + ":14000",
                "managementListenAddress": self.address + ":15000",
                "certificate": self.pair, "privateKey": self.pair, "httpPort": port}}, f)

    def __enter__(self):
        resolver = self.address + ":8053"
        self.start(RESOLVER, dns_option(), resolver, "-management",
                   self.address + ":8055", "-defaultIPv6", "", "-http01", "", "-https01", "",
                   "-tlsalpn01", "")
        self.start(PEBBLE, "-config", self.conf, "-dnsserver", resolver)
        for log, text in zip(self.processes, ("Starting management server", "directory available")):
            wait_until(lambda: text in self.said(log), "%r of %s" % (text, log.args[0]))
        return self

    def __exit__(self, *exc):
        for process in self.processes:
            process.kill()
            process.wait()

    def log(self, name):
        return os.path.join(self.place, os.path.basename(name) + ".log")

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

    def dehydrated(self, place, challenges, name, hook):
        """Writes dehydrated's configuration into a directory and registers an account.  Returns a
        function that runs it with more arguments, as a shell's user would, and returns its status
        and its output.  The account has a small key: one of 4096 bits took over 30 s beside other tests."""
        os.mkdir(place)
        config = os.path.join(place, "config")
        with open(config, "w", encoding="ascii") as f:
            f.write(f"""CA="https://{self.address}:14000/dir"
KEYSIZE=2048
CURL_OPTS="--cacert {self.pair}"
BASEDIR={place}
DOMAINS_TXT={place}/domains.txt
WELLKNOWN={challenges}
HOOK={hook}
""")
        with open(os.path.join(place, "domains.txt"), "w", encoding="ascii") as f:
            f.write(name + "\n")

        def run(*args):
            done = subprocess.run(
                ["dehydrated", "--config", config, *args], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
            return done.returncode, done.stdout.decode("utf-8", "replace")

        status, output = run("--register", "--accept-terms")
        assert status == 0, output
        return run
