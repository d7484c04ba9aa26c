"""Runs what a page says, where nothing of it touches this machine.

    unshare --net --mount --pid --fork --kill-child --mount-proc python3 inside.py <JOB >RESULT

A job is JSON: the checkout, the server, and either the blocks of a page or configurations.  All of
/etc, /srv, /var and so on are overlays whose changes are in memory; the network is a loopback
interface, with the names and addresses of documentation; the server is installed, the service of
systemd is tests/docs/bin/systemctl.  The checkout is CHECKOUT.
"""

import contextlib
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

CHECKOUT = "/opt/pagewise"
WORK = "/mnt"
SCRATCH = WORK + "/steps"
CHANGED = ["/etc", "/srv", "/var", "/usr/lib", "/usr/local", "/usr/share", "/opt", "/home", "/root"]
NETS = ["192.0.2.1", "198.51.100.1", "203.0.113.1", "10.0.0.1"]  # RFC 5737, and each with its /24
SITES = ["example.org", "example.com", "example.net", "example"]
SANITIZER = re.compile(r"ERROR: \w+Sanitizer|runtime error:")
GIVEN = {  # by key: what a file of a configuration is
    "certificate": "pair", "certificate_key": "pair", "client_ca": "pair",
    "root": "directory", "alias": "directory", "chroot": "directory",
    "htpasswd": "users", "signed_links": "keys", "error_page": "page", "mime_types": "types",
    "access_log": "log", "admin": "socket", "listen": "socket"}


def mount(*words):
    subprocess.run(["mount", *words], check=True, capture_output=True)


def overlay(lower, at):
    name = WORK + "/" + at.strip("/").replace("/", "-")
    os.makedirs(name + "/upper")
    os.makedirs(name + "/work")
    shutil.copystat(lower, name + "/upper")
    mount("-t", "overlay", "overlay", "-o", "lowerdir=%s,upperdir=%s/upper,workdir=%s/work" % (lower, name, name), at)


