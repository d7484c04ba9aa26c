/*
 * piped: see piped.h.
 */
#include <errno.h>

#include "lib/disk/pool.h"
#include "lib/send/path.h"
#include "lib/send/piped.h"

void
piped_close(struct pw_loop *lp, int none)
{
	if (lp->lp_pipe[0] >= 0)
		os_pipe_close(lp->lp_pipe);
	lp->lp_pipe[0] = none;
}

/* Returns true if the kernel, a filter of system calls or the socket does not support a call. */
static bool
piped_is_refused(int error)
{
	return error == -ENOSYS || error == -EPERM || error == -EACCES ||
	       error == -EINVAL || error == -EOPNOTSUPP;
}

/* Makes the loop's pipe, unless there is one.  Returns false if there is none. */
static bool
piped_open(struct pw_loop *lp)
{
	int fds[2], error;

	if (lp->lp_pipe[0] != -1)
		return lp->lp_pipe[0] >= 0;
	error = os_pipe(fds, PIPED_SIZE);
	if (error == 0) {
		lp->lp_pipe[0] = fds[0];
		lp->lp_pipe[1] = fds[1];
	} else if (piped_is_refused(error))
		lp->lp_pipe[0] = PIPED_REFUSED;
	return error == 0;
}

/* Moves the bytes that are left in the pipe to /dev/null.  Closes the pipe if that fails. */
static void
piped_drain(struct pw_loop *lp, size_t held)
{
	size_t moved;

	if (held == 0)
		return;
	(void)os_splice_out(
	    pool_sink(lp->lp_pool), lp->lp_pipe[0], held, false, &moved);
	if (moved < held)
		piped_close(lp, -1);
}

/*
 * Fills the pipe.  Returns 0 or -errno.  Returns -ENOBUFS in place of -EAGAIN and -ENOMEM, since
 * -EAGAIN means a full socket to the caller.
 */
static int
piped_fill(struct pw_send *s, const char *data, size_t len, size_t *held)
{
	int pipe = s->snd_loop->lp_pipe[1];
	int error = data != NULL ? os_vmsplice(pipe, data, len, held)
				 : os_splice_in(pipe, s->snd_file->fil_fd,
				       s->snd_off, len, held);

	return error == -EAGAIN || error == -ENOMEM ? -ENOBUFS : error;
}

/*
 * Returns true if the caller must use another call.  Closes the pipe if the kernel would refuse the
 * call again.
 */
static bool
piped_was_refused(struct pw_loop *lp, int error)
{
	if (piped_is_refused(error))
		piped_close(lp, PIPED_REFUSED);
	return error == -ENOBUFS || piped_is_refused(error);
}

int
piped_send(struct pw_send *s, const char *data, size_t len, size_t *sent)
{
	struct pw_loop *lp = s->snd_loop;
	size_t held = 0;
	int error;

	*sent = 0;
	if (!piped_open(lp))
		return -ENOSYS;
	error = piped_fill(s, data, len, &held);
	/* The file, not the pipe, may be refused. */
	if (data == NULL && (error != 0 || held == 0))
		return error == -ENOBUFS ? -ENOSYS : error;
	if (error == 0)
		error = os_splice_out(s->snd_sock, lp->lp_pipe[0], held,
		    s->snd_more || (off_t)held < s->snd_len, sent);
	piped_drain(lp, held - *sent);
	return piped_was_refused(lp, error) ? -ENOSYS : error;
}

long
piped_read(struct pw_send *s, char *to, size_t len)
{
	const char *data = pins_mapping(send_priv(s)->ss_pin, s->snd_off);
	struct pw_loop *lp = s->snd_loop;
	size_t held = 0;
	long n;

	if (!piped_open(lp))
		return 0;
	n = piped_fill(s, data, len, &held);
	if (n == 0)
		n = os_pipe_read(lp->lp_pipe[0], to, held);
	piped_drain(lp, n > 0 ? held - (size_t)n : held);
	if (n == -EAGAIN || (n < 0 && piped_was_refused(lp, (int)n)))
		return 0;
	return n == -EFAULT ? -ESTALE : n;
}
