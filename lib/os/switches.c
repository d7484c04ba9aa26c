/*
 * switches: counts the sleeps of a thread, by getrusage(2).
 */
#include <sys/resource.h>

#include <errno.h>

#include "lib/os/os.h"

int
os_switches(struct os_switches *sw)
{
	struct rusage ru;

	if (getrusage(RUSAGE_THREAD, &ru) == -1)
		return -errno;
	sw->sw_slept = (uint64_t)ru.ru_nvcsw;
	sw->sw_faults = (uint64_t)ru.ru_majflt;
	return 0;
}
