/*
 * command: sends commands to a worker's loop, from any thread, without a lock and without
 * waiting.  If a command is sent again before the loop reads it, the loop executes it once.  No
 * command is lost: commands are bits in a word, and the loop is woken only when the word was empty.
 */
#ifndef SERVER_UTIL_COMMAND_H
#define SERVER_UTIL_COMMAND_H

#include <stdatomic.h>

#include "lib/os/os.h"

/* Commands that are read together are executed in this order. */
enum command {
	COMMAND_ACCEPT = 1, /* accept connections from now on, not before */
	COMMAND_PLACE = 2,  /* a slot is free: connection_limits.h */
	COMMAND_WISH = 4, /* another worker needs a slot: connection_limits.h */
	COMMAND_DRAIN = 8, /* accept no more; stop after the last connection */
	COMMAND_STOP = 16, /* close all connections */
	/* stop at once; after that the worker must not be destroyed */
	COMMAND_ABANDON = 32,
};

#define COMMAND_LAST COMMAND_ABANDON

struct commands {
	atomic_uint od_given;
	/* descriptors of os_wake_create; od_wake[0] is readable while commands are pending */
	int od_wake[2];
};

/* Creates the descriptors.  Returns 0 or -errno. */
static inline int
commands_create(struct commands *od)
{
	atomic_init(&od->od_given, 0);
	return os_wake_create(od->od_wake);
}

/* Closes the descriptors.  Call when no more commands follow. */
static inline void
commands_destroy(struct commands *od)
{
	os_wake_close(od->od_wake);
}

/* Sends a command.  Any thread may call it. */
static inline void
commands_give(struct commands *od, enum command order)
{
	if (atomic_fetch_or(&od->od_given, (unsigned)order) == 0)
		(void)os_wake_signal(od->od_wake[1]);
}

/*
 * Wakes the loop again if commands are pending, since a signal may have failed.  Call several times a
 * second on the loop's thread.
 */
static inline void
commands_tick(struct commands *od)
{
	if (atomic_load(&od->od_given) != 0)
		(void)os_wake_signal(od->od_wake[1]);
}

/* Returns all commands given since the last call, or 0.  Call on the loop's thread. */
static inline unsigned
commands_take(struct commands *od)
{
	/*
	 * Clears the descriptor first: a thread that sends a command after the exchange finds the
	 * word empty, and signals the descriptor again.
	 */
	os_wake_clear(od->od_wake[0]);
	return atomic_exchange(&od->od_given, 0);
}

#endif
