"""Each call of a start fails once at each place that makes it: the server says why and
ends with 1, or does without and serves; in both cases nothing else is said."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

import harness
import injection
import landlock
import responses
import tls
import tree as t
from harness import wait_until

pytestmark = pytest.mark.once

LONG = os.environ.get("FAULTS_LONG") == "1"
SMALL = t.content(3, 5000)
SITES = 120  # of a start with root, at least
CODES = {1, 2}  # 2: an option that cannot be had here

# OpenSSL alone, and no memory for the locks with which it begins.
BEGIN = """
import ctypes
import ctypes.util
crypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
refuse = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_int)(lambda *_: None)
assert crypto.CRYPTO_set_mem_functions(refuse, None, None) == 1
crypto.ERR_clear_error()
"""


def left_out(sites):
    """The sites at which the library itself never returns: OpenSSL 3.5 reports that allocation, the
    report waits for the beginning, and the beginning for the report (OpenSSL's issue 19334)."""
    begin = {key for key, (name, _) in sites.items() if name == "openssl_begin"}
    try:
        if begin:
            subprocess.run([sys.executable, "-c", BEGIN], check=True, timeout=5 * harness.SLOWER)
        return set()
    except subprocess.TimeoutExpired:
        return begin


@pytest.fixture(scope="module")
def known():
    """What has failed with another send path already."""
    return set()


@pytest.fixture
def start(tmp_path):
    """A start, to its end or until it serves."""
    site = tmp_path / "site"
    site.mkdir()
    t.write(site / "small", SMALL)
    plan = injection.Plan(tmp_path / "plan")

    def run(drops=False, secure=False, **top):
        conf = tmp_path / "pagewise.conf"
        top = {"workers": 2, "access_log": tmp_path / "log", "admin": "127.0.0.1:0",
               "agent": "127.0.0.1:0", "popular": 1,
               "listen": ["127.0.0.1:0" + " tls" * secure,
                          "unix:%s mode=0600 proxy" % (tmp_path / "s")],
               "trusted_proxies": ["unix:"], **top}
        if secure:
            top["certificate"] = [tls.PAIRS.for_user(None)]
        conf.write_text(harness.configuration(top, [("start", {"root": site}, {})]))
        server = harness.Server("-c", conf, binary=injection.FAULT, env=plan.env, drops=drops)
        # It has one more line to say when it serves: that admin is there.
        try:
            wait_until(lambda: not server.running or
                       "admin at" in server.output and harness.SERVING.search(server.output),
                       "a start or an end", 10)
        except AssertionError:
            server.discard()
            raise
        server.warm = (site / "small").read_bytes
        if server.running:
            server.address = harness.SERVING.search(server.output + server.messages).groups()[1:3]
            server.address = (server.address[0], int(server.address[1]))
            (tls.PORTS.add if secure else tls.PORTS.discard)(server.address[1])
        return server

    run.plan = plan
    return run


def told_and_ended(server):
    """It has said why, and nothing else than that."""
    lines = server.messages.splitlines()
    code = server.wait()
    assert code in CODES, code
    assert lines and all(line.startswith("pagewise: ") for line in lines), lines


def serves(server, plan=None):
    # The first, on a busy machine the second, may miss what has failed; it goes on.  A fault that none of
    # them reached may spoil a third.
    for n in range(3):
        if n == 2 and (plan is None or plan.reached):
            break
        server.warm()  # a request for a file that another test put out of memory passes other sites
        with contextlib.suppress(OSError, responses.ProtocolError), server.connect() as c:
            response = c.ask("/small")
            assert response.status in (200, 500, 503)
            assert response.status != 200 or response.body == SMALL
    assert server.get("/small").body == SMALL


def outcome(server, plan=None):
    """"ended" or "served"."""
    try:
        if not server.running:
            told_and_ended(server)
            return "ended"
        serves(server, plan)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0, server.process.returncode
        return "served"
    finally:
        server.discard()


def sites_of_each(serve, plan):
    """The sites that each of two starts passes.  A test that empties the kernel's caches makes one pass more."""
    seen = []
    for _ in range(2):
        plan.forget()
        assert serve() == "served"
        seen.append(plan.seen())
    return {key: seen[0][key] for key in seen[0] if key in seen[1]}


@pytest.mark.xdist_group("inject_start")  # known is of one process
@pytest.mark.parametrize("path, secure", [
    ("nodiskio", False), ("uring", False), ("nodiskio", True)], ids=["nodiskio", "uring", "tls"])
def test_each_call_of_a_start_fails_once_at_each_site(start, known, path, secure):
    plan = start.plan
    sites = sites_of_each(lambda: outcome(start(secure=secure, send_path=path)), plan)
    outcomes, missed = {"ended": 0, "served": 0}, []
    wrong = []
    left = left_out(sites)
    for key, (name, place) in sites.items():
        for effect in injection.effects(name)[: None if LONG else 1]:
            if key in left or ((key, effect) in known and not LONG):
                continue
            known.add((key, effect))
            plan.fail((key, effect))
            try:
                outcomes[outcome(start(secure=secure, send_path=path), plan)] += 1
            except (AssertionError, OSError) as error:
                wrong.append("%s %s at %s: %s" % (name, effect, injection.where(place), error))
            if not plan.reached:
                missed.append("%s %s at %s" % (name, effect, injection.where(place)))
    print(outcomes, "left out:", *(sites[key][0] for key in left), "not reached:", *missed, sep="\n")
    assert not wrong, "\n".join(wrong)
    assert len(sites) >= SITES and outcomes["ended"] > 0
    assert len(missed) < 5, missed


# ------------------------------------------------------------ giving up rights

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="not root: has nothing to give up")
LAST = -1


