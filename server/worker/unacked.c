/*
 * unacked: see unacked.h.
 */
#include "lib/pagewise.h"
#include "lib/util/clock.h"

#include "server/worker/unacked.h"

#define ASKS	   4 /* sockets queried after a write that would raise the level */
#define ROUND_ASKS 64	 /* most sockets queried every ROUND_US, in 20 us */
#define ROUND_US   10000 /* microseconds */
#define TICK_ASKS  512	 /* sockets queried per tick, in 0.1 ms */

void
unacked_init(struct unacked *un, uint64_t share)
{
	*un = (struct unacked){.un_share = share};
	TAILQ_INIT(&un->un_items);
}

static void
unacked_set(struct unacked *un, struct unacked_item *it, uint64_t bytes)
{
	if (it->ui_bytes > 0)
		TAILQ_REMOVE(&un->un_items, it, ui_link);
	un->un_bytes = un->un_bytes - it->ui_bytes + bytes;
	it->ui_bytes = bytes;
	if (bytes > 0)
		TAILQ_INSERT_TAIL(&un->un_items, it, ui_link);
}

/* Returns the level.  A level ends at three quarters of the bytes at which it began. */
static enum tcp_level
unacked_level_of(const struct unacked *un)
{
	uint64_t most = un->un_share;
	enum tcp_level was = un->un_level;

	if (un->un_bytes > (was == TCP_LITTLE ? most / 4 * 3 : most))
		return TCP_LITTLE;
	return un->un_bytes > (was != TCP_ALL ? most / 8 * 3 : most / 2)
		   ? TCP_LESS
		   : TCP_ALL;
}

static bool
unacked_look(struct unacked *un, unsigned asks)
{
	enum tcp_level was = un->un_level;
	struct unacked_item *it;

	while (un->un_bytes > un->un_share / 8 * 3 && asks-- > 0) {
		it = TAILQ_FIRST(&un->un_items);
		unacked_set(un, it, pw_unacked(it->ui_sock));
	}
	un->un_level = unacked_level_of(un);
	return un->un_level == TCP_LITTLE && was != TCP_LITTLE;
}

/* Returns how many sockets to query after a write: on average ASKS at most, and by time at most. */
static unsigned
unacked_asks(struct unacked *un)
{
	unsigned writes = ++un->un_writes;
	uint64_t now;

	if (un->un_bytes <= un->un_share / 8 * 3)
		return 0;
	now = clock_now();
	if (now >= un->un_round + ROUND_US) {
		un->un_round = now;
		un->un_writes = 0;
		return writes < ROUND_ASKS / ASKS ? ASKS * writes : ROUND_ASKS;
	}
	return unacked_level_of(un) > un->un_level ? ASKS : 0;
}

bool
unacked_gave(
    struct unacked *un, struct unacked_item *it, int sock, uint64_t bytes)
{
	it->ui_sock = sock;
	if (bytes > 0) {
		un->un_bytes += bytes;
		if (it->ui_bytes == 0)
			TAILQ_INSERT_TAIL(&un->un_items, it, ui_link);
		it->ui_bytes += bytes;
	}
	return unacked_look(un, unacked_asks(un));
}

void
unacked_forget(struct unacked *un, struct unacked_item *it)
{
	unacked_set(un, it, 0);
}

void
unacked_tick(struct unacked *un)
{
	(void)unacked_look(un, TICK_ASKS);
}
