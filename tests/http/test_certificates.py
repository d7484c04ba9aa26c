"""Certificates: which are taken, which are refused and with which words, and how they are
exchanged while connections are open."""

import os
import re
import shutil
import signal
import ssl

import pytest

import harness
import tls as tls_pairs
from certificates import DAY, Authority, Client, openssl, put, shared_key
from harness import Finished, wait_until

STAYS = "pagewise: the old configuration stays in use\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
def issuer(root, tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("issuer"), "issuer", root)


@pytest.fixture(scope="module")
def good(issuer):
    return issuer.issue()


@pytest.fixture
def place(tmp_path, good):
    """A directory with a good pair, that tests may spoil."""
    good.write(tmp_path, "a")
    return tmp_path


def settings(place, names=("a",), keys=True, **more):
    top = {"listen": ["127.0.0.1:0 tls"], "workers": 1, **more,
           "certificate": [place / (n + ".pem") for n in names]}
    return {**top, "certificate_key": [place / (n + ".key") for n in names]} if keys else top


def without_place(place, text):
    """Without FILE:LINE of the configuration, which test_error_names_the_line_of_the_certificate has."""
    text = text.replace(str(place) + "/", "")
    return re.sub(r"^pagewise: \w+\.conf:\d+: (certificate|client_ca): ", "", text)


def said_by_test(place, site, **kw):
    """What -t says, without its beginning."""
    conf = place / "t.conf"
    conf.write_text(harness.configuration(settings(place, **kw), [("s", {"root": site}, {})]))
    run = Finished("-t", "-c", conf)
    assert run.code == (0 if run.err == "" else 1), run.err
    said = without_place(place, run.err)
    assert said != run.err or said == "", run.err
    return said


# ------------------------------------------------------------------- what is refused


def other_key(place, good, issuer):
    put(place / "a.key", shared_key("ecdsa", "other"))


def passphrase(place, good, issuer):
    openssl("pkey", "-in", place / "a.key", "-aes128", "-passout", "pass:secret",
            "-out", place / "b.key")
    os.rename(place / "b.key", place / "a.key")


def no_key(place, good, issuer):
    put(place / "a.key", good.cert)


def no_certificate(place, good, issuer):
    put(place / "a.pem", good.key)


def empty(place, good, issuer):
    put(place / "a.pem", "")


def missing(place, good, issuer):
    os.unlink(place / "a.pem")


def missing_key(place, good, issuer):
    os.unlink(place / "a.key")


def directory(place, good, issuer):
    os.unlink(place / "a.pem")
    (place / "a.pem").mkdir()


def open_key(place, good, issuer):
    os.chmod(place / "a.key", 0o644)


def key_of_the_group(place, good, issuer):
    os.chmod(place / "a.key", 0o660)


def damaged(place, good, issuer):
    lines = good.cert.splitlines()
    lines[3] = lines[3][::-1]
    put(place / "a.pem", "\n".join(lines) + "\n")


def damaged_issuer(place, good, issuer):
    lines = issuer.cert.splitlines()
    lines[3] = lines[3][:-2] + "=="
    put(place / "a.pem", good.cert + "\n".join(lines) + "\n")


def cut(place, good, issuer):
    put(place / "a.pem", good.cert[:300])


def binary(place, good, issuer):
    with open(place / "a.pem", "wb") as f:
        f.write(ssl.PEM_cert_to_DER_cert(good.cert))


def binary_key(place, good, issuer):
    openssl("pkey", "-in", place / "a.key", "-outform", "DER", "-out", place / "b.key")
    os.rename(place / "b.key", place / "a.key")


def pkcs12(place, good, issuer):
    openssl("pkcs12", "-export", "-in", place / "a.pem", "-inkey", place / "a.key", "-passout",
            "pass:secret", "-out", place / "b.pem")
    os.rename(place / "b.pem", place / "a.pem")


def garbage(place, good, issuer):
    with open(place / "a.pem", "r+b") as f:
        f.write(b"0\0")


def issuer_first(place, good, issuer):
    put(place / "a.pem", issuer.cert + good.cert)


def not_for_servers(place, good, issuer):
    issuer.issue(extensions="extendedKeyUsage=clientAuth\n").write(place, "a")


def an_authority(place, good, issuer):
    put(place / "a.pem", issuer.cert)
    put(place / "a.key", shared_key("ecdsa", "issuer"))


def small(place, good, issuer):
    issuer.issue(kind="small").write(place, "a")


def expired(place, good, issuer):
    issuer.issue(begin=-9, end=-2).write(place, "a")


def too_early(place, good, issuer):
    issuer.issue(begin=2, end=9).write(place, "a")


def alone(place, good, issuer):
    issuer.issue(fetch="http://issuer.test/issuer.crt").write(place, "a", chain=False)


