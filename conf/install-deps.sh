#!/bin/sh
# Installs what a step of the Makefile needs and what is not there yet, with
# the system's package manager; says so, and asks nothing.
#
#	sh conf/install-deps.sh [-n] build|check|test|kernels|freebsd|clients|h2spec|scan|judges|soak|html|deb|roots|image|fuzz|lint|bench|demo|fleet|profile|cross|peers ...
#
# -n only lists what is missing; the exit status is 1 if anything is.
# A need is a check, not a package: what was installed by other means counts.
# tests/programs.py reads the table. Nothing installs the set `found`: its tests
# run where the programs are.

set -u
PATH=$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin

# set	check				Debian			FreeBSD
needs()
{
	cat <<-'END'
	build	cmd make			make			gmake
	build	cmd ${CC:-cc}			gcc			llvm
	build	header stdio.h			libc6-dev		-
	build	cmd pkg-config			pkg-config		pkgconf
	build	lib libevent_core		libevent-dev		libevent
	build	lib libevent_extra		libevent-dev		libevent
	build	lib libnghttp2			libnghttp2-dev		libnghttp2
	build	lib libcrypto			libssl-dev		-
	build	linux header crypt.h		libcrypt-dev		-
	build	linux lib liburing		liburing-dev		-
	build	linux lib libseccomp		libseccomp-dev		-
	build	header http_parser.h		libhttp-parser-dev	http-parser
	build	header xxhash.h			libxxhash-dev		xxhash
	build	lib zlib			zlib1g-dev		-
	build	lib libbrotlienc		libbrotli-dev		brotli
	build	lib libzstd			libzstd-dev		zstd
	check	python				python3			python3
	test	cmd c++				g++			-
	test	linux lib libuv			libuv1-dev		-
	check	lib cmocka			libcmocka-dev		cmocka
	check	pymod pytest			python3-pytest		py311-pytest
	check	pymod h2			python3-h2		-
	check	pymod prometheus_client		python3-prometheus-client	py311-prometheus-client
	check	pymod markdown_it		python3-markdown-it	py311-markdown-it-py
	test	lib fuse3			libfuse3-dev		fusefs-libs3
	test	linux cmd fusermount3		fuse3			-
	check	cmd git				git			git
	check	cmd bash			bash			bash
	test	cmd zsh				zsh			zsh
	test	cmd fish			fish			fish
	test	linux cmd strace		strace			-
	check	linux cmd mkfs.ext4		e2fsprogs		-
	test	linux cmd mkfs.xfs		xfsprogs		-
	test	linux cmd mkfs.btrfs		btrfs-progs		-
	check	cmd curl			curl			curl
	check	cmd openssl			openssl			-
	test	cmd gnutls-cli			gnutls-bin		gnutls
	test	linux cmd rclone		rclone			-
	test	linux cmd lftp			lftp			-
	test	linux cmd wget			wget			-
	test	linux cmd wget2			wget2			-
	test	linux cmd aria2c		aria2			-
	test	linux pymod fsspec		python3-fsspec		-
	test	linux pymod requests		python3-requests		-
	test	linux pymod aiohttp		python3-aiohttp		-
	test	linux cmd wrk			wrk			-
	test	linux cmd pebble-challtestsrv	pebble			-
	test	linux cmd dehydrated		dehydrated		-
	test	linux cmd slowhttptest		slowhttptest		-
	test	linux cmd h2load		nghttp2-client		-
	test	linux cmd nghttp		nghttp2-client		-
	test	linux cmd haproxy		haproxy			-
	test	linux cmd promtool		prometheus		-
	test	linux cmd prometheus		prometheus		-
	test	linux cmd ss			iproute2		-
	test	linux cmd ps			procps			-
	test	linux pymod matplotlib		python3-matplotlib	-
	test	linux pymod rich		python3-rich		-
	test	cmd mandoc			mandoc			-
	kernels	apt cmd qemu-system-x86_64	qemu-system-x86		-
	kernels	apt static /bin/busybox		busybox-static		-
	kernels	apt cmd busybox			busybox-static		-
	kernels	apt cmd cpio			cpio			-
	kernels	apt cmd mkfs.ext4		e2fsprogs		-
	freebsd	apt cmd qemu-system-x86_64	qemu-system-x86		-
	freebsd	apt cmd makefs			makefs			-
	freebsd	cmd openssl			openssl			-
	clients	cmd java			default-jdk-headless	openjdk17
	clients	cmd go				golang-go		go
	clients	linux cmd chromium		chromium		-
	clients	cmd ffmpeg			ffmpeg			-
	clients	linux pymod zarr		python3-zarr		-
	clients	linux pymod osgeo		python3-gdal		-
	clients	linux cmd gdalinfo		gdal-bin		-
	clients	linux cmd gdal_create		gdal-bin		-
	h2spec	cmd go				golang-go		go
	scan	python				python3			python3
	scan	testssl				testssl.sh		testssl.sh
	scan	pymod pip			python3-pip		py311-pip
	judges	python				python3			python3
	judges	pymod pip			python3-pip		py311-pip
	judges	pymod pytest			python3-pytest		py311-pytest
	judges	cmd openssl			openssl			-
	soak	python				python3			python3
	soak	pymod h2			python3-h2		-
	soak	pymod pytest			python3-pytest		py311-pytest
	nginx	linux nginx_dev			nginx-dev		-
	nginx	linux cmd nginx			nginx-light		-
	html	cmd mandoc			mandoc			-
	html	pymod markdown_it		python3-markdown-it	py311-markdown-it-py
	deb	python				python3			-
	deb	cmd dh				debhelper		-
	deb	cmd dpkg-buildpackage		dpkg-dev		-
	deb	cmd lintian			lintian			-
	deb	cmd mandoc			mandoc			-
	deb	pymod markdown_it		python3-markdown-it	-
	roots	python				python3			-
	roots	cmd mmdebstrap			mmdebstrap		-
	roots	cmd ip				iproute2		-
	image	cmd mmdebstrap			mmdebstrap		-
	image	cmd buildah			buildah			-
	image	cmd runc			runc			-
	fuzz	python				python3			python3
	fuzz	cmd clang			clang			llvm
	fuzz	libfuzzer			libclang-rt-dev		-
	check	cmd clang-format	clang-format		llvm
	lint	cmd clang			clang			llvm
	lint	cmd clang-format		clang-format		llvm
	lint	cmd clang-tidy			clang-tidy		llvm
	lint	cmd cppcheck			cppcheck		cppcheck
	lint	cmd mandoc			mandoc			-
	lint	pymod markdown_it		python3-markdown-it	py311-markdown-it-py
	lint	linux cmd abidiff		abigail-tools		-
	lint	cmd codespell			codespell		py311-codespell
	demo	cmd python3			python3			python3
	demo	linux cmd nginx			nginx			-
	demo	linux cmd mkfs.ext4		e2fsprogs		-
	bench	cmd wrk				wrk			wrk
	bench	linux lib libuv			libuv1-dev		-
	bench	cmd fio				fio			fio
	bench	cmd h2load			nghttp2-client		nghttp2
	bench	cmd openssl			openssl			openssl
	bench	cmd python3			python3			python3
	bench	pymod matplotlib		python3-matplotlib	py311-matplotlib
	bench	pymod rich			python3-rich		py311-rich
	fleet	cmd haproxy			haproxy			haproxy
	fleet	linux cmd ip			iproute2		-
	profile	linux cmd strace		strace			-
	profile	linux cmd valgrind		valgrind		-
	profile	cmd python3			python3			python3
	cross	linux pymod pip			python3-pip		-
	cross	linux header xxhash.h		libxxhash-dev		-
	cross	linux lib zlib			zlib1g-dev		-
	cross	linux lib libbrotlienc		libbrotli-dev		-
	cross	linux lib libzstd		libzstd-dev		-
	cross	linux lib libcrypto		libssl-dev		-
	peers	cmd nginx			nginx			nginx
	peers	cmd h2o				h2o			h2o
	peers	cmd lighttpd			lighttpd		lighttpd
	peers	linux mod_openssl		lighttpd-mod-openssl	-
	peers	cmd apache2			apache2			-
	peers	cmd caddy			caddy			caddy
	found	cmd cargo			-			-
	found	cmd systemd-analyze		-			-
	found	cmd systemd-socket-activate	-			-
	END
}

