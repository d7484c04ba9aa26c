/*
 * site: builds sites and locations from the settings that they inherit, and finds the site and
 * location of a request.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "server/conf/conf_priv.h"

/*
 * Makes space for one more element in an array of `n` elements.  Doubles the array when `n` is a
 * power of 2.
 */
static void *
conf_site_grow(void *array, size_t n, size_t size)
{
	return (n & (n - 1)) != 0 ? array
				  : reallocarray(array, 2 * n + 1, size);
}

int
conf_site_add(const struct conf_scope *top, const char *name, struct site **out,
    struct conf_why *why)
{
	struct conf *conf = top->cs_conf;
	struct site *grown, *site;
	size_t other;

	if (name[0] == '\0')
		return conf_why(why, -EINVAL, "the name is empty");
	if (text_index_find(
		&conf->conf_titles, name, strlen(name), false, &other))
		return conf_why(why, -EEXIST,
		    "this site is already defined: merge the two blocks");
	grown =
	    conf_site_grow(conf->conf_sites, conf->conf_nsites, sizeof(*grown));
	if (grown == NULL)
		goto fail;
	conf->conf_sites = grown;
	site = &grown[conf->conf_nsites++];
	memset(site, 0, sizeof(*site));
	site->site_conf = conf;
	site->site_set = *top->cs_set;
	site->site_name = strdup(name);
	if (site->site_name == NULL ||
	    text_index_add(&conf->conf_titles, site->site_name,
		conf->conf_nsites - 1) != 0)
		goto fail;
	*out = site;
	return 0;
fail:
	return conf_no_memory(why);
}

static int
conf_site_check_root(const char *path, struct conf_why *why)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1)
		goto fail;
	close(fd);
	/* The server also needs search permission, to open files in the directory. */
	if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == -1)
		goto fail;
	return 0;
fail:
	return conf_why(why, -errno, "%s: %s", path, strerror(errno));
}

/*
 * Finds or adds a directory in conf_roots, so that each directory is opened once.  Sets *place to
 * its index.
 */
static int
conf_site_add_root(struct conf *conf, const char *path, size_t *place)
{
	size_t n = conf->conf_nroots;
	char **grown;

	if (text_index_find(
		&conf->conf_root_index, path, strlen(path), false, place))
		return 0;
	grown = conf_keep_room(conf, conf->conf_roots, n, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	conf->conf_roots = grown;
	grown[n] = conf_keep_text(conf, path, strlen(path));
	if (grown[n] == NULL ||
	    text_index_add(&conf->conf_root_index, grown[n], n) != 0)
		return -ENOMEM;
	*place = conf->conf_nroots++;
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
	/* conf_path would turn an empty path into the file's directory. */
	if (root[0] == '\0')
		return conf_why(why, -EINVAL, "the path is empty");
	path = conf_path(scope->cs_dir, root);
	if (path == NULL)
		return conf_no_memory(why);
	error = conf_site_check_root(path, why);
	if (error == 0 &&
	    conf_site_add_root(scope->cs_conf, path, &set->set_root) != 0)
		error = conf_no_memory(why);
	free(path);
	set->set_strip = 0;
	if (error == 0 && scope->cs_where == KEY_SITE)
		scope->cs_site->site_root =
		    scope->cs_conf->conf_roots[set->set_root];
	return error;
}

/*
 * Sets the root and strips the location's path.  Requires a final '/' in the location's path, since
 * in a location "/i" the request path "/i../x" would escape the directory.
 */
int
conf_set_alias(struct conf_scope *scope, const struct key *key,
    const char *root, struct conf_why *why)
{
	const struct location *loc = scope->cs_location;
	int error;

	if (loc->loc_kind != LOCATION_PREFIX ||
	    loc->loc_path[loc->loc_len - 1] != '/')
		return conf_why(why, -EINVAL,
		    "allowed only in a prefix location that ends in '/'");
	error = conf_set_root(scope, key, root, why);
	if (error == 0)
		scope->cs_set->set_strip = loc->loc_len - 1;
	return error;
}

/* Returns the length of a Host value's host name, without port and final dot. */
static size_t
conf_site_host_length(const char *host, size_t len)
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
conf_site_host_valid(const char *name, size_t len)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._";

	if (len > 2 && name[0] == '[' && name[len - 1] == ']')
		return strspn(name + 1, "0123456789abcdefABCDEF:.") == len - 2;
	return len > 0 && name[0] != '.' && strspn(name, plain) == len;
}

/* Returns true for "*.example.org", which covers all names below example.org. */
static bool
conf_site_is_wildcard(const char *name)
{
	return name[0] == '*' && name[1] == '.';
}

