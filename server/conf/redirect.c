/*
 * redirect: the key redirect, with rules "FROM TO STATUS".  A rule without '*' is found by binary
 * search.  Each rule with a '*' needs up to two comparisons, of the text before and after the '*'.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/http/target.h"

#define STATUS 302 /* default status; browsers cache a 301 indefinitely */

struct redirects {
	struct redirect **rds_exact; /* rules without '*', shortest first */
	size_t rds_nexact;
	struct redirect **rds_globs; /* rules with '*', in file order */
	size_t rds_nglobs;
};

static struct str
conf_redirect_kept(struct conf *conf, const char *text, size_t len)
{
	return (struct str){conf_keep_text(conf, text, len), len};
}

/* -------------------------------------------------------------------- FROM */

/* Parses FROM into the form in which request paths are compared: decoded and normalised. */
static int
conf_redirect_set_from(struct conf *conf, struct redirect *rd, const char *from,
    struct conf_why *why)
{
	bool bare = from[0] == '*';
	size_t size = strlen(from) + 3;
	char *path = conf_keep(conf, 2 * size), *raw, *star;
	struct target tgt;

	if (path == NULL)
		return conf_no_memory(why);
	if (!bare && from[0] != '/')
		return conf_why(
		    why, -EINVAL, "%s does not begin with '/'", from);
	star = strchr(from, '*');
	if (star != NULL && strchr(star + 1, '*') != NULL)
		return conf_why(why, -EINVAL,
		    "%s has more than one '*': keep "
		    "one",
		    from);
	raw = path + size;
	snprintf(raw, size, "%s%s", bare ? "/" : "", from);
	if (strchr(raw, '?') != NULL ||
	    target_parse((struct str){raw, strlen(raw)}, path, size, &tgt) != 0)
		return conf_why(why, -EINVAL,
		    "%s is not a valid path: remove '?', bad %%XX escapes and "
		    "\"..\" above the root",
		    from);
	rd->rd_before = tgt.tgt_path;
	/* Normalisation removes a '*' before a "/..", and decodes "%2A" to a '*'. */
	if ((star == NULL) != (strchr(path, '*') == NULL))
		return conf_why(why, -EINVAL,
		    "%s is not a valid path: write '*' instead of \"%%2A\", "
		    "and remove \"/..\" after the '*'",
		    from);
	star = strchr(path, '*');
	if (star == NULL)
		return 0;
	rd->rd_before.s_len = bare ? 0 : (size_t)(star - path);
	rd->rd_after = (struct str){star + 1, strlen(star + 1)};
	return 0;
}

/* ---------------------------------------------------------------------- TO */

/* Returns true if all characters may be in a URI; all others must be percent-encoded. */
static bool
conf_redirect_is_uri(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text <= ' ' || *text > '~' ||
		    strchr("\"<>\\^`{|}", *text) != NULL)
			return false;
	return true;
}

/* Returns the host part of "https://HOST/...", or NULL if there is none. */
static const char *
conf_redirect_authority(const char *to, size_t *len)
{
	const char *host = strncmp(to, "https://", 8) == 0  ? to + 8
			   : strncmp(to, "http://", 7) == 0 ? to + 7
							    : NULL;

	*len = host != NULL ? strcspn(host, "/?#") : 0;
	return host;
}

/*
 * Returns true for "$host" at the end of the host or before its port.  Rejects "$hostname" as a
 * typo.
 */
static bool
conf_redirect_is_host(const char *var, const char *host, size_t len)
{
	return host != NULL && var < host + len &&
	       strncmp(var, "$host", 5) == 0 &&
	       strchr(":/?#", var[5]) != NULL && strchr(var + 1, '$') == NULL;
}

