/*
 * window_size: see window_size.h.
 */
#include "lib/send/window_size.h"

#define HORIZON	      500000 /* minimum time that a window lasts, microseconds */
/* the same on a disk that seeks, and the time of the lead */
#define HORIZON_SEEKS 4000000

/*
 * Returns the number of bytes that a client of this rate reads in `us` microseconds, limited to `most`.
 */
static size_t
window_size_of_rate(uint64_t rate, uint64_t us, size_t most)
{
	uint64_t bytes;

	if (rate > UINT64_MAX / (us + 1))
		return most;
	bytes = rate * us / 1000000;
	return bytes < most ? (size_t)bytes : most;
}

size_t
window_size(const struct window_facts *wf)
{
	uint64_t us = 4 * wf->wf_latency;
	uint64_t least = wf->wf_seeks ? HORIZON_SEEKS : HORIZON;
	size_t most =
	    wf->wf_guess && !wf->wf_seeks ? WINDOW_GUESS : WINDOW_MOST;
	size_t want, size = WINDOW_LEAST;

	if (wf->wf_plenty)
		return WINDOW_MOST;
	want = wf->wf_rate == 0 ? most
				: window_size_of_rate(wf->wf_rate,
				      us > least ? us : least, most);
	while (size < want)
		size *= 2;
	return size;
}

size_t
window_lead(const struct window_facts *wf, size_t window)
{
	size_t most = window * WINDOW_LEAD, least, lead;

	if (wf->wf_rate == 0)
		return window / 2;
	if (wf->wf_seeks) {
		most = window * WINDOW_LEAD_SEEKS;
		least = window / 2;
		lead = window_size_of_rate(wf->wf_rate, HORIZON_SEEKS, most);
	} else {
		least =
		    wf->wf_lead > window ? wf->wf_lead - wf->wf_lead / 4 : 0;
		lead =
		    window_size_of_rate(wf->wf_rate, 2 * wf->wf_latency, most);
	}
	if (least < WINDOW_LEAST)
		least = WINDOW_LEAST;
	if (lead < least)
		lead = least;
	return lead < most ? lead : most;
}
