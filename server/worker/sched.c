/*
 * sched: see sched.h.
 */
#include "lib/util/clock.h"
#include "server/worker/sched.h"

void
sched_init(struct sched *sc)
{
	int timer;

	TAILQ_INIT(&sc->sc_run_queue);
	TAILQ_INIT(&sc->sc_all);
	TAILQ_INIT(&sc->sc_parts);
	for (timer = 0; timer < TIMERS; timer++)
		TAILQ_INIT(&sc->sc_timers[timer]);
	for (timer = 0; timer < SCHED_TICKS; timer++)
		TAILQ_INIT(&sc->sc_paused[timer]);
}

void
sched_arm(struct sched *sc)
{
	static const struct timeval at_once = {0, 0};

	evtimer_add(&sc->sc_again, &at_once);
}

void
sched_again(struct sched *sc, struct sched_item *it)
{
	if (it->it_queued)
		return;
	it->it_queued = true;
	if (TAILQ_EMPTY(&sc->sc_run_queue))
		sched_arm(sc);
	TAILQ_INSERT_TAIL(&sc->sc_run_queue, it, it_run_entry);
	sc->sc_runnable++;
}

static void
sched_dequeue(struct sched *sc, struct sched_item *it)
{
	it->it_queued = false;
	TAILQ_REMOVE(&sc->sc_run_queue, it, it_run_entry);
	sc->sc_runnable--;
}

struct sched_item *
sched_next(struct sched *sc)
{
	struct sched_item *it = TAILQ_FIRST(&sc->sc_run_queue);

	if (it != NULL)
		sched_dequeue(sc, it);
	return it;
}

static struct sched_list *
sched_paused(struct sched *sc, uint64_t tick)
{
	return &sc->sc_paused[tick % SCHED_TICKS];
}

static void
sched_unpause(struct sched *sc, struct sched_item *it)
{
	TAILQ_REMOVE(
	    sched_paused(sc, it->it_deadline / SCHED_TICK_US), it, it_timed);
	sc->sc_npaused--;
}

static void
sched_tick_later(struct sched *sc)
{
	static const struct timeval tick = {0, SCHED_TICK_US};

	evtimer_add(&sc->sc_pause, &tick);
}

void
sched_pause(struct sched *sc, struct sched_item *it, uint64_t until)
{
	uint64_t now = clock_now() / SCHED_TICK_US;
	uint64_t tick = until / SCHED_TICK_US + 1;

	sched_timer(sc, it, TIMER_NONE);
	if (sc->sc_npaused++ == 0) {
		sc->sc_ticked = now;
		sched_tick_later(sc);
	}
	if (tick <= sc->sc_ticked)
		tick = sc->sc_ticked + 1;
	if (tick >= sc->sc_ticked + SCHED_TICKS)
		tick = sc->sc_ticked + SCHED_TICKS - 1;
	it->it_timer = TIMER_PAUSE;
	it->it_deadline = tick * SCHED_TICK_US;
	TAILQ_INSERT_TAIL(sched_paused(sc, tick), it, it_timed);
}

void
sched_go_on(struct sched *sc, uint64_t now)
{
	uint64_t tick = now / SCHED_TICK_US;
	struct sched_item *it;

	/* If the loop was late by more than SCHED_TICKS, checks each list only once. */
	if (tick > sc->sc_ticked + SCHED_TICKS)
		sc->sc_ticked = tick - SCHED_TICKS;
	while (sc->sc_npaused > 0 && sc->sc_ticked < tick) {
		sc->sc_ticked++;
		while ((it = TAILQ_FIRST(sched_paused(sc, sc->sc_ticked))) !=
		       NULL) {
			sched_unpause(sc, it);
			it->it_timer = TIMER_NONE;
			sched_again(sc, it);
		}
	}
	if (sc->sc_npaused > 0)
		sched_tick_later(sc);
}

void
sched_timer(struct sched *sc, struct sched_item *it, enum timer timer)
{
	if (it->it_timer == TIMER_PAUSE)
		sched_unpause(sc, it);
	else if (it->it_timer != TIMER_NONE) {
		if (sc->sc_cursor == it)
			sc->sc_cursor = TAILQ_NEXT(it, it_timed);
		TAILQ_REMOVE(&sc->sc_timers[it->it_timer], it, it_timed);
	}
	it->it_timer = timer;
	if (timer == TIMER_NONE)
		return;
	it->it_deadline = clock_now() + sc->sc_timeouts[timer];
	TAILQ_INSERT_TAIL(&sc->sc_timers[timer], it, it_timed);
}

struct sched_item *
sched_expired(struct sched *sc, uint64_t now, enum timer *which)
{
	struct sched_item *it;
	enum timer timer;

	for (timer = TIMER_NONE + 1; timer < TIMERS; timer++) {
		it = TAILQ_FIRST(&sc->sc_timers[timer]);
		if (it == NULL || it->it_deadline > now)
			continue;
		sched_timer(sc, it, TIMER_NONE);
		*which = timer;
		return it;
	}
	return NULL;
}

void
sched_add(struct sched *sc, struct sched_item *it)
{
	TAILQ_INSERT_TAIL(&sc->sc_all, it, it_all);
	if (++sc->sc_count > sc->sc_most)
		sc->sc_most = sc->sc_count;
}

static void
sched_forget(struct sched *sc, struct sched_item *it)
{
	sched_timer(sc, it, TIMER_NONE);
	if (it->it_queued)
		sched_dequeue(sc, it);
}

void
sched_remove(struct sched *sc, struct sched_item *it)
{
	sched_forget(sc, it);
	TAILQ_REMOVE(&sc->sc_all, it, it_all);
	sc->sc_count--;
}

void
sched_add_part(struct sched *sc, struct sched_item *it)
{
	TAILQ_INSERT_TAIL(&sc->sc_parts, it, it_all);
}

void
sched_remove_part(struct sched *sc, struct sched_item *it)
{
	sched_forget(sc, it);
	TAILQ_REMOVE(&sc->sc_parts, it, it_all);
}

void
sched_drain(struct sched *sc)
{
	struct sched_item *it, *next;

	for (it = TAILQ_FIRST(&sc->sc_all); it != NULL; it = next) {
		next = TAILQ_NEXT(it, it_all);
		it->it_ops->drain(it);
	}
}

void
sched_close(struct sched *sc)
{
	struct sched_item *it, *next;

	for (it = TAILQ_FIRST(&sc->sc_all); it != NULL; it = next) {
		next = TAILQ_NEXT(it, it_all);
		it->it_ops->close(it);
	}
}
