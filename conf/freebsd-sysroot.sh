#!/bin/sh
# Makes a place on Linux (Debian 12 and its relatives) from which pagewise is built
# for FreeBSD: a compiler that brings that system's headers and libraries (zig, from
# PyPI), the three libraries and cmocka, static, from Debian's sources, and what stands for three
# libraries of the base system while a program is linked.  Prints where it is.
#
#	sh conf/freebsd-sysroot.sh [DIRECTORY]
#
# In there: bin/cc and bin/ar, include, lib, and log.  What was made once is kept,
# until this file changes; default: ~/.cache/pagewise/freebsd.

set -eu
umask 022

zig=0.17.1
target=x86_64-freebsd.14.0-none
host=x86_64-unknown-freebsd14.0

self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
# Not a place where others may put a compiler, such as /var/tmp.
home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
place=${1:-${XDG_CACHE_HOME:-$home/.cache}/pagewise/freebsd}
mkdir -p "$place"
place=$(cd "$place" && pwd)
log=$place/log

# One at a time; the lock goes with the process.
exec 9>"$place/lock"
flock 9

made=$(cksum <"$self")
if [ "$(cat "$place/made" 2>/dev/null)" = "$made" ]; then
	echo "$place"
	exit 0
fi

failed()
{
	tail -n 20 "$log" >&2
	echo "pagewise: the FreeBSD sysroot was not made: $step failed; see $log" >&2
}

step=start
trap '[ $? -eq 0 ] || failed' EXIT
find "$place" -mindepth 1 -maxdepth 1 ! -name lock -exec rm -rf {} +
: >"$log"

# ------------------------------------------------------------------ compiler

step="installing ziglang $zig"
/usr/bin/python3 -m pip install --quiet --no-deps --disable-pip-version-check \
    --root-user-action ignore --target "$place/python" "ziglang==$zig" >>"$log" 2>&1
mkdir "$place/bin"
tool()
{
	cat >"$place/bin/$1" <<-END
	#!/bin/sh
	export ZIG_GLOBAL_CACHE_DIR="$place/zig" ZIG_LOCAL_CACHE_DIR="$place/zig"
	exec "$place/python/ziglang/zig" $2 "\$@"
	END
	chmod 755 "$place/bin/$1"
}
tool cc "cc -target $target"
tool ar ar
tool ranlib ranlib

# ------------------------------------------------------------------- sources

step="fetching the libraries' sources"
mkdir -p "$place/apt/lists/partial" "$place/apt/archives/partial" "$place/src"
mirrors()
{
	# http://MIRROR/debian/pool/... of what this machine would install.
	apt-get download --print-uris libevent-dev libhttp-parser-dev |
	    sed -n "s,^'\(.*\)/pool/.*,\1,p" | sort -u
}
. /etc/os-release
for mirror in $(mirrors); do
	suite=$VERSION_CODENAME
	case $mirror in *security*) suite=$suite-security ;; esac
	echo "deb-src $mirror $suite main"
done >"$place/apt/sources.list"
apt()
{
	apt-get -q -o "Dir::Etc::sourcelist=$place/apt/sources.list" \
	    -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$place/apt/lists" \
	    -o "Dir::Cache=$place/apt" -o APT::Sandbox::User=root "$@" >>"$log" 2>&1
}
apt update
# As published: Debian's changes are not needed to see that all of it builds.
(cd "$place/src" && apt source --tar-only --download-only libevent http-parser nghttp2 cmocka)
for archive in "$place"/src/*.tar.*; do
	tar -x -C "$place/src" -f "$archive"
done

# ----------------------------------------------------------------- libraries

mkdir -p "$place/include" "$place/lib"
run()
{
	"$@" >>"$log" 2>&1
}

step="building libevent"
cd "$place"/src/libevent-*
run env CC="$place/bin/cc" AR="$place/bin/ar" RANLIB="$place/bin/ranlib" CFLAGS=-O2 \
    ac_cv_func_arc4random_addrandom=no \
    ./configure --host=$host --disable-shared --disable-openssl --disable-samples \
    --disable-libevent-regress --disable-debug-mode
# configure would try kqueue, cannot, and so has found that it does not work.
run make include/event2/event-config.h
echo '#define EVENT__HAVE_WORKING_KQUEUE 1' >>include/event2/event-config.h
run make -j2 libevent_core.la libevent_extra.la
cp .libs/libevent_core.a .libs/libevent_extra.a "$place/lib"
cp -R include/event2 "$place/include"
step="looking for kqueue in libevent"
nm "$place/lib/libevent_core.a" 2>>"$log" | grep -q ' kqops$'

step="building http-parser"
cd "$place"/src/http-parser-*
# As Debian builds it: lenient.
run "$place/bin/cc" -O2 -DHTTP_PARSER_STRICT=0 -c http_parser.c
run "$place/bin/ar" rcs "$place/lib/libhttp_parser.a" http_parser.o
cp http_parser.h "$place/include"

step="building nghttp2"
cd "$place"/src/nghttp2-*/lib
version=$(basename "${PWD%/lib}")
sed -e "s/@PACKAGE_VERSION@/${version#nghttp2-}/" -e 's/@PACKAGE_VERSION_NUM@/0/' \
    includes/nghttp2/nghttp2ver.h.in >includes/nghttp2/nghttp2ver.h
for source in *.c; do
	run "$place/bin/cc" -O2 -DHAVE_ARPA_INET_H -DHAVE_NETINET_IN_H -Iincludes -c "$source"
done
run "$place/bin/ar" rcs "$place/lib/libnghttp2.a" ./*.o
cp -R includes/nghttp2 "$place/include"

step="building cmocka"
cd "$place"/src/cmocka-*
run "$place/bin/cc" -O2 -Iinclude -DHAVE_INTTYPES_H -DHAVE_SIGNAL_H -DHAVE_STRINGS_H \
    -DHAVE_GCC_THREAD_LOCAL_STORAGE -DHAVE_CLOCK_REALTIME -DHAVE_STRUCT_TIMESPEC \
    -DHAVE_SIGLONGJMP -DHAVE_STRSIGNAL -c src/cmocka.c
run "$place/bin/ar" rcs "$place/lib/libcmocka.a" cmocka.o
cp include/cmocka.h "$place/include"

# Of the base system of FreeBSD 14, which zig has not got: as zig's own libc, these have names and
# no code, and the program finds the real ones where it runs.  Its OpenSSL is 3.0, as Debian 12's.
step="making what stands for libcrypt, libcrypto and libssl"
stand_in()
{
	# LIBRARY VERSION, and names of functions on the standard input.
	sed 's/.*/void &(void);void &(void){}/' >"$place/src/$1.c"
	run "$place/bin/cc" -w -fno-builtin -shared -nostdlib -Wl,-soname,"$1.so.$2" \
	    -o "$place/lib/$1.so" "$place/src/$1.c"
}
echo crypt_r | stand_in libcrypt 5
for library in libcrypto libssl; do
	nm -D --defined-only "$(pkg-config --variable=libdir $library)/$library.so" |
	    sed -n 's/.* T \([A-Za-z0-9_]*\)@.*/\1/p' | sort -u | stand_in $library 30
done
for headers in /usr/include/openssl /usr/include/*/openssl; do
	cp -R "$headers" "$place/include"
done

cd "$place"
rm -rf src apt
echo "$made" >made
echo "$place"
