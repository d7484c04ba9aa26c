/*
 * async_freebsd: implements async.h by aio(4) and kqueue(2).  The kernel refuses reads of
 * file systems that are not local, unless sysctl vfs.aio.enable_unsafe is set; disk threads make
 * these reads.  async_fetch is not supported, as there is no asynchronous advice.
 */
#include <sys/types.h>
#include <sys/event.h>

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/disk/async.h"
#include "lib/disk/completion.h"

#define EVENTS 16

struct async {
	int as_queue; /* kqueue of completions, which the loop's own kqueue watches */
};

struct read {
	struct aiocb rd_cb;
	struct async_op *rd_op;
};

int
async_probe(const char **why)
{
	*why = "only Linux has io_uring; use native";
	return -ENOSYS;
}

static int
async_queue_open(int wake)
{
	struct kevent ev;
	int queue = kqueue(), error;

	if (queue == -1)
		return -errno;
	EV_SET(&ev, (uintptr_t)queue, EVFILT_READ, EV_ADD, 0, 0, NULL);
	if (fcntl(queue, F_SETFD, FD_CLOEXEC) == 0 &&
	    kevent(wake, &ev, 1, NULL, 0, NULL) == 0)
		return queue;
	error = -errno;
	close(queue);
	return error;
}

int
async_read_send(struct pw_loop *lp, struct async_op *op, struct pw_waiter *w,
    const struct async_relay *ar)
{
	(void)lp, (void)op, (void)w, (void)ar;
	return -ENOSYS;
}

static int
async_of_event(struct pw_loop *lp, struct async **out)
{
	struct async *as = lp->lp_async;
	int queue;

	if (as == NULL) {
		queue = async_queue_open(lp->lp_wake[0]);
		if (queue < 0)
			return queue;
		as = calloc(1, sizeof(*as));
		if (as == NULL) {
			close(queue);
			return -ENOMEM;
		}
		as->as_queue = queue;
		lp->lp_async = as;
	}
	*out = as;
	return 0;
}

int
async_read(struct pw_loop *lp, struct async_op *op, struct pw_waiter *w, int fd,
    void *buf, size_t len, off_t off)
{
	struct async *as;
	struct read *rd;
	int error = async_of_event(lp, &as);

	if (error != 0)
		return error;
	rd = calloc(1, sizeof(*rd));
	if (rd == NULL)
		return -ENOMEM;
	rd->rd_op = op;
	rd->rd_cb.aio_fildes = fd;
	rd->rd_cb.aio_buf = buf;
	rd->rd_cb.aio_nbytes = len;
	rd->rd_cb.aio_offset = off;
	rd->rd_cb.aio_sigevent.sigev_notify = SIGEV_KEVENT;
	rd->rd_cb.aio_sigevent.sigev_notify_kqueue = as->as_queue;
	rd->rd_cb.aio_sigevent.sigev_value.sival_ptr = rd;
	if (aio_read(&rd->rd_cb) == -1) {
		error = -errno;
		free(rd);
		return error;
	}
	*op = (struct async_op){.ao_waiter = w, .ao_left = 1};
	w->wt_loop = lp;
	lp->lp_pending++;
	return 0;
}

int
async_fetch(struct pw_loop *lp, struct async_op *op, struct pw_waiter *w,
    int fd, off_t off, size_t len, size_t step)
{
	(void)lp, (void)op, (void)w, (void)fd, (void)off, (void)len, (void)step;
	return -ENOSYS;
}

static void
async_complete(struct pw_loop *lp, struct read *rd)
{
	struct async_op *op = rd->rd_op;
	struct pw_waiter *w = op->ao_waiter;
	int error = aio_error(&rd->rd_cb);
	ssize_t n = aio_return(&rd->rd_cb);

	free(rd);
	op->ao_left = 0;
	op->ao_result = n > 0 ? (size_t)n : 0;
	lp->lp_pending--;
	w->wt_error = -error;
	w->wt_done(w);
}

void
async_drain(struct pw_loop *lp)
{
	static const struct timespec now = {0};
	struct async *as = lp->lp_async;
	struct kevent evs[EVENTS];
	int i, n = as == NULL ? 0 : EVENTS;

	while (n == EVENTS) {
		n = kevent(as->as_queue, NULL, 0, evs, EVENTS, &now);
		for (i = 0; i < n; i++)
			async_complete(lp, evs[i].udata);
	}
}

void
async_flush(struct pw_loop *lp)
{
	(void)lp; /* aio_read(2) submits at once */
}

void
async_destroy(struct async **asp)
{
	struct async *as = *asp;

	*asp = NULL;
	if (as == NULL)
		return;
	close(as->as_queue);
	free(as);
}
