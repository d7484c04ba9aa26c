/*
 * os_linux_async: async.h by liburing; POSIX AIO for hosts without io_uring
 * (containers forbid it, sysctl kernel.io_uring_disabled).
 */
#include <aio.h>
#include <errno.h>
#include <liburing.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "async.h"
#include "loop.h"

#define RING_ENTRIES 256
#define RING_WORKERS 16 /* as many as a device's threads in the pool */
#define FETCH_STEPS  64
#define BYTE	     1 /* in an operation's address: its read of one byte */

struct async {
	struct io_uring as_ring;
	bool as_ringed; /* false: POSIX AIO */
	char as_sink;	/* where the byte of a fetch goes */
};

static int
ring_open(struct io_uring *ring)
{
	struct io_uring_params params = {.flags = IORING_SETUP_CLAMP};

	return io_uring_queue_init_params(RING_ENTRIES, ring, &params);
}

static int
ring_probe(void)
{
	struct io_uring ring;
	int error = ring_open(&ring);

	if (error == 0)
		io_uring_queue_exit(&ring);
	return error;
}

int
async_probe_read(const char **why)
{
	*why = NULL;
	return 0;
}

int
async_probe_fetch(const char **why)
{
	int error = ring_probe();

	*why = NULL;
	if (error == -ENOSYS)
		*why = "this kernel has no io_uring";
	else if (error == -EPERM || error == -EACCES)
		*why = "io_uring is forbidden here: sysctl "
		       "kernel.io_uring_disabled, or a container's seccomp";
	else if (error == -ENOMEM)
		*why = "no memory for a ring: see ulimit -l";
	else if (error != 0)
		*why = "io_uring_setup failed";
	return error;
}

/* The quota is a courtesy: old kernels have none. */
static void
ring_prepare(struct io_uring *ring, int wake)
{
	unsigned workers[2] = {RING_WORKERS, 0};

	io_uring_register_iowq_max_workers(ring, workers);
	io_uring_register_eventfd(ring, wake);
}

static struct async *
async_of(struct pw_loop *lp)
{
	struct async *as = lp->lp_async;

	if (as != NULL)
		return as;
	as = calloc(1, sizeof(*as));
	if (as == NULL)
		return NULL;
	as->as_ringed = ring_open(&as->as_ring) == 0;
	if (as->as_ringed)
		ring_prepare(&as->as_ring, lp->lp_wake[1]);
	lp->lp_async = as;
	return as;
}

static void
op_begin(struct pw_loop *lp, struct async_op *op, struct pw_waiter *w,
    unsigned completions)
{
	*op = (struct async_op){.ao_waiter = w, .ao_left = completions};
	w->wt_loop = lp;
	lp->lp_pending++;
}

/*
 * What the kernel, short of memory, does not take now goes with the next
 * submission, drain or tick.
 */
static int
ring_room(struct io_uring *ring, unsigned entries)
{
	if (io_uring_sq_space_left(ring) < entries)
		io_uring_submit(ring);
	return io_uring_sq_space_left(ring) < entries ? -EAGAIN : 0;
}

/* ---- POSIX AIO */

struct posix_read {
	struct aiocb pr_cb;
	struct async_op *pr_op;
};

/* On a thread of the C library's. */
static void
posix_done(union sigval value)
{
	struct posix_read *pr = value.sival_ptr;
	struct async_op *op = pr->pr_op;
	int error = aio_error(&pr->pr_cb);
	ssize_t n = aio_return(&pr->pr_cb);

	op->ao_result = n > 0 ? (size_t)n : 0;
	free(pr);
	loop_deliver(op->ao_waiter, -error);
}

