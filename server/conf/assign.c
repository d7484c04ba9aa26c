/*
 * assign: functions that the rows of key.c name.  Each one sets a field of struct conf or struct
 * settings from a text.  Addresses are in listen.c, users in user.c, sites in site.c.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/http/target.h"

static char *
conf_assign_field(struct conf_scope *scope, const struct key *key)
{
	char *base = key->key_in_settings ? (char *)scope->cs_set
					  : (char *)scope->cs_conf;

	return base + key->key_offset;
}

int
conf_in_range(const struct key *key, const char *text, const char *hint,
    uint64_t *value, struct conf_why *why)
{
	const char *cause = "is out of range";
	char range[64];
	int error;

	error = key->key_parse(text, value);
	if (error == 0 && (*value < key->key_min || *value > key->key_max))
		error = -ERANGE;
	if (error == 0)
		return 0;
	if (text[0] == '\0') {
		text = "the value";
		cause = "is empty";
	} else if (error == -EINVAL)
		cause = key->key_parse == conf_size ? "is not a size"
						    : "is not a number";
	conf_range_text(key, range, sizeof(range));
	return conf_why(why, error, "%s %s (%s%s)", text, cause, range, hint);
}

int
conf_set_number(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	uint64_t value;
	unsigned narrow;
	int error;

	error = conf_in_range(key, text, "", &value, why);
	if (error != 0)
		return error;
	narrow = (unsigned)value;
	if (key->key_width == sizeof(narrow))
		memcpy(conf_assign_field(scope, key), &narrow, sizeof(narrow));
	else
		memcpy(conf_assign_field(scope, key), &value, sizeof(value));
	return 0;
}

int
conf_set_bool(struct conf_scope *scope, const struct key *key, const char *text,
    struct conf_why *why)
{
	bool value;

	if (conf_bool(text, &value) != 0)
		return conf_why(why, -EINVAL,
		    "\"%s\" is not true or false (also on, yes, off, no)",
		    text);
	memcpy(conf_assign_field(scope, key), &value, sizeof(value));
	return 0;
}

int
conf_set_workers(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	uint64_t value = conf_cpus();
	int error = 0;

	if (strcmp(text, "auto") != 0)
		error = conf_in_range(key, text, ", or auto", &value, why);
	else if (value > key->key_max)
		value = key->key_max;
	if (error == 0)
		scope->cs_conf->conf_workers = (unsigned)value;
	return error;
}

static int
conf_assign_set_size_or_auto(const struct key *key, const char *text,
    uint64_t automatic, uint64_t *value, struct conf_why *why)
{
	if (strcmp(text, "auto") != 0)
		return conf_in_range(key, text, ", or auto", value, why);
	*value = automatic;
	return 0;
}

int
conf_set_tcp_memory(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	return conf_assign_set_size_or_auto(
	    key, text, TCP_MEMORY_AUTO, &scope->cs_conf->conf_tcp_memory, why);
}

int
conf_set_hot_set(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	return conf_assign_set_size_or_auto(
	    key, text, HOT_SET_AUTO, &scope->cs_conf->conf_hot_set, why);
}

int
conf_set_tier_writes(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	return conf_assign_set_size_or_auto(key, text, TIER_WRITES_AUTO,
	    &scope->cs_conf->conf_tier_writes, why);
}

/* Accepts a directory that does not exist: the server then runs without a tier. */
int
conf_set_tier(struct conf_scope *scope, const struct key *key, const char *text,
    struct conf_why *why)
{
	struct conf *conf = scope->cs_conf;

	(void)key;
	free(conf->conf_tier);
	conf->conf_tier = NULL;
	if (strcmp(text, "off") == 0)
		return 0;
	if (text[0] == '\0')
		return conf_why(
		    why, -EINVAL, "the path is empty (write \"off\" for none)");
	conf->conf_tier = conf_path(scope->cs_dir, text);
	return conf->conf_tier == NULL ? conf_no_memory(why) : 0;
}

int
conf_set_access_log(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct conf *conf = scope->cs_conf;

	(void)key;
	free(conf->conf_access_log);
	conf->conf_access_log = NULL;
	conf->conf_access_log_place =
	    conf_place(scope->cs_set, "access_log", 0);
	if (strcmp(text, "off") == 0)
		return 0;
	if (text[0] == '\0')
		return conf_why(
		    why, -EINVAL, "the path is empty (write \"off\" for none)");
	conf->conf_access_log =
	    conf_path(strcmp(text, "-") == 0 ? NULL : scope->cs_dir, text);
	if (conf->conf_access_log == NULL)
		return conf_no_memory(why);
	return 0;
}

int
conf_set_mime_types(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct conf *conf = scope->cs_conf;
	char *path;

	(void)key;
	if (conf->conf_mime != NULL)
		mime_destroy(&conf->conf_mime);
	if (text[0] == '\0')
		return conf_why(why, -EINVAL, "the path is empty");
	path = conf_path(scope->cs_dir, text);
	if (path == NULL)
		return conf_no_memory(why);
	conf->conf_mime = mime_load(path, why->why_text, sizeof(why->why_text));
	free(path);
	return conf->conf_mime != NULL ? 0 : -EINVAL;
}

/* Sets *field to a path in the normalised form of request paths, or to NULL for "off". */
static int
conf_assign_set_path(struct conf_scope *scope, const char *text, char **field,
    struct conf_why *why)
{
	size_t size = strlen(text) + 2;
	char *path = conf_keep(scope->cs_conf, size);
	struct target tgt;

	*field = NULL;
	if (strcmp(text, "off") == 0)
		return 0;
	if (path == NULL)
		return conf_no_memory(why);
	if (text[0] != '/' || strchr(text, '?') != NULL ||
	    target_parse((struct str){text, size - 2}, path, size, &tgt) != 0)
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a path: write one such as \"/ready\", or "
		    "\"off\" for none",
		    text);
	*field = path;
	return 0;
}

