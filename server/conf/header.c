/*
 * header: turns rules into response fields that are ready to be sent.  Applies the rules in the
 * order of the file, the rules of a site before the rules of its locations.
 *
 *	"Name: value"	replaces all fields of this name
 *	"+Name: value"	adds a field
 *	"-Name"		removes all fields of this name
 *	"always ..."	applies the rule also to responses with a status of 400 or more
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/http/chars.h"
#include "server/http/conditional.h"
#include "server/http/date.h"

#define LINES	     4096 /* maximum bytes of all fields that rules add */
#define MAX_FIELDS   64
#define ETAG_LONGEST 64 /* maximum bytes of an ETag that a rule sets */

struct field {
	const char *fd_name;
	size_t fd_len; /* length of the name */
	const char *fd_value;
	bool fd_always; /* true if also sent with a status >= 400 */
	bool fd_errors; /* true if not sent with a status < 400 */
};

struct fields {
	struct field fds_list[MAX_FIELDS];
	size_t fds_count;
	bool fds_full;
	bool fds_server; /* true if the server's own Server field is sent */
	unsigned fds_changed;
	/* values of validators that rules set, or NULL; sent only with a representation */
	const char *fds_last_modified;
	const char *fds_etag;
};

struct rule {
	char ru_kind; /* '=', '+' or '-' */
	struct field ru_field;
};

static bool
conf_header_skip(const char **text, const char *what)
{
	size_t len = strlen(what);

	if (strncmp(*text, what, len) != 0)
		return false;
	*text += len;
	return true;
}

/* Parses a rule.  Returns false if `text` is not a rule. */
static bool
conf_header_rule_parse(const char *text, struct rule *ru)
{
	*ru = (struct rule){.ru_kind = '=',
	    .ru_field.fd_always = conf_header_skip(&text, "always ")};
	text += strspn(text, " ");
	if (*text == '+' || *text == '-')
		ru->ru_kind = *text++;
	ru->ru_field.fd_name = text;
	while (chars_is(*text, CHAR_TOKEN))
		text++;
	ru->ru_field.fd_len = (size_t)(text - ru->ru_field.fd_name);
	if (ru->ru_field.fd_len == 0)
		return false;
	if (ru->ru_kind == '-')
		return *text == '\0';
	if (*text++ != ':')
		return false;
	ru->ru_field.fd_value = text + strspn(text, " \t");
	return true;
}

/*
 * Returns true if `text` has no control character except tab.  A line break would start another
 * field or end the head.
 */
static bool
conf_header_is_value(const char *text)
{
	for (; *text != '\0'; text++)
		if (iscntrl((unsigned char)*text) && *text != '\t')
			return false;
	return true;
}

static bool
conf_header_same_name(const struct field *a, const struct field *b)
{
	return a->fd_len == b->fd_len &&
	       strncasecmp(a->fd_name, b->fd_name, a->fd_len) == 0;
}

static bool
conf_header_is_named(const struct field *fd, const char *name)
{
	return conf_header_same_name(
	    fd, &(struct field){.fd_name = name, .fd_len = strlen(name)});
}

/*
 * Returns the reason why rules may not set this field, or NULL if rules may set it.  Fields that
 * determine the framing or meaning of the message are reserved.
 */
static const char *
conf_header_reserved(const struct field *fd)
{
	static const struct {
		const char *name;
		const char *cause;
	} fixed[] = {
	    {"Content-Length", "is reserved for the server: remove this rule"},
	    {"Content-Range", "is reserved for the server: remove this rule"},
	    {"Content-Encoding",
		"is reserved for the server: remove this rule"},
	    {"Transfer-Encoding",
		"is reserved for the server: remove this rule"},
	    {"Connection", "is reserved for the server: remove this rule"},
	    {"Keep-Alive", "is reserved for the server: remove this rule"},
	    {"Upgrade", "is reserved for the server: remove this rule"},
	    {"Trailer", "is reserved for the server: remove this rule"},
	    {"Date", "is reserved for the server: remove this rule"},
	    {"Location", "is reserved for the server: remove this rule"},
	    {"Content-Type",
		"cannot be set by a rule: use types or default_type"},
	};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
		if (conf_header_is_named(fd, fixed[i].name))
			return fixed[i].cause;
	return NULL;
}

