/*
 * The rules of lib/disk/pool.h and lib/loop.c: a queue and a quota for each device,
 * single flight, every completion on its own loop and from its drain.
 */
#include "lib_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <sys/wait.h>

#define DEVICE_A ((dev_t)0x10001)
#define DEVICE_B ((dev_t)0x10002)
#define JOBS	 300
#define WINDOW	 (64 * KIB)
#define CROWDED	 (SHARES_CLIENT + 4)

/* A job that counts itself; its waiter notes when it was delivered. */
struct count_job {
	struct job cj_job;
	atomic_uint *cj_ran;
	int cj_error;
};

static unsigned delivered;

struct noting {
	struct pw_waiter nt_waiter;
	unsigned nt_times;
	unsigned nt_order; /* how many were delivered before */
};

static int
count_run(struct job *job)
{
	struct count_job *cj = (struct count_job *)job;

	atomic_fetch_add(cj->cj_ran, 1);
	return cj->cj_error;
}

static void
note(struct pw_waiter *w)
{
	struct noting *nt = (struct noting *)w;

	nt->nt_times++;
	nt->nt_order = delivered++;
}

static void
note_late(struct pw_waiter *w)
{
	uint64_t end = pw_now() + 10000;

	note(w);
	while (pw_now() < end)
		continue;
}

static struct job *
count_job(atomic_uint *ran, int error)
{
	struct count_job *cj = calloc(1, sizeof(*cj));

	assert_non_null(cj);
	cj->cj_job.job_run = count_run;
	cj->cj_ran = ran;
	cj->cj_error = error;
	return &cj->cj_job;
}

/* Freed by the pool, or here when it was refused. */
static int
submit(struct pw_device *dv, struct pw_loop *lp, atomic_uint *ran, bool begun,
    struct noting *nt)
{
	struct job *job = count_job(ran, 0);
	int error;

	*nt = (struct noting){.nt_waiter.wt_done = note};
	error = pool_submit(dv, job, begun, lp, &nt->nt_waiter);
	if (error != 0)
		free(job);
	return error;
}

static int
setup_two_threads(void **state)
{
	return setup_with(state, 2, 8, 0);
}

/* Bounded: until the loop has something to deliver. */
static void
await_readable(struct pw_loop *lp)
{
	struct pollfd pfd = {.fd = pw_loop_fd(lp), .events = POLLIN};

	assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
}

TEST(a_job_is_run_once_and_its_result_delivered_once)
{
	struct noting nt = {.nt_waiter.wt_done = note};
	atomic_uint ran = 0;

	assert_int_equal(
	    pool_submit(pool_device(fx->fx_pool, DEVICE_A, POOL_FILES),
		count_job(&ran, -EIO), false, fx->fx_loop, &nt.nt_waiter),
	    0);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 1);
	settle(fx->fx_loop);
	pw_loop_drain(fx->fx_loop);
	assert_int_equal(atomic_load(&ran), 1);
	assert_int_equal(nt.nt_times, 1);
	assert_int_equal(nt.nt_waiter.wt_error, -EIO);
}

TEST(only_drain_delivers_results)
{
	struct pw_device *dv = pool_device(fx->fx_pool, DEVICE_A, POOL_FILES);
	atomic_uint ran = 0;
	struct noting nt;

	assert_int_equal(submit(dv, fx->fx_loop, &ran, false, &nt), 0);
	await_readable(fx->fx_loop);
	assert_int_equal(nt.nt_times, 0);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 1);
	pw_loop_drain(fx->fx_loop);
	assert_int_equal(nt.nt_times, 1);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
}

