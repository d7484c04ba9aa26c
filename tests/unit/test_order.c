/*
 * In which order a device's jobs are run (lib/disk/pool.c): fair to those who come
 * for little, and who come first.
 */
#include "lib_fixture.h"

#include "lib/disk/pool_priv.h"

/* Time passes only while a job of the test runs, unless it is 0. */
static atomic_ullong now;

uint64_t __real_clock_now(void);
uint64_t __wrap_clock_now(void);

uint64_t
__wrap_clock_now(void)
{
	uint64_t us = atomic_load(&now);

	return us == 0 ? __real_clock_now() : us;
}

#define DEVICE ((dev_t)4711)
#define MOST   32
#define LONG   ((size_t)16 << 20) /* bytes of downloads at a time */

struct named_job {
	struct job nj_job;
	char nj_name;
};

/* Of one thread, or in the order in which they came to an end. */
static char ran[MOST + 1];
static size_t nran;

static int
run(struct job *job)
{
	if (atomic_load(&now) != 0)
		atomic_fetch_add(&now, 1000);
	ran[nran++] = ((struct named_job *)job)->nj_name;
	return 0;
}

static void
submit_to(struct pw_device *dv, unsigned client, enum job_kind kind, char name,
    size_t len, uint64_t place, struct pw_waiter *w)
{
	struct named_job *nj = calloc(1, sizeof(*nj));

	assert_non_null(nj);
	nj->nj_job.job_run = run;
	nj->nj_job.job_kind = kind;
	nj->nj_job.job_len = len;
	nj->nj_job.job_place = place;
	nj->nj_name = name;
	w->wt_done = nothing_done;
	w->wt_client = client;
	assert_int_equal(
	    pool_submit(dv, &nj->nj_job, ADMIT_BEGUN, fx->fx_loop, w), 0);
}

static void
submit_of(unsigned client, enum job_kind kind, char name, size_t len,
    uint64_t place, struct pw_waiter *w)
{
	submit_to(pool_device(fx->fx_pool, DEVICE, POOL_FILES), client, kind,
	    name, len, place, w);
}

static void
submit_at(enum job_kind kind, char name, size_t len, uint64_t place,
    struct pw_waiter *w)
{
	submit_of(0, kind, name, len, place, w);
}

static void
submit(enum job_kind kind, char name, size_t len, struct pw_waiter *w)
{
	submit_at(kind, name, len, 0, w);
}

static int
setup_empty(void **state)
{
	nran = 0;
	memset(ran, 0, sizeof(ran));
	atomic_store(&now, __real_clock_now());
	return setup_with(state, 1, 0, 0);
}

static int
setup_two(void **state)
{
	nran = 0;
	memset(ran, 0, sizeof(ran));
	atomic_store(&now, __real_clock_now());
	return setup_with(state, 2, 0, 0);
}

static int
teardown_clock(void **state)
{
	atomic_store(&now, 0);
	return teardown(state);
}

TEST(kinds_share_the_time_of_the_thread, setup_empty, teardown_clock)
{
	struct pw_waiter waiters[MOST];
	struct latch la;
	size_t n = 0;
	char name;

	latch_shut(
	    &la, pool_device(fx->fx_pool, DEVICE, POOL_FILES), fx->fx_loop);
	for (name = 'a'; name <= 'b'; name++)
		submit(JOB_LONG, name, 1, &waiters[n++]);
	for (name = 'A'; name <= 'F'; name++)
		submit(JOB_NEW, name, 1, &waiters[n++]);
	for (name = '0'; name <= '1'; name++)
		submit(JOB_SHORT, name, 1, &waiters[n++]);
	latch_finish(&la);
	assert_string_equal(ran, "0Aa1BbCDEF");
}

/* Two threads: a gate that counts as a download of LONG bytes holds one. */
TEST(bytes_of_downloads_in_flight_are_bounded, setup_two, teardown_clock)
{
	struct pw_device *dv = pool_device(fx->fx_pool, DEVICE, POOL_FILES);
	struct latch_job *gj = calloc(1, sizeof(*gj));
	struct pw_waiter waiters[MOST];
	struct latch la = {.la_waiter.wt_done = nothing_done};

	assert_non_null(gj);
	sem_init(&la.la_begun, 0, 0);
	sem_init(&la.la_open, 0, 0);
	gj->lj_job.job_run = latch_run;
	gj->lj_job.job_len = LONG;
	gj->lj_latch = &la;
	assert_int_equal(pool_submit(dv, &gj->lj_job, ADMIT_BEGUN, fx->fx_loop,
			     &la.la_waiter),
	    0);
	sem_await(&la.la_begun);
	submit(JOB_LONG, 'a', 1, &waiters[0]);
	submit(JOB_NEW, 'A', LONG, &waiters[1]);
	while (pw_loop_pending(fx->fx_loop) > 2)
		pw_loop_drain(fx->fx_loop);
	assert_string_equal(ran, "A");
	latch_finish(&la);
	assert_string_equal(ran, "Aa");
}

