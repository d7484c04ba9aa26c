/*
 * capability: drops capabilities(7).  Keeps CAP_FOWNER if conf_keep_fowner is set, because
 * cachestat(2) and mincore(2) then work on files of other users.  All calls affect only the calling
 * thread, so they must precede the start of other threads.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <linux/capability.h>
#include <unistd.h>

#include "lib/os/linux.h"
#include "lib/os/os.h"
#include "server/process/sandbox_linux.h"

#define WORDS _LINUX_CAPABILITY_U32S_3

/*
 * Newest capability of Linux 5.12.  capability_empty_bounding_set must drop this capability and all
 * with lower numbers.
 */
#define SURE CAP_CHECKPOINT_RESTORE

static int
capability_get(struct __user_cap_data_struct sets[WORDS])
{
	struct __user_cap_header_struct header = {
	    .version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capget, &header, sets) == -1 ? -errno : 0;
}

static int
capability_set(const struct __user_cap_data_struct sets[WORDS])
{
	struct __user_cap_header_struct header = {
	    .version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capset, &header, sets) == -1 ? -errno : 0;
}

/* Empties the bounding set, so that a program that this process executes has no capabilities. */
static int
capability_empty_bounding_set(void)
{
	unsigned long cap = 0;

	while (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
		cap++;
	return errno == EINVAL && cap > SURE ? 0 : -errno;
}

/*
 * Keeps capabilities across a change of the user.  Returns 0, 1 if locked securebits forbid this
 * (EPERM), or -errno.
 */
static int
capability_keep_across_change(void)
{
	if (geteuid() != 0 || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0)
		return 0;
	return errno == EPERM ? 1 : -errno;
}

int
sandbox_os_begin(bool keep)
{
	struct __user_cap_data_struct sets[WORDS];
	int error;

	os_linux_learn_ids();
	error = capability_get(sets);
	if (error == 0 && (sets[0].effective & CAP_TO_MASK(CAP_SETPCAP)) != 0)
		error = capability_empty_bounding_set();
	if (error != 0 || !keep)
		return error;
	if ((sets[0].permitted & CAP_TO_MASK(CAP_FOWNER)) == 0)
		return 1;
	return capability_keep_across_change();
}

/*
 * Also empties the ambient set, because the inheritable set limits it.  Ignores a failure of
 * PR_SET_KEEPCAPS: this setting matters only to a process that can change its user or execute a
 * program.
 */
int
capability_limit(bool keep)
{
	const uint32_t fowner = keep ? CAP_TO_MASK(CAP_FOWNER) : 0;
	struct __user_cap_data_struct sets[WORDS];
	int error = capability_get(sets);

	if (error != 0)
		return error;
	if (geteuid() != 0) {
		sets[0].effective = sets[0].permitted &= fowner;
		sets[1].effective = sets[1].permitted = 0;
	}
	sets[0].inheritable = sets[1].inheritable = 0;
	error = capability_set(sets);
	if (error == 0)
		(void)prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	os_linux_learn_rights();
	return error;
}