def as_nobody(start):
    return start(drops=True, user="nobody", chroot="/")


def sites(plan, call, function):
    return [key for key, (name, place) in plan.seen().items()
            if name == call and function in injection.where(place)]


def in_function(plan, call, function):
    """The site of that call in a function of the server, once it was passed."""
    return sites(plan, call, function)[0]


def passed(plan, call, function, nth):
    """The site that was passed so, and how often before.  A function that the compiler inlines has several."""
    found = sites(plan, call, function)
    return (found[nth], 0) if nth < len(found) else (found[0], nth)


REPORT = "; report this, or set sandbox = off"
MEMORY = "; give the server more memory, or lower workers"
THREADS = "; raise ulimit -u, or TasksMax of the unit"
ALLOW = "; allow CAP_SETUID and CAP_SETGID, or start as that user"


@as_root
@pytest.mark.parametrize(
    "call, effect, skip, why",
    [
        ("chroot", "EPERM", 0, "cannot chroot to /: Operation not permitted; allow CAP_SYS_CHROOT, or remove chroot"),
        ("chdir", "EACCES", 0, "cannot chroot to /: Permission denied"),
        ("setgroups", "EPERM", 0, "cannot switch to user nobody: Operation not permitted" + ALLOW),
        ("setresgid", "EPERM", 0, "cannot switch to user nobody: Operation not permitted" + ALLOW),
        ("setresuid", "EAGAIN", 0, "cannot switch to user nobody: Resource temporarily unavailable" + THREADS),
        ("syscall", "ENOSYS", ("capability_get", 0),
         "cannot enter the sandbox: capabilities: Function not implemented" + REPORT),
        ("prctl", "EINVAL", "empty_bounding_set", "cannot enter the sandbox: capabilities: Invalid argument" + REPORT),
        ("prctl", "EINVAL", "keep_across_change", "cannot enter the sandbox: capabilities: Invalid argument" + REPORT),
        ("syscall", "ENOSYS", ("capability_get", 1),
         "cannot enter the sandbox: capabilities: Function not implemented" + REPORT),
        ("capset", "EPERM", 0, "cannot enter the sandbox: capabilities: Operation not permitted" + REPORT),
        ("prctl", "EINVAL", "sandbox_os_confine at ", "cannot enter the sandbox: no_new_privs: Invalid argument" + REPORT),
        # Its version, the set of rules, the first rule, its beginning.
        ("landlock", "ENOMEM", 0, "cannot enter the sandbox: Landlock: Cannot allocate memory" + MEMORY),
        ("landlock", "ENOSYS", 1, "cannot enter the sandbox: Landlock: Function not implemented" + REPORT),
        ("landlock", "EPERM", 2, "cannot enter the sandbox: Landlock: Operation not permitted" + REPORT),
        ("landlock", "E2BIG", LAST, "cannot enter the sandbox: Landlock: Argument list too long" + REPORT),
        ("seccomp", "ENOMEM", 0, "cannot enter the sandbox: seccomp filter: Cannot allocate memory" + MEMORY),
        ("seccomp_init", "ENOMEM", 0, "cannot enter the sandbox: seccomp filter: Cannot allocate memory" + MEMORY),
        # It does without the first two.
        ("seccomp_attr_set", "EINVAL", 2, "cannot enter the sandbox: seccomp filter: Invalid argument" + REPORT),
        ("seccomp_rule_add", "ENOMEM", 0, "cannot enter the sandbox: seccomp filter: Cannot allocate memory" + MEMORY),
        ("seccomp_rule_add_array", "ENOMEM", 0, "cannot enter the sandbox: seccomp filter: Cannot allocate memory" + MEMORY),
        ("seccomp_load", "ECANCELED", 0, "cannot enter the sandbox: seccomp filter: Operation canceled" + REPORT),
    ],
)
def test_a_start_that_cannot_drop_a_right_fails(start, call, effect, skip, why):
    if skip == LAST or isinstance(skip, (str, tuple)):
        assert outcome(as_nobody(start)) == "served"
    if skip == LAST:
        skip = start.plan.shared.calls[start.plan.index[call]].seen - 1
    elif isinstance(skip, tuple):
        call, skip = passed(start.plan, call, *skip)
    elif isinstance(skip, str):
        call, skip = in_function(start.plan, call, skip), 0
    start.plan.fail((call, effect), skip=skip)
    server = as_nobody(start)
    try:
        told_and_ended(server)
        assert start.plan.reached
        assert server.messages.splitlines()[0] == "pagewise: " + why
        assert "serving" not in server.output
    finally:
        server.discard()