TEST(a_hung_device_uses_only_its_own_threads, setup_two_threads)
{
	struct pw_device *a = pool_device(fx->fx_pool, DEVICE_A, POOL_FILES);
	struct pw_device *b = pool_device(fx->fx_pool, DEVICE_B, POOL_FILES);
	atomic_uint ran_a = 0, ran_b = 0;
	struct noting na[3], nb;
	struct latch gates[2];

	assert_ptr_not_equal(a, b);
	assert_ptr_equal(a, pool_device(fx->fx_pool, DEVICE_A, POOL_FILES));
	for (size_t i = 0; i < COUNT(gates); i++)
		latch_shut(&gates[i], a, fx->fx_loop);
	for (size_t i = 0; i < COUNT(na); i++)
		assert_int_equal(
		    submit(a, fx->fx_loop, &ran_a, false, &na[i]), 0);
	assert_int_equal(submit(b, fx->fx_loop, &ran_b, false, &nb), 0);
	await_readable(fx->fx_loop);
	pw_loop_drain(fx->fx_loop);
	assert_int_equal(nb.nt_times, 1);
	/* Its quota is two: however long one waits, there is no third. */
	usleep(20000);
	assert_int_equal(atomic_load(&ran_a), 0);
	for (size_t i = 0; i < COUNT(gates); i++)
		latch_open(&gates[i]);
	settle(fx->fx_loop);
	assert_int_equal(atomic_load(&ran_a), COUNT(na));
}

/* Both gates are shut at once, or latch_shut would wait in vain. */
TEST(jobs_run_side_by_side_up_to_the_quota, setup_two_threads)
{
	struct pw_device *dv = pool_device(fx->fx_pool, DEVICE_A, POOL_FILES);
	struct latch one, two;

	latch_shut(&one, dv, fx->fx_loop);
	latch_shut(&two, dv, fx->fx_loop);
	latch_open(&one);
	latch_finish(&two);
}

TEST(a_full_queue_refuses_and_counts_new_jobs, setup_narrow)
{
	struct pw_device *a = pool_device(fx->fx_pool, DEVICE_A, POOL_FILES);
	struct pw_device *b = pool_device(fx->fx_pool, DEVICE_B, POOL_FILES);
	atomic_uint ran = 0;
	struct noting queued, refused, begun, other;
	struct latch la;

	latch_shut(&la, a, fx->fx_loop);
	assert_int_equal(submit(a, fx->fx_loop, &ran, false, &queued), 0);
	assert_int_equal(pw_pool_refused(fx->fx_pool), 0);
	assert_int_equal(
	    submit(a, fx->fx_loop, &ran, false, &refused), -EAGAIN);
	assert_int_equal(pw_pool_refused(fx->fx_pool), 1);
	assert_int_equal(
	    submit(a, fx->fx_loop, &ran, false, &refused), -EAGAIN);
	assert_int_equal(pw_pool_refused(fx->fx_pool), 2);
	assert_int_equal(submit(a, fx->fx_loop, &ran, true, &begun), 0);
	assert_int_equal(submit(b, fx->fx_loop, &ran, false, &other), 0);
	assert_int_equal(pw_pool_refused(fx->fx_pool), 2);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 4);
	latch_finish(&la);
	assert_int_equal(atomic_load(&ran), 3);
	assert_int_equal(refused.nt_times, 0);
	assert_int_equal(begun.nt_times, 1);
	/* There is room again. */
	assert_int_equal(submit(a, fx->fx_loop, &ran, false, &refused), 0);
	settle(fx->fx_loop);
}

/*
 * The queue takes one job: all but the first would be refused if they were not
 * one flight.
 */
TEST(misses_of_one_window_share_a_fetch, setup_narrow)
{
	static const struct {
		off_t off;
		size_t len;
	} covered[] = {{WINDOW, WINDOW}, {WINDOW, 1}, {WINDOW + 4096, 4096},
	    {2 * WINDOW - 1, 1}, {WINDOW, WINDOW}};
	SCOPED_FILE *file = new_file("f", 4 * WINDOW);
	struct noting nt[COUNT(covered)];
	struct latch la;
	size_t i, n = COUNT(covered);

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	for (i = 0; i < n; i++) {
		nt[i] = (struct noting){.nt_waiter.wt_done = note};
		assert_int_equal(
		    pool_fetch(file, covered[i].off, covered[i].len,
			FETCH_PAGES, ADMIT_NEW, &nt[i].nt_waiter),
		    0);
	}
	assert_int_equal(pw_pool_refused(fx->fx_pool), 0);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 1 + n);
	latch_finish(&la);
	for (i = 0; i < n; i++) {
		assert_int_equal(nt[i].nt_times, 1);
		assert_int_equal(nt[i].nt_waiter.wt_error, 0);
	}
}

