"""Each call of OpenSSL that a serving process makes fails once at each place, and so do its
allocations, and the calls of the system on a connection with TLS: the client gets the right
answer or an end, the next ones the right answer; nothing is leaked."""

import pytest

import injection
import tls
import walk

pytestmark = pytest.mark.once

CALLS = ("SSL_", "BIO_", "EVP_", "openssl_", "recv", "send", "poll", "ioctl")
SITES = 20  # that it finds at least


@pytest.mark.parametrize("path", ["nodiskio", "copy"])
def test_each_call_fails_once_at_each_site(tmp_path, path):
    pair = tls.make_pair(tmp_path / "pair.pem")
    w = walk.Walk(tmp_path, send_path=path, listen=["127.0.0.1:0 tls"], certificate=[pair])
    try:
        sites = {key: name for key, (name, _) in w.sites().items() if name.startswith(CALLS)}
        for key, name in sites.items():
            for effect in injection.effects(name):
                w.told((key, effect))
        w.end()
    finally:
        w.discard()
    print(len(sites), "sites;", w.faults, "faults; not reached again:", *w.missed, sep="\n")
    assert len(sites) >= SITES
    assert len(w.missed) <= len(sites) / 10 + 1
