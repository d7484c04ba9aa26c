/*
 * process: prepares the process so that a loop need not wait for pages of the program, or for the table
 * of descriptors or a heap to grow.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "lib/pagewise.h"

/* size of the descriptor table, in descriptors; the table takes 512 KiB */
#define DESCRIPTORS 65536

/*
 * Makes the descriptor table large enough for n descriptors.  Once the process has several
 * threads, the kernel waits for all processors before it enlarges the table, which takes
 * milliseconds.
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
