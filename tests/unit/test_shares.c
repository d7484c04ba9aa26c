/*
 * In which order the jobs of a device begin (lib/disk/shares.c), by a clock that the test sets.
 */
#include "lib_fixture.h"

#include "lib/disk/shares.h"

#define MOST	64
#define CLIENT	(1u << SHARES_CONNECTION)
#define THREADS 16

struct bench {
	struct shares be_shares;
	struct job be_jobs[MOST];
	size_t be_n;
	uint64_t be_now;
};

static int
setup_bench(void **state)
{
	struct bench *be = calloc(1, sizeof(*be));

	assert_non_null(be);
	shares_init(&be->be_shares);
	be->be_now = 10 * SHARES_LATELY;
	*state = be;
	return 0;
}

/* Sets up n processes that use one device. */
static void
setup_processes(struct bench *be, struct shares_common *co, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		be[i] = (struct bench){.be_now = 10 * SHARES_LATELY};
		shares_init(&be[i].be_shares);
		shares_share(&be[i].be_shares, co, i, 0x801);
	}
}

static struct job *
add(struct bench *be, unsigned client, enum job_kind kind)
{
	struct job *job = &be->be_jobs[be->be_n++];

	assert_in_range(be->be_n, 1, MOST);
	*job = (struct job){.job_kind = kind, .job_client = client};
	assert_int_equal(shares_add(&be->be_shares, job, MOST), 0);
	return job;
}

/* Adds n jobs, and returns how many of them are in the crowd. */
static unsigned
add_some(struct bench *be, unsigned client, enum job_kind kind, unsigned n)
{
	unsigned crowd = 0;

	while (n-- > 0)
		crowd += shares_is_crowd(add(be, client, kind)->job_kind);
	return crowd;
}

static void
begin(struct bench *be, struct job *job)
{
	shares_take(&be->be_shares, job);
	shares_begin(&be->be_shares, job, be->be_now);
}

/* Begins and ends the next job of the kind, which takes `us`. */
static struct job *
run(struct bench *be, enum job_kind kind, uint64_t us)
{
	struct job *job = shares_first(&be->be_shares, kind);

	assert_non_null(job);
	begin(be, job);
	be->be_now += us;
	shares_end(&be->be_shares, job, be->be_now);
	return job;
}

/* Returns the kind that begins next of the two, the higher one if they are equal. */
static enum job_kind
next_of(const struct bench *be, enum job_kind low, enum job_kind high)
{
	return shares_before(&be->be_shares, low, high) ? low : high;
}

/* Makes the device one whose jobs take this long. */
static void
make_slow(struct bench *be, uint64_t us)
{
	for (int i = 0; i < 64; i++) {
		be->be_n = 0;
		add(be, 0, JOB_NEW);
		run(be, JOB_NEW, us);
	}
	be->be_n = 0;
}

/* Ends all jobs, after which no client may be left. */
static void
end_all(struct bench *be)
{
	for (int kind = 0; kind < JOB_KINDS; kind++)
		while (
		    shares_first(&be->be_shares, (enum job_kind)kind) != NULL)
			run(be, (enum job_kind)kind, 1);
	for (size_t i = 0; i < be->be_n; i++)
		if (be->be_jobs[i].job_share != NULL)
			shares_end(&be->be_shares, &be->be_jobs[i], be->be_now);
	for (size_t i = 0; i < SHARES_CHAINS; i++)
		assert_true(LIST_EMPTY(&be->be_shares.sh_chains[i]));
}

static int
teardown_bench(void **state)
{
	end_all(*state);
	free(*state);
	return 0;
}

/* Runs n jobs of two kinds, and returns the time of the lower one. */
static uint64_t
race(struct bench *be, enum job_kind low, uint64_t low_us, enum job_kind high,
    uint64_t high_us, int n)
{
	uint64_t used = 0;

	while (n-- > 0)
		if (next_of(be, low, high) == low) {
			run(be, low, low_us);
			used += low_us;
		} else
			run(be, high, high_us);
	return used;
}

