/*
 * Windows that disk threads offer to the tier (lib/disk/tier_offer.c): a tier whose queue was full writes later
 * windows.
 */
#include "lib_fixture.h"

#include "lib/disk/tier_fetch.h"
#include "lib/disk/tier_fetch_priv.h"

#define LEN    ((size_t)100000) /* one window, the whole file */
#define OFFERS 20		/* more windows than may wait */

bool __wrap_tier_is_old(const struct tier *, const struct os_version *);

/* The file of the test is new. */
bool
__wrap_tier_is_old(const struct tier *ti, const struct os_version *ov)
{
	(void)ti;
	(void)ov;
	return true;
}

/* One thread, a queue of one job, and a tier. */
static int
setup_tier(void **state)
{
	int error = setup_narrow(state);
	const struct tier_conf tc = {
	    .tc_dir = fx->fx_dir, .tc_size = (uint64_t)32 * OS_FOLIO};
	struct tier *ti;

	if (error != 0 || tier_open(&tc, &ti) != 0)
		return -1;
	if (tier_is_due(ti, clock_now()))
		tier_prepare(ti);
	return tier_fetch_create(fx->fx_pool, &ti);
}

static int
run_nothing(struct job *job)
{
	(void)job;
	return 0;
}

static void
fill_queue(struct pw_device *dv, struct pw_loop *lp, struct pw_waiter *w)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	job->job_run = run_nothing;
	job->job_kind = JOB_SHORT;
	w->wt_done = nothing_done;
	assert_int_equal(pool_submit(dv, job, ADMIT_BEGUN, lp, w), 0);
}

static uint64_t
windows(void)
{
	struct tier_stats tu;

	assert_true(tier_fetch_stats(fx->fx_pool, &tu));
	return tu.tu_windows;
}

TEST(windows_are_written_after_others_were_refused, setup_tier)
{
	struct pw_device *dv = fx->fx_pool->pl_tiered->td_device;
	SCOPED_FILE *file = new_file("f", LEN);
	struct window win = {.win_device = file_priv(file)->fp_device,
	    .win_fd = file->fil_fd,
	    .win_key = pins_key(file),
	    .win_job.job_len = LEN};
	struct pw_waiter waiter;
	struct latch la;

	latch_shut(&la, dv, fx->fx_loop);
	fill_queue(dv, fx->fx_loop, &waiter);
	for (int i = 0; i < OFFERS; i++)
		tier_offer(&win, false);
	latch_finish(&la);
	assert_int_equal(windows(), 0);
	tier_offer(&win, false);
	for (int i = 0; windows() == 0 && i < PATIENCE; i++)
		usleep(1000);
	assert_int_equal(windows(), 1);
}