NO_LANDLOCK = (": a compromised process can read and write all files that its user can; "
               "use Linux 5.13 or later with landlock in lsm=, and a container that permits Landlock")


@as_root
@pytest.mark.parametrize(
    "call, effect, why",
    [
        ("landlock", "ENOSYS", "no Landlock (Function not implemented)" + NO_LANDLOCK),
        ("landlock", "EOPNOTSUPP", "no Landlock (Operation not supported)" + NO_LANDLOCK),
        ("landlock", "EPERM", "no Landlock (Operation not permitted)" + NO_LANDLOCK),
        ("seccomp", "ENOSYS", "no seccomp filter (Function not implemented)"),
        ("seccomp", "EINVAL", "no seccomp filter (Function not implemented)"),
        ("seccomp", "EPERM", "no seccomp filter (Operation not permitted)"),
    ],
)
def test_a_kernel_without_landlock_or_seccomp_is_warned_of(start, call, effect, why):
    # What this kernel's Landlock lacks itself comes first, in the same line.
    if call == "seccomp" and landlock.WARNING:
        why = landlock.NO_TRUNCATE + "; " + why
    start.plan.fail((call, effect))
    server = as_nobody(start)
    text = server.messages
    assert outcome(server) == "served"
    assert "pagewise: warning: sandbox: incomplete on this kernel: %s\n" % why in text


@pytest.mark.parametrize("call, why", [
    ("memfd_create", "cannot create the shared memory for log messages (memfd_create): Operation not "
                     "permitted; a required system call is not available: allow it in the container's seccomp profile"),
    ("openat2", "Operation not permitted: pagewise needs openat2(2): run Linux 5.6 or later, and allow this "
                "call in the container's seccomp profile"),
])
@pytest.mark.parametrize("log", [True, False], ids=["log", "no-log"])
def test_a_call_that_a_container_refuses_is_named_with_its_cure(start, call, why, log):
    """And no log is blamed for it, whether there is one or not."""
    start.plan.fail((call, "EPERM"), times=1000)
    server = start(**({} if log else {"access_log": "off"}))
    assert server.wait() == 1
    assert why in server.messages and "access log" not in server.messages
    server.discard()
