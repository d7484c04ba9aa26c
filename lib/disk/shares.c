/*
 * shares: see shares.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/disk/shares.h"

void
shares_init(struct shares *sh)
{
	size_t i;

	*sh = (struct shares){0};
	for (i = 0; i < JOB_KINDS; i++)
		TAILQ_INIT(&sh->sh_rings[i]);
	for (i = 0; i < SHARES_CHAINS; i++)
		LIST_INIT(&sh->sh_chains[i]);
	sh->sh_seen = sh->sh_all = &sh->sh_alone;
	sh->sh_processes = 1;
}

void
shares_share(struct shares *sh, struct shares_common *co, unsigned process,
    uint64_t device)
{
	size_t n =
	    (size_t)(device * 0x9e3779b97f4a7c15U >> 32) % SHARES_DEVICES;

	sh->sh_all = &co->co_seen[0][n];
	sh->sh_seen = &co->co_seen[process % SHARES_PROCESSES][n];
	sh->sh_processes = SHARES_PROCESSES;
}

static void
shares_tell(_Atomic uint64_t *until, uint64_t us)
{
	atomic_store_explicit(until, us, memory_order_relaxed);
}

static bool
shares_counts(const _Atomic uint64_t *until, uint64_t now_us)
{
	return now_us < atomic_load_explicit(until, memory_order_relaxed);
}

/* Returns the entry of a client (of == NULL) or of a connection of the client, or NULL if memory is short. */
static struct share *
shares_get(struct shares *sh, struct share *of, unsigned number)
{
	unsigned chain = (number * 0x9e3779b1U) >> 22;
	struct share *shr;
	size_t i;

	LIST_FOREACH(shr, &sh->sh_chains[chain], shr_next)
	if (shr->shr_number == number && shr->shr_client == of)
		return shr;
	shr = calloc(1, sizeof(*shr));
	if (shr == NULL)
		return NULL;
	shr->shr_client = of;
	shr->shr_number = number;
	for (i = 0; i < JOB_KINDS; i++) {
		TAILQ_INIT(&shr->shr_lines[i].li_ring);
		TAILQ_INIT(&shr->shr_lines[i].li_jobs);
	}
	LIST_INSERT_HEAD(&sh->sh_chains[chain], shr, shr_next);
	return shr;
}

static void
shares_put(struct share *shr)
{
	if (shr->shr_jobs > 0)
		return;
	LIST_REMOVE(shr, shr_next);
	free(shr);
}

/* Returns the connection of this number, or NULL if memory is short. */
static struct share *
shares_connection(struct shares *sh, unsigned number)
{
	struct share *client =
	    shares_get(sh, NULL, number >> SHARES_CONNECTION);
	struct share *conn =
	    client == NULL ? NULL : shares_get(sh, client, number);

	if (client != NULL && conn == NULL)
		shares_put(client);
	return conn;
}

static void
shares_count(struct share *shr, const struct job *job, unsigned n)
{
	shr->shr_jobs += n;
	if (shares_is_crowd(job->job_kind))
		shr->shr_crowd += n;
	else if (job->job_kind == JOB_NEW || job->job_kind == JOB_OPEN)
		shr->shr_light += n;
}

static bool
shares_crowds(const struct share *conn)
{
	return conn->shr_number != 0 &&
	       (conn->shr_crowd > 0 ||
		   conn->shr_client->shr_light >= SHARES_CLIENT);
}

static enum job_kind
shares_kind(const struct share *conn, enum job_kind kind)
{
	if (kind == JOB_OPEN && shares_crowds(conn))
		return JOB_CROWD_OPEN;
	return kind == JOB_NEW && shares_crowds(conn) ? JOB_CROWD_NEW : kind;
}

static void
shares_insert(struct shares *sh, struct share *conn, struct job *job)
{
	enum job_kind kind = job->job_kind;
	struct share *client = conn->shr_client;

	if (sh->sh_waiting[kind]++ == 0 && sh->sh_used[kind] < sh->sh_now)
		sh->sh_used[kind] = sh->sh_now;
	if (TAILQ_EMPTY(&client->shr_lines[kind].li_ring))
		TAILQ_INSERT_TAIL(
		    &sh->sh_rings[kind], client, shr_lines[kind].li_next);
	if (TAILQ_EMPTY(&conn->shr_lines[kind].li_jobs))
		TAILQ_INSERT_TAIL(&client->shr_lines[kind].li_ring, conn,
		    shr_lines[kind].li_next);
	TAILQ_INSERT_TAIL(&conn->shr_lines[kind].li_jobs, job, job_next);
	job->job_share = conn;
	shares_count(conn, job, 1);
	shares_count(client, job, 1);
	client->shr_queued++;
	job->job_other = conn->shr_number != 0 && client->shr_crowd == 0;
	sh->sh_others += job->job_other;
	sh->sh_last += conn->shr_number == POOL_LAST;
	job->job_queued = true;
}

