/*
 * sink: sends to a pw_sink, or copies into a socket if the loop is bounded.  Resident
 * data is copied and passed to the sink, or offered as a range to a sink that sends
 * ranges itself.  Disk threads fetch missing data, as for the path nodiskio.  Data that
 * cannot be read without waiting, or is evicted again and again, is read into the
 * transmission's own memory, as by the path aio.
 */
#include <errno.h>

#include "lib/file/residency.h"
#include "lib/send/own.h"
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

/*
 * Sends resident data, and has disk threads fetch missing data.  RWF_NOWAIT does not work where mincore(2) checks
 * residency, so there all data is read apart, unless a sink reads it.
 */
enum pw_send_status
sink_step(struct pw_send *s)
{
	int ask;

	if (s->snd_path == &send_blocking || s->snd_path == &send_copy)
		return send_copy.path_step(s);
	if (s->snd_file == NULL || s->snd_len == 0)
		return send_window(s, s->snd_off, send_copied);
	ask = file_priv(s->snd_file)->fp_ask;
	if (s->snd_path == &send_pool)
		return own_step(s, own_read_by_pool);
	if (sink_takes_ranges(s)
		? !residency_can_ask(s->snd_file)
		: ask == OS_ASK_MINCORE || ask == OS_ASK_NATIVE)
		return own_step(s, own_read_by_pool);
	if (sink_takes_ranges(s)) {
		file_priv(s->snd_file)->fp_each = true;
		return send_prefetched(s, send_fetch_by_pool, sink_offer_range);
	}
	send_priv(s)->ss_joins = send_priv(s)->ss_own == NULL;
	return send_prefetched(s, send_fetch_by_pool, send_copied);
}
