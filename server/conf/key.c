/*
 * key: what each key means: its type, its range, where its value goes.
 * The same for the file and the command line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/conf/similar.h"

#define K ((uint64_t)1024)
#define M (K * K)

struct top_key {
	const char *tk_name;
	int (*tk_set)(struct conf_build *, const struct top_key *, const char *,
	    struct conf_why *);
	/* of a number: */
	size_t tk_offset; /* in struct conf */
	size_t tk_width;  /* of the field */
	uint64_t tk_min;
	uint64_t tk_max;
	int (*tk_parse)(const char *, uint64_t *);
};

struct inherited_key {
	const char *ik_name;
	int (*ik_set)(struct settings *, const char *, struct conf_why *);
};

/* As conf_size reads it. */
static void
size_text(uint64_t value, char *buf, size_t size)
{
	if (value >= M && value % M == 0)
		snprintf(buf, size, "%lluM", (unsigned long long)(value / M));
	else if (value >= K && value % K == 0)
		snprintf(buf, size, "%lluK", (unsigned long long)(value / K));
	else
		snprintf(buf, size, "%llu", (unsigned long long)value);
}

/* hint is ", or auto", or empty. */
static int
number_in_range(const char *text, int (*parse)(const char *, uint64_t *),
    uint64_t min, uint64_t max, const char *hint, uint64_t *value,
    struct conf_why *why)
{
	const char *cause = "is out of range";
	char lo[24], hi[24];
	int error;

	error = parse(text, value);
	if (error == 0 && (*value < min || *value > max))
		error = -ERANGE;
	if (error == 0)
		return 0;
	if (text[0] == '\0') {
		text = "the value";
		cause = "is empty";
	} else if (error == -EINVAL)
		cause =
		    parse == conf_size ? "is not a size" : "is not a number";
	if (parse == conf_size) {
		size_text(min, lo, sizeof(lo));
		size_text(max, hi, sizeof(hi));
	} else {
		snprintf(lo, sizeof(lo), "%llu", (unsigned long long)min);
		snprintf(hi, sizeof(hi), "%llu", (unsigned long long)max);
	}
	return conf_why(
	    why, error, "%s %s (%s to %s%s)", text, cause, lo, hi, hint);
}

static int
set_number(struct conf_build *b, const struct top_key *key, const char *text,
    struct conf_why *why)
{
	char *field = (char *)b->cb_conf + key->tk_offset;
	uint64_t value;
	int error;

	error = number_in_range(
	    text, key->tk_parse, key->tk_min, key->tk_max, "", &value, why);
	if (error != 0)
		return error;
	if (key->tk_width == sizeof(unsigned)) {
		unsigned narrow = (unsigned)value;

		memcpy(field, &narrow, sizeof(narrow));
	} else {
		size_t wide = (size_t)value;

		memcpy(field, &wide, sizeof(wide));
	}
	return 0;
}

static int
set_workers(struct conf_build *b, const struct top_key *key, const char *text,
    struct conf_why *why)
{
	unsigned cpus = conf_cpus();
	uint64_t value;
	int error;

	if (strcmp(text, "auto") == 0) {
		b->cb_conf->conf_workers =
		    cpus < key->tk_max ? cpus : (unsigned)key->tk_max;
		return 0;
	}
	error = number_in_range(text, conf_number, key->tk_min, key->tk_max,
	    ", or auto", &value, why);
	if (error == 0)
		b->cb_conf->conf_workers = (unsigned)value;
	return error;
}

static int
set_tcp_memory(struct conf_build *b, const struct top_key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	if (strcmp(text, "auto") == 0) {
		b->cb_conf->conf_tcp_memory = TCP_MEMORY_AUTO;
		return 0;
	}
	return number_in_range(text, conf_size, 0, (uint64_t)64 << 30,
	    ", or auto", &b->cb_conf->conf_tcp_memory, why);
}

static int
set_access_log(struct conf_build *b, const struct top_key *key,
    const char *text, struct conf_why *why)
{
	struct conf *conf = b->cb_conf;

	(void)key;
	free(conf->conf_access_log);
	conf->conf_access_log = NULL;
	if (strcmp(text, "off") == 0)
		return 0;
	if (text[0] == '\0')
		return conf_why(
		    why, -EINVAL, "the path is empty (\"off\" for none)");
	conf->conf_access_log =
	    conf_path(strcmp(text, "-") == 0 ? NULL : b->cb_dir, text);
	if (conf->conf_access_log == NULL)
		return conf_why(why, -ENOMEM, "%s", strerror(ENOMEM));
	return 0;
}

