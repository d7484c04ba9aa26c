/*
 * site: sites and their locations: how they are put together from what
 * they inherit, and how a request finds its own.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "server/conf/conf_priv.h"

int
conf_site_add(const struct conf_scope *top, const char *name, struct site **out,
    struct conf_why *why)
{
	struct conf *conf = top->cs_conf;
	struct site *grown, *site;

	if (name[0] == '\0')
		return conf_why(why, -EINVAL, "the name is empty");
	for (size_t i = 0; i < conf->conf_nsites; i++)
		if (strcmp(conf->conf_sites[i].site_name, name) == 0)
			return conf_why(why, -EEXIST, "is defined already");
	grown = reallocarray(
	    conf->conf_sites, conf->conf_nsites + 1, sizeof(*grown));
	if (grown == NULL)
		goto fail;
	conf->conf_sites = grown;
	site = &grown[conf->conf_nsites++];
	memset(site, 0, sizeof(*site));
	site->site_set = *top->cs_set;
	site->site_name = strdup(name);
	if (site->site_name == NULL)
		goto fail;
	*out = site;
	return 0;
fail:
	return conf_no_memory(why);
}

static int
check_root(const char *path, struct conf_why *why)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1)
		goto fail;
	close(fd);
	/* Readable is not enough: files are looked up in it. */
	if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == -1)
		goto fail;
	return 0;
fail:
	return conf_why(why, -errno, "%s: %s", path, strerror(errno));
}

/* Its place in conf_roots: one directory is opened once. */
static int
add_root(struct conf *conf, const char *path, size_t *place)
{
	size_t i;

	for (i = 0; i < conf->conf_nroots; i++)
		if (strcmp(conf->conf_roots[i], path) == 0)
			break;
	*place = i;
	if (i < conf->conf_nroots)
		return 0;
	if (conf_keep_add(conf, &conf->conf_roots, path) != 0)
		return -ENOMEM;
	conf->conf_nroots++;
	return 0;
}

int
conf_set_root(struct conf_scope *scope, const struct key *key, const char *root,
    struct conf_why *why)
{
	struct settings *set = scope->cs_set;
	char *path;
	int error;

	(void)key;
	/* Not the directory of the file, as joining would make of it. */
	if (root[0] == '\0')
		return conf_why(why, -EINVAL, "the path is empty");
	path = conf_path(scope->cs_dir, root);
	if (path == NULL)
		return conf_no_memory(why);
	error = check_root(path, why);
	if (error == 0 && add_root(scope->cs_conf, path, &set->set_root) != 0)
		error = conf_no_memory(why);
	free(path);
	set->set_strip = 0;
	if (error == 0 && scope->cs_where == KEY_SITE)
		scope->cs_site->site_root =
		    scope->cs_conf->conf_roots[set->set_root];
	return error;
}

/* Without the final '/', "/i../x" would be above the directory. */
int
conf_set_alias(struct conf_scope *scope, const struct key *key,
    const char *root, struct conf_why *why)
{
	const struct location *loc = scope->cs_location;
	int error;

	if (loc->loc_kind != LOCATION_PREFIX ||
	    loc->loc_path[loc->loc_len - 1] != '/')
		return conf_why(why, -EINVAL,
		    "needs a location that is a prefix and ends in '/'");
	error = conf_set_root(scope, key, root, why);
	if (error == 0)
		scope->cs_set->set_strip = loc->loc_len - 1;
	return error;
}

/* The part of a Host value that names a host: no port, no final dot. */
static size_t
host_length(const char *host, size_t len)
{
	const char *end;

	if (len == 0)
		return 0;
	if (host[0] == '[') {
		end = memchr(host, ']', len);
		return end != NULL ? (size_t)(end - host) + 1 : len;
	}
	end = memchr(host, ':', len);
	if (end != NULL)
		len = (size_t)(end - host);
	if (len > 1 && host[len - 1] == '.')
		len--;
	return len;
}

