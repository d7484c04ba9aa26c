/*
 * send: the send paths by name, and a transmission from its start to its end.
 */
#include <errno.h>
#include <string.h>

#include "lib/file/file.h"
#include "lib/file/residency.h"
#include "lib/os/os.h"
#include "lib/send/holder.h"
#include "lib/send/own.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"
#include "lib/send/window_size.h"
#include "lib/util/check.h"
#include "lib/util/offset.h"

/* largest snd_readahead that is used, bytes */
#define WINDOW_ASKED ((size_t)1 << 30)

/* All send paths, in order of preference; the first that works on this system is the default. */
static const struct pw_send_path *const paths[] = {
    &send_native,
    &send_nodiskio,
    &send_uring,
    &send_ring,
    &send_splice,
    &send_mlock,
    &send_aio,
    &send_pool,
    &send_blocking,
    &send_copy,
};

#define NPATHS (sizeof(paths) / sizeof(paths[0]))

static const char *const names[NPATHS + 1] = {"native", "nodiskio", "uring",
    "ring", "splice", "mlock", "aio", "pool", "blocking", "copy", NULL};

const char *const *
pw_send_path_names(void)
{
	return names;
}

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
		i++; /* nodiskio works everywhere */
	return paths[i];
}

int
pw_send_probe(const struct pw_send_path *path, const char **why)
{
	return path->path_probe == NULL ? 0 : path->path_probe(why);
}

/* Returns true if the file is open and belongs to this loop. */
static bool
send_can_be_sent(const struct pw_file *file, const struct pw_loop *lp)
{
	return file->fil_fd != -1 && file_priv(file)->fp_loop == lp;
}

static bool
send_is_wrong(const struct pw_send *s)
{
	const struct pw_sink *sk = s->snd_sink;

	if (s->snd_path == NULL || s->snd_loop == NULL || s->snd_done == NULL)
		return true;
	if (sk != NULL &&
	    (sk->sk_ops->take == NULL || sk->sk_ops->unacked == NULL))
		return true;
	return s->snd_file != NULL &&
	       ((s->snd_off | s->snd_len) < 0 ||
		   s->snd_len > OFFSET_MAX - s->snd_off ||
		   !send_can_be_sent(s->snd_file, s->snd_loop));
}

static size_t
send_first_window(const struct pw_send *s)
{
	switch (s->snd_readahead) {
	case PW_READAHEAD_AUTO:
		return WINDOW_MOST;
	case PW_READAHEAD_NONE:
		return SEND_CHUNK;
	default:
		return s->snd_readahead < WINDOW_ASKED ? s->snd_readahead
						       : WINDOW_ASKED;
	}
}

int
pw_send_start(struct pw_send *s)
{
	struct pw_file *file = s->snd_file;
	bool random;

	if (s->snd_pending)
		return -EINVAL;
	s->snd_sent = s->snd_wait = 0;
	s->snd_error = 0;
	send_priv(s)->ss_lent = 0;
	send_priv(s)->ss_how = FETCH_PAGES;
	send_priv(s)->ss_direct = send_priv(s)->ss_hole = false;
	send_priv(s)->ss_granted = send_priv(s)->ss_follows = false;
	send_priv(s)->ss_joins = false;
	send_priv(s)->ss_holder = NULL;
	send_priv(s)->ss_ahead = NULL;
	send_priv(s)->ss_pin = NULL;
	send_priv(s)->ss_mark = send_priv(s)->ss_ready_at = 0;
	send_priv(s)->ss_from = s->snd_off;
	send_priv(s)->ss_chunk = SEND_CHUNK_MAX;
	send_priv(s)->ss_own = NULL;
	send_priv(s)->ss_reported = send_priv(s)->ss_brings =
	    send_priv(s)->ss_copies = false;
	send_priv(s)->ss_result = 0;
	send_priv(s)->ss_reach = OFFSET_MAX;
	send_priv(s)->ss_window = send_first_window(s);
	send_priv(s)->ss_asked = send_priv(s)->ss_ready =
	    send_priv(s)->ss_extent = send_priv(s)->ss_fetched =
		send_priv(s)->ss_fetched_end = send_priv(s)->ss_dropped =
		    send_priv(s)->ss_offered = -1;
	if (send_is_wrong(s)) {
		s->snd_error = -EINVAL;
		s->snd_file = file = NULL;
	}
	if (file == NULL) {
		s->snd_len = 0;
		return s->snd_error;
	}
	pw_file_ref(file);
	send_drop_start(s);
	random = s->snd_path->path_prefetches && residency_can_ask(file);
	if (file_priv(file)->fp_random != random) {
		file_priv(file)->fp_random = random;
		os_advise_random(file->fil_fd, random);
	}
	return 0;
}

