/*
 * async_linux: implements async.h by liburing.  Containers often forbid io_uring,
 * and sysctl kernel.io_uring_disabled can forbid it, too.
 */
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/disk/async.h"
#include "lib/disk/completion.h"
#include "lib/disk/pool.h"
#include "lib/disk/reclaim.h"
#include "lib/os/meter.h"
#include "lib/os/os.h"
#include "lib/util/offset.h"

#define RING_ENTRIES 256 /* entries of a ring; a step of a fetch needs two */
#define RING_WORKERS 16	 /* maximum number of kernel workers of a ring */

/* Bits of an entry's user_data, beside the address of its async_op: it reads one byte, or it sends. */
#define BYTE UINT64_C(1)
#define SEND UINT64_C(2)

struct async {
	struct io_uring as_ring;
	bool as_ringed;
	char as_sink; /* destination of the bytes that a fetch reads */
};

/* Opens a ring and limits its kernel workers.  Ignores the error of old kernels without this limit. */
static int
async_ring_open(struct io_uring *ring, int wake)
{
	struct io_uring_params params = {.flags = IORING_SETUP_CLAMP};
	unsigned workers[2] = {RING_WORKERS, 0};
	int error;

	error = io_uring_queue_init_params(RING_ENTRIES, ring, &params);
	if (error != 0)
		return error;
	io_uring_register_iowq_max_workers(ring, workers);
	error = io_uring_register_eventfd(ring, wake);
	if (error != 0)
		io_uring_queue_exit(ring);
	return error;
}

static int
async_ring_probe(void)
{
	struct io_uring ring;
	int wake[2], error;

	error = os_wake_create(wake);
	if (error < 0)
		return error;
	error = async_ring_open(&ring, wake[1]);
	if (error == 0)
		io_uring_queue_exit(&ring);
	os_wake_close(wake);
	return error;
}

int
async_probe(const char **why)
{
	int error = async_ring_probe();

	*why = NULL;
	if (error == -ENOSYS)
		*why = "this kernel has no io_uring";
	else if (error == -EPERM || error == -EACCES)
		*why = "io_uring is forbidden: check sysctl "
		       "kernel.io_uring_disabled and the container's seccomp "
		       "profile";
	else if (error == -ENOMEM)
		*why = "cannot lock memory for io_uring: raise ulimit -l";
	else if (error != 0)
		*why = "io_uring_setup failed";
	return error;
}

static void
async_submit(struct async *as)
{
	meter_call(METER_IO_URING_ENTER);
	io_uring_submit(&as->as_ring);
}

static struct async *
async_of_entry(struct pw_loop *lp)
{
	struct async *as = lp->lp_async;

	if (as != NULL)
		return as;
	as = calloc(1, sizeof(*as));
	if (as == NULL)
		return NULL;
	as->as_ringed = async_ring_open(&as->as_ring, lp->lp_wake[1]) == 0;
	lp->lp_async = as;
	return as;
}

static void
async_op_begin(struct pw_loop *lp, struct async_op *op, struct pw_waiter *w,
    unsigned completions)
{
	*op = (struct async_op){.ao_waiter = w, .ao_left = completions};
	w->wt_loop = lp;
	lp->lp_pending++;
	reclaim_read_begins(pool_reclaim(lp->lp_pool));
}

/*
 * Sets *out to the loop's ring.  Fails with -EAGAIN if the ring has fewer than `entries` free entries.
 * Entries that the kernel does not accept, as memory is short, are submitted again by the next
 * submission, drain or tick.
 */
static int
async_make_room(struct pw_loop *lp, unsigned entries, struct async **out)
{
	struct async *as = *out = async_of_entry(lp);

	if (as == NULL)
		return -ENOMEM;
	if (!as->as_ringed)
		return -ENOSYS;
	if (io_uring_sq_space_left(&as->as_ring) < entries)
		async_submit(as);
	return io_uring_sq_space_left(&as->as_ring) < entries ? -EAGAIN : 0;
}

/* Prepares a read.  `flags` are those of the entry besides IOSQE_ASYNC. */
static void
async_prep_read(struct async *as, struct async_op *op, int fd, void *buf,
    size_t len, off_t off, unsigned flags)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&as->as_ring);

	io_uring_prep_read(sqe, fd, buf, (unsigned)len, (uint64_t)off);
	io_uring_sqe_set_flags(sqe, IOSQE_ASYNC | flags);
	io_uring_sqe_set_data(sqe, op);
}

int
async_read(struct pw_loop *lp, struct async_op *op, struct pw_waiter *w, int fd,
    void *buf, size_t len, off_t off)
{
	struct async *as;
	int error;

	error = async_make_room(lp, 1, &as);
	if (error != 0)
		return error;
	async_prep_read(as, op, fd, buf, len, off, 0);
	async_op_begin(lp, op, w, 1);
	async_submit(as);
	return 0;
}

