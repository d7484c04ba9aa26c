/*
 * worker: runs the event loop, with its time slices, timers and periodic work.  worker_start.c
 * creates and destroys a worker.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/os/os.h"
#include "lib/util/clock.h"

#include "server/worker/evict.h"
#include "server/content/response_cache.h"
#include "server/worker/listener.h"
#include "server/worker/worker.h"
#ifdef PW_INSIDE
#include "tests/inside/inside.h"
#endif

#define TICK_US	   250000
#define SLICES_US  100 /* time per iteration for responses in progress, us */
#define LATE_US	   300 /* age of an iteration at which new work must wait, us */
#define LATE_LOOKS 4   /* events per read of the clock */
#define MILLI_US   ((uint64_t)1000)
#define SECOND_US  ((uint64_t)1000000)
#define LESS	   ((size_t)128 << 10) /* TCP_LESS: bytes per send */
#define LITTLE	   ((size_t)8 << 10)   /* TCP_LITTLE: bytes per send */

bool
worker_late(struct worker *wk)
{
	const struct loop_profile *laps = &wk->wk_laps;

	if (!wk->wk_late && laps->lap_calls[LOOP_EVENTS] % LATE_LOOKS == 0)
		wk->wk_late = clock_now() - laps->lap_begin >= LATE_US;
	return wk->wk_late;
}

bool
worker_has_time(const struct worker *wk)
{
	return wk->wk_sched.sc_runnable == 0 &&
	       clock_now() - wk->wk_laps.lap_begin < LATE_US;
}

/*
 * Handles expired timers, but only until the time `end`, as ten thousand may expire at the same
 * moment.
 */
static void
worker_expire(struct worker *wk, uint64_t end)
{
	uint64_t now = clock_now();
	struct sched_item *it;
	enum timer timer;

	while ((it = sched_expired(&wk->wk_sched, now, &timer)) != NULL) {
		worker_lap(wk, LOOP_TIMERS);
		it->it_ops->timeout(it, timer);
		if (clock_now() >= end) {
			sched_arm(&wk->wk_sched);
			break;
		}
	}
}

/*
 * Runs ready connections for a time slice each, but only for SLICES_US in total, so that events of
 * other connections are handled soon.
 */
static void
worker_on_again(evutil_socket_t fd, short what, void *arg)
{
	struct worker *wk = arg;
	struct sched *sc = &wk->wk_sched;
	uint64_t end = clock_now() + SLICES_US;
	unsigned n = sc->sc_runnable;
	struct sched_item *it;

	(void)fd;
	(void)what;
	worker_expire(wk, end);
	worker_lap(wk, LOOP_SLICES);
	while (n-- > 0 && (it = sched_next(sc)) != NULL) {
		sc->sc_running = it;
		it->it_ops->run(it);
		sc->sc_running = NULL;
		if (clock_now() >= end)
			break;
	}
	if (!TAILQ_EMPTY(&sc->sc_run_queue))
		sched_arm(sc);
}

static void
worker_on_pause(evutil_socket_t fd, short what, void *arg)
{
	struct worker *wk = arg;

	(void)fd;
	(void)what;
	worker_lap(wk, LOOP_TIMERS);
	sched_go_on(&wk->wk_sched, clock_now());
}

static void
worker_report_refused(struct worker *wk)
{
	uint64_t refused = pw_pool_refused(wk->wk_pool);

	if (refused == wk->wk_refused ||
	    !message_rate_due(&wk->wk_refused_rate, clock_now()))
		return;
	log_warn(wk->wk_service.svc_log,
	    "%llu requests refused: a disk's queue, or a client's share of it, "
	    "is full; spread the files "
	    "over more disks, or limit the clients (client_rate)",
	    (unsigned long long)(refused - wk->wk_refused));
	wk->wk_refused = refused;
}

static void
worker_report_left_out(struct worker *wk)
{
	struct service *svc = &wk->wk_service;
	uint64_t now = clock_now();
	struct message_rate_left ml;

	while (message_rate_left_out(svc->svc_told, now, &ml))
		(ml.ml_level == LEVEL_ERROR ? log_error : log_warn)(
		    svc->svc_log, "%llu more %s",
		    (unsigned long long)ml.ml_count, ml.ml_text);
}

static void
worker_report_asleep(struct worker *wk)
{
	struct pw_sleep list[PW_SLEEPS];
	size_t n = pw_loop_sleeps(wk->wk_service.svc_loop, list);
	uint64_t us = asleep_look(&wk->wk_asleep, list, n, clock_now());
	char text[256];

	if (us == 0 || wk->wk_service.svc_conf->conf_stall_log == 0)
		return;
	asleep_text(&wk->wk_asleep, text, sizeof(text));
	log_warn(wk->wk_service.svc_log,
	    "worker %u: the event loop slept for %llu ms: %s", wk->wk_id,
	    (unsigned long long)(us / 1000), text);
}

