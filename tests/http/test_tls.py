"""TLS over real sockets: what is agreed on, what comes through, and what hostile peers do.

Not with PAGEWISE_TLS: each server here has TLS by its own configuration.
"""

import hashlib
import os
import random
import re
import socket
import ssl
import subprocess
import time

import pytest

import tls
import tls_peer
from harness import PATIENCE, TREE, configuration, request, wait_until  # noqa: F401
from limits import connections, figure
from proxy_headers import v1, v2

SEND_PATHS = ["nodiskio", "aio", "copy", "hot"]
BIG = 20 << 20


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Files with a certificate and its key, by name."""
    at = tmp_path_factory.mktemp("pairs")
    return {name: tls.make_pair(at / (name + ".pem"), names, kind) for name, names, kind in (
        ("default", ["default.test", "IP:127.0.0.1"], "ecdsa"),
        ("exact", ["a.test"], "ecdsa"),
        ("wild", ["*.w.test"], "ecdsa"),
        ("rsa", ["default.test"], "rsa"))}


@pytest.fixture(scope="module")
def content():
    return random.Random(5).randbytes(BIG)


@pytest.fixture
def start(serve_conf, site, tmp_path, pairs):
    (site / "small").write_bytes(b"small")

    def start(sites=None, listen="127.0.0.1:0 tls", certificate=("default",), **top):
        top = {"workers": 1, "admin": str(tmp_path / "admin"), "listen": [listen], **top}
        if certificate:
            top["certificate"] = [pairs[name] for name in certificate]
        server = serve_conf(top, sites or [("s", {"root": site}, {})])
        server.admin = str(tmp_path / "admin")
        return server

    return start


def end(server):
    """No connection is left behind, and it serves."""
    wait_until(lambda: connections(server) == 0, "all connections to end")
    with server.connect() as c:
        assert c.ask("/small").body == b"small"
        c.finish()


def raw(server, source=None):
    sock = socket.create_connection(server.address, PATIENCE,
                                    source_address=(source, 0) if source else None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def all_of(sock):
    """Until the server's end, however it ends."""
    parts = []
    try:
        while data := sock.recv(1 << 16):
            parts.append(data)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def said(server, data):
    """What the server answers to these bytes, when its end has come."""
    with raw(server) as sock:
        sock.sendall(data)
        return all_of(sock)


def context(**settings):
    result = tls.any_context()
    for name, value in settings.items():
        setattr(result, name, value)
    return result


def shake(server, of=None, name=None):
    """A client whose handshake is over."""
    sock = of or context()
    return sock.wrap_socket(raw(server), server_hostname=name, suppress_ragged_eofs=False)


