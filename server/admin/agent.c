/*
 * agent: see agent.h.
 */
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util/clock.h"

#include "server/admin/accept_error.h"
#include "server/admin/agent.h"
#include "server/admin/prometheus.h"
#include "server/admin/weight.h"
#include "server/content/health.h"
#include "server/worker/worker.h"

#define LINE	     512 /* maximum bytes of a line, with the NUL */
#define QUEUES	     256 /* maximum number of disk queues */
/* time for the client to close, microseconds */
#define LINGER_US    ((uint64_t)2000000)
#define ACCEPTS	     64 /* connections accepted per sample period */
#define READY_US     ((uint64_t)60000000) /* duration of "up ready", us */
/* two ticks of an event loop, microseconds */
#define LATE_TICK_US ((uint64_t)500000)

/* A disk queue at its last sample. */
struct seen_queue {
	uint64_t sq_dev;
	const char *sq_queue;
	uint64_t sq_jobs; /* completed jobs */
	uint64_t sq_wait; /* total wait, microseconds */
	/* time of the last sample with a completion or no busy thread, us */
	uint64_t sq_working;
};

/* An event loop at its last sample. */
struct seen_loop {
	uint64_t sl_iterations;
	uint64_t sl_time;    /* sum of durations, microseconds */
	uint64_t sl_beat;    /* last value of wk_beat */
	uint64_t sl_beat_at; /* time when sl_beat changed, us */
};

/* A connection whose line was sent, and whose client has not closed. */
struct lingering {
	struct agent *lg_agent;
	struct bufferevent *lg_bev; /* owned; agent_end frees it */
	uint64_t lg_until;	    /* time when the connection is closed, us */
	TAILQ_ENTRY(lingering) lg_link;
};

struct agent {
	const struct metrics *ag_metrics;
	const struct health *ag_health;
	struct evconnlistener *ag_listener;
	struct event *ag_timer;
	unsigned ag_accepted; /* connections since the last sample */
	struct event_base *ag_base;
	struct weight ag_weight;
	/* end of "up ready", us; 0 until the first check */
	uint64_t ag_ready_until;
	uint64_t ag_checks;		      /* connections since the start */
	TAILQ_HEAD(, lingering) ag_lingering; /* oldest first */
	unsigned ag_nlingering;
	size_t ag_nqueues;
	struct seen_queue ag_queues[QUEUES];
	struct seen_loop ag_loops[]; /* array of conf_workers */
};

/* ------------------------------------------------------------------- weight */

static double
agent_minimum(double a, double b)
{
	return a < b ? a : b;
}

/* Finds or adds a queue.  Returns NULL if there are more than QUEUES. */
static struct seen_queue *
agent_find_queue(
    struct agent *ag, const struct pw_device_stats *ds, uint64_t now)
{
	struct seen_queue *sq;

	for (size_t i = 0; i < ag->ag_nqueues; i++) {
		sq = &ag->ag_queues[i];
		if (sq->sq_dev == ds->ds_dev &&
		    strcmp(sq->sq_queue, ds->ds_queue) == 0)
			return sq;
	}
	if (ag->ag_nqueues == QUEUES)
		return NULL;
	sq = &ag->ag_queues[ag->ag_nqueues++];
	*sq = (struct seen_queue){.sq_dev = ds->ds_dev,
	    .sq_queue = ds->ds_queue,
	    .sq_jobs = ds->ds_jobs,
	    .sq_wait = ds->ds_wait.hg_sum,
	    .sq_working = now};
	return sq;
}

static double
agent_queue_weight(
    struct agent *ag, const struct pw_device_stats *ds, uint64_t now)
{
	struct seen_queue *sq = agent_find_queue(ag, ds, now);
	uint64_t jobs, wait;

	if (sq == NULL)
		return 1;
	jobs = ds->ds_jobs - sq->sq_jobs;
	wait = ds->ds_wait.hg_sum - sq->sq_wait;
	sq->sq_jobs = ds->ds_jobs;
	sq->sq_wait = ds->ds_wait.hg_sum;
	if (jobs > 0 || ds->ds_busy == 0)
		sq->sq_working = now;
	return agent_minimum(jobs > 0 ? weight_of_wait(wait / jobs) : 1,
	    weight_of_silence(now - sq->sq_working));
}

/*
 * Returns the weight that the disks permit.  Ignores the queue "tasks", since a listing may
 * take long even on a fast disk.
 */
static double
agent_disks_weight(struct agent *ag, uint64_t now)
{
	struct pw_device_stats list[QUEUES];
	size_t n = pw_pool_devices(ag->ag_metrics->mt_pool, list, QUEUES);
	double part = 1;

	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].ds_queue, "tasks") != 0)
			part = agent_minimum(
			    part, agent_queue_weight(ag, &list[i], now));
	return part;
}