/* Refuses a validator that clients could not send back in a conditional request. */
static int
conf_header_check_validator(const struct rule *ru, struct conf_why *why)
{
	const struct field *fd = &ru->ru_field;
	struct str value = {fd->fd_value, 0};
	time_t t;

	if (conf_header_is_named(fd, "ETag") && ru->ru_kind == '-')
		return conf_why(why, -EINVAL,
		    "ETag cannot be removed by a rule: write etag = off");
	if (ru->ru_kind == '-')
		return 0;
	value.s_len = strlen(fd->fd_value);
	if (conf_header_is_named(fd, "ETag") &&
	    (!conditional_is_etag(value) || value.s_len > ETAG_LONGEST))
		return conf_why(why, -EINVAL,
		    "ETag: %s is not an entity tag of at most %d bytes, such "
		    "as \"ETag: \\\"v1\\\"\"",
		    fd->fd_value, ETAG_LONGEST);
	if (conf_header_is_named(fd, "Last-Modified") &&
	    !date_parse(value, 0, &t))
		return conf_why(why, -EINVAL,
		    "Last-Modified: \"%s\" is not a date: write one such as "
		    "\"Wed, 01 Jan 2025 00:00:00 GMT\"",
		    fd->fd_value);
	return 0;
}

int
conf_set_header(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct rule ru;
	const char *cause;
	int error;

	(void)key;
	if (!conf_header_rule_parse(text, &ru))
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a rule: write \"Name: value\", "
		    "\"+Name: value\" or \"-Name\"",
		    text);
	cause = conf_header_reserved(&ru.ru_field);
	if (cause != NULL)
		return conf_why(why, -EINVAL, "%.*s %s",
		    (int)ru.ru_field.fd_len, ru.ru_field.fd_name, cause);
	if (ru.ru_kind != '-' && !conf_header_is_value(ru.ru_field.fd_value))
		return conf_why(why, -EINVAL,
		    "%.*s: the value contains a control character: remove it",
		    (int)ru.ru_field.fd_len, ru.ru_field.fd_name);
	if (strlen(text) > LINES / 2)
		return conf_why(why, -EINVAL,
		    "the rule is longer than %d bytes: shorten it", LINES / 2);
	error = conf_header_check_validator(&ru, why);
	if (error != 0)
		return error;
	if (conf_keep_add(scope->cs_conf, &scope->cs_set->set_headers, text) !=
	    0)
		return conf_no_memory(why);
	return 0;
}

/*
 * Copies the inherited rules, so that the section's own rules follow them.  Does not report a
 * shortage of memory; if it lasts, the next call of conf_set_header reports it.
 */
void
conf_clear_header(struct conf_scope *scope)
{
	(void)conf_keep_copy(scope->cs_conf, &scope->cs_set->set_headers);
}

static int
conf_header_keep_text(struct conf_scope *scope, char **field, const char *text,
    struct conf_why *why)
{
	*field = conf_keep_text(scope->cs_conf, text, strlen(text));
	return *field != NULL ? 0 : conf_no_memory(why);
}

int
conf_set_cache_control(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	scope->cs_set->set_cache_control = NULL;
	if (strcmp(text, "off") == 0)
		return 0;
	if (text[0] == '\0' || !conf_header_is_value(text) ||
	    strlen(text) > LINES / 2)
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a list of directives such as "
		    "\"max-age=600\" (\"off\" for none)",
		    text);
	return conf_header_keep_text(
	    scope, &scope->cs_set->set_cache_control, text, why);
}

int
conf_set_expires(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	uint64_t seconds;
	char line[40];

	(void)key;
	if (strcmp(text, "off") == 0) {
		scope->cs_set->set_cache_control = NULL;
		return 0;
	}
	if (conf_time(text, &seconds) != 0)
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a time such as 600, 10m, 12h, 30d or 1y "
		    "(\"off\" for none)",
		    text);
	snprintf(
	    line, sizeof(line), "max-age=%llu", (unsigned long long)seconds);
	return conf_header_keep_text(scope, &scope->cs_set->set_cache_control,
	    seconds == 0 ? "no-cache" : line, why);
}

