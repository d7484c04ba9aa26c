"""make dist: the same commit gives the same bytes, and what stands beside the tarball fits it."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile

import pytest

import harness

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("dist")]
DIST = os.path.join(harness.TREE, "conf/dist.py")
ENV = {**os.environ, "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
       "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/dev/null", "TZ": "Asia/Tokyo"}
VERSION = "1.2.3"
NAME = "pagewise-" + VERSION


def git(where, *words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=where, env=ENV,
                   check=True, capture_output=True)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """As the tree is now: while tests run, somebody may write into it."""
    copy = tmp_path_factory.mktemp("source") / "tree"
    shutil.copytree(harness.TREE, copy, symlinks=True,
                    ignore=shutil.ignore_patterns("build", ".git", "__pycache__", ".pytest_cache", "*.log"))
    return copy


def pack(source, where, umask):
    """A clone of its own, with other permissions, packed in its own place."""
    shutil.copytree(source, where, symlinks=True)
    for directory, _, names in os.walk(where):
        for name in names:
            path = os.path.join(directory, name)
            if not os.path.islink(path):
                os.chmod(path, os.stat(path).st_mode & ~umask)
    git(where, "init", "-q")
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", "all")
    out = where / "out"
    subprocess.run(["/usr/bin/python3", DIST, VERSION, out],
                   cwd=where, env=ENV, umask=umask, check=True, capture_output=True)
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def packed(source, tmp_path_factory):
    return pack(source, tmp_path_factory.mktemp("one") / "tree", 0o022)


def test_the_same_commit_gives_the_same_bytes(packed, source, tmp_path):
    again = pack(source, tmp_path / "another" / "tree", 0o077)
    assert list(packed) == list(again)
    for name, data in packed.items():
        assert hashlib.sha256(data).digest() == hashlib.sha256(again[name]).digest(), name


def test_the_tarball_has_all_that_is_committed_and_no_more(packed, tmp_path):
    path = tmp_path / "t.tar.gz"
    path.write_bytes(packed[NAME + ".tar.gz"])
    with tarfile.open(path) as tar:
        members = tar.getmembers()
    assert {member.name.split("/")[0] for member in members} == {NAME}
    names = {member.name for member in members}
    for name in "Makefile", "LICENSE", "conf/debian/rules", "server/main.c", "docs/man/pagewise.8":
        assert f"{NAME}/{name}" in names
    assert not [name for name in names if f"{NAME}/build" in name]
    assert {member.mtime for member in members} == {1767323045}
    assert {(member.uid, member.uname) for member in members} == {(0, "root")}


def test_the_sbom_names_what_the_programs_link(packed):
    sbom = json.loads(packed[NAME + ".spdx.json"])
    assert sbom["spdxVersion"] == "SPDX-2.3" and sbom["creationInfo"]["created"] == "2026-01-02T03:04:05Z"
    ids = [package["SPDXID"] for package in sbom["packages"]]
    assert len(ids) == len(set(ids)) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", one) for one in ids)
    for relation in sbom["relationships"]:
        assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= {*ids, "SPDXRef-DOCUMENT"}
    digest = hashlib.sha256(packed[NAME + ".tar.gz"]).hexdigest()
    assert sbom["packages"][0]["checksums"][0]["checksumValue"] == digest
    listed = {ref["referenceLocator"].split("/")[-1] for package in sbom["packages"]
              for ref in package.get("externalRefs", ())}
    # What the linker wrote, by Debian's names.
    of_files = {"libevent_core": "libevent-core", "libevent_extra": "libevent-extra", "libz": "zlib1g",
                "libbrotlienc": "libbrotli1", "libcrypto": "libssl"}
    here = os.path.join(harness.TREE, "build")
    for program in "pagewise", "pagewise-tool":
        out = subprocess.run(["readelf", "-d", os.path.join(here, program)], check=True, capture_output=True,
                             text=True).stdout
        needed = set(re.findall(r"NEEDED.*\[(lib\w+?)(?:[-.][\d.]*)?\.so", out)) - {"libc"}
        assert len(needed) > 2
        for name in needed:
            start = of_files.get(name, name.replace("_", "-"))
            assert [package for package in listed if package.startswith(start)], name


def test_the_port_has_the_sums_of_the_tarball(packed):
    tarball = packed[NAME + ".tar.gz"]
    info = packed["freebsd-port/distinfo"].decode().splitlines()
    assert info == ["TIMESTAMP = 1767323045", f"SHA256 ({NAME}.tar.gz) = {hashlib.sha256(tarball).hexdigest()}",
                    f"SIZE ({NAME}.tar.gz) = {len(tarball)}"]
    assert {"freebsd-port/Makefile", "freebsd-port/pkg-plist", "freebsd-port/pkg-descr"} <= set(packed)


def test_the_port_has_the_script_and_not_a_link_to_it(packed):
    assert packed["freebsd-port/files/pagewise.in"].startswith(b"#!/bin/sh\n")


def test_the_versions_are_one():
    with open(os.path.join(harness.TREE, "lib/pagewise.h"), encoding="utf-8") as f:
        version = re.search(r'#define PW_VERSION "(.*)"', f.read()).group(1)
    for path, pattern in (("conf/debian/changelog", r"pagewise \((.*)-\d+\)"),
                          ("conf/freebsd-port/Makefile", r"DISTVERSION=\t(.*)"),
                          ("CHANGELOG.md", r"(?m)^## (\S+)")):
        with open(os.path.join(harness.TREE, path), encoding="utf-8") as f:
            assert re.search(pattern, f.read()).group(1) == version, path


def test_the_port_lists_what_is_installed(tmp_path):
    """With FreeBSD's places, which `make install` of this system has too, but for libdata and units."""
    subprocess.run(["make", "-s", "-C", harness.TREE, "install", f"DESTDIR={tmp_path}", "PREFIX=/p"],
                   check=True, capture_output=True)
    found = {str(path.relative_to(tmp_path / "p")) for path in (tmp_path / "p").rglob("*") if not path.is_dir()}
    found = {re.sub(r"^lib/pkgconfig", "libdata/pkgconfig", re.sub(r"^(share/man/.*)", r"\1.gz", path)
                    ).replace("share/pagewise/", "%%DATADIR%%/") for path in found if "/systemd/" not in path}
    with open(os.path.join(harness.TREE, "conf/freebsd-port/pkg-plist"), encoding="utf-8") as f:
        listed = {line.strip().removeprefix("%%STATIC%%") for line in f if not line.startswith("@")}
    assert listed == found


