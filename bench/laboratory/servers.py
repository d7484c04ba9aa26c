"""The candidates: our send paths, which the program itself names, and the peers.

A Server is one of them, running as an ordinary user on its own core: ours is started by
root, as most people do it, and changes to that user itself. Its configuration is a file of bench/peers with the words between at signs replaced.
"""

import contextlib
import dataclasses
import functools
import http.client
import os
import pwd
import re
import resource
import shutil
import socket
import ssl
import subprocess
import tempfile
import time

from laboratory import asleep, certificate, forbid, metrics
from laboratory import host as machine
from laboratory.limits import read, write
from laboratory.undo import held, spawn

PROGRAM = os.path.join(machine.TREE, "build", "pagewise")
PEERS = os.path.join(machine.TREE, "bench", "peers")
EXAMPLES = os.path.join(machine.TREE, "build", "obj", "examples")
ADMIN = "@RUN@/admin"
OURS_TLS = f"@PROGRAM@ --workers 1 --root @ROOT@ --access-log @LOG@ --admin {ADMIN}".split()
OURS = [*OURS_TLS, "--listen", "127.0.0.1:@PORT@"]
NO_HOT_SET = ("--hot-set", "0")
FILE_CACHE = "open_file_cache max=10000 inactive=60s; open_file_cache_valid 60s;"
CONNECTIONS = 16384  # that a server must be able to hold, if no more are asked for
LOG = "@RUN@/access.log"
COMBINED = r'"%h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\""'
NGINX_LOG = ("access_log off;", f"access_log {LOG} combined buffer=64k flush=1s;")
NGINX = "nginx -e stderr -p @RUN@ -c @CONF@".split()
OWNER, REFUSED, UNPRIVILEGED = "-owner", "-refused", "-unprivileged"  # at the end of a name
RULES, TLS = "-rules", "-tls"  # the same
CERTIFICATE, KEY = "@RUN@/certificate.pem", "@RUN@/key.pem"
NGINX_RULES = """add_header X-Frame-Options SAMEORIGIN;
	add_header X-Content-Type-Options nosniff;
	add_header Referrer-Policy no-referrer;
	add_header X-Robots-Tag noindex;
	add_header Cache-Control max-age=600;
	charset utf-8;
	gzip_static on;
	gzip_vary on;
	set_real_ip_from 127.0.0.1;
	real_ip_header X-Forwarded-For;"""
NGINX_MODULE = os.path.join(machine.TREE, "build", "nginx", "ngx_http_pagewise_module.so")
NGINX_HTTP2 = "127.0.0.2"
# The search for nginx' best configuration: how it reads, and one change of how it sends.
NGINX_READS = (
    ("", "sendfile", {}),
    ("-threads", "aio threads", {"AIO": "aio threads;"}),  # a pool of 32, by default
    ("-threads-64", "64 aio threads", {"AIO": "aio threads=wide;", "POOL": "thread_pool wide threads=64;"}),
)
CHUNK, WHOLE = "-chunk", "-whole"
NGINX_SENDS = (
    ("-push", "tcp_nopush off", {"PUSH": "tcp_nopush off;"}),
    (CHUNK, "sendfile_max_chunk 512k", {"CHUNK": "sendfile_max_chunk 512k;"}),  # 2m by default
    (WHOLE, "sendfile_max_chunk 0", {"CHUNK": "sendfile_max_chunk 0;"}),
)
NGINX_TRY = "try_files $uri $uri.html =404;"
NGINX_TLS = f"""ssl_certificate {CERTIFICATE};
		ssl_certificate_key {KEY};
		ssl_protocols TLSv1.3;
		ssl_session_cache off;"""
H2O_TLS = f"""
  ssl:
    certificate-file: {CERTIFICATE}
    key-file: {KEY}
    minimum-version: TLSv1.3
    neverbleed: OFF
ssl-session-resumption:
  mode: ticket"""