/* Makes the device one that was found to be a slow disk that rotates. */
static void
rotate(struct pw_device *dv)
{
	struct sweep *sw = sweep_create();

	assert_non_null(sw);
	sw->sw_slow = true;
	dv->dv_asked_sweep = true;
	dv->dv_sweep = sw;
	assert_true(device_seeks(dv));
}

static struct pw_device *
slow_disk(void)
{
	struct pw_device *dv = pool_device(fx->fx_pool, DEVICE, POOL_FILES);

	rotate(dv);
	return dv;
}

TEST(a_disk_that_seeks_is_announced_once, setup_empty, teardown_clock)
{
	struct pw_device *dv = slow_disk();
	struct pool_head ph[2];
	char text[256];

	assert_false(device_has_news(dv));
	dv->dv_sweep->sw_rate = 123456789;
	device_find_sweep(dv);
	assert_true(device_has_news(dv));
	assert_true(device_announce(dv, text, sizeof(text)));
	assert_non_null(strstr(text, "one disk that rotates (123 MB/s"));
	device_find_sweep(dv);
	assert_false(device_has_news(dv));
	/* The other one is that of the fixture's root, if it has a queue yet. */
	assert_in_range(pool_heads(fx->fx_pool, ph, COUNT(ph)), 1, 2);
	assert_int_equal(ph[ph[0].ph_dev != DEVICE].ph_dev, DEVICE);
	assert_true(ph[ph[0].ph_dev != DEVICE].ph_seeks);
	assert_int_equal(ph[ph[0].ph_dev != DEVICE].ph_rate, 123456789);
}

TEST(a_disk_is_not_announced_before_it_seeks, setup_empty, teardown_clock)
{
	struct pw_device *dv = slow_disk();

	dv->dv_sweep->sw_slow = false;
	device_find_sweep(dv);
	assert_false(device_has_news(dv));
}

TEST(
    next_windows_of_a_disk_that_seeks_run_by_place, setup_empty, teardown_clock)
{
	static const char names[] = "abcd";
	static const uint64_t places[] = {7, 2, 9, 3};
	struct pw_device *dv = slow_disk();
	struct pw_waiter waiters[MOST];
	struct latch la;

	latch_shut(&la, dv, fx->fx_loop);
	for (size_t i = 0; i < COUNT(places); i++)
		submit_at(JOB_LONG, names[i], 1, places[i], &waiters[i]);
	for (size_t i = 0; i < COUNT(places); i++)
		submit_at(JOB_NEW, (char)('A' + i), 1, places[i],
		    &waiters[COUNT(places) + i]);
	latch_finish(&la);
	assert_string_equal(ran, "AbBdCaDc");
}

/* The first windows of the crowd run when it has had less than a part of the time. */
TEST(first_windows_of_one_client_wait_for_the_downloads_of_another, setup_empty,
    teardown_clock)
{
	struct pw_waiter waiters[MOST];
	struct latch la;
	size_t n = 0;
	char name;

	latch_shut(&la, slow_disk(), fx->fx_loop);
	for (name = 'a'; name <= 'e'; name++)
		submit_of(1 << SHARES_CONNECTION, JOB_LONG, name, 1, 1,
		    &waiters[n++]);
	for (name = 'A'; name <= 'J'; name++)
		submit_of(
		    2 << SHARES_CONNECTION, JOB_NEW, name, 1, 2, &waiters[n++]);
	latch_finish(&la);
	assert_string_equal(ran, "AaEBbCcDdeFGHIJ");
}

/* A job whose waiters all left must not read for nobody. */
TEST(a_job_whose_waiters_left_does_not_run, setup_empty, teardown_clock)
{
	struct pw_device *dv = pool_device(fx->fx_pool, DEVICE, POOL_FILES);
	struct pw_waiter waiters[3];
	struct latch la;
	unsigned long ended;

	latch_shut(&la, dv, fx->fx_loop);
	submit(JOB_LONG, 'a', 1, &waiters[0]);
	submit(JOB_LONG, 'b', 1, &waiters[1]);
	submit(JOB_LONG, 'c', 1, &waiters[2]);
	pool_leave(&waiters[1]);
	latch_finish(&la);
	ended = device_ended(dv);
	assert_string_equal(ran, "ac");
	assert_int_equal(waiters[1].wt_error, -ECANCELED);
	assert_int_equal(waiters[2].wt_error, 0);
	/* Its end is no sign that the disk works. */
	assert_int_equal(ended, 3);
}

