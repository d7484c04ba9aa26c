/*
 * sink: sends to a pw_sink, or copies into a socket if the loop is bounded.  Resident
 * data is copied and passed to the sink, or offered as a range to a sink that sends
 * ranges itself.  Disk threads fetch missing data, as for the path nodiskio.  Data that
 * cannot be read without waiting, or is evicted again and again, is read into the
 * transmission's own memory, as by the path aio.
 */
#include <errno.h>

#include "lib/file/residency.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"

static int
sink_offer_range(struct pw_send *s, size_t len, size_t *sent)
{
	struct pw_sink *sk = s->snd_sink;
	size_t pages = send_before_tail(s, len);
	off_t end = s->snd_off + (off_t)pages;

	if (pages == 0)
		return send_copied(s, len, sent);
	*sent = 0;
	if (end > send_priv(s)->ss_offered)
		send_priv(s)->ss_offered = end;
	return sink_error(sk->sk_ops->take_range(sk, s->snd_off, pages,
	    s->snd_more || (off_t)pages < s->snd_len, sent));
}

static bool
sink_is_read_apart(const struct pw_send *s)
{
	const struct pw_file *file = s->snd_file;

	if (s->snd_path->path_reads || s->snd_path == &send_pool)
		return true;
	if (sink_takes_ranges(s))
		return !residency_can_ask(file);
	return file_priv(file)->fp_ask != OS_ASK_NOWAIT &&
	       file_priv(file)->fp_ask != OS_ASK_NEVER_COLD;
}

/*
 * Sends resident data, and has disk threads fetch missing data.  If RWF_NOWAIT refuses a page, reads into
 * memory as the path aio does, since a second residency check would have the same result, and might start
 * a read.
 */
static enum pw_send_status
sink_send_what_is_resident(struct pw_send *s)
{
	enum pw_send_status status;

	if (sink_takes_ranges(s)) {
		file_priv(s->snd_file)->fp_each = true;
		return send_prefetched(s, send_fetch_by_pool, sink_offer_range);
	}
	send_priv(s)->ss_result = 0;
	send_priv(s)->ss_joins = true;
	status = send_prefetched(s, send_fetch_by_pool, send_copied);
	if (status != PW_SEND_AGAIN || send_priv(s)->ss_result != -EAGAIN)
		return status;
	send_priv(s)->ss_ready = -1;
	send_priv(s)->ss_joins = false;
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
		return send_window(s, s->snd_off, send_copied);
	if (send_priv(s)->ss_own == NULL &&
	    (!sink_is_read_apart(s) || send_tries_copies(s)))
		return sink_send_what_is_resident(s);
	send_priv(s)->ss_joins = false;
	status = send_aio.path_step(s);
	if (!s->snd_pending && s->snd_off > off && !sink_is_read_apart(s) &&
	    aio_is_empty(s) && s->snd_off >= send_priv(s)->ss_offered) {
		sink_finish(s);
		send_priv(s)->ss_fetches = 0;
		send_priv(s)->ss_backed_off = false;
	}
	return status;
}

void
sink_finish(struct pw_send *s)
{
	send_aio.path_finish(s);
}
