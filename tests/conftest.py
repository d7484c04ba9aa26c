"""Fixtures for tests/http and tests/fault; and a test that takes too long ends."""

import contextlib
import faulthandler
import os
import shutil
import signal
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "http"), os.path.join(HERE, "..", "bench")]

import forked
import harness
import http2
import processes
import programs
import scratch
import send_paths
import tls
import tree as tree_module
from flaky import pytest_runtest_logreport  # noqa: F401: a hook
from forked import pytest_runtestloop, pytest_terminal_summary  # noqa: F401: hooks


# About Linux: its /proc, cgroups, strace, loop devices, systemd, or what was measured there.
collect_ignore = []
if not processes.PROC:
    collect_ignore += ["bench", "fault", "lib", "nginx", "soak"]
    collect_ignore += ["http/test_%s.py" % name for name in (
        "acme", "busy_poll", "capabilities", "filesystems", "limits", "listing_large", "master",
        "process", "reload_late", "roots", "sandbox", "settings", "slow_clients", "syscalls", "systemd", "tcp_memory",
        "upgrade")]

# What says nothing of TLS, or has TLS of its own: about no connection, other programs, the header
# that comes before TLS (test_tls.py has it), screens.
if tls.ON:
    collect_ignore += ["http/test_%s.py" % name for name in (
        "acme", "capabilities", "certificates", "config", "exit_statuses", "from_nginx", "harness", "keys",
        "listing_page", "listen_unix", "messages", "proxy_protocol", "run", "settings", "statuses", "tickets", "tls",
        "tls_clients", "tls_hostile", "tls_sent", "tool_digest", "tool_precompress", "traffic")]

# The same of HTTP/2; raw requests (test_http2.py has those that HTTP/2 can carry); connections that say
# nothing, or little by little; answers that are ready, which HTTP/2 does not use.
if http2.ON:
    collect_ignore += ["http/test_%s.py" % name for name in (
        "acme", "capabilities", "certificates", "config", "exit_statuses", "from_nginx", "harness", "hoarders",
        "hot", "http2", "http2_streams",
        "http2_floods", "keys", "listing_page", "messages", "proxy_protocol", "requests", "run", "settings", "statuses",
        "tickets", "tls", "tls_clients", "tls_hostile", "tls_sent",
        "tool_digest", "tool_precompress", "traffic")]

# In seconds, from the making of what it needs to the end of that.  Then the test has failed.  If that
# does not end it within a minute, the process ends, and says where it was.
LIMIT = int(os.environ.get("PAGEWISE_TEST_SECONDS", 300 * harness.SLOWER))

MARKERS = [
    "once: with the first build only: it is about another program (the release, debug or"
    " fault binary, a load generator, the laboratory), or about the tests themselves: the"
    " second sanitizer would see nothing else.",
    "slow: is not run by `make check`: it takes seconds.",
    "needs(name, ...): programs and modules of conf/install-deps.sh, beyond those of `make check`, which"
    " leaves the test out. Elsewhere it is skipped where one is missing.",
    "clients: is run by `make test-clients` alone.",
    "waits: the second build runs it in `make test-all` alone: it takes seconds, and its threads"
    " are those of other tests.",
    "xdist_group: tests of a group run one after the other, in one process: they"
    " share what is dear to make, or change what the whole machine has.",
    "every_path: runs with each of its send paths, where others take the comparison paths by turns.",
    "plain(reason): is not run with PAGEWISE_TLS.",
    "http1(reason): is not run with PAGEWISE_HTTP2.",
]


def pytest_addoption(parser):
    forked.pytest_addoption(parser)
    parser.addoption("--check", action="store_true", help="leave out what `make check` neither installs nor builds")