static void
worker_look_at_tcp(struct worker *wk)
{
	if (tcp_memory_look(wk->wk_tcp_memory, clock_now()))
		counter_add(
		    &wk->wk_service.svc_stats.sta_capped[CAP_TCP_MEMORY], 1);
}

static void
worker_report_unacked(struct worker *wk)
{
	const struct tcp_memory *pr = wk->wk_tcp_memory;

	counter_add(&wk->wk_service.svc_stats.sta_capped[CAP_MEMORY], 1);
	if (!message_rate_tell(
		wk->wk_service.svc_told, TOLD_UNACKED, clock_now()))
		return;
	log_warn(wk->wk_service.svc_log,
	    "worker %u: clients that do not read hold %llu KiB in sockets "
	    "(control group: %llu MiB), so the server sends less at a time; "
	    "raise the group's limit, or lower send_timeout",
	    wk->wk_id, (unsigned long long)wk->wk_unacked.un_bytes >> 10,
	    (unsigned long long)pr->pr_limit >> 20);
}

/*
 * Bounds the bytes per send by the memory level.  A bounded loop sends copies, so that sockets pin
 * no pages of files: see pw_loop_bound.
 */
static void
worker_bound_loop(struct worker *wk)
{
	static const size_t steps[] = {
	    [TCP_ALL] = 0, [TCP_LESS] = LESS, [TCP_LITTLE] = LITTLE};

	enum tcp_level level = wk->wk_unacked.un_level;

	if (level == TCP_ALL && wk->wk_high)
		level = TCP_LESS;
	pw_loop_bound(wk->wk_service.svc_loop, steps[level]);
	atomic_store_explicit(&wk->wk_service.svc_stats.sta_unacked,
	    wk->wk_unacked.un_bytes, memory_order_relaxed);
}

void
worker_look(struct worker *wk, struct unacked_item *it, int sock)
{
	uint64_t sent = counter_get(&wk->wk_service.svc_stats.sta_sent);
	uint64_t gave = sent - wk->wk_looked;

	wk->wk_looked = sent;
	worker_look_at_tcp(wk);
	if (wk->wk_unacked.un_share == 0)
		return;
	if (unacked_gave(&wk->wk_unacked, it, sock, gave))
		worker_report_unacked(wk);
	worker_bound_loop(wk);
}

static void
worker_report_short(struct worker *wk)
{
	const struct heap_limit *hl = wk->wk_heap;

	if (!message_rate_tell(
		wk->wk_service.svc_told, TOLD_SHORT, clock_now()))
		return;
	log_warn(wk->wk_service.svc_log,
	    "connections use too much memory: the process uses %llu MiB of the "
	    "%s's %llu MiB; requests get 503 above %llu MiB; lower "
	    "max_connections, or add memory",
	    (unsigned long long)atomic_load(&hl->hl_bytes) >> 20,
	    hl->hl_grouped ? "control group" : "machine",
	    (unsigned long long)hl->hl_limit >> 20,
	    (unsigned long long)heap_limit_most(hl) >> 20);
}

static void
worker_look_at_heap(struct worker *wk, uint64_t now)
{
	if (now < wk->wk_heap_look)
		return;
	wk->wk_heap_look = now + HEAP_PERIOD_US;
	if (heap_limit_look(wk->wk_heap, now))
		worker_report_short(wk);
	wk->wk_short = heap_limit_is_short(wk->wk_heap);
	if (wk->wk_high)
		evict_closed(wk);
	if (wk->wk_high != heap_limit_is_high(wk->wk_heap)) {
		wk->wk_high = !wk->wk_high;
		worker_bound_loop(wk);
	}
}

/* Publishes whether the loop makes progress, for the watchdog and the balancers. */
static void
worker_beat(struct worker *wk)
{
	const struct stats *sta = &wk->wk_service.svc_stats;
	uint64_t done = wk->wk_moves + counter_get(&sta->sta_sent) +
			counter_get(&sta->sta_accepted);
	bool spins = spin_look(&wk->wk_spin, done, clock_thread(), clock_now());

	atomic_store_explicit(&wk->wk_spins, spins, memory_order_relaxed);
	if (!spins)
		atomic_fetch_add_explicit(
		    &wk->wk_beat, 1, memory_order_relaxed);
}

