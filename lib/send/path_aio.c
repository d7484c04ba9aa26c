/*
 * path_aio: the paths aio and ring.  aio reads asynchronously into its own buffer, then calls
 * send(2) from that buffer (thesis 2.3.2).  The loop never waits, and all data is copied twice,
 * resident or not.  If there is no io_uring, a disk thread reads.
 *
 * ring does the same, but the ring also sends (thesis 2.3.5): a read and a send are linked, and the
 * loop only accounts for both.  The loop itself sends what needs it between the read and the send:
 * the first bytes, which follow a head, the last bytes, before which it calls file_check, and what a
 * full socket did not accept.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/disk/async.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"

struct aio {
	struct async_op ai_op;
	bool ai_ring; /* true if the ring reads, false if a disk thread does */
	bool ai_linked; /* true if the ring also sends */
	off_t ai_off;	/* offset of ai_data in the file */
	size_t ai_len;
	size_t ai_room;
	char ai_data[];
};

/* Accounts for the bytes that the ring sent.  A full socket is no error: the loop sends the rest. */
static void
aio_account(struct pw_send *s, struct aio *ai)
{
	int sent = ai->ai_op.ao_sent;

	__atomic_store_n(&send_priv(s)->ss_lent, LENT_NOT, __ATOMIC_SEQ_CST);
	ai->ai_linked = false;
	if (sent > 0)
		account_sent(s, 0, (uint64_t)sent);
	else if (sent < 0 && sent != -ECANCELED)
		account_sent(s, sent, 0);
}

static void
aio_read_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);
	struct aio *ai = send_priv(s)->ss_own;

	if (w->wt_error == 0 && ai->ai_ring && ai->ai_op.ao_result > 0)
		w->wt_error = send_check(s, ai->ai_op.ao_result);
	send_pending_end(s, w->wt_error);
	ai->ai_len = w->wt_error == 0 ? ai->ai_op.ao_result : 0;
	if (ai->ai_len > 0)
		send_fetch_end(s, ai->ai_off, ai->ai_off + (off_t)ai->ai_len);
	else if (s->snd_error == 0)
		s->snd_error = -ESTALE;
	if (ai->ai_linked)
		aio_account(s, ai);
	s->snd_done(s);
}

static size_t
aio_chunk(const struct pw_send *s)
{
	const struct aio *ai = send_priv(s)->ss_own;
	size_t len = (size_t)(send_chunk_end(s) - s->snd_off);
	size_t room = ai == NULL ? SEND_CHUNK : ai->ai_room;

	return len < room ? len : room;
}

/* Allocates a buffer of SEND_CHUNK bytes, or of the loop's bound if that is smaller. */
static struct aio *
aio_create(const struct pw_send *s)
{
	size_t bound = send_bound(s);
	size_t room = bound > 0 && bound < SEND_CHUNK ? bound : SEND_CHUNK;
	struct aio *ai = calloc(1, sizeof(*ai) + room);

	if (ai != NULL)
		ai->ai_room = room;
	return ai;
}

static int
aio_pool_run(struct pw_send *s)
{
	struct aio *ai = send_priv(s)->ss_own;
	ssize_t n;

	do
		n = pread(
		    s->snd_file->fil_fd, ai->ai_data, aio_chunk(s), s->snd_off);
	while (n == -1 && errno == EINTR);
	ai->ai_op.ao_result = n > 0 ? (size_t)n : 0;
	if (n < 0)
		return -errno;
	return n > 0 ? send_check(s, (size_t)n) : 0;
}

/* Returns true if the ring may send the chunk to the socket: no head is left, and bytes follow the chunk. */
static bool
aio_may_link(const struct pw_send *s)
{
	return s->snd_path == &send_ring && !sink_copies(s) &&
	       s->snd_mem_len == 0 && (off_t)aio_chunk(s) < s->snd_len;
}

static int
aio_link(struct pw_send *s, struct aio *ai)
{
	const struct async_relay relay = {s->snd_file->fil_fd, s->snd_off,
	    ai->ai_data, aio_chunk(s), s->snd_sock};
	int error;

	__atomic_store_n(
	    &send_priv(s)->ss_lent, LENT_CLAIMED, __ATOMIC_SEQ_CST);
	error = async_read_send(
	    s->snd_loop, &ai->ai_op, &send_priv(s)->ss_waiter, &relay);
	ai->ai_linked = error == 0;
	if (error != 0)
		__atomic_store_n(
		    &send_priv(s)->ss_lent, LENT_NOT, __ATOMIC_SEQ_CST);
	return error;
}

/*
 * Starts a read by the ring.  Fails with -ENOSYS if another path than aio and ring reads for a pw_sink,
 * since a sandbox may forbid io_uring to a program that does not use these paths; and for the last chunk of
 * a remote file, since file_check may wait for the file server.
 */
static int
aio_read_by_ring(struct pw_send *s, struct aio *ai)
{
	if (!s->snd_path->path_reads || (file_priv(s->snd_file)->fp_remote &&
					    (off_t)aio_chunk(s) == s->snd_len))
		return -ENOSYS;
	if (aio_may_link(s))
		return aio_link(s, ai);
	return async_read(s->snd_loop, &ai->ai_op, &send_priv(s)->ss_waiter,
	    s->snd_file->fil_fd, ai->ai_data, aio_chunk(s), s->snd_off);
}

static enum pw_send_status
aio_read_more(struct pw_send *s)
{
	struct aio *ai = send_priv(s)->ss_own;
	int error;

	if (ai == NULL)
		ai = send_priv(s)->ss_own = aio_create(s);
	if (ai == NULL)
		return send_pending_fail(s, -ENOMEM);
	send_fetch_begin(s, s->snd_off + (off_t)aio_chunk(s));
	ai->ai_off = s->snd_off;
	ai->ai_len = 0;
	send_pending_begin(s, aio_read_done);
	error = aio_read_by_ring(s, ai);
	ai->ai_ring = error == 0;
	if (error != 0)
		error = send_on_pool(s, JOB_LONG, aio_pool_run);
	return error == 0 ? PW_SEND_PENDING : send_pending_fail(s, error);
}

static int
aio_call(struct pw_send *s, size_t len, size_t *sent)
{
	const struct aio *ai = send_priv(s)->ss_own;

	return sink_send(s, ai->ai_data + (s->snd_off - ai->ai_off), len,
	    s->snd_more || (off_t)len < s->snd_len, sent);
}

static off_t
aio_end(const struct pw_send *s)
{
	const struct aio *ai = send_priv(s)->ss_own;

	return ai == NULL ? s->snd_off : ai->ai_off + (off_t)ai->ai_len;
}

bool
aio_is_empty(const struct pw_send *s)
{
	return aio_end(s) <= s->snd_off;
}

static enum pw_send_status
path_aio_step(struct pw_send *s)
{
	if (s->snd_len == 0 || !aio_is_empty(s))
		return send_window(s, aio_end(s), aio_call);
	if (send_hole_may_begin(s, s->snd_off))
		return send_hole_find(s);
	return send_hole_is_next(s) ? send_hole(s) : aio_read_more(s);
}

static void
path_aio_finish(struct pw_send *s)
{
	free(send_priv(s)->ss_own);
	send_priv(s)->ss_own = NULL;
}

const struct pw_send_path send_aio = {
    .path_name = "aio",
    .path_step = path_aio_step,
    .path_finish = path_aio_finish,
    .path_reads = true,
};

const struct pw_send_path send_ring = {
    .path_name = "ring",
    .path_probe = async_probe,
    .path_step = path_aio_step,
    .path_finish = path_aio_finish,
    .path_reads = true,
};
