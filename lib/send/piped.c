/*
 * piped: see piped.h.
 */
#include <errno.h>

#include "lib/disk/pool.h"
#include "lib/send/path.h"
#include "lib/send/piped.h"
#include "lib/send/pipes.h"

/*
 * Takes the loop's pipe.  Returns NULL if there is none.  If the kernel refuses a pipe, later calls
 * do not try again.
 */
static struct pipe *
piped_pipe(struct pw_loop *lp)
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
piped_is_refused(int error)
{
	return error == -ENOSYS || error == -EPERM || error == -EACCES ||
	       error == -EINVAL || error == -EOPNOTSUPP;
}

/* Moves the bytes that are left in the pipe to /dev/null, and returns the pipe to the loop. */
static void
piped_pipe_put(struct pw_loop *lp, struct pipe *pp)
{
	size_t moved;

	if (pp->pp_held > 0) {
		(void)os_splice_out(pool_sink(lp->lp_pool), pp->pp_fds[0],
		    pp->pp_held, false, &moved);
		pp->pp_held -= moved;
	}
	pipes_put(lp->lp_mapped, pp);
}

/*
 * Fills the pipe.  Returns 0 or -errno.  Returns -ENOBUFS in place of -EAGAIN and -ENOMEM, since
 * -EAGAIN means a full socket to the caller.
 */
static int
piped_fill(struct pipe *pp, const char *data, size_t len)
{
	int error = os_vmsplice(pp->pp_fds[1], data, len, &pp->pp_held);

	return error == -EAGAIN || error == -ENOMEM ? -ENOBUFS : error;
}

/* Sends len bytes at data by way of the pipe. */
static int
piped_splice(struct pw_send *s, struct pipe *pp, const char *data, size_t len,
    size_t *sent)
{
	int error = piped_fill(pp, data, len);

	if (error != 0)
		return error;
	error = os_splice_out(s->snd_sock, pp->pp_fds[0], pp->pp_held,
	    s->snd_more || (off_t)pp->pp_held < s->snd_len, sent);
	pp->pp_held -= *sent;
	return error;
}

/*
 * Returns true if the caller must use another call.  Destroys the pipes if the kernel would refuse
 * the call again.
 */
static bool
piped_was_refused(struct pw_loop *lp, int error)
{
	if (piped_is_refused(error))
		pipes_destroy(&lp->lp_mapped);
	return error == -ENOBUFS || piped_is_refused(error);
}

int
piped_send(struct pw_send *s, const char *data, size_t len, size_t *sent)
{
	struct pw_loop *lp = s->snd_loop;
	struct pipe *pp = piped_pipe(lp);
	int error;

	*sent = 0;
	if (pp == NULL)
		return -ENOSYS;
	error = piped_splice(s, pp, data, len, sent);
	piped_pipe_put(lp, pp);
	return piped_was_refused(lp, error) ? -ENOSYS : error;
}

long
piped_read(struct pw_send *s, char *to, size_t len)
{
	const char *data = pins_mapping(send_priv(s)->ss_pin, s->snd_off);
	struct pipe *pp = piped_pipe(s->snd_loop);
	long n;

	if (pp == NULL)
		return 0;
	n = piped_fill(pp, data, len);
	if (n == 0)
		n = os_pipe_read(pp->pp_fds[0], to, pp->pp_held);
	if (n > 0)
		pp->pp_held -= (size_t)n;
	piped_pipe_put(s->snd_loop, pp);
	if (n == -EAGAIN || (n < 0 && piped_was_refused(s->snd_loop, (int)n)))
		return 0;
	return n == -EFAULT ? -ESTALE : n;
}