/* Aborts a debug build if the transmission breaks the rules of pagewise.h for this status. */
static void
send_check_step(
    const struct pw_send *s, enum pw_send_status status, uint64_t before)
{
	PW_CHECK(s->snd_pending == (status == PW_SEND_PENDING));
	PW_CHECK(
	    __atomic_load_n(&send_priv(s)->ss_lent, __ATOMIC_SEQ_CST) == 0 ||
	    s->snd_pending);
	PW_CHECK((s->snd_error != 0) == (status == PW_SEND_ERROR));
	PW_CHECK(s->snd_error <= 0 && s->snd_len >= 0);
	PW_CHECK(s->snd_sent >= before);
	PW_CHECK(
	    status != PW_SEND_DONE || (s->snd_mem_len == 0 && s->snd_len == 0));
	PW_CHECK(status == PW_SEND_DONE || status == PW_SEND_ERROR ||
		 s->snd_mem_len > 0 || s->snd_len > 0);
	(void)s, (void)status, (void)before;
}

/* Fails a transmission that was stepped while pending; its completion still arrives. */
static enum pw_send_status
send_step_too_early(struct pw_send *s)
{
	if (s->snd_error == 0)
		s->snd_error = -EINVAL;
	return PW_SEND_ERROR;
}

/* Updates ss_copies, unless own memory has data or a disk thread's result is unreported. */
static void
send_choose_copies(struct pw_send *s)
{
	if (send_priv(s)->ss_own == NULL && !send_priv(s)->ss_reported)
		send_priv(s)->ss_copies = send_bound(s) > 0;
}

enum pw_send_status
pw_send_step(struct pw_send *s)
{
	uint64_t before = s->snd_sent;
	enum pw_send_status status;

	if (s->snd_pending)
		return send_step_too_early(s);
	if (s->snd_error != 0)
		return PW_SEND_ERROR;
	if (send_reach(s) == 0 && (s->snd_mem_len > 0 || s->snd_len > 0))
		return PW_SEND_WANT_WRITE;
	send_choose_copies(s);
	status = sink_copies(s) && !s->snd_path->path_reads
		     ? sink_step(s)
		     : s->snd_path->path_step(s);
	send_check_step(s, status, before);
	return status;
}

/* Rounds up to a page, because a page is read as a whole. */
void
pw_send_reach(struct pw_send *s, uint64_t bytes)
{
	off_t end = offset_add(s->snd_off, bytes, OFFSET_MAX);

	send_priv(s)->ss_reach =
	    bytes == 0
		? end
		: offset_round_up(end, (off_t)os_page_size(), OFFSET_MAX);
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

/*
 * Does not interrupt a disk thread that is sending (path pool).  A fetch that has not begun does not begin if
 * no other transmission waits for it.
 */
void
pw_send_cancel(struct pw_send *s)
{
	s->snd_error = -ECANCELED;
	if (!s->snd_pending)
		return;
	pool_leave(&send_priv(s)->ss_waiter);
	send_ahead_leave(s);
}

void
pw_send_defer(struct pw_send *s)
{
	if (s->snd_pending)
		pool_defer(&send_priv(s)->ss_waiter);
}

void
pw_send_finish(struct pw_send *s)
{
	if (s->snd_file == NULL)
		return;
	PW_MUST(!s->snd_pending,
	    "the transmission is pending: cancel it, and wait for snd_done");
	if (s->snd_path->path_finish != NULL)
		s->snd_path->path_finish(s);
	own_free(s);
	file_announce(s->snd_file);
	if (send_priv(s)->ss_mark > 0 && s->snd_error == 0)
		send_rate_measure(s);
	send_ahead_forget(s);
	send_unpin(s);
	send_drop_rest(s);
	holder_keep(s, 0);
	pw_file_unref(&s->snd_file);
}

bool
pw_send_take_back(struct pw_send *s)
{
	int out = LENT_OUT;

	return __atomic_compare_exchange_n(&send_priv(s)->ss_lent, &out,
		   LENT_BACK, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
	       out != LENT_CLAIMED;
}

bool
pw_send_stuck(struct pw_send *s)
{
	unsigned long before = send_priv(s)->ss_ended;

	if (!s->snd_pending)
		return false;
	send_priv(s)->ss_ended =
	    device_ended(file_priv(s->snd_file)->fp_device);
	return send_priv(s)->ss_ended == before;
}
