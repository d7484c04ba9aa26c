/*
 * sibling: see sibling.h.
 */
#include "server/content/sibling.h"

#include <errno.h>
#include <string.h>

#include "lib/util/clock.h"
#include "server/content/exchange.h"
#include "server/content/representation.h"

static void
sibling_tell(struct exchange *ex, const char *reason)
{
	struct service *svc = ex->ex_service;

	counter_add(&svc->svc_stats.sta_siblings_unused, 1);
	if (message_rate_tell(svc->svc_told, TOLD_SIBLING, clock_now()))
		log_warn(svc->svc_log,
		    "%s: not sent in place of the original: %s",
		    ex->ex_lookup.lk_path.b_data, reason);
}

bool
sibling_is_usable(struct exchange *ex, int error, const struct pw_file *file)
{
	const struct pw_file *original = ex->ex_lookup.lk_original;

	if (error == -ENOENT || error == -ENOTDIR || error == -ENAMETOOLONG)
		return false;
	if (error != 0)
		sibling_tell(ex, strerror(-error));
	else if (file->fil_type != PW_FILE_REGULAR)
		sibling_tell(ex, "the sibling is not a regular file");
	else if (original != NULL &&
		 file->fil_mtime.tv_sec < original->fil_mtime.tv_sec)
		sibling_tell(ex,
		    "the sibling is older; update it with pagewise "
		    "precompress, or copy the original's time to it (touch "
		    "-r)");
	else
		return true;
	return false;
}

bool
sibling_is_optional(const struct exchange *ex)
{
	const struct request *rq = &ex->ex_request;

	return rq->rq_range.s_ptr != NULL &&
	       ex->ex_lookup.lk_original != NULL &&
	       coding_takes_identity(rq->rq_accept_encoding);
}

bool
sibling_is_unwanted(const struct exchange *ex)
{
	const struct conditional *pre = &ex->ex_request.rq_pre;

	return sibling_is_optional(ex) && pre->pre_if_range.s_ptr == NULL &&
	       pre->pre_if_match.s_ptr == NULL;
}

static bool
sibling_is_named(struct exchange *ex, struct pw_file *file, enum coding coding)
{
	struct service *svc = ex->ex_service;
	struct lookup *lk = &ex->ex_lookup;
	time_t now = service_time(svc);
	const struct representation *rp = representation_of(
	    file, svc->svc_conf, lk->lk_set, lk->lk_path.b_data, coding, now);

	return rp != NULL && conditional_names(&ex->ex_request.rq_pre,
				 &rp->rp_announced, now);
}

bool
sibling_is_chosen(struct exchange *ex, struct pw_file *file)
{
	struct lookup *lk = &ex->ex_lookup;

	if (!sibling_is_optional(ex))
		return true;
	if (!sibling_is_named(ex, file, lk->lk_coding))
		return false;
	if (sibling_is_named(ex, lk->lk_original, CODING_NONE))
		ex->ex_request.rq_range = (struct str){0};
	/*
	 * The response now depends only on this coding, so the cache may send it to clients that
	 * accept only this coding.
	 */
	lk->lk_weights = coding_only(lk->lk_weights, lk->lk_coding);
	return true;
}