def interfaces():
    """lo is up; on it, all of a network is local when one address is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        def call(request, name, value):
            fcntl.ioctl(s, request, struct.pack("16s16s", name.encode(), value))

        call(0x8914, "lo", struct.pack("H", 0x49))  # SIOCSIFFLAGS: up, loopback, running
        for number, address in enumerate(NETS):
            name = "lo:%d" % number
            call(0x8916, name, struct.pack("HH4s", socket.AF_INET, 0, socket.inet_aton(address)))  # SIOCSIFADDR
            call(0x891c, name, struct.pack("HH4s", socket.AF_INET, 0, b"\xff\xff\xff\0"))  # SIOCSIFNETMASK


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def install(job):
    """As conf/debian does it, with the server that is tested."""
    for source, at in ((job["server"], "/usr/local/sbin/pagewise"), (job["tool"], "/usr/local/libexec/pagewise-tool")):
        os.makedirs(os.path.dirname(at), exist_ok=True)
        shutil.copy(source, at)
        os.chmod(at, 0o755)
    for share in ("/usr/local/share/pagewise", "/usr/share/pagewise"):
        for name in ("welcome", "haproxy", "prometheus", "grafana", "systemd"):
            shutil.copytree("%s/conf/%s" % (job["tree"], name), "%s/%s" % (share, name), dirs_exist_ok=True)
    with open(job["tree"] + "/conf/pagewise.conf", encoding="utf-8") as f:
        text = f.read()
    for old, new in (('^listen = .*', 'listen = {"*:80"}'), ('^#user = .*', 'user = "pagewise"'),
                     ('^access_log = .*', 'access_log = "/var/log/pagewise/access.log"'),
                     ('^\troot = "welcome"', '\troot = "/usr/share/pagewise/welcome"')):
        text = re.sub(old, new, text, flags=re.M)
    write("/etc/pagewise/pagewise.conf", text)
    with open("/etc/passwd", encoding="utf-8") as f:
        if "\npagewise:" not in f.read():
            subprocess.run(["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", "pagewise"],
                           check=True, capture_output=True)
    for path in ("/var/log/pagewise", "/run/pagewise", "/etc/udev/rules.d", "/etc/systemd/system", "/etc/logrotate.d",
                 "/etc/cron.daily", "/etc/haproxy", "/etc/dehydrated/conf.d"):
        os.makedirs(path, exist_ok=True)
    write("/srv/www/index.html", "hello\n")
    write(CHECKOUT + "/YOUR-FILES/index.html", "hello\n")


def hosts(texts):
    """The names of documentation are this machine."""
    names = set()
    for text in texts:
        names |= set(re.findall(r"\b(?:[a-z0-9-]+\.)*(?:example)(?:\.(?:org|com|net))?\b", text))
    with open("/etc/hosts", "a", encoding="utf-8") as f:
        f.writelines("127.0.0.1 %s\n" % name for name in sorted(names | set(SITES)))


def world(job, texts):
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "tmpfs", WORK)
    shutil.copy(job["server"], WORK + "/server")
    shutil.copy(job["tool"], WORK + "/tool")
    job["server"], job["tool"] = WORK + "/server", WORK + "/tool"
    os.makedirs(WORK + "/tree")
    overlay(job["tree"], WORK + "/tree")
    for path in CHANGED:
        overlay(path, path)
    mount("-t", "tmpfs", "tmpfs", "/run")
    os.makedirs(CHECKOUT, exist_ok=True)
    mount("--move", WORK + "/tree", CHECKOUT)
    job["tree"] = CHECKOUT
    os.chdir(CHECKOUT)
    mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/tmp")
    os.makedirs(SCRATCH)
    write(WORK + "/authorities", "")
    interfaces()
    install(job)
    hosts(texts)


# ---------------------------------------------------------------------- commands


def whole_command(text):
    """Whether a shell would run that: no quote, loop or here-document is open."""
    if re.search(r"(?<!\\)(\\\\)*\\\n\Z", text):
        return False
    check = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    return check.returncode == 0 and not check.stderr


def statements(block):
    """[line, command, output or ""] of each complete command of a block.  In `console` a command
    follows a prompt, and what follows a command without one is what it prints."""
    found, lines, first = [], [], 0
    prompts = block["info"] == "console"
    for number, line in enumerate(block["text"].splitlines(), block["line"] + 1):
        prompt = prompts and not lines and re.match(r"[$#] (.*)", line)
        if prompts and not lines and not prompt:
            if found:
                found[-1][2] += line + "\n"
            continue
        first = first if lines else number
        lines.append(prompt[1] if prompt else line)
        text = "\n".join(lines) + "\n"
        if whole_command(text):
            if not all(re.fullmatch(r"\s*(#.*)?", one) for one in lines):
                found.append([first, text, ""])
            lines = []
    return found + ([[first, "\n".join(lines) + "\n", ""]] if lines else [])


def children(pid):
    with contextlib.suppress(OSError):
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
            return [int(word) for word in f.read().split()]
    return []


def descendants(pid):
    for child in children(pid):
        yield child
        yield from descendants(child)


def name_of(pid):
    with contextlib.suppress(OSError):
        with open("/proc/%d/comm" % pid, encoding="ascii") as f:
            return f.read().strip()
    return ""


def listens():
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(path, encoding="ascii") as f:
            if any(line.split()[3] == "0A" for line in f.readlines()[1:]):
                return True
    return False


class Terminal:
    """A shell that stays, and gets one command after the other, as a reader gives them."""

    def __init__(self, out):
        self.out = out
        self.shell = subprocess.Popen(["sh"], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, text=True,
                                      cwd=CHECKOUT, start_new_session=True)

    def status(self, path):
        with contextlib.suppress(OSError):
            with open(path, encoding="ascii") as f:
                text = f.read()
                if text.endswith("\n"):
                    return int(text)
        return None

    def run(self, number, text, until, last):
        """Its status; None: a server that goes on in this terminal; or words: why not."""
        script, status = "%s/%d.sh" % (SCRATCH, number), "%s/%d.status" % (SCRATCH, number)
        write(script, text)
        before = set(children(self.shell.pid))
        self.shell.stdin.write(". %s </dev/null; echo $? >%s\n" % (script, status))
        self.shell.stdin.flush()
        seen = stopped = None
        while time.monotonic() < until:
            if self.status(status) is not None:
                return 0 if stopped else self.status(status)
            if self.shell.poll() is not None:
                return "the shell has ended: status %d" % self.shell.returncode
            server = self.server(before)
            seen = (seen or time.monotonic()) if server else None
            if seen and time.monotonic() - seen > 0.7 and not stopped:
                if last:
                    return None
                os.kill(server, signal.SIGINT)  # what a reader does before the next command
                stopped = True
            time.sleep(0.02)
        return "it does not end"

    def server(self, before):
        """A server in the foreground: the shell waits for it, and it listens."""
        new = [pid for pid in children(self.shell.pid) if pid not in before]
        for pid in [new[-1], *descendants(new[-1])] if new else []:
            if name_of(pid) in ("pagewise", "server") and listens():
                return pid
        return None


def same(wanted, got):
    """Whether that is what a page shows: '...' stands for anything, and how much space is left is nothing."""
    pattern = r"\s+".join(".*?".join(map(re.escape, word.split("..."))) for word in wanted.split())
    return re.search(r"(?:\A|\s)" + pattern + r"(?:\s|\Z)", got, re.S) is not None


def configure(block, path="/etc/pagewise/pagewise.conf"):
    """A block is the server's file from here on, or its lines are in there, in place of those with the same key."""
    text = block["text"]
    if block["info"] == "conf top":
        with open(path, encoding="utf-8") as f:
            keys = re.findall(r"^(\w+) = ", text, re.M)
            text += re.sub(r"^(%s) = .*\n" % "|".join(keys), "", f.read(), flags=re.M)
    write(path, text)


