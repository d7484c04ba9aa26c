/*
 * scheme: see scheme.h.
 */
#include "server/content/redirect.h"
#include "server/content/scheme.h"
#include "server/tls/session.h"

/* Returns the name in Host without its port and final dot. */
static struct str
scheme_name_of(struct str host)
{
	size_t i, end = host.s_len;

	for (i = host.s_len; i > 0 && host.s_ptr[i - 1] != ']'; i--)
		if (host.s_ptr[i - 1] == ':')
			end = i - 1;
	if (end > 0 && host.s_ptr[end - 1] == '.')
		end--;
	return (struct str){host.s_ptr, end};
}

static bool
scheme_same_clients(const struct tls_site *a, const struct tls_site *b)
{
	return a == b || (a->ts_verify == b->ts_verify &&
			     a->ts_client_ca == b->ts_client_ca);
}

bool
scheme_is_misdirected(const struct exchange *ex)
{
	const struct tls *tl = ex->ex_tls;
	const struct tls_site *site = &ex->ex_lookup.lk_site->site_tls;
	struct str host = scheme_name_of(ex->ex_lookup.lk_host),
		   asked = tl->tl_log.lt_name;

	if (host.s_len > 0 && str_caseeq(host, asked))
		return false;
	if (!scheme_same_clients(site, tl->tl_site))
		return true;
	if (asked.s_ptr == NULL && site == tl->tl_site)
		return false;
	return host.s_len > 0 && !tls_covers(tl, host.s_ptr, host.s_len);
}

bool
scheme_respond(struct exchange *ex)
{
	if (ex->ex_tls == NULL)
		return redirect_to_https(ex);
	if (!scheme_is_misdirected(ex))
		return false;
	response_error(ex, 421);
	return true;
}
