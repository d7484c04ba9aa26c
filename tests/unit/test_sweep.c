/*
 * In which order windows of a disk that rotates are read (lib/disk/sweep.c).
 */
#include "lib_fixture.h"

#include "lib/disk/sweep.h"
#include "lib/os/place.h"
#include "lib/util/clock.h"

#define MOST (2 * SWEEP_JOBS)
#define MIB  ((uint64_t)1 << 20)

struct queue {
	struct sweep *qu_sweep;
	struct jobs qu_jobs;
	struct job qu_job[MOST];
	size_t qu_n;
};

static int
setup_queue(void **state)
{
	struct queue *qu = calloc(1, sizeof(*qu));

	assert_non_null(qu);
	STAILQ_INIT(&qu->qu_jobs);
	qu->qu_sweep = sweep_create();
	assert_non_null(qu->qu_sweep);
	qu->qu_sweep->sw_slow = true;
	*state = qu;
	return 0;
}

static int
teardown_queue(void **state)
{
	struct queue *qu = *state;

	free(qu->qu_sweep);
	free(qu);
	return 0;
}

static void
insert(struct queue *qu, uint64_t place)
{
	struct job *job = &qu->qu_job[qu->qu_n++];

	assert_in_range(qu->qu_n, 1, MOST);
	job->job_kind = JOB_LONG;
	job->job_place = place;
	sweep_insert(qu->qu_sweep, &qu->qu_jobs, job);
}

/* Returns the place of the job that begins next. */
static uint64_t
begin(struct queue *qu)
{
	struct job *job = STAILQ_FIRST(&qu->qu_jobs);

	assert_non_null(job);
	STAILQ_REMOVE_HEAD(&qu->qu_jobs, job_next);
	sweep_begin(qu->qu_sweep, job, 0);
	return job->job_place;
}

static void
expect(struct queue *qu, size_t n, const uint64_t *places)
{
	size_t i;

	for (i = 0; i < n; i++)
		assert_int_equal(begin(qu), places[i]);
}

static void
a_sweep_is_read_in_the_order_of_places(void **state)
{
	struct queue *qu = *state;

	insert(qu, 5);
	insert(qu, 3);
	insert(qu, 9);
	insert(qu, 4);
	expect(qu, 4, (uint64_t[]){3, 4, 5, 9});
	assert_true(STAILQ_EMPTY(&qu->qu_jobs));
}

static void
jobs_of_the_same_place_keep_their_order(void **state)
{
	struct queue *qu = *state;
	struct job *first = &qu->qu_job[0];

	insert(qu, 7);
	insert(qu, 7);
	assert_ptr_equal(STAILQ_FIRST(&qu->qu_jobs), first);
}

/* Counts a job of a client and returns its kind. */
static enum job_kind
account(struct queue *qu, unsigned client, enum job_kind kind)
{
	struct job *job = &qu->qu_job[qu->qu_n++];

	assert_in_range(qu->qu_n, 1, MOST);
	job->job_client = client;
	job->job_kind = kind;
	assert_true(sweep_account(qu->qu_sweep, job, MOST));
	return job->job_kind;
}

/* Counts first windows of a client, and returns how many remained JOB_NEW jobs. */
static unsigned
account_news(struct queue *qu, unsigned client, unsigned n)
{
	unsigned news = 0;

	while (n-- > 0)
		news += account(qu, client, JOB_NEW) == JOB_NEW;
	return news;
}

static void
a_client_with_many_first_windows_waits_for_next_windows_of_others(void **state)
{
	struct queue *qu = *state;
	struct job *first = &qu->qu_job[1];

	account(qu, 1, JOB_LONG);
	assert_int_equal(account_news(qu, 2, 2 * SWEEP_FREE), SWEEP_FREE);
	assert_int_equal(account_news(qu, 3, 1), 1);
	assert_int_equal(first->job_client, 2);
	sweep_end(qu->qu_sweep, first, 0);
	assert_int_equal(account_news(qu, 2, 2), 1);
	/* its own next windows count for it */
	account(qu, 2, JOB_LONG);
	assert_int_equal(account_news(qu, 2, 2), 1);
}