/* It may not read the response. */
TEST(a_job_whose_client_closed_its_side_waits_for_others, setup_empty,
    teardown_clock)
{
	struct pw_device *dv = pool_device(fx->fx_pool, DEVICE, POOL_FILES);
	struct pw_waiter waiters[4];
	struct latch la;
	char name;

	latch_shut(&la, dv, fx->fx_loop);
	for (name = 'a'; name <= 'd'; name++)
		submit_of((unsigned)name << SHARES_CONNECTION, JOB_NEW, name, 1,
		    1, &waiters[name - 'a']);
	pool_defer(&waiters[0]);
	pool_defer(&waiters[2]);
	pool_leave(&waiters[2]);
	latch_finish(&la);
	assert_string_equal(ran, "bad");
	assert_int_equal(waiters[0].wt_error, 0);
}

/* However many they are: the thread that looks for the next job may not run one of theirs. */
TEST(jobs_of_many_clients_that_closed_their_side_wait_for_others, setup_empty,
    teardown_clock)
{
	struct pw_device *dv = pool_device(fx->fx_pool, DEVICE, POOL_FILES);
	struct pw_waiter waiters[MOST];
	struct latch la;

	latch_shut(&la, dv, fx->fx_loop);
	for (unsigned i = 0; i < MOST; i++) {
		submit_of((i + 1) << SHARES_CONNECTION, JOB_NEW,
		    i + 1 < MOST ? 'a' : 'b', 1, 1, &waiters[i]);
		if (i + 1 < MOST)
			pool_defer(&waiters[i]);
	}
	latch_finish(&la);
	assert_int_equal(ran[0], 'b');
}

static void
fetch_page(
    struct pw_file *file, off_t page, unsigned client, struct pw_waiter *w)
{
	w->wt_done = nothing_done;
	w->wt_client = client;
	assert_int_equal(
	    pool_fetch(file, page * 4096, 4096, FETCH_PAGES, ADMIT_NEW, w), 0);
}

static enum job_kind
kind_of_window(struct pw_device *dv, off_t page)
{
	struct window *win;

	for (size_t i = 0; i < DEVICE_HASH; i++)
		for (win = dv->dv_windows[i]; win != NULL; win = win->win_next)
			if (win->win_off == page * 4096)
				return win->win_job.job_kind;
	fail();
	return JOB_KINDS;
}

/* Otherwise a client would wait behind the crowd for a window that it requests, too. */
TEST(a_window_that_another_client_requests_leaves_the_crowd, setup_empty,
    teardown_clock)
{
	SCOPED_FILE *file = new_file("f", (size_t)MOST * 4096);
	struct pw_device *dv = file_priv(file)->fp_device;
	struct pw_waiter waiters[MOST + 4] = {{0}};
	struct latch la;
	off_t page;

	latch_shut(&la, dv, fx->fx_loop);
	for (page = 1; page <= SHARES_CLIENT + 1; page++)
		fetch_page(file, page, 2 << SHARES_CONNECTION, &waiters[page]);
	page = SHARES_CLIENT + 1;
	assert_int_equal(kind_of_window(dv, page), JOB_CROWD_NEW);
	fetch_page(file, page, 2 << SHARES_CONNECTION, &waiters[MOST]);
	assert_int_equal(kind_of_window(dv, page), JOB_CROWD_NEW);
	fetch_page(file, page, 3 << SHARES_CONNECTION, &waiters[MOST + 1]);
	assert_int_equal(kind_of_window(dv, page), JOB_NEW);
	latch_finish(&la);
}