int
conf_set_live(struct conf_scope *scope, const struct key *key, const char *text,
    struct conf_why *why)
{
	(void)key;
	return conf_assign_set_path(
	    scope, text, &scope->cs_conf->conf_live, why);
}

int
conf_set_ready(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	return conf_assign_set_path(
	    scope, text, &scope->cs_conf->conf_ready, why);
}

/*
 * Returns true if `path` is `dir` or in it.  Requires paths without links, and without a final
 * slash unless the path is "/".
 */
static bool
conf_assign_is_in(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 &&
	       (path[len] == '\0' || path[len] == '/' || len == 1);
}

/* Returns a root that contains the directory or lies in it, or NULL. */
static const char *
conf_assign_overlap(const struct conf *conf, const char *dir)
{
	char root[PATH_MAX];

	for (size_t i = 0; i < conf->conf_nroots; i++)
		if (realpath(conf->conf_roots[i], root) != NULL &&
		    (conf_assign_is_in(dir, root) ||
			conf_assign_is_in(root, dir)))
			return conf->conf_roots[i];
	return NULL;
}

int
conf_check_tier(const struct conf *conf, struct conf_why *why)
{
	char dir[PATH_MAX];
	const char *root = NULL;

	if (conf->conf_tier != NULL && realpath(conf->conf_tier, dir) != NULL)
		root = conf_assign_overlap(conf, dir);
	if (root == NULL)
		return 0;
	return conf_why(why, -EINVAL,
	    "%s is inside the root %s, or contains this root: choose another "
	    "directory",
	    conf->conf_tier, root);
}

int
conf_check_health(const struct conf *conf, struct conf_why *why)
{
	if (conf->conf_live == NULL || conf->conf_ready == NULL ||
	    strcmp(conf->conf_live, conf->conf_ready) != 0)
		return 0;
	return conf_why(why, -EINVAL,
	    "%s is already used by live; the two paths must differ",
	    conf->conf_ready);
}

int
conf_set_send_path(struct conf_scope *scope, const struct key *key,
    const char *name, struct conf_why *why)
{
	const struct pw_send_path *path =
	    strcmp(name, "auto") == 0 ? pw_send_default() : pw_send_path(name);
	const char *const *known = pw_send_path_names();
	const char *cause = NULL;
	char list[256] = "auto";
	size_t len = strlen(list);

	(void)key;
	if (path != NULL && pw_send_probe(path, &cause) == 0) {
		scope->cs_set->set_send_path = path;
		return 0;
	}
	if (path != NULL)
		return conf_why(why, -ENOTSUP,
		    "%s is not available: %s; use auto, which is available "
		    "everywhere",
		    name, cause != NULL ? cause : "unknown cause");
	for (; *known != NULL && len < sizeof(list); known++)
		len += (size_t)snprintf(
		    list + len, sizeof(list) - len, ", %s", *known);
	return conf_why(why, -EINVAL,
	    "unknown send path \"%s\": write one of %s", name, list);
}

int
conf_set_readahead(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	uint64_t *value = &scope->cs_set->set_readahead;

	if (strcmp(text, "auto") == 0) {
		*value = PW_READAHEAD_AUTO;
		return 0;
	}
	if (strcmp(text, "0") == 0) {
		*value = PW_READAHEAD_NONE;
		return 0;
	}
	return conf_in_range(key, text, ", 0 or auto", value, why);
}

int
conf_set_cache(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	if (conf_cache(text, &scope->cs_set->set_cache) != 0)
		return conf_why(
		    why, -EINVAL, "\"%s\" is not keep, drop or auto", text);
	return 0;
}

static bool
conf_assign_is_file_name(const char *text)
{
	return text[0] != '\0' && strchr(text, '/') == NULL &&
	       strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

int
conf_set_listing_header(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	char *name = scope->cs_set->set_listing_header;
	size_t size = sizeof(scope->cs_set->set_listing_header);

	(void)key;
	if (!conf_assign_is_file_name(text) || strlen(text) >= size)
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a file name: write a name without a "
		    "\"/\"",
		    text);
	snprintf(name, size, "%s", strcmp(text, "off") == 0 ? "" : text);
	return 0;
}

int
conf_set_dotfiles(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct settings *set = scope->cs_set;

	(void)key;
	if (conf_bool(text, &set->set_dotfiles) == 0)
		return 0;
	if (!conf_assign_is_file_name(text) || text[0] != '.')
		return conf_why(why, -EINVAL,
		    "\"%s\" is not true, false, or a name that begins with a "
		    "dot, such as \".zarray\"",
		    text);
	if (conf_keep_add(scope->cs_conf, &set->set_dotnames, text) != 0)
		return conf_no_memory(why);
	return 0;
}

void
conf_clear_dotfiles(struct conf_scope *scope)
{
	scope->cs_set->set_dotfiles = false;
	scope->cs_set->set_dotnames = NULL;
}

int
conf_set_index(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	if (!conf_assign_is_file_name(text))
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a file name: write a name without a "
		    "\"/\"",
		    text);
	if (conf_keep_add(scope->cs_conf, &scope->cs_set->set_index, text) != 0)
		return conf_no_memory(why);
	return 0;
}

void
conf_clear_index(struct conf_scope *scope)
{
	scope->cs_set->set_index = NULL;
}

int
conf_set_include(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)scope;
	(void)key;
	return text[0] != '\0' ? 0
			       : conf_why(why, -EINVAL, "the path is empty");
}

void
conf_clear_include(struct conf_scope *scope)
{
	(void)scope;
}
