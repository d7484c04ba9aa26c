"""TLS over real sockets: versions, ciphers, names, PROXY headers, and how a connection ends.

Not with PAGEWISE_TLS (tls_server.py).
"""

import contextlib
import os
import pathlib
import pwd
import re
import socket
import ssl
import subprocess
import tempfile
import time

import pytest

import processes
import tls
import tls_peer
from harness import PATIENCE, request, wait_until
from limits import connections, figure
from proxy_headers import v1, v2
from tls_server import all_of, context, end, pairs, raw, s_client, said, shake, start  # noqa: F401


# ------------------------------------------------------------------- versions


SHAKES = 20  # handshakes, one after another
OLD = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1


def only(version):
    of = context(minimum_version=ssl.TLSVersion.TLSv1, maximum_version=version)
    of.minimum_version = version
    of.set_ciphers("ALL:@SECLEVEL=0")
    return of


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_versions(start):
    server = start()
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with shake(server, only(version)) as s:
            assert s.version() == version.name.replace("_", ".")
    for version in OLD:
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION|protocol version"):
            shake(server, only(version))
    wait_until(lambda: figure(server, "pagewise_tls_handshakes_total",
                              '{end="nothing_shared"}') == len(OLD), "both to be counted")
    end(server)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_modern_accepts_only_tls_1_3(start):
    server = start(tls_profile="modern")
    for version in (*OLD, ssl.TLSVersion.TLSv1_2):
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION|protocol version"):
            shake(server, only(version))
    assert shake(server).version() == "TLSv1.3"
    end(server)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize("traceable", [False, True])
def test_only_a_traceable_process_belongs_to_its_user(serve, traceable):
    """Linux: its files in /proc belong to root while the process can neither be traced nor dump core."""
    nobody = pwd.getpwnam("nobody").pw_uid
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        pair, conf = tls.make_pair(os.path.join(place, "pair.pem")), os.path.join(place, "conf")
        with open(conf, "w", encoding="ascii") as f:
            f.write('listen = {"127.0.0.1:0 tls"}\ncertificate = {"pair.pem"}\nworkers = 1\n'
                    f'traceable = {str(traceable).lower()}\nsite a {{ root = "." }}\n')
        for path in (place, pair, conf):
            os.chown(path, nobody, -1)
        server = serve("-c", conf, user="nobody")
        assert os.stat(f"/proc/{server.pid}/environ").st_uid == (nobody if traceable else 0)


def agreed(server, *args):
    """(version, cipher, group), or None: nothing is shared."""
    code, text = s_client(server, "-brief", *args)
    if code != 0:
        assert "alert handshake failure" in text, text
        return None
    found = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    group = found.get("Server Temp Key") or found.get("Peer Temp Key") or found.get(
        "Negotiated TLS1.3 group", "")
    return found["Protocol version"], found["Ciphersuite"], group.split(",")[0]


@pytest.mark.parametrize("profile", ["intermediate", "modern"])
def test_ciphers_of_the_newest_version(start, profile):
    server = start(tls_profile=profile)
    for cipher in ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
                   "TLS_CHACHA20_POLY1305_SHA256"):
        assert agreed(server, "-ciphersuites", cipher)[:2] == ("TLSv1.3", cipher)
    assert agreed(server, "-tls1_3", "-ciphersuites", "TLS_AES_128_CCM_SHA256") is None
    end(server)


GOOD_CIPHERS = ["ECDHE-%s-" + name for name in (
    "AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")]
BAD_CIPHERS = ["AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA256", "ECDHE-ECDSA-AES128-SHA",
               "DHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-CCM", "NULL", "ADH"]


def test_ciphers_of_the_older_version(start):
    server = start(certificate=("default", "rsa"))
    for kind in ("ECDSA", "RSA"):
        for cipher in GOOD_CIPHERS:
            assert agreed(server, "-tls1_2", "-cipher", cipher % kind)[:2] == (
                "TLSv1.2", cipher % kind)
    for cipher in BAD_CIPHERS:
        assert agreed(server, "-tls1_2", "-cipher", cipher + ":@SECLEVEL=0") is None, cipher
    end(server)


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_groups(start, version):
    server = start(certificate=("rsa",))  # the key of another one is of a group itself
    for group, name in (("X25519", "X25519"), ("P-256", "ECDH"), ("P-384", "ECDH")):
        assert name in agreed(server, version, "-groups", group)[2]
    for group in ("P-521", "X448"):
        assert agreed(server, version, "-groups", group) is None, group
    end(server)