static int
posix_read(struct pw_loop *lp, struct async_op *op, struct pw_waiter *w, int fd,
    void *buf, size_t len, off_t off)
{
	struct posix_read *pr = calloc(1, sizeof(*pr));

	if (pr == NULL)
		return -ENOMEM;
	op_begin(lp, op, w, 1);
	pr->pr_op = op;
	pr->pr_cb.aio_fildes = fd;
	pr->pr_cb.aio_buf = buf;
	pr->pr_cb.aio_nbytes = len;
	pr->pr_cb.aio_offset = off;
	pr->pr_cb.aio_sigevent.sigev_notify = SIGEV_THREAD;
	pr->pr_cb.aio_sigevent.sigev_notify_function = posix_done;
	pr->pr_cb.aio_sigevent.sigev_value.sival_ptr = pr;
	if (aio_read(&pr->pr_cb) == 0)
		return 0;
	lp->lp_pending--;
	free(pr);
	return -errno;
}

/* ---- io_uring */

int
async_read(struct pw_loop *lp, struct async_op *op, struct pw_waiter *w, int fd,
    void *buf, size_t len, off_t off)
{
	struct async *as = async_of(lp);
	struct io_uring_sqe *sqe;
	int error;

	if (as == NULL)
		return -ENOMEM;
	if (!as->as_ringed)
		return posix_read(lp, op, w, fd, buf, len, off);
	error = ring_room(&as->as_ring, 1);
	if (error != 0)
		return error;
	sqe = io_uring_get_sqe(&as->as_ring);
	io_uring_prep_read(sqe, fd, buf, (unsigned)len, (uint64_t)off);
	io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
	io_uring_sqe_set_data(sqe, op);
	op_begin(lp, op, w, 1);
	io_uring_submit(&as->as_ring);
	return 0;
}

static void
prep_advice(
    struct io_uring *ring, struct async_op *op, int fd, off_t off, size_t len)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_fadvise(
	    sqe, fd, (uint64_t)off, (unsigned)len, POSIX_FADV_WILLNEED);
	io_uring_sqe_set_flags(sqe, IOSQE_ASYNC | IOSQE_IO_LINK);
	io_uring_sqe_set_data(sqe, op);
}

static void
prep_byte(struct async *as, struct async_op *op, int fd, off_t off, bool last)
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
	struct async *as = async_of(lp);
	off_t end = off + (off_t)len, at;
	unsigned steps;

	if (as == NULL)
		return -ENOMEM;
	if (!as->as_ringed)
		return -ENOSYS;
	if (len / step >= FETCH_STEPS)
		step = (len + FETCH_STEPS - 1) / FETCH_STEPS;
	steps = (unsigned)((len + step - 1) / step);
	if (ring_room(&as->as_ring, 2 * steps) != 0)
		return -EAGAIN;
	for (at = off; at < end; at += (off_t)step)
		prep_advice(&as->as_ring, op, fd, at,
		    end - at < (off_t)step ? (size_t)(end - at) : step);
	for (at = off; end - at > (off_t)step; at += (off_t)step)
		prep_byte(as, op, fd, at + (off_t)step - 1, false);
	prep_byte(as, op, fd, end - 1, true);
	op_begin(lp, op, w, 2 * steps);
	io_uring_submit(&as->as_ring);
	return 0;
}

/* A link that fails cancels those after it: what it said itself counts. */
static void
complete(struct pw_loop *lp, struct async_op *op, int result, bool byte)
{
	struct pw_waiter *w = op->ao_waiter;

	if (byte && result == 0)
		result = -ESTALE;
	if (result >= 0)
		op->ao_result = (size_t)result;
	else if (op->ao_error == 0 || op->ao_error == -ECANCELED)
		op->ao_error = result;
	if (--op->ao_left > 0)
		return;
	lp->lp_pending--;
	w->wt_error = op->ao_error;
	w->wt_done(w);
}

void
async_flush(struct pw_loop *lp)
{
	struct async *as = lp->lp_async;

	if (as != NULL && as->as_ringed && io_uring_sq_ready(&as->as_ring) > 0)
		io_uring_submit(&as->as_ring);
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
		complete(lp,
		    (struct async_op *)(uintptr_t)(data & ~(uint64_t)BYTE),
		    result, (data & BYTE) != 0);
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