TEST(a_window_that_is_not_covered_is_another_flight, setup_narrow)
{
	static const struct {
		off_t off;
		size_t len;
	} others[] = {{0, WINDOW}, {0, 4 * WINDOW}, {WINDOW - 1, 2},
	    {WINDOW, WINDOW + 1}, {2 * WINDOW - 1, 2}, {2 * WINDOW, WINDOW}};
	SCOPED_FILE *file = new_file("f", 4 * WINDOW);
	struct noting nt = {.nt_waiter.wt_done = note};
	struct pw_waiter w = {.wt_done = nothing_done};
	struct latch la;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	assert_int_equal(pool_fetch(file, WINDOW, WINDOW, FETCH_PAGES,
			     ADMIT_NEW, &nt.nt_waiter),
	    0);
	for (size_t i = 0; i < COUNT(others); i++)
		assert_int_equal(pool_fetch(file, others[i].off, others[i].len,
				     FETCH_PAGES, ADMIT_NEW, &w),
		    -EAGAIN);
	assert_int_equal(pw_pool_refused(fx->fx_pool), COUNT(others));
	latch_finish(&la);
	assert_int_equal(nt.nt_times, 1);
}

/* So many that some share whatever the flights are found by. */
TEST(another_file_is_another_flight, setup_narrow)
{
	SCOPED_FILE *file = new_file("f", WINDOW);
	struct file_private other;
	struct noting nt = {.nt_waiter.wt_done = note};
	struct pw_waiter w = {.wt_done = nothing_done};
	struct latch la;
	uint64_t i;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	assert_int_equal(
	    pool_fetch(file, 0, WINDOW, FETCH_PAGES, ADMIT_NEW, &nt.nt_waiter),
	    0);
	for (i = 1; i < 4000; i++) {
		other = *file_priv(file);
		other.fp_file.fil_ino += i;
		assert_int_equal(pool_fetch(&other.fp_file, 0, 1, FETCH_PAGES,
				     ADMIT_NEW, &w),
		    -EAGAIN);
	}
	other = *file_priv(file);
	other.fp_file.fil_dev++;
	assert_int_equal(
	    pool_fetch(&other.fp_file, 0, 1, FETCH_PAGES, ADMIT_NEW, &w),
	    -EAGAIN);
	latch_finish(&la);
	assert_int_equal(nt.nt_times, 1);
}

/* Once landed, a flight is over: what was evicted since is fetched anew. */
static bool
a_second_fetch_brings_in(void)
{
	SCOPED_FILE *file = new_file("f", WINDOW);
	struct noting nt = {.nt_waiter.wt_done = note};
	bool in;

	for (unsigned i = 0; i < 2; i++) {
		assert_true(evict(file->fil_fd, WINDOW));
		assert_int_equal(pool_fetch(file, 0, WINDOW, FETCH_PAGES,
				     ADMIT_NEW, &nt.nt_waiter),
		    0);
		settle(fx->fx_loop);
		assert_int_equal(nt.nt_times, i + 1);
		in =
		    pages_resident(file->fil_fd, 0, WINDOW) == pages_in(WINDOW);
	}
	return in;
}

TEST(a_window_is_fetched_again_after_it_has_landed, setup_narrow)
{
	skip_unless(NEED_EVICTION);
	assert_true(holds_in_one_of(5, a_second_fetch_brings_in));
}