def pytest_configure(config):
    for line in MARKERS:
        config.addinivalue_line("markers", line)
    forked.AT_EXIT.append(tls.PAIRS.remove)
    if not os.access(harness.PAGEWISE, os.X_OK):
        raise pytest.UsageError("no server at %s (PAGEWISE)" % harness.PAGEWISE)
    config.pagewise_stderr = os.dup(sys.stderr.fileno())
    # An ordinary user may not enter the tree: it can lie below /root.
    config.pagewise_programs = tempfile.mkdtemp(prefix="pagewise-programs-")
    os.chmod(config.pagewise_programs, 0o755)
    tool = os.path.join(os.path.dirname(harness.PAGEWISE), "pagewise-tool")
    if os.access(tool, os.X_OK):
        shutil.copy(tool, config.pagewise_programs)
    for name in ("PAGEWISE", "RELEASE", "DEBUG"):
        program = getattr(harness, name)
        if os.access(program, os.X_OK):
            copy = os.path.join(config.pagewise_programs, name.lower())
            shutil.copy(program, copy)
            os.chmod(copy, 0o755)
            setattr(harness, name, copy)


def needed(item):
    return {name for mark in item.iter_markers("needs") for name in mark.args}


OTHER_BUILDS = {"release", "debug"}  # fixtures


def is_checked(item):
    """`make check` has a test's programs and builds."""
    return needed(item) <= programs.installed_by(programs.CHECK) and not OTHER_BUILDS & set(item.fixturenames)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    kept = send_paths.chosen(
        [(item.nodeid, item.callspec.params if hasattr(item, "callspec") else {}) for item in items],
        send_paths.mode(), {item.nodeid for item in items if item.get_closest_marker("every_path")})
    if config.getoption("check"):
        kept = {item.nodeid for item in items if item.nodeid in kept and is_checked(item)}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]
    for item in items:
        missing = [name for name in sorted(needed(item)) if not programs.is_here(name)]
        if missing:
            item.add_marker(pytest.mark.skip(reason="no %s: conf/install-deps.sh" % ", ".join(missing)))
        if item.get_closest_marker("clients") and "CLIENTS_ALL" not in os.environ:
            item.add_marker(pytest.mark.skip(reason="make test-clients"))
        for mark in item.iter_markers("plain") if tls.ON else ():
            item.add_marker(pytest.mark.skip(reason="plain: " + mark.args[0]))
        for mark in item.iter_markers("http1") if http2.ON else ():
            item.add_marker(pytest.mark.skip(reason="HTTP/1: " + mark.args[0]))
        if item.path.parent.name in ("bench", "docs", "lib") or OTHER_BUILDS & set(item.fixturenames):
            item.add_marker("once")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    def end(*_):
        pytest.fail("the test took more than %d s" % LIMIT)

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LIMIT)
    faulthandler.dump_traceback_later(LIMIT + 60, exit=True, file=item.config.pagewise_stderr)
    yield
    scratch.free()
    faulthandler.cancel_dump_traceback_later()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pytest_unconfigure(config):
    tls.PAIRS.remove()
    shutil.rmtree(getattr(config, "pagewise_programs", ""), ignore_errors=True)


@pytest.fixture(scope="session")
def release():
    """The program without sanitizers: for calls and memory that are the server's alone."""
    if not os.access(harness.RELEASE, os.X_OK):
        pytest.skip("no ordinary binary at " + harness.RELEASE)
    return harness.RELEASE


@pytest.fixture(scope="session")
def debug():
    """The program that does from inside what a test asks it for, without sanitizers."""
    if not os.access(harness.DEBUG, os.X_OK):
        pytest.skip("no debug build at " + harness.DEBUG)
    return harness.DEBUG


@pytest.fixture(scope="session")
def base():
    """A directory that an ordinary user can enter, unlike tmp_path."""
    path = tempfile.mkdtemp(prefix="pagewise-tree-")
    os.chmod(path, 0o755)
    yield path
    make_removable(path)
    scratch.remove(path)


def make_removable(path):
    for where, dirs, _ in os.walk(path):
        for name in dirs:
            full = os.path.join(where, name)
            if not os.path.islink(full):
                os.chmod(full, 0o755)


@pytest.fixture(scope="session")
def tree(base):
    return tree_module.Tree(base)


FAILED = pytest.StashKey[bool]()