DATE = r"20\d\d-\d\d-\d\d \d\d:\d\d UTC"
REFUSED = [
    (other_key, r"a.key: this key does not belong to the certificate in a.pem: "
                r"certificate_key must list the keys in the order of certificate"),
    (passphrase, r"a.key: the key has a passphrase: remove it with openssl pkey -in a.key -out "
                 r"KEYFILE"),
    (no_key, r"a.key: contains no valid private key: .+"),
    (no_certificate, r"a.pem: contains no valid certificate: no start line"),
    (empty, r"a.pem: contains no valid certificate: no start line"),
    (missing, r"a.pem: No such file or directory"),
    (missing_key, r"a.key: No such file or directory"),
    (directory, r"a.pem: Is a directory"),
    (open_key, r"a.key: other users can read or write it: chmod 600 it"),
    (key_of_the_group, r"a.key: other users can read or write it: chmod 600 it"),
    (damaged, r"a.pem: contains no valid certificate: .+"),
    (damaged_issuer, r"a.pem: certificate 2 is damaged: .+; download it again"),
    (cut, r"a.pem: contains no valid certificate: bad end line"),
    (binary, r"a.pem: is DER, not PEM: convert it with openssl x509 -inform der -in a.pem -out "
             r"PEMFILE"),
    (binary_key, r"a.key: is DER, not PEM: convert it with openssl pkey -inform der -in a.key -out "
                 r"PEMFILE"),
    (pkcs12, r"a.pem: is PKCS#12, not PEM: convert it with openssl pkcs12 -noenc -in a.pem -out "
             r"PEMFILE"),
    (garbage, r"a.pem: contains a NUL byte, so it is not PEM: convert it to PEM"),
    (issuer_first, r"a.pem: certificate 2 did not issue certificate 1: put the site's "
                   r"certificate first, then each issuer's"),
    (not_for_servers, r"a.pem: the certificate is not for servers: its extended key usage lacks "
                      r"serverAuth; request another one from its authority"),
    (an_authority, r"a.pem: the certificate is not for servers: its key usage lacks "
                   r"digitalSignature; request another one from its authority"),
    (small, r"a.pem: OpenSSL rejects this certificate or its key: ee key too small"),
]
DOUBTFUL = [
    (expired, r"a.pem: certificate 1 expired on %s: renew it" % DATE),
    (too_early, r"a.pem: certificate 1 is not valid before %s: check the clock" % DATE),
    (alone, r"a.pem: the chain is incomplete: append the certificate of the issuer, issuer"),
]


def cases(table):
    return pytest.mark.parametrize("spoil,text", table, ids=[f.__name__ for f, _ in table])


@cases(REFUSED + DOUBTFUL)
def test_unusable_pair_is_refused_with_file_and_cause(
        place, site, good, issuer, spoil, text):
    assert said_by_test(place, site) == ""
    spoil(place, good, issuer)
    assert re.fullmatch(text + "\n", said_by_test(place, site))


@pytest.mark.parametrize("spoil,more", [
    (binary, ()), (binary_key, ()), (pkcs12, ("-passin", "pass:secret"))],
    ids=lambda x: getattr(x, "__name__", ""))
def test_the_suggested_command_converts_to_pem(place, site, good, issuer, spoil, more):
    spoil(place, good, issuer)
    said = said_by_test(place, site)
    command = re.search(r"openssl (.*) PEMFILE\n", said).group(1).split()
    file = command[command.index("-in") + 1]
    openssl(*command, "PEMFILE", *more, cwd=place)
    os.chmod(place / "PEMFILE", 0o600)
    os.rename(place / "PEMFILE", place / file)
    assert said_by_test(place, site, keys=spoil is not pkcs12) == ""


def test_key_and_certificate_of_one_file_may_be_in_any_order(place, site, good):
    for text in (good.cert + good.chain + good.key, good.key + good.cert + good.chain):
        put(place / "a.pem", text)
        assert said_by_test(place, site, keys=False) == ""
    put(place / "a.pem", good.cert + good.chain)
    os.chmod(place / "a.pem", 0o644)
    assert said_by_test(place, site, keys=False) == (
        "a.pem: contains no private key: set certificate_key to the file of the key\n")
    put(place / "a.pem", good.cert + good.chain + good.key)
    os.chmod(place / "a.pem", 0o644)
    assert said_by_test(place, site, keys=False) == (
        "a.pem: other users can read or write it: chmod 600 it\n")


def test_authorities_of_client_ca_are_checked(place, site, good):
    def said():
        return said_by_test(place, site, verify_client="require", client_ca=str(place / "ca"))

    assert said() == "ca: No such file or directory\n"
    put(place / "ca", good.key)
    assert said() == "ca: contains no valid certificate: no start line\n"
    put(place / "ca", good.cert + good.chain)
    assert said() == ""