def s_client(server, *args):
    """What openssl has to say of a handshake that it ends at once."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", "%s:%d" % server.address, *args],
        input=b"", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout.decode("latin-1")


# ------------------------------------------------------------------- versions


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
    assert peer.read(1 << 16).endswith(b"small")
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


# ---------------------------------------------------------------- what is sent


@pytest.mark.parametrize("send_path", SEND_PATHS)
@pytest.mark.parametrize("version", ["1.2", None])
def test_big_answers_to_slow_readers(start, site, content, send_path, version):
    (site / "big").write_bytes(content)
    server = start(send_path=send_path)
    wanted = hashlib.sha256(content).digest()
    random_size = random.Random(1)
    with tls.Socket(raw_slow(server), tls.client_context(version)) as s:
        s.open().sendall(request("/big", version="1.0"))
        data = bytearray()
        while more := s.recv(random_size.randrange(1, 1 << 17)):
            data += more
            if random_size.randrange(50) == 0:
                time.sleep(0.001)
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    assert b" 200 OK" in head and hashlib.sha256(body).digest() == wanted
    end(server)


@pytest.mark.parametrize("version", [0x0303, 0x0304])
def test_a_client_with_a_record_size_limit(start, site, content, version):
    """max_fragment_length, RFC 6066: longer ones are an error to it."""
    (site / "big").write_bytes(content[:1 << 20])
    server = start()
    for fragment in 1, 4:
        peer = tls_peer.Native(raw(server), version, fragment)
        peer.write(request("/big", fields={"Connection": "close"}))
        received = b""
        while more := peer.read():
            received += more
        assert received.partition(b"\r\n\r\n")[2] == content[:1 << 20]
        peer.close()
    end(server)


def raw_slow(server):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
    sock.settimeout(PATIENCE)
    sock.connect(server.address)
    return sock


@pytest.mark.parametrize("send_path", SEND_PATHS)
def test_ranges_at_odd_places(start, site, content, send_path):
    (site / "f").write_bytes(content[:300007])
    server = start(send_path=send_path)
    rng = random.Random(send_path)
    with server.connect() as c:
        for _ in range(150):
            first = rng.randrange(300007)
            last = min(first + rng.choice((0, 1, 4095, 4096, 16383, 16384, 16385, 70001)), 300006)
            response = c.ask("/f", fields={"Range": "bytes=%d-%d" % (first, last)})
            assert response.status == 206 and response.body == content[first:last + 1]
        c.finish()
    end(server)


@pytest.mark.parametrize("send_path", SEND_PATHS)
def test_many_requests_at_once(start, site, content, send_path):
    sizes = [0, 1, 100, 4096, 16384, 16385, 100001]
    for n in sizes:
        (site / str(n)).write_bytes(content[:n])
    server = start(send_path=send_path)
    rng = random.Random(send_path)
    asked = [rng.choice(sizes) for _ in range(100)]
    with server.connect() as c:
        c.send(b"".join(request("/%d" % n) for n in asked))
        for n in asked:
            assert c.response().body == content[:n]
        c.finish()
    end(server)


@pytest.mark.parametrize("send_path", SEND_PATHS)
def test_cold_files(start, site, content, send_path):
    size = 3 << 20
    server = start(send_path=send_path)
    for i in range(4):
        with open(site / ("f%d" % i), "wb") as f:
            f.write(content[i:i + size])
            f.flush()
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with server.connect() as c:
        c.send(b"".join(request("/f%d" % i) for i in range(4)))
        for i in range(4):
            assert c.response().body == content[i:i + size]
        c.finish()
    end(server)


@pytest.mark.parametrize("send_path", SEND_PATHS)
def test_a_file_that_is_cut_meanwhile(start, site, content, send_path):
    """What comes is of the file, and the connection ends; that is not told as an end in order."""
    path = site / "big"
    path.write_bytes(content)
    server = start(send_path=send_path)
    sock = tls.Socket(raw_slow(server)).open()
    sock.sendall(request("/big"))
    data = sock.recv(1000)
    os.truncate(path, 5 << 20)
    with pytest.raises((tls.Truncated, ConnectionResetError)):
        while more := sock.recv(1 << 16):
            data += more
    body = data.partition(b"\r\n\r\n")[2]
    assert len(body) < BIG and content.startswith(body)
    sock.close()
    end_whatever_it_says(server)


def end_whatever_it_says(server):
    wait_until(lambda: connections(server) == 0, "all connections to end")
    server.stop(messages=True)


@pytest.mark.parametrize("version", ["1.2", None])
def test_a_byte_a_record(start, version):
    server = start()
    with server.connect() as c:
        for _ in range(20):
            for byte in request("/small"):
                c.send(bytes([byte]))
            assert c.response().body == b"small"
        c.finish()
    end(server)


def test_a_head_in_one_segment_of_many_records(start):
    server = start()
    with server.connect() as c:
        for byte in request("/small") * 20:
            c.sock.tls.write(bytes([byte]))
        c.sock.flush()
        for _ in range(20):
            assert c.response().body == b"small"
        c.finish()
    end(server)


# --------------------------------------------------------------- hostile peers


def test_clients_leave_in_mid_handshake(start):
    server = start(head_timeout=60)
    whole = tls_peer.record(22, tls_peer.hello_13())
    for text in (b"", whole[:1], whole[:5], whole[:100], whole, whole + whole):
        for how in ("close", "half", "reset"):
            sock = raw(server)
            sock.sendall(text)
            if how == "half":
                sock.shutdown(socket.SHUT_WR)
                all_of(sock)
            elif how == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.close()
    # After the server's messages, before its own last one.
    for version in ("1.2", None):
        sock = tls.Socket(raw(server), tls.client_context(version))
        sock.shake()
        assert sock.raw.recv(1 << 16)
        sock.close()
    end(server)


def test_clients_with_a_part_of_a_hello_cannot_keep_out_others(start):
    """It lies in the socket until its rest is there, as bytes do that were not read yet."""
    server = start(max_connections=4, head_timeout=600)
    held = [raw(server, "127.0.0.2") for _ in range(4)]
    for sock in held:
        sock.send(b"\x16")
    wait_until(lambda: connections(server) == 4, "all to be accepted")
    with server.connect(source="127.0.0.3") as c:
        assert c.ask("/small").body == b"small"
        c.finish()
    for sock in held:
        sock.close()
    server.stop(messages=True)


def test_a_hello_in_pieces(start):
    """As many as it has bytes: tlsfuzzer's test-record-layer-fragmentation sends more than 1000."""
    server = start()
    for size, cut_records in ((1, False), (7, False), (1, True), (16, True)):
        sock = tls.Socket(raw(server))

        def send(flight, size=size, cut_records=cut_records, sock=sock):
            if cut_records:
                content = tls_peer.records(flight)[0][1]
                for at in range(0, len(content), size):
                    sock.raw.sendall(tls_peer.record(22, content[at:at + size]))
            else:
                for at in range(0, len(flight), size):
                    sock.raw.sendall(flight[at:at + size])

        sock.shake_into(send)
        sock.open()
        sock.sendall(request("/small"))
        assert sock.recv(1 << 16)
        sock.close()
    end(server)


