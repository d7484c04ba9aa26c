/*
 * flood: see flood.h.
 */
#include "server/http2/flood.h"

void
h2_flood_begin(struct h2_flood *fl, uint64_t now)
{
	*fl = (struct h2_flood){.fl_tokens = H2_FLOOD_MOST, .fl_since = now};
}

static void
h2_flood_add(struct h2_flood *fl, uint64_t tokens)
{
	uint64_t room = H2_FLOOD_MOST - fl->fl_tokens;

	fl->fl_tokens += tokens < room ? tokens : room;
}

void
h2_flood_earn(struct h2_flood *fl, uint64_t bytes)
{
	fl->fl_bytes += bytes;
	h2_flood_add(fl, fl->fl_bytes / H2_FLOOD_PER_BYTES);
	fl->fl_bytes %= H2_FLOOD_PER_BYTES;
}

/* Adds the tokens earned since fl_since.  Leaves the time of a partial token for the next call. */
static void
h2_flood_add_time(struct h2_flood *fl, uint64_t now)
{
	uint64_t us = 1000000 / H2_FLOOD_PER_S;
	uint64_t tokens = (now - fl->fl_since) / us;

	h2_flood_add(fl, tokens);
	fl->fl_since += tokens * us;
}

bool
h2_flood_pay(struct h2_flood *fl, unsigned tokens, uint64_t now)
{
	if (fl->fl_tokens < tokens)
		h2_flood_add_time(fl, now);
	if (fl->fl_tokens < tokens)
		return false;
	fl->fl_tokens -= tokens;
	return true;
}
