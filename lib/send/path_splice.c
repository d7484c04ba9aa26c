/*
 * path_splice: moves data from the file to a pipe and from there to the socket by
 * splice(2), without a copy.  Checks residency and prefetches as nodiskio does.
 * sendfile(2) does the same with an internal pipe; the pipes here are larger (pipes.h).
 *
 * Bytes that the socket did not accept stay in the pipe, and the transmission holds the
 * pipe until it is empty.  If no pipe is available, sendfile(2) is called instead.
 */
#include <errno.h>

#include "lib/disk/completion.h"
#include "lib/disk/file_private.h"
#include "lib/os/os.h"
#include "lib/send/path.h"
#include "lib/send/pipes.h"

static bool
splice_empty(const struct pw_send *s)
{
	const struct pipe *pp = send_priv(s)->ss_own;

	return pp == NULL || pp->pp_held == 0;
}

/* Fills the pipe if it is empty, and sends from it. */
static int
path_splice_call(struct pw_send *s, size_t len, size_t *sent)
{
	struct pipe *pp = send_priv(s)->ss_own;
	size_t pages = send_before_tail(s, len);
	int error = 0;

	if ((pages == 0 || s->snd_mem_len > 0) && splice_empty(s))
		return send_copied(s, len, sent);
	if (pp == NULL && pipes_get(s->snd_loop->lp_pipes, &pp) != 0)
		return send_by_sendfile(s, len, sent);
	send_priv(s)->ss_own = pp;
	*sent = 0;
	if (pp->pp_held == 0)
		error = os_splice_in(pp->pp_fds[1], s->snd_file->fil_fd,
		    s->snd_off, pages, &pp->pp_held);
	if (send_is_refused(s, error))
		return send_copied(s, len, sent);
	if (error != 0 || pp->pp_held == 0)
		return error;
	error = os_splice_out(s->snd_sock, pp->pp_fds[0], pp->pp_held,
	    s->snd_more || (off_t)pp->pp_held < s->snd_len, sent);
	pp->pp_held -= *sent;
	return error;
}

/* Returns the pipe to the store, so that an idle connection holds none. */
static void
path_splice_finish(struct pw_send *s)
{
	if (send_priv(s)->ss_own != NULL)
		pipes_put(s->snd_loop->lp_pipes, send_priv(s)->ss_own);
	send_priv(s)->ss_own = NULL;
}

/* Sends the bytes in the pipe without a residency check, since their pages are in memory. */
static enum pw_send_status
path_splice_step(struct pw_send *s)
{
	enum pw_send_status status;
	const struct pipe *pp = send_priv(s)->ss_own;

	if (splice_empty(s)) {
		if (s->snd_file != NULL)
			file_priv(s->snd_file)->fp_each = true;
		status =
		    send_prefetched(s, send_fetch_by_pool, path_splice_call);
	} else
		status = send_window(
		    s, s->snd_off + (off_t)pp->pp_held, path_splice_call);
	if (status == PW_SEND_PENDING && splice_empty(s))
		path_splice_finish(s);
	return status;
}

static int
path_splice_probe(const char **why)
{
	struct pipes *pps = pipes_create(PIPES_SPLICE);
	struct pipe *pp;
	int error = pps == NULL ? -ENOMEM : pipes_get(pps, &pp);

	if (error == 0)
		pipes_put(pps, pp);
	pipes_destroy(&pps);
	*why = error == 0 ? NULL
	       : error == -EPERM
		   ? "cannot make a pipe large enough: raise sysctl "
		     "fs.pipe-user-pages-soft or fs.pipe-max-size"
		   : "cannot create a pipe: raise ulimit -n";
	return error;
}

const struct pw_send_path send_splice = {
    .path_name = "splice",
    .path_probe = path_splice_probe,
    .path_step = path_splice_step,
    .path_finish = path_splice_finish,
    .path_prefetches = true,
};