static void
worker_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct worker *wk = arg;

	(void)fd;
	(void)what;
	worker_lap(wk, LOOP_TIMERS);
	worker_beat(wk);
	worker_expire(wk, clock_now() + SLICES_US);
	pw_loop_tick(wk->wk_service.svc_loop, clock_now());
	commands_tick(&wk->wk_orders);
	worker_shed(wk);
	if (tcp_memory_is_short(wk->wk_tcp_memory))
		worker_look_at_tcp(wk);
	if (wk->wk_unacked.un_share > 0) {
		unacked_tick(&wk->wk_unacked);
		worker_bound_loop(wk);
	}
	if (wk->wk_high)
		stalled_evict(wk, clock_now());
	release_seen(&wk->wk_release, wk->wk_sched.sc_most);
	wk->wk_sched.sc_most = wk->wk_sched.sc_count;
	release_tick(&wk->wk_release, wk->wk_sched.sc_count, wk->wk_high,
	    &wk->wk_service);
	listener_tick(wk);
	sched_check(&wk->wk_sched, &wk->wk_service.svc_stats);
	atomic_store_explicit(&wk->wk_service.svc_stats.sta_cached_bytes,
	    response_cache_bytes(wk->wk_service.svc_responses),
	    memory_order_relaxed);
	worker_report_left_out(wk);
	worker_report_asleep(wk);
	if (wk->wk_id == 0)
		worker_report_refused(wk);
}

static void
worker_on_done(evutil_socket_t fd, short what, void *arg)
{
	struct worker *wk = arg;

	(void)fd;
	(void)what;
	worker_lap(wk, LOOP_DONE);
	wk->wk_moves++;
	pw_loop_drain(wk->wk_service.svc_loop);
	worker_maybe_end(wk);
}

void
worker_added(struct worker *wk, struct sched_item *it)
{
	struct stats *sta = &wk->wk_service.svc_stats;

	sched_add(&wk->wk_sched, it);
	counter_add(&sta->sta_accepted, 1);
	counter_add(&sta->sta_phase[it->it_phase], 1);
}

void
worker_removed(struct worker *wk, struct sched_item *it)
{
	sched_remove(&wk->wk_sched, it);
	counter_add(
	    &wk->wk_service.svc_stats.sta_phase[it->it_phase], -(uint64_t)1);
	worker_maybe_end(wk);
}

static void
worker_drain(struct worker *wk)
{
	if (wk->wk_draining)
		return;
	wk->wk_draining = true;
	wk->wk_drain_until =
	    clock_now() + wk->wk_sched.sc_timeouts[TIMER_GRACE];
	wk->wk_shed_at = wk->wk_drain_until;
	listener_drain(wk);
	sched_drain(&wk->wk_sched);
	worker_maybe_end(wk);
}

/*
 * Closes all sockets.  The loop ends after the last completion, because a pending disk read uses
 * the memory of its connection.
 */
static void
worker_stop(struct worker *wk)
{
	worker_drain(wk);
	listener_close(wk);
	sched_close(&wk->wk_sched);
}

static void
worker_obey(struct worker *wk, enum command order)
{
	switch (order) {
	case COMMAND_ACCEPT:
		listener_accept(wk);
		break;
	case COMMAND_DRAIN:
		worker_drain(wk);
		break;
	case COMMAND_STOP:
		worker_stop(wk);
		break;
	case COMMAND_ABANDON:
		wk->wk_abandoned = true;
		event_base_loopbreak(wk->wk_base);
		break;
	case COMMAND_PLACE:
		listener_room(wk);
		break;
	case COMMAND_WISH:
		evict_for_others(wk);
		break;
	}
}

static void
worker_on_control(evutil_socket_t fd, short what, void *arg)
{
	struct worker *wk = arg;
	unsigned given, order;

	(void)fd;
	(void)what;
	worker_lap(wk, LOOP_CONTROL);
	given = commands_take(&wk->wk_orders);
	for (order = 1; order <= COMMAND_LAST; order <<= 1)
		if ((given & order) != 0)
			worker_obey(wk, (enum command)order);
}

/*
 * Runs at wk_retry_at, when a connection that was too young may be old enough to be closed, or
 * when other workers are late with their replies.
 */
static void
worker_on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct worker *wk = arg;

	(void)fd;
	(void)what;
	worker_lap(wk, LOOP_TIMERS);
	if (wk->wk_paused)
		listener_accept(wk);
	evict_for_others(wk);
}

