/*
 * watchdog: see watchdog.h.
 */
#include <stdio.h>

#include "lib/util/clock.h"
#include "server/log/log.h"
#include "server/process/channel.h"
#include "server/process/watchdog.h"
#include "server/worker/worker.h"

#define LOOKS	 4 /* in a period */
#define MILLI_US 1000

void
watchdog_init(struct watchdog *wd, uint64_t period)
{
	*wd = (struct watchdog){.wd_period = period};
}

int
watchdog_wait(const struct watchdog *wd)
{
	uint64_t now;

	if (wd->wd_period == 0)
		return -1;
	now = clock_now();
	return now >= wd->wd_next ? 0
				  : (int)((wd->wd_next - now) / MILLI_US) + 1;
}

/* Microseconds since its loop was last seen to have turned. */
static uint64_t
silence(struct worker *wk, uint64_t now)
{
	uint64_t beat =
	    atomic_load_explicit(&wk->wk_beat, memory_order_relaxed);

	if (wk->wk_beat_at == 0 || beat != wk->wk_beat_seen) {
		wk->wk_beat_seen = beat;
		wk->wk_beat_at = now;
	}
	return now - wk->wk_beat_at;
}

static void
tell(struct watchdog *wd, int channel, unsigned id, uint64_t us,
    struct log_writer *log)
{
	char text[CHANNEL_TEXT];

	if (wd->wd_told)
		return;
	wd->wd_told = true;
	snprintf(text, sizeof(text),
	    "worker %u: no event-loop iteration for %.1f s", id,
	    (double)us / 1e6);
	log_error(log, "%s", text);
	channel_send(channel, CHANNEL_STUCK, text, -1, false);
}

void
watchdog_look(struct watchdog *wd, int channel, struct worker **workers,
    unsigned nworkers, struct log_writer *log)
{
	uint64_t now = clock_now(), us;
	bool alive = true;
	unsigned i;

	if (wd->wd_period == 0 || now < wd->wd_next || channel == -1)
		return;
	wd->wd_next = now + wd->wd_period / LOOKS;
	for (i = 0; i < nworkers; i++) {
		us = silence(workers[i], now);
		if (us < wd->wd_period / 2)
			continue;
		alive = false;
		tell(wd, channel, i, us, log);
	}
	if (!alive)
		return;
	if (wd->wd_told)
		log_notice(log, "all event loops run again");
	wd->wd_told = false;
	channel_send(channel, CHANNEL_ALIVE, "", -1, false);
}