static int
set_log_format(struct conf_build *b, const struct top_key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	if (strcmp(text, "combined") == 0)
		b->cb_conf->conf_log_format = LOG_COMBINED;
	else if (strcmp(text, "json") == 0)
		b->cb_conf->conf_log_format = LOG_JSON;
	else
		return conf_why(
		    why, -EINVAL, "\"%s\" is not combined or json", text);
	return 0;
}

static int
set_mime_types(struct conf_build *b, const struct top_key *key,
    const char *text, struct conf_why *why)
{
	struct conf *conf = b->cb_conf;
	char *path;

	(void)key;
	if (conf->conf_mime != NULL)
		mime_destroy(&conf->conf_mime);
	if (text[0] == '\0')
		return conf_why(why, -EINVAL, "the path is empty");
	path = conf_path(b->cb_dir, text);
	if (path == NULL)
		return conf_why(why, -ENOMEM, "%s", strerror(ENOMEM));
	conf->conf_mime = mime_load(path, why->why_text, sizeof(why->why_text));
	free(path);
	return conf->conf_mime != NULL ? 0 : -EINVAL;
}

#define NUMBER(name, field, min, max, parse)                           \
	{                                                              \
		name, set_number, offsetof(struct conf, field),        \
		    sizeof(((struct conf *)0)->field), min, max, parse \
	}
#define OTHER(name, set)                    \
	{                                   \
		name, set, 0, 0, 0, 0, NULL \
	}

static const struct top_key top_keys[] = {
    OTHER("listen", conf_set_listen),
    OTHER("admin", conf_set_admin),
    {"workers", set_workers, 0, 0, 1, 1024, NULL},
    NUMBER("threads", conf_threads, 1, 256, conf_number),
    OTHER("access_log", set_access_log),
    OTHER("log_format", set_log_format),
    NUMBER("stall_log", conf_stall_log, 0, 60000, conf_number),
    NUMBER("busy_poll", conf_busy_poll, 0, 10000, conf_number),
    OTHER("mime_types", set_mime_types),
    OTHER("user", conf_set_user),
    OTHER("group", conf_set_group),
    OTHER("chroot", conf_set_chroot),
    OTHER("sandbox", conf_set_sandbox),
    OTHER("keep_fowner", conf_set_keep_fowner),
    NUMBER("head_timeout", conf_head_timeout, 1, 3600, conf_number),
    NUMBER("keepalive_timeout", conf_keepalive_timeout, 0, 86400, conf_number),
    NUMBER("send_timeout", conf_send_timeout, 1, 86400, conf_number),
    NUMBER("disk_timeout", conf_disk_timeout, 1, 86400, conf_number),
    NUMBER("shutdown_timeout", conf_shutdown_timeout, 0, 86400, conf_number),
    NUMBER("max_head_size", conf_max_head, K, M, conf_size),
    NUMBER("max_target_size", conf_max_target, 64, M, conf_size),
    NUMBER("max_fields", conf_max_fields, 1, 1024, conf_number),
    NUMBER("max_ranges", conf_max_ranges, 1, 1024, conf_number),
    NUMBER("max_requests", conf_max_requests, 0, 1000000000, conf_number),
    NUMBER("max_connections", conf_max_connections, 0, 10000000, conf_number),
    NUMBER("max_connections_per_address", conf_max_per_address, 0, 10000000,
	conf_number),
    NUMBER("min_send_rate", conf_min_send_rate, 0, M, conf_size),
    OTHER("tcp_memory", set_tcp_memory),
    NUMBER("hot_set", conf_hot_set, 0, (uint64_t)64 << 30, conf_size),
    NUMBER("open_files", conf_open_files, 16, 1000000, conf_number),
};

int
conf_set_send_path(struct settings *set, const char *name, struct conf_why *why)
{
	const struct pw_send_path *path =
	    strcmp(name, "auto") == 0 ? pw_send_default() : pw_send_path(name);
	const char *const *known = pw_send_path_names;
	const char *cause = NULL;
	char list[256] = "auto";
	size_t len = strlen(list);

	if (path != NULL && pw_send_probe(path, &cause) == 0) {
		set->set_send_path = path;
		return 0;
	}
	if (path != NULL)
		return conf_why(why, -ENOTSUP, "%s cannot be used here: %s",
		    name, cause != NULL ? cause : "unknown cause");
	for (; *known != NULL && len < sizeof(list); known++)
		len += (size_t)snprintf(
		    list + len, sizeof(list) - len, ", %s", *known);
	return conf_why(
	    why, -EINVAL, "there is no \"%s\"; known are %s", name, list);
}

