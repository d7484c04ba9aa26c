"""A real nginx with the module, or a reason why there is none.

Its sockets are Unix sockets in a directory of its own, so no port is guessed: `path(name)`.
"""

import contextlib
import http.client
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

import harness

sys.path.append(os.path.join(harness.TREE, "tests", "fault"))

MODULE = os.environ.get("NGINX_MODULE", os.path.join(
    harness.TREE, "build", "nginx", "ngx_http_pagewise_module.so"))
SEVERAL = os.path.join(os.path.dirname(MODULE), "several.so")  # tests/nginx/several.c
EVICT = os.path.join(harness.TREE, "build", "tests", "evict.so")
PROGRAM = os.environ.get("NGINX_PROGRAM") or shutil.which("nginx") or "/usr/sbin/nginx"
USER = "user root;" if os.geteuid() == 0 else ""
# What no test may be the cause of.  A worker that ends is told at "notice".
WRONG = ("[alert]", "[emerg]", "AddressSanitizer", "runtime error:", "signal 11", "signal 6",
         "core dumped")
# A test's own doing; and a master kills a worker that has not ended a second after SIGTERM.
NOT_WRONG = ("was truncated", "was changed while it was sent", "exited on signal 9")
CONF = """
load_module %(module)s;
daemon %(daemon)s;
%(user)s
worker_processes %(workers)d;
pid %(run)s/pid;
error_log %(run)s/stderr info;
%(main)s
events { worker_connections %(connections)d; }
http {
	log_format test '$request_method $request_uri $status $body_bytes_sent $pagewise_wait';
	access_log %(run)s/access.log test;
	default_type application/octet-stream;
	types { text/html html; text/plain txt; }
	client_body_temp_path %(run)s/body;
	proxy_temp_path %(run)s/proxy;
	fastcgi_temp_path %(run)s/fastcgi;
	uwsgi_temp_path %(run)s/uwsgi;
	scgi_temp_path %(run)s/scgi;
	sendfile on;
	tcp_nopush on;
	%(http)s
}
"""


def why_not():
    if not os.access(PROGRAM, os.X_OK):
        return "nginx is not installed"
    if not os.access(MODULE, os.R_OK):
        return "no module: make nginx-module builds it, with the package nginx-dev"
    return None


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.fields = response.getheaders()
        self.body = response.read()

    def get(self, name):
        return dict((n.lower(), v) for n, v in self.fields).get(name.lower())