/* Returns true for an origin as browsers send it: "https://example.org", with or without a port. */
static bool
conf_header_is_origin(const char *text)
{
	const char *host = strstr(text, "://");

	return host != NULL && host > text && host[3] != '\0' &&
	       strpbrk(host + 3, "/?#@ \t,\"") == NULL &&
	       conf_header_is_value(text) && strlen(text) <= 256;
}

int
conf_set_cors(struct conf_scope *scope, const struct key *key, const char *text,
    struct conf_why *why)
{
	char ***list = &scope->cs_set->set_cors;

	(void)key;
	if (strcmp(text, "*") != 0 && !conf_header_is_origin(text))
		return conf_why(why, -EINVAL,
		    "\"%s\" is not an origin: write one such as "
		    "\"https://example.org\", or \"*\" for all origins",
		    text);
	if (conf_keep_add(scope->cs_conf, list, text) != 0)
		return conf_no_memory(why);
	if ((*list)[1] != NULL &&
	    (strcmp(text, "*") == 0 || strcmp((*list)[0], "*") == 0))
		return conf_why(why, -EINVAL,
		    "\"*\" stands for all origins: remove the other origins");
	return 0;
}

void
conf_clear_cors(struct conf_scope *scope)
{
	scope->cs_set->set_cors = NULL;
}

/* ------------------------------------------------------------------- lines */

/* Removes fields of this name from the responses that the rule applies to. */
static void
conf_header_drop(struct fields *fds, const struct field *named)
{
	struct field *fd;
	size_t i, kept = 0;

	for (i = 0; i < fds->fds_count; i++) {
		fd = &fds->fds_list[i];
		if (conf_header_same_name(fd, named)) {
			if (named->fd_always || !fd->fd_always)
				continue;
			fd->fd_errors = true;
		}
		fds->fds_list[kept++] = *fd;
	}
	fds->fds_count = kept;
	if (conf_header_is_named(named, "Server"))
		fds->fds_server = false;
	else if (conf_header_is_named(named, "Last-Modified"))
		fds->fds_changed |= HEADER_NO_LAST_MODIFIED;
	else if (conf_header_is_named(named, "Accept-Ranges"))
		fds->fds_changed |= HEADER_NO_ACCEPT_RANGES;
	else if (conf_header_is_named(named, "Cache-Control"))
		fds->fds_changed |= HEADER_CACHE_CONTROL;
}

static void
conf_header_add(struct fields *fds, const struct field *fd)
{
	if (fds->fds_count == MAX_FIELDS)
		fds->fds_full = true;
	else
		fds->fds_list[fds->fds_count++] = *fd;
}

static void
conf_header_add_own(
    struct fields *fds, const char *name, const char *value, bool always)
{
	conf_header_add(
	    fds, &(struct field){name, strlen(name), value, always, false});
}

/*
 * Sets a validator.  A response has at most one ETag and one Last-Modified, so "+" replaces as
 * well.  Returns false for any other field.
 */
static bool
conf_header_apply_validator(struct fields *fds, const struct field *fd)
{
	if (conf_header_is_named(fd, "Last-Modified"))
		fds->fds_last_modified = fd->fd_value;
	else if (conf_header_is_named(fd, "ETag"))
		fds->fds_etag = fd->fd_value;
	else
		return false;
	return true;
}

static void
conf_header_apply(struct fields *fds, const char *text)
{
	struct rule ru;

	/* conf_set_header has checked the rule. */
	if (!conf_header_rule_parse(text, &ru))
		return;
	/* Rules never remove the server's own Vary fields. */
	if (ru.ru_kind != '+' && !conf_header_is_named(&ru.ru_field, "Vary"))
		conf_header_drop(fds, &ru.ru_field);
	if (!conf_header_apply_validator(fds, &ru.ru_field) &&
	    ru.ru_kind != '-')
		conf_header_add(fds, &ru.ru_field);
}