def test_key_that_the_group_may_read_is_taken(place, site):
    os.chmod(place / "a.key", 0o640)
    assert said_by_test(place, site) == ""


def test_certificate_that_signs_itself_is_no_incomplete_chain(place, site):
    tls_pairs.make_pair(place / "a.pem")
    assert said_by_test(place, site, keys=False) == ""


def test_two_kinds_are_taken_and_two_of_one_kind_refused(place, site, issuer):
    issuer.issue(kind="rsa").write(place, "b")
    assert said_by_test(place, site, names=("a", "b")) == ""
    issuer.issue().write(place, "b")
    assert said_by_test(place, site, names=("a", "b")) == (
        "a.pem and b.pem have keys of the same type: a site can have only one certificate of each key type\n")


def test_keys_without_certificates_are_refused(place, site):
    conf = place / "t.conf"
    top = settings(place)
    top["certificate_key"] *= 2
    conf.write_text(harness.configuration(top, [("s", {"root": site}, {})]))
    run = Finished("-t", "-c", conf)
    assert (run.code, run.err) == (
        1, "pagewise: %s:6: certificate_key: 2 key files are listed, but certificate lists only 1: "
        "remove the extra ones\n" % conf)


def test_error_names_the_line_of_the_certificate(place, site):
    top = settings(place)
    del top["certificate"], top["certificate_key"]
    pair = 'certificate_key = {"%s/a.key"}\n' % place
    for certificates, line in (('"%s/none",\n"%s/a.pem"', 3), ('"%s/a.pem",\n"%s/none"', 4)):
        text = "certificate = {\n" + certificates % (place, place) + "}\n" + pair
        conf = place / "t.conf"
        conf.write_text("\n" + text + harness.configuration(top, [("s", {"root": site}, {})]))
        run = Finished("-t", "-c", conf)
        assert run.code == 1 and run.err.startswith(
            "pagewise: %s:%d: certificate: %s" % (conf, line, place / "none")), run.err
        # A site that inherits has the same place.
        assert run.err.endswith("none: No such file or directory\n"), run.err


def test_expired_issuer_is_named_by_its_place(place, site, root, tmp_path_factory):
    late = Authority(tmp_path_factory.mktemp("late"), "late", root)
    pair = late.issue(end=40)
    # The same name and key, so the certificate below is still issued by it.
    old = root.issue("late", begin=-9, end=-2, key=shared_key("ecdsa", "late"),
                     extensions="basicConstraints=critical,CA:TRUE\n")
    pair.chain = old.cert
    pair.write(place, "a")
    assert re.fullmatch(r"a.pem: certificate 2 expired on %s: renew it\n" % DATE,
                        said_by_test(place, site))


# ------------------------------------------------------------------- at the start


@pytest.fixture
def tls(serve_conf, site):
    """Starts a server."""
    (site / "name").write_bytes(b"text")

    def start(place, more=(), **kw):
        top = {**settings(place), **dict(more)}
        return serve_conf(top, [("s", {"root": site}, {})], **kw)

    return start


def fetch(server):
    """The body, and the certificate, from a client that trusts anybody."""
    client = Client()
    body = client.get(server, "/name")
    assert body == b"text"
    return client.shown


@cases(DOUBTFUL)
def test_start_uses_a_doubtful_certificate_with_a_warning(
        tls, place, good, issuer, spoil, text):
    spoil(place, good, issuer)
    server = tls(place)
    line = "pagewise: warning: %s/%s\n" % (place, text)
    wait_until(lambda: re.fullmatch(line, server.messages), "the warning")
    assert fetch(server)
    # A death is no reason to refuse it either.
    first = server.pid
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: len(re.findall(line, server.messages)) == 2, "the next warning")
    assert fetch(server)
    server.stop(messages=True)


@cases([REFUSED[0], REFUSED[5]])
def test_start_fails_with_an_unusable_certificate(place, site, good, issuer, spoil, text):
    spoil(place, good, issuer)
    conf = place / "t.conf"
    conf.write_text(harness.configuration(settings(place), [("s", {"root": site}, {})]))
    run = Finished("-c", conf)
    assert run.code == 1
    assert re.fullmatch(text + "\n", without_place(place, run.err))


# ------------------------------------------------------------------- the exchange


def test_reload_takes_a_new_certificate_and_keeps_connections(tls, place, issuer):
    server = tls(place)
    client = Client()
    with client.connect(server) as old:
        assert old.ask("/name").body == b"text"
        issuer.issue().write(place, "a")
        server.reload()
        # The old connection ends well: its answer says so if it is the last.
        assert old.ask("/name").body == b"text"
    assert fetch(server) != client.shown


