"""A certificate by ACME from the first one to its renewal, as docs/guides/lets-encrypt.md has it: by a directory
that dehydrated writes and this server serves."""

import os
import random
import re
import ssl

import pytest

import acme
import tls
from harness import PATIENCE, configuration, wait_until
from traffic import Traffic

pytestmark = pytest.mark.once
NAME = "www.pebble.test"
BIG = 4 << 20


class Site:
    """What is served, with its configuration and the directory of the client's keys."""

    def __init__(self, base, tmp_path):
        self.root = os.path.join(base, "acme")
        self.challenges = os.path.join(self.root, ".well-known/acme-challenge")
        os.makedirs(self.challenges)
        self.keys = str(tmp_path / "dehydrated")
        self.conf = tmp_path / "pagewise.conf"
        self.log = tmp_path / "access.log"
        self.files = [self.file("small", 700), self.file("big", BIG)]

    def file(self, name, size):
        data = random.Random(name).randbytes(size)
        with open(os.path.join(self.root, name), "wb") as f:
            f.write(data)
        return "/" + name, data

    def write(self, with_tls):
        top = {"workers": 2, "access_log": self.log, "listen": ["127.0.0.1:0"]}
        if os.geteuid() == 0:
            top["user"] = "nobody"
        if with_tls:
            top["listen"].append("127.0.0.1:0 tls")
            top["certificate"] = ["%s/certs/%s/fullchain.pem" % (self.keys, NAME)]
            top["certificate_key"] = ["%s/certs/%s/privkey.pem" % (self.keys, NAME)]
            top["redirect_https"] = True
        self.conf.write_text(configuration(top, [("www", {"root": self.root}, {})]))

    def proofs(self):
        """Statuses of what the authority has asked for."""
        return re.findall(r'"GET /\.well-known/acme-challenge/\S+ HTTP/1\.1" (\d+) .*Pebble',
                          self.log.read_text())


def shown(address, root):
    """The serial number of the certificate, to a client that knows this root alone."""
    context = ssl.create_default_context(cadata=root)
    with tls.socket.create_connection(address, PATIENCE) as raw:
        with context.wrap_socket(raw, server_hostname=NAME) as sock:
            return sock.getpeercert()["serialNumber"]


def issued(result):
    status, output = result
    assert status == 0, output


def reloads(server):
    return (server.output + server.messages).count("pagewise: reloaded\n")


@pytest.mark.slow
@pytest.mark.needs("pebble-challtestsrv", "dehydrated")
def test_certificate_is_issued_and_renewed_under_load(serve, base, tmp_path):
    site = Site(base, tmp_path)
    site.write(with_tls=False)
    server = serve("-c", site.conf, drops=True)
    hook = tmp_path / "hook"
    hook.write_text('#!/bin/sh\n[ "$1" != deploy_cert ] || kill -HUP %d\n' % server.master)
    hook.chmod(0o755)
    with acme.Pebble(tmp_path, server.address[1]) as authority:
        dehydrated = authority.dehydrated(site.keys, site.challenges, NAME, hook)
        issued(dehydrated("--cron"))
        wait_until(lambda: reloads(server) == 1, "the reload")
        assert set(site.proofs()) == {"200"}

        site.write(with_tls=True)
        server.reload()
        address = server.secure_address()
        root = authority.root()
        first = shown(address, root)

        issued(dehydrated("--cron"))  # the certificate is new: nothing is asked for
        assert reloads(server) == 2 and shown(address, root) == first

        asked = len(site.proofs())
        with Traffic(address, *site.files) as traffic:
            wait_until(lambda: traffic.busy, "a download")
            traffic.signals += 1
            issued(dehydrated("--cron", "--force"))
            wait_until(lambda: reloads(server) == 3, "the reload")
            wait_until(lambda: shown(address, root) != first, "the new certificate")
            at = traffic.total("right")
            wait_until(lambda: traffic.total("right") > at + 20, "answers with it")
        traffic.faultless()
        # Nobody was sent to https, where the proof is not looked for.
        assert len(site.proofs()) > asked or authority.authorizations() == 1
        assert set(site.proofs()) == {"200"}
        assert os.listdir(site.challenges) == []
        if os.geteuid() == 0:
            assert os.stat("%s/certs/%s/privkey.pem" % (site.keys, NAME)).st_mode & 0o77 == 0