def test_a_group_without_a_key_share_is_requested(start):
    """HelloRetryRequest: the client's first share is of a group that the server has not."""
    server = start()
    assert "ECDH" in agreed(server, "-tls1_3", "-groups", "P-521:P-384")[2]
    end(server)


def runs_of_threads(server):
    """How often the handshake threads have run: each time ends in a switch to another thread."""
    runs = 0
    for task in pathlib.Path("/proc/%d/task" % server.pid).iterdir():
        if (task / "comm").read_text() == "pw-handshake\n":
            runs += sum(map(int, re.findall(r"ctxt_switches:\s*(\d+)",
                                            (task / "status").read_text())))
    return runs


@pytest.mark.skipif(not processes.PROC, reason="reads /proc")
def test_the_loop_itself_shakes_hands_while_it_has_time(start):
    server = start()
    shake(server).close()
    before = runs_of_threads(server)
    for _ in range(SHAKES):
        shake(server).close()
    assert runs_of_threads(server) - before < SHAKES / 2
    end(server)


@pytest.mark.skipif(not processes.PROC, reason="reads /proc")
def test_threads_sign_with_rsa(start):
    server = start(certificate=("rsa",))
    before = runs_of_threads(server)
    for _ in range(SHAKES):
        shake(server).close()
    wait_until(lambda: runs_of_threads(server) - before >= SHAKES / 2, "the threads to be done")
    end(server)


def test_disabled_features(start):
    """Compression, renegotiation, early data."""
    server = start()
    _, text = s_client(server, "-tls1_2", "-legacy_renegotiation")
    assert "Compression: NONE" in text and "Secure Renegotiation IS supported" in text
    _, text = s_client(server)
    assert "Max Early Data: " not in text or "Max Early Data: 0" in text
    end(server)


def test_renegotiation_is_refused(start):
    server = start()
    peer = tls_peer.Native(raw(server), 0x0303)
    peer.write(request("/small"))
    assert peer.read_until(b"small").endswith(b"small")
    assert peer.renegotiate() != 1
    peer.close()
    end(server)


def test_alpn(start):
    server = start()
    for offered, chosen in ((["http/1.1"], "http/1.1"), (["http/1.1", "h2"], "h2"),
                            (["h2"], "h2"), ([], None)):
        of = context()
        if offered:
            of.set_alpn_protocols(offered)
        with shake(server, of) as s:
            assert s.selected_alpn_protocol() == chosen
    of = context()
    of.set_alpn_protocols(["spdy/3"])
    with pytest.raises(ssl.SSLError, match="NO_APPLICATION_PROTOCOL|no application protocol"):
        shake(server, of)
    end(server)


# ---------------------------------------------------------------------- names


@pytest.fixture
def named(start, site, pairs):
    return start([
        ("default", {"root": site}, {}),
        ("a", {"root": site, "names": ["a.test"], "certificate": [pairs["exact"]]}, {}),
        ("w", {"root": site, "names": ["*.w.test"], "certificate": [pairs["wild"]]}, {}),
    ])


def certificate_of(path):
    with open(path) as f:
        return ssl.PEM_cert_to_DER_cert(f.read().partition("-----BEGIN PRIVATE")[0])


def shown(server, *extensions):
    """The certificate that a ClientHello made by hand gets."""
    with raw(server) as sock:
        sock.sendall(tls_peer.record(tls_peer.HANDSHAKE, tls_peer.hello(*extensions)))
        data = b""
        while not (found := dict(tls_peer.messages(data)).get(tls_peer.CERTIFICATE)):
            more = sock.recv(1 << 16)
            assert more, (data, tls_peer.alerts(data))
            data += more
    return found[6:6 + int.from_bytes(found[3:6], "big")]


NAMES = [
    (b"a.test", "exact"), (b"A.Test", "exact"), (b"x.w.test", "wild"), (b"X.W.TEST", "wild"),
    (b"default.test", "default"), (b"b.test", "default"), (b"aa.test", "default"),
    (b"127.0.0.1", "default"), (b"[::1]", "default"), (b"w.test", "default"),
    (b"a" * 255, "default"), (b"a" * 300, "default"), (b"a.test\0.evil", "default"),
    (b"\xff\xfe", "default"), (b"-", "default"), (b"a..test", "default"),
]