static void
first_windows_wait_only_for_others(void **state)
{
	struct queue *qu = *state;

	assert_int_equal(account_news(qu, 1, 2 * SWEEP_FREE), 2 * SWEEP_FREE);
	account(qu, 1, JOB_LONG);
	assert_int_equal(account_news(qu, 1, 1), 1);
	account(qu, 0, JOB_LONG);
	assert_int_equal(account_news(qu, 1, 1), 1);
	account(qu, 2, JOB_LONG);
	assert_int_equal(account_news(qu, 1, 1), 0);
	qu->qu_sweep->sw_slow = false;
	assert_int_equal(account_news(qu, 1, 1), 1);
}

static void
jobs_without_a_client_are_not_counted(void **state)
{
	struct queue *qu = *state;

	account(qu, 1, JOB_LONG);
	assert_int_equal(account_news(qu, 0, 2 * SWEEP_FREE), 2 * SWEEP_FREE);
}

/* Returns the next client after this one whose entry is one of those of client 1. */
static unsigned
next_neighbour(unsigned client)
{
	do
		client++;
	while (client * 0x9e3779b1U >> 25 != 0x9e3779b1U >> 25);
	return client;
}

/* Otherwise a client with many addresses could have one that is not limited. */
static void
clients_without_an_entry_are_counted_as_one(void **state)
{
	struct queue *qu = *state;
	unsigned other = 1, ways;

	account(qu, 1, JOB_LONG);
	for (ways = 1; ways < SWEEP_WAYS; ways++) {
		other = next_neighbour(other);
		account(qu, other, JOB_LONG);
	}
	other = next_neighbour(other);
	assert_int_equal(
	    account_news(qu, other, SWEEP_FREE - 1), SWEEP_FREE - 1);
	other = next_neighbour(other);
	assert_int_equal(account_news(qu, other, 2), 1);
	/* A free entry is taken. */
	sweep_end(qu->qu_sweep, &qu->qu_job[0], 0);
	assert_int_equal(qu->qu_sweep->sw_longs, SWEEP_WAYS - 1);
	assert_int_equal(account_news(qu, other, SWEEP_FREE + 1), SWEEP_FREE);
}

/* Inserts deferred jobs of a client that has SWEEP_FREE first windows. */
static void
defer_of(struct queue *qu, unsigned client, size_t n)
{
	struct job *job;

	account_news(qu, client, SWEEP_FREE);
	while (n-- > 0) {
		job = &qu->qu_job[qu->qu_n];
		job->job_place = n + 1;
		assert_int_equal(account(qu, client, JOB_NEW), JOB_LONG);
		sweep_insert(qu->qu_sweep, &qu->qu_jobs, job);
	}
}

/* Defers jobs of client 2 beside the next window of client 1, which is qu_job[0]. */
static void
defer(struct queue *qu, size_t n)
{
	account(qu, 1, JOB_LONG);
	defer_of(qu, 2, n);
}

static size_t
resume(struct queue *qu)
{
	const struct job *job;
	size_t n = 0;

	sweep_resume(qu->qu_sweep, &qu->qu_jobs);
	STAILQ_FOREACH(job, &qu->qu_jobs, job_next)
	n++;
	return n;
}

static void
deferred_jobs_enter_the_sweeps_a_few_at_a_time(void **state)
{
	struct queue *qu = *state;
	struct job *job;
	size_t left = 3 * SWEEP_RESUMED;

	defer(qu, left);
	assert_true(STAILQ_EMPTY(&qu->qu_jobs));
	assert_int_equal(resume(qu), SWEEP_RESUMED);
	/* in the order of their places, which is not that of their requests */
	assert_int_equal(
	    STAILQ_FIRST(&qu->qu_jobs)->job_place, left - SWEEP_RESUMED + 1);
	while (left-- > 0) {
		job = STAILQ_FIRST(&qu->qu_jobs);
		begin(qu);
		assert_int_equal(
		    resume(qu), left < SWEEP_RESUMED ? left : SWEEP_RESUMED);
		sweep_end(qu->qu_sweep, job, 0);
	}
	assert_int_equal(qu->qu_sweep->sw_resumed, 0);
}

