/*
 * What sockets hold of a control group's memory (server/worker/unacked.c): over sockets of the
 * system, whose other end reads or does not.
 */
#include "test.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/pagewise.h"
#include "server/worker/unacked.h"

#define SHARE	      ((uint64_t)8000)
#define SOCKS	      8
#define ROUND	      10000 /* microseconds */
#define ROUND_QUERIES 64

struct world {
	struct unacked un;
	struct unacked_item items[SOCKS];
	int ours[SOCKS], theirs[SOCKS];
};

static struct world all;
static uint64_t now_us;
static unsigned queries;

uint64_t __wrap_clock_now(void);

/* Time passes as a test says. */
uint64_t
__wrap_clock_now(void)
{
	return now_us;
}

uint64_t __real_pw_unacked(int);
uint64_t __wrap_pw_unacked(int);

/* On FreeBSD the bytes of such a socket are in the queue of its peer. */
uint64_t
__wrap_pw_unacked(int sock)
{
	int i, n;

	queries++;
	if (__real_pw_unacked(sock) > 0)
		return __real_pw_unacked(sock);
	for (i = 0; all.ours[i] != sock; i++)
		continue;
	assert_int_equal(ioctl(all.theirs[i], FIONREAD, &n), 0);
	return (uint64_t)n;
}

int
setup(void **state)
{
	int fds[2];

	memset(&all, 0, sizeof(all));
	unacked_init(&all.un, SHARE);
	for (int i = 0; i < SOCKS; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		all.ours[i] = fds[0];
		all.theirs[i] = fds[1];
	}
	*state = &all;
	return 0;
}

int
teardown(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < SOCKS; i++) {
		close(w->ours[i]);
		close(w->theirs[i]);
	}
	return 0;
}

static bool
give(struct world *w, int i, size_t bytes)
{
	char data[4096] = "";

	assert_int_equal(send(w->ours[i], data, bytes, 0), bytes);
	return unacked_gave(&w->un, &w->items[i], w->ours[i], bytes);
}

static void
take(struct world *w, int i, size_t bytes)
{
	char data[4096];

	assert_int_equal(recv(w->theirs[i], data, bytes, MSG_WAITALL), bytes);
}

/* A socket of AF_UNIX holds more than its bytes: what its memory costs. */
TEST(clients_that_do_not_read_are_given_less_then_little)
{
	struct world *w = *state;
	bool began = false;
	int i;

	assert_int_equal(w->un.un_level, TCP_ALL);
	assert_false(give(w, 0, 100));
	assert_int_equal(w->un.un_level, TCP_ALL);
	for (i = 1; i < SOCKS && w->un.un_level == TCP_ALL; i++)
		assert_false(give(w, i, 1500));
	assert_int_equal(w->un.un_level, TCP_LESS);
	for (; i < SOCKS && !began; i++)
		began = give(w, i, 3000);
	assert_true(began);
	assert_int_equal(w->un.un_level, TCP_LITTLE);
	assert_false(give(w, 0, 100));
}

/* Otherwise a server of thousands of slow clients would make several calls for each write. */
TEST(sockets_are_queried_by_time_and_not_by_write)
{
	struct world *w = *state;
	unsigned asks;

	for (int i = 0; i < SOCKS && w->un.un_level == TCP_ALL; i++)
		give(w, i, 1500);
	assert_int_equal(w->un.un_level, TCP_LESS);
	now_us += ROUND;
	give(w, 0, 1);
	asks = queries;
	for (int n = 0; n < 100; n++)
		give(w, n % SOCKS, 1);
	assert_int_equal(queries, asks);
	now_us += ROUND;
	give(w, 0, 1);
	assert_int_equal(queries, asks + ROUND_QUERIES);
}

TEST(clients_that_read_are_given_all)
{
	struct world *w = *state;

	for (int n = 0; n < 100; n++) {
		assert_false(give(w, n % SOCKS, 1000));
		take(w, n % SOCKS, 1000);
		assert_int_equal(w->un.un_level, TCP_ALL);
	}
	assert_true(w->un.un_bytes <= SHARE / 2);
}

TEST(what_idle_clients_have_read_is_seen_by_a_tick)
{
	struct world *w = *state;

	for (int i = 0; i < SOCKS; i++)
		give(w, i, 3000);
	assert_int_equal(w->un.un_level, TCP_LITTLE);
	unacked_tick(&w->un);
	assert_int_equal(w->un.un_level, TCP_LITTLE);
	for (int i = 0; i < SOCKS; i++)
		take(w, i, 3000);
	unacked_tick(&w->un);
	assert_int_equal(w->un.un_level, TCP_ALL);
}

TEST(what_a_closed_socket_held_counts_no_more)
{
	struct world *w = *state;

	for (int i = 0; i < SOCKS; i++)
		give(w, i, 3000);
	for (int i = 0; i < SOCKS; i++)
		unacked_forget(&w->un, &w->items[i]);
	assert_int_equal(w->un.un_bytes, 0);
	assert_true(TAILQ_EMPTY(&w->un.un_items));
	unacked_tick(&w->un);
	assert_int_equal(w->un.un_level, TCP_ALL);
}
