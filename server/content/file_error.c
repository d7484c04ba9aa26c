/*
 * file_error: see file_error.h.
 */
#include <errno.h>
#include <string.h>

#include "lib/util/clock.h"
#include "server/conn/conn.h"
#include "server/content/file_error.h"

static const char *
name_of(const struct conn *c)
{
	return c->cn_ex->ex_lookup.lk_path.b_len == 0
		   ? "answer"
		   : c->cn_ex->ex_lookup.lk_path.b_data;
}

bool
file_error_descriptor(int error)
{
	return error == -EMFILE || error == -ENFILE;
}

/* Want of something comes to thousands at once: it is told once a minute. */
static void
tell_want(
    struct conn *c, struct message_rate *lim, int error, const char *remedy)
{
	struct worker *wk = c->cn_worker;

	if (message_rate_tell(lim, clock_now()))
		log_error(wk->wk_log, "%s: %s; %s", name_of(c),
		    strerror(-error), remedy);
}

void
file_error_tell(struct conn *c, int error)
{
	struct worker *wk = c->cn_worker;

	if (file_error_descriptor(error))
		tell_want(c, &wk->wk_told_files, error,
		    "raise ulimit -n, or lower open_files");
	else if (error == -ENOMEM)
		tell_want(c, &wk->wk_told_memory, error,
		    "give the server more memory, or lower hot_set");
	else
		log_error(wk->wk_log, "%s: %s", name_of(c), strerror(-error));
}
