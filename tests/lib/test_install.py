"""What `make install` puts where, and that a program can be built with it, as others do it."""

import os
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("installed")]
PROGRAM = """
#include <pagewise.h>
#include <stdio.h>

int
main(void)
{
	struct pw_pool *pool;
	struct pw_loop *loop;

	if (pw_pool_create(NULL, &pool) != 0 || pw_loop_create(pool, NULL, &loop) != 0)
		return 1;
	puts(pw_version());
	return pw_loop_destroy(&loop) != 0 || pw_pool_destroy(&pool, 0) != 0;
}
"""
LANGUAGES = [("cc", "c99"), ("cc", "c11"), ("cc", "c17"), ("c++", "c++11"), ("c++", "c++20")]


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def make(*words):
    return run("make", "-s", "-C", harness.TREE, *words)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """DESTDIR, with the prefix /opt/pw below it."""
    where = tmp_path_factory.mktemp("installed")
    make("install", f"DESTDIR={where}", "PREFIX=/opt/pw")
    return where


def pkg_config(installed, *words):
    pc = installed / "opt/pw/lib/pkgconfig"
    env = {**os.environ, "PKG_CONFIG_SYSROOT_DIR": str(installed),
           "PKG_CONFIG_PATH": str(pc), "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"}
    return run("pkg-config", *words, "libpagewise", env=env).split()


def version():
    with open(os.path.join(harness.TREE, "lib/pagewise.h"), encoding="utf-8") as f:
        return re.search(r'#define PW_VERSION "(.*)"', f.read()).group(1)


def test_library_header_description_and_manual_are_in_their_places(installed):
    prefix = installed / "opt/pw"
    for path in ("include/pagewise.h", "include/pagewise.hpp", "share/man/man3/pw_send.3", "lib/libpagewise.a", "lib/libpagewise.so.1",
                 "lib/pkgconfig/libpagewise.pc", "share/man/man3/libpagewise.3",
                 "share/man/man5/pagewise.conf.5", "share/man/man8/pagewise.8", "sbin/pagewise"):
        assert (prefix / path).is_file(), path
    assert os.readlink(prefix / "lib/libpagewise.so") == "libpagewise.so.1"
    assert pkg_config(installed, "--modversion") == [version()]


def test_the_description_names_the_prefix_alone(installed):
    text = (installed / "opt/pw/lib/pkgconfig/libpagewise.pc").read_text()
    assert "prefix=/opt/pw\n" in text
    assert str(installed) not in text and "@" not in text


@pytest.mark.parametrize("compiler, standard", LANGUAGES)
def test_a_program_is_built_with_the_shared_library(installed, tmp_path, compiler, standard):
    source = tmp_path / ("program.c" if compiler == "cc" else "program.cc")
    source.write_text(PROGRAM)
    run(compiler, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror", str(source),
        "-o", str(tmp_path / "program"), *pkg_config(installed, "--cflags", "--libs"))
    env = {**os.environ, "LD_LIBRARY_PATH": str(installed / "opt/pw/lib")}
    assert run(str(tmp_path / "program"), env=env) == version() + "\n"
    needed = run("readelf", "-d", str(tmp_path / "program"))
    assert "[libpagewise.so.1]" in needed and "liburing" not in needed


def test_a_program_is_built_with_the_static_library(installed, tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    alone = tmp_path / "lib"
    alone.mkdir()
    shutil.copy(installed / "opt/pw/lib/libpagewise.a", alone)
    words = [word for word in pkg_config(installed, "--cflags", "--libs", "--static")
             if not word.startswith("-L")]
    run("cc", str(tmp_path / "program.c"), "-o", str(tmp_path / "program"), f"-L{alone}", *words)
    assert run(str(tmp_path / "program")) == version() + "\n"
    assert "libpagewise" not in run("readelf", "-d", str(tmp_path / "program"))


def test_uninstall_leaves_nothing(tmp_path):
    words = (f"DESTDIR={tmp_path}", "PREFIX=/opt/pw")
    make("install", *words)
    make("uninstall", *words)
    assert [p for p in tmp_path.rglob("*") if not p.is_dir()] == []


def test_every_exported_symbol_has_its_version():
    """The version that added it, so that a program is never started with a library that is too old."""
    library = os.path.join(harness.TREE, "build/libpagewise.so")
    rows = run("objdump", "-T", library).splitlines()
    seen = dict(reversed(row.split()[-2:]) for row in rows if re.search(r" g +D[FO] +\.", row))
    with open(os.path.join(harness.TREE, "lib/abi/libpagewise-x86_64.abi"), encoding="utf-8") as f:
        released = dict(re.findall(r"<elf-symbol name='(pw_\w+)' version='(\w+\.\w+)'", f.read()))
    assert len(released) >= 50
    present = "PAGEWISE_" + version().rpartition(".")[0]
    assert seen == {name: released.get(name, present) for name in seen | released}


def compared(stored):
    return subprocess.run(["make", "-s", "-C", harness.TREE, "lint-abi", f"ABI={stored}"],
                          capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.needs("abidiff")
def test_an_abi_change_is_detected(tmp_path):
    """lint-abi, with what a release had promised if its pw_send had been smaller."""
    stored = os.path.join(harness.TREE, f"lib/abi/libpagewise-{os.uname().machine}.abi")
    if not os.path.exists(stored):
        pytest.skip("no interface of this processor")
    with open(stored, encoding="utf-8") as f:
        text = f.read()
    changed, n = re.subn(r"(name='pw_send' size-in-bits=)'(\d+)'",
                         lambda m: f"{m.group(1)}'{int(m.group(2)) - 64}'", text)
    assert n == 1
    other = tmp_path / "other.abi"
    other.write_text(changed)
    assert compared(stored).returncode == 0
    done = compared(other)
    assert done.returncode != 0
    assert "pw_send" in done.stdout and "would break" in done.stderr