def test_the_options_of_the_port_leave_codings_out(tmp_path):
    """What `make` would compile and link: the objects of this tree stay."""
    with open(os.path.join(harness.TREE, "conf/freebsd-port/Makefile"), encoding="utf-8") as f:
        off = re.findall(r"_MAKE_ARGS_OFF=\t(\w+=no)", f.read())
    assert off == ["BROTLI=no", "ZSTD=no"]
    for left_out in ([], off[:1], off[1:], off):
        lines = subprocess.run(["make", "-C", harness.TREE, "-nB", "V=1", "build/obj/pagewise-tool", *left_out],
                               check=True, capture_output=True, text=True).stdout
        compiles = next(line for line in lines.splitlines() if line.endswith(" server/tool/compress.c"))
        out = tmp_path / "compress.o"
        subprocess.run(re.sub(r" -o \S+", f" -o {out}", compiles.strip()), shell=True, check=True, cwd=harness.TREE)
        needs = subprocess.run(["nm", "-u", out], check=True, capture_output=True, text=True).stdout
        for option, symbol, library in (("BROTLI=no", "Brotli", "-lbrotlienc"), ("ZSTD=no", "ZSTD_", "-lzstd")):
            assert (symbol in needs) == (library in lines) == (option not in left_out), left_out


def test_a_release_is_a_tag_of_what_is_committed(source, tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(source, tree, symlinks=True)
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "all")

    def release():
        env = {**ENV, "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
        done = subprocess.run(["make", "-s", "-C", tree, "release", "TAG=-a"], env=env, capture_output=True, text=True,
                              check=False)
        return done.returncode == 0, done.stderr

    (tree / "new").write_text("new")
    assert not release()[0] and "commit what has changed first" in release()[1]
    (tree / "new").unlink()
    assert release() == (True, "")
    tags = subprocess.run(["git", "-C", tree, "tag", "-n1"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"v(\d+\.\d+\.\d+) +pagewise \1\n", tags)
    good, said = release()
    assert not good and "already exists" in said
