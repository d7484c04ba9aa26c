/*
 * async: reads and advice that the kernel carries out on its own: io_uring.  A
 * ring for each loop, made with the first operation; completions wake the loop by
 * its descriptor and are delivered by pw_loop_drain.  Loop's thread.
 *
 * There is no POSIX AIO for hosts without a ring: glibc's is a pool of threads as
 * well, and the thread that reports completions has every signal unblocked: a
 * SIGHUP that the program waits for with sigwait(3) would end the process.
 *
 * Nothing is tried inline: a buffered read that finds its page missing may wait
 * for the block map first, nowait or not (residency.c).  So every operation goes
 * to the kernel's own workers (IOSQE_ASYNC, io_uring_enter(2)).  They are one
 * pool for all devices: a disk that hangs may take all of them.
 */
#ifndef LIB_DISK_ASYNC_H
#define LIB_DISK_ASYNC_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/pagewise.h"

struct async;

/*
 * The caller's memory, until its waiter is called.  ao_result is valid then: bytes
 * read.
 */
struct async_op {
	struct pw_waiter *ao_waiter;
	size_t ao_result;
	unsigned ao_left; /* completions that are missing */
	int ao_error;
};

/* Returns 0, or -errno and sets *why to a constant string. */
int async_probe(const char **why);

/*
 * Reads up to len bytes at off; 0 bytes are no error.  buf and descriptor stay until
 * the waiter is called.  An error means that there is no ring (-ENOSYS), or that
 * the kernel takes no more now (-EAGAIN, -ENOMEM): the pool can do it.
 */
int async_read(struct pw_loop *, struct async_op *, struct pw_waiter *, int fd,
    void *buf, size_t len, off_t off);

/*
 * Brings a range into memory: advice for every step bytes, then one byte read at the
 * end of each.  At most ASYNC_STEPS of them.  The waiter's error is -ESTALE if the
 * file ends before.  Errors as above.
 */
#define ASYNC_STEPS 64

int async_fetch(struct pw_loop *, struct async_op *, struct pw_waiter *, int fd,
    off_t off, size_t len, size_t step);

/* Delivers completed operations. */
void async_drain(struct pw_loop *);

/* Submits entries that the kernel did not accept before. */
void async_flush(struct pw_loop *);

void async_destroy(struct async **);

#endif