static bool
host_valid(const char *name, size_t len)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._";

	if (len > 2 && name[0] == '[' && name[len - 1] == ']')
		return strspn(name + 1, "0123456789abcdefABCDEF:.") == len - 2;
	return len > 0 && strspn(name, plain) == len;
}

/* "*.example.org" is for all names below it. */
static bool
is_wildcard(const char *name)
{
	return name[0] == '*' && name[1] == '.';
}

/* The bytes of the site's name that is host; 0: there is none. */
static size_t
exact_name(const struct site *site, const char *host, size_t len)
{
	for (char **s = site->site_names; s != NULL && *s != NULL; s++)
		if (strncasecmp(*s, host, len) == 0 && (*s)[len] == '\0')
			return len;
	return 0;
}

/* Those of the longest one that covers host. */
static size_t
wildcard_name(const struct site *site, const char *host, size_t len)
{
	size_t n, longest = 0;

	for (char **s = site->site_names; s != NULL && *s != NULL; s++) {
		n = is_wildcard(*s) ? strlen(*s) - 1 : 0;
		if (n > longest && n < len &&
		    strncasecmp(*s + 1, host + len - n, n) == 0)
			longest = n;
	}
	return longest;
}

int
conf_set_names(struct conf_scope *scope, const struct key *key,
    const char *name, struct conf_why *why)
{
	const struct conf *conf = scope->cs_conf;
	size_t i, len = strlen(name), n = host_length(name, len);
	char *copy;
	int error;

	(void)key;
	/* A final dot is all that may be cut off here. */
	if (!host_valid(is_wildcard(name) ? name + 2 : name,
		is_wildcard(name) ? len - 2 : len) ||
	    n + 1 < len)
		return conf_why(
		    why, -EINVAL, "\"%s\" is not a host name", name);
	for (i = 0; i < conf->conf_nsites; i++) {
		if (exact_name(&conf->conf_sites[i], name, n) > 0)
			return conf_why(why, -EEXIST,
			    "%s is already a name of site \"%s\"", name,
			    conf->conf_sites[i].site_name);
	}
	copy = strndup(name, n);
	if (copy == NULL)
		return conf_no_memory(why);
	for (i = 0; i < n; i++)
		copy[i] = (char)tolower((unsigned char)copy[i]);
	error = conf_strv_add(&scope->cs_site->site_names, copy);
	free(copy);
	if (error != 0)
		return conf_no_memory(why);
	return 0;
}

void
conf_clear_names(struct conf_scope *scope)
{
	conf_strv_free(&scope->cs_site->site_names);
}

/* Request paths come without these, so such a location would match nothing. */
static bool
is_reachable(const char *path)
{
	return strstr(path, "//") == NULL && strstr(path, "/./") == NULL &&
	       strstr(path, "/../") == NULL;
}

/* "= /x" is exactly that, "*.mp4" a glob, "/video/" a prefix. */
static const char *
location_path(const char *title, enum location_kind *kind)
{
	*kind = conf_is_glob(title) ? LOCATION_GLOB : LOCATION_PREFIX;
	if (title[0] == '=') {
		*kind = LOCATION_EXACT;
		title++;
		title += strspn(title, " \t");
	}
	return title;
}

static int
check_location(const char *path, enum location_kind kind, struct conf_why *why)
{
	if (kind == LOCATION_GLOB && strlen(path) > GLOB_MAX)
		return conf_why(
		    why, -EINVAL, "is longer than %d bytes", GLOB_MAX);
	if (path[0] != '/' && (kind != LOCATION_GLOB || path[0] == '.'))
		return conf_why(why, -EINVAL, "does not begin with '/'");
	if (!is_reachable(path))
		return conf_why(why, -EINVAL,
		    "matches no path: remove \"//\", \"/./\" and \"/../\"");
	return 0;
}

