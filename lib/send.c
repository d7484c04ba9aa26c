/*
 * send: the send paths by name, and what they have in common.
 */
#include <errno.h>
#include <string.h>

#include "drop.h"
#include "loop.h"
#include "os.h"
#include "send_priv.h"

#define SHARE	   ((size_t)128 << 10) /* of one step: 30 us of a loop's time */
#define WINDOW	   ((size_t)512 << 10)
#define DROP_DELAY 1000000 /* microseconds: for the tail to be acknowledged */
#define AUTO_SHARE 8	   /* of memory: larger files are dropped */

static const struct pw_send_path *const paths[] = {
    &send_nodiskio,
    &send_blocking,
    &send_copy,
};

#define NPATHS (sizeof(paths) / sizeof(paths[0]))

const char *const pw_send_path_names[] = {"nodiskio", "blocking", "copy", NULL};

const struct pw_send_path *
pw_send_path(const char *name)
{
	size_t i;

	for (i = 0; i < NPATHS; i++)
		if (strcmp(paths[i]->path_name, name) == 0)
			return paths[i];
	return NULL;
}

int
pw_send_probe(const struct pw_send_path *path, const char **why)
{
	return path->path_probe == NULL ? 0 : path->path_probe(why);
}

bool
send_drops(const struct pw_send *s)
{
	switch (s->snd_cache) {
	case PW_CACHE_KEEP:
		return false;
	case PW_CACHE_DROP:
		return true;
	case PW_CACHE_AUTO:
		break;
	}
	return (uint64_t)s->snd_file->fil_size >
	       s->snd_loop->lp_memory / AUTO_SHARE;
}

void
pw_send_start(struct pw_send *s)
{
	struct pw_file *file = s->snd_file;

	s->snd_sent = s->snd_wait = 0;
	s->snd_error = 0;
	s->snd_pending = false;
	s->snd_fetches = 0;
	s->snd_window = s->snd_readahead == 0 ? WINDOW : s->snd_readahead;
	s->snd_ready = s->snd_fetched = s->snd_fetched_end = s->snd_dropped =
	    -1;
	if (file == NULL) {
		s->snd_len = 0;
		return;
	}
	pw_file_ref(file);
	if (file->fil_random != s->snd_path->path_prefetches) {
		file->fil_random = s->snd_path->path_prefetches;
		os_advise_random(file->fil_fd, file->fil_random);
	}
}

enum pw_send_status
pw_send_step(struct pw_send *s)
{
	if (s->snd_error != 0)
		return PW_SEND_ERROR;
	return s->snd_path->path_step(s);
}

/* Nothing of ours touches the socket from another thread: nothing to stop. */
void
pw_send_cancel(struct pw_send *s)
{
	s->snd_error = -ECANCELED;
}

/*
 * All of it once more: acknowledged pages that a receiver on this machine had
 * not read yet could not be given back.
 */
void
send_drop_rest(struct pw_send *s)
{
	if (s->snd_fetched < s->snd_fetched_end && send_drops(s))
		drop_add(s->snd_file, s->snd_fetched,
		    s->snd_fetched_end - s->snd_fetched,
		    loop_now() + DROP_DELAY);
	s->snd_fetched = s->snd_fetched_end;
}

void
pw_send_finish(struct pw_send *s)
{
	if (s->snd_file == NULL)
		return;
	send_drop_rest(s);
	pw_file_unref(&s->snd_file);
}

off_t
send_window_end(const struct pw_send *s)
{
	off_t window = (off_t)s->snd_window;
	off_t end = (s->snd_off / window + 1) * window;

	return end < s->snd_off + s->snd_len ? end : s->snd_off + s->snd_len;
}

int
send_by_sendfile(struct pw_send *s, size_t len, size_t *sent)
{
	return os_sendfile(
	    s->snd_sock, s->snd_file->fil_fd, s->snd_off, len, sent);
}

off_t
send_share_end(const struct pw_send *s)
{
	off_t end = send_window_end(s), share = s->snd_off + (off_t)SHARE;

	return share < end ? share : end;
}

static enum account_next
send_some(struct pw_send *s, off_t file_end, size_t share, send_call_f call)
{
	size_t sent, len;
	bool more;
	int error;

	if (s->snd_mem_len > 0) {
		len = s->snd_mem_len < share ? s->snd_mem_len : share;
		more = s->snd_more || s->snd_len > 0 || len < s->snd_mem_len;
		error = os_send(s->snd_sock, s->snd_mem, len, more, &sent);
	} else {
		len = (size_t)(file_end - s->snd_off);
		error = call(s, len < share ? len : share, &sent);
	}
	return account_sent(s, error, sent);
}

enum pw_send_status
send_window(struct pw_send *s, off_t file_end, send_call_f call)
{
	enum account_next next = ACCOUNT_CALL;
	uint64_t end = s->snd_sent + SHARE;

	if (s->snd_mem_len == 0 && s->snd_len == 0)
		return PW_SEND_DONE;
	while (next == ACCOUNT_CALL && s->snd_sent < end &&
	       (s->snd_mem_len > 0 || s->snd_off < file_end))
		next =
		    send_some(s, file_end, (size_t)(end - s->snd_sent), call);
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
