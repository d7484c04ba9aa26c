/*
 * process: waits of a loop that have nothing to do with the files it serves.
 */
#include <sys/resource.h>

#include "os.h"
#include "pagewise.h"

#define DESCRIPTORS 65536 /* 512 KiB of table */

int
pw_process_prepare(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0)
		os_reserve_descriptors(rl.rlim_cur < DESCRIPTORS
					   ? (unsigned)rl.rlim_cur
					   : DESCRIPTORS);
	return os_lock_program();
}
