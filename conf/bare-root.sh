#!/bin/sh
# Runs commands as a new user does: in a bare Debian root that has git and make
# alone, as root, without a terminal.
#
#	sh conf/bare-root.sh [-k] SUITE COMMAND ...
#
# Each COMMAND runs in a copy of this tree. `make run` succeeds when the first page
# has status 200, any other command when its exit status is 0. The commands have
# processes and a network of their own, which reaches nothing: what `make check`
# and `make test` install is downloaded before. Output is in build/roots/SUITE.log
# and build/roots/SUITE-COMMAND.log. -k keeps the root: build/roots/SUITE.
#
# mmdebstrap makes the root once, in ~/.cache/pagewise/roots, where the packages stay
# as well. Needs root, mmdebstrap and iproute2 (conf/install-deps.sh roots).

set -eu
cache=${HOME:-/root}/.cache/pagewise/roots
tree=$(cd "$(dirname "$0")/.." && pwd)

die()
{
	echo "bare-root.sh: $*" >&2
	exit 1
}

inside()
{
	chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
	    HOME=/root sh -ec 'cd /root/pagewise && eval "$1"' sh "$1" </dev/null
}

# The directory has its name only once it is complete. Another run may be faster.
make_base()
{
	mkdir -p "$base.debs"
	[ ! -e "$base" ] || return 0
	proxy=$(apt-config dump | grep -E '^Acquire::(http|https|Check|Retries)' || :)
	mmdebstrap --variant=minbase --include=git,make --aptopt='Acquire::Languages "none";
'"$proxy" "$suite" "$base.$$" || { rm -rf "$base.$$"; die "no root of $suite"; }
	mv -T "$base.$$" "$base" || rm -rf "$base.$$"
}

# Not an overlay: on one the server has no response cache (docs/design/residency.md).
make_root()
{
	mkdir -p "$root"
	cp -a "$base/." "$root"
	cp /etc/resolv.conf "$root/etc"
	# The installer of Debian writes it; minbase has none.
	printf '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n' >"$root/etc/hosts"
	mkdir "$root/root/pagewise"
	tar -C "$tree" -c --exclude=./build . | tar -C "$root/root/pagewise" -x --no-same-owner
}

mount_all()
{
	mount --make-rprivate /
	# unshare(1) changes how mounts of / spread, so that has to be a mount.
	mount --bind "$root" "$root"
	mount --rbind /dev "$root/dev"
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys"
	mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup" || :
}

download()
{
	sets="build check"
	case " $* " in *"make test"*) sets="$sets test nginx" ;; esac
	archives=$root/var/cache/apt/archives
	find "$base.debs" -name '*.deb' -exec cp -pt "$archives" {} +
	inside "apt-get -q update && apt-get -q autoclean && apt-get -q -y --no-install-recommends \
	    --download-only install \$(sh conf/install-deps.sh -n $sets)"
	cp -pu "$archives"/*.deb "$base.debs"
}

first_page()
{
	chroot "$root" bash -c 'exec 3<>/dev/tcp/127.0.0.1/8080 &&
	    printf "GET / HTTP/1.0\r\n\r\n" >&3 && head -n 1 <&3' 2>/dev/null | tr -d '\r'
}

# The server goes on, as in another terminal; it ends with the namespace.
serves()
{
	inside "$1" >"$log" 2>&1 &
	server=$! last=
	while [ -z "$last" ] && kill -0 $server 2>/dev/null; do
		sleep 0.2
		last=$(first_page)
	done
	case $last in *" 200 "*) ;; *) return 1 ;; esac
}

ends()
{
	code=0
	inside "$1" >"$log" 2>&1 || code=$?
	last=$(grep -E '^[0-9]+ passed, ' "$log" | tail -n 1)
	return $code
}

run()
{
	ip link set lo up
	# It leads nowhere; with loopback alone some clients resolve no name, not even localhost.
	if ip link add eth0 type veth peer name far0; then
		ip addr add 192.0.2.2/24 dev eth0
		ip link set far0 up
		ip link set eth0 up
	fi
	status=0
	for command; do
		log=$root-$(echo "$command" | tr -c 'a-z\n' -).log
		begin=$(date +%s) how=ends
		[ "$command" != "make run" ] || how=serves
		said=done
		$how "$command" || said=failed status=1
		echo "$suite: $command: $said in $(($(date +%s) - begin)) s: ${last:-see $log}"
		[ $said = done ] || { grep -E '^(FAILED|ERROR) ' "$log" || tail -n 50 "$log"; }
	done
	exit $status
}

keep='' phase=''
while getopts kp: option; do
	case $option in
	k) keep=1 ;;
	p) phase=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 1 ] || die "usage: sh conf/bare-root.sh [-k] SUITE COMMAND ..."
[ "$(id -u)" -eq 0 ] || die "it needs root"
suite=$1 base=$cache/$1 root=$tree/build/roots/$1
shift

# Runs itself in new namespaces; prepares with the network of this machine.
case $phase in
'')
	rm -rf --one-file-system "$root" "$root".log "$root"-*.log
	mkdir -p "$root"
	status=0
	setsid -w unshare --mount --pid --fork --kill-child --mount-proc \
	    sh "$0" -p enter "$suite" "$@" </dev/null || status=$?
	[ -n "$keep" ] || rm -rf --one-file-system "$root"
	exit $status
	;;
enter)
	sh "$0" -p prepare "$suite" "$@" >"$root.log" 2>&1 ||
	    { tail -n 50 "$root.log"; die "cannot make the root of $suite"; }
	exec unshare --net sh "$0" -p run "$suite" "$@"
	;;
prepare)
	make_base
	make_root
	mount_all
	download "$@"
	;;
run) run "$@" ;;
esac
