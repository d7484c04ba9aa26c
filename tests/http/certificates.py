"""Certificates of any kind for tests, made by openssl(1)."""

import functools
import os
import ssl
import subprocess
import time

import harness

DAY = 86400
KINDS = {
    "ecdsa": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "rsa": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
    "small": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"],
}
OF_AN_AUTHORITY = """basicConstraints=critical,CA:TRUE
keyUsage=critical,keyCertSign
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
"""
CONF = """[ca]
default_ca = own
[own]
dir = .
database = index
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
"""


def openssl(*args, cwd=None):
    """Its output; whatever it has to say is an error."""
    done = subprocess.run(["openssl", *map(str, args)], cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@functools.cache
def shared_key(kind, number):
    """To make one takes long; which one it is matters to few tests."""
    return new_key(kind)


def new_key(kind):
    return openssl("genpkey", *KINDS[kind])


def stamp(days):
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + days * DAY))


class Pair:
    """A certificate and its key, as PEM, with those that issued it."""

    def __init__(self, cert, key, chain=""):
        self.cert, self.key, self.chain = cert, key, chain

    def write(self, directory, name, chain=True):
        """Both into files of this name, all at once; their paths."""
        paths = []
        for end, text, mode in ((".pem", self.cert + (self.chain if chain else ""), 0o644),
                                (".key", self.key, 0o600)):
            paths.append(os.path.join(directory, name + end))
            put(paths[-1], text, mode)
        return paths


def put(path, text, mode=0o600):
    """In place of a file that a server may be reading."""
    new = str(path) + ".new"
    with open(new, "w") as f:
        f.write(text)
    os.chmod(new, mode)
    os.rename(new, path)
    return path


class Authority:
    """Issues certificates; issuer: it is an intermediate one."""

    def __init__(self, directory, name="root", issuer=None):
        self.dir = os.path.join(directory, name)
        os.mkdir(self.dir)
        for file, text in (("index", ""), ("conf", CONF)):
            put(os.path.join(self.dir, file), text)
        self.issued = 0
        self.name = name
        key = put(os.path.join(self.dir, "key.pem"), shared_key("ecdsa", name))
        self.path = os.path.join(self.dir, "cert.pem")
        if issuer is None:
            openssl("req", "-x509", "-new", "-key", key, "-subj", "/CN=" + name, "-days", 3650,
                    "-addext", "keyUsage=critical,keyCertSign", "-out", self.path)
            self.chain = ""
        else:
            pair = issuer.issue(name, key=shared_key("ecdsa", name),
                                extensions=OF_AN_AUTHORITY)
            put(self.path, pair.cert)
            self.chain = pair.cert + issuer.chain
        with open(self.path) as f:
            self.cert = f.read()

    def issue(self, subject="localhost", names=("DNS:localhost",), begin=-1, end=90,
              kind="ecdsa", key=None, fetch=None, extensions="extendedKeyUsage=serverAuth\n"):
        """begin, end: days from now.  fetch: where a client could fetch the issuer."""
        self.issued += 1
        key = key or shared_key(kind, 0)
        files = [os.path.join(self.dir, "%d.%s" % (self.issued, end))
                 for end in ("key", "req", "ext", "pem")]
        put(files[0], key)
        openssl("req", "-new", "-key", files[0], "-subj", "/CN=" + subject, "-out", files[1])
        text = "subjectAltName=%s\n%s" % (",".join(names), extensions)
        if fetch:
            text += "authorityInfoAccess=caIssuers;URI:%s\n" % fetch
        put(files[2], text)
        openssl("ca", "-batch", "-notext", "-config", "conf", "-in", files[1], "-out", files[3],
                "-keyfile", "key.pem", "-cert", "cert.pem", "-extfile", files[2],
                "-startdate", stamp(begin), "-enddate", stamp(end), cwd=self.dir)
        with open(files[3]) as f:
            return Pair(f.read(), key, self.chain)


class Client:
    """Of TLS, that knows a session: 1.2 or 1.3."""

    def __init__(self, version="1.3", name="localhost", authority=None):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        if authority is not None:
            self.context.load_verify_locations(authority.path)
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.check_hostname = True
        if version == "1.2":
            self.context.maximum_version = ssl.TLSVersion.TLSv1_2
        self.name = name
        self.session = None
        self.reused = None
        self.shown = None  # the certificate, of which a resumed session shows none

    def connect(self, server, name=None):
        def wrap(sock, address):
            return self.context.wrap_socket(
                sock, server_hostname=name or self.name, session=self.session)

        connection = type("Secured", (harness.Connection,), {"wrap": staticmethod(wrap)})(
            server.address)
        self.reused = connection.sock.session_reused
        self.shown = connection.sock.getpeercert(binary_form=True)
        return connection

    def get(self, server, target, name=None):
        """The body of an answer; its session is the next one's, if there was none."""
        with self.connect(server, name) as c:
            response = c.ask(target, host=name or self.name)
            assert response.status == 200, response
            if self.session is None:
                self.session = c.sock.session
            return response.body