TEST(a_window_that_all_left_is_fetched_for_the_next_request, setup_empty,
    teardown_clock)
{
	SCOPED_FILE *file = new_file("f", 2 * 4096);
	struct pw_device *dv = file_priv(file)->fp_device;
	struct pw_waiter waiters[3] = {{0}};
	struct latch la;

	latch_shut(&la, dv, fx->fx_loop);
	fetch_page(file, 0, 0, &waiters[0]);
	pool_leave(&waiters[0]);
	fetch_page(file, 0, 0, &waiters[1]); /* joins */
	fetch_page(file, 1, 0, &waiters[2]);
	pool_leave(&waiters[2]);
	latch_finish(&la);
	assert_int_equal(waiters[0].wt_error, 0);
	assert_int_equal(waiters[1].wt_error, 0);
	assert_int_equal(waiters[2].wt_error, -ECANCELED);
	assert_false(pool_fetching(file, 0, 2 * 4096));
	fetch_page(file, 1, 0, &waiters[2]);
	settle(fx->fx_loop);
	assert_int_equal(waiters[2].wt_error, 0);
}

/* Two threads: a gate that is a download of half the limit holds one. */
TEST(a_disk_that_seeks_has_fewer_bytes_in_flight, setup_two, teardown_clock)
{
	struct pw_device *dv = slow_disk();
	struct latch_job *gj = calloc(1, sizeof(*gj));
	struct latch la = {.la_waiter.wt_done = nothing_done};
	struct pw_waiter waiters[MOST];

	assert_non_null(gj);
	sem_init(&la.la_begun, 0, 0);
	sem_init(&la.la_open, 0, 0);
	gj->lj_job.job_run = latch_run;
	gj->lj_job.job_len = SWEEP_LONG / 2;
	gj->lj_latch = &la;
	assert_int_equal(pool_submit(dv, &gj->lj_job, ADMIT_BEGUN, fx->fx_loop,
			     &la.la_waiter),
	    0);
	sem_await(&la.la_begun);
	submit_at(JOB_LONG, 'a', SWEEP_LONG / 2, 1, &waiters[0]);
	submit_at(JOB_LONG, 'b', SWEEP_LONG / 2 + 1, 2, &waiters[1]);
	submit(JOB_NEW, 'A', LONG, &waiters[2]);
	while (pw_loop_pending(fx->fx_loop) > 2)
		pw_loop_drain(fx->fx_loop);
	assert_null(strchr(ran, 'b'));
	latch_finish(&la);
	assert_int_equal(ran[2], 'b');
}

/* Drains the loop until `left` waits are pending. */
static void
settle_to(struct pw_loop *lp, unsigned left)
{
	struct pollfd pfd = {.fd = pw_loop_fd(lp), .events = POLLIN};

	while (pw_loop_pending(lp) > left) {
		if (poll(&pfd, 1, PATIENCE) != 1)
			fail_msg("%u waits never ended", pw_loop_pending(lp));
		pw_loop_drain(lp);
	}
}

/* Returns when a thread of the device sleeps. */
static void
await_sleeper(struct pw_device *dv)
{
	bool sleeps = false;
	int ms;

	for (ms = 0; !sleeps && ms < PATIENCE; ms++) {
		pthread_mutex_lock(&dv->dv_lock);
		sleeps = dv->dv_sleepers > 0;
		pthread_mutex_unlock(&dv->dv_lock);
		if (!sleeps)
			usleep(1000);
	}
	assert_true(sleeps);
}

/*
 * Holds one of two threads by a first window that is 200 ms old, and queues the next window 'a', which the
 * first window holds up.
 */
static struct pw_device *
hold_by_a_late_window(struct latch *la, struct pw_waiter *w)
{
	struct pw_device *dv = slow_disk();

	latch_shut_kind(la, JOB_NEW, dv, fx->fx_loop);
	pthread_mutex_lock(&dv->dv_lock);
	TAILQ_FIRST(&dv->dv_sweep->sw_news)->job_since -= 200000;
	pthread_mutex_unlock(&dv->dv_lock);
	submit_at(JOB_LONG, 'a', 1, 1, w);
	return dv;
}

/* First windows have had more of the disk then. */
TEST(a_held_next_window_begins_after_some_first_ones, setup_two, teardown_clock)
{
	struct pw_waiter waiters[MOST];
	struct latch la;
	size_t n = 0;
	char name;
	struct pw_device *dv = hold_by_a_late_window(&la, &waiters[n++]);

	await_sleeper(dv);
	assert_null(strchr(ran, 'a'));
	for (name = 'A'; name <= 'B'; name++) {
		submit(JOB_NEW, name, 1, &waiters[n++]);
		await_sleeper(dv);
	}
	assert_non_null(strchr(ran, 'a'));
	latch_finish(&la);
}

/* The first window is never read, and no other job wakes the other thread. */
TEST(a_held_next_window_begins_when_the_first_one_is_stuck, setup_two,
    teardown_clock)
{
	struct pw_waiter waiter;
	struct latch la;

	await_sleeper(hold_by_a_late_window(&la, &waiter));
	atomic_store(&now, 0);
	settle_to(fx->fx_loop, 1);
	assert_string_equal(ran, "a");
	latch_finish(&la);
}