/* Checks TO.  Refuses a '*' in the host, which would let clients choose the target host. */
static int
conf_redirect_check_to(
    const struct redirect *rd, const char *to, struct conf_why *why)
{
	size_t len;
	const char *host = conf_redirect_authority(to, &len),
		   *star = strchr(to, '*');
	const char *var = strchr(to, '$');

	if (!conf_redirect_is_uri(to))
		return conf_why(why, -EINVAL,
		    "%s has characters that a URI must not contain: "
		    "percent-encode them",
		    to);
	if (host == NULL && (to[0] != '/' || to[1] == '/'))
		return conf_why(why, -EINVAL,
		    "%s: write a path that begins with one '/', or "
		    "http://HOST/ or https://HOST/",
		    to);
	if (host != NULL && len == 0)
		return conf_why(why, -EINVAL,
		    "%s has no host: write one after "
		    "\"://\"",
		    to);
	if (var != NULL && !conf_redirect_is_host(var, host, len))
		return conf_why(why, -EINVAL,
		    "%s: the only variable is $host: write it once, in place "
		    "of the host",
		    to);
	if (star != NULL && strchr(star + 1, '*') != NULL)
		return conf_why(why, -EINVAL,
		    "%s has more than one '*': keep "
		    "one",
		    to);
	if (star != NULL && rd->rd_after.s_ptr == NULL)
		return conf_why(why, -EINVAL,
		    "%s has a '*' but FROM has none: add a '*' to FROM, or "
		    "remove this one",
		    to);
	if (star != NULL && host != NULL && star <= host + len)
		return conf_why(why, -EINVAL,
		    "%s: '*' must come after the '/' that ends the host", to);
	return 0;
}

static int
conf_redirect_set_to(
    struct conf *conf, struct redirect *rd, char *to, struct conf_why *why)
{
	int error = conf_redirect_check_to(rd, to, why);
	char *mark, *text = conf_keep_text(conf, to, strlen(to));

	if (error != 0)
		return error;
	if (text == NULL)
		return conf_no_memory(why);
	rd->rd_fragment = STR("");
	mark = strchr(text, '#');
	if (mark != NULL) {
		rd->rd_fragment = conf_redirect_kept(conf, mark, strlen(mark));
		*mark = '\0';
	}
	rd->rd_query = strchr(text, '?') != NULL;
	rd->rd_to = (struct str){text, strlen(text)};
	mark = strstr(text, "$host");
	if (mark != NULL) {
		rd->rd_scheme = (struct str){text, (size_t)(mark - text)};
		rd->rd_to = (struct str){mark + 5, strlen(mark + 5)};
	}
	mark = strchr(rd->rd_to.s_ptr, '*');
	if (mark != NULL) {
		rd->rd_rest = (struct str){mark + 1, strlen(mark + 1)};
		rd->rd_to.s_len = (size_t)(mark - rd->rd_to.s_ptr);
	}
	return 0;
}

static int
conf_redirect_set_status(
    struct redirect *rd, const char *text, struct conf_why *why)
{
	static const int known[] = {301, 302, 303, 307, 308};
	uint64_t value;

	rd->rd_status = STATUS;
	if (text == NULL)
		return 0;
	if (conf_number(text, &value) == 0)
		for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
			if (value == (uint64_t)known[i]) {
				rd->rd_status = known[i];
				return 0;
			}
	return conf_why(
	    why, -EINVAL, "%s is not 301, 302, 303, 307 or 308", text);
}

/* ------------------------------------------------------------------- rules */

static int
conf_redirect_order(struct str a, struct str b)
{
	if (a.s_len != b.s_len)
		return a.s_len < b.s_len ? -1 : 1;
	return memcmp(a.s_ptr, b.s_ptr, a.s_len);
}