static void
clients_with_deferred_jobs_take_turns(void **state)
{
	struct queue *qu = *state;
	const struct job *job;
	unsigned others = 0;

	defer(qu, 2 * SWEEP_RESUMED);
	defer_of(qu, 3, 1);
	resume(qu);
	STAILQ_FOREACH(job, &qu->qu_jobs, job_next)
	others += job->job_client == 3;
	assert_int_equal(others, 1);
}

/* The newer one would be a first window once one of these has ended. */
static void
a_request_does_not_overtake_deferred_ones_of_its_client(void **state)
{
	struct queue *qu = *state;

	defer(qu, 1);
	sweep_end(qu->qu_sweep, &qu->qu_job[1], 0);
	assert_int_equal(account(qu, 2, JOB_NEW), JOB_LONG);
}

static void
a_client_with_too_many_deferred_jobs_is_refused(void **state)
{
	struct queue *qu = *state;
	struct job *job;

	defer(qu, 3);
	job = &qu->qu_job[qu->qu_n];
	*job = (struct job){.job_client = 2, .job_kind = JOB_NEW};
	assert_false(sweep_account(qu->qu_sweep, job, 3));
	assert_false(job->job_deferred);
	job->job_client = 3;
	assert_true(sweep_account(qu->qu_sweep, job, 3));
}

static void
more_deferred_jobs_enter_beside_more_next_windows(void **state)
{
	struct queue *qu = *state;
	size_t i;

	defer(qu, 2 * SWEEP_RESUMED);
	for (i = 1; i < 8; i++)
		account(qu, 3, JOB_LONG);
	assert_int_equal(resume(qu), SWEEP_RESUMED + 2);
}

/* Otherwise no thread would ever run them. */
static void
deferred_jobs_enter_also_when_the_disk_is_no_longer_slow(void **state)
{
	struct queue *qu = *state;

	defer(qu, 1);
	qu->qu_sweep->sw_slow = false;
	sweep_end(qu->qu_sweep, &qu->qu_job[0], 0);
	assert_int_equal(qu->qu_sweep->sw_longs, 0);
	assert_int_equal(resume(qu), 1);
}

/* Otherwise a transmission could keep the head near its file. */
static void
what_is_queued_during_a_sweep_waits_for_the_next(void **state)
{
	struct queue *qu = *state;

	insert(qu, 3);
	insert(qu, 9);
	assert_int_equal(begin(qu), 3);
	insert(qu, 4);
	insert(qu, 1);
	expect(qu, 2, (uint64_t[]){9, 1});
	insert(qu, 2);
	expect(qu, 2, (uint64_t[]){4, 2});
}

static void
a_sweep_has_a_limit(void **state)
{
	struct queue *qu = *state;
	uint64_t i;

	for (i = 0; i < SWEEP_JOBS; i++)
		insert(qu, 10 + i);
	insert(qu, 2);
	insert(qu, 1);
	for (i = 0; i < SWEEP_JOBS; i++)
		assert_int_equal(begin(qu), 10 + i);
	expect(qu, 2, (uint64_t[]){1, 2});
}

/* As on a virtual disk that is not slow. */
static void
a_fast_disk_has_no_sweeps(void **state)
{
	struct queue *qu = *state;

	qu->qu_sweep->sw_slow = false;
	insert(qu, 5);
	insert(qu, 3);
	assert_int_equal(begin(qu), 5);
	insert(qu, 4);
	qu->qu_sweep->sw_slow = true;
	insert(qu, 2);
	insert(qu, 1);
	expect(qu, 4, (uint64_t[]){3, 4, 1, 2});
}

/* Begins and ends this many jobs of 2 MiB, each of which takes `us`. */
static void
take(struct queue *qu, uint64_t *now, int n, uint64_t us)
{
	struct job job = {.job_kind = JOB_LONG, .job_len = 2 * MIB};

	for (; n > 0; n--) {
		sweep_begin(qu->qu_sweep, &job, *now);
		sweep_end(qu->qu_sweep, &job, *now += us);
	}
}

