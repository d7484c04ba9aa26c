/*
 * account: applies the result of a send call to a transmission.  One pure function counts the bytes
 * of every send path.
 *
 * A kernel may report bytes and an error at once (FreeBSD's sendfile: -1, EAGAIN, sbytes
 * > 0); these bytes are sent then and must not be sent again.
 */
#ifndef LIB_SEND_ACCOUNT_H
#define LIB_SEND_ACCOUNT_H

#include "lib/pagewise.h"

enum account_next {
	ACCOUNT_DONE,	/* nothing is left */
	ACCOUNT_CALL,	/* call again now */
	ACCOUNT_FULL,	/* the socket is full */
	ACCOUNT_BUSY,	/* a page is being read (FreeBSD) or was evicted */
	ACCOUNT_FAILED, /* snd_error is set */
};

/*
 * Applies the outcome of one call that offered memory, file bytes, or both, in this order.  `error` is 0
 * or -errno; `sent` is the number of bytes that the kernel accepted.  Advances snd_mem, snd_off,
 * snd_sent.  If `error` and `sent` are 0, the file shrank, and snd_error is set to -ESTALE.  If `sent` is
 * more than was left, a fault of the kernel or the caller, snd_error is set to -EOVERFLOW, and nothing is
 * advanced.
 */
enum account_next account_sent(struct pw_send *, int error, uint64_t sent);

#endif
