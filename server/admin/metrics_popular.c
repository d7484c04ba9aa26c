/*
 * metrics_popular: writes the most requested paths of all workers (server/content/popular.h).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util/clock.h"

#include "server/admin/metrics_priv.h"
#include "server/content/popular.h"
#include "server/worker/worker.h"

static struct popular *
metrics_popular_of(const struct metrics *mt, unsigned worker)
{
	return mt->mt_workers[worker]->wk_service.svc_popular;
}

/*
 * Collects the paths of all workers, and stores their number in *n.  The caller frees the list.
 * Returns NULL if memory is short or counting is off.
 */
static struct popular_path *
metrics_popular_collect(const struct metrics *mt, size_t *n)
{
	const struct conf *conf = mt->mt_conf;
	struct popular_path *list;
	size_t size = 1;

	*n = 0;
	if (conf->conf_popular == 0)
		return NULL;
	for (unsigned i = 0; i < conf->conf_workers; i++)
		size += popular_size(metrics_popular_of(mt, i));
	list = calloc(size, sizeof(*list));
	if (list == NULL)
		return NULL;
	for (unsigned i = 0; i < conf->conf_workers; i++)
		*n += popular_copy(
		    metrics_popular_of(mt, i), clock_now(), list + *n);
	*n = popular_merge(list, *n);
	if (*n > conf->conf_popular)
		*n = conf->conf_popular;
	return list;
}

/* Writes a JSON string.  Escapes ASCII characters where JSON requires it; copies other bytes. */
static void
metrics_popular_write_string(struct evbuffer *out, const char *text, size_t len)
{
	evbuffer_add(out, "\"", 1);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < ' ' || c == '"' || c == '\\')
			evbuffer_add_printf(out, "\\u%04x", c);
		else
			evbuffer_add(out, &c, 1);
	}
	evbuffer_add(out, "\"", 1);
}

void
metrics_popular_json(const struct metrics *mt, struct evbuffer *out)
{
	size_t n;
	struct popular_path *list = metrics_popular_collect(mt, &n);

	evbuffer_add_printf(out, "{\"half_life_seconds\": %u, \"paths\": [",
	    (unsigned)(POPULAR_WINDOW_US / 1000000));
	for (size_t i = 0; i < n; i++) {
		const struct popular_path *pp = &list[i];

		evbuffer_add_printf(out, "%s\n{\"site\": ", i > 0 ? "," : "");
		metrics_popular_write_string(out, pp->pp_site->site_name,
		    strlen(pp->pp_site->site_name));
		evbuffer_add_printf(out, ", \"path\": ");
		metrics_popular_write_string(out, pp->pp_path, pp->pp_len);
		evbuffer_add_printf(out,
		    ", \"requests\": %" PRIu64 ", \"at_most\": %" PRIu64 "}",
		    pp->pp_count - pp->pp_error, pp->pp_count);
	}
	evbuffer_add_printf(out, "\n]}\n");
	free(list);
}

/*
 * Returns true if the path needs no quoting in a map file of HAProxy, or on a line of HAProxy's
 * runtime API, where ';' begins another command and '\' escapes the next character.
 */
static bool
metrics_popular_is_plain(const struct popular_path *pp)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno"
				    "pqrstuvwxyz0123456789-._~/%!$&'()*+,=:@";

	for (uint32_t i = 0; i < pp->pp_len; i++)
		if (pp->pp_path[i] == '\0' ||
		    strchr(plain, pp->pp_path[i]) == NULL)
			return false;
	return true;
}

/*
 * Returns true if the list has the same path of another site, with more requests, before this
 * entry.
 */
static bool
metrics_popular_is_listed(const struct popular_path *list, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (list[j].pp_len == list[i].pp_len &&
		    memcmp(list[j].pp_path, list[i].pp_path, list[i].pp_len) ==
			0)
			return true;
	return false;
}

void
metrics_popular_map(const struct metrics *mt, struct evbuffer *out)
{
	size_t n;
	struct popular_path *list = metrics_popular_collect(mt, &n);

	for (size_t i = 0; i < n; i++)
		if (list[i].pp_count > list[i].pp_error &&
		    metrics_popular_is_plain(&list[i]) &&
		    !metrics_popular_is_listed(list, i))
			evbuffer_add_printf(out, "%.*s %" PRIu64 "\n",
			    (int)list[i].pp_len, list[i].pp_path,
			    list[i].pp_count - list[i].pp_error);
	free(list);
}

/* Writes only the total number of requests, since labels by path would be unbounded. */
void
metrics_popular(const struct metrics *mt, struct evbuffer *out)
{
	uint64_t counted = 0;

	if (mt->mt_conf->conf_popular == 0)
		return;
	for (unsigned i = 0; i < mt->mt_conf->conf_workers; i++)
		counted += popular_counted(metrics_popular_of(mt, i));
	prometheus_simple(out, "pagewise_popular_requests_total", "counter",
	    counted, "Requests counted for the list of popular paths.");
}