def lies():
    """(what, bytes, whether the server has to end it at once)"""
    whole = tls_peer.hello_13()
    yield "longer-record", b"\x16\3\1\x40\x01" + whole, False
    yield "shorter-record", b"\x16\3\1\0\x20" + whole, True
    yield "empty-record", tls_peer.record(22, b"") * 40 + tls_peer.record(22, whole), None
    yield "longer-message", tls_peer.record(22, b"\1\0\xff\xff" + whole[4:]), False
    yield "shorter-message", tls_peer.record(22, b"\1\0\0\x40" + whole[4:]), True
    yield "huge-message", tls_peer.record(22, b"\1\xff\xff\xff" + whole[4:]), True
    yield "longest", tls_peer.record(22, b"\1\0\x40\x70" + bytes(17000 - 4)), True
    yield "beyond-longest", b"\x16\3\1\xff\xff" + bytes(70000), True
    yield "sslv2", b"\x80\x2e\1\0\2\0\x15\0\0\0\x10" + bytes(40), True
    yield "garbage", random.Random(3).randbytes(5000), True
    yield "zeroes", bytes(5000), True
    yield "ones", b"\xff" * 5000, True
    yield "heartbeat", tls_peer.record(24, b"\1\x40\0" + bytes(16)), True
    yield "alert", tls_peer.record(21, b"\2\x28"), True
    yield "warnings", tls_peer.record(21, b"\1\0") * 50, True
    yield "application-data", tls_peer.record(23, request("/small")), True
    yield "change-cipher", tls_peer.record(20, b"\1") * 100, True
    yield "server-hello", tls_peer.record(22, b"\2" + whole[1:]), True
    yield "finished", tls_peer.record(22, tls_peer.message(20, bytes(12))), True
    yield "twice", tls_peer.record(22, whole) * 2, True
    yield "version-0", tls_peer.record(22, whole, 0x0000), None
    yield "version-ffff", tls_peer.record(22, whole, 0xFFFF), None
    yield "hello-again", tls_peer.record(22, tls_peer.hello()) * 3, True
    yield "heartbeat-later", tls_peer.record(22, tls_peer.hello()) + tls_peer.record(
        24, b"\1\x40\0"), True
    yield "many-suites", tls_peer.record(22, tls_peer.hello(suites=[0x0a0a] * 7000)), True
    yield "no-suites", tls_peer.record(22, tls_peer.hello(suites=())), True
    yield "session", tls_peer.record(22, tls_peer.hello(session=bytes(32))), None
    yield "long-session", tls_peer.record(22, tls_peer.hello(session=bytes(33))), True
    yield "ticket", tls_peer.record(22, tls_peer.hello(tls_peer.extension(35, bytes(9000)))), None
    yield "early-data", tls_peer.record(22, tls_peer.hello_13(
        tls_peer.extension(42, b""))) + tls_peer.record(23, bytes(3000)) * 3, None


LIES = list(lies())


@pytest.fixture
def hasty(lend_conf, module_path, pairs):
    small, admin = module_path / "small", str(module_path / "admin")
    if not small.exists():
        small.write_bytes(b"small")
    server = lend_conf({"workers": 1, "admin": admin, "listen": ["127.0.0.1:0 tls"], "certificate": [pairs["default"]],
                        "head_timeout": 1}, [("s", {"root": module_path}, {})])
    server.admin = admin
    return server