static void
conf_header_add_short_forms(struct fields *fds, const struct settings *set)
{
	if (set->set_cache_control != NULL) {
		conf_header_add_own(
		    fds, "Cache-Control", set->set_cache_control, false);
		fds->fds_changed |= HEADER_CACHE_CONTROL;
	}
	/* RFC 9111, 3.5: a shared cache must not reuse a response to an authorised request. */
	if (set->set_cache_control == NULL &&
	    (set->set_link_keys != NULL || set->set_htpasswd != NULL)) {
		conf_header_add_own(fds, "Cache-Control", "private", false);
		fds->fds_changed |= HEADER_CACHE_CONTROL;
	}
	if (set->set_ncodings > 0)
		conf_header_add_own(fds, "Vary", "Accept-Encoding", true);
	if (set->set_security_headers) {
		conf_header_add_own(
		    fds, "X-Content-Type-Options", "nosniff", true);
		conf_header_add_own(fds, "X-Frame-Options", "SAMEORIGIN", true);
		conf_header_add_own(fds, "Referrer-Policy",
		    "strict-origin-when-cross-origin", true);
	}
	if (set->set_cors != NULL && strcmp(set->set_cors[0], "*") == 0)
		conf_header_add_own(
		    fds, "Access-Control-Allow-Origin", "*", true);
	else if (set->set_cors != NULL)
		conf_header_add_own(fds, "Vary", "Origin", true);
	if (set->set_cors != NULL)
		conf_header_add_own(fds, "Access-Control-Expose-Headers",
		    "Accept-Ranges, Content-Encoding, Content-Length, "
		    "Content-Range, ETag, Repr-Digest",
		    true);
}

/*
 * Writes to *out the field lines of error responses if `errors` is true, else the field lines of
 * all other responses.  Returns false if memory is short or the lines exceed LINES bytes.
 */
static bool
conf_header_lines(
    struct conf *conf, const struct fields *fds, bool errors, struct str *out)
{
	char text[LINES + 1];
	size_t len = 0;

	for (size_t i = 0; i < fds->fds_count; i++) {
		const struct field *fd = &fds->fds_list[i];

		if (errors ? !fd->fd_always : fd->fd_errors)
			continue;
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "%.*s: %s\r\n", (int)fd->fd_len, fd->fd_name, fd->fd_value);
		if (len >= sizeof(text))
			return false;
	}
	out->s_ptr = conf_keep_text(conf, text, len);
	out->s_len = len;
	return out->s_ptr != NULL;
}

static bool
conf_header_preflight(struct conf *conf, struct settings *set)
{
	char text[256];
	int len = snprintf(text, sizeof(text),
	    "Access-Control-Allow-Methods: GET, HEAD, OPTIONS\r\n"
	    "Access-Control-Allow-Headers: *, Range%s\r\n"
	    "Access-Control-Max-Age: %u\r\n",
	    set->set_htpasswd != NULL ? ", Authorization" : "",
	    set->set_cors_max_age);

	set->set_preflight.s_ptr = conf_keep_text(conf, text, (size_t)len);
	set->set_preflight.s_len = (size_t)len;
	return set->set_preflight.s_ptr != NULL;
}

static struct str
conf_header_slice(const char *text)
{
	return (struct str){text, text == NULL ? 0 : strlen(text)};
}

int
conf_complete_headers(
    struct conf *conf, struct settings *set, struct conf_why *why)
{
	struct fields fds = {.fds_server = true};

	conf_header_add_short_forms(&fds, set);
	for (char **s = set->set_headers; s != NULL && *s != NULL; s++)
		conf_header_apply(&fds, *s);
	set->set_changed = fds.fds_changed;
	set->set_last_modified = conf_header_slice(fds.fds_last_modified);
	set->set_entity_tag = conf_header_slice(fds.fds_etag);
	set->set_server =
	    fds.fds_server ? STR("Server: pagewise\r\n") : STR("");
	set->set_origins =
	    set->set_cors != NULL && strcmp(set->set_cors[0], "*") != 0;
	if (fds.fds_full ||
	    !conf_header_lines(conf, &fds, false, &set->set_lines) ||
	    !conf_header_lines(conf, &fds, true, &set->set_always) ||
	    !conf_header_preflight(conf, set))
		return conf_why(why, -E2BIG,
		    "too many header fields: at most %d fields and %d bytes in "
		    "total; remove some",
		    MAX_FIELDS, LINES);
	return 0;
}
