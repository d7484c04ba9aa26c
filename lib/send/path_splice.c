/*
 * path_splice: moves data from the file to the loop's pipe and from there to the socket by splice(2), without a
 * copy (piped.h).  Checks residency and prefetches as nodiskio does.  sendfile(2) does the same with an
 * internal pipe; the loop's is larger.
 */
#include <errno.h>

#include "lib/os/os.h"
#include "lib/send/path.h"
#include "lib/send/piped.h"

static int
path_splice_call(struct pw_send *s, size_t len, size_t *sent)
{
	size_t pages = send_before_tail(s, len);
	int error;

	if (pages == 0 || s->snd_mem_len > 0)
		return send_copied(s, len, sent);
	error = piped_send(s, NULL, pages, sent);
	if (error == -ENOSYS)
		return send_by_sendfile(s, len, sent);
	return send_is_refused(s, error) ? send_copied(s, len, sent) : error;
}

static enum pw_send_status
path_splice_step(struct pw_send *s)
{
	if (s->snd_file != NULL)
		file_priv(s->snd_file)->fp_each = true;
	return send_prefetched(s, send_fetch_by_pool, path_splice_call);
}

static int
path_splice_probe(const char **why)
{
	int fds[2], error = os_pipe(fds, PIPED_SIZE);

	if (error == 0)
		os_pipe_close(fds);
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
    .path_prefetches = true,
};
