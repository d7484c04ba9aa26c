/*
 * holder: see holder.h.
 */
#include <stdlib.h>

#include "lib/send/holder.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"
#include "lib/util/clock.h"

struct holder {
	struct pw_send *hd_send;
	size_t hd_bytes;
	/* time of the last change of hd_bytes, or of a later holder_stalled, microseconds */
	uint64_t hd_progress;
	/* bytes that the client had acknowledged at the last holder_stalled */
	uint64_t hd_taken;
	TAILQ_ENTRY(holder) hd_link;
};

size_t
holder_bytes(const struct pw_send *s)
{
	const struct holder *hd = send_priv(s)->ss_holder;

	return hd == NULL ? 0 : hd->hd_bytes;
}

static void
holder_progressed(struct pw_loop *lp, struct holder *hd, uint64_t now_us)
{
	TAILQ_REMOVE(&lp->lp_holders, hd, hd_link);
	hd->hd_progress = now_us;
	TAILQ_INSERT_TAIL(&lp->lp_holders, hd, hd_link);
}

static struct holder *
holder_create(struct pw_send *s)
{
	struct holder *hd = calloc(1, sizeof(*hd));

	if (hd == NULL)
		return NULL;
	hd->hd_send = s;
	send_priv(s)->ss_holder = hd;
	TAILQ_INSERT_TAIL(&s->snd_loop->lp_holders, hd, hd_link);
	return hd;
}

void
holder_add(struct pw_send *s, size_t bytes)
{
	struct holder *hd = send_priv(s)->ss_holder;

	if (hd == NULL)
		hd = holder_create(s);
	if (hd == NULL) {
		pool_room_give(file_priv(s->snd_file)->fp_device, bytes);
		return;
	}
	hd->hd_bytes += bytes;
	holder_progressed(s->snd_loop, hd, clock_now());
}

void
holder_keep(struct pw_send *s, size_t bytes)
{
	struct holder *hd = send_priv(s)->ss_holder;
	size_t given;

	if (hd == NULL)
		return;
	given = hd->hd_bytes - bytes;
	hd->hd_bytes = bytes;
	if (bytes > 0)
		holder_progressed(s->snd_loop, hd, clock_now());
	else {
		TAILQ_REMOVE(&s->snd_loop->lp_holders, hd, hd_link);
		free(hd);
		send_priv(s)->ss_holder = NULL;
	}
	pool_room_give(file_priv(s->snd_file)->fp_device, given);
}

/* Returns the bytes that the client has acknowledged, or that the sink has accepted. */
static uint64_t
holder_taken_by_client(const struct pw_send *s)
{
	long unacked = sink_unacked(s);
	uint64_t n = unacked > 0 ? (uint64_t)unacked : 0;

	return s->snd_sent > n ? s->snd_sent - n : 0;
}

/*
 * Returns true if the client has taken nothing since the last look.  Does not look at a pending transmission: its
 * client may have nothing to take, and its socket may have been taken back and closed.
 */
static bool
holder_has_stalled(struct holder *hd)
{
	uint64_t before = hd->hd_taken;

	if (hd->hd_send->snd_pending)
		return false;
	hd->hd_taken = holder_taken_by_client(hd->hd_send);
	return hd->hd_taken == before &&
	       send_priv(hd->hd_send)->ss_ahead == NULL;
}

struct pw_send *
holder_stalled(struct pw_loop *lp, uint64_t now_us, unsigned *looks)
{
	struct holder *hd;

	for (; *looks > 0; --*looks) {
		hd = TAILQ_FIRST(&lp->lp_holders);
		if (hd == NULL || now_us < hd->hd_progress + HOLDER_STALLED)
			return NULL;
		if (holder_has_stalled(hd))
			return hd->hd_send;
		holder_progressed(lp, hd, now_us);
	}
	return NULL;
}