static double
agent_loop_weight(struct seen_loop *sl, const struct worker *wk, uint64_t now)
{
	uint64_t beat =
	    atomic_load_explicit(&wk->wk_beat, memory_order_relaxed);
	uint64_t turns = 0, then = sl->sl_iterations, time = sl->sl_time,
		 lag = 0;
	struct pw_histogram hg;

	pw_histogram_copy(&hg, &wk->wk_service.svc_stats.sta_iteration);
	for (size_t i = 0; i < PW_HISTOGRAM; i++)
		turns += hg.hg_count[i];
	sl->sl_iterations = turns;
	sl->sl_time = hg.hg_sum;
	if (turns > then)
		lag = (hg.hg_sum - time) / (turns - then);
	if (beat != sl->sl_beat || sl->sl_beat_at == 0) {
		sl->sl_beat = beat;
		sl->sl_beat_at = now;
	}
	if (now - sl->sl_beat_at > LATE_TICK_US + lag)
		lag = now - sl->sl_beat_at - LATE_TICK_US;
	return weight_of_lag(lag);
}

static void
agent_end(struct lingering *lg)
{
	TAILQ_REMOVE(&lg->lg_agent->ag_lingering, lg, lg_link);
	lg->lg_agent->ag_nlingering--;
	bufferevent_free(lg->lg_bev);
	free(lg);
}

/*
 * Closes connections after LINGER_US even if the client keeps sending.  A read timeout would
 * restart whenever the client sends.
 */
static void
agent_end_lingering(struct agent *ag, uint64_t now)
{
	struct lingering *lg, *next;

	for (lg = TAILQ_FIRST(&ag->ag_lingering);
	     lg != NULL && now >= lg->lg_until; lg = next) {
		next = TAILQ_NEXT(lg, lg_link);
		agent_end(lg);
	}
}

/*
 * Resumes accepting after a pause.  libevent accepts until the backlog is empty, so the limit of
 * ACCEPTS leaves time for the thread's other events.
 */
static void
agent_accept_again(struct agent *ag)
{
	if (ag->ag_accepted >= ACCEPTS)
		evconnlistener_enable(ag->ag_listener);
	ag->ag_accepted = 0;
}

static void
agent_on_sample(evutil_socket_t fd, short what, void *arg)
{
	struct agent *ag = arg;
	const struct metrics *mt = ag->ag_metrics;
	uint64_t now = clock_now();
	struct pw_pool_stats ps;
	double part;

	(void)fd;
	(void)what;
	agent_end_lingering(ag, now);
	agent_accept_again(ag);
	pw_pool_stats(mt->mt_pool, &ps);
	part = agent_minimum(weight_of_budget(ps.ps_unsent, ps.ps_unsent_max),
	    agent_disks_weight(ag, now));
	for (unsigned i = 0; i < mt->mt_conf->conf_workers; i++)
		part = agent_minimum(part, agent_loop_weight(&ag->ag_loops[i],
					       mt->mt_workers[i], now));
	weight_add(&ag->ag_weight, part);
}

/* ---------------------------------------------------------------------- response */

/*
 * Returns true if the line must contain "ready": for READY_US from the first check on, after the
 * start of the server and after each end of a drain.
 */
static bool
agent_is_ready(struct agent *ag, uint64_t now)
{
	if (!atomic_load(&ag->ag_health->hl_restored))
		return false;
	if (ag->ag_ready_until == 0)
		ag->ag_ready_until = now + READY_US;
	return now < ag->ag_ready_until;
}

/*
 * Writes the line of the response.  Replaces control characters, which names of sites may contain.
 */
static void
agent_write_line(struct agent *ag, char line[static LINE])
{
	const struct health *hl = ag->ag_health;
	char why[LINE - sizeof("down # \n")];
	uint64_t now = clock_now();
	size_t len;

	if (atomic_load(&hl->hl_ending))
		snprintf(line, LINE - 1, "drain");
	else if (!health_is_well(hl, now, why, sizeof(why)))
		snprintf(line, LINE - 1, "down # %s", why);
	else if (health_drains(hl)) {
		ag->ag_ready_until = 0;
		snprintf(line, LINE - 1, "drain");
	} else
		snprintf(line, LINE - 1, "up %s%u%%",
		    agent_is_ready(ag, now) ? "ready " : "",
		    ag->ag_weight.wt_said);
	for (char *c = line; *c != '\0'; c++)
		if ((unsigned char)*c < ' ')
			*c = '?';
	len = strlen(line);
	line[len] = '\n';
	line[len + 1] = '\0';
}

/*
 * Shuts down the sending side only.  If the client has sent data, a close would reset the
 * connection and lose the line.
 */
