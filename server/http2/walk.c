/*
 * walk: see walk.h.
 */
#include <string.h>

#include "server/http2/walk.h"

#define PRIORITY 2

static uint32_t
h2_walk_number(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

static uint32_t
h2_walk_length(const struct h2_walk *wa)
{
	return h2_walk_number(wa->wa_head) >> 8;
}

/*
 * Returns the number of bytes of the head to read.  A PRIORITY needs more, but its type is known
 * only after H2_WALK_HEAD bytes.
 */
static unsigned
h2_walk_wanted(const struct h2_walk *wa)
{
	if (wa->wa_have < H2_WALK_HEAD || wa->wa_head[3] != PRIORITY ||
	    h2_walk_length(wa) < H2_WALK_MOST - H2_WALK_HEAD)
		return H2_WALK_HEAD;
	return H2_WALK_MOST;
}

static size_t
h2_walk_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Copies the next bytes of a frame head into wa_head.  Returns true if the head is complete. */
static bool
h2_walk_take_head(
    struct h2_walk *wa, const unsigned char *data, size_t len, size_t *at)
{
	size_t n;

	while (wa->wa_have < h2_walk_wanted(wa)) {
		n = h2_walk_least(h2_walk_wanted(wa) - wa->wa_have, len - *at);
		if (n == 0)
			return false;
		memcpy(wa->wa_head + wa->wa_have, data + *at, n);
		wa->wa_have += (unsigned)n;
		*at += n;
	}
	return true;
}

static void
h2_walk_describe(const struct h2_walk *wa, struct h2_walk_frame *wf)
{
	*wf = (struct h2_walk_frame){
	    .wf_len = h2_walk_length(wa),
	    .wf_type = wa->wa_head[3],
	    .wf_flags = wa->wa_head[4],
	    .wf_stream = (int32_t)(h2_walk_number(wa->wa_head + 5) & INT32_MAX),
	    .wf_depends = -1,
	};
	if (wa->wa_have == H2_WALK_MOST)
		wf->wf_depends =
		    (int32_t)(h2_walk_number(wa->wa_head + H2_WALK_HEAD) &
			      INT32_MAX);
}

/* Skips the preface, or the payload before the next frame head. */
static void
h2_walk_skip(struct h2_walk *wa, size_t len, size_t *at)
{
	size_t n = h2_walk_least(H2_WALK_PREFACE - wa->wa_preface, len - *at);

	wa->wa_preface += (unsigned)n;
	*at += n;
	n = h2_walk_least(wa->wa_left, len - *at);
	wa->wa_left -= (uint32_t)n;
	*at += n;
}

bool
h2_walk(struct h2_walk *wa, const unsigned char *data, size_t len, size_t *at,
    size_t *begin, struct h2_walk_frame *wf)
{
	unsigned before;

	h2_walk_skip(wa, len, at);
	before = wa->wa_have;
	*begin = before > 0 ? 0 : *at;
	if (*at == len || !h2_walk_take_head(wa, data, len, at))
		return false;
	h2_walk_describe(wa, wf);
	wa->wa_left = wf->wf_len - (wa->wa_have - H2_WALK_HEAD);
	wa->wa_have = 0;
	return true;
}