@cases(REFUSED[:3] + REFUSED[5:9] + DOUBTFUL)
def test_reload_with_a_bad_pair_keeps_the_old_one_and_says_why(
        tls, place, good, issuer, spoil, text):
    server = tls(place)
    before, pid = fetch(server), server.pid
    spoil(place, good, issuer)
    server.signal(signal.SIGHUP)
    wait_until(lambda: STAYS in server.messages, "the refusal")
    assert server.pid == pid and fetch(server) == before
    assert re.fullmatch(text + "\n" + STAYS, without_place(place, server.messages))
    if os.path.isdir(place / "a.pem"):
        os.rmdir(place / "a.pem")
    issuer.issue().write(place, "a")
    server.reload()
    assert fetch(server) != before
    server.stop(messages=True)


def test_server_that_has_expired_is_mended_by_a_reload(tls, place, issuer):
    expired(place, None, issuer)
    server = tls(place)
    before = fetch(server)
    issuer.issue().write(place, "a")
    server.reload()
    assert fetch(server) != before
    server.stop(messages=True)


def test_clients_verify_the_chain_that_is_sent(tls, place, root):
    server = tls(place)
    client = Client(authority=root)
    assert client.get(server, "/name") == b"text"


@pytest.mark.skipif(os.geteuid() != 0, reason="changes the user")
def test_key_that_only_root_can_read_serves_as_nobody(serve, base, good):
    where = os.path.join(base, "roots-own")
    os.mkdir(where)
    os.chmod(where, 0o755)
    put(os.path.join(where, "name"), "text", 0o644)
    keys = os.path.join(base, "keys")
    os.mkdir(keys, 0o700)
    cert, key = good.write(keys, "a")
    os.chmod(cert, 0o600)
    conf = put(os.path.join(keys, "conf"), harness.configuration(
        {"listen": ["127.0.0.1:0 tls"], "workers": 1, "user": "nobody",
         "certificate": [cert], "certificate_key": [key]}, [("s", {"root": where}, {})]))
    server = serve("-c", conf, drops=True)
    assert fetch(server)
    server.reload()
    assert fetch(server)
    shutil.rmtree(keys)


# ------------------------------------------------------------------- before it is too late


def warnings(server):
    return re.findall(r"pagewise: warning: \S+/a.pem: certificate 1 expires on %s: renew it\n" % DATE,
                      server.messages)


@pytest.mark.parametrize("begin, soon, late", [(-40, 13.9, 14.1), (-4, 1.9, 2.1)], ids=["90", "6"])
def test_warning_comes_two_weeks_before_or_a_third_of_its_time(
        tls, place, issuer, begin, soon, late):
    issuer.issue(begin=begin, end=soon).write(place, "a")
    server = tls(place)
    wait_until(lambda: len(warnings(server)) == 1, "the warning")
    issuer.issue(begin=begin, end=late).write(place, "a")
    server.reload()
    assert fetch(server)
    assert len(warnings(server)) == 1
    server.stop(messages="".join(re.escape(line) for line in warnings(server)))


def test_warning_comes_each_day(tls, place, issuer, debug):
    issuer.issue(begin=-40, end=13).write(place, "a")
    server = tls(place, binary=debug, env={"PAGEWISE_DAY_SECONDS": "1"})
    wait_until(lambda: len(warnings(server)) >= 3, "the third day")
    server.stop(messages=True)


def test_metrics_have_the_time_of_each_file(tls, place, issuer, tmp_path):
    issuer.issue(end=20).write(place, "a")
    admin = tmp_path / "admin"
    server = tls(place, more={"admin": admin}.items())
    with server.connect(str(admin)) as c:
        text = c.ask("/metrics").body.decode()
    found = re.findall(
        r'^pagewise_certificate_expiration_timestamp_seconds\{file="(.*)"\} (\d+)$', text, re.M)
    assert [name for name, _ in found] == [str(place / "a.pem")]
    end = os.stat(place / "a.pem").st_mtime + 20 * DAY
    assert abs(int(found[0][1]) - end) < 3600


def test_file_of_several_sites_and_of_any_name_is_one_figure(
        serve_conf, site, place, good, tmp_path):
    pair = good.write(place, 'a"b\\c')
    admin = tmp_path / "admin"
    own = {"root": site, "certificate": [pair[0]], "certificate_key": [pair[1]]}
    server = serve_conf(
        {"listen": ["127.0.0.1:0 tls"], "workers": 1, "admin": admin},
        [("s", {**own, "names": ["s.test"]}, {}), ("t", {**own, "names": ["t.test"]}, {})])
    with server.connect(str(admin)) as c:
        text = c.ask("/metrics").body.decode()
    lines = [line for line in text.splitlines()
             if line.startswith("pagewise_certificate_expiration")]
    assert len(lines) == 1
    assert r'/a\"b\\c.pem"}' in lines[0]