cmd()
{
	command -v "$1" >/dev/null
}

lib()
{
	cmd pkg-config && pkg-config --exists "$1"
}

header()
{
	[ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]
}

# The system's Python: another one in PATH would not see its packages.
python()
{
	python=/usr/bin/python3
	[ -x $python ] || python=/usr/local/bin/python3
	[ -x $python ]
}

pymod()
{
	python && $python -c "import $1" 2>/dev/null
}

# Of the clang that is there.
libfuzzer()
{
	cmd clang && ls "$(clang -print-runtime-dir)" 2>/dev/null |
	    grep -q libclang_rt.fuzzer
}

linux()
{
	[ "$(uname -s)" != Linux ] || "$@"
}

# Other kernels come by apt, for this processor.
apt()
{
	! cmd apt-get || [ "$(uname -m)" != x86_64 ] || "$@"
}

# lighttpd's TLS is a package of its own.
mod_openssl()
{
	ls /usr/lib*/lighttpd/mod_openssl.so /usr/local/lib/lighttpd/mod_openssl.so \
	    2>/dev/null | grep -q .
}

# Debian leaves out the end of its name.
testssl()
{
	cmd testssl || cmd testssl.sh
}

# The sources of a module for the system's nginx.
nginx_dev()
{
	[ -e /usr/share/nginx/src/configure ]
}

