"""Waits that have nothing to do with files: the program's own pages, the table of
descriptors."""

import os
import re
import resource

import pytest


def status(server, name):
    with open("/proc/%d/status" % server.pid) as f:
        return int(re.search(r"^%s:\s*(\d+)" % name, f.read(), re.M).group(1))


def code(server):
    """Pairs of a file whose code is mapped and the flags of the mapping, see proc(5)."""
    with open("/proc/%d/smaps" % server.pid) as f:
        for part in re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", f.read()):
            head = part.split("\n", 1)[0].split(None, 5)
            if len(head) == 6 and head[5].startswith("/") and head[1] == "r-xp":
                yield head[5], re.search(r"^VmFlags:(.*)", part, re.M).group(1).split()


@pytest.fixture
def server(serve, site):
    return serve("--root", site, "--workers", "1")


def test_program_and_libraries_are_locked_in_memory(server):
    if os.geteuid() != 0:
        pytest.skip("not root: the limit may be too small")
    flags = dict(code(server))
    assert any("libc.so" in path for path in flags)
    assert any("libevent" in path for path in flags)
    # Five megabytes that only passwords and signed links need.
    assert [path for path in flags if "lo" not in flags[path] and "/libcrypto." not in path] == []


def test_libcrypto_is_locked_as_well_where_it_is_used(serve_conf, site, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("not root: the limit may be too small")
    keys = tmp_path / "keys"
    keys.write_text("k" * 64)
    keys.chmod(0o600)
    flags = dict(code(serve_conf({}, [("s", {"root": site, "signed_links": keys}, {})])))
    assert any("/libcrypto." in path for path in flags)
    assert [path for path in flags if "lo" not in flags[path]] == []


def test_table_of_descriptors_does_not_have_to_grow(server):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert status(server, "FDSize") >= min(65536, limit)


def test_start_without_the_right_to_lock_is_logged(serve):
    """And goes on."""
    if os.geteuid() != 0:
        pytest.skip("not root: cannot become somebody who may lock nothing")
    limits = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, limits[1]))
    try:
        server = serve("--root", "/usr/share", "--workers", "1", user="nobody")
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, limits)
    assert server.get("/").status == 403
    assert "cannot lock the program in memory" in server.output + server.messages
    server.stop(messages=True)