TEST(a_window_past_the_end_is_stale_for_all, setup_narrow)
{
	SCOPED_FILE *file = new_file("f", WINDOW);
	struct noting nt[3];
	struct latch la;

	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	for (size_t i = 0; i < COUNT(nt); i++) {
		nt[i] = (struct noting){.nt_waiter.wt_done = note};
		assert_int_equal(pool_fetch(file, 0, WINDOW + 1, FETCH_PAGES,
				     ADMIT_NEW, &nt[i].nt_waiter),
		    0);
	}
	latch_finish(&la);
	for (size_t i = 0; i < COUNT(nt); i++)
		assert_int_equal(nt[i].nt_waiter.wt_error, -ESTALE);
}

struct worker;

struct numbered {
	struct pw_waiter nb_waiter;
	struct worker *nb_worker;
	unsigned nb_number;
};

/* A thread with a loop of its own, that submits and drains. */
struct worker {
	pthread_t wk_thread;
	struct pw_loop *wk_loop;
	struct pw_device *wk_device;
	struct numbered wk_jobs[JOBS];
	atomic_uint wk_ran;
	unsigned wk_delivered;
	unsigned wk_wrong; /* thread, loop or order */
};

static void
check_delivery(struct pw_waiter *w)
{
	struct numbered *nb = (struct numbered *)w;
	struct worker *wk = nb->nb_worker;

	if (!pthread_equal(pthread_self(), wk->wk_thread) ||
	    w->wt_loop != wk->wk_loop || nb->nb_number != wk->wk_delivered)
		wk->wk_wrong++;
	wk->wk_delivered++;
}

static int
submit_numbered(struct worker *wk, unsigned number)
{
	struct numbered *nb = &wk->wk_jobs[number];
	struct count_job *cj = calloc(1, sizeof(*cj));

	if (cj == NULL)
		return -ENOMEM;
	*nb = (struct numbered){{.wt_done = check_delivery}, wk, number};
	cj->cj_job.job_run = count_run;
	cj->cj_ran = &wk->wk_ran;
	return pool_submit(
	    wk->wk_device, &cj->cj_job, true, wk->wk_loop, &nb->nb_waiter);
}

/* Asserting is for the main thread: cmocka leaves by longjmp. */
static void *
work(void *arg)
{
	struct worker *wk = arg;
	struct pollfd pfd = {.fd = pw_loop_fd(wk->wk_loop), .events = POLLIN};

	wk->wk_thread = pthread_self();
	for (unsigned i = 0; i < JOBS; i++) {
		if (submit_numbered(wk, i) != 0)
			return NULL;
		if (i % 7 == 0)
			pw_loop_drain(wk->wk_loop);
	}
	while (pw_loop_pending(wk->wk_loop) > 0 && poll(&pfd, 1, PATIENCE) == 1)
		pw_loop_drain(wk->wk_loop);
	return NULL;
}

/* One thread runs all jobs, so what it finishes is in order for either loop. */
TEST(deliveries_reach_their_loop_on_its_thread_and_in_order, setup_narrow)
{
	static struct worker workers[2];
	struct pw_loop_conf conf = {0};
	pthread_t threads[2];

	for (size_t i = 0; i < 2; i++) {
		workers[i].wk_device =
		    pool_device(fx->fx_pool, DEVICE_A, POOL_FILES);
		assert_int_equal(
		    pw_loop_create(fx->fx_pool, &conf, &workers[i].wk_loop), 0);
	}
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	for (size_t i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(workers[i].wk_delivered, JOBS);
		assert_int_equal(workers[i].wk_wrong, 0);
		assert_int_equal(atomic_load(&workers[i].wk_ran), JOBS);
		pw_loop_destroy(&workers[i].wk_loop);
		assert_null(workers[i].wk_loop);
	}
}

TEST(waits_whose_callbacks_take_long_are_delivered_one_by_one)
{
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	struct noting nt[3];

	for (unsigned i = 0; i < COUNT(nt); i++) {
		nt[i] = (struct noting){.nt_waiter.wt_done = note_late};
		pw_wait_begin(fx->fx_loop, &nt[i].nt_waiter);
		pw_wait_end(&nt[i].nt_waiter, 0);
	}
	for (unsigned n = 1; n <= COUNT(nt); n++) {
		assert_int_equal(poll(&pfd, 1, 0), 1);
		pw_loop_drain(fx->fx_loop);
		for (unsigned i = 0; i < COUNT(nt); i++)
			assert_int_equal(nt[i].nt_times, i < n);
	}
	assert_int_equal(poll(&pfd, 1, 0), 0);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
}