def test_names(named, pairs):
    whose = {certificate_of(path): name for name, path in pairs.items()}
    for name, wanted in NAMES:
        try:
            got = whose[shown(named, tls_peer.server_name(name))]
        except AssertionError:
            # OpenSSL refuses what no name can be.
            assert len(name) > 255 or b"\0" in name, name
            continue
        assert got == wanted, name
    assert whose[shown(named)] == "default"
    end(named)


def test_a_client_without_sni_may_request_any_host(start, site):
    """Neither SNI nor Host: the default answers."""
    server = start()
    peer = tls_peer.Native(raw(server))
    peer.write(b"GET /small HTTP/1.0\r\n\r\n")
    assert peer.read_until(b"small").startswith(b"HTTP/1.1 200 ")
    peer.close()
    end(server)


def test_a_trailing_dot_is_the_same_name(named, pairs):
    """RFC 6066, 3, writes names without it, and some send what was typed."""
    assert shown(named, tls_peer.server_name(b"a.test.")) in (
        certificate_of(pairs["exact"]), certificate_of(pairs["default"]))
    end(named)


BROKEN_NAMES = [
    tls_peer.extension(0, b""), tls_peer.extension(0, b"\0\0"), tls_peer.extension(0, b"\0\1\0"),
    tls_peer.extension(0, b"\0\3\0\0\0"), tls_peer.extension(0, b"\0\4\0\0\5a"),
    tls_peer.extension(0, b"\xff\xff\0\0\1a"), tls_peer.server_name(b"a.test", kind=7),
    tls_peer.server_name(b"a.test") + tls_peer.server_name(b"a.test"),
]


def test_broken_names(named):
    for broken in BROKEN_NAMES:
        with raw(named) as sock:
            sock.sendall(tls_peer.record(22, tls_peer.hello(broken)))
            assert sock.recv(1 << 16)[0] in (tls_peer.HANDSHAKE, tls_peer.ALERT), broken
    end(named)


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_two_certificates_for_one_name(start, version):
    server = start(certificate=("default", "rsa"))
    # OpenSSL 3.5 names the scheme, 3.0 the kind of key.
    for scheme, kind in (("ECDSA+SHA256", "ECDSA|ecdsa_secp256r1_sha256"), ("RSA-PSS+SHA256", "RSA-PSS|rsa_pss_rsae_sha256")):
        _, text = s_client(server, version, "-sigalgs", scheme)
        assert re.search("^Peer signature type: (%s)$" % kind, text, re.M), text
    end(server)


# ---------------------------------------------------------- plain, PROXY, ends


def test_plain_http_gets_400(start):
    server = start()
    for text in (request("/small"), b"G", b"POST / HTTP/1.1\r\n\r\n" + b"x" * 100000):
        with raw(server) as sock:
            sock.sendall(text)
            sock.shutdown(socket.SHUT_WR)
            answer = all_of(sock)
        assert answer.startswith(b"HTTP/1.1 400 ") and b"HTTPS" in answer, text[:40]
    assert figure(server, "pagewise_tls_handshakes_total", '{end="plain_http"}') == 3
    end(server)


def test_tls_on_a_plain_port(start):
    server = start(listen="127.0.0.1:0", certificate=())
    answer = said(server, tls_peer.record(22, tls_peer.hello_13()))
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
    end(server)


@pytest.mark.parametrize("header", [v1("192.0.2.1"), v2("192.0.2.1")], ids=["v1", "v2"])
@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.9"], ids=["trusted", "other"])
def test_a_proxy_header_comes_before(start, tmp_path, header, source):
    log = tmp_path / "log"
    server = start(listen="127.0.0.1:0 proxy tls", trusted_proxies=["127.0.0.1"],
                   access_log=log, log_format="json")
    client = "192.0.2.1" if source == "127.0.0.1" else source
    for cut in (None, 0, 1, len(header), len(header) + 1, len(header) + 7):
        sock = tls.Socket(raw(server, source))
        assert not sock.shake_into(lambda hello: send_cut(sock.raw, header + hello, cut))
        sock.open()
        sock.sendall(request("/small", fields={"Connection": "close"}))
        assert all_of(sock).endswith(b"small")
        sock.close()
    wait_until(lambda: log.read_text().count("\n") == 6, "the lines")
    assert log.read_text().count('"%s"' % client) == 6
    wait_until(lambda: connections(server) == 0, "all connections to end")


def cut_headers(start, number, **top):
    """A server with so many connections that have sent a part of a PROXY header."""
    server = start(listen="127.0.0.1:0 proxy tls", trusted_proxies=["127.0.0.1"], **top)
    socks = [raw(server) for _ in range(number)]
    for sock in socks:
        sock.sendall(b"PROXY TCP4 10.1.1.1 1")
    wait_until(lambda: connections(server) == number, "the connections")
    return server, socks


