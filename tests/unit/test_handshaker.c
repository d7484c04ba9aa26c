/* Tests of server/tls/handshaker.h: which ends of steps wake the loop. */
#include "lib_fixture.h"
#include "server/tls/handshaker.h"

struct step {
	struct handshake st_handshake; /* the first */
	bool st_continues;
	sem_t st_begun, st_may_end;
	int st_done;
};

static struct pw_pool *pool;
static struct pw_loop *loop;
static struct handshaker *threads;

static bool
run(struct handshake *hk)
{
	struct step *st = (struct step *)(void *)hk;

	sem_post(&st->st_begun);
	while (sem_wait(&st->st_may_end) != 0)
		continue;
	return st->st_continues;
}

static void
done(struct pw_waiter *w)
{
	((struct step *)(void *)w)->st_done++;
}

static struct step
begun(bool continues)
{
	return (struct step){
	    .st_handshake = {.hk_waiter.wt_done = done, .hk_run = run},
	    .st_continues = continues};
}

/* The step runs in a thread. */
static void
begin(struct step *st)
{
	sem_init(&st->st_begun, 0, 0);
	sem_init(&st->st_may_end, 0, 0);
	assert_true(handshaker_submit(threads, loop, &st->st_handshake, 1));
	while (sem_wait(&st->st_begun) != 0)
		continue;
}

static bool
wakes(int patience)
{
	struct pollfd pfd = {.fd = pw_loop_fd(loop), .events = POLLIN};

	return poll(&pfd, 1, patience) == 1;
}

/* The thread begins another step, so it has ended the one before. */
static void
pass(void)
{
	struct step next = begun(true);

	begin(&next);
	sem_post(&next.st_may_end);
	while (next.st_done == 0) {
		assert_true(wakes(PATIENCE));
		pw_loop_drain(loop);
	}
}

TEST(test_step_that_waits_for_the_client_does_not_wake_the_loop, NULL)
{
	struct step st = begun(false), next = begun(true);

	begin(&st);
	sem_post(&st.st_may_end);
	begin(&next);
	assert_false(wakes(0));
	assert_true(handshaker_take_back(&st.st_handshake));
	assert_int_equal(pw_loop_pending(loop), 1);
	assert_false(handshaker_take_back(&st.st_handshake));
	sem_post(&next.st_may_end);
	pass();
	assert_int_equal(st.st_done, 0);
	assert_int_equal(next.st_done, 1);
	assert_int_equal(pw_loop_pending(loop), 0);
}

TEST(test_step_wakes_the_loop_that_asked_for_it, NULL)
{
	struct step st = begun(false);

	begin(&st);
	assert_false(handshaker_take_back(&st.st_handshake));
	sem_post(&st.st_may_end);
	assert_true(wakes(PATIENCE));
	pw_loop_drain(loop);
	assert_int_equal(st.st_done, 1);
	assert_int_equal(pw_loop_pending(loop), 0);
}

TEST(test_step_that_continues_wakes_the_loop, NULL)
{
	struct step st = begun(true);

	begin(&st);
	sem_post(&st.st_may_end);
	assert_true(wakes(PATIENCE));
	assert_false(handshaker_take_back(&st.st_handshake));
	pw_loop_drain(loop);
	assert_int_equal(st.st_done, 1);
	assert_int_equal(pw_loop_pending(loop), 0);
}

int
setup_all(void **state)
{
	(void)state;
	assert_int_equal(pw_pool_create(NULL, &pool), 0);
	assert_int_equal(pw_loop_create(pool, NULL, &loop), 0);
	assert_int_equal(handshaker_create(&threads), 0);
	assert_int_equal(handshaker_start(threads, 1), 0);
	return 0;
}

int
teardown_all(void **state)
{
	(void)state;
	handshaker_destroy(&threads);
	assert_int_equal(pw_loop_destroy(&loop), 0);
	assert_int_equal(pw_pool_destroy(&pool, UINT64_C(1000) * PATIENCE), 0);
	return 0;
}