static bool
has_location(const struct site *site, enum location_kind kind, const char *path)
{
	for (size_t i = 0; i < site->site_nlocations; i++)
		if (site->site_locations[i].loc_kind == kind &&
		    strcmp(site->site_locations[i].loc_path, path) == 0)
			return true;
	return false;
}

int
conf_location_add(struct site *site, const char *title, struct location **out,
    struct conf_why *why)
{
	struct location *grown, *loc;
	enum location_kind kind;
	const char *path = location_path(title, &kind);
	int error = check_location(path, kind, why);

	if (error != 0)
		return error;
	if (has_location(site, kind, path))
		return conf_why(why, -EEXIST, "is defined already");
	grown = reallocarray(
	    site->site_locations, site->site_nlocations + 1, sizeof(*grown));
	if (grown == NULL)
		goto fail;
	site->site_locations = grown;
	loc = &grown[site->site_nlocations++];
	*loc = (struct location){
	    .loc_kind = kind,
	    .loc_path = strdup(path),
	    .loc_len = strlen(path),
	    .loc_set = site->site_set,
	};
	if (loc->loc_path == NULL)
		goto fail;
	*out = loc;
	return 0;
fail:
	return conf_no_memory(why);
}

/* To be stable: those of the array that come first win. */
static bool
wins(const struct location *a, const struct location *b)
{
	if (a->loc_kind != b->loc_kind)
		return a->loc_kind < b->loc_kind;
	return a->loc_kind == LOCATION_PREFIX && a->loc_len > b->loc_len;
}

void
conf_site_sort(struct site *site)
{
	struct location *locs = site->site_locations, moved;
	size_t i, j;

	for (i = 1; i < site->site_nlocations; i++) {
		moved = locs[i];
		for (j = i; j > 0 && wins(&moved, &locs[j - 1]); j--)
			locs[j] = locs[j - 1];
		locs[j] = moved;
	}
}

void
conf_site_free(struct site *site)
{
	for (size_t i = 0; i < site->site_nlocations; i++)
		free(site->site_locations[i].loc_path);
	free(site->site_locations);
	conf_strv_free(&site->site_names);
	free(site->site_name);
}

const struct site *
conf_site(const struct conf *conf, const char *host, size_t len)
{
	const struct site *site = &conf->conf_sites[0];
	size_t i, n, longest = 0;

	if (conf->conf_nsites == 1)
		return site;
	len = host_length(host, len);
	for (i = 0; len > 0 && i < conf->conf_nsites; i++)
		if (exact_name(&conf->conf_sites[i], host, len) > 0)
			return &conf->conf_sites[i];
	for (i = 0; i < conf->conf_nsites; i++) {
		n = wildcard_name(&conf->conf_sites[i], host, len);
		if (n > longest) {
			longest = n;
			site = &conf->conf_sites[i];
		}
	}
	return site;
}

struct str
conf_host(const struct site *site, struct str host)
{
	char **s = site->site_names;

	host.s_len = host_length(host.s_ptr, host.s_len);
	if (s == NULL || *s == NULL ||
	    exact_name(site, host.s_ptr, host.s_len) > 0 ||
	    wildcard_name(site, host.s_ptr, host.s_len) > 0)
		return host;
	while (*s != NULL && is_wildcard(*s))
		s++;
	return *s != NULL ? (struct str){*s, strlen(*s)} : STR("");
}

static bool
location_matches(const struct location *loc, const char *path, size_t len)
{
	if (loc->loc_kind == LOCATION_GLOB)
		return conf_glob(loc->loc_path, path, len);
	if (loc->loc_len > len ||
	    memcmp(loc->loc_path, path, loc->loc_len) != 0)
		return false;
	return loc->loc_kind == LOCATION_PREFIX || loc->loc_len == len;
}

const struct settings *
conf_settings(const struct site *site, const char *path, size_t len)
{
	for (size_t i = 0; i < site->site_nlocations; i++)
		if (location_matches(&site->site_locations[i], path, len))
			return &site->site_locations[i].loc_set;
	return &site->site_set;
}
