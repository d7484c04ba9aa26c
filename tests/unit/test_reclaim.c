/*
 * Whether the kernel takes pages of files back (lib/disk/reclaim.h), by counters that the test
 * writes.
 */
#define OWN_RECLAIM
#include "lib_fixture.h"

#include "lib/disk/async.h"
#include "lib/disk/completion.h"
#include "lib/disk/pool_priv.h"
#include "lib/disk/quiet.h"
#include "lib/disk/reclaim.h"
#include "lib/util/clock.h"

#define SECOND ((uint64_t)1000000)
#define TRIES  60 /* looks: the first one begins a second that is not quiet */

static _Atomic int64_t taken;
static _Atomic unsigned looks;

/* In place of the system's. */
int
os_reclaim_open(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int64_t
os_reclaimed(int fd)
{
	(void)fd;
	looks++;
	return taken;
}

/* Has the counters read by the pool, and waits until they were. */
static void
look(void)
{
	unsigned before = looks;

	usleep(30000); /* so that it is due */
	quiet_ask(fx->fx_pool, clock_now());
	while (looks == before)
		usleep(1000);
	usleep(1000);
}

static bool
quiet(void)
{
	return quiet_ask(fx->fx_pool, clock_now());
}

/* Once it was looked at.  A look says nothing any more if the test was held up since. */
static bool
quiet_after_a_look(void)
{
	int tries = 0;

	do {
		look();
	} while (!quiet() && ++tries < TRIES);
	return tries < TRIES;
}

TEST(not_quiet_before_the_counters_were_read)
{
	taken = 5;
	assert_false(quiet());
}

TEST(quiet_while_the_counters_stay)
{
	taken = 5;
	assert_true(quiet_after_a_look());
	assert_true(quiet_after_a_look());
}

TEST(not_quiet_after_the_counters_changed)
{
	taken = 5;
	assert_true(quiet_after_a_look());
	taken = 6;
	look();
	assert_false(quiet());
	look();
	assert_false(quiet());
}

TEST(a_fetch_reads_the_counters)
{
	struct pw_waiter w = {.wt_done = nothing_done};
	SCOPED_FILE *file = new_file("f", (size_t)64 * KIB);
	unsigned before = looks;

	assert_int_equal(
	    pool_fetch(file, 0, (size_t)64 * KIB, FETCH_PAGES, ADMIT_NEW, &w),
	    0);
	settle(fx->fx_loop);
	assert_true(looks > before);
}

/* The counters tell what it made the kernel take back only afterwards. */
TEST(a_fetch_ends_the_quiet)
{
	struct pw_waiter w = {.wt_done = nothing_done};
	SCOPED_FILE *file = new_file("f", (size_t)64 * KIB);

	taken = 5;
	assert_true(quiet_after_a_look());
	assert_int_equal(
	    pool_fetch(file, 0, (size_t)64 * KIB, FETCH_PAGES, ADMIT_NEW, &w),
	    0);
	settle(fx->fx_loop);
	assert_false(quiet());
}

static void
iterate(struct pw_loop *lp, uint64_t sleeps)
{
	pw_loop_awake(lp, clock_now());
	counter_add(&lp->lp_meter.mt_times[METER_SENDFILE], sleeps);
	pw_loop_rest(lp, clock_now());
}

/* What the loop had found resident was not: nothing that any loop found before holds. */
TEST(a_sleep_for_a_page_ends_the_quiet)
{
	taken = 5;
	assert_true(quiet_after_a_look());
	iterate(fx->fx_loop, 1);
	assert_false(quiet());
}

/* A slow disk reads for longer than a second. */
TEST(a_read_in_flight_is_not_quiet)
{
	struct reclaim *rc = fx->fx_pool->pl_reclaim;

	taken = 5;
	assert_true(quiet_after_a_look());
	reclaim_read_begins(rc);
	usleep(SECOND + SECOND / 10);
	look();
	assert_false(quiet());
	reclaim_read_ends(rc);
	usleep(SECOND + SECOND / 10);
	assert_true(quiet_after_a_look());
}

TEST(a_read_in_flight_of_a_ring_is_not_quiet)
{
	struct pw_waiter w = {.wt_done = nothing_done};
	struct async_op op;
	int fds[2];
	char byte;

	taken = 5;
	assert_int_equal(pipe(fds), 0);
	if (async_read(fx->fx_loop, &op, &w, fds[0], &byte, 1, 0) != 0)
		skip();
	usleep(SECOND + SECOND / 10);
	assert_false(quiet_after_a_look());
	assert_int_equal(write(fds[1], "x", 1), 1);
	settle(fx->fx_loop);
	assert_true(quiet_after_a_look());
	close(fds[0]);
	close(fds[1]);
}

/* What was known long ago says nothing of now. */
TEST(without_a_recent_read_the_state_is_unknown)
{
	taken = 5;
	assert_true(quiet_after_a_look());
	assert_false(quiet_ask(fx->fx_pool, clock_now() + SECOND));
}

TEST(unreadable_counters_leave_the_state_unknown)
{
	taken = -EIO;
	look();
	assert_false(quiet());
}

/* An operator looks at disks; this is none. */
TEST(the_queue_of_reclaim_is_in_no_statistics)
{
	struct pw_device_stats ds[8];
	size_t i, n;

	look();
	n = pw_pool_devices(fx->fx_pool, ds, COUNT(ds));
	for (i = 0; i < n; i++)
		assert_int_equal(ds[i].ds_jobs, 0);
}

/* Has the counters of a process with so many MiB read twice, with `pages` reclaimed in between. */
static uint64_t
used_stay_of(uint64_t mib, int64_t pages)
{
	struct reclaim *rc = reclaim_create(mib * KIB * KIB);
	uint64_t stay;

	assert_non_null(rc);
	assert_int_equal(reclaim_used_stay(rc, clock_now()), 0);
	taken = 0;
	reclaim_look(rc);
	/* It doubles at most, so it takes some looks to rise. */
	for (int i = 0; i < 20; i++) {
		usleep(5001);
		taken += pages;
		reclaim_look(rc);
	}
	stay = reclaim_used_stay(rc, clock_now());
	assert_int_equal(reclaim_used_stay(rc, clock_now() + SECOND), 0);
	reclaim_destroy(&rc);
	return stay;
}

TEST(used_pages_stay_until_much_was_reclaimed, NULL)
{
	assert_int_equal(used_stay_of(1024, 0), RECLAIM_USED);
	assert_int_equal(used_stay_of(1024, 1), RECLAIM_USED);
	/* an eighth of it in 5 ms, or more if the test was held up */
	assert_in_range(used_stay_of(1024, 32768), 5000, RECLAIM_USED);
	assert_in_range(used_stay_of(1024, 327680), 500, RECLAIM_USED / 10);
	/* the counters are read too seldom for so little memory */
	assert_int_equal(used_stay_of(128, 0), 0);
}

TEST(descriptor_0_of_reclaim_is_closed, NULL)
{
	int saved = dup(STDIN_FILENO);
	struct reclaim *rc;

	close(STDIN_FILENO);
	rc = reclaim_create(SIZE_MAX);
	assert_non_null(rc);
	assert_int_not_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
	reclaim_destroy(&rc);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
	if (saved != -1) {
		assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
		close(saved);
	}
}