/* Returns the index of the first rule that does not sort before `path`. */
static size_t
conf_redirect_place(const struct redirects *rds, struct str path)
{
	size_t low = 0, high = rds->rds_nexact, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (conf_redirect_order(
			rds->rds_exact[middle]->rd_before, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct redirect *
conf_redirect_exact(const struct redirects *rds, struct str path)
{
	size_t i = conf_redirect_place(rds, path);

	if (i < rds->rds_nexact && str_eq(rds->rds_exact[i]->rd_before, path))
		return rds->rds_exact[i];
	return NULL;
}

static int
conf_redirect_insert(struct conf *conf, struct redirect ***list, size_t *count,
    size_t at, struct redirect *rd)
{
	const size_t size = sizeof(struct redirect *);
	struct redirect **grown = conf_keep_room(conf, *list, *count, size);

	if (grown == NULL)
		return -ENOMEM;
	memmove(grown + at + 1, grown + at, (*count - at) * size);
	grown[at] = rd;
	*list = grown;
	(*count)++;
	return 0;
}

static int
conf_redirect_add(struct conf *conf, struct redirects *rds, struct redirect *rd,
    struct conf_why *why)
{
	int error;

	if (rd->rd_after.s_ptr != NULL)
		error = conf_redirect_insert(conf, &rds->rds_globs,
		    &rds->rds_nglobs, rds->rds_nglobs, rd);
	else if (conf_redirect_exact(rds, rd->rd_before) != NULL)
		return conf_why(
		    why, -EEXIST, "%s is listed twice", rd->rd_before.s_ptr);
	else
		error = conf_redirect_insert(conf, &rds->rds_exact,
		    &rds->rds_nexact, conf_redirect_place(rds, rd->rd_before),
		    rd);
	return error == 0 ? 0 : conf_no_memory(why);
}

static int
conf_redirect_set_words(
    struct conf *conf, struct redirect *rd, char *words, struct conf_why *why)
{
	static const char blanks[] = " \t";
	char *rest, *from = strtok_r(words, blanks, &rest);
	char *to = strtok_r(NULL, blanks, &rest);
	char *status = strtok_r(NULL, blanks, &rest);
	int error;

	if (to == NULL || strtok_r(NULL, blanks, &rest) != NULL)
		return conf_why(why, -EINVAL,
		    "write \"FROM TO\" or \"FROM TO STATUS\", such as "
		    "\"/old/* /new/* 301\"");
	error = conf_redirect_set_status(rd, status, why);
	if (error == 0)
		error = conf_redirect_set_from(conf, rd, from, why);
	if (error == 0)
		error = conf_redirect_set_to(conf, rd, to, why);
	if (error == 0 && rd->rd_after.s_ptr == NULL &&
	    str_eq(rd->rd_before, (struct str){to, strlen(to)}))
		error = conf_why(why, -EINVAL, "%s redirects to itself", from);
	return error;
}

int
conf_set_redirect(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct conf *conf = scope->cs_conf;
	struct settings *set = scope->cs_set;
	struct redirect *rd = conf_keep(conf, sizeof(*rd));
	char *words = conf_keep_text(conf, text, strlen(text));
	int error;

	(void)key;
	if (set->set_redirects == NULL)
		set->set_redirects =
		    conf_keep(conf, sizeof(*set->set_redirects));
	if (rd == NULL || words == NULL || set->set_redirects == NULL)
		return conf_no_memory(why);
	error = conf_redirect_set_words(conf, rd, words, why);
	return error != 0
		   ? error
		   : conf_redirect_add(conf, set->set_redirects, rd, why);
}

void
conf_clear_redirect(struct conf_scope *scope)
{
	scope->cs_set->set_redirects = NULL;
}

static bool
conf_redirect_matches(
    const struct redirect *rd, struct str path, struct str *star)
{
	struct str tail = path;

	if (!str_skip(&tail, rd->rd_before) || tail.s_len < rd->rd_after.s_len)
		return false;
	*star = (struct str){tail.s_ptr, tail.s_len - rd->rd_after.s_len};
	str_advance(&tail, star->s_len);
	return str_eq(tail, rd->rd_after);
}

const struct redirect *
conf_redirect(const struct settings *set, struct str path, struct str *star)
{
	const struct redirects *rds = set->set_redirects;
	const struct redirect *rd;

	*star = STR("");
	if (rds == NULL)
		return NULL;
	rd = conf_redirect_exact(rds, path);
	for (size_t i = 0; rd == NULL && i < rds->rds_nglobs; i++)
		if (conf_redirect_matches(rds->rds_globs[i], path, star))
			rd = rds->rds_globs[i];
	return rd;
}
