/*
 * linux_owner: os_owner, which determines for which files the kernel reports residency.
 *
 * cachestat(2) and mincore(2) have the same rule: they report residency to the owner, to
 * processes that may write the file, and to CAP_FOWNER if the owner is mapped in this
 * user namespace.  For all others cachestat fails with EPERM, and mincore reports all
 * pages as resident.  But Linux 6.5 to 6.12 permit cachestat to all processes, so there a
 * success of cachestat does not show that mincore reports residency.
 */
#include <sys/syscall.h>

#include <errno.h>
#include <linux/capability.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/os/linux.h"
#include "lib/os/os.h"

#define NO_NUMBER 65534 /* default overflow uid */

/* State of a fact.  The first thread that needs a fact determines it; all threads get the same result. */
enum fact { UNKNOWN, NO, YES };

/* YES if cachestat(2) exists and no filter refuses it */
static _Atomic int can_ask;
/* YES if CAP_FOWNER is in effect */
static _Atomic int has_fowner;
/* YES if all users are mapped in this user namespace */
static _Atomic int all_mapped;
/* overflow uid, which stands for users that are not mapped */
static _Atomic uid_t no_number;

static void
linux_owner_learn(_Atomic int *fact, bool yes)
{
	atomic_store_explicit(fact, yes ? YES : NO, memory_order_release);
}

static bool
linux_owner_known(_Atomic int *fact, void (*find_out)(void))
{
	if (atomic_load_explicit(fact, memory_order_acquire) == UNKNOWN)
		find_out();
	return atomic_load_explicit(fact, memory_order_acquire) == YES;
}

/* Calls cachestat(2) with an invalid descriptor, for which a kernel that has the call returns EBADF. */
static void
linux_owner_learn_cachestat(void)
{
	linux_owner_learn(&can_ask, os_cachestat(-1, 0, 1) == -EBADF);
}

void
os_linux_learn_rights(void)
{
	struct __user_cap_header_struct header = {
	    .version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	linux_owner_learn(&has_fowner,
	    syscall(SYS_capget, &header, sets) == 0 &&
		(sets[0].effective & CAP_TO_MASK(CAP_FOWNER)) != 0);
}

/* Reads uid_map: the initial user namespace maps all numbers in one line (user_namespaces(7)). */
static bool
linux_owner_maps_all(void)
{
	char line[64] = "", *next;
	unsigned long inside, count;
	FILE *f = fopen("/proc/self/uid_map", "re");

	if (f == NULL)
		return false;
	if (fgets(line, sizeof(line), f) == NULL)
		line[0] = '\0';
	fclose(f);
	inside = strtoul(line, &next, 10);
	(void)strtoul(next, &next, 10);
	count = strtoul(next, NULL, 10);
	return inside == 0 && count == UINT32_MAX;
}

void
os_linux_learn_ids(void)
{
	uint64_t number = os_linux_number("/proc/sys/kernel/overflowuid");

	atomic_store_explicit(&no_number,
	    number != 0 ? (uid_t)number : NO_NUMBER, memory_order_relaxed);
	linux_owner_learn(&all_mapped, linux_owner_maps_all());
}

/*
 * Returns true if this process is the owner, or has a CAP_FOWNER that covers the owner.  The
 * overflow uid may stand for a user that is not mapped.  No process in this namespace is that user,
 * and no capability covers that user.  Idmapped mounts have such owners even if all users are
 * mapped.
 */
static bool
linux_owner_covers(uid_t uid)
{
	bool all = linux_owner_known(&all_mapped, os_linux_learn_ids);

	if (uid == atomic_load_explicit(&no_number, memory_order_relaxed))
		return all && uid == geteuid();
	return uid == geteuid() ||
	       linux_owner_known(&has_fowner, os_linux_learn_rights);
}

bool
os_owner(int fd)
{
	struct stat st;

	if (linux_owner_known(&can_ask, linux_owner_learn_cachestat) &&
	    os_cachestat(fd, 0, 1) < 0)
		return false;
	return fstat(fd, &st) == 0 && linux_owner_covers(st.st_uid);
}
