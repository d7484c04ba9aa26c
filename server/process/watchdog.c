/*
 * watchdog: see watchdog.h.
 */
#include <stdio.h>

#include "lib/util/clock.h"
#include "server/log/log.h"
#include "server/process/channel.h"
#include "server/process/watchdog.h"
#include "server/worker/worker.h"

#define LOOKS	 2 /* number of checks per wd_patience */
#define SECOND	 UINT64_C(1000000)
#define MILLI_US 1000

void
watchdog_init(struct watchdog *wd, uint64_t period, uint64_t stall)
{
	uint64_t patience = stall == 0 ? 0 : stall < SECOND ? SECOND : stall;

	if (period > 0 && (patience == 0 || period / 2 < patience))
		patience = period / 2;
	*wd = (struct watchdog){.wd_period = period, .wd_patience = patience};
}

int
watchdog_wait(const struct watchdog *wd)
{
	uint64_t now;

	if (wd->wd_patience == 0)
		return -1;
	now = clock_now();
	return now >= wd->wd_next ? 0
				  : (int)((wd->wd_next - now) / MILLI_US) + 1;
}

static uint64_t
watchdog_silence(struct worker *wk, uint64_t now)
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
watchdog_tell(struct watchdog *wd, int channel, const struct worker *wk,
    uint64_t us, struct log_writer *log)
{
	char text[CHANNEL_TEXT];

	snprintf(text, sizeof(text), "worker %u: no %s for %.1f s", wk->wk_id,
	    atomic_load_explicit(&wk->wk_spins, memory_order_relaxed)
		? "progress in spite of CPU use"
		: "event-loop iteration",
	    (double)us / 1e6);
	if (!wd->wd_logged)
		log_error(log, "%s", text);
	wd->wd_logged = true;
	if (wd->wd_period == 0 || wd->wd_told || us < wd->wd_period / 2)
		return;
	wd->wd_told = true;
	channel_send(channel, CHANNEL_STUCK, text, -1, false);
}

/*
 * Logs the first stuck worker.  Returns the longest time, in microseconds, that a worker has made
 * no progress.
 */
static uint64_t
watchdog_check(struct watchdog *wd, int channel, struct worker **workers,
    unsigned n, uint64_t now, struct log_writer *log)
{
	uint64_t us, longest = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		us = watchdog_silence(workers[i], now);
		if (us >= wd->wd_patience)
			watchdog_tell(wd, channel, workers[i], us, log);
		if (us > longest)
			longest = us;
	}
	return longest;
}

void
watchdog_look(struct watchdog *wd, int channel, struct worker **workers,
    unsigned nworkers, struct log_writer *log)
{
	uint64_t now = clock_now(), longest;

	if (wd->wd_patience == 0 || now < wd->wd_next || channel == -1)
		return;
	wd->wd_next = now + wd->wd_patience / LOOKS;
	longest = watchdog_check(wd, channel, workers, nworkers, now, log);
	if (wd->wd_logged && longest < wd->wd_patience) {
		log_notice(log, "all event loops run again");
		wd->wd_logged = wd->wd_told = false;
	}
	if (wd->wd_period > 0 && longest < wd->wd_period / 2)
		channel_send(channel, CHANNEL_ALIVE, "", -1, false);
}
