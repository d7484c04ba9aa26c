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
	struct shares qu_shares;
	struct job qu_job[MOST];
	size_t qu_n;
};

static struct queue *qu; /* of the test that runs */

static int
setup_queue(void **state)
{
	(void)state;
	qu = calloc(1, sizeof(*qu));
	assert_non_null(qu);
	shares_init(&qu->qu_shares);
	qu->qu_sweep = sweep_create();
	assert_non_null(qu->qu_sweep);
	qu->qu_sweep->sw_slow = true;
	return 0;
}

static int
teardown_queue(void **state)
{
	(void)state;
	for (size_t i = 0; i < qu->qu_n; i++)
		if (qu->qu_job[i].job_queued)
			shares_take(&qu->qu_shares, &qu->qu_job[i]);
	for (size_t i = 0; i < qu->qu_n; i++)
		if (qu->qu_job[i].job_share != NULL)
			shares_end(&qu->qu_shares, &qu->qu_job[i], 0);
	free(qu->qu_sweep);
	free(qu);
	return 0;
}

static void
insert(uint64_t place)
{
	struct job *job = &qu->qu_job[qu->qu_n++];

	assert_in_range(qu->qu_n, 1, MOST);
	job->job_kind = JOB_LONG;
	job->job_place = place;
	assert_int_equal(shares_add(&qu->qu_shares, job, MOST), 0);
}

static struct job *
next(void)
{
	struct job *job = sweep_first(qu->qu_sweep, &qu->qu_shares);

	return job != NULL ? job : shares_first(&qu->qu_shares, JOB_LONG);
}

/* Returns the place of the job that begins next. */
static uint64_t
begin(void)
{
	struct job *job = next();

	assert_non_null(job);
	if (job->job_queued)
		shares_take(&qu->qu_shares, job);
	sweep_begin(qu->qu_sweep, job, 0);
	return job->job_place;
}

static void
expect(size_t n, const uint64_t *places)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(begin(), places[i]);
}

TEST(a_sweep_is_read_in_the_order_of_places, setup_queue, teardown_queue)
{
	insert(5);
	insert(3);
	insert(9);
	insert(4);
	expect(4, (uint64_t[]){3, 4, 5, 9});
	assert_null(next());
}

TEST(jobs_of_the_same_place_keep_their_order, setup_queue, teardown_queue)
{
	struct job *first = &qu->qu_job[0];

	insert(7);
	insert(7);
	assert_ptr_equal(next(), first);
}

/* Otherwise a transmission could keep the head near its file. */
TEST(what_is_queued_during_a_sweep_waits_for_the_next, setup_queue,
    teardown_queue)
{
	insert(3);
	insert(9);
	assert_int_equal(begin(), 3);
	insert(4);
	insert(1);
	expect(2, (uint64_t[]){9, 1});
	insert(2);
	expect(2, (uint64_t[]){4, 2});
}

TEST(a_sweep_has_a_limit, setup_queue, teardown_queue)
{
	uint64_t i;

	for (i = 0; i < SWEEP_JOBS; i++)
		insert(10 + i);
	insert(2);
	insert(1);
	for (i = 0; i < SWEEP_JOBS; i++)
		assert_int_equal(begin(), 10 + i);
	expect(2, (uint64_t[]){1, 2});
}

/* As on a virtual disk that is not slow.  A sweep that has begun ends in its order. */
TEST(a_fast_disk_has_no_sweeps, setup_queue, teardown_queue)
{
	qu->qu_sweep->sw_slow = false;
	insert(5);
	insert(3);
	insert(8);
	assert_int_equal(begin(), 5);
	qu->qu_sweep->sw_slow = true;
	insert(4);
	assert_int_equal(begin(), 3);
	qu->qu_sweep->sw_slow = false;
	insert(1);
	expect(3, (uint64_t[]){4, 8, 1});
}

