/*
 * send: the send paths by name, and what they have in common.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "loop.h"
#include "os.h"
#include "resident.h"
#include "send_priv.h"
#include "window.h"

/* The first one that works here is the default. */
static const struct pw_send_path *const paths[] = {
    &send_native,
    &send_nodiskio,
    &send_uring,
    &send_splice,
    &send_mlock,
    &send_aio,
    &send_pool,
    &send_blocking,
    &send_copy,
};

#define NPATHS (sizeof(paths) / sizeof(paths[0]))

const char *const pw_send_path_names[] = {"native", "nodiskio", "uring",
    "splice", "mlock", "aio", "pool", "blocking", "copy", NULL};

const struct pw_send_path *
pw_send_path(const char *name)
{
	size_t i;

	for (i = 0; i < NPATHS; i++)
		if (strcmp(paths[i]->path_name, name) == 0)
			return paths[i];
	return NULL;
}

const struct pw_send_path *
pw_send_default(void)
{
	const char *why;
	size_t i = 0;

	while (pw_send_probe(paths[i], &why) != 0)
		i++; /* the last one works everywhere */
	return paths[i];
}

int
pw_send_probe(const struct pw_send_path *path, const char **why)
{
	return path->path_probe == NULL ? 0 : path->path_probe(why);
}

void
pw_send_start(struct pw_send *s)
{
	struct pw_file *file = s->snd_file;
	bool random;

	s->snd_sent = s->snd_wait = 0;
	s->snd_error = 0;
	s->snd_pending = s->snd_lent = false;
	s->snd_folio = s->snd_backed_off = false;
	s->snd_short = s->snd_granted = s->snd_follows = false;
	s->snd_held = 0;
	s->snd_ahead = NULL;
	s->snd_mark = 0;
	s->snd_fetches = 0;
	s->snd_share = SEND_SHARE_MOST;
	s->snd_own = NULL;
	s->snd_reported = s->snd_brings = false;
	s->snd_window = s->snd_readahead == PW_READAHEAD_AUTO ? WINDOW_MOST
			: s->snd_readahead > 0		      ? s->snd_readahead
							      : SEND_SHARE;
	s->snd_asked = s->snd_ready = s->snd_fetched = s->snd_fetched_end =
	    s->snd_dropped = -1;
	if (file == NULL) {
		s->snd_len = 0;
		return;
	}
	pw_file_ref(file);
	send_drop_start(s);
	random = s->snd_path->path_prefetches && resident_can_ask(file);
	if (file->fil_random != random) {
		file->fil_random = random;
		os_advise_random(file->fil_fd, random);
	}
}

/* What each status promises: pagewise.h. */
static void
check_step(const struct pw_send *s, enum pw_send_status status, uint64_t before)
{
	PW_CHECK(s->snd_pending == (status == PW_SEND_PENDING));
	PW_CHECK(!s->snd_lent || s->snd_pending);
	PW_CHECK((s->snd_error != 0) == (status == PW_SEND_ERROR));
	PW_CHECK(s->snd_error <= 0 && s->snd_len >= 0);
	PW_CHECK(s->snd_sent >= before);
	PW_CHECK(
	    status != PW_SEND_DONE || (s->snd_mem_len == 0 && s->snd_len == 0));
	PW_CHECK(status == PW_SEND_DONE || status == PW_SEND_ERROR ||
		 s->snd_mem_len > 0 || s->snd_len > 0);
	(void)s, (void)status, (void)before;
}

enum pw_send_status
pw_send_step(struct pw_send *s)
{
	uint64_t before = s->snd_sent;
	enum pw_send_status status;

	PW_CHECK(!s->snd_pending);
	if (s->snd_error != 0)
		return PW_SEND_ERROR;
	status = s->snd_path->path_step(s);
	check_step(s, status, before);
	return status;
}

uint64_t
pw_unacked(int sock)
{
	long n = os_unacked(sock);

	return n > 0 ? (uint64_t)n : 0;
}

bool
pw_awaits_disk(int sock)
{
	return os_awaits_disk(sock);
}

/* A pool thread that has the socket (path pool) finishes its call. */
void
pw_send_cancel(struct pw_send *s)
{
	s->snd_error = -ECANCELED;
}

void
pw_send_finish(struct pw_send *s)
{
	if (s->snd_file == NULL)
		return;
	PW_CHECK(!s->snd_pending);
	if (s->snd_path->path_finish != NULL)
		s->snd_path->path_finish(s);
	if (s->snd_mark > 0 && s->snd_error == 0)
		send_rate_measure(s);
	send_ahead_forget(s);
	send_drop_rest(s);
	if (s->snd_held > 0)
		pool_room_give(s->snd_file->fil_device, s->snd_held);
	pw_file_unref(&s->snd_file);
}

