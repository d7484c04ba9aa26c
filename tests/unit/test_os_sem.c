/*
 * os_sem_wait (lib/os/os.h) while the machine's clock is set.  Each test has the name of the rule that it
 * pins.
 */
#include "test.h"

#include <sys/syscall.h>
#include <time.h>

#include "lib/os/os.h"

#define HOUR  3600
#define MS_US 1000

static time_t ahead; /* seconds that CLOCK_REALTIME is ahead of the kernel's */

/* Takes the place of libc's, so that the kernel's clock is one that was set back after the call. */
int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int n = (int)syscall(SYS_clock_gettime, id, ts);

	if (id == CLOCK_REALTIME)
		ts->tv_sec += ahead;
	return n;
}

TEST(a_clock_that_is_set_back_does_not_lengthen_the_wait)
{
	sem_t sem;

	ahead = HOUR;
	sem_init(&sem, 0, 0);
	alarm(HOUR / 60); /* a failure ends the program */
	assert_int_equal(os_sem_wait(&sem, MS_US), -ETIMEDOUT);
	alarm(0);
	sem_destroy(&sem);
	ahead = 0;
}

TEST(a_post_ends_the_wait)
{
	sem_t sem;

	sem_init(&sem, 0, 1);
	assert_int_equal(os_sem_wait(&sem, UINT64_C(1000000) * HOUR), 0);
	assert_int_equal(os_sem_wait(&sem, 0), -ETIMEDOUT);
	sem_destroy(&sem);
}