# It runs where no library is.
static()
{
	[ -x "$1" ] && ! ldd "$1" >/dev/null 2>&1
}

say()
{
	echo "pagewise: $*"
}

die()
{
	say "$*" >&2
	exit 1
}

# Prints the packages for what is missing in the sets given; $1 is the column.
missing()
{
	column=$1
	shift
	needs | while IFS='	' read -r set check debian freebsd; do
		case " $* " in *" $set "*) ;; *) continue ;; esac
		eval "$check" && continue
		[ "$column" = debian ] || debian=$freebsd
		[ "$debian" = - ] || echo "$debian"
	done | sort -u | tr '\n' ' ' | sed 's/ $//'
}

# Runs a command as root without asking, if that is possible, else with a
# password.  Its output is shown only if it fails.
as_root()
{
	log=$(mktemp) || exit 1
	$sudo "$@" </dev/null >"$log" 2>&1
	status=$?
	[ $status -eq 0 ] || cat "$log" >&2
	rm -f "$log"
	return $status
}

find_sudo()
{
	if [ "$(id -u)" -eq 0 ]; then
		sudo='' how=''
	elif cmd sudo && sudo -n true 2>/dev/null; then
		sudo='sudo -n' how=' (sudo)'
	# A special built-in that cannot redirect ends the shell: hence ( ).
	elif cmd sudo && (: </dev/tty) 2>/dev/null; then
		sudo -v || die "these packages are missing: $packages"
		sudo=sudo how=' (sudo)'
	else
		die "not root and no usable sudo; please install: $packages"
	fi
}

install_apt()
{
	apt="env DEBIAN_FRONTEND=noninteractive apt-get -q -y"
	as_root $apt update || say "apt-get update failed; trying all the same" >&2
	[ -z "$peers" ] || start_nothing
	as_root $apt -o DPkg::Lock::Timeout=300 install --no-install-recommends \
	    $packages || die "apt-get could not install: $packages"
	[ -z "$peers" ] || enable_nothing
}

# Debian starts a server as it is installed, unless the local policy forbids it.
policy=/usr/sbin/policy-rc.d
start_nothing()
{
	[ ! -e $policy ] || return 0
	trap '$sudo rm -f $policy' EXIT
	trap 'exit 1' HUP INT TERM
	as_root sh -c "printf '#!/bin/sh\\nexit 101\\n' >$policy && chmod 755 $policy" ||
	    die "cannot write $policy"
}

# Nor at the next start of the machine.
enable_nothing()
{
	cmd systemctl || return 0
	for package in $packages; do
		unit=${package%-light}
		! systemctl cat "$unit" >/dev/null 2>&1 || as_root systemctl disable "$unit" ||
		    say "this may start with the machine: $unit" >&2
	done
}

install_pkg()
{
	as_root env ASSUME_ALWAYS_YES=yes pkg install -y $packages ||
	    die "pkg could not install: $packages"
}

dry= peers=
[ "${1-}" != -n ] || { dry=1; shift; }
case " $* " in *" test "*) set -- "$@" check ;; esac
[ $# -gt 0 ] || die "usage: install-deps.sh [-n] build|check|test|kernels|freebsd|clients|h2spec|scan|judges|soak|deb|roots|image|fuzz|lint|bench|demo|fleet|profile|cross|peers ..."

case " $* " in *" peers "* | *" nginx "* | *" test "* | *" fleet "* | *" demo "*) peers=1 ;; esac

if cmd apt-get; then
	column=debian manager=apt
elif [ "$(uname -s)" = FreeBSD ] && cmd pkg; then
	column=freebsd manager=pkg
else
	column=debian manager=
fi

packages=$(missing $column "$@")
[ -n "$packages" ] || exit 0
[ -z "$dry" ] || { echo "$packages"; exit 1; }
[ -n "$manager" ] || die "no apt-get and no pkg here; please install (Debian's" \
    "names): $packages"

find_sudo
say "installing $packages with $(echo $manager | sed s/apt/apt-get/)$how"
install_$manager
packages=$(missing $column "$@")
[ -z "$packages" ] || die "still missing after the installation: $packages"
