/*
 * own: see own.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/disk/completion.h"
#include "lib/disk/pool.h"
#include "lib/disk/reclaim.h"
#include "lib/file/file.h"
#include "lib/file/residency.h"
#include "lib/send/own.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"

void
own_arrived(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);
	struct own *ow = send_priv(s)->ss_own;

	send_pending_end(s, w->wt_error);
	if (w->wt_error != 0)
		ow->ow_len = 0;
	if (ow->ow_len > 0)
		send_fetch_end(s, ow->ow_off, ow->ow_off + (off_t)ow->ow_len);
	else if (s->snd_error == 0)
		s->snd_error = -ESTALE;
}

static void
own_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);

	own_arrived(w);
	s->snd_done(s);
}

size_t
own_chunk(const struct pw_send *s)
{
	const struct own *ow = send_priv(s)->ss_own;
	size_t len = (size_t)(send_chunk_end(s) - s->snd_off);
	size_t room = ow == NULL ? SEND_CHUNK : ow->ow_room;

	return len < room ? len : room;
}

/* Allocates memory for SEND_CHUNK bytes, or for the loop's bound if that is smaller. */
static struct own *
own_create(const struct pw_send *s)
{
	size_t bound = send_bound(s);
	size_t room = bound > 0 && bound < SEND_CHUNK ? bound : SEND_CHUNK;
	struct own *ow = malloc(sizeof(*ow) + room);

	if (ow != NULL)
		*ow = (struct own){.ow_room = room};
	return ow;
}

/* Compares the version of a file without a residency check each time, since copies may be sent behind these bytes. */
static int
own_check(const struct pw_send *s, size_t len)
{
	return residency_can_ask(s->snd_file)
		   ? send_check(s, len)
		   : file_check(s->snd_file, s->snd_grows);
}

static int
own_run(struct pw_send *s)
{
	struct reclaim *rc = pool_reclaim(s->snd_loop->lp_pool);
	struct own *ow = send_priv(s)->ss_own;
	long n;

	reclaim_read_begins(rc);
	do
		n = os_read(s->snd_file->fil_fd, s->snd_off, ow->ow_data,
		    own_chunk(s), true);
	while (n == -EINTR);
	reclaim_read_ends(rc);
	ow->ow_len = n > 0 ? (size_t)n : 0;
	return n <= 0 ? (int)n : own_check(s, (size_t)n);
}

int
own_read_by_pool(struct pw_send *s, struct own *ow)
{
	(void)ow;
	send_priv(s)->ss_waiter.wt_done = own_done;
	return send_on_pool(s, JOB_LONG, own_run);
}

static enum pw_send_status
own_read_more(struct pw_send *s, own_read_f read)
{
	struct own *ow = send_priv(s)->ss_own;
	off_t end;
	int error;

	if (ow == NULL)
		ow = send_priv(s)->ss_own = own_create(s);
	if (ow == NULL)
		return send_pending_fail(s, -ENOMEM);
	end = s->snd_off + (off_t)own_chunk(s);
	residency_unused(s->snd_file, s->snd_off, end);
	send_fetch_begin(s, end);
	ow->ow_off = s->snd_off;
	ow->ow_len = 0;
	send_pending_begin(s, NULL);
	error = read(s, ow);
	return error == 0 ? PW_SEND_PENDING : send_pending_fail(s, error);
}

static off_t
own_end(const struct pw_send *s)
{
	const struct own *ow = send_priv(s)->ss_own;

	return ow == NULL ? s->snd_off : ow->ow_off + (off_t)ow->ow_len;
}

bool
own_is_empty(const struct pw_send *s)
{
	return own_end(s) <= s->snd_off;
}

static int
own_call(struct pw_send *s, size_t len, size_t *sent)
{
	const struct own *ow = send_priv(s)->ss_own;

	if (s->snd_mem_len > 0)
		return sink_send(s, s->snd_mem, s->snd_mem_len, true, sent);
	return sink_send(s, ow->ow_data + (s->snd_off - ow->ow_off), len,
	    s->snd_more || (off_t)len < s->snd_len, sent);
}

enum pw_send_status
own_step(struct pw_send *s, own_read_f read)
{
	if (s->snd_len == 0 || !own_is_empty(s))
		return send_window(s, own_end(s), own_call);
	if (send_hole_may_begin(s, s->snd_off))
		return send_hole_find(s);
	return send_hole_is_next(s) ? send_hole(s) : own_read_more(s, read);
}

void
own_free(struct pw_send *s)
{
	free(send_priv(s)->ss_own);
	send_priv(s)->ss_own = NULL;
}

enum pw_send_status
own_serve(struct pw_send *s)
{
	enum pw_send_status status = own_step(s, own_read_by_pool);

	send_priv(s)->ss_ready = -1;
	if (s->snd_pending)
		return status;
	if (own_is_empty(s) && s->snd_off >= send_priv(s)->ss_offered)
		own_free(s);
	if (send_priv(s)->ss_holder != NULL)
		send_room_settle(s, status == PW_SEND_WANT_WRITE);
	return status;
}