class Log:
    """What the commands of a page print."""

    def __init__(self, path):
        self.path = path
        self.out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def size(self):
        return os.path.getsize(self.path)

    def read(self, start=0):
        with open(self.path, "rb") as f:
            f.seek(start)
            return f.read().decode(errors="replace")


def differs(line, wanted, got):
    return "" if same(wanted, got) else "line %d: the output is another one:\n%s" % (line, got)


def page(job):
    """[failures]"""
    until = time.monotonic() + job["seconds"]
    log = Log(WORK + "/output")
    terminals, number, start = [], 0, 0
    free = False  # the last terminal is
    before = [{"line": 0, "info": "sh", "text": job["before"]}] if job["before"] else []
    for block in before + job["blocks"]:
        if block["info"] == "text output":
            why = differs(block["line"], block["text"], log.read(start))
            if why:
                return [why]
            continue
        if block["info"].startswith("conf"):
            configure(block)
            continue
        start = log.size()
        steps = statements(block)
        for place, (line, text, wanted) in enumerate(steps):
            if not free:
                terminals.append(Terminal(log.out))
                free = True
            number, at = number + 1, log.size()
            status = terminals[-1].run(number, text, until, place == len(steps) - 1)
            free = status is not None
            if status:
                status = "status %d" % status if isinstance(status, int) else status
                return ["line %d: %s: %s\n%s" % (line, text.strip(), status, log.read(at)[-3000:])]
            why = wanted and differs(line, wanted, log.read(at))
            if why:
                return [why]
    failures = end(until)
    said = log.read()
    for path in [WORK + "/service", *glob.glob("/var/log/pagewise/*")]:
        if os.path.isfile(path):
            said += Log(path).read()
    return failures + ([said[-6000:]] if SANITIZER.search(said) else [])


