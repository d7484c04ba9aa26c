/*
 * mapped: sends bytes of a pinned mapping (pins.h) without a copy: vmsplice(2) moves references to its
 * pages into a pipe, and splice(2) moves them into the socket.  For pages of a folio that takes half of the
 * CPU time of sendfile(2), which looks up each page in the page cache.  It does not see read-ahead marks
 * either (os_fetch_folio).
 *
 * What the socket does not accept is taken out of the pipe again, so a loop needs one pipe.  Without a pipe
 * (pipes.h), or where a filter of system calls refuses one of these calls, sendfile(2) sends the bytes, or
 * send(2) those of a marked folio.
 */
#include <errno.h>

#include "lib/disk/pool.h"
#include "lib/send/path.h"
#include "lib/send/pipes.h"
#include "lib/send/sink.h"

bool
send_can_map(const struct pw_send *s)
{
	return s->snd_path->path_copies && !sink_copies(s);
}

bool
send_can_read_marked(const struct pw_send *s)
{
	return s->snd_path->path_copies && !sink_takes_ranges(s);
}

/* Takes the loop's pipe.  Returns NULL if there is none, and does not try again if it was refused. */
static struct pipe *
mapped_pipe(struct pw_loop *lp)
{
	struct pipe *pp;
	int error;

	if (lp->lp_mapped == NULL)
		return NULL;
	error = pipes_get(lp->lp_mapped, &pp);
	if (error == -EPERM || error == -ENOSYS)
		pipes_destroy(&lp->lp_mapped);
	return error == 0 ? pp : NULL;
}

/* Returns true if the kernel, a filter of system calls or the socket does not support a call. */
static bool
mapped_is_refused(int error)
{
	return error == -ENOSYS || error == -EPERM || error == -EACCES ||
	       error == -EINVAL || error == -EOPNOTSUPP;
}

/* Returns the pipe to the loop, and what is left in it to its owners. */
static void
mapped_pipe_put(struct pw_loop *lp, struct pipe *pp)
{
	size_t moved;

	if (pp->pp_held > 0) {
		(void)os_splice_out(pool_sink(lp->lp_pool), pp->pp_fds[0],
		    pp->pp_held, false, &moved);
		pp->pp_held -= moved;
	}
	pipes_put(lp->lp_mapped, pp);
}

/* Sends len bytes at data by way of the pipe. */
static int
mapped_splice(struct pw_send *s, struct pipe *pp, const char *data, size_t len,
    size_t *sent)
{
	int error = os_vmsplice(pp->pp_fds[1], data, len, &pp->pp_held);

	if (error != 0)
		return error;
	error = os_splice_out(s->snd_sock, pp->pp_fds[0], pp->pp_held,
	    s->snd_more || (off_t)pp->pp_held < s->snd_len, sent);
	pp->pp_held -= *sent;
	return error;
}

long
mapped_read(struct pw_send *s, char *to, size_t len)
{
	const char *data = pins_mapping(send_priv(s)->ss_pin, s->snd_off);
	struct pipe *pp = mapped_pipe(s->snd_loop);
	long n;

	if (pp == NULL)
		return 0;
	n = os_vmsplice(pp->pp_fds[1], data, len, &pp->pp_held);
	if (n == 0)
		n = os_pipe_read(pp->pp_fds[0], to, pp->pp_held);
	if (n > 0)
		pp->pp_held -= (size_t)n;
	mapped_pipe_put(s->snd_loop, pp);
	if (n < 0 && mapped_is_refused((int)n)) {
		pipes_destroy(&s->snd_loop->lp_mapped);
		n = 0;
	}
	return n == -EFAULT ? -ESTALE : n;
}

/* Sends by a call that needs no pipe. */
static int
mapped_without_pipe(
    struct pw_send *s, const char *data, size_t len, size_t *sent)
{
	if (!pins_marked(send_priv(s)->ss_pin))
		return send_by_sendfile(s, len, sent);
	return sink_send(
	    s, data, len, s->snd_more || (off_t)len < s->snd_len, sent);
}

/* Sends len bytes at data, which are not the last ones.  Destroys the pipe if a call is refused. */
static int
mapped_send_pages(struct pw_send *s, const char *data, size_t len, size_t *sent)
{
	struct pw_loop *lp = s->snd_loop;
	struct pipe *pp = mapped_pipe(lp);
	int error;

	if (pp == NULL)
		return mapped_without_pipe(s, data, len, sent);
	error = mapped_splice(s, pp, data, len, sent);
	mapped_pipe_put(lp, pp);
	if (!mapped_is_refused(error))
		return error;
	pipes_destroy(&lp->lp_mapped);
	return mapped_without_pipe(s, data, len, sent);
}

int
send_from_mapping(struct pw_send *s, size_t len, size_t *sent)
{
	const char *data = pins_mapping(send_priv(s)->ss_pin, s->snd_off);
	size_t pages = send_before_tail(s, len);
	int error;

	*sent = 0;
	if (s->snd_mem_len > 0)
		return sink_send(s, s->snd_mem, s->snd_mem_len, true, sent);
	/* send(2) from the mapping would read the end after file_check; send_copied reads it before. */
	error = pages > 0 ? mapped_send_pages(s, data, pages, sent)
			  : send_copied(s, len, sent);
	return error == -EFAULT ? -ESTALE : error;
}
