/*
 * drop_acked: drops the pages that a transmission fetched, as far as the client has acknowledged them
 * (thesis 4.4.1, SF_NOCACHE).
 */
#include "lib/disk/admission.h"
#include "lib/disk/completion.h"
#include "lib/disk/tier_fetch.h"
#include "lib/file/residency.h"
#include "lib/os/os.h"
#include "lib/send/drop_behind.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"
#include "lib/util/clock.h"

#define NEAR 10000 /* maximum round trip of a near client, microseconds */

void
send_drop_start(struct pw_send *s)
{
	struct pw_loop *lp = file_priv(s->snd_file)->fp_loop;
	bool judges =
	    s->snd_cache == PW_CACHE_AUTO ||
	    (s->snd_cache == PW_CACHE_DROP && tier_fetch_exists(lp->lp_pool));

	send_priv(s)->ss_drops = s->snd_cache == PW_CACHE_DROP;
	send_priv(s)->ss_trial = send_priv(s)->ss_tier = false;
	send_priv(s)->ss_tier_use = TIER_UNDECIDED;
	send_priv(s)->ss_decided = !judges || s->snd_path->path_keeps;
	send_priv(s)->ss_counts =
	    !send_priv(s)->ss_decided && s->snd_cache == PW_CACHE_AUTO;
}

static void
drop_acked_decide(struct pw_send *s)
{
	struct pw_pool *pl;
	enum admission_verdict verdict;

	if (send_priv(s)->ss_decided)
		return;
	pl = file_priv(s->snd_file)->fp_loop->lp_pool;
	verdict =
	    s->snd_cache == PW_CACHE_DROP
		? ADMISSION_GOES
		: admission_judge(pool_admission(pl), s->snd_file, s->snd_len);
	send_priv(s)->ss_decided = true;
	send_priv(s)->ss_drops = verdict == ADMISSION_GOES;
	send_priv(s)->ss_trial = verdict == ADMISSION_TRIAL;
	send_priv(s)->ss_tier =
	    tier_fetch_exists(pl) && verdict != ADMISSION_STAYS;
}

bool
send_drops(struct pw_send *s)
{
	drop_acked_decide(s);
	return send_priv(s)->ss_drops;
}

/* Returns true if windows are fetched from the tier, which needs a transmission that can send copies. */
bool
send_takes_tier(struct pw_send *s)
{
	if (!tier_fetch_exists(s->snd_loop->lp_pool))
		return false;
	drop_acked_decide(s);
	return send_priv(s)->ss_tier && s->snd_path->path_copies &&
	       !sink_takes_ranges(s);
}

/*
 * Chooses direct reads for windows that would be dropped, and single pages for files on trial.
 * sendfile(2) uses a folio once for each 64 KiB, so after one transmission the kernel keeps a large
 * folio as often used.  That suits admitted files, and PW_CACHE_KEEP, where reading page by page
 * costs more CPU time than the saved bytes are worth (docs/admission.md), but not files on trial.
 * Where folios have read-ahead marks (device_marks), chooses folios only for a transmission that
 * can send from their mappings, and only for a file without holes: a mark before a hole would stay,
 * since the hole is not read.
 */
enum fetch_how
send_fetch_how(struct pw_send *s)
{
	if (send_drops(s) && s->snd_path->path_copies && !sink_takes_ranges(s))
		return FETCH_DIRECT;
	if (send_priv(s)->ss_trial ||
	    (device_marks(file_priv(s->snd_file)->fp_device) &&
		(file_priv(s->snd_file)->fp_sparse ||
		    !send_can_read_marked(s))))
		return FETCH_PAGES;
	return FETCH_FOLIO;
}

/*
 * Sets ss_brings once a page is missing.  From then on the kernel reads ahead, so pages that are
 * resident later were probably read ahead, and are dropped as well.
 */
void
send_fetch_begin(struct pw_send *s, off_t end)
{
	send_drop_acknowledged(s);
	if (!send_priv(s)->ss_brings && send_drops(s))
		send_priv(s)->ss_brings = !residency_ask_alone(
		    s->snd_file, s->snd_off, end - s->snd_off);
}

void
send_fetch_end(struct pw_send *s, off_t off, off_t end)
{
	residency_fetched(s->snd_file, off, end - off);
	if (send_priv(s)->ss_brings)
		send_brought_in(s, off, end);
}

/*
 * Extends the fetched stretch by the range [off, end).  If the two do not touch, drops the stretch
 * first.  Range and stretch overlap if a window was evicted and fetched again.
 */
void
send_brought_in(struct pw_send *s, off_t off, off_t end)
{
	if (off < send_priv(s)->ss_fetched ||
	    off > send_priv(s)->ss_fetched_end) {
		send_drop_rest(s);
		send_priv(s)->ss_fetched = send_priv(s)->ss_dropped = off;
		send_priv(s)->ss_fetched_end = end;
	} else if (end > send_priv(s)->ss_fetched_end)
		send_priv(s)->ss_fetched_end = end;
}

void
send_drop_acknowledged(struct pw_send *s)
{
	off_t end = send_priv(s)->ss_fetched_end;
	long unacked;

	if (send_priv(s)->ss_dropped >= end || !send_drops(s))
		return;
	unacked = sink_unacked(s);
	if (unacked < 0)
		return;
	if (s->snd_off - unacked < end)
		end = (s->snd_off - unacked) & ~(off_t)(OS_FOLIO - 1);
	if (end <= send_priv(s)->ss_dropped)
		return;
	drop_behind_add(s->snd_file, send_priv(s)->ss_dropped,
	    end - send_priv(s)->ss_dropped, 0);
	pool_dropped(
	    s->snd_loop->lp_pool, (size_t)(end - send_priv(s)->ss_dropped));
	send_priv(s)->ss_dropped = end;
}

/*
 * Drops the whole stretch again, since the kernel does not drop pages that were acknowledged but that a
 * receiver on this machine has not read yet.
 */
void
send_drop_rest(struct pw_send *s)
{
	off_t off = send_priv(s)->ss_fetched,
	      len = send_priv(s)->ss_fetched_end - off;
	long rtt;

	if (len > 0 && send_drops(s)) {
		/* The descriptor of a failed connection may belong to another connection by now. */
		rtt = s->snd_error == 0 && s->snd_sink == NULL
			  ? os_round_trip(s->snd_sock)
			  : -1;
		if (rtt >= 0 && rtt < NEAR)
			drop_behind_add_soon(s->snd_file, off, len);
		drop_behind_add(
		    s->snd_file, off, len, clock_now() + DROP_LATER);
		pool_dropped(s->snd_loop->lp_pool,
		    (size_t)(send_priv(s)->ss_fetched_end -
			     send_priv(s)->ss_dropped));
	}
	send_priv(s)->ss_fetched = send_priv(s)->ss_dropped =
	    send_priv(s)->ss_fetched_end;
}
