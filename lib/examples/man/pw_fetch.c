/*
 * Passes a range of a file to an encoder, for example of frames.  A struct of zeroes is ready for the first call.
 */
#include <errno.h>
#include <pagewise.h>

struct response {
	struct pw_fetch fetch; /* first member, since its waiter is cast */
	struct pw_file *file;
	off_t off, end; /* bytes that are left */
	/* Sends some of the memory.  Returns the number of bytes, or -errno. */
	long (*encode)(struct response *, const char *, size_t len);
	void (*ended)(struct response *, int error);
};

static void on_fetched(struct pw_waiter *);

static int
fetch(struct response *r)
{
	r->fetch = (struct pw_fetch){
	    .ft_waiter.wt_done = on_fetched,
	    .ft_file = r->file,
	    .ft_off = r->off,
	    .ft_len = (size_t)(r->end - r->off),
	    .ft_want = PW_FETCH_MEMORY,
	};
	return pw_fetch(&r->fetch);
}

/* Sends the next bytes.  Call first, and when the socket is writable. */
void
response_run(struct response *r)
{
	int error = 0;
	long n;

	while (error == 0 && r->off < r->end) {
		if (r->fetch.ft_mem == NULL)
			error = fetch(r);
		if (error == -EINPROGRESS)
			return; /* on_fetched calls this function again */
		if (error != 0)
			break;
		n = r->encode(r, r->fetch.ft_mem, r->fetch.ft_have);
		pw_unpin(&r->fetch);
		if (n == -EAGAIN)
			return;
		if (n < 0)
			error = (int)n;
		else
			r->off += n;
	}
	r->ended(r, error);
}

static void
on_fetched(struct pw_waiter *w)
{
	struct response *r = (struct response *)w;

	if (w->wt_error != 0)
		r->ended(r, w->wt_error);
	else
		response_run(r);
}