TEST(kinds_share_the_time_of_the_threads, setup_bench, teardown_bench)
{
	struct bench *be = *state;
	uint64_t start = be->be_now, used;

	add_some(be, 0, JOB_OPEN, 24);
	add_some(be, 0, JOB_LONG, 24);
	used = race(be, JOB_LONG, 1000, JOB_OPEN, 4000, 24);
	assert_in_range(
	    used * 2, be->be_now - start - 8000, be->be_now - start + 8000);
}

TEST(lookups_that_read_nothing_go_first, setup_bench, teardown_bench)
{
	struct bench *be = *state;

	add_some(be, 0, JOB_OPEN, 24);
	add_some(be, 0, JOB_LONG, 2);
	run(be, JOB_LONG, 10000);
	assert_int_equal(race(be, JOB_LONG, 10000, JOB_OPEN, 0, 24), 0);
}

/* Otherwise a kind that used little could occupy the disk for as long. */
TEST(a_kind_without_jobs_gains_no_credit, setup_bench, teardown_bench)
{
	struct bench *be = *state;

	add_some(be, 0, JOB_LONG, 40);
	for (int i = 0; i < 24; i++)
		run(be, JOB_LONG, 10000);
	add_some(be, 0, JOB_NEW, 16);
	assert_int_equal(next_of(be, JOB_LONG, JOB_NEW), JOB_NEW);
	assert_in_range(
	    race(be, JOB_LONG, 10000, JOB_NEW, 10000, 16), 60000, 80000);
}

/* It would be all that the kind has for minutes. */
TEST(a_job_that_hung_counts_for_a_bounded_time, setup_bench, teardown_bench)
{
	struct bench *be = *state;

	add_some(be, 0, JOB_LONG, 2);
	add_some(be, 0, JOB_NEW, 2);
	run(be, JOB_LONG, 100 * (uint64_t)SHARES_LONGEST);
	run(be, JOB_NEW, SHARES_LONGEST);
	run(be, JOB_NEW, SHARES_LONGEST);
	assert_int_equal(next_of(be, JOB_LONG, JOB_NEW), JOB_LONG);
}

TEST(
    clients_take_turns_and_so_do_their_connections, setup_bench, teardown_bench)
{
	static const unsigned order[] = {CLIENT + 1, 2 * CLIENT, CLIENT + 2,
	    2 * CLIENT, CLIENT + 1, 2 * CLIENT, CLIENT + 1};
	struct bench *be = *state;

	add_some(be, CLIENT + 1, JOB_LONG, 3);
	add_some(be, CLIENT + 2, JOB_LONG, 1);
	add_some(be, 2 * CLIENT, JOB_LONG, 3);
	for (size_t i = 0; i < COUNT(order); i++)
		assert_int_equal(run(be, JOB_LONG, 1)->job_client, order[i]);
}

TEST(jobs_of_a_connection_keep_their_order, setup_bench, teardown_bench)
{
	struct bench *be = *state;

	add_some(be, CLIENT, JOB_LONG, 4);
	for (size_t i = 0; i < 4; i++)
		assert_ptr_equal(run(be, JOB_LONG, 1), &be->be_jobs[i]);
}

TEST(a_client_with_many_jobs_joins_the_crowd, setup_bench, teardown_bench)
{
	struct bench *be = *state;
	unsigned i;

	for (i = 1; i <= SHARES_CLIENT; i++)
		assert_int_equal(
		    add_some(be, CLIENT + i / 2, i % 2 ? JOB_NEW : JOB_OPEN, 1),
		    0);
	assert_int_equal(add_some(be, CLIENT + i, JOB_OPEN, 2), 2);
	assert_int_equal(add_some(be, CLIENT + i + 1, JOB_NEW, 1), 1);
	/* Others do not, and these kinds never. */
	assert_int_equal(add_some(be, 2 * CLIENT, JOB_NEW, 1), 0);
	assert_int_equal(add_some(be, CLIENT + i, JOB_LONG, 8), 0);
	assert_int_equal(add_some(be, CLIENT + i, JOB_AGAIN, 8), 0);
	run(be, JOB_NEW, 1);
	assert_int_equal(add_some(be, CLIENT + i + 2, JOB_NEW, 1), 0);
}

TEST(jobs_without_a_client_never_join_the_crowd, setup_bench, teardown_bench)
{
	struct bench *be = *state;

	assert_int_equal(add_some(be, 0, JOB_NEW, 3 * SHARES_CLIENT), 0);
}