static void
a_disk_is_slow_by_its_rate(void **state)
{
	struct queue *qu = *state;
	uint64_t now = 1;

	qu->qu_sweep->sw_slow = false;
	take(qu, &now, 100, 5000);
	assert_false(qu->qu_sweep->sw_slow);
	assert_in_range(qu->qu_sweep->sw_rate, 625000000, 630000000);
	take(qu, &now, 100, 20000);
	assert_true(qu->qu_sweep->sw_slow);
	assert_in_range(qu->qu_sweep->sw_rate, 155000000, 158000000);
	/* Reads in order are faster, but those of no single disk are as fast as 2 MiB in 5 ms. */
	take(qu, &now, 100, 12000);
	assert_true(qu->qu_sweep->sw_slow);
	take(qu, &now, 100, 5000);
	assert_false(qu->qu_sweep->sw_slow);
	take(qu, &now, 100, 12000);
	assert_false(qu->qu_sweep->sw_slow);
}

static void
an_idle_disk_is_not_slow(void **state)
{
	struct queue *qu = *state;
	uint64_t now = 1;
	int i;

	qu->qu_sweep->sw_slow = false;
	for (i = 0; i < 100; i++, now += 1000000)
		take(qu, &now, 1, 5000);
	assert_false(qu->qu_sweep->sw_slow);
}

static void
jobs_that_run_at_once_share_their_time(void **state)
{
	struct queue *qu = *state;
	struct job job = {.job_kind = JOB_LONG, .job_len = 2 * MIB};
	uint64_t now = 1;
	int i, j;

	qu->qu_sweep->sw_slow = false;
	for (i = 0; i < 100; i++) {
		for (j = 0; j < 4; j++)
			sweep_begin(qu->qu_sweep, &job, now);
		now += 20000;
		for (j = 0; j < 4; j++)
			sweep_end(qu->qu_sweep, &job, now);
	}
	assert_false(qu->qu_sweep->sw_slow);
}

static void
a_late_first_window_holds_next_windows(void **state)
{
	struct queue *qu = *state;
	struct job early = {.job_kind = JOB_NEW, .job_since = clock_now()};
	struct job late = {.job_kind = JOB_NEW};

	late.job_since = early.job_since - 2 * SWEEP_LATE;
	assert_int_equal(sweep_long(qu->qu_sweep, true), SWEEP_LONG);
	sweep_begin(qu->qu_sweep, &late, 0);
	assert_int_equal(sweep_long(qu->qu_sweep, true), 0);
	assert_int_equal(sweep_long(qu->qu_sweep, false), SWEEP_LONG);
	/* The disk may fail to read it for as long as it wants. */
	late.job_since = clock_now() - SWEEP_STUCK;
	assert_int_equal(sweep_long(qu->qu_sweep, true), SWEEP_LONG);
	sweep_end(qu->qu_sweep, &late, 0);
	early.job_since += (uint64_t)PATIENCE * 1000;
	sweep_begin(qu->qu_sweep, &early, 0);
	assert_int_equal(sweep_long(qu->qu_sweep, true), SWEEP_LONG);
}

/* Their threads ran when the first of them found that the disk rotates. */
static void
jobs_may_be_older_than_the_sweep(void **state)
{
	struct queue *qu = *state;
	struct job old = {.job_kind = JOB_NEW}, job = old;

	sweep_end(qu->qu_sweep, &old, 0);
	assert_int_equal(sweep_long(qu->qu_sweep, true), SWEEP_LONG);
	sweep_begin(qu->qu_sweep, &job, 0);
	sweep_end(qu->qu_sweep, &old, 0);
	assert_ptr_equal(STAILQ_FIRST(&qu->qu_sweep->sw_news), &job);
	sweep_end(qu->qu_sweep, &job, 0);
	assert_true(STAILQ_EMPTY(&qu->qu_sweep->sw_news));
}

static void
the_place_of_a_file_follows_from_one_of_its_bytes(void **state)
{
	struct queue *qu = *state;

	assert_int_equal(sweep_place(qu->qu_sweep, 12, 0), 0);
	sweep_learn(qu->qu_sweep, 12, 100, 5100);
	assert_int_equal(sweep_place(qu->qu_sweep, 12, 0), 5000);
	assert_int_equal(sweep_place(qu->qu_sweep, 12, 200), 5200);
	assert_int_equal(sweep_place(qu->qu_sweep, 13, 200), 0);
}

