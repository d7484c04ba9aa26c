/*
 * sink: what is resident is copied and given to a pw_sink, or offered to one that sends it
 * itself; what is missing is fetched by the pool, as nodiskio does.  Where nothing can be read without waiting, or what was fetched is
 * evicted again and again, it is read into memory of the transmission's own, as aio does.
 */
#include <errno.h>
#include <string.h>

#include "lib/file/residency.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"

#define COPY ((size_t)64 << 10) /* bytes of a call: four records of TLS */

/*
 * A head, if there is one, and what follows it: one record of TLS for both.  RWF_NOWAIT may
 * refuse what was in memory just now: sink_step sees it in ss_result.
 */
static int
copy_resident(struct pw_send *s, size_t len, size_t *sent)
{
	struct pw_sink *sk = s->snd_sink;
	struct pw_file *file = s->snd_file;
	size_t head = s->snd_mem_len, room = COPY;
	char memory[COPY], *data = memory;
	long n;

	*sent = 0;
	if (sk != NULL && sk->sk_ops->room != NULL)
		data = sk->sk_ops->room(sk, &room);
	if (room <= head)
		return room == 0 ? -EAGAIN
				 : sink_send(s, s->snd_mem, room, true, sent);
	room -= head;
	if (head > 0)
		memcpy(data, s->snd_mem, head);
	n = os_read(file->fil_fd, s->snd_off, data + head,
	    len < room ? len : room,
	    file_priv(file)->fp_ask == OS_ASK_NEVER_COLD);
	if (n == 0)
		return -ESTALE;
	if (n < 0) {
		priv(s)->ss_result = (int)n;
		return n == -EAGAIN ? -EBUSY : (int)n;
	}
	return sink_send(s, data, head + (size_t)n,
	    s->snd_more || (off_t)n < s->snd_len, sent);
}

static bool
takes_ranges(const struct pw_send *s)
{
	return s->snd_sink != NULL && s->snd_sink->sk_ops->take_range != NULL;
}

static int
offer_range(struct pw_send *s, size_t len, size_t *sent)
{
	struct pw_sink *sk = s->snd_sink;
	off_t end = s->snd_off + (off_t)len;

	*sent = 0;
	if (end > priv(s)->ss_offered)
		priv(s)->ss_offered = end;
	return sink_error(sk->sk_ops->take_range(
	    sk, s->snd_off, len, s->snd_more || (off_t)len < s->snd_len, sent));
}

static bool
is_read_apart(const struct pw_send *s)
{
	const struct pw_file *file = s->snd_file;

	if (s->snd_path == &send_aio || s->snd_path == &send_pool)
		return true;
	if (takes_ranges(s))
		return !residency_can_ask(file);
	return file_priv(file)->fp_ask != OS_ASK_NOWAIT &&
	       file_priv(file)->fp_ask != OS_ASK_NEVER_COLD;
}

/* What was refused is read apart: to ask again at once is neither of use nor innocent. */
static enum pw_send_status
send_what_is_resident(struct pw_send *s)
{
	enum pw_send_status status;

	if (takes_ranges(s))
		return send_prefetched(s, send_fetch_by_pool, offer_range);
	priv(s)->ss_result = 0;
	priv(s)->ss_joins = true;
	status = send_prefetched(s, send_fetch_by_pool, copy_resident);
	if (status != PW_SEND_AGAIN || priv(s)->ss_result != -EAGAIN)
		return status;
	priv(s)->ss_ready = -1;
	priv(s)->ss_joins = false;
	return send_aio.path_step(s);
}

enum pw_send_status
sink_step(struct pw_send *s)
{
	off_t off = s->snd_off;
	enum pw_send_status status;

	if (s->snd_path == &send_blocking || s->snd_path == &send_copy)
		return send_copy.path_step(s);
	if (s->snd_file == NULL || s->snd_len == 0)
		return send_window(s, s->snd_off, copy_resident);
	if (priv(s)->ss_own == NULL && !is_read_apart(s))
		return send_what_is_resident(s);
	priv(s)->ss_joins = false;
	status = send_aio.path_step(s);
	if (!s->snd_pending && s->snd_off > off && !is_read_apart(s) &&
	    aio_is_empty(s)) {
		sink_finish(s);
		priv(s)->ss_fetches = 0;
		priv(s)->ss_backed_off = false;
	}
	return status;
}

void
sink_finish(struct pw_send *s)
{
	send_aio.path_finish(s);
}