/* Finds the site that has exactly this name. */
static bool
conf_site_exact_name(
    const struct conf *conf, const char *host, size_t len, size_t *site)
{
	return text_index_find(&conf->conf_hosts, host, len, true, site);
}

/*
 * Finds the longest wildcard that covers `host`.  Tries the domains of `host`, the longest one
 * first.
 */
static bool
conf_site_wildcard_name(
    const struct conf *conf, const char *host, size_t len, size_t *site)
{
	const char *dot = len > 1 ? memchr(host + 1, '.', len - 1) : NULL;
	char name[256];
	size_t n;

	for (; dot != NULL; dot = memchr(dot + 1, '.', n - 1)) {
		n = len - (size_t)(dot - host);
		if (n + 1 < sizeof(name)) {
			name[0] = '*';
			memcpy(name + 1, dot, n);
			if (conf_site_exact_name(conf, name, n + 1, site))
				return true;
		}
	}
	return false;
}

int
conf_set_names(struct conf_scope *scope, const struct key *key,
    const char *name, struct conf_why *why)
{
	struct conf *conf = scope->cs_conf;
	struct site *site = scope->cs_site;
	size_t i, len = strlen(name), n = conf_site_host_length(name, len);
	char *copy, **names;

	(void)key;
	/* A name that is longer than its host name by more than a final dot has a port. */
	if (!conf_site_host_valid(conf_site_is_wildcard(name) ? name + 2 : name,
		conf_site_is_wildcard(name) ? len - 2 : len) ||
	    n + 1 < len)
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a host name: write example.org or "
		    "*.example.org without scheme, port and path, and xn-- "
		    "for letters beyond a to z",
		    name);
	if (conf_site_exact_name(conf, name, n, &i))
		return conf_why(why, -EEXIST,
		    "%s is already a name of site \"%s\"", name,
		    conf->conf_sites[i].site_name);
	/* The array has an additional element for the terminating NULL. */
	names = conf_site_grow(
	    site->site_names, site->site_nnames + 1, sizeof(*names));
	if (names == NULL)
		return conf_no_memory(why);
	site->site_names = names;
	names[site->site_nnames] = NULL;
	copy = strndup(name, n);
	if (copy == NULL)
		return conf_no_memory(why);
	for (i = 0; i < n; i++)
		copy[i] = (char)tolower((unsigned char)copy[i]);
	names[site->site_nnames++] = copy;
	names[site->site_nnames] = NULL;
	return text_index_add(&conf->conf_hosts, copy,
		   (size_t)(site - conf->conf_sites)) == 0
		   ? 0
		   : conf_no_memory(why);
}

/* Does nothing: a site has one list of names and inherits none. */
void
conf_clear_names(struct conf_scope *scope)
{
	(void)scope;
}

/* Returns false if `path` has text that normalised request paths never contain. */
static bool
conf_site_is_reachable(const char *path)
{
	return strstr(path, "//") == NULL && strstr(path, "/./") == NULL &&
	       strstr(path, "/../") == NULL;
}

/* Returns true if the path has an octet as %XX. */
static bool
conf_site_is_encoded(const char *path)
{
	const char *p;

	for (p = strchr(path, '%'); p != NULL; p = strchr(p + 1, '%'))
		if (isxdigit((unsigned char)p[1]) &&
		    isxdigit((unsigned char)p[2]))
			return true;
	return false;
}

/* Returns the path in a title.  Sets *kind: "= /x" is exact, "*.mp4" a glob, "/video/" a prefix. */
static const char *
conf_site_location_path(const char *title, enum location_kind *kind)
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
conf_site_check_location(
    const char *path, enum location_kind kind, struct conf_why *why)
{
	if (kind == LOCATION_GLOB && strlen(path) > GLOB_MAX)
		return conf_why(why, -EINVAL,
		    "the glob is longer than %d bytes: shorten it", GLOB_MAX);
	if (path[0] != '/' && (kind != LOCATION_GLOB || path[0] == '.'))
		return conf_why(
		    why, -EINVAL, "the path does not begin with '/'");
	if (conf_site_is_encoded(path))
		return conf_why(why, -EINVAL,
		    "the path is percent-encoded: write it decoded, as "
		    "requests are compared after decoding");
	if (!conf_site_is_reachable(path))
		return conf_why(why, -EINVAL,
		    "no request can match: remove \"//\", \"/./\" and "
		    "\"/../\"");
	return 0;
}

static void
conf_site_free_location(struct location *loc)
{
	free(loc->loc_key);
}

/* Sets the location's key.  Returns -EEXIST if another location of the site has the same key. */
static int
conf_site_name_location(
    struct site *site, struct location *loc, const char *path)
{
	static const char kinds[] = {[LOCATION_EXACT] = '=',
	    [LOCATION_GLOB] = '*',
	    [LOCATION_PREFIX] = '/'};
	size_t other;