/* The second block of the file is a hole. */
static void
the_file_system_tells_the_places_of_bytes(void **state)
{
	char path[32];
	uint64_t one = 0, two = 0, hole;
	int fd, error;

	(void)state;
	snprintf(path, sizeof(path), "%s/sweep-XXXXXX",
	    access("build", W_OK) == 0 ? "build" : "/tmp");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, 2 * MIB), 0);
	assert_int_equal(pwrite(fd, "x", 1, 100), 1);
	assert_int_equal(fsync(fd), 0);
	error = os_place(fd, 0, &one);
	if (error == 0)
		error = os_place(fd, 100, &two);
	if (error == 0)
		assert_int_equal(os_place(fd, MIB, &hole), -ENOENT);
	close(fd);
	if (error == -EOPNOTSUPP || error == -ENOTTY)
		skip();
	assert_int_equal(error, 0);
	assert_int_equal(two - one, 100);
}

static void
a_device_that_is_unknown_does_not_rotate(void **state)
{
	(void)state;
	assert_false(os_rotates((dev_t)0xfff00fff));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		a_sweep_is_read_in_the_order_of_places, setup_queue,
		teardown_queue),
	    cmocka_unit_test_setup_teardown(
		jobs_of_the_same_place_keep_their_order, setup_queue,
		teardown_queue),
	    cmocka_unit_test_setup_teardown(
		what_is_queued_during_a_sweep_waits_for_the_next, setup_queue,
		teardown_queue),
	    cmocka_unit_test_setup_teardown(
		a_client_with_many_first_windows_waits_for_next_windows_of_others,
		setup_queue, teardown_queue),
	    cmocka_unit_test_setup_teardown(first_windows_wait_only_for_others,
		setup_queue, teardown_queue),
	    cmocka_unit_test_setup_teardown(
		jobs_without_a_client_are_not_counted, setup_queue,
		teardown_queue),
	    cmocka_unit_test_setup_teardown(
		deferred_jobs_enter_the_sweeps_a_few_at_a_time, setup_queue,
		teardown_queue),
	    cmocka_unit_test_setup_teardown(
		clients_without_an_entry_are_counted_as_one, setup_queue,
		teardown_queue),
	    cmocka_unit_test_setup_teardown(
		clients_with_deferred_jobs_take_turns, setup_queue,
		teardown_queue),
	    cmocka_unit_test_setup_teardown(
		a_request_does_not_overtake_deferred_ones_of_its_client,
		setup_queue, teardown_queue),
	    cmocka_unit_test_setup_teardown(
		a_client_with_too_many_deferred_jobs_is_refused, setup_queue,
		teardown_queue),
	    cmocka_unit_test_setup_teardown(
		more_deferred_jobs_enter_beside_more_next_windows, setup_queue,
		teardown_queue),
	    cmocka_unit_test_setup_teardown(
		deferred_jobs_enter_also_when_the_disk_is_no_longer_slow,
		setup_queue, teardown_queue),
	    cmocka_unit_test_setup_teardown(
		a_sweep_has_a_limit, setup_queue, teardown_queue),
	    cmocka_unit_test_setup_teardown(
		a_fast_disk_has_no_sweeps, setup_queue, teardown_queue),
	    cmocka_unit_test_setup_teardown(
		a_disk_is_slow_by_its_rate, setup_queue, teardown_queue),
	    cmocka_unit_test_setup_teardown(
		an_idle_disk_is_not_slow, setup_queue, teardown_queue),
	    cmocka_unit_test_setup_teardown(
		jobs_that_run_at_once_share_their_time, setup_queue,
		teardown_queue),
	    cmocka_unit_test_setup_teardown(
		a_late_first_window_holds_next_windows, setup_queue,
		teardown_queue),
	    cmocka_unit_test_setup_teardown(
		jobs_may_be_older_than_the_sweep, setup_queue, teardown_queue),
	    cmocka_unit_test_setup_teardown(
		the_place_of_a_file_follows_from_one_of_its_bytes, setup_queue,
		teardown_queue),
	    cmocka_unit_test(the_file_system_tells_the_places_of_bytes),
	    cmocka_unit_test(a_device_that_is_unknown_does_not_rotate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
