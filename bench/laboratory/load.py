"""The load generators: wrk and h2load for throughput; our probe for latency, slow clients,
replay for a list of requests, idle for connections that are kept, handshake for
TLS connections that come and go, and h2storm for streams of one connection.

Each is started, runs beside what the caller does meanwhile, and is asked for its
result: a dict of what it printed, with the CPU time that it took itself.  They run
on the generators' core, which the laboratory has and its children inherit.
"""

import functools
import json
import os
import re
import resource
import signal
import subprocess

from laboratory import host as machine
from laboratory.undo import spawn

LUA = os.path.join(machine.TREE, "bench", "wrk.lua")
WRK_TLS = os.path.join(machine.TREE, "bench", "peers", "wrk-tls.cnf")
IDLE = ("chrt", "--idle", "0")
FIRST = ("chrt", "--fifo", "1")
GRACE = 60  # seconds, for a generator that should have ended


class Load:
    def __init__(self, undo, argv, seconds, log):
        self.argv, self.seconds = list(map(str, argv)), seconds
        log.append(self.argv)
        self.child = spawn(undo, self.argv, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)

    def output(self):
        try:
            out = self.child.communicate(timeout=self.seconds + GRACE)[0]
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.argv[0]} does not end") from None
        if self.child.returncode:
            raise RuntimeError(f"{self.argv[0]}: {out[-300:].strip()!r}")
        return out

    def result(self):
        """The last JSON object of the output."""
        before = cpu_of_children()
        out = self.output()
        start = out.rfind("\n{") + 1
        try:
            return {**json.loads(out[start:]), "own_cpu": cpu_of_children() - before}
        except ValueError:
            raise RuntimeError(f"{self.argv[0]}: {out[-300:].strip()!r}") from None


class H2load(Load):
    def result(self):
        """What it says in words."""
        before = cpu_of_children()
        found = self.said(self.output())
        return {**found, "own_cpu": cpu_of_children() - before}

    def said(self, out):
        return {**h2load_said(out, "--h1" in self.argv), "seconds": self.seconds}


class H2loadEach(H2load):
    def said(self, out):
        took = re.search(r"^finished in ([\d.]+)(us|ms|s),", out, re.M)
        unit = {"us": 1e-6, "ms": 1e-3, "s": 1}
        return {**h2load_said(out), "seconds": float(took.group(1)) * unit[took.group(2)]}


def h2load_said(out, http1=False):
    """Numbers of requests, and bytes of bodies, also of answers that were not complete."""
    requests = re.search(r"^requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored, "
                         r"(\d+) timeout$", out, re.M)
    statuses = re.search(r"^status codes: \d+ 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$", out, re.M)
    bodies = re.search(r"^traffic: .* \((\d+)\) data$", out, re.M)
    spoken = re.search("^Application protocol: %s$" % (r"http/1\.1" if http1 else "h2c?"), out, re.M)
    if not (requests and statuses and bodies and spoken):
        raise RuntimeError(f"h2load: {out[-300:].strip()!r}")
    good, *bad = map(int, requests.groups())
    return {"requests": good, "bytes": int(bodies.group(1)), "errors": sum(bad),
            "refused": sum(map(int, statuses.groups()))}


class Kept(Load):
    """Connections, until close()."""

    def ready(self):
        """Waits until all of them are there: a dict."""
        line = self.child.stdout.readline()
        try:
            found = json.loads(line)
        except ValueError:
            raise RuntimeError(f"{self.argv[0]}: {line + self.output()[-300:]!r}") from None
        if found["ready"] < found["connections"]:
            raise RuntimeError(
                f"{found['ready']} of {found['connections']} connections, lost "
                f"{found['lost']}: errors "
                f"{found['errors']}, answers {found['statuses']}, {found['first_error']}")
        return found

    def close(self):
        """All at once; how many were there until now, and how many were lost."""
        self.child.send_signal(signal.SIGTERM)
        return self.result()


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def list_of(scratch, paths):
    """The file that tells a generator what to ask for, in this order."""
    name = f"{scratch}/list-{len(os.listdir(scratch))}"
    with open(name, "w", encoding="utf-8") as f:
        f.writelines(f"{path}\n" for path in paths)
    return name


def wrk(undo, log, url, connections, seconds, urls=None, idle=False, together=1):
    """together: requests that a connection sends at once.  idle: leaves the core to the
    other generators whenever they want it.  A kernel without preemption would let it hold
    the core for milliseconds, and the latency of the others would be that of the
    generator."""
    argv = ["env", f"OPENSSL_CONF={WRK_TLS}"] if url.startswith("https:") else []
    argv += IDLE if idle else []
    argv += ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "60s",
             "-s", LUA, url, "--", together, *([urls] if urls else [])]
    return Load(undo, argv, seconds, log)