int
worker_watch(struct worker *wk)
{
	static const struct timeval tick = {0, TICK_US};
	struct event_base *base = wk->wk_base;

	event_assign(&wk->wk_done, base, pw_loop_fd(wk->wk_service.svc_loop),
	    EV_READ | EV_PERSIST, worker_on_done, wk);
	event_assign(&wk->wk_control, base, wk->wk_orders.od_wake[0],
	    EV_READ | EV_PERSIST, worker_on_control, wk);
	event_assign(&wk->wk_tick, base, -1, EV_PERSIST, worker_on_tick, wk);
	evtimer_assign(&wk->wk_sched.sc_again, base, worker_on_again, wk);
	evtimer_assign(&wk->wk_sched.sc_pause, base, worker_on_pause, wk);
	evtimer_assign(&wk->wk_retry, base, worker_on_retry, wk);
	if (event_add(&wk->wk_done, NULL) != 0 ||
	    event_add(&wk->wk_control, NULL) != 0 ||
	    event_add(&wk->wk_tick, &tick) != 0)
		return -ENOMEM;
	return 0;
}

static void
worker_tell_stall(struct worker *wk, uint64_t us, uint64_t now)
{
	char text[256];

	counter_add(&wk->wk_service.svc_stats.sta_stalls, 1);
	if (!message_rate_tell(wk->wk_service.svc_told, TOLD_STALL, now))
		return;
	profile_text(&wk->wk_laps, text, sizeof(text));
	log_warn(wk->wk_service.svc_log,
	    "worker %u: an event-loop iteration took %llu ms: %s", wk->wk_id,
	    (unsigned long long)(us / 1000), text);
}

static void
worker_iteration_ended(struct worker *wk)
{
	uint64_t now, us,
	    limit = wk->wk_service.svc_conf->conf_stall_log * MILLI_US;

	if (wk->wk_laps.lap_kind == LOOP_NONE)
		return;
	now = clock_now();
	pw_loop_rest(wk->wk_service.svc_loop, now);
	worker_look_at_heap(wk, now);
	us = profile_end(&wk->wk_laps, now);
	pw_histogram_add(&wk->wk_service.svc_stats.sta_iteration, us);
	if (us > counter_get(&wk->wk_service.svc_stats.sta_longest))
		atomic_store_explicit(&wk->wk_service.svc_stats.sta_longest, us,
		    memory_order_relaxed);
	if (limit > 0 && us >= limit)
		worker_tell_stall(wk, us, now);
	profile_clear(&wk->wk_laps);
	wk->wk_late = false;
}

/* Returns true if the iteration did more than run timers, so that more events may follow soon. */
static bool
worker_iteration_served(const struct worker *wk)
{
	int kind;

	for (kind = LOOP_NONE + 1; kind < LOOP_PHASES; kind++)
		if (kind != LOOP_TIMERS && wk->wk_laps.lap_calls[kind] > 0)
			return true;
	return false;
}

/* Returns true if the loop should poll for events without sleeping (busy_poll). */
static bool
worker_stay_awake(struct worker *wk, bool served)
{
	uint64_t now, us = wk->wk_service.svc_conf->conf_busy_poll;

	if (us == 0)
		return false;
	now = clock_now();
	if (served)
		wk->wk_awake = now + us;
	return now < wk->wk_awake;
}

/*
 * Returns true if the loop has ended.  After worker_maybe_end has broken the loop, the same
 * callback may have begun more work, such as dropping pages of the last response; the completion of
 * that work breaks the loop again.
 */
static bool
worker_has_ended(const struct worker *wk)
{
	return event_base_got_break(wk->wk_base) &&
	       (wk->wk_abandoned ||
		   pw_loop_pending(wk->wk_service.svc_loop) == 0);
}

/* Ends the process after a failed wait for events, so that the master starts another one. */
static void
worker_loop_failed(const struct worker *wk)
{
	log_error(NULL,
	    "worker %u: cannot wait for events: ending the server process",
	    wk->wk_id);
	_exit(EXIT_FAILURE);
}

/* Runs single iterations, to measure each one, since libevent does not report their durations. */
static void
worker_run(struct worker *wk)
{
	int error, flags = EVLOOP_ONCE;
	bool served;

	do {
		error = event_base_loop(wk->wk_base, flags);
		served = worker_iteration_served(wk);
		worker_iteration_ended(wk);
		flags = worker_stay_awake(wk, served)
			    ? EVLOOP_ONCE | EVLOOP_NONBLOCK
			    : EVLOOP_ONCE;
	} while (error == 0 && !worker_has_ended(wk));
	if (error == -1)
		worker_loop_failed(wk);
}

void
worker_main(void *arg)
{
	struct worker *wk = arg;
	char name[16];

	snprintf(name, sizeof(name), "pw-worker%u", wk->wk_id);
	os_thread_name(name);
#ifdef PW_INSIDE
	inside_try(wk);
#endif
	worker_run(wk);
	sched_check(&wk->wk_sched, &wk->wk_service.svc_stats);
	/* Without connections the other workers end too, and the process. */
	if (!wk->wk_abandoned && !limits_are_unused(wk->wk_clients))
		worker_shed_all(wk);
}