int
async_read_send(struct pw_loop *lp, struct async_op *op, struct pw_waiter *w,
    const struct async_relay *ar)
{
	int error;
	struct io_uring_sqe *sqe;
	struct async *as;

	error = async_make_room(lp, 2, &as);
	if (error != 0)
		return error;
	async_prep_read(as, op, ar->ar_fd, ar->ar_buf, ar->ar_len, ar->ar_off,
	    IOSQE_IO_LINK);
	sqe = io_uring_get_sqe(&as->as_ring);
	io_uring_prep_send(sqe, ar->ar_sock, ar->ar_buf, ar->ar_len,
	    MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE);
	io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
	io_uring_sqe_set_data64(sqe, (uintptr_t)op | SEND);
	async_op_begin(lp, op, w, 2);
	async_submit(as);
	/*
	 * If the kernel did not accept both entries, the send is no longer linked to the read, and a later
	 * submission could send before the read has ended.  So the send becomes a no-operation.
	 */
	if (io_uring_sq_ready(&as->as_ring) > 0) {
		memset(sqe, 0, sizeof(*sqe)); /* liburing may keep the flags */
		io_uring_prep_nop(sqe);
		io_uring_sqe_set_data64(sqe, (uintptr_t)op | SEND);
	}
	return 0;
}

static void
async_prep_advice(
    struct io_uring *ring, struct async_op *op, int fd, off_t off, size_t len)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_fadvise(
	    sqe, fd, (uint64_t)off, (unsigned)len, POSIX_FADV_WILLNEED);
	io_uring_sqe_set_flags(sqe, IOSQE_ASYNC | IOSQE_IO_LINK);
	io_uring_sqe_set_data(sqe, op);
}

static void
async_prep_byte(
    struct async *as, struct async_op *op, int fd, off_t off, bool last)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&as->as_ring);

	io_uring_prep_read(sqe, fd, &as->as_sink, 1, (uint64_t)off);
	io_uring_sqe_set_flags(sqe, IOSQE_ASYNC | (last ? 0 : IOSQE_IO_LINK));
	io_uring_sqe_set_data64(sqe, (uintptr_t)op | BYTE);
}

int
async_fetch(struct pw_loop *lp, struct async_op *op, struct pw_waiter *w,
    int fd, off_t off, size_t len, size_t step)
{
	unsigned steps = (unsigned)((len + step - 1) / step);
	off_t end = off + (off_t)len, at;
	struct async *as;
	int error;

	error = async_make_room(lp, 2 * steps, &as);
	if (error != 0)
		return error;
	for (at = off; at < end; at = offset_add(at, step, end))
		async_prep_advice(&as->as_ring, op, fd, at,
		    end - at < (off_t)step ? (size_t)(end - at) : step);
	for (at = off; end - at > (off_t)step; at += (off_t)step)
		async_prep_byte(as, op, fd, at + (off_t)step - 1, false);
	async_prep_byte(as, op, fd, end - 1, true);
	async_op_begin(lp, op, w, 2 * steps);
	async_submit(as);
	return 0;
}

/*
 * Records the result of one request of an io_uring chain, and ends the wait after the last result.  The
 * error of the request that failed replaces -ECANCELED of the requests behind it.
 */
static void
async_complete(
    struct pw_loop *lp, struct async_op *op, int result, uint64_t bits)
{
	struct pw_waiter *w = op->ao_waiter;

	if ((bits & BYTE) && result == 0)
		result = -ESTALE;
	if (bits & SEND)
		op->ao_sent = result;
	else if (result >= 0)
		op->ao_result = (size_t)result;
	else if (op->ao_error == 0 || op->ao_error == -ECANCELED)
		op->ao_error = result;
	if (--op->ao_left > 0)
		return;
	lp->lp_pending--;
	reclaim_read_ends(pool_reclaim(lp->lp_pool));
	w->wt_error = op->ao_error;
	w->wt_done(w);
}

void
async_flush(struct pw_loop *lp)
{
	struct async *as = lp->lp_async;

	if (as != NULL && as->as_ringed && io_uring_sq_ready(&as->as_ring) > 0)
		async_submit(as);
}

void
async_drain(struct pw_loop *lp)
{
	struct async *as = lp->lp_async;
	struct io_uring_cqe *cqe;
	uint64_t data;
	int result;

	if (as == NULL || !as->as_ringed)
		return;
	async_flush(lp);
	while (io_uring_peek_cqe(&as->as_ring, &cqe) == 0) {
		data = io_uring_cqe_get_data64(cqe);
		result = cqe->res;
		io_uring_cqe_seen(&as->as_ring, cqe);
		async_complete(lp,
		    (struct async_op *)(uintptr_t)(data & ~(BYTE | SEND)),
		    result, data & (BYTE | SEND));
	}
}

void
async_destroy(struct async **asp)
{
	struct async *as = *asp;

	if (as == NULL)
		return;
	*asp = NULL;
	if (as->as_ringed)
		io_uring_queue_exit(&as->as_ring);
	free(as);
}
