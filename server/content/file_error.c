/*
 * file_error: see file_error.h.
 */
#include <errno.h>
#include <string.h>

#include "lib/util/clock.h"
#include "server/content/exchange.h"
#include "server/content/file_error.h"

static const char *
file_error_name_of(const struct exchange *ex)
{
	return ex->ex_lookup.lk_path.b_len == 0 ? "response"
						: ex->ex_lookup.lk_path.b_data;
}

bool
file_error_descriptor(int error)
{
	return error == -EMFILE || error == -ENFILE;
}

/*
 * Logs a shortage at most once a minute, because a shortage affects thousands of requests at once.
 */
static void
file_error_tell_want(struct exchange *ex, enum message_rate_kind kind,
    int error, const char *remedy)
{
	struct service *svc = ex->ex_service;

	if (message_rate_tell(svc->svc_told, kind, clock_now()))
		log_error(svc->svc_log, "%s: %s; %s", file_error_name_of(ex),
		    strerror(-error), remedy);
}

void
file_error_tell(struct exchange *ex, int error)
{
	struct service *svc = ex->ex_service;

	if (file_error_descriptor(error))
		file_error_tell_want(ex, TOLD_FILES, error,
		    "raise ulimit -n, or lower open_files");
	else if (error == -ENOMEM)
		file_error_tell_want(ex, TOLD_MEMORY, error,
		    "give the server more memory, or lower hot_set");
	else
		log_error(svc->svc_log, "cannot read %s: %s%s",
		    file_error_name_of(ex), strerror(-error),
		    error == -EIO ? "; " DISK_CURE : "");
}

void
file_error_changed(struct exchange *ex, bool cut)
{
	struct service *svc = ex->ex_service;

	counter_add(&svc->svc_stats.sta_changed, 1);
	if (message_rate_tell(svc->svc_told, TOLD_CHANGED, clock_now()))
		log_error(svc->svc_log,
		    "%s: changed while it was sent: %s; write a new file and "
		    "rename it",
		    file_error_name_of(ex),
		    cut ? "the response was aborted" : "the client got 503");
}
