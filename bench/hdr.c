/*
 * hdr: see hdr.h.  A value above 2047 keeps its eleven leading bits; how many
 * were shifted out chooses the block of 1024 slots.
 */
#include "hdr.h"

#include <inttypes.h>

static unsigned
slot_of(uint64_t us)
{
	unsigned shift;

	if (us < 2 * HDR_HALF)
		return (unsigned)us;
	shift = 63 - 10 - (unsigned)__builtin_clzll(us);
	return HDR_HALF * shift + (unsigned)(us >> shift);
}

static void
slot_bounds(unsigned slot, uint64_t *low, uint64_t *high)
{
	unsigned shift = slot < 2 * HDR_HALF ? 0 : slot / HDR_HALF - 1;

	*low = (uint64_t)(slot - HDR_HALF * shift) << shift;
	*high = *low + ((uint64_t)1 << shift) - 1;
}

void
hdr_record(struct hdr *h, uint64_t us)
{
	h->h_count++;
	h->h_sum += us;
	if (us > h->h_max)
		h->h_max = us;
	if (us > HDR_MAX) {
		h->h_over++;
		us = HDR_MAX;
	}
	h->h_slot[slot_of(us)]++;
}

uint64_t
hdr_percentile(const struct hdr *h, unsigned per10000)
{
	uint64_t rank = (h->h_count * per10000 + 9999) / 10000;
	uint64_t low, high, seen = 0;

	if (h->h_count == 0)
		return 0;
	for (unsigned i = 0; i < HDR_SLOTS; i++) {
		seen += h->h_slot[i];
		if (h->h_slot[i] == 0 || seen < rank)
			continue;
		slot_bounds(i, &low, &high);
		return high < h->h_max ? high : h->h_max;
	}
	return h->h_max;
}

void
hdr_print_summary(FILE *f, const struct hdr *h)
{
	static const struct {
		const char *name;
		unsigned per10000;
	} list[] = {{"p50", 5000}, {"p90", 9000}, {"p99", 9900},
	    {"p99.9", 9990}, {"p99.99", 9999}};
	double n = h->h_count > 0 ? (double)h->h_count : 1;

	fprintf(f, "\"count\": %" PRIu64 ", \"mean\": %.3f", h->h_count,
	    (double)h->h_sum / n);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		fprintf(f, ", \"%s\": %" PRIu64, list[i].name,
		    hdr_percentile(h, list[i].per10000));
	fprintf(f, ", \"max\": %" PRIu64 ", \"over\": %" PRIu64, h->h_max,
	    h->h_over);
}

void
hdr_print_buckets(FILE *f, const struct hdr *h)
{
	const char *comma = "";
	uint64_t low, high;

	fprintf(f, "\"buckets\": [");
	for (unsigned i = 0; i < HDR_SLOTS; i++) {
		if (h->h_slot[i] == 0)
			continue;
		slot_bounds(i, &low, &high);
		fprintf(f, "%s[%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", comma,
		    low, high, h->h_slot[i]);
		comma = ", ";
	}
	fprintf(f, "]");
}
