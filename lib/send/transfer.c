/*
 * transfer: functions that all send paths share: they send a chunk, begin and end a wait for
 * a completion, and compute the end of a window or a chunk.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "lib/os/os.h"
#include "lib/disk/tier_fetch.h"
#include "lib/file/residency.h"
#include "lib/send/facts.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"
#include "lib/send/window_size.h"
#include "lib/util/clock.h"
#include "lib/util/offset.h"

/* Returns ss_window or, if that exceeds the reach, a power of two from WINDOW_LEAST. */
static off_t
transfer_window(const struct pw_send *s)
{
	size_t size = WINDOW_LEAST, window = send_priv(s)->ss_window;

	if (window > 0 && window <= send_reach(s))
		return (off_t)window;
	while (2 * size <= send_reach(s))
		size *= 2;
	return (off_t)size;
}

off_t
send_window_end(const struct pw_send *s, off_t from)
{
	off_t end =
	    offset_next(from, transfer_window(s), s->snd_off + s->snd_len);
	off_t extent = send_priv(s)->ss_extent;

	if (from < extent && extent < end)
		end = extent;
	/* A copy lies in one OS_FOLIO of the file. */
	if (s->snd_file != NULL && tier_fetch_needs_copy(s->snd_file))
		end = offset_next(from, OS_FOLIO, end);
	return send_priv(s)->ss_reach < end ? send_priv(s)->ss_reach : end;
}

struct pw_send *
send_of_waiter(struct pw_waiter *w)
{
	return (
	    struct pw_send *)(void *)((char *)w -
				      (offsetof(struct pw_send, snd_private) +
					  offsetof(
					      struct send_private, ss_waiter)));
}

void
send_pending_begin(struct pw_send *s, void (*done)(struct pw_waiter *))
{
	send_priv(s)->ss_waiter.wt_done = done;
	send_priv(s)->ss_since = clock_now();
	send_priv(s)->ss_wait = SEND_WAIT_THREAD;
	send_priv(s)->ss_ended =
	    device_ended(file_priv(s->snd_file)->fp_device);
	s->snd_pending = true;
}

void
send_pending_end(struct pw_send *s, int error)
{
	s->snd_pending = false;
	s->snd_wait += clock_now() - send_priv(s)->ss_since;
	if (s->snd_error == 0)
		s->snd_error = error;
}

enum pw_send_status
send_pending_fail(struct pw_send *s, int error)
{
	s->snd_pending = false;
	s->snd_error = error;
	return PW_SEND_ERROR;
}

/* Returns how a full queue treats a job of the transmission. */
static enum admit
transfer_admit(const struct pw_send *s)
{
	return s->snd_begun || s->snd_sent > 0 ? ADMIT_BEGUN : ADMIT_NEW;
}

/* Returns JOB_NEW for a first window, as in pool_fetch. */
static enum job_kind
transfer_kind(const struct pw_send *s, enum job_kind kind)
{
	return kind == JOB_LONG && !s->snd_path->path_queues &&
		       transfer_admit(s) == ADMIT_NEW
		   ? JOB_NEW
		   : kind;
}

unsigned
send_client(const struct pw_send *s)
{
	const struct pw_loop_conf *conf = &s->snd_loop->lp_conf;

	if (conf->plc_client == NULL || s->snd_error != 0)
		return 0;
	return conf->plc_client(conf->plc_arg, s);
}

struct send_job {
	struct job sj_job; /* first member, as free(job) frees this struct */
	struct pw_send *sj_send;
	int (*sj_run)(struct pw_send *);
};

static int
transfer_job_run(struct job *job)
{
	struct send_job *sj = (struct send_job *)job;

	return sj->sj_run(sj->sj_send);
}

int
send_on_pool(
    struct pw_send *s, enum job_kind kind, int (*run)(struct pw_send *))
{
	struct send_job *sj = calloc(1, sizeof(*sj));
	int error;

	if (sj == NULL)
		return -ENOMEM;
	sj->sj_job.job_run = transfer_job_run;
	sj->sj_job.job_kind = transfer_kind(s, kind);
	sj->sj_job.job_stays = true;
	send_priv(s)->ss_waiter.wt_client = send_client(s);
	sj->sj_send = s;
	sj->sj_run = run;
	error = pool_submit(file_priv(s->snd_file)->fp_device, &sj->sj_job,
	    transfer_admit(s), s->snd_loop, &send_priv(s)->ss_waiter);
	if (error != 0)
		free(sj);
	return error;
}

int
send_fetch(struct pw_send *s, off_t off, size_t len, enum admit admit,
    struct pw_waiter *w)
{
	enum fetch_how how = send_priv(s)->ss_how;
	enum tier_use use;
	int error;

	w->wt_client = send_client(s);
	if (!send_takes_tier(s))
		return !tier_fetch_needs_copy(s->snd_file)
			   ? pool_fetch(s->snd_file, off, len, how, admit, w)
			   : pool_fetch_copy(
				 s->snd_file, off, len, FETCH_PAGES, admit, w);
	use = send_priv(s)->ss_tier_use;
	error = tier_fetch(s->snd_file, off, len, how, &use, admit, w);
	send_priv(s)->ss_tier_use = use;
	return error;
}

/* Counts whole pieces also for a range that the tier does not have, which costs no search. */
size_t
send_fetch_room(struct pw_send *s, off_t off, size_t len)
{
	return send_takes_tier(s) ? tier_fetch_room(off, len) : len;
}

int
send_fetch_by_pool(struct pw_send *s, off_t off, size_t len)
{
	return send_fetch(
	    s, off, len, transfer_admit(s), &send_priv(s)->ss_waiter);
}

