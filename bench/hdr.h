/*
 * hdr: a histogram of latencies in fixed memory.  Log-linear: 1 us wide up to
 * 2048 us, then 1024 slots for each doubling, so that no slot is wider than a
 * thousandth of what it holds (three significant digits), up to 100 s.
 */
#ifndef HDR_H
#define HDR_H

#include <stdint.h>
#include <stdio.h>

#define HDR_MAX	  100000000ULL /* us */
#define HDR_HALF  1024U
#define HDR_SLOTS (HDR_HALF * 18)

struct hdr {
	uint64_t h_count, h_sum, h_max;
	uint64_t h_over; /* values beyond HDR_MAX, held as HDR_MAX */
	uint64_t h_slot[HDR_SLOTS];
};

void hdr_record(struct hdr *, uint64_t us);

/*
 * The greatest value of the slot that holds the value of rank
 * ceil(count * per10000 / 10000), but never more than the greatest recorded.
 */
uint64_t hdr_percentile(const struct hdr *, unsigned per10000);

/* Members of a JSON object, without the braces. */
void hdr_print_summary(FILE *, const struct hdr *);
void hdr_print_buckets(FILE *, const struct hdr *);

#endif
