/*
 * weight: see weight.h.
 */
#include "server/admin/weight.h"

#define MILLI_US  ((uint64_t)1000)
#define WAIT_US	  (500 * MILLI_US) /* acceptable time of a job on a busy disk */
#define SILENT_US (1000 * MILLI_US) /* silence at which the weight is 0 */
#define LAG_US	  (10 * MILLI_US)   /* acceptable delay of an event loop */

#define LEAST_BUDGET 0.25 /* weight while all of the budget is used */

#define DOWN 0.5    /* part of the distance moved towards a lower sample */
#define UP   0.0625 /* part of the distance moved towards a higher sample */

double
weight_of_budget(uint64_t used, uint64_t limit)
{
	double part = limit > 0 ? (double)used / (double)limit : 1;

	if (part <= 0.5)
		return 1;
	return part >= 1 ? LEAST_BUDGET
			 : 1 - (1 - LEAST_BUDGET) * (2 * part - 1);
}

double
weight_of_wait(uint64_t us)
{
	return us <= WAIT_US ? 1 : (double)WAIT_US / (double)us;
}

double
weight_of_silence(uint64_t us)
{
	if (us <= WAIT_US)
		return 1;
	if (us >= SILENT_US)
		return 0;
	return (double)(SILENT_US - us) / (double)(SILENT_US - WAIT_US);
}

double
weight_of_lag(uint64_t us)
{
	return us <= LAG_US ? 1 : (double)LAG_US / (double)us;
}

void
weight_init(struct weight *wt)
{
	*wt = (struct weight){.wt_now = 1, .wt_said = 100};
}

/*
 * Converts a weight to percent, rounded, but to at least 1, and to 100 instead of 99.
 */
static unsigned
weight_percent(double part)
{
	unsigned n = (unsigned)(part * 100 + 0.5);

	return n <= 1 ? 1 : n >= 99 ? 100 : n;
}

void
weight_add(struct weight *wt, double part)
{
	unsigned now, distance;

	wt->wt_now += (part - wt->wt_now) * (part < wt->wt_now ? DOWN : UP);
	now = weight_percent(wt->wt_now);
	distance = now > wt->wt_said ? now - wt->wt_said : wt->wt_said - now;
	if (distance >= WEIGHT_STEP || now == 1 || now == 100)
		wt->wt_said = now;
}