void
shares_take(struct shares *sh, struct job *job)
{
	enum job_kind kind = job->job_kind;
	struct share *conn = job->job_share, *client = conn->shr_client;
	struct share_ring *ring = &client->shr_lines[kind].li_ring;

	TAILQ_REMOVE(&conn->shr_lines[kind].li_jobs, job, job_next);
	TAILQ_REMOVE(ring, conn, shr_lines[kind].li_next);
	if (!TAILQ_EMPTY(&conn->shr_lines[kind].li_jobs))
		TAILQ_INSERT_TAIL(ring, conn, shr_lines[kind].li_next);
	TAILQ_REMOVE(&sh->sh_rings[kind], client, shr_lines[kind].li_next);
	if (!TAILQ_EMPTY(ring))
		TAILQ_INSERT_TAIL(
		    &sh->sh_rings[kind], client, shr_lines[kind].li_next);
	client->shr_queued--;
	sh->sh_last -= conn->shr_number == POOL_LAST;
	job->job_queued = false;
}

/* Ends the job's part in its connection, which may be freed. */
static void
shares_release(struct shares *sh, struct job *job, uint64_t now_us)
{
	struct share *conn = job->job_share, *client = conn->shr_client;

	if (job->job_other) {
		sh->sh_others--;
		shares_tell(&sh->sh_seen->se_others,
		    now_us + (sh->sh_others > 0 ? SHARES_HELD : SHARES_LATELY));
	}
	shares_count(conn, job, -1U);
	shares_count(client, job, -1U);
	job->job_share = NULL;
	shares_put(conn);
	shares_put(client);
}

/* Moves a queued job to another connection, as a job of this kind. */
static void
shares_move(struct shares *sh, struct job *job, struct share *conn,
    enum job_kind kind, uint64_t now_us)
{
	struct share *client = conn->shr_client;

	/* Both may be new, and those of the job may be the same. */
	conn->shr_jobs++;
	client->shr_jobs++;
	shares_take(sh, job);
	sh->sh_waiting[job->job_kind]--;
	shares_release(sh, job, now_us);
	job->job_kind = kind;
	job->job_client = conn->shr_number;
	shares_insert(sh, conn, job);
	conn->shr_jobs--;
	client->shr_jobs--;
}

int
shares_add(struct shares *sh, struct job *job, unsigned most)
{
	struct share *conn = shares_connection(sh, job->job_client);

	if (conn == NULL)
		return -ENOMEM;
	if (conn->shr_number != 0 && conn->shr_client->shr_queued >= most) {
		shares_put(conn);
		return -EAGAIN;
	}
	job->job_plain = job->job_kind;
	job->job_kind = shares_kind(conn, job->job_kind);
	shares_insert(sh, conn, job);
	return 0;
}

void
shares_join(struct shares *sh, struct job *job, enum job_kind kind,
    unsigned client, uint64_t now_us)
{
	bool first = job->job_kind == JOB_LONG && kind == JOB_NEW;
	struct share *conn;

	if (!job->job_queued || (!first && !shares_is_crowd(job->job_kind)))
		return;
	if (!first)
		kind = job->job_plain;
	conn = shares_connection(sh, client);
	if (conn == NULL)
		return;
	if (shares_kind(conn, kind) != kind) {
		shares_put(conn); /* its client has jobs, too, if it crowds */
		return;
	}
	job->job_plain = kind;
	shares_move(sh, job, conn, kind, now_us);
}

bool
shares_defer(struct shares *sh, struct job *job, uint64_t now_us)
{
	bool lookup = job->job_plain == JOB_OPEN || job->job_plain == JOB_AGAIN;
	struct share *conn = shares_connection(sh, POOL_LAST);

	if (conn == NULL)
		return false;
	shares_move(
	    sh, job, conn, lookup ? JOB_CROWD_OPEN : JOB_CROWD_NEW, now_us);
	return true;
}

struct job *
shares_first(const struct shares *sh, enum job_kind kind)
{
	const struct share *client = TAILQ_FIRST(&sh->sh_rings[kind]);
	const struct share *conn;

	if (client == NULL)
		return NULL;
	conn = TAILQ_FIRST(&client->shr_lines[kind].li_ring);
	return TAILQ_FIRST(&conn->shr_lines[kind].li_jobs);
}

