/*
 * async: asynchronous reads and advice, by io_uring on Linux and aio(4) on FreeBSD.  Each
 * loop creates its own ring with its first operation.  Completions wake the loop by its
 * descriptor, and pw_loop_drain delivers them.  Loop's thread.
 *
 * Linux hosts without io_uring use disk threads, not POSIX AIO.  glibc implements POSIX AIO by
 * a pool of threads as well, and its thread that reports completions has every signal
 * unblocked, so a SIGHUP that the program waits for with sigwait(3) would terminate the
 * process.
 *
 * The kernel's worker threads execute every operation (IOSQE_ASYNC, io_uring_enter(2)), since
 * a buffered read on the loop's thread may wait for the block map, even with RWF_NOWAIT
 * (residency.c).  All devices share these threads, so a disk that hangs may occupy all of them.
 */
#ifndef LIB_DISK_ASYNC_H
#define LIB_DISK_ASYNC_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/pagewise.h"

struct async;

/*
 * An operation, in memory of the caller that must stay valid until wt_done of the waiter is called.  From
 * then on ao_result, the number of bytes read, is valid.
 */
struct async_op {
	struct pw_waiter *ao_waiter;
	size_t ao_result;
	int ao_sent;	  /* bytes sent by async_read_send, or -errno */
	unsigned ao_left; /* number of completions in flight */
	int ao_error;
};

/* Checks whether io_uring works.  Returns 0, or -errno and sets *why to a constant string. */
int async_probe(const char **why);

/*
 * Starts to read up to `len` bytes at `off`; a result of 0 bytes is no error.  `buf` and `fd` must stay
 * valid until wt_done is called.  Fails with -ENOSYS if there is no ring, and with -EAGAIN or -ENOMEM if
 * the kernel accepts no more operations now; then a disk thread can read instead.
 */
int async_read(struct pw_loop *, struct async_op *, struct pw_waiter *, int fd,
    void *buf, size_t len, off_t off);

/* Bytes of a file that are read into ar_buf, and sent on ar_sock. */
struct async_relay {
	int ar_fd;
	off_t ar_off;
	void *ar_buf;
	size_t ar_len;
	int ar_sock;
};

/*
 * Starts to read the bytes as async_read does.  After the read the kernel sends them, as os_send does if
 * `more` is true, without the loop.  When wt_done is called, ao_sent is the number of bytes sent, which may
 * be less than ar_len, or -errno: -EAGAIN if the socket was full, or -ECANCELED if fewer than ar_len bytes
 * were read.  Fails as async_read does, and with -ENOSYS on FreeBSD.
 */
int async_read_send(struct pw_loop *, struct async_op *, struct pw_waiter *,
    const struct async_relay *);

/*
 * Starts to read a range into the page cache: submits an advice for each `step` bytes, then reads the
 * last byte of each step.  A range has at most ASYNC_STEPS steps.  The waiter's error is -ESTALE if the
 * file ends before the range does.  Fails as async_read does.
 */
#define ASYNC_STEPS 64

int async_fetch(struct pw_loop *, struct async_op *, struct pw_waiter *, int fd,
    off_t off, size_t len, size_t step);

/* Delivers completed operations. */
void async_drain(struct pw_loop *);

/* Submits entries that the kernel did not accept before. */
void async_flush(struct pw_loop *);

/* Destroys the ring, if there is one.  No operation may be pending, which pw_loop_destroy checks first. */
void async_destroy(struct async **);

#endif