/* Otherwise a client with many connections would take the head from the others. */
TEST(clients_take_turns_to_join_a_sweep, setup_queue, teardown_queue)
{
	struct job *job;
	uint64_t i;

	for (i = 0; i < SWEEP_JOBS; i++)
		insert(10 + i);
	job = &qu->qu_job[qu->qu_n];
	job->job_client = 1 << SHARES_CONNECTION;
	insert(1);
	assert_int_equal(begin(), 1);
}

/* Begins and ends this many jobs of 2 MiB, each of which takes `us`. */
static void
take(uint64_t *now, int n, uint64_t us)
{
	struct job job = {.job_kind = JOB_LONG, .job_len = 2 * MIB};

	for (; n > 0; n--) {
		sweep_begin(qu->qu_sweep, &job, *now);
		sweep_end(qu->qu_sweep, &job, *now += us);
	}
}

TEST(a_disk_is_slow_by_its_rate, setup_queue, teardown_queue)
{
	uint64_t now = 1;

	qu->qu_sweep->sw_slow = false;
	take(&now, 100, 5000);
	assert_false(qu->qu_sweep->sw_slow);
	assert_in_range(qu->qu_sweep->sw_rate, 625000000, 630000000);
	take(&now, 100, 20000);
	assert_true(qu->qu_sweep->sw_slow);
	assert_in_range(qu->qu_sweep->sw_rate, 155000000, 158000000);
	/* Reads in order are faster, but those of no single disk are as fast as 2 MiB in 5 ms. */
	take(&now, 100, 12000);
	assert_true(qu->qu_sweep->sw_slow);
	take(&now, 100, 5000);
	assert_false(qu->qu_sweep->sw_slow);
	take(&now, 100, 12000);
	assert_false(qu->qu_sweep->sw_slow);
}

TEST(an_idle_disk_is_not_slow, setup_queue, teardown_queue)
{
	uint64_t now = 1;

	qu->qu_sweep->sw_slow = false;
	for (int i = 0; i < 100; i++, now += 1000000)
		take(&now, 1, 5000);
	assert_false(qu->qu_sweep->sw_slow);
}

TEST(jobs_that_run_at_once_share_their_time, setup_queue, teardown_queue)
{
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

TEST(a_late_first_window_holds_next_windows, setup_queue, teardown_queue)
{
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
TEST(jobs_may_be_older_than_the_sweep, setup_queue, teardown_queue)
{
	struct job old = {.job_kind = JOB_NEW}, job = old;

	sweep_end(qu->qu_sweep, &old, 0);
	assert_int_equal(sweep_long(qu->qu_sweep, true), SWEEP_LONG);
	sweep_begin(qu->qu_sweep, &job, 0);
	sweep_end(qu->qu_sweep, &old, 0);
	assert_ptr_equal(TAILQ_FIRST(&qu->qu_sweep->sw_news), &job);
	sweep_end(qu->qu_sweep, &job, 0);
	assert_true(TAILQ_EMPTY(&qu->qu_sweep->sw_news));
}

TEST(the_place_of_a_file_follows_from_one_of_its_bytes, setup_queue,
    teardown_queue)
{
	assert_int_equal(sweep_place(qu->qu_sweep, 12, 0), 0);
	sweep_learn(qu->qu_sweep, 12, 100, 5100);
	assert_int_equal(sweep_place(qu->qu_sweep, 12, 0), 5000);
	assert_int_equal(sweep_place(qu->qu_sweep, 12, 200), 5200);
	assert_int_equal(sweep_place(qu->qu_sweep, 13, 200), 0);
}

/* The second block of the file is a hole. */
TEST(the_file_system_tells_the_places_of_bytes, NULL)
{
	char path[32];
	uint64_t one = 0, two = 0, hole;
	int fd, error;

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

TEST(a_device_that_is_unknown_does_not_rotate, NULL)
{
	assert_false(os_rotates((dev_t)0xfff00fff));
}
