/*
 * redirect: see redirect.h.
 */
#include "server/content/exchange.h"
#include "server/content/redirect.h"

static void
redirect_add(struct exchange *ex, struct buf *to, struct str text)
{
	if (text.s_len > 0)
		buf_add(to, &ex->ex_service->svc_bufs, text.s_ptr, text.s_len);
}

static void
redirect_add_encoded(struct exchange *ex, struct buf *to, struct str path)
{
	size_t size = 3 * path.s_len + 1;

	if (buf_reserve(to, &ex->ex_service->svc_bufs, to->b_len + size))
		to->b_len += target_encode(path, to->b_data + to->b_len, size);
	else
		to->b_failed = true;
}

/*
 * Returns `text`.  If `to` ends in '/', omits leading slashes of `text`, because a client would
 * treat "//x" as a host.
 */
static struct str
redirect_joined(const struct buf *to, struct str text)
{
	if (to->b_data != NULL && to->b_len > 0 &&
	    to->b_data[to->b_len - 1] == '/')
		while (text.s_len > 0 && *text.s_ptr == '/')
			str_advance(&text, 1);
	return text;
}

static void
redirect_add_query(struct exchange *ex, struct buf *to, struct str mark)
{
	if (ex->ex_target.tgt_query.s_ptr == NULL)
		return;
	redirect_add(ex, to, mark);
	redirect_add(ex, to, ex->ex_target.tgt_query);
}

static void
redirect_respond(struct exchange *ex, int status, struct buf *to)
{
	if (to->b_failed)
		response_error(ex, 503);
	else
		response_redirect(
		    ex, status, (struct str){to->b_data, to->b_len});
	buf_release(to, &ex->ex_service->svc_bufs);
}

static void
redirect_follow(struct exchange *ex, const struct redirect *rd, struct str star)
{
	struct buf to = {0};
	struct str host;

	if (rd->rd_scheme.s_ptr != NULL) {
		host = conf_host(ex->ex_lookup.lk_site, ex->ex_lookup.lk_host);
		/*
		 * The request names no host of this site, and the site has no name without a
		 * wildcard.
		 */
		if (host.s_len == 0) {
			response_error(ex, 400);
			return;
		}
		redirect_add(ex, &to, rd->rd_scheme);
		redirect_add(ex, &to, host);
	}
	redirect_add(ex, &to, rd->rd_to);
	if (rd->rd_rest.s_ptr != NULL) {
		redirect_add_encoded(ex, &to, redirect_joined(&to, star));
		redirect_add(ex, &to, redirect_joined(&to, rd->rd_rest));
	}
	redirect_add_query(ex, &to, rd->rd_query ? STR("&") : STR("?"));
	redirect_add(ex, &to, rd->rd_fragment);
	redirect_respond(ex, rd->rd_status, &to);
}

bool
redirect_by_rule(struct exchange *ex)
{
	struct str star;
	const struct redirect *rd =
	    conf_redirect(ex->ex_lookup.lk_set, ex->ex_target.tgt_path, &star);

	if (rd == NULL)
		return false;
	redirect_follow(ex, rd, star);
	return true;
}

static bool
redirect_stays(const struct exchange *ex)
{
	const struct conf *conf = ex->ex_service->svc_conf;
	const char *const paths[] = {conf->conf_live, conf->conf_ready};
	struct str path = ex->ex_target.tgt_path, acme = path;

	for (size_t i = 0; i < 2; i++)
		if (paths[i] != NULL &&
		    str_eq(path, (struct str){paths[i], strlen(paths[i])}))
			return true;
	return str_skip(&acme, STR("/.well-known/acme-challenge/"));
}

bool
redirect_to_https(struct exchange *ex)
{
	struct str host =
	    conf_host(ex->ex_lookup.lk_site, ex->ex_lookup.lk_host);
	unsigned port = ex->ex_service->svc_conf->conf_https_port;
	struct buf to = {0};

	if (redirect_stays(ex))
		return false;
	if (host.s_len == 0) {
		response_error(ex, 400);
		return true;
	}
	redirect_add(ex, &to, STR("https://"));
	redirect_add(ex, &to, host);
	if (port != 443) {
		redirect_add(ex, &to, STR(":"));
		buf_uint(&to, &ex->ex_service->svc_bufs, port);
	}
	redirect_add_encoded(ex, &to, ex->ex_target.tgt_path);
	redirect_add_query(ex, &to, STR("?"));
	redirect_respond(ex, 301, &to);
	return true;
}

void
redirect_to_directory(struct exchange *ex)
{
	struct buf to = {0};

	redirect_add_encoded(ex, &to, ex->ex_target.tgt_path);
	redirect_add(ex, &to, STR("/"));
	redirect_add_query(ex, &to, STR("?"));
	redirect_respond(ex, 301, &to);
}