int
send_map_by_pool(struct pw_send *s, off_t off)
{
	send_priv(s)->ss_waiter.wt_client = send_client(s);
	return pool_fetch(s->snd_file, off, 1, FETCH_MAP, transfer_admit(s),
	    &send_priv(s)->ss_waiter);
}

uint64_t
send_limited(const struct pw_send *s, uint64_t bytes)
{
	return s->snd_limit > 0 && s->snd_limit < bytes ? s->snd_limit : bytes;
}

/* Returns ss_chunk, or SEND_CHUNK_LESS for bytes that are copied, and for a path that checks no residency. */
static size_t
transfer_chunk(const struct pw_send *s)
{
	size_t chunk = send_priv(s)->ss_chunk;
	bool less = sink_copies(s) || !s->snd_path->path_prefetches ||
		    s->snd_mem_len >= SEND_HEAD ||
		    (s->snd_len > 0 &&
			device_copies(file_priv(s->snd_file)->fp_device));

	return less && chunk > SEND_CHUNK_LESS ? SEND_CHUNK_LESS : chunk;
}

/*
 * Ends the chunk at ss_asked, since bytes behind ss_asked may be in flight, but not before ss_offered,
 * since a sink may send all bytes that it was offered.
 */
off_t
send_chunk_end(const struct pw_send *s)
{
	off_t end = send_window_end(s, s->snd_off);

	if (s->snd_off < send_priv(s)->ss_asked && send_priv(s)->ss_asked < end)
		end = send_priv(s)->ss_asked;
	end = offset_add(s->snd_off, send_limited(s, transfer_chunk(s)), end);
	return send_priv(s)->ss_offered > end ? send_priv(s)->ss_offered : end;
}

enum pw_send_status
send_status(enum account_next next)
{
	switch (next) {
	case ACCOUNT_DONE:
		return PW_SEND_DONE;
	case ACCOUNT_CALL:
	case ACCOUNT_BUSY:
		return PW_SEND_AGAIN;
	case ACCOUNT_FULL:
		return PW_SEND_WANT_WRITE;
	case ACCOUNT_FAILED:
		break;
	}
	return PW_SEND_ERROR;
}

/* Returns true if send_copied sends all that is left. */
static bool
transfer_is_copied(const struct pw_send *s)
{
	return s->snd_len <= (off_t)SEND_TAIL && !s->snd_path->path_reads;
}

/* Returns true if one call sends memory and file.  Memory of SEND_HEAD bytes or more is sent alone. */
static bool
transfer_takes_memory(const struct pw_send *s, off_t file_end)
{
	bool joins = sink_copies(s) ? send_priv(s)->ss_joins
				    : s->snd_path->path_takes_memory ||
					  transfer_is_copied(s);

	return joins && s->snd_len > 0 && s->snd_off < file_end &&
	       s->snd_mem_len < SEND_HEAD;
}

static enum account_next
transfer_send_some(
    struct pw_send *s, off_t file_end, size_t chunk, send_call_f call)
{
	size_t sent, len, bound = send_bound(s);
	bool more;
	int error;

	if (bound > 0 && bound < chunk)
		chunk = bound;
	if (s->snd_mem_len > 0 && !transfer_takes_memory(s, file_end)) {
		len = s->snd_mem_len < chunk ? s->snd_mem_len : chunk;
		more = s->snd_more || s->snd_len > 0 || len < s->snd_mem_len;
		error = sink_send(s, s->snd_mem, len, more, &sent);
	} else {
		len = (size_t)(file_end - s->snd_off);
		if (chunk > SEND_CHUNK_MAX)
			chunk = SEND_CHUNK_MAX;
		error = call(s, len < chunk ? len : chunk, &sent);
	}
	return account_sent(s, error, sent);
}

/*
 * Doubles the chunk if all of it was sent, and halves it if the socket accepted less than a quarter: all of
 * a chunk is checked before it is sent.  `begin` and `end` are what snd_sent was before the step and what it
 * would be after the whole chunk.  A destination that has accepted nothing yet may be a sink that waits.
 */
static void
transfer_fit_chunk(
    struct pw_send *s, enum account_next next, uint64_t begin, uint64_t end)
{
	size_t *chunk = &send_priv(s)->ss_chunk;

	if (next == ACCOUNT_CALL && s->snd_sent >= end &&
	    *chunk < SEND_CHUNK_MAX)
		*chunk =
		    *chunk > SEND_CHUNK_MAX / 2 ? SEND_CHUNK_MAX : *chunk * 2;
	else if (next == ACCOUNT_FULL && s->snd_sent > 0 &&
		 s->snd_sent - begin < *chunk / 4 && *chunk > SEND_CHUNK)
		*chunk /= 2;
}

enum pw_send_status
send_window(struct pw_send *s, off_t file_end, send_call_f call)
{
	enum account_next next = ACCOUNT_CALL;
	uint64_t begin = s->snd_sent, end = begin + transfer_chunk(s);

	if (s->snd_mem_len < SEND_HEAD)
		end += s->snd_mem_len;
	end = begin + send_limited(s, end - begin);
	if (s->snd_mem_len == 0 && s->snd_len == 0)
		return PW_SEND_DONE;
	while (next == ACCOUNT_CALL && s->snd_sent < end &&
	       (s->snd_mem_len > 0 || s->snd_off < file_end))
		next = transfer_send_some(
		    s, file_end, (size_t)(end - s->snd_sent), call);
	transfer_fit_chunk(s, next, begin, end);
	return send_status(next);
}