off_t
send_window_end(const struct pw_send *s, off_t from)
{
	off_t window = (off_t)s->snd_window;
	off_t end = (from / window + 1) * window;

	return end < s->snd_off + s->snd_len ? end : s->snd_off + s->snd_len;
}

struct pw_send *
send_of_waiter(struct pw_waiter *w)
{
	return (struct pw_send *)(void *)((char *)w -
					  offsetof(struct pw_send, snd_waiter));
}

void
send_pending_begin(struct pw_send *s, void (*done)(struct pw_waiter *))
{
	s->snd_waiter.wt_done = done;
	s->snd_since = loop_now();
	s->snd_ended = device_ended(s->snd_file->fil_device);
	s->snd_pending = true;
}

bool
pw_send_stuck(struct pw_send *s)
{
	unsigned long before = s->snd_ended;

	s->snd_ended = device_ended(s->snd_file->fil_device);
	return s->snd_ended == before;
}

void
send_pending_end(struct pw_send *s, int error)
{
	s->snd_pending = false;
	s->snd_wait += loop_now() - s->snd_since;
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

/* What happens to a job that finds the queue full: rule 6. */
static enum admit
admit(const struct pw_send *s)
{
	return s->snd_begun || s->snd_sent > 0 ? ADMIT_BEGUN : ADMIT_NEW;
}

struct send_job {
	struct job sj_job; /* first: freed as one */
	struct pw_send *sj_send;
	int (*sj_run)(struct pw_send *);
};

static int
job_run(struct job *job)
{
	struct send_job *sj = (struct send_job *)job;

	return sj->sj_run(sj->sj_send);
}

int
send_on_pool(struct pw_send *s, int (*run)(struct pw_send *))
{
	struct send_job *sj = calloc(1, sizeof(*sj));
	int error;

	if (sj == NULL)
		return -ENOMEM;
	sj->sj_job.job_run = job_run;
	sj->sj_send = s;
	sj->sj_run = run;
	error = pool_submit(s->snd_file->fil_device, &sj->sj_job, admit(s),
	    s->snd_loop, &s->snd_waiter);
	if (error != 0)
		free(sj);
	return error;
}

int
send_fetch_by_pool(struct pw_send *s, off_t off, size_t len)
{
	return pool_fetch(
	    s->snd_file, off, len, s->snd_folio, admit(s), &s->snd_waiter);
}

int
send_by_sendfile(struct pw_send *s, size_t len, size_t *sent)
{
	return os_sendfile(
	    s->snd_sock, s->snd_file->fil_fd, s->snd_off, len, sent);
}

/* Not past what was fetched for it: what follows may be under way. */
off_t
send_share_end(const struct pw_send *s)
{
	off_t end = send_window_end(s, s->snd_off),
	      share = s->snd_off + (off_t)s->snd_share;

	if (s->snd_off < s->snd_asked && s->snd_asked < end)
		end = s->snd_asked;
	return share < end ? share : end;
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

static enum account_next
send_some(struct pw_send *s, off_t file_end, size_t share, send_call_f call)
{
	size_t sent, len;
	bool more;
	int error;

	if (s->snd_mem_len > 0 &&
	    (s->snd_len == 0 || !s->snd_path->path_takes_memory)) {
		len = s->snd_mem_len < share ? s->snd_mem_len : share;
		more = s->snd_more || s->snd_len > 0 || len < s->snd_mem_len;
		error = os_send(s->snd_sock, s->snd_mem, len, more, &sent);
	} else {
		len = (size_t)(file_end - s->snd_off);
		error = call(s, len < share ? len : share, &sent);
	}
	return account_sent(s, error, sent);
}

/* A socket that was full has room for a third of its buffer when it is writable. */
static void
fit_share(struct pw_send *s, enum account_next next, uint64_t end)
{
	if (next == ACCOUNT_CALL && s->snd_sent >= end &&
	    s->snd_share < SEND_SHARE_MOST)
		s->snd_share *= 2;
	else if (next == ACCOUNT_FULL && s->snd_share > SEND_SHARE)
		s->snd_share /= 2;
}

enum pw_send_status
send_window(struct pw_send *s, off_t file_end, send_call_f call)
{
	enum account_next next = ACCOUNT_CALL;
	uint64_t end = s->snd_sent + s->snd_share;

	if (s->snd_mem_len < SEND_HEAD)
		end += s->snd_mem_len;
	if (s->snd_mem_len == 0 && s->snd_len == 0)
		return PW_SEND_DONE;
	while (next == ACCOUNT_CALL && s->snd_sent < end &&
	       (s->snd_mem_len > 0 || s->snd_off < file_end))
		next =
		    send_some(s, file_end, (size_t)(end - s->snd_sent), call);
	fit_share(s, next, end);
	return send_status(next);
}