/* Otherwise its newer requests would overtake older ones. */
TEST(a_connection_stays_in_the_crowd_until_it_has_no_job_there, setup_bench,
    teardown_bench)
{
	struct bench *be = *state;

	add_some(be, CLIENT, JOB_NEW, SHARES_CLIENT + 1);
	for (int i = 0; i < SHARES_CLIENT; i++)
		run(be, JOB_NEW, 1);
	assert_int_equal(add_some(be, CLIENT, JOB_OPEN, 1), 1);
	run(be, JOB_CROWD_NEW, 1);
	run(be, JOB_CROWD_OPEN, 1);
	assert_int_equal(add_some(be, CLIENT, JOB_OPEN, 1), 0);
}

static void
begin_while_the_crowd_may(struct bench *be, unsigned n)
{
	struct job *job;
	unsigned i;

	for (i = 0; shares_crowd_may(&be->be_shares, THREADS, be->be_now);
	     i++) {
		job = shares_first(&be->be_shares, JOB_CROWD_NEW);
		assert_non_null(job);
		begin(be, job);
	}
	assert_int_equal(i, n);
}

TEST(a_crowd_alone_occupies_three_quarters_of_the_threads, setup_bench,
    teardown_bench)
{
	struct bench *be = *state;

	add_some(be, CLIENT, JOB_NEW, 30);
	for (int i = 0; i < SHARES_CLIENT; i++)
		run(be, JOB_NEW, 1);
	be->be_now += SHARES_LATELY;
	begin_while_the_crowd_may(be, THREADS * 3 / 4);
}

TEST(a_crowd_occupies_few_threads_beside_others_and_for_a_while_after,
    setup_bench, teardown_bench)
{
	struct bench *be = *state;
	struct job *job;

	make_slow(be, 2 * SHARES_FAST);
	add_some(be, CLIENT, JOB_NEW, 30);
	job = add(be, 2 * CLIENT, JOB_LONG);
	be->be_now += 2 * SHARES_LATELY;
	begin_while_the_crowd_may(be, THREADS / SHARES_THREADS);
	begin(be, job);
	be->be_now += 2 * SHARES_LATELY;
	begin_while_the_crowd_may(be, 0);
	while (shares_first(&be->be_shares, JOB_NEW) != NULL)
		run(be, JOB_NEW, 2 * SHARES_FAST);
	shares_end(&be->be_shares, job, be->be_now);
	begin_while_the_crowd_may(be, 0);
	be->be_now += SHARES_LATELY;
	begin_while_the_crowd_may(
	    be, THREADS * 3 / 4 - THREADS / SHARES_THREADS);
}

/* There, reads do not wait for those of others. */
TEST(a_crowd_occupies_three_quarters_of_the_threads_of_a_fast_device,
    setup_bench, teardown_bench)
{
	struct bench *be = *state;

	make_slow(be, SHARES_FAST / 2);
	add_some(be, CLIENT, JOB_NEW, 30);
	add(be, 2 * CLIENT, JOB_LONG);
	begin_while_the_crowd_may(be, THREADS * 3 / 4);
}

/* Otherwise a client with many connections would never have more threads. */
TEST(
    a_client_in_the_crowd_is_not_one_of_the_others, setup_bench, teardown_bench)
{
	struct bench *be = *state;

	make_slow(be, 2 * SHARES_FAST);
	be->be_now += SHARES_LATELY;
	add_some(be, CLIENT + 1, JOB_NEW, 30);
	while (shares_first(&be->be_shares, JOB_NEW) != NULL)
		run(be, JOB_NEW, 2 * SHARES_FAST);
	be->be_now += SHARES_LATELY;
	add_some(be, CLIENT + 2, JOB_LONG, 1);
	begin_while_the_crowd_may(be, THREADS * 3 / 4);
}

TEST(a_crowd_always_has_a_thread, setup_bench, teardown_bench)
{
	struct bench *be = *state;
	unsigned threads;

	add_some(be, 2 * CLIENT, JOB_LONG, 1);
	for (threads = 1; threads < 2 * SHARES_THREADS; threads++)
		assert_true(
		    shares_crowd_may(&be->be_shares, threads, be->be_now));
}

