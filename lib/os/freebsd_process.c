/*
 * freebsd_process: the functions of os.h for the process as a whole.
 */
#include <sys/param.h>
#include <sys/capsicum.h>
#include <sys/filio.h>
#include <sys/mman.h>
#include <sys/procctl.h>
#include <sys/stat.h>
#include <sys/sysctl.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/freebsd.h"
#include "lib/os/os.h"

const char os_run_directory[] = "/var/run";

int
os_freebsd_sysctl(const char *name)
{
	int value = 0;
	size_t size = sizeof(value);

	if (sysctlbyname(name, &value, &size, NULL, 0) == -1)
		return -errno;
	return size == sizeof(value) ? value : -EINVAL;
}

/*
 * Returns the machine's memory even in a jail, since rctl(8) limits the maps of a jail, not its
 * part of the page cache.
 */
void
os_memory(struct os_memory *om)
{
	*om = (struct os_memory){
	    .om_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			(uint64_t)sysconf(_SC_PAGESIZE),
	};
}

/* Returns -ENOSYS, since FreeBSD has no counter of anonymous memory, only the list of all maps. */
int
os_anonymous_open(void)
{
	return -ENOSYS;
}

int64_t
os_anonymous(int fd)
{
	(void)fd;
	return -ENOSYS;
}

/* Does nothing, since FreeBSD's malloc(3) is jemalloc. */
void
os_prepare_heap(void)
{
}

/* Does nothing, since jemalloc returns free memory to the kernel after ten seconds. */
size_t
os_release(void *mem, size_t len)
{
	(void)mem;
	(void)len;
	return 0;
}

void
os_trim(void)
{
}

/* Locks everything that is mapped now.  Called at the start of the program. */
int
os_lock_program(void)
{
	return mlockall(MCL_CURRENT) == -1 ? -errno : 0;
}

int
os_lock_crypto(void)
{
	return 0;
}

int
os_program(char *path, size_t size)
{
	static const int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PATHNAME, -1};

	return sysctl(name, sizeof(name) / sizeof(name[0]), path, &size, NULL,
		   0) == -1
		   ? -errno
		   : 0;
}

/* Opens the link itself by O_PATH, so that it cannot be replaced meanwhile. */
int
os_read_link(const char *path, char *to, size_t size, uid_t *owner)
{
	int link = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), error = 0;
	struct stat st;
	ssize_t n;

	if (link == -1)
		return -errno;
	if (fstat(link, &st) == -1 ||
	    (n = readlinkat(link, "", to, size)) == -1)
		error = -errno;
	else if ((size_t)n == size)
		error = -ENAMETOOLONG;
	else {
		to[n] = '\0';
		*owner = st.st_uid;
	}
	close(link);
	return error;
}

/* Counts by sysctl(3) how many descriptors are open, since /dev/fd may not list them. */
int
os_close_inherited(void)
{
	static const int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_NFDS, 0};
	int fd, flags, n = 0, end = getdtablesize();
	size_t size = sizeof(n);

	if (sysctl(name, sizeof(name) / sizeof(name[0]), &n, &size, NULL, 0) ==
	    -1)
		return -errno;
	for (fd = 0; fd < end && n > 0; fd++) {
		flags = fcntl(fd, F_GETFD);
		if (flags == -1)
			continue;
		n--;
		if (fd > STDERR_FILENO && (flags & FD_CLOEXEC) == 0)
			close(fd);
	}
	return 0;
}

bool
os_one_user(void)
{
	return false;
}

static void
freebsd_process_rights(cap_rights_t *rights, enum os_rights what)
{
	switch (what) {
	case OS_RIGHTS_LISTENER:
		cap_rights_init(rights, CAP_ACCEPT, CAP_EVENT, CAP_FCNTL,
		    CAP_FSTAT, CAP_GETPEERNAME, CAP_GETSOCKNAME, CAP_GETSOCKOPT,
		    CAP_IOCTL, CAP_LISTEN, CAP_RECV, CAP_SEND, CAP_SETSOCKOPT,
		    CAP_SHUTDOWN);
		break;
	case OS_RIGHTS_CHANNEL:
		cap_rights_init(rights, CAP_EVENT, CAP_RECV, CAP_SEND);
		break;
	case OS_RIGHTS_LOG:
		cap_rights_init(rights, CAP_EVENT, CAP_FSTAT, CAP_FSYNC,
		    CAP_FTRUNCATE, CAP_SEEK, CAP_WRITE);
		break;
	}
}

/* libevent makes accepted sockets non-blocking by fcntl(2), and reads FIONREAD. */
static int
freebsd_process_limit_socket(int fd)
{
	static const unsigned long requests[] = {
	    FIONBIO, FIONREAD, FIONSPACE, FIONWRITE};

	if (cap_ioctls_limit(fd, requests, nitems(requests)) == -1)
		return -1;
	return cap_fcntls_limit(fd, CAP_FCNTL_GETFL | CAP_FCNTL_SETFL);
}

/* Returns 0 without a limit if the kernel has no Capsicum. */
int
os_limit_rights(int fd, enum os_rights what)
{
	cap_rights_t rights;

	freebsd_process_rights(&rights, what);
	if (cap_rights_limit(fd, &rights) == 0 &&
	    (what != OS_RIGHTS_LISTENER ||
		freebsd_process_limit_socket(fd) == 0))
		return 0;
	return errno == ENOSYS ? 0 : -errno;
}

void *
os_secret_create(size_t size)
{
	void *mem = mmap(
	    NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	if (madvise(mem, size, MADV_NOCORE) == -1 ||
	    minherit(mem, size, INHERIT_ZERO) == -1) {
		munmap(mem, size);
		return NULL;
	}
	(void)mlock(mem, size);
	return mem;
}

int
os_forbid_cores(void)
{
	int no = PROC_TRACE_CTL_DISABLE;

	return procctl(P_PID, 0, PROC_TRACE_CTL, &no) == 0 ? 0 : -errno;
}

int
os_follow_parent(pid_t parent)
{
	int number = parent != 0 ? SIGKILL : 0;

	if (procctl(P_PID, 0, PROC_PDEATHSIG_CTL, &number) == -1)
		return -errno;
	return parent == 0 || getppid() == parent ? 0 : -ESRCH;
}