def runs(pid):
    """Whether it is there, and no zombie."""
    with contextlib.suppress(OSError):
        with open("/proc/%d/status" % pid, encoding="ascii") as f:
            return "State:\tZ" not in f.read()
    return False


def end(until):
    """Every server ends as it is told to."""
    def servers():
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if name_of(pid) == "pagewise" and runs(pid)]

    while servers() and time.monotonic() < until:
        for pid in servers():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)
        time.sleep(0.1)
    return ["it does not end: pagewise"] if servers() else []


# ---------------------------------------------------------------------- configurations


def make(kind, path, pairs):
    path = os.path.join("/etc/pagewise", path)
    if kind == "directory":
        os.makedirs(path, exist_ok=True)
    elif kind in ("log", "socket"):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    elif not os.path.exists(path):
        write(path, {"pair": pairs["rsa" in path], "users": "alice:$2y$04$" + "." * 22 + "." * 31 + "\n", "keys": "0123456789abcdef" * 4 + "\n",
                     "types": "text/plain txt\n", "page": "<p>\n"}[kind], 0o600 if kind in ("pair", "keys") else 0o644)
        shutil.chown(path, "root", "root")


def files(text, pairs):
    """Makes what a configuration names."""
    text = re.sub(r"#.*", "", text)
    for key, value in re.findall(r"\b(\w+)\s*=\s*(\{[^}]*\}|\"[^\"]*\")", text):
        for word in re.findall(r"\"([^\"]*)\"", value):
            kind = GIVEN.get(key)
            if kind == "socket":
                word = re.sub(r"^unix:", "", word).split(" ")[0]
                if not word.startswith("/"):
                    continue
            if kind == "page":
                word = word.split(" ", 1)[-1]
                if word.startswith(("text:", "default")):
                    continue
            if kind and word not in ("off", "-", "") and "$" not in word:
                make(kind, word, pairs)


def whole(kind, text):
    """The configuration that a reader has after adding such lines to a plain one."""
    has_site = re.search(r"^\s*site\s+\"", text, re.M)
    if kind == "conf site":
        root = "" if re.search(r"^\s*root\s*=", re.sub(r"location.*?\}", "", text, flags=re.S), re.M) else 'root = "/srv/www"\n'
        return 'site "example" {\n%s%s}\n' % (root, text)
    if kind == "conf top" and not has_site:
        return text + 'site "example" {\nroot = "/srv/www"\n}\n'
    return text


def pair(*kind):
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", *kind, "-nodes",
                          "-keyout", "-", "-days", "30", "-subj", "/CN=www.example.org", "-addext",
                          "subjectAltName=DNS:*.example.org,DNS:example.org"], check=True, capture_output=True, text=True)
    return made.stdout


def confs(job):
    failures, pairs = [], (pair("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), pair("rsa:2048"))
    for block in job["blocks"]:
        text = whole(block["info"], block["text"])
        files(text, pairs)
        write("/etc/pagewise/pagewise.conf", text)
        done = subprocess.run(["pagewise", "-t", "-c", "/etc/pagewise/pagewise.conf"], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=20)
        if done.returncode != 0:
            failures.append("line %d: %s\n%s" % (block["line"], done.stdout.strip(), text))
    return failures


def main():
    job = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    world(job, [block["text"] for block in job["blocks"]])
    os.environ.update(PATH=CHECKOUT + "/tests/docs/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root",
                      LC_ALL="C.UTF-8", TERM="dumb", TMPDIR="/tmp", PAGE_SERVICE=WORK + "/service", PAGE_CHECKOUT=CHECKOUT,
                      CURL_CA_BUNDLE=WORK + "/authorities")
    json.dump(confs(job) if job["what"] == "conf" else page(job), out)
    out.close()


if __name__ == "__main__":
    main()