class Shared:
    """Servers with default settings that many tests use one after the other."""

    def __init__(self, tree):
        self.tree = tree
        self.servers = {}

    def get(self, send_path, *args):
        key = (send_path,) + args
        if key not in self.servers:
            self.servers[key] = harness.Server(
                "--root", self.tree.root, "--send-path", send_path, "--workers", "1", *args
            ).start()
        return key, self.servers[key]

    def forget(self, key):
        self.servers.pop(key).discard()

    def stop(self):
        with contextlib.ExitStack() as all_of_them:
            for server in self.servers.values():
                all_of_them.callback(server.stop)


@pytest.fixture(scope="session")
def shared(tree):
    servers = Shared(tree)
    yield servers
    servers.stop()


def lend(shared, send_path, *args):
    key, server = shared.get(send_path, *args)
    yield server
    try:
        server.healthy()
    except AssertionError:
        shared.forget(key)
        raise


@pytest.fixture(params=harness.SEND_PATHS)
def server(request, shared):
    """Default settings, the shared tree, once for every send path."""
    yield from lend(shared, request.param)


@pytest.fixture
def plain(shared):
    """The same, for what does not depend on the send path."""
    yield from lend(shared, "hot")


@pytest.fixture
def listing(shared):
    """The same with directory listings."""
    yield from lend(shared, "hot", "--autoindex")


@pytest.fixture(params=harness.SEND_PATHS)
def send_path(request):
    return request.param


@pytest.fixture
def serve(tmp_path):  # which goes after them: a server that still reloads opens its roots
    """Starts servers of a test's own; all end with it, well and silently."""
    with contextlib.ExitStack() as all_of_them:

        def start(*args, **kw):
            server = harness.Server(*args, **kw)
            all_of_them.callback(lambda: server.out.closed or server.stop())
            return server.start()

        yield start


@pytest.fixture
def serve_conf(serve, tmp_path):
    """serve() from a configuration: serve_conf(top, sites)."""

    def start(top, sites, *args, **kw):
        path = tmp_path / "pagewise.conf"
        path.write_text(harness.configuration(top, sites))
        return serve("-c", path, *args, **kw)

    return start


KEPT = 4  # servers at a time


@pytest.fixture(scope="module")
def kept():
    """The servers of lend_conf(), by their configuration."""
    servers = {}
    yield servers
    with contextlib.ExitStack() as all_of_them:
        for server in servers.values():
            all_of_them.callback(server.stop)


@pytest.fixture
def lend_conf(kept, tmp_path_factory, request):
    """serve_conf(), but the server stays for the tests of the module that want the same configuration.
    For tests that change neither its state nor its files, and expect no message."""
    used = set()

    def lend(top, sites):
        text = harness.configuration(top, sites)
        used.add(text)
        if text not in kept:
            if len(kept) == KEPT:
                kept.pop(next(iter(kept))).stop()
            path = tmp_path_factory.mktemp("lent") / "pagewise.conf"
            path.write_text(text)
            kept[text] = harness.Server("-c", path).start()
        return kept[text]

    yield lend
    for text in used & set(kept):
        try:
            kept[text].healthy()
        except AssertionError:
            kept.pop(text).discard()
            raise
        if request.node.stash.get(FAILED, False):
            kept.pop(text).discard()


@pytest.fixture(scope="module")
def module_path(tmp_path_factory):
    """tmp_path of a module."""
    path = tmp_path_factory.mktemp("module")
    path.chmod(0o755)
    yield path
    scratch.remove(path)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if outcome.get_result().failed:
        item.stash[FAILED] = True


@pytest.fixture
def tmp_path(tmp_path, request):
    """Files of a test that failed stay, for whoever looks; all others go.  The server's user may
    read the directory: `pagewise -t` as root tries that."""
    tmp_path.chmod(0o755)
    yield tmp_path
    if not request.node.stash.get(FAILED, False):
        scratch.remove(tmp_path)


@pytest.fixture
def site(tmp_path):
    """An empty directory to serve, on a real file system."""
    path = tmp_path / "site"
    path.mkdir()
    return path
