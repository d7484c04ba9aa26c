/*
 * command: orders to a worker's loop, from any thread, without a lock and without
 * waiting.  An order that is given again before it is taken is one order, and none can
 * be lost: they are bits in a word, and the loop is woken only when the word was empty.
 */
#ifndef SERVER_UTIL_COMMAND_H
#define SERVER_UTIL_COMMAND_H

#include <stdatomic.h>

#include "lib/os/os.h"

/* Those that are taken together are obeyed in this order. */
enum command {
	COMMAND_ACCEPT = 1, /* connections: from now on, and not before */
	COMMAND_PLACE = 2, /* these two are clients': see connection_limits.h */
	COMMAND_WISH = 4,
	COMMAND_DRAIN = 8, /* no more connections; ends with the last one */
	COMMAND_STOP = 16, /* the connections are closed */
	COMMAND_ABANDON =
	    32, /* ends at once; the worker must not be destroyed then */
};

#define COMMAND_LAST COMMAND_ABANDON

struct commands {
	atomic_uint od_given;
	int od_wake
	    [2]; /* see os_wake_create: [0] is readable when there are some */
};

/* 0 or -errno. */
static inline int
commands_create(struct commands *od)
{
	atomic_init(&od->od_given, 0);
	return os_wake_create(od->od_wake);
}

/* No more orders follow. */
static inline void
commands_destroy(struct commands *od)
{
	os_wake_close(od->od_wake);
}

/* Any thread. */
static inline void
commands_give(struct commands *od, enum command order)
{
	if (atomic_fetch_or(&od->od_given, (unsigned)order) == 0)
		os_wake_signal(od->od_wake[1]);
}

/* All that were given since the last time, 0 or more: the loop's thread. */
static inline unsigned
commands_take(struct commands *od)
{
	/*
	 * In this order: a thread that finds the word empty after this wakes the loop
	 * again.
	 */
	os_wake_clear(od->od_wake[0]);
	return atomic_exchange(&od->od_given, 0);
}

#endif