/* More devices than there is room for: they share, and their jobs still run. */
TEST(any_number_of_devices_is_served, setup_narrow)
{
	static struct noting nt[200];
	struct pw_device *dv;
	atomic_uint ran = 0;

	for (size_t i = 0; i < COUNT(nt); i++) {
		dv = pool_device(fx->fx_pool, (dev_t)(1000 + i), POOL_FILES);
		assert_non_null(dv);
		assert_int_equal(
		    submit(dv, fx->fx_loop, &ran, true, &nt[i]), 0);
		settle(fx->fx_loop);
	}
	assert_int_equal(atomic_load(&ran), COUNT(nt));
}

static int
slow_run(struct job *job)
{
	usleep(50000);
	return count_run(job);
}

TEST(destroy_waits_for_jobs_that_run)
{
	struct pw_pool_conf conf = {0, 0};
	struct noting nt = {.nt_waiter.wt_done = note};
	struct pw_pool *pool;
	atomic_uint ran = 0;
	struct job *job = count_job(&ran, 0);

	assert_int_equal(pw_pool_create(&conf, &pool), 0);
	job->job_run = slow_run;
	assert_int_equal(pool_submit(pool_device(pool, DEVICE_A, POOL_FILES),
			     job, false, fx->fx_loop, &nt.nt_waiter),
	    0);
	assert_int_equal(pw_pool_destroy(&pool, PATIENCE * 1000), 0);
	assert_null(pool);
	assert_int_equal(atomic_load(&ran), 1);
	settle(fx->fx_loop);
	assert_int_equal(nt.nt_times, 1);
}

/*
 * Two threads of two are busy and a third, for lookups, is idle: the third ends first, and the two must
 * still run what is queued.
 */
TEST(destroy_runs_what_is_queued)
{
	struct pw_pool_conf conf = {2, 8};
	struct pw_pool *pool;
	struct pw_device *dv;
	atomic_uint ran = 0;
	struct job *job;
	struct noting nt = {.nt_waiter.wt_done = note};

	assert_int_equal(pw_pool_create(&conf, &pool), 0);
	dv = pool_device(pool, DEVICE_A, POOL_FILES);
	for (unsigned i = 0; i < 2; i++) {
		job = count_job(&ran, 0);
		job->job_run = slow_run;
		assert_int_equal(
		    pool_submit(dv, job, ADMIT_NEW, NULL, NULL), 0);
	}
	job = count_job(&ran, 0);
	job->job_kind = JOB_AGAIN;
	assert_int_equal(
	    pool_submit(dv, job, ADMIT_NEW, fx->fx_loop, &nt.nt_waiter), 0);
	settle(fx->fx_loop);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(
		    pool_submit(dv, count_job(&ran, 0), ADMIT_NEW, NULL, NULL),
		    0);
	assert_int_equal(pw_pool_destroy(&pool, PATIENCE * 1000), 0);
	assert_int_equal(atomic_load(&ran), 6);
}

/* Returns the number of the device's threads. */
static unsigned
threads_of(struct pw_device *dv)
{
	unsigned n;

	pthread_mutex_lock(&dv->dv_lock);
	n = dv->dv_threads;
	pthread_mutex_unlock(&dv->dv_lock);
	return n;
}

