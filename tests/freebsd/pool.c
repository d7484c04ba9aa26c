/*
 * pool: see pool.h.
 */
#include <sys/param.h>
#include <sys/mount.h>
#include <sys/sysctl.h>
#include <sys/uio.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/freebsd/guest.h"
#include "tests/freebsd/pool.h"

#define ZPOOL	 "/sbin/zpool"
#define NAME	 "pagewise"
#define DISK	 "/dev/vtbd3"
#define OUTPUT	 "tmp/zpool"
#define MOST	 8   /* arguments of zpool(8) */
#define PATIENCE 120 /* seconds */

bool
pool_is_possible(void)
{
	return access(ZPOOL, X_OK) == 0;
}

/* Runs zpool(8), and prints its output if it failed. */
static bool
pool_run(const char *const args[])
{
	const char *argv[MOST + 2] = {ZPOOL};

	for (size_t i = 0; i < MOST && args[i] != NULL; i++)
		argv[i + 1] = args[i];
	unlink(OUTPUT);
	if (guest_await(guest_start(argv, OUTPUT), PATIENCE) == 0)
		return true;
	printf("# zpool %s failed:\n", args[0]);
	guest_diagnose(OUTPUT, false);
	return false;
}

static bool
pool_mount(void)
{
	char type[] = "fstype", zfs[] = "zfs", path[] = "fspath",
	     root[] = POOL_ROOT, from[] = "from", name[] = NAME;
	struct iovec iov[] = {{type, sizeof(type)}, {zfs, sizeof(zfs)},
	    {path, sizeof(path)}, {root, sizeof(root)}, {from, sizeof(from)},
	    {name, sizeof(name)}};

	if (nmount(iov, nitems(iov), 0) == 0)
		return true;
	printf("# cannot mount the pool: %s\n", strerror(errno));
	return false;
}

bool
pool_make(void)
{
	static const char *const make[] = {
	    "create", "-f", "-m", "legacy", NAME, DISK, NULL};

	return pool_run(make) && pool_mount();
}

bool
pool_evict(void)
{
	static const char *const export[] = {"export", NAME, NULL},
				 *const import[] = {"import", NAME, NULL};

	if (unmount(POOL_ROOT, 0) == -1) {
		printf("# cannot unmount the pool: %s\n", strerror(errno));
		return false;
	}
	return pool_run(export) && pool_run(import) && pool_mount();
}

long
pool_arc_bytes(void)
{
	long n = 0;
	size_t size = sizeof(n);

	sysctlbyname("kstat.zfs.misc.arcstats.size", &n, &size, NULL, 0);
	return n;
}