def test_a_connection_with_a_cut_proxy_header_goes_with_its_client(start):
    server, socks = cut_headers(start, 3, head_timeout=600)
    for sock in socks:
        sock.close()
    wait_until(lambda: connections(server) == 0, "all connections to end")


@pytest.mark.slow
def test_a_cut_proxy_header_does_not_hold_up_the_end(start):
    """Its time is head_timeout, then the server ends."""
    server, socks = cut_headers(start, 1, head_timeout=3, shutdown_timeout=600)
    server.stop()
    socks[0].close()


def send_cut(sock, data, cut):
    """In one piece, or in two."""
    if cut is not None:
        sock.sendall(data[:cut])
        time.sleep(0.01)
        data = data[cut:]
    sock.sendall(data)


def test_curl_reports_no_truncation(start, site):
    """Its TLS tells the end of an answer without a length from one that was cut."""
    (site / "big").write_bytes(b"x" * 3000000)
    server = start()
    for args in (["--http1.0"], ["--http1.1"], ["-H", "Connection: close"]):
        done = subprocess.run(
            ["curl", "-sSk", *args, "https://%s:%d/big" % server.address], timeout=PATIENCE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert (done.returncode, done.stderr) == (0, b"") and done.stdout == b"x" * 3000000
    end(server)


@pytest.mark.parametrize("text", [
    request("/small", fields={"Connection": "close"}), request("/small", version="1.0"),
    b"nonsense\r\n\r\n", request("/none", fields={"Connection": "close"}),
    request("/small", "HEAD", fields={"Connection": "close"})],
    ids=["close", "1.0", "broken", "404", "head"])
@pytest.mark.parametrize("version", ["1.2", None])
def test_close_notify_ends_a_connection(start, text, version):
    server = start()
    with shake(server, tls.client_context(version)) as s:
        s.sendall(text)
        while s.recv(1 << 16):  # an end without a close_notify is an error
            pass
    end(server)


def test_close_notify_ends_an_idle_connection(start):
    server = start(keepalive_timeout=1)
    with server.connect() as c:
        assert c.ask("/small").body == b"small"
        c.eof()
    end(server)


def test_the_client_may_end_first(start):
    """It has asked, and says that it asks no more: what it has asked for comes."""
    server = start()
    with server.connect() as c:
        c.send(request("/small") * 3)
        c.half_close()
        assert [c.response().body for _ in range(3)] == [b"small"] * 3
        c.eof()
    with server.connect() as c:
        c.half_close()
        c.eof()
    end(server)


@pytest.mark.parametrize("version", ["1.2", None])
def test_a_close_notify_beside_the_request_is_an_end(start, version):
    """It comes with the same segment, and nothing follows it, not even the end of the stream."""
    server = start(keepalive_timeout=300)
    sock = raw(server)
    came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
    peer = tls.client_context(version).wrap_bio(came, goes)
    while True:
        try:
            peer.do_handshake()
            break
        except ssl.SSLWantReadError:
            sock.sendall(goes.read())
            came.write(sock.recv(1 << 16))
    sock.sendall(goes.read())
    if not version:
        came.write(sock.recv(1 << 16))  # a ticket: the handshake is over
    peer.write(request("/small"))
    with pytest.raises(ssl.SSLWantReadError):
        peer.unwrap()
    sock.sendall(goes.read())
    came.write(all_of(sock))
    response = b""
    with contextlib.suppress(ssl.SSLZeroReturnError):
        while True:
            response += peer.read(1 << 16)
    assert response.endswith(b"small")
    sock.close()
    end(server)


def test_a_client_leaves_without_close_notify(start):
    server = start()
    for text in (b"", b"GET /sm", request("/small")):
        with server.connect() as c:
            c.send(text)
            c.sock.raw.shutdown(socket.SHUT_WR)
            c.drain()
    end(server)


# --------------------------------------------------------------------- others


@pytest.mark.needs("gnutls-cli")
def test_gnutls(start):
    server = start()
    done = subprocess.run(
        ["gnutls-cli", "--insecure", "--port", str(server.address[1]), "127.0.0.1"],
        input=request("/small", fields={"Connection": "close"}), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
    assert done.returncode == 0 and b"\r\n\r\nsmall" in done.stdout, done.stdout
    end(server)