TEST(idle_threads_are_dismissed_and_later_jobs_run)
{
	struct noting nt = {.nt_waiter.wt_done = note};
	struct pw_device *dv = pool_device(fx->fx_pool, DEVICE_A, POOL_FILES);
	atomic_uint ran = 0;

	for (unsigned round = 1; round < 4; round++) {
		assert_int_equal(pool_submit(dv, count_job(&ran, 0), ADMIT_NEW,
				     fx->fx_loop, &nt.nt_waiter),
		    0);
		settle(fx->fx_loop);
		assert_int_equal(atomic_load(&ran), round);
		assert_true(threads_of(dv) > 0);
		while (threads_of(dv) > 0) {
			pool_dismiss(fx->fx_pool);
			sched_yield();
		}
	}
}

static void
submit_slow(struct pw_device *dv, atomic_uint *ran, struct noting *nt)
{
	struct job *job = count_job(ran, 0);

	*nt = (struct noting){
	    .nt_waiter = {.wt_done = note, .wt_client = 1U << 20}};
	job->job_run = slow_run;
	job->job_kind = JOB_NEW;
	assert_int_equal(
	    pool_submit(dv, job, ADMIT_NEW, fx->fx_loop, &nt->nt_waiter), 0);
}

/*
 * Queues jobs of a client, some of which are in the crowd, on a disk that is known as slow.  Another process
 * has as many, so that the crowd pauses after each of its jobs.
 */
static struct pw_pool *
crowd_beside_a_process(atomic_uint *ran)
{
	static struct shares_common co;
	static struct noting nt[CROWDED];
	struct pw_device *dv;
	struct pw_pool *pool;

	for (unsigned i = 0; i < SHARES_DEVICES; i++)
		co.co_seen[1][i] = (struct shares_seen){UINT64_MAX, UINT64_MAX};
	assert_int_equal(pw_pool_create(NULL, &pool), 0);
	pw_pool_share(pool, &co, 0);
	dv = pool_device(pool, DEVICE_A, POOL_FILES);
	submit_slow(dv, ran, &nt[0]);
	settle(fx->fx_loop);
	for (unsigned i = 1; i < CROWDED; i++)
		submit_slow(dv, ran, &nt[i]);
	return pool;
}

TEST(a_crowd_that_paused_goes_on_although_no_job_ends)
{
	atomic_uint ran = 0;
	struct pw_pool *pool = crowd_beside_a_process(&ran);

	settle(fx->fx_loop);
	assert_int_equal(atomic_load(&ran), CROWDED);
	assert_int_equal(pw_pool_destroy(&pool, PATIENCE * 1000), 0);
}

TEST(destroy_runs_what_is_queued_in_a_crowd_that_pauses)
{
	atomic_uint ran = 0;
	struct pw_pool *pool = crowd_beside_a_process(&ran);

	assert_int_equal(pw_pool_destroy(&pool, PATIENCE * 1000), 0);
	assert_int_equal(atomic_load(&ran), CROWDED);
	settle(fx->fx_loop);
}

TEST(a_pool_that_was_never_used_can_be_destroyed, NULL)
{
	struct pw_pool_conf conf = {0, 0};
	struct pw_pool *pool;

	assert_int_equal(pw_pool_create(&conf, &pool), 0);
	assert_int_equal(pw_pool_destroy(&pool, 0), 0);
	assert_int_equal(pw_pool_destroy(&pool, 0), 0);
}

/* Its own process: what the thread uses is left behind.  0 if as promised. */
static int
destroy_with_a_hung_job(void)
{
	struct pw_pool_conf pool_conf = {1, 1};
	struct pw_loop_conf loop_conf = {0};
	struct pw_pool *pool;
	struct pw_loop *lp;
	struct latch la;

	if (pw_pool_create(&pool_conf, &pool) != 0 ||
	    pw_loop_create(pool, &loop_conf, &lp) != 0)
		return 1;
	latch_shut(&la, pool_device(pool, DEVICE_A, POOL_FILES), lp);
	if (pw_pool_destroy(&pool, 10000) != -EBUSY)
		return 2;
	return pool == NULL ? 0 : 3;
}

TEST(destroy_leaves_a_thread_that_hangs_behind, NULL)
{
	int status;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(PATIENCE / 1000);
		_exit(destroy_with_a_hung_job());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}
