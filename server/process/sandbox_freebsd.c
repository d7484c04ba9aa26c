/*
 * sandbox_freebsd: implements sandbox_os_confine with capsicum(4).  Afterwards the process cannot
 * open paths, addresses or processes by name.  Open descriptors stay open.  openat(2) still opens
 * files below the roots for reading, because each file gets the rights of its root's descriptor.
 */
#include <sys/param.h>
#include <sys/capsicum.h>
#include <sys/filio.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/os/os.h"

/* Permits FIOBMAP2 for os_native_map, and F_GETFL for fdopendir(3). */
static int
sandbox_freebsd_limit_root(int fd)
{
	static const unsigned long bmap[] = {FIOBMAP2};
	cap_rights_t rights;

	cap_rights_init(&rights, CAP_LOOKUP, CAP_READ, CAP_SEEK, CAP_MMAP_R,
	    CAP_FSTAT, CAP_FSTATFS, CAP_FCNTL, CAP_EVENT, CAP_EXTATTR_GET,
	    CAP_IOCTL);
	if (cap_rights_limit(fd, &rights) == -1)
		return -1;
	if (cap_ioctls_limit(fd, bmap, nitems(bmap)) == -1)
		return -1;
	return cap_fcntls_limit(fd, CAP_FCNTL_GETFL);
}

/* Does nothing, because FreeBSD has no capability to keep. */
int
sandbox_os_begin(bool keep)
{
	(void)keep;
	return 0;
}

int
sandbox_os_confine(struct os_confine *oc, char *missing, size_t size)
{
	size_t i;

	oc->oc_gave_up = NULL;
	/* Capsicum refuses procctl(2), so the process survives its parent from now on. */
	(void)os_follow_parent(0);
	for (i = 0; i < oc->oc_nroots; i++)
		if (sandbox_freebsd_limit_root(oc->oc_roots[i]) == -1)
			break;
	snprintf(missing, size, "%s", "");
	if (i == oc->oc_nroots && cap_enter() == 0)
		return 0;
	if (errno == ENOSYS) {
		snprintf(missing, size, "no Capsicum (%s)", strerror(errno));
		return 1;
	}
	snprintf(missing, size, "Capsicum");
	return -errno;
}