	loc->loc_len = strlen(path);
	loc->loc_key = malloc(loc->loc_len + 2);
	if (loc->loc_key == NULL)
		return -ENOMEM;
	loc->loc_key[0] = kinds[loc->loc_kind];
	memcpy(loc->loc_key + 1, path, loc->loc_len + 1);
	loc->loc_path = loc->loc_key + 1;
	if (text_index_find(&site->site_paths, loc->loc_key, loc->loc_len + 1,
		false, &other))
		return -EEXIST;
	return text_index_add(&site->site_paths, loc->loc_key, 0);
}

int
conf_location_add(struct site *site, const char *title, struct location **out,
    struct conf_why *why)
{
	struct location *grown, loc = {.loc_set = site->site_set};
	const char *path = conf_site_location_path(title, &loc.loc_kind);
	int error = conf_site_check_location(path, loc.loc_kind, why);

	if (error != 0)
		return error;
	grown = conf_site_grow(
	    site->site_locations, site->site_nlocations, sizeof(*grown));
	if (grown != NULL)
		site->site_locations = grown;
	error =
	    grown != NULL ? conf_site_name_location(site, &loc, path) : -ENOMEM;
	if (error != 0) {
		conf_site_free_location(&loc);
		return error == -EEXIST
			   ? conf_why(why, error,
				 "this location is already defined: merge "
				 "the two blocks")
			   : conf_no_memory(why);
	}
	*out = &grown[site->site_nlocations++];
	**out = loc;
	return 0;
}

struct rank {
	const struct location *rk_location;
	size_t rk_place; /* position in the file, which decides ties */
};

static int
conf_site_compare_ranks(const void *left, const void *right)
{
	const struct rank *a = left, *b = right;
	const struct location *x = a->rk_location, *y = b->rk_location;

	if (x->loc_kind != y->loc_kind)
		return x->loc_kind < y->loc_kind ? -1 : 1;
	if (x->loc_kind == LOCATION_PREFIX && x->loc_len != y->loc_len)
		return x->loc_len > y->loc_len ? -1 : 1;
	return a->rk_place < b->rk_place ? -1 : 1;
}

int
conf_site_sort(struct site *site)
{
	size_t n = site->site_nlocations;
	struct location *sorted = calloc(n + 1, sizeof(*sorted));
	struct rank *ranks = calloc(n + 1, sizeof(*ranks));

	if (sorted != NULL && ranks != NULL) {
		for (size_t i = 0; i < n; i++)
			ranks[i] = (struct rank){&site->site_locations[i], i};
		qsort(ranks, n, sizeof(*ranks), conf_site_compare_ranks);
		for (size_t i = 0; i < n; i++)
			sorted[i] = *ranks[i].rk_location;
		free(site->site_locations);
		site->site_locations = sorted;
		free(ranks);
		return 0;
	}
	free(sorted);
	free(ranks);
	return -ENOMEM;
}

void
conf_site_free(struct site *site)
{
	for (size_t i = 0; i < site->site_nlocations; i++)
		conf_site_free_location(&site->site_locations[i]);
	free(site->site_locations);
	text_index_free(&site->site_paths);
	conf_strv_free(&site->site_names);
	free(site->site_name);
}

const struct site *
conf_site(const struct conf *conf, const char *host, size_t len)
{
	size_t site = 0;

	if (conf->conf_nsites == 1)
		return &conf->conf_sites[0];
	len = conf_site_host_length(host, len);
	if (len > 0 && !conf_site_exact_name(conf, host, len, &site))
		(void)conf_site_wildcard_name(conf, host, len, &site);
	return &conf->conf_sites[site];
}

struct str
conf_host(const struct site *site, struct str host)
{
	const struct conf *conf = site->site_conf;
	char **s = site->site_names;
	size_t other;

	host.s_len = conf_site_host_length(host.s_ptr, host.s_len);
	if (s == NULL || *s == NULL)
		return host;
	if ((conf_site_exact_name(conf, host.s_ptr, host.s_len, &other) ||
		conf_site_wildcard_name(
		    conf, host.s_ptr, host.s_len, &other)) &&
	    site == &conf->conf_sites[other])
		return host;
	while (*s != NULL && conf_site_is_wildcard(*s))
		s++;
	return *s != NULL ? (struct str){*s, strlen(*s)} : STR("");
}

bool
conf_location_matches(const struct location *loc, const char *path, size_t len)
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
		if (conf_location_matches(&site->site_locations[i], path, len))
			return &site->site_locations[i].loc_set;
	return &site->site_set;
}