@functools.cache
def may_be_first():
    """Whether this user may ask for a real-time priority in this control group."""
    return subprocess.run([*FIRST, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0


def probe(undo, log, url, rate, connections, seconds, timeout=10, urls=None, first=False, more=()):
    """first: it has the core whenever it wants it (SCHED_FIFO), if this user may say so.  Else
    what else runs there, the laboratory itself among it, would be in the latency."""
    argv = [*(FIRST if first and may_be_first() else ()), machine.tool("probe"),
            "--rate", rate, "--connections", connections, "--seconds", seconds,
            "--timeout", timeout, "--timeline", 100, *more]
    argv += ["--urls", urls] if urls else []
    return Load(undo, [*argv, url], seconds + timeout, log)


def slow(undo, log, url, clients, rate, seconds, urls=None, more=()):
    argv = [machine.tool("slow"), "--clients", clients, "--rate", rate, "--seconds", seconds]
    argv += more
    argv += ["--urls", urls] if urls else []
    return Load(undo, [*argv, url], seconds, log)


def replay(undo, log, url, urls, connections, timeout=600):
    """urls: the file with the list."""
    argv = [machine.tool("replay"), "--connections", connections, "--timeout", timeout,
            "--urls", urls, url]
    return Load(undo, argv, timeout, log)


def h2load(undo, log, url, connections, streams, seconds, http1=False):
    """streams: of each connection.  The same of TLS as the others offer."""
    argv = ["h2load", "-t1", f"-c{connections}", f"-m{streams}", "-D", seconds,
            "--tls13-ciphers=TLS_AES_256_GCM_SHA384", "--groups=X25519",
            "--h1" if http1 else "--npn-list=h2", url]
    return H2load(undo, argv, seconds, log)


def h2load_each(undo, log, urls, streams, timeout=600):
    """urls: the file with the list; each is requested once, over one connection.  If nothing
    arrives for ten seconds, the requests have failed."""
    with open(urls, encoding="ascii") as f:
        requests = len(f.readlines())
    argv = ["h2load", "-t1", "-c1", f"-m{streams}", f"-n{requests}", "-N10",
            "--tls13-ciphers=TLS_AES_256_GCM_SHA384", "--groups=X25519", "--npn-list=h2",
            f"--input-file={urls}"]
    return H2loadEach(undo, argv, timeout, log)


def h2storm(undo, log, url, hot, seconds, cold=0, urls=None, rate=None, lead=0, timeout=10,
            idle=False):
    """hot, cold: streams.  lead: seconds that the cold ones are ahead.  idle: as wrk."""
    argv = [*(IDLE if idle else ()), machine.tool("h2storm"), "--hot", hot, "--cold", cold,
            "--lead", lead, "--seconds", seconds, "--timeout", timeout]
    argv += ["--urls", urls] if urls else []
    argv += ["--rate", rate] if rate else []
    return Load(undo, [*argv, url], lead + seconds + timeout, log)


def check_h2storm(result):
    """No answer was other than 200, and no connection was lost."""
    if set(result["errors"]) - {"unanswered", "unsent"} or set(result["statuses"]) - {"200"}:
        raise RuntimeError(f"h2storm: errors {result['errors']}, answers {result['statuses']}")
    return result


def resets(undo, log, url, rate, seconds, idle=False):
    """idle: as wrk."""
    argv = [*(IDLE if idle else ()), machine.tool("resets"), "--rate", rate, "--seconds", seconds, url]
    return Load(undo, argv, seconds, log)


def check_resets(result):
    """There were any, and each connection could be made."""
    if result["failed"] or not result["resets"]:
        raise RuntimeError(f"resets: {result['resets']}, connections that failed: {result['failed']}")
    return result


def idle(undo, log, url, connections, timeout=600, http2=False, streams=0):
    """timeout: seconds, until all are there.  streams: of each, that wait for the client."""
    argv = [machine.tool("idle"), "--connections", connections, "--timeout", timeout,
            *(["--http2"] if http2 else []), *(["--streams", streams] if streams else []), url]
    return Kept(undo, argv, timeout, log)


def handshake(undo, log, url, connections, seconds, more=(), idle=False):
    """idle: as wrk."""
    argv = [*(IDLE if idle else ()), machine.tool("handshake"), "--connections", connections,
            "--seconds", seconds, *more, url]
    return Load(undo, argv, seconds, log)


def check_handshakes(result):
    """None failed, and there were any."""
    if result["errors"] or set(result["statuses"]) - {"200"} or not result["handshakes"]:
        raise RuntimeError(f"handshake: {result['handshakes']}, errors {result['errors']}, "
                           f"answers {result['statuses']}")
    return result


def check_replay(result):
    """All of the list was answered with files, or with ranges of them."""
    if result["errors"] or not set(result["statuses"]) <= {"200", "206"} or not result["statuses"]:
        raise RuntimeError(f"replay: errors {result['errors']}, answers {result['statuses']}")
    return result


def check(result, least=1):
    """What wrk or h2load should not have seen, and too few answers: then it measured
    nothing."""
    faults = result["refused"] + result["errors"]
    if faults or result["requests"] < least:
        raise RuntimeError(f"{faults} answers missing, broken or not 2xx, "
                           f"{result['requests']} complete")
    return {**result, "rate": result["requests"] / result["seconds"]}
