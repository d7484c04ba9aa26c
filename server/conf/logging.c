/*
 * logging: the format and fields of the access log, the requests that it excludes, the level of log
 * messages, and the clients whose requests are traced.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/conf/similar.h"

#define BITS	   64
#define STATUS_MIN 100
#define STATUS_MAX 599

int
conf_set_log_format(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	if (strcmp(text, "combined") == 0)
		scope->cs_conf->conf_log_format = LOG_COMBINED;
	else if (strcmp(text, "json") == 0)
		scope->cs_conf->conf_log_format = LOG_JSON;
	else
		return conf_why(
		    why, -EINVAL, "\"%s\" is not combined or json", text);
	return 0;
}

int
conf_set_log_level(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	enum log_level *level = &scope->cs_conf->conf_log_level;

	(void)key;
	if (strcmp(text, "error") == 0)
		*level = LEVEL_ERROR;
	else if (strcmp(text, "warning") == 0)
		*level = LEVEL_WARNING;
	else if (strcmp(text, "notice") == 0)
		*level = LEVEL_NOTICE;
	else
		return conf_why(why, -EINVAL,
		    "\"%s\" is not error, warning or notice", text);
	return 0;
}

int
conf_set_trace_clients(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	return conf_set_block(scope, &scope->cs_conf->conf_trace, text, why);
}

void
conf_clear_trace_clients(struct conf_scope *scope)
{
	scope->cs_conf->conf_trace = (struct cidr_list){0};
}

/* ------------------------------------------------------------------ log_fields */

static int
conf_logging_unknown_field(const char *text, struct conf_why *why)
{
	struct similar sim = {0};
	char list[256] = "";
	size_t len = 0;

	for (unsigned i = 0; i < NFIELDS; i++)
		similar_offer(&sim, text, log_field_names[i]);
	if (sim.sim_name != NULL)
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a log field; did you mean %s?", text,
		    sim.sim_name);
	for (unsigned i = 0; i < NFIELDS && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
		    i == 0 ? "" : ", ", log_field_names[i]);
	return conf_why(why, -EINVAL,
	    "\"%s\" is not a log field: the fields are %s", text, list);
}

int
conf_set_log_fields(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct log_fields *lf = &scope->cs_conf->conf_log_fields;
	unsigned field = 0;

	(void)key;
	while (field < NFIELDS && strcmp(text, log_field_names[field]) != 0)
		field++;
	if (field == NFIELDS)
		return conf_logging_unknown_field(text, why);
	for (unsigned i = 0; i < lf->lf_count; i++)
		if (lf->lf_list[i] == field)
			return conf_why(
			    why, -EINVAL, "%s is listed twice", text);
	lf->lf_list[lf->lf_count++] = field;
	return 0;
}

void
conf_clear_log_fields(struct conf_scope *scope)
{
	scope->cs_conf->conf_log_fields.lf_count = 0;
}

/* ----------------------------------------------------------------- log_exclude */

static void
conf_logging_exclude_status(struct log_exclude *le, unsigned status)
{
	le->le_statuses[status / BITS] |= (uint64_t)1 << status % BITS;
}

/* Excludes the statuses of "304" or "2xx".  Returns false if `text` is neither. */
static bool
conf_logging_exclude_statuses(struct log_exclude *le, const char *text)
{
	uint64_t status;

	if (strlen(text) != 3)
		return false;
	if (text[0] >= '1' && text[0] <= '5' && strcmp(text + 1, "xx") == 0) {
		status = (uint64_t)(text[0] - '0') * 100;
		for (unsigned i = 0; i < 100; i++)
			conf_logging_exclude_status(le, (unsigned)status + i);
		return true;
	}
	if (conf_number(text, &status) != 0 || status < STATUS_MIN ||
	    status > STATUS_MAX)
		return false;
	conf_logging_exclude_status(le, (unsigned)status);
	return true;
}

int
conf_set_log_exclude(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct log_exclude *le = &scope->cs_conf->conf_log_exclude;

	le->le_any = true;
	if (conf_logging_exclude_statuses(le, text))
		return 0;
	if (text[0] != '/' && text[0] != '*')
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a path, a glob, or a status such as 304 or "
		    "2xx",
		    text);
	if (strlen(text) > GLOB_MAX)
		return conf_why(why, -EINVAL,
		    "the glob has %zu bytes: at most %d are allowed",
		    strlen(text), GLOB_MAX);
	if (conf_keep_add(scope->cs_conf, &le->le_globs, text) != 0)
		return conf_no_memory(why);
	if (scope->cs_file != NULL)
		conf_glob_warn(
		    scope->cs_file, scope->cs_line, key->key_name, text);
	return 0;
}

void
conf_clear_log_exclude(struct conf_scope *scope)
{
	scope->cs_conf->conf_log_exclude = (struct log_exclude){0};
}

bool
conf_is_excluded(const struct log_exclude *le, struct str path, int status)
{
	unsigned n = (unsigned)status;

	if (n <= STATUS_MAX && (le->le_statuses[n / BITS] >> n % BITS & 1) != 0)
		return true;
	if (le->le_globs == NULL || path.s_ptr == NULL)
		return false;
	for (char *const *glob = le->le_globs; *glob != NULL; glob++)
		if (conf_glob(*glob, path.s_ptr, path.s_len))
			return true;
	return false;
}