static int
set_readahead(struct settings *set, const char *text, struct conf_why *why)
{
	if (strcmp(text, "auto") == 0) {
		set->set_readahead = PW_READAHEAD_AUTO;
		return 0;
	}
	if (strcmp(text, "0") == 0) {
		set->set_readahead = PW_READAHEAD_NONE;
		return 0;
	}
	return number_in_range(text, conf_size, 64 * K, 64 * M, ", 0 or auto",
	    &set->set_readahead, why);
}

static int
set_cache(struct settings *set, const char *text, struct conf_why *why)
{
	if (conf_cache(text, &set->set_cache) != 0)
		return conf_why(
		    why, -EINVAL, "\"%s\" is not keep, drop or auto", text);
	return 0;
}

static int
set_bool(bool *field, const char *text, struct conf_why *why)
{
	if (conf_bool(text, field) != 0)
		return conf_why(why, -EINVAL, CONF_NO_BOOL, text);
	return 0;
}

static int
set_autoindex(struct settings *set, const char *text, struct conf_why *why)
{
	return set_bool(&set->set_autoindex, text, why);
}

static int
set_dotfiles(struct settings *set, const char *text, struct conf_why *why)
{
	return set_bool(&set->set_dotfiles, text, why);
}

static int
set_index(struct settings *set, const char *text, struct conf_why *why)
{
	if (text[0] == '\0' || strchr(text, '/') != NULL ||
	    strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
		return conf_why(
		    why, -EINVAL, "\"%s\" is not the name of a file", text);
	if (conf_strv_add(&set->set_index, text) != 0)
		return conf_why(why, -ENOMEM, "%s", strerror(ENOMEM));
	return 0;
}

static const struct inherited_key inherited_keys[] = {
    {"send_path", conf_set_send_path},
    {"readahead", set_readahead},
    {"cache", set_cache},
    {"autoindex", set_autoindex},
    {"dotfiles", set_dotfiles},
    {"index", set_index},
};

static const struct top_key *
find_top(const char *key)
{
	for (size_t i = 0; i < sizeof(top_keys) / sizeof(*top_keys); i++) {
		if (strcmp(top_keys[i].tk_name, key) == 0)
			return &top_keys[i];
	}
	return NULL;
}

const char *
conf_key_place(const char *key, const char *section)
{
	if (find_top(key) != NULL || strcmp(key, "site") == 0)
		return "belongs at the top level, outside of every site";
	if (strcmp(key, "root") != 0 && strcmp(key, "names") != 0 &&
	    strcmp(key, "location") != 0)
		return NULL;
	if (strcmp(section, "location") == 0)
		return "belongs in the site, outside of its locations";
	return "belongs in a site: site \"NAME\" { root = \"DIR\" }";
}

const char *
conf_key_like(const char *key)
{
	static const char *const others[] = {
	    "site", "root", "names", "location"};
	struct similar sim = {0};
	size_t i;

	for (i = 0; i < sizeof(top_keys) / sizeof(*top_keys); i++)
		similar_offer(&sim, key, top_keys[i].tk_name);
	for (i = 0; i < sizeof(inherited_keys) / sizeof(*inherited_keys); i++)
		similar_offer(&sim, key, inherited_keys[i].ik_name);
	for (i = 0; i < sizeof(others) / sizeof(*others); i++)
		similar_offer(&sim, key, others[i]);
	return sim.sim_name;
}

int
conf_set_inherited(struct settings *set, const char *key, const char *text,
    struct conf_why *why)
{
	for (size_t i = 0; i < sizeof(inherited_keys) / sizeof(*inherited_keys);
	     i++) {
		if (strcmp(inherited_keys[i].ik_name, key) == 0)
			return inherited_keys[i].ik_set(set, text, why);
	}
	return conf_why(why, -ENOENT, "unknown key");
}

void
conf_clear_inherited(struct settings *set, const char *key)
{
	if (strcmp(key, "index") == 0)
		conf_strv_free(&set->set_index);
}

int
conf_set_top(struct conf_build *b, const char *key, const char *text,
    struct conf_why *why)
{
	const struct top_key *top = find_top(key);

	if (top != NULL)
		return top->tk_set(b, top, text, why);
	return conf_set_inherited(&b->cb_set, key, text, why);
}

int
conf_empty_top(const char *key, struct conf_why *why)
{
	if (strcmp(key, "listen") != 0)
		return 0;
	return conf_why(why, -EINVAL,
	    "the list is empty: write ADDR:PORT, as {\"127.0.0.1:8080\"}");
}

void
conf_clear_top(struct conf_build *b, const char *key)
{
	if (strcmp(key, "listen") == 0)
		conf_clear_listen(b->cb_conf);
	else
		conf_clear_inherited(&b->cb_set, key);
}
