/*
 * indirect: see indirect.h.
 */
#include <stdbool.h>

#include "lib/file/indirect.h"
#include "lib/util/offset.h"

#define POINTER 8 /* size of a block number in UFS2, bytes */
#define BITS	64

static off_t
indirect_direct_bytes(const struct indirect *in)
{
	return INDIRECT_FIRST * in->in_block;
}

/* Returns the bytes of the file that one indirect block covers. */
static off_t
indirect_span(const struct indirect *in)
{
	return in->in_block / POINTER * in->in_block;
}

static uint64_t
indirect_number(const struct indirect *in, off_t off)
{
	return (
	    uint64_t)((off - indirect_direct_bytes(in)) / indirect_span(in));
}

static bool
indirect_is_old(const struct indirect *in, uint64_t now)
{
	return now - in->in_since >= INDIRECT_HOLDS;
}

static bool
indirect_is_known(const struct indirect *in, uint64_t n)
{
	return n >= in->in_first && n - in->in_first < BITS &&
	       (in->in_known >> (n - in->in_first) & 1) != 0;
}

off_t
indirect_missing(const struct indirect *in, off_t off, off_t end, uint64_t now)
{
	if (off < indirect_direct_bytes(in))
		off = indirect_direct_bytes(in);
	while (off < end && !indirect_is_old(in, now) &&
	       indirect_is_known(in, indirect_number(in, off)))
		off = indirect_direct_bytes(in) +
		      offset_next(off - indirect_direct_bytes(in),
			  indirect_span(in), end - indirect_direct_bytes(in));
	return off < end ? off : end;
}

/* Shifts in_known so that one of its bits stands for block n.  Bits at the other end are lost. */
static void
indirect_shift(struct indirect *in, uint64_t n)
{
	uint64_t by;

	if (n < in->in_first) {
		by = in->in_first - n;
		in->in_known = by < BITS ? in->in_known << by : 0;
		in->in_first = n;
	} else if (n - in->in_first >= BITS) {
		by = n - in->in_first - (BITS - 1);
		in->in_known = by < BITS ? in->in_known >> by : 0;
		in->in_first += by;
	}
}

void
indirect_note(struct indirect *in, off_t off, uint64_t now)
{
	uint64_t n;

	if (off < indirect_direct_bytes(in))
		return;
	if (in->in_known == 0 || indirect_is_old(in, now)) {
		in->in_known = 0;
		in->in_since = now;
	}
	n = indirect_number(in, off);
	indirect_shift(in, n);
	in->in_known |= (uint64_t)1 << (n - in->in_first);
}