/*
 * Reads hold both threads of the quota, and a first lookup one of the two that only lookups may have.
 */
TEST(lookups_have_threads_that_reads_never_take, setup_two, teardown_clock)
{
	struct pw_device *dv = pool_device(fx->fx_pool, DEVICE, POOL_FILES);
	struct pw_waiter waiters[MOST];
	struct latch reads[2], lookup;
	size_t n = 0;

	latch_shut(&reads[0], dv, fx->fx_loop);
	latch_shut(&reads[1], dv, fx->fx_loop);
	submit(JOB_NEW, 'A', 1, &waiters[n++]);
	submit(JOB_SHORT, 's', 1, &waiters[n++]);
	latch_shut_kind(&lookup, JOB_OPEN, dv, fx->fx_loop);
	submit(JOB_OPEN, 'o', 1, &waiters[n++]);
	submit(JOB_AGAIN, '1', 1, &waiters[n++]);
	while (pw_loop_pending(fx->fx_loop) > 6)
		pw_loop_drain(fx->fx_loop);
	assert_string_equal(ran, "1");
	submit(JOB_AGAIN, '2', 1, &waiters[n++]);
	while (pw_loop_pending(fx->fx_loop) > 6)
		pw_loop_drain(fx->fx_loop);
	assert_string_equal(ran, "12");
	/* They are no sign that the disk works. */
	assert_int_equal(device_ended(dv), 0);
	latch_open(&lookup);
	while (pw_loop_pending(fx->fx_loop) > 4)
		pw_loop_drain(fx->fx_loop);
	assert_string_equal(ran, "12o");
	latch_open(&reads[0]);
	while (pw_loop_pending(fx->fx_loop) > 1)
		pw_loop_drain(fx->fx_loop);
	assert_string_equal(ran, "12osA");
	latch_open(&reads[1]);
	settle(fx->fx_loop);
}

static int
run_task(struct pw_task *tk)
{
	(void)tk;
	return 4711;
}

TEST(tasks_that_rarely_read_do_not_wait_for_others, setup_two, teardown_clock)
{
	struct pw_device *dv = pool_device(fx->fx_pool, DEVICE, POOL_TASKS);
	struct pw_task tasks[2] = {0};
	struct latch reads[2];

	latch_shut(&reads[0], dv, fx->fx_loop);
	latch_shut(&reads[1], dv, fx->fx_loop);
	for (size_t i = 0; i < 2; i++) {
		tasks[i].tk_waiter.wt_done = nothing_done;
		tasks[i].tk_work = run_task;
		tasks[i].tk_again = i == 1;
		assert_int_equal(
		    pw_task_run(fx->fx_loop, DEVICE, &tasks[i]), 0);
	}
	while (pw_loop_pending(fx->fx_loop) > 3)
		pw_loop_drain(fx->fx_loop);
	assert_int_equal(tasks[0].tk_waiter.wt_error, 0);
	assert_int_equal(tasks[1].tk_waiter.wt_error, 4711);
	latch_open(&reads[0]);
	latch_open(&reads[1]);
	settle(fx->fx_loop);
	assert_int_equal(tasks[0].tk_waiter.wt_error, 4711);
}

/* Their reads delay those of files, which have threads of their own. */
TEST(tasks_of_clients_have_a_quarter_of_the_threads, setup_two, teardown_clock)
{
	struct pw_device *dv = pool_device(fx->fx_pool, DEVICE, POOL_TASKS);
	struct pw_task tasks[2] = {0};
	struct latch la;

	latch_shut_kind(&la, JOB_NEW, dv, fx->fx_loop);
	for (size_t i = 0; i < 2; i++) {
		tasks[i].tk_waiter.wt_done = nothing_done;
		tasks[i].tk_waiter.wt_client = i == 0 ? 4711 : 0;
		tasks[i].tk_work = run_task;
		assert_int_equal(
		    pw_task_run(fx->fx_loop, DEVICE, &tasks[i]), 0);
	}
	while (pw_loop_pending(fx->fx_loop) > 2)
		pw_loop_drain(fx->fx_loop);
	assert_int_equal(tasks[0].tk_waiter.wt_error, 0);
	assert_int_equal(tasks[1].tk_waiter.wt_error, 4711);
	latch_finish(&la);
	assert_int_equal(tasks[0].tk_waiter.wt_error, 4711);
}