TEST(the_time_of_a_crowd_counts_more, setup_bench, teardown_bench)
{
	struct bench *be = *state;
	uint64_t start = be->be_now, used;

	add_some(be, CLIENT, JOB_NEW, 30);
	add_some(be, 0, JOB_LONG, 30);
	used = race(be, JOB_CROWD_NEW, 1000, JOB_LONG, 1000, 25);
	assert_in_range(used * (SHARES_COST + 1), be->be_now - start - 5000,
	    be->be_now - start + 5000);
}

TEST(a_client_with_too_many_jobs_is_refused, setup_bench, teardown_bench)
{
	struct bench *be = *state;
	struct job job = {.job_kind = JOB_NEW, .job_client = CLIENT + 2};

	add_some(be, CLIENT + 1, JOB_NEW, 6);
	assert_int_equal(shares_add(&be->be_shares, &job, 6), -EAGAIN);
	add_some(be, 2 * CLIENT, JOB_NEW, 1);
	run(be, JOB_NEW, 1);
	add_some(be, CLIENT + 2, JOB_NEW, 1);
}

TEST(a_job_of_the_crowd_moves_to_another_client_that_waits_for_it, setup_bench,
    teardown_bench)
{
	struct bench *be = *state;
	struct job *job;

	add_some(be, CLIENT, JOB_NEW, SHARES_CLIENT + 2);
	job = &be->be_jobs[SHARES_CLIENT + 1];
	shares_join(&be->be_shares, job, JOB_NEW, CLIENT, be->be_now);
	assert_int_equal(job->job_kind, JOB_CROWD_NEW);
	shares_join(&be->be_shares, job, JOB_NEW, 2 * CLIENT, be->be_now);
	assert_int_equal(job->job_kind, JOB_NEW);
	run(be, JOB_NEW, 1);
	assert_ptr_equal(run(be, JOB_NEW, 1), job);
}

TEST(a_next_window_moves_to_a_client_that_waits_for_it_first, setup_bench,
    teardown_bench)
{
	struct bench *be = *state;
	struct job *job = &be->be_jobs[0];

	add_some(be, CLIENT, JOB_LONG, 1);
	shares_join(&be->be_shares, job, JOB_LONG, 2 * CLIENT, be->be_now);
	assert_int_equal(job->job_kind, JOB_LONG);
	shares_join(&be->be_shares, job, JOB_NEW, 2 * CLIENT, be->be_now);
	assert_int_equal(job->job_kind, JOB_NEW);
	assert_ptr_equal(run(be, JOB_NEW, 1), job);
}

/* It is the only job of its connection and client, which must outlive the move. */
TEST(a_job_moves_to_another_connection_of_its_client, setup_bench,
    teardown_bench)
{
	struct bench *be = *state;
	struct job *job;

	add_some(be, CLIENT + 1, JOB_NEW, SHARES_CLIENT + 1);
	for (int i = 0; i < SHARES_CLIENT; i++)
		run(be, JOB_NEW, 1);
	job = shares_first(&be->be_shares, JOB_CROWD_NEW);
	shares_join(&be->be_shares, job, JOB_NEW, CLIENT + 2, be->be_now);
	assert_int_equal(job->job_kind, JOB_NEW);
	assert_ptr_equal(run(be, JOB_NEW, 1), job);
}

/* As if they were one client, with one turn. */
TEST(jobs_of_clients_that_closed_their_side_come_last, setup_bench,
    teardown_bench)
{
	static const unsigned order[] = {
	    POOL_LAST, 3 * CLIENT, POOL_LAST, 3 * CLIENT, POOL_LAST};
	struct bench *be = *state;

	for (unsigned i = 10; i < 13; i++)
		assert_true(shares_defer(
		    &be->be_shares, add(be, i * CLIENT, JOB_NEW), be->be_now));
	assert_int_equal(be->be_shares.sh_last, 3);
	add_some(be, 3 * CLIENT, JOB_NEW, SHARES_CLIENT + 2);
	for (unsigned i = 0; i < COUNT(order); i++)
		assert_int_equal(
		    run(be, JOB_CROWD_NEW, 1)->job_client, order[i]);
	assert_int_equal(be->be_shares.sh_last, 0);
}