@pytest.mark.parametrize("text, ends", [row[1:] for row in LIES], ids=[row[0] for row in LIES])
def test_malformed_records_end_the_handshake(hasty, text, ends):
    """An alert or an end; who is not finished has until head_timeout."""
    with raw(hasty) as sock:
        try:
            sock.sendall(text)
        except (ConnectionResetError, BrokenPipeError):
            assert ends
        all_of(sock)
    end(hasty)


def test_alert_is_sent_although_more_bytes_arrive(start):
    """The alert is not lost in a reset because of what was not read."""
    server = start()
    for _ in range(10):
        assert tls_peer.alerts(said(server, tls_peer.record(22, tls_peer.hello(suites=[0x0a0a]))
                                    + bytes(20000)))
    end(server)


@pytest.mark.slow
def test_key_updates(start, site, content):
    """Many, asking for the server's, while it sends and while it is idle."""
    (site / "big").write_bytes(content)
    server = start()
    peer = tls_peer.Native(raw(server))
    for i in range(300):
        assert peer.update_keys(i % 2 == 0) == 1
        if peer.shake() != 1:
            break
    peer.write(request("/small"))
    peer.read_until(b"small")
    peer.close()
    peer = tls_peer.Native(raw(server))
    peer.write(request("/big", fields={"Connection": "close"}))
    received = peer.read(1000)
    for _ in range(30):
        assert peer.update_keys() == 1 and peer.shake() == 1
        received += peer.read()
    while more := peer.read():
        received += more
    assert received.partition(b"\r\n\r\n")[2] == content
    peer.close()
    end(server)


def test_a_flood_of_key_updates_between_requests(start):
    """Each takes the server as long as twenty records: 32 at once, then one a second."""
    server = start()
    begin, taken = time.monotonic(), 0
    peer = tls_peer.Native(raw(server))
    while taken < 500 and peer.update_keys(False) == 1 and peer.shake() == 1:
        peer.write(request("/small"))
        if not peer.read_until(b"small").endswith(b"small"):
            break
        taken += 1
    assert 32 <= taken <= 33 + time.monotonic() - begin
    peer.close()
    end(server)


def test_a_flood_of_key_updates_that_reads_nothing(start, site, content):
    """Each asks for one of the server's, which nobody reads: that is bounded."""
    (site / "big").write_bytes(content)
    server = start(send_timeout=1)
    sock = raw_slow(server)
    peer = tls_peer.Native(sock)
    peer.write(request("/big") * 5)
    sock.settimeout(0.5)
    try:
        for _ in range(20000):
            peer.update_keys()
            if peer.shake() != 1:
                break
    finally:
        peer.close()
    end_whatever_it_says(server)


def test_handshakes_that_are_not_finished_are_bounded(start):
    server = start(head_timeout=3)
    held = [raw(server) for _ in range(100)]
    for i, sock in enumerate(held):
        sock.sendall(tls_peer.record(22, tls_peer.hello_13())[:[1, 5, 50, 1000][i % 4]])
    for _ in range(5):
        assert server.get("/small").body == b"small"
    for sock in held:
        all_of(sock)
        sock.close()
    end(server)
    assert figure(server, "pagewise_tls_handshakes_total", '{end="timeout"}') > 0


@pytest.mark.slow
def test_a_flood_of_one_address_leaves_another_one_in(start):
    """One sends ClientHellos as fast as it can and finishes none; another one is served."""
    server = start()
    over = time.monotonic() + 2
    flood = tls_peer.record(22, tls_peer.hello_13())
    held, served = [], 0
    while time.monotonic() < over:
        for _ in range(50):
            sock = raw(server, "127.0.0.2")
            try:
                sock.sendall(flood)
            except (ConnectionResetError, BrokenPipeError):
                pass
            held.append(sock)
        while len(held) > 300:
            held.pop(0).close()
        assert server.get("/small").body == b"small"
        served += 1
    for sock in held:
        sock.close()
    assert served > 0
    end(server)


# --------------------------------------------------------------------- others


def test_gnutls(start):
    server = start()
    done = subprocess.run(
        ["gnutls-cli", "--insecure", "--port", str(server.address[1]), "127.0.0.1"],
        input=request("/small", fields={"Connection": "close"}), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
    assert done.returncode == 0 and b"\r\n\r\nsmall" in done.stdout, done.stdout
    end(server)