/* Returns true if a process has jobs of others, or had one lately. */
static bool
shares_has_others(const struct shares *sh, uint64_t now_us)
{
	size_t i;

	for (i = 0; i < sh->sh_processes; i++)
		if (shares_counts(
			&sh->sh_all[i * SHARES_DEVICES].se_others, now_us))
			return true;
	return sh->sh_others > 0;
}

/* Returns the number of processes with a crowd, including this one. */
static unsigned
shares_crowd_processes(const struct shares *sh, uint64_t now_us)
{
	const struct shares_seen *se = sh->sh_all;
	unsigned n = 1;
	size_t i;

	for (i = 0; i < sh->sh_processes; i++, se += SHARES_DEVICES)
		n += se != sh->sh_seen && shares_counts(&se->se_crowd, now_us);
	return n;
}

/*
 * Returns the number of threads that the crowd of this process may occupy, and sets *pause to the time
 * between two of its jobs if it may occupy less than one.
 */
static unsigned
shares_crowd_threads(
    const struct shares *sh, unsigned threads, uint64_t now_us, uint64_t *pause)
{
	unsigned most, n;

	*pause = 0;
	if (sh->sh_longest <= SHARES_FAST || !shares_has_others(sh, now_us))
		return threads < 2 ? 1 : threads * 3 / 4;
	most = threads / SHARES_THREADS;
	if (most == 0)
		most = 1;
	n = shares_crowd_processes(sh, now_us);
	if (n <= most)
		return most / n;
	*pause = sh->sh_crowd_took * (n - most) / most;
	return 1;
}

bool
shares_crowd_may(struct shares *sh, unsigned threads, uint64_t now_us)
{
	uint64_t pause;

	shares_tell(&sh->sh_seen->se_crowd, now_us + SHARES_LATELY);
	return sh->sh_crowd <
		   shares_crowd_threads(sh, threads, now_us, &pause) &&
	       now_us >= sh->sh_crowd_at + pause;
}

uint64_t
shares_crowd_pause(const struct shares *sh, unsigned threads, uint64_t now_us)
{
	uint64_t pause;

	if (sh->sh_crowd > 0 ||
	    sh->sh_waiting[JOB_CROWD_NEW] + sh->sh_waiting[JOB_CROWD_OPEN] == 0)
		return 0;
	shares_crowd_threads(sh, threads, now_us, &pause);
	pause += sh->sh_crowd_at;
	if (now_us >= pause)
		return 0;
	pause -= now_us;
	return pause < SHARES_LATELY / 2 ? pause : SHARES_LATELY / 2;
}

bool
shares_before(const struct shares *sh, enum job_kind a, enum job_kind b)
{
	return sh->sh_used[a] < sh->sh_used[b];
}

void
shares_begin(struct shares *sh, struct job *job, uint64_t now_us)
{
	enum job_kind kind = job->job_kind;

	sh->sh_waiting[kind]--;
	sh->sh_now = sh->sh_used[kind];
	job->job_began = now_us;
	job->job_charge = sh->sh_cost[kind];
	sh->sh_used[kind] += job->job_charge;
	sh->sh_crowd += shares_is_crowd(kind);
	if (job->job_other)
		shares_tell(&sh->sh_seen->se_others, now_us + SHARES_HELD);
}

/* Follows the longest of the last times, except those of jobs that found everything in memory. */
static void
shares_note_time(struct shares *sh, uint64_t us)
{
	if (us > sh->sh_longest)
		sh->sh_longest = us;
	else if (us >= SHARES_READS)
		sh->sh_longest -= sh->sh_longest / 64;
}

void
shares_end(struct shares *sh, struct job *job, uint64_t now_us)
{
	enum job_kind kind = job->job_kind;
	uint64_t took = now_us - job->job_began;

	if (took > SHARES_LONGEST)
		took = SHARES_LONGEST;
	if (!job->job_left && kind != JOB_LONG && kind != JOB_SHORT)
		shares_note_time(sh, took);
	if (shares_is_crowd(kind)) {
		if (!job->job_left) {
			sh->sh_crowd_at = now_us;
			sh->sh_crowd_took = took;
		}
		took *= SHARES_COST;
		sh->sh_crowd--;
	}
	sh->sh_used[kind] += took - job->job_charge;
	if (!job->job_left)
		sh->sh_cost[kind] += took / 8 - sh->sh_cost[kind] / 8;
	shares_release(sh, job, now_us);
}