static void
agent_on_sent(struct bufferevent *bev, void *arg)
{
	(void)arg;
	shutdown(bufferevent_getfd(bev), SHUT_WR);
}

static void
agent_on_received(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);

	(void)arg;
	evbuffer_drain(in, evbuffer_get_length(in));
}

static void
agent_on_end(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	(void)what;
	agent_end(arg);
}

/*
 * Lets the connection linger.  Closes the oldest one that lingers if there are AGENT_LINGERING.  Returns NULL
 * if memory is short; the caller must then close the connection.
 */
static struct lingering *
agent_linger(struct agent *ag, int fd)
{
	struct lingering *lg;

	if (ag->ag_nlingering == AGENT_LINGERING)
		agent_end(TAILQ_FIRST(&ag->ag_lingering));
	lg = calloc(1, sizeof(*lg));
	if (lg == NULL)
		return NULL;
	lg->lg_bev =
	    bufferevent_socket_new(ag->ag_base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (lg->lg_bev == NULL) {
		free(lg);
		return NULL;
	}
	lg->lg_agent = ag;
	lg->lg_until = clock_now() + LINGER_US;
	TAILQ_INSERT_TAIL(&ag->ag_lingering, lg, lg_link);
	ag->ag_nlingering++;
	return lg;
}

static void
agent_on_connection(struct evconnlistener *listener, evutil_socket_t fd,
    struct sockaddr *sa, int len, void *arg)
{
	struct agent *ag = arg;
	struct lingering *lg = agent_linger(ag, fd);
	char line[LINE];

	(void)sa;
	(void)len;
	ag->ag_checks++;
	if (++ag->ag_accepted == ACCEPTS)
		evconnlistener_disable(listener);
	agent_write_line(ag, line);
	if (lg == NULL) {
		(void)send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
		close(fd);
		return;
	}
	bufferevent_setcb(
	    lg->lg_bev, agent_on_received, agent_on_sent, agent_on_end, lg);
	if (bufferevent_write(lg->lg_bev, line, strlen(line)) != 0 ||
	    bufferevent_enable(lg->lg_bev, EV_READ | EV_WRITE) != 0)
		agent_end(lg);
}

/* ------------------------------------------------------------------------ creation and end */

void
agent_metrics(const struct agent *ag, struct evbuffer *out)
{
	if (ag == NULL)
		return;
	prometheus_simple(out, "pagewise_agent_checks_total", "counter",
	    ag->ag_checks, "HAProxy agent checks that got a response.");
	prometheus_simple(out, "pagewise_agent_weight_percent", "gauge",
	    ag->ag_weight.wt_said,
	    "Weight that the agent reports to HAProxy, in percent.");
	prometheus_simple(out, "pagewise_draining", "gauge",
	    health_drains(ag->ag_health),
	    "1 while health checks tell balancers to send no new clients.");
}

static int
agent_start(struct agent *ag, int fd)
{
	static const struct timeval period = {0, WEIGHT_PERIOD_US};
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy == -1)
		return -errno;
	ag->ag_listener = evconnlistener_new(ag->ag_base, agent_on_connection,
	    ag,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_DISABLED, 0,
	    copy);
	if (ag->ag_listener == NULL) {
		close(copy);
		return -ENOMEM;
	}
	evconnlistener_set_error_cb(ag->ag_listener, accept_error);
	ag->ag_timer =
	    event_new(ag->ag_base, -1, EV_PERSIST, agent_on_sample, ag);
	if (ag->ag_timer == NULL || event_add(ag->ag_timer, &period) != 0)
		return -ENOMEM;
	return 0;
}

int
agent_create(struct event_base *base, int fd, const struct metrics *mt,
    const struct health *hl, struct agent **out)
{
	unsigned n = mt->mt_conf->conf_workers;
	struct agent *ag = calloc(1, sizeof(*ag) + n * sizeof(*ag->ag_loops));
	int error;

	if (ag == NULL)
		return -ENOMEM;
	TAILQ_INIT(&ag->ag_lingering);
	ag->ag_base = base;
	ag->ag_metrics = mt;
	ag->ag_health = hl;
	weight_init(&ag->ag_weight);
	error = agent_start(ag, fd);
	if (error == 0)
		*out = ag;
	else
		agent_destroy(&ag);
	return error;
}

void
agent_accept(struct agent *ag)
{
	if (ag != NULL)
		evconnlistener_enable(ag->ag_listener);
}

void
agent_destroy(struct agent **agp)
{
	struct agent *ag = *agp;

	if (ag == NULL)
		return;
	*agp = NULL;
	agent_end_lingering(ag, UINT64_MAX);
	if (ag->ag_listener != NULL)
		evconnlistener_free(ag->ag_listener);
	if (ag->ag_timer != NULL)
		event_free(ag->ag_timer);
	free(ag);
}
