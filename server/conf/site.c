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
conf_settings_copy(struct settings *to, const struct settings *from)
{
	*to = *from;
	to->set_index = NULL;
	for (char **s = from->set_index; s != NULL && *s != NULL; s++) {
		if (conf_strv_add(&to->set_index, *s) != 0)
			return -ENOMEM;
	}
	return 0;
}

void
conf_settings_free(struct settings *set)
{
	conf_strv_free(&set->set_index);
}

int
conf_site_add(const struct conf_scope *top, const char *name, struct site **out,
    struct conf_why *why)
{
	struct conf *conf = top->cs_conf;
	struct site *grown, *site;

	if (name[0] == '\0')
		return conf_why(why, -EINVAL, "the name is empty");
	grown = reallocarray(
	    conf->conf_sites, conf->conf_nsites + 1, sizeof(*grown));
	if (grown == NULL)
		goto fail;
	conf->conf_sites = grown;
	site = &grown[conf->conf_nsites++];
	memset(site, 0, sizeof(*site));
	site->site_name = strdup(name);
	if (site->site_name == NULL ||
	    conf_settings_copy(&site->site_set, top->cs_set) != 0)
		goto fail;
	*out = site;
	return 0;
fail:
	return conf_why(why, -ENOMEM, "%s", strerror(ENOMEM));
}

int
conf_set_root(struct conf_scope *scope, const struct key *key, const char *root,
    struct conf_why *why)
{
	struct site *site = scope->cs_site;
	int fd;

	(void)key;
	/* Not the directory of the file, as joining would make of it. */
	if (root[0] == '\0')
		return conf_why(why, -EINVAL, "the path is empty");
	free(site->site_root);
	site->site_root = conf_path(scope->cs_dir, root);
	if (site->site_root == NULL)
		return conf_why(why, -ENOMEM, "%s", strerror(ENOMEM));

	fd = open(site->site_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		goto fail;
	close(fd);
	/* Readable is not enough: files are looked up in it. */
	if (faccessat(AT_FDCWD, site->site_root, X_OK, AT_EACCESS) == -1)
		goto fail;
	return 0;
fail:
	return conf_why(
	    why, -errno, "%s: %s", site->site_root, strerror(errno));
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

static bool
site_answers(const struct site *site, const char *host, size_t len)
{
	for (char **s = site->site_names; s != NULL && *s != NULL; s++) {
		if (strncasecmp(*s, host, len) == 0 && (*s)[len] == '\0')
			return true;
	}
	return false;
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
	if (!host_valid(name, len) || n + 1 < len)
		return conf_why(
		    why, -EINVAL, "\"%s\" is not a host name", name);
	for (i = 0; i < conf->conf_nsites; i++) {
		if (site_answers(&conf->conf_sites[i], name, n))
			return conf_why(why, -EEXIST,
			    "%s is already a name of site \"%s\"", name,
			    conf->conf_sites[i].site_name);
	}
	copy = strndup(name, n);
	if (copy == NULL)
		return conf_why(why, -ENOMEM, "%s", strerror(ENOMEM));
	for (i = 0; i < n; i++)
		copy[i] = (char)tolower((unsigned char)copy[i]);
	error = conf_strv_add(&scope->cs_site->site_names, copy);
	free(copy);
	if (error != 0)
		return conf_why(why, error, "%s", strerror(ENOMEM));
	return 0;
}

void
conf_clear_names(struct conf_scope *scope)
{
	conf_strv_free(&scope->cs_site->site_names);
}

/* Request paths come without these, so such a prefix would match nothing. */
static bool
prefix_reachable(const char *prefix)
{
	return strstr(prefix, "//") == NULL && strstr(prefix, "/./") == NULL &&
	       strstr(prefix, "/../") == NULL;
}

int
conf_location_add(struct site *site, const char *prefix, struct location **out,
    struct conf_why *why)
{
	struct location *grown, *loc;

	if (prefix[0] != '/')
		return conf_why(why, -EINVAL, "does not begin with '/'");
	if (!prefix_reachable(prefix))
		return conf_why(why, -EINVAL,
		    "matches no path: remove \"//\", \"/./\" and \"/../\"");
	grown = reallocarray(
	    site->site_locations, site->site_nlocations + 1, sizeof(*grown));
	if (grown == NULL)
		goto fail;
	site->site_locations = grown;
	loc = &grown[site->site_nlocations++];
	memset(loc, 0, sizeof(*loc));
	loc->loc_prefix = strdup(prefix);
	loc->loc_prefix_len = strlen(prefix);
	if (loc->loc_prefix == NULL ||
	    conf_settings_copy(&loc->loc_set, &site->site_set) != 0)
		goto fail;
	*out = loc;
	return 0;
fail:
	return conf_why(why, -ENOMEM, "%s", strerror(ENOMEM));
}

static int
longer_first(const void *a, const void *b)
{
	const struct location *x = a, *y = b;

	return (x->loc_prefix_len < y->loc_prefix_len) -
	       (x->loc_prefix_len > y->loc_prefix_len);
}

void
conf_site_sort(struct site *site)
{
	if (site->site_nlocations > 1)
		qsort(site->site_locations, site->site_nlocations,
		    sizeof(*site->site_locations), longer_first);
}

void
conf_site_free(struct site *site)
{
	for (size_t i = 0; i < site->site_nlocations; i++) {
		free(site->site_locations[i].loc_prefix);
		conf_settings_free(&site->site_locations[i].loc_set);
	}
	free(site->site_locations);
	conf_settings_free(&site->site_set);
	conf_strv_free(&site->site_names);
	free(site->site_name);
	free(site->site_root);
}

const struct site *
conf_site(const struct conf *conf, const char *host, size_t len)
{
	len = host_length(host, len);
	for (size_t i = 0; len > 0 && i < conf->conf_nsites; i++) {
		if (site_answers(&conf->conf_sites[i], host, len))
			return &conf->conf_sites[i];
	}
	return &conf->conf_sites[0];
}

const struct settings *
conf_settings(const struct site *site, const char *path, size_t len)
{
	for (size_t i = 0; i < site->site_nlocations; i++) {
		const struct location *loc = &site->site_locations[i];

		if (loc->loc_prefix_len <= len &&
		    memcmp(loc->loc_prefix, path, loc->loc_prefix_len) == 0)
			return &loc->loc_set;
	}
	return &site->site_set;
}
