/*
 * process: waits of a loop that have nothing to do with the files it serves.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "lib/pagewise.h"

#define DESCRIPTORS 65536 /* 512 KiB of table */

/*
 * A table of a process with several threads grows only after all processors have
 * let go of the old one: milliseconds.
 */
static void
process_reserve_descriptors(unsigned n)
{
	int fd, high;

	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return;
	high = fcntl(fd, F_DUPFD_CLOEXEC, (int)n - 1);
	if (high != -1)
		close(high);
	close(fd);
}

int
pw_process_prepare(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0)
		process_reserve_descriptors(rl.rlim_cur < DESCRIPTORS
						? (unsigned)rl.rlim_cur
						: DESCRIPTORS);
	os_prepare_heap();
	return os_lock_program();
}
