"""Waits that have nothing to do with files: the program's own pages, the table of
descriptors."""

import os
import re
import resource

import pytest


def status(server, name):
    with open("/proc/%d/status" % server.pid) as f:
        return int(re.search(r"^%s:\s*(\d+)" % name, f.read(), re.M).group(1))


def mappings(server):
    """Of files: (permissions, path, KiB in all, KiB in memory, KiB locked)."""
    with open("/proc/%d/smaps" % server.pid) as f:
        for part in re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", f.read()):
            head = part.split("\n", 1)[0].split(None, 5)
            if len(head) == 6 and head[5].startswith("/"):
                sizes = (
                    int(re.search(r"^%s:\s*(\d+)" % key, part, re.M).group(1))
                    for key in ("Size", "Rss", "Locked")
                )
                yield (head[1], head[5], *sizes)


@pytest.fixture
def server(serve, site):
    return serve("--root", site, "--workers", "1")


def test_program_and_libraries_are_locked_in_memory(server):
    if os.geteuid() != 0:
        pytest.skip("not root: the limit may be too small")
    code = [m for m in mappings(server) if m[0] == "r-xp"]
    assert any("libc.so" in m[1] for m in code)
    assert any("libevent" in m[1] for m in code)
    for _, path, size, rss, locked in code:
        assert rss == size, path
        assert locked > 0, path


def test_table_of_descriptors_does_not_have_to_grow(server):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert status(server, "FDSize") >= min(65536, limit)


def test_start_without_the_permission_to_lock_says_so(serve):
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
    assert "the program may be evicted from memory" in server.output + server.messages
    server.stop(messages=True)
