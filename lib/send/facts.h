/*
 * facts: the state of a transmission, for messages in the log, such as why it is pending.  Loop's
 * thread.
 */
#ifndef LIB_SEND_FACTS_H
#define LIB_SEND_FACTS_H

#include <stdbool.h>
#include <sys/types.h>

struct pw_send;

/* Cause of PW_SEND_PENDING. */
enum send_wait {
	SEND_WAIT_THREAD, /* a disk thread reads or sends */
	SEND_WAIT_FETCH,  /* the window is being fetched */
	SEND_WAIT_AHEAD,  /* a prefetch of the window has not arrived */
	SEND_WAIT_BUDGET, /* other transmissions hold the budget */
};

struct send_facts {
	enum send_wait sf_wait; /* cause of the last wait */
	off_t sf_from;		/* start of the last window fetched */
	off_t sf_end;		/* end of the last window fetched, or -1 */
	bool sf_pinned;		/* true if the window is locked or copied */
	bool sf_direct;		/* true if the window was read direct */
};

struct send_facts send_facts(const struct pw_send *);

#endif
