/*
 * account: what a send call did to a transmission.  Pure: the one place where
 * bytes are counted, for every send path.
 *
 * A kernel may report bytes and an error at once (FreeBSD's sendfile: -1,
 * EAGAIN, sbytes > 0); the bytes are gone then and must not be sent again.
 */
#ifndef LIB_SEND_ACCOUNT_H
#define LIB_SEND_ACCOUNT_H

#include "lib/pagewise.h"

enum account_next {
	ACCOUNT_DONE,	/* nothing is left */
	ACCOUNT_CALL,	/* call again now */
	ACCOUNT_FULL,	/* the socket is full */
	ACCOUNT_BUSY,	/* pages have I/O in flight (FreeBSD): not now */
	ACCOUNT_FAILED, /* snd_error is set */
};

/*
 * Applies the outcome of one call that offered memory, file bytes, or both, in
 * this order: error is 0 or -errno, sent the bytes the kernel took.  Advances
 * snd_mem, snd_off, snd_sent.  Zero bytes of a file without an error mean that it
 * shrank: -ESTALE.  More bytes than were left would be a kernel's or a caller's
 * fault: -EOVERFLOW, and nothing is advanced.
 */
enum account_next account_sent(struct pw_send *, int error, uint64_t sent);

#endif
