/*
 * sched_check: checks the rules of sched.h while the server runs, in builds with PW_DEBUG (the
 * debug build and the builds with sanitizers).
 */
#ifdef PW_DEBUG
#include <stdio.h>
#include <stdlib.h>

#include "lib/util/clock.h"
#include "server/worker/sched.h"

#define RULE(holds)                                           \
	do {                                                  \
		if (!(holds))                                 \
			sched_check_broken(__LINE__, #holds); \
	} while (0)

static void
sched_check_broken(int line, const char *rule)
{
	fprintf(stderr, "sched_check.c:%d: check failed: %s\n", line, rule);
	abort();
}

static void
sched_check_item(const struct sched *sc, const struct sched_item *it)
{
	RULE(it->it_timer == TIMER_NONE || it->it_timer == TIMER_PAUSE ||
	     it->it_deadline <= clock_now() + sc->sc_timeouts[it->it_timer]);
	it->it_ops->check(it);
}

static void
sched_check_timers(const struct sched *sc, const unsigned timed[TIMERS])
{
	const struct sched_item *it;
	uint64_t before;
	unsigned n;
	int timer;

	RULE(TAILQ_EMPTY(&sc->sc_timers[TIMER_NONE]));
	RULE(sc->sc_npaused == timed[TIMER_PAUSE]);
	RULE(sc->sc_npaused == 0 || evtimer_pending(&sc->sc_pause, NULL));
	for (timer = TIMER_NONE + 1; timer < TIMERS; timer++) {
		if (timer == TIMER_PAUSE)
			continue;
		n = 0;
		before = 0;
		TAILQ_FOREACH(it, &sc->sc_timers[timer], it_timed)
		{
			RULE((int)it->it_timer == timer);
			RULE(it->it_deadline >= before);
			before = it->it_deadline;
			n++;
		}
		RULE(n == timed[timer]);
	}
}

static void
sched_check_run_queue(const struct sched *sc, unsigned queued)
{
	const struct sched_item *it;
	unsigned n = 0;

	TAILQ_FOREACH(it, &sc->sc_run_queue, it_run_entry)
	{
		RULE(it->it_queued);
		n++;
	}
	RULE(n == sc->sc_runnable && n == queued);
	RULE(n == 0 || evtimer_pending(&sc->sc_again, NULL));
}

static void
sched_check_phases(const struct stats *sta, const unsigned phases[PHASES])
{
	int phase;

	for (phase = 0; phase < PHASES; phase++)
		RULE(counter_get(&sta->sta_phase[phase]) == phases[phase]);
}

void
sched_check(const struct sched *sc, const struct stats *sta)
{
	unsigned n = 0, queued = 0, timed[TIMERS] = {0}, phases[PHASES] = {0};
	const struct sched_item *it;

	TAILQ_FOREACH(it, &sc->sc_all, it_all)
	{
		sched_check_item(sc, it);
		n++;
		queued += it->it_queued;
		timed[it->it_timer]++;
		phases[it->it_phase]++;
	}
	RULE(n == sc->sc_count);
	TAILQ_FOREACH(it, &sc->sc_parts, it_all)
	{
		sched_check_item(sc, it);
		queued += it->it_queued;
		timed[it->it_timer]++;
	}
	sched_check_timers(sc, timed);
	sched_check_run_queue(sc, queued);
	sched_check_phases(sta, phases);
}
#else
typedef int sched_check_is_empty; /* ISO C requires a declaration */
#endif