H2O_HTTP2 = "http2-idle-timeout: 3600  # for the scenario idle"
LIGHTTPD_TLS = f"""server.modules += ("mod_openssl")
ssl.engine = "enable"
ssl.pemfile = "{CERTIFICATE}"
ssl.privkey = "{KEY}"
ssl.openssl.ssl-conf-cmd = ("MinProtocol" => "TLSv1.3")"""
LIGHTTPD_NO_HTTP2 = 'server.feature-flags = ("server.h2proto" => "disable")'
CADDY_TLS = f"tls {CERTIFICATE} {KEY} {{\n\t\tprotocols tls1.3\n\t}}"
# With --quick: what the others are compared with.
QUICK = ("nodiskio", "nodiskio-owner", "uring", "blocking", "pool", "nginx", "nginx-threads",
         "lighttpd")


@dataclasses.dataclass(frozen=True)
class Candidate:
    name: str
    title: str
    argv: tuple
    conf: tuple = ()  # files of bench/peers, one behind the other
    version: str = "-v"
    # for those between at signs in conf; of the candidate, where it is a function
    words: dict = dataclasses.field(default_factory=dict)
    ours: bool = False
    path: tuple = ()  # options, of ours
    log: tuple = ("", "")  # at @LOG@: without an access log, and with one
    # at @VERSION@: without HTTP/2, and with it; None: it speaks none
    http2: tuple | None = None
    http2_host: str = "127.0.0.1"  # where it speaks it
    http2_unasked: bool = False  # over TLS it speaks it in any case
    built_with: str = ""  # what `program --version` must say
    loop: str = ""  # of the threads with an event loop, see asleep.threads
    root: bool = False  # is started by root, and changes to the user itself
    owner: bool = False  # of the files
    wrapper: tuple = ()  # a command that runs it
    asked: bool = False  # only if it is named
    files: tuple = ()  # that it needs beside itself: copied into its directory
    cure: str = "make bench-peers"  # if it is not there

    @property
    def tls(self):
        return over_tls(self.name)

    def program(self):
        if self.ours:
            return PROGRAM
        return machine.programs.get(self.name) or machine.tool(self.argv[0])

    def release(self):
        return machine.version(self.program(), self.version)

    def unusable(self):
        """Why it cannot run here, or None."""
        if not self.program():
            return f"not installed; {self.cure} does it"
        if missing := [path for path in self.files if not os.path.exists(path)]:
            return f"{missing[0]} is not there: make nginx-module"
        if self.built_with and self.built_with not in machine.output(self.program(), "--version"):
            return f"built without {self.built_with}"
        if self.owner and os.geteuid() != 0:
            return "not root: files belong to this user in any case"
        if self.tls and not machine.tool("openssl"):
            return "openssl is not there: conf/install-deps.sh bench"
        if not self.ours:
            return None
        test = [self.program(), "-t", "--root", "/", *self.path]
        done = subprocess.run(test, timeout=10, check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout.strip() if done.returncode else None


def peer(name, title, argv, conf, version="-v", log=("", ""), built_with="", loop="", http2=None,
         **words):
    return Candidate(name, title, tuple(argv), (conf,) if conf else (), version, words, log=log,
                     built_with=built_with, loop=loop, http2=http2)


def over_tls(name):
    """Of a candidate, or what candidates are compared with."""
    return name.endswith(TLS)


def without_library(name):
    """Of a candidate with libpagewise: the same server without it.  Ours is never without:
    its path that waits for the disk in sendfile stands for that.  None for all others."""
    if name == "nodiskio":
        return "blocking"
    plain = name.replace("nginx-pagewise", "nginx")
    return plain if plain != name else None


def with_tls(plain, http2=None, **words):
    """The same peer, over TLS."""
    return dataclasses.replace(plain, name=plain.name + TLS, title=f"{plain.title}, TLS",
                               words={**plain.words, **words}, asked=True,
                               http2=http2 or plain.http2)


def nginx(variant, title, **words):
    defaults = {"AIO": "aio off;", "POOL": "", "PUSH": "tcp_nopush on;", "CHUNK": "", "CACHE": FILE_CACHE,
                "RULES": "", "TRY": "", "SSL": "", "TLS": "", "MODULE": "", "PAGEWISE": ""}
    made = peer("nginx" + variant, f"nginx, {title}", NGINX, "nginx.conf", log=NGINX_LOG,
                http2=("", nginx_http2), **{**defaults, **words})
    return dataclasses.replace(made, http2_host=NGINX_HTTP2)


def nginx_http2(cand):
    """At an address of its own: before 1.25.1 one in clear text speaks nothing else then, and
    the word stands behind the address."""
    listen = f"listen {NGINX_HTTP2}:@PORT@ {cand.words['SSL']}"
    new = numbers(cand.release()) >= [1, 25, 1]
    return f"{listen};\n\t\thttp2 on;" if new else f"{listen} http2;"


def numbers(release):
    return [int(n) for n in re.findall(r"\d+", release)]


def nginx_module(cand):
    """The same with our module, which has an open file cache of its own."""
    name = os.path.basename(NGINX_MODULE)
    return dataclasses.replace(cand, name="nginx-pagewise" + cand.name.removeprefix("nginx"),
                               title=cand.title.replace("sendfile", "pagewise module"),
                               words={**cand.words, "MODULE": f"load_module @RUN@/{name};",
                                      "PAGEWISE": "pagewise on;", "CACHE": ""},
                               files=(NGINX_MODULE,))


def h2o(variant, title, **more):
    return peer("h2o" + variant, title, ("h2o", "-c", "@CONF@"), "h2o.conf",
                log=("", f"access-log: {LOG}"), TLS="", http2=("", H2O_HTTP2), **more)


def h2o_tls(cand):
    """From 2.3 on another timeout ends idle connections over TLS; before, it is unknown."""
    new = numbers(cand.release()) >= [2, 3]
    return H2O_TLS + ("\nhttp1-request-io-timeout: 3600" if new else "")


def peers():
    lighttpd = peer("lighttpd", "lighttpd", ("lighttpd", "-D", "-f", "@CONF@"), "lighttpd.conf",
                    log=("", 'server.modules += ("mod_accesslog")\n'
                         f'accesslog.filename = "{LOG}"'), TLS="", http2=("", ""))
    caddy = peer("caddy", "Caddy", "caddy run --adapter caddyfile --config @CONF@".split(),
                 "Caddyfile", version="version", loop=None, SCHEME="http", TLS="",
                 http2=("h1", "h1 h2 h2c"), log=("", f"log {{\n\t\toutput file {LOG}\n\t}}"))
    uring = h2o("-uring", "H2O, io_uring", built_with="io_uring: YES", URING="file.io_uring: ON")
    return [
        *(nginx(name, title, **words) for name, title, words in NGINX_READS),
        *(dataclasses.replace(nginx(name + more, f"{title}, {change}", **words, **changed), asked=True)
          for name, title, words in NGINX_READS for more, change, changed in NGINX_SENDS),
        nginx_module(nginx("", "sendfile")),
        dataclasses.replace(nginx(RULES, "sendfile, rules", RULES=NGINX_RULES, TRY=NGINX_TRY),
                            asked=True),
        nginx("-directio", "directio", CACHE="",
              AIO="aio threads; directio 1m; output_buffers 1 128k;"),
        h2o("", "H2O", URING=""),
        uring,
        lighttpd,
        peer("apache", "Apache, event", "apache2 -X -f @CONF@".split(), "apache.conf",
             loop=None, log=("", f"BufferedLogs On\nCustomLog {LOG} {COMBINED}")),
        caddy,
        with_tls(nginx("", "sendfile"), SSL="ssl", TLS=NGINX_TLS),
        with_tls(nginx_module(nginx("", "sendfile")), SSL="ssl", TLS=NGINX_TLS),
        *(dataclasses.replace(with_tls(plain, TLS=h2o_tls), http2_unasked=True)
          for plain in (h2o("", "H2O", URING=""), uring)),
        with_tls(lighttpd, http2=(LIGHTTPD_NO_HTTP2, ""), TLS=LIGHTTPD_TLS),
        with_tls(caddy, SCHEME="https", TLS=CADDY_TLS),
    ]


def paths():
    """As `pagewise -h` lists them: a new one appears here by itself.  The first one is the
    default and runs as people run it.  The others have no hot set, which would answer in
    their place."""
    if not os.access(PROGRAM, os.X_OK):
        raise RuntimeError(f"no server at {PROGRAM}: run make")
    done = subprocess.run([PROGRAM, "-h"], timeout=10, check=True, text=True,
                          stdout=subprocess.PIPE)
    names = re.search(r"send paths of this system:(.*)", done.stdout)
    default, *others = names.group(1).split()
    return [path(default), *(path(name, *NO_HOT_SET) for name in others)]


def path(name, *more):
    options = ("--send-path", name, *more)
    return Candidate(name, f"pagewise, {name}", (*OURS, *options), version="-V", ours=True,
                     path=options, log=("off", LOG), loop="pw-worker", root=True,
                     http2=("", ""))


def owners():
    """The default path once more, for files that belong to the server's user.  All others
    serve files of root."""
    default = paths()[0]
    return [dataclasses.replace(default, name=default.name + OWNER, owner=True,
                                title=f"{default.title}, the files' owner")]


def refused():
    """As that, on a kernel without cachestat."""
    return [dataclasses.replace(cand, name=cand.name.replace(OWNER, REFUSED), asked=True,
                                title=f"{cand.title}, no cachestat",
                                wrapper=tuple(forbid.wrapper(f"{forbid.CACHESTAT}:ENOSYS")))
            for cand in owners()]


def unprivileged():
    """The default path, started by the user that it runs as, as in a container: without
    CAP_FOWNER the kernel refuses cachestat for files of root."""
    default = paths()[0]
    return [dataclasses.replace(default, name=default.name + UNPRIVILEGED, root=False,
                                asked=True, title=f"{default.title}, not started by root")]


def ruled():
    """The default path with what sites set: fields of answers, siblings, steps, a proxy."""
    default = paths()[0]
    return [configured(dataclasses.replace(default, name=default.name + RULES, asked=True,
                                           title=f"{default.title}, rules"),
                       "pagewise-rules.conf")]


def encrypted():
    """The default path over TLS.  Only the configuration can say so of an address."""
    default = paths()[0]
    argv = (*OURS_TLS, *default.argv[len(OURS):])
    return [configured(dataclasses.replace(default, name=default.name + TLS, asked=True, argv=argv,
                                           title=f"{default.title}, TLS"),
                       "pagewise-tls.conf")]


def configured(cand, name):
    """One of ours with a file of bench/peers, behind those that it has."""
    argv = cand.argv if cand.conf else (*cand.argv, "-c", "@CONF@")
    return dataclasses.replace(cand, argv=argv, conf=(*cand.conf, name))


def examples():
    """The servers of lib/examples, each on the event loop that it is named after.  A ring's wait
    for events looks like a sleep: it is not asked about."""
    return [Candidate(f"example-{name}", f"example, {name}",
                      (os.path.join(EXAMPLES, name), "@ROOT@", "@PORT@"), asked=True,
                      cure="make examples", loop=None if name == "io_uring" else "")
            for name in ("epoll", "libuv", "io_uring")]


def every():
    return [*paths(), *owners(), *refused(), *unprivileged(), *ruled(), *encrypted(), *peers(),
            *examples()]


def hot_set(cand, size):
    """Options: for a path that has a hot set, how large it is."""
    return ("--hot-set", size) if cand.ours and NO_HOT_SET[0] not in cand.path else ()


@functools.cache
def trusting():
    """For a certificate that this run made itself."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def descriptors(connections):
    """Of a server, for so many: lighttpd wants two of each."""
    return min(connections * 2, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


class Server:
    """Runs until undo ends; counters.sample() is what it took.  access_log: it is
    written to a file in run, the directory that ends with the server.  wrapper: a
    command that runs it.  kind: of its certificate, if it has one.  http2: it speaks
    that too, at http2_base."""

    def __init__(self, undo, cand, host, counters, root, options=(), access_log=False,
                 wrapper=(), connections=CONNECTIONS, kind=certificate.USUAL, http2=False):
        if http2 and cand.http2 is None:
            raise RuntimeError(f"{cand.name} speaks no HTTP/2 here")
        self.cand, self.counters = cand, counters
        # Whom it changes to; a tool that runs it would lose its files with the rights.
        self.user = host.user if cand.root and not wrapper else None
        self.run = undo.enter_context(tempfile.TemporaryDirectory(prefix="lab-"))
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        scheme = "https" if cand.tls else "http"
        self.base = f"{scheme}://127.0.0.1:{self.port}"
        self.http2_base = f"{scheme}://{cand.http2_host}:{self.port}"
        self.log = f"{self.run}/log"
        self.argv, self.conf = self.prepare(root, options, access_log, connections, http2)
        write(self.log, "")
        made = [self.run, self.log, *(self.certify(kind) if cand.tls else ())]
        if host.user:
            user = pwd.getpwnam(host.user)
            for path in made:
                os.chown(path, user.pw_uid, user.pw_gid)
        # On a core that they share the generators get what the server leaves.
        first = ["nice", "-n", "-20"] if host.one_core and host.root else []
        confine = [*first, *counters.prefix(), f"--core={host.server_core}"]
        confine += [f"--user={host.user}"] if host.user and not self.user else []
        if connections > CONNECTIONS:
            confine += [f"--descriptors={descriptors(connections)}"]
        with held(), open(self.log, "a", encoding="utf-8") as log:
            self.child = counters.child = spawn(
                undo, [*confine, *cand.wrapper, *wrapper, *self.argv], stdout=log, stderr=log, cwd=self.run,
                env={"PATH": os.environ["PATH"], "HOME": self.run})
            undo.callback(counters.kill)

    def prepare(self, root, options, access_log, connections, http2):
        """The program is copied: the tree may be closed to an ordinary user."""
        cand, name = self.cand, os.path.basename(self.cand.program())
        words = {"PORT": str(self.port), "ROOT": root, "RUN": self.run, "PROGRAM": name,
                 "CONF": f"{self.run}/conf", "CONNECTIONS": str(connections),
                 "FILES": str(descriptors(connections)), **cand.words,
                 "LOG": cand.log[access_log], "VERSION": (cand.http2 or ("", ""))[http2]}
        words = {word: (text(cand) if callable(text) else text).replace("@RUN@", self.run)
                 .replace("@PORT@", str(self.port)) for word, text in words.items()}

        def fill(text):
            return re.sub(r"@([A-Z]+)@", lambda m: words[m.group(1)], text)

        argv = [*map(fill, cand.argv), *options]
        if self.user:
            argv += ["--user", self.user]
        argv[0] = shutil.copy(cand.program(), self.run)
        for path in cand.files:
            shutil.copy(path, self.run)
        conf = "".join(fill(read(f"{PEERS}/{name}")) for name in cand.conf) or None
        if conf:
            write(words["CONF"], conf)
        return argv, conf

    def certify(self, kind):
        """Yields the names of its own copies."""
        for name, text in zip((CERTIFICATE, KEY), certificate.pair(kind)):
            path = name.replace("@RUN@", self.run)
            write(path, text)
            os.chmod(path, 0o600)
            yield path

    def loops(self):
        return asleep.threads(self.counters.pids(), self.cand.loop)

    def longest_turn(self):
        """Of an event loop since the start, in seconds; None: it does not tell."""
        if not self.cand.ours:
            return None
        return metrics.greatest(self.metrics(), "pagewise_loop_turn_longest_seconds")

    def sleeps(self):
        """Of its event loops since the start, by its own meter: {call: [times, seconds]};
        None: it does not tell."""
        return metrics.sleeps(self.metrics()) if self.cand.ours else None

    def metrics(self):
        """Of ours."""
        return metrics.fetched(ADMIN.replace("@RUN@", self.run))

    def connect(self, timeout):
        """A socket, over TLS if that is what it speaks."""
        conn = socket.create_connection(("127.0.0.1", self.port), timeout)
        return trusting().wrap_socket(conn) if self.cand.tls else conn

    def fetch(self, path):
        conn = http.client.HTTPConnection("127.0.0.1", self.port)
        conn.sock = self.connect(timeout=30)
        with contextlib.closing(conn):
            conn.request("GET", path)
            return (answer := conn.getresponse()).status, answer.read()

    def started(self, ask):
        """Calls ask until the server accepts connections, and returns the result."""
        deadline = time.monotonic() + 15
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                return ask()
            if self.child.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"did not start: {read(self.log)[-500:].strip()!r}")
            time.sleep(0.05)

    def accepts(self):
        """Waits until the server accepts connections, without a request."""
        self.started(lambda: self.connect(timeout=30).close())

    def warm(self, path, want, times=3):
        """Asks until the file arrives, whole and right, and a few times more."""
        status, body = self.started(lambda: self.fetch(path))
        if (status, body) != (200, want):
            raise RuntimeError(f"{path}: answered {status} with {len(body)} bytes, "
                               f"not 200 with {len(want)}")
        for _ in range(times - 1):
            self.fetch(path)