class Nginx:
    """run: its directory, short enough for a Unix socket.  http: the inside of the block;
    @NAME@ in it is the path of a socket, for `listen unix:@NAME@`."""

    def __init__(self, run, http, main="", workers=1, connections=256, daemon="off", env=()):
        self.run = str(run)
        self.words = {"main": main, "workers": workers, "connections": connections,
                      "daemon": daemon}
        self.env = dict(os.environ, **dict(env))
        self.process = None
        self.pid = None  # of the master
        self.configure(http)

    def path(self, name):
        return os.path.join(self.run, name)

    def configure(self, http_block):
        while http_block.count("@") > 1:
            name = http_block.split("@")[1]
            http_block = http_block.replace("@%s@" % name, self.path(name))
        text = CONF % {"module": MODULE, "user": USER, "run": self.run, "http": http_block,
                       **self.words}
        with open(self.path("conf"), "w", encoding="utf-8") as f:
            f.write(text)

    def argv(self, *more):
        return [PROGRAM, "-e", "stderr", "-p", self.run, "-c", self.path("conf"), *more]

    def test(self):
        """What `nginx -t` says; it has to fail or not as the caller expects."""
        done = subprocess.run(self.argv("-t"), capture_output=True, text=True, check=False,
                              timeout=harness.PATIENCE)
        return done.returncode, done.stderr

    def start(self, *ready):
        with open(self.path("stderr"), "ab") as err:
            self.process = subprocess.Popen(self.argv(), stdin=subprocess.DEVNULL, stdout=err,
                                            stderr=err, env=self.env)
        self.pid = self.process.pid
        if self.words["daemon"] == "on":
            assert self.process.wait(harness.PATIENCE) == 0, self.output()
            harness.wait_until(lambda: self.pid_file("pid"), "a pid")
            self.pid = self.pid_file("pid")
        harness.wait_until(self.serving, "nginx to serve: " + self.output())
        return self

    def output(self):
        with open(self.path("stderr"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def log(self):
        with open(self.path("access.log"), encoding="utf-8") as f:
            return f.read()

    def pid_file(self, name):
        try:
            with open(self.path(name), encoding="ascii") as f:
                return int(f.read())
        except (OSError, ValueError):
            return None

    def serving(self):
        assert self.running(), self.output()
        return "start worker process" in self.output() and self.workers()

    def workers(self):
        """Those that have started and not ended: {pid: shutting down}."""
        found = {}
        path = "/proc/%d/task/%d/children" % (self.pid, self.pid)
        with open(path, encoding="ascii") as f:
            for pid in map(int, f.read().split()):
                try:
                    with open("/proc/%d/cmdline" % pid, "rb") as g:
                        title = g.read()
                except OSError:
                    continue
                if b"worker process" in title:
                    found[pid] = b"shutting down" in title
        return found

    def descriptors(self, pid):
        found = []
        for n in os.listdir("/proc/%d/fd" % pid):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found.append(os.readlink("/proc/%d/fd/%s" % (pid, n)))
        return sorted(found)

    def connections(self):
        """The paths of the sockets that its workers have accepted from."""
        with open("/proc/net/unix", encoding="ascii", errors="replace") as f:
            lines = [line.split() for line in f]
        # A connection's state is 03, a listening socket's 01.
        return [w[7] for w in lines if len(w) == 8 and w[7].startswith(self.run) and w[5] == "03"]

    def no_descriptor_is_left(self, pid):
        """Lowers the worker's limit to the first free number: it keeps what it has, and opens nothing."""
        taken = set(map(int, os.listdir("/proc/%d/fd" % pid)))
        free = next(n for n in range(len(taken) + 1) if n not in taken)
        most = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, most))

    def connect(self, name, rcvbuf=None):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(harness.PATIENCE)
        if rcvbuf:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        while True:
            try:
                s.connect(self.path(name))
                return s
            except BlockingIOError:  # the backlog is full: nginx accepts as fast as it can
                time.sleep(0.01)

    def send(self, name, target="/", method="GET", fields=(), **kw):
        """A request that is on its way: receive() takes its answer."""
        s = self.connect(name, **kw)
        s.sendall(request(target, method, fields))
        return s

    def get(self, name, target="/", method="GET", fields=()):
        return receive(self.send(name, target, method, fields), method)

    def signal(self, number):
        os.kill(self.pid, number)

    def running(self):
        self.process.poll()  # collects it
        return os.path.exists("/proc/%d" % self.pid)

    def wait(self):
        harness.wait_until(lambda: not self.running(), "the end of nginx")

    def reload(self):
        """Until new workers are there; old ones may still serve."""
        before = set(self.workers())
        self.signal(signal.SIGHUP)
        harness.wait_until(lambda: set(self.workers()) - before, "new workers")

    def stop(self):
        if self.pid is None or not self.running():
            return
        self.signal(signal.SIGTERM)
        try:
            self.wait()
        except AssertionError:
            for pid in [*self.workers(), self.pid]:
                os.kill(pid, signal.SIGKILL)
            self.wait()
            raise

    def healthy(self):
        text = self.output()
        found = [line for line in text.splitlines()
                 if any(w in line for w in WRONG) and not any(w in line for w in NOT_WRONG)]
        assert not found, "\n".join(found)


def request(target, method="GET", fields=(), close=True):
    lines = ["%s %s HTTP/1.1" % (method, target), "Host: localhost", *fields]
    if close:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def answer(sock, method="GET"):
    response = http.client.HTTPResponse(sock, method=method)
    response.begin()
    return Answer(response)


def receive(sock, method="GET"):
    with sock:
        return answer(sock, method)
