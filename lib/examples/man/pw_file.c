/*
 * Opens a file by its path, or makes it from a descriptor, and calls a function with the result.
 */
#include <errno.h>
#include <pagewise.h>
#include <string.h>

struct request {
	struct pw_open open; /* first member, since its waiter is cast */
	void (*opened)(struct request *, struct pw_file *, int error);
};

static void
on_open(struct pw_waiter *w)
{
	struct request *r = (struct request *)w;

	/* The function calls pw_file_unref when it needs the file no more. */
	r->opened(r, r->open.op_file, w->wt_error);
}

static void
finish(struct request *r, int error)
{
	if (error != -EINPROGRESS)
		r->opened(r, r->open.op_file, error);
}

void
open_path(struct pw_loop *loop, struct pw_root *root, const char *path,
    struct request *r)
{
	memset(&r->open, 0, sizeof(r->open));
	r->open.op_waiter.wt_done = on_open;
	finish(r, pw_file_open(loop, root, path, pw_now(), &r->open));
}

void
open_fd(struct pw_loop *loop, int fd, const struct stat *st, struct request *r)
{
	memset(&r->open, 0, sizeof(r->open));
	r->open.op_waiter.wt_done = on_open;
	finish(r, pw_file_from_fd(loop, fd, st, &r->open));
}

/* Cancels the open of a client that leaves.  Returns false if the open had ended. */
bool
open_cancel(struct request *r)
{
	return pw_open_cancel(&r->open) == 0;
}