TEST(the_others_of_all_processes_count, setup_bench, teardown_bench)
{
	static struct bench be[2];
	static struct shares_common co;
	struct job *job;

	setup_processes(be, &co, 2);
	make_slow(&be[0], 2 * SHARES_FAST);
	add_some(&be[0], CLIENT, JOB_NEW, 30);
	while (shares_first(&be[0].be_shares, JOB_NEW) != NULL)
		run(&be[0], JOB_NEW, 2 * SHARES_FAST);
	be[0].be_now += 2 * SHARES_LATELY;
	be[1].be_now = be[0].be_now;
	job = add(&be[1], 2 * CLIENT, JOB_LONG);
	begin(&be[1], job);
	be[0].be_now = be[1].be_now += 2 * SHARES_LATELY;
	begin_while_the_crowd_may(&be[0], THREADS / SHARES_THREADS);
	shares_end(&be[1].be_shares, job, be[1].be_now);
	be[0].be_now += SHARES_LATELY - 1;
	begin_while_the_crowd_may(&be[0], 0);
	be[0].be_now++;
	begin_while_the_crowd_may(
	    &be[0], THREADS * 3 / 4 - THREADS / SHARES_THREADS);
	end_all(&be[0]);
	end_all(&be[1]);
}

/* It ends no job. */
TEST(a_process_that_was_killed_is_forgotten, setup_bench, teardown_bench)
{
	static struct bench be[2];
	static struct shares_common co;

	setup_processes(be, &co, 2);
	make_slow(&be[0], 2 * SHARES_FAST);
	add_some(&be[0], CLIENT, JOB_NEW, 30);
	be[1].be_now = be[0].be_now;
	begin(&be[1], add(&be[1], 2 * CLIENT, JOB_LONG));
	while (shares_first(&be[0].be_shares, JOB_NEW) != NULL)
		run(&be[0], JOB_NEW, 2 * SHARES_FAST);
	be[0].be_now += 2 * SHARES_LATELY;
	begin_while_the_crowd_may(&be[0], THREADS / SHARES_THREADS);
	be[0].be_now += SHARES_HELD;
	begin_while_the_crowd_may(
	    &be[0], THREADS * 3 / 4 - THREADS / SHARES_THREADS);
	end_all(&be[0]);
	end_all(&be[1]);
}

/* Less than a thread is one that pauses after each job. */
TEST(the_crowds_of_processes_share_their_threads, setup_bench, teardown_bench)
{
	static struct bench be[3];
	static struct shares_common co;
	const uint64_t us = 2 * SHARES_FAST;
	struct shares *sh = &be[0].be_shares;

	setup_processes(be, &co, 3);
	for (unsigned i = 0; i < 3; i++) {
		make_slow(&be[i], us);
		add_some(&be[i], CLIENT, JOB_NEW, 20);
		add_some(&be[i], 2 * CLIENT, JOB_LONG, 1);
		assert_true(
		    shares_crowd_may(&be[i].be_shares, THREADS, be[i].be_now));
	}
	assert_int_equal(shares_crowd_pause(sh, THREADS, be[0].be_now), 0);
	run(&be[0], JOB_CROWD_NEW, us);
	assert_int_equal(shares_crowd_pause(sh, THREADS, be[0].be_now), 2 * us);
	begin_while_the_crowd_may(&be[0], 0);
	/* A job that does not run ends no pause. */
	shares_first(sh, JOB_CROWD_NEW)->job_left = true;
	run(&be[0], JOB_CROWD_NEW, 0);
	begin_while_the_crowd_may(&be[0], 0);
	be[0].be_now += 2 * us;
	assert_int_equal(shares_crowd_pause(sh, THREADS, be[0].be_now), 0);
	assert_true(shares_crowd_may(sh, THREADS, be[0].be_now));
	assert_true(
	    shares_crowd_may(sh, 6 * SHARES_THREADS, be[0].be_now - us));
	run(&be[0], JOB_CROWD_NEW, SHARES_LONGEST);
	assert_int_equal(shares_crowd_pause(sh, THREADS, be[0].be_now), 0);
	for (unsigned i = 0; i < 3; i++)
		end_all(&be[i]);
}
