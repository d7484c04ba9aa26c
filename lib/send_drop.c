/*
 * send_drop: giving back the pages that a transmission brought in, as far as the
 * client has acknowledged them (thesis 4.4.1, SF_NOCACHE).
 */
#include "drop.h"
#include "loop.h"
#include "os.h"
#include "resident.h"
#include "send_priv.h"

#define DROP_DELAY 1000000 /* microseconds: for the tail to be acknowledged */
#define AUTO_SHARE 8	   /* of memory: larger files are dropped */

static bool
wanted(const struct pw_send *s)
{
	switch (s->snd_cache) {
	case PW_CACHE_KEEP:
		return false;
	case PW_CACHE_DROP:
		return true;
	case PW_CACHE_AUTO:
		break;
	}
	return (uint64_t)s->snd_file->fil_size >
	       s->snd_loop->lp_memory / AUTO_SHARE;
}

/*
 * Once something was missing the kernel's read-ahead is at work, and what is in
 * memory then came with it.
 */
void
send_fetch_begin(struct pw_send *s, off_t end)
{
	send_drop_acknowledged(s);
	if (!s->snd_brings && wanted(s))
		s->snd_brings =
		    !resident_ask(s->snd_file, s->snd_off, end - s->snd_off);
}

void
send_fetch_end(struct pw_send *s, off_t off, off_t end)
{
	resident_fetched(s->snd_file, off, end - off);
	if (s->snd_brings)
		send_brought_in(s, off, end);
}

/*
 * A stretch that was resident before may lie between: what came before it is
 * finished with.
 */
void
send_brought_in(struct pw_send *s, off_t off, off_t end)
{
	if (s->snd_fetched_end != off) {
		send_drop_rest(s);
		s->snd_fetched = s->snd_dropped = off;
	}
	s->snd_fetched_end = end;
}

void
send_drop_acknowledged(struct pw_send *s)
{
	off_t end = s->snd_fetched_end;
	long unacked;

	if (s->snd_dropped >= end || !wanted(s))
		return;
	unacked = os_unacked(s->snd_sock);
	if (unacked < 0)
		return;
	if (s->snd_off - unacked < end)
		end = (s->snd_off - unacked) & ~(off_t)(OS_FOLIO - 1);
	if (end <= s->snd_dropped)
		return;
	drop_add(s->snd_file, s->snd_dropped, end - s->snd_dropped, 0);
	s->snd_dropped = end;
}

/*
 * All of it once more: acknowledged pages that a receiver on this machine had
 * not read yet could not be given back.
 */
void
send_drop_rest(struct pw_send *s)
{
	if (s->snd_fetched < s->snd_fetched_end && wanted(s))
		drop_add(s->snd_file, s->snd_fetched,
		    s->snd_fetched_end - s->snd_fetched,
		    loop_now() + DROP_DELAY);
	s->snd_fetched = s->snd_fetched_end;
}
