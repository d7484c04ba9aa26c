"""Judges that are programs, and checkouts of others' suites by path."""

import collections
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import http1
from verdict import Absent, Verdict

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
PATIENCE = 3600  # seconds for a suite
SCRIPT_SECONDS = 60  # for one script of tlsfuzzer


def run(command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", timeout=PATIENCE, check=False, **more)


def h2spec(program):
    """tests/h2spec, in clear text and over TLS."""
    if not os.path.exists(program):
        raise Absent("no h2spec, which Go builds")
    said = run([sys.executable, os.path.join(TREE, "tests/h2spec"), program]).stdout
    counts = re.findall(r"^(.*): (\d+) cases, (\d+) failed(, 1 answered by HTTP/1)?", said, re.M)
    if len(counts) != 6:
        raise RuntimeError("h2spec: " + said[-500:])
    wrong = sum(int(failed) for _, _, failed, _ in counts)
    other = ["answered by HTTP/1: an invalid preface in clear text"] * sum(bool(c[3]) for c in counts)
    cases = sum(int(c[1]) for c in counts)
    findings = re.findall(r"^(?:generic|http2|hpack)/.*", said, re.M)[:wrong] + other
    return Verdict("h2spec 2.2.1", cases, cases - wrong - len(other), "cases", findings)


def scanners(place):
    """tests/scan_tls: testssl.sh, and sslyze in the directory."""
    if not (shutil.which("testssl") or shutil.which("testssl.sh")):
        raise Absent("no testssl.sh")
    python = http1.installed(os.path.join(place, "python"), ("sslyze==6.3.1",))
    said = run([sys.executable, os.path.join(TREE, "tests/scan_tls"), place],
               env=dict(os.environ, PYTHONPATH=python)).stdout.strip().splitlines()
    findings = [text for text in said if not text.startswith("pagewise: nothing above LOW")]
    return Verdict("testssl.sh, sslyze 6.3.1", 4, 4 - min(4, len(findings)), "reports without a finding above LOW",
                   findings)


def clients(place):
    """Tests with others' clients: rclone, fsspec, lftp, wget, wget2, aria2, GDAL, Zarr."""
    report = os.path.join(place, "clients.xml")
    run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", report,
         "tests/http/test_listing_clients.py"], cwd=TREE, env=dict(os.environ, CLIENTS_ALL="1"))
    cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    ran = [case for case in cases if case.find("skipped") is None]
    failed = [case.get("name") for case in ran if case.find("failure") is not None or case.find("error") is not None]
    if not ran:
        raise Absent("no client of tests/http/test_listing_clients.py")
    return Verdict("clients that read listings", len(ran), len(ran) - len(failed),
                   "tests, %d skipped" % (len(cases) - len(ran)), failed)


# ------------------------------------------------------------------------ nginx


def wrapper(place, nginx):
    """A program that hides the modules of packages that are not installed."""
    path = os.path.join(place, "nginx")
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n[ \"$*\" != -V ] || { %s -V 2>&1 | sed 's/--with-[^ ]*=dynamic//g' >&2; exit; }\n"
                "exec %s \"$@\"\n" % (nginx, nginx))
    os.chmod(path, 0o755)
    return path


def prove(suite, binary, module):
    """The results of each script: the numbers of its failed tests, and how many ran in all."""
    # Started by root, nginx would change to a user who may not read the suite's files.
    top = "user root;" if os.geteuid() == 0 else ""
    env = dict(os.environ, TEST_NGINX_BINARY=binary, TEST_NGINX_GLOBALS=top)
    if module:
        env.update(TEST_NGINX_GLOBALS="load_module %s; %s" % (module, top), TEST_NGINX_GLOBALS_HTTP="pagewise on;")
    failed, ran = collections.defaultdict(set), 0
    names = sorted(os.path.basename(path) for path in glob.glob(suite + "/*.t"))

    def one(script):
        try:
            done = subprocess.run(["perl", script], cwd=suite, env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
                                  timeout=300, check=False)
            return script, done.stdout
        except subprocess.TimeoutExpired:
            return script, "not ok 0 - ends within 300 seconds\n"

    # Scripts use fixed ports, which they lock: two at once are possible.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for script, said in pool.map(one, names):
            for state, number, name in re.findall(r"^(ok|not ok) (\d+)(?: - (.*))?", said, re.M):
                ran += 1
                if state == "not ok" and "# TODO" not in name:
                    failed[script].add(number + " " + name)
    return failed, ran


def nginx(suite, place):
    """nginx' own tests with the module on, beside the same nginx without it."""
    binary, module = shutil.which("nginx"), os.path.join(TREE, "build/nginx/ngx_http_pagewise_module.so")
    if not binary or not os.path.exists(module):
        raise Absent("no nginx, or no build/nginx/ngx_http_pagewise_module.so: make nginx-module")
    binary = wrapper(place, binary)
    plain, _ = prove(suite, binary, None)
    failed, ran = prove(suite, binary, module)
    findings = ["%s: %s" % (script, test)
                for script in sorted(failed) for test in sorted(failed[script] - plain[script])]
    same = sum(len(tests & plain[script]) for script, tests in failed.items())
    findings += ["%d tests fail without the module too" % same] * bool(same)
    return Verdict("nginx-tests, through the module", ran, ran - sum(map(len, failed.values())), "tests", findings)


# -------------------------------------------------------------------- tlsfuzzer


def scripts(suite, python, port):
    """The names of scripts that pass, and of those that do not.  -d: ECDHE instead of RSA's key exchange."""
    env = dict(os.environ, PYTHONPATH=suite + ":" + python)

    def one(path):
        name = os.path.basename(path)[:-3].replace("-", "_")
        with open("%s/tlsfuzzer/_apps/%s.py" % (suite, name), encoding="utf-8") as f:
            ephemeral = ["-d"] * bool(re.search(r"opt == ['\"]-d['\"]", f.read()))
        try:
            done = subprocess.run([sys.executable, path, "-p", str(port), *ephemeral], cwd=suite, env=env,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=SCRIPT_SECONDS, check=False)
            return done.returncode == 0
        except subprocess.TimeoutExpired:
            return False

    paths = sorted(glob.glob(suite + "/scripts/test-*.py"))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        passed = list(pool.map(one, paths))
    names = [os.path.basename(path)[5:-3] for path in paths]
    return {n for n, p in zip(names, passed) if p}, {n for n, p in zip(names, passed) if not p}


def tlsfuzzer(suite, place, port, other_port):
    """Every script, beside nginx with the same library on other_port, or None."""
    with open(os.path.join(suite, "requirements.txt"), encoding="utf-8") as f:
        wanted = [text.strip() for text in f if text.strip() and not text.startswith("#")]
    python = http1.installed(os.path.join(place, "tlsfuzzer"), wanted)
    passed, failed = scripts(suite, python, port)
    findings = []
    if other_port:
        there, _ = scripts(suite, python, other_port)
        findings = ["passes with nginx only: " + name for name in sorted(failed & there)]
        findings += ["passes here only: " + name for name in sorted(passed - there)]
        findings += ["%d scripts pass with neither" % len(failed - there)]
    else:
        findings = ["fails: " + name for name in sorted(failed)]
    return Verdict("tlsfuzzer", len(passed) + len(failed), len(passed), "scripts", findings)
