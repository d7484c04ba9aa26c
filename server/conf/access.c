/*
 * access: sets the keys that restrict access (allow, deny, htpasswd, realm, signed_links), and
 * warns if one location permits access that another location restricts.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"

#define REALM_MOST 128 /* maximum bytes of a realm */

int
conf_set_block(struct conf_scope *scope, struct cidr_list *cl, const char *text,
    struct conf_why *why)
{
	struct cidr cd, *grown;

	if (!cidr_parse(text, &cd))
		return conf_why(why, -EINVAL,
		    "\"%s\" %s: write an address (192.0.2.7), a block "
		    "(192.0.2.0/24, 2001:db8::/32), all or unix:",
		    text, cidr_cause(text));
	grown = conf_keep_room(
	    scope->cs_conf, cl->cl_list, cl->cl_count, sizeof(*grown));
	if (grown == NULL)
		return conf_no_memory(why);
	cl->cl_set = true;
	cl->cl_list = grown;
	grown[cl->cl_count++] = cd;
	return 0;
}

int
conf_set_allow(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	return conf_set_block(scope, &scope->cs_set->set_allow, text, why);
}

/* Makes an empty list, which allows no client. */
void
conf_clear_allow(struct conf_scope *scope)
{
	scope->cs_set->set_allow = (struct cidr_list){.cl_set = true};
}

int
conf_set_deny(struct conf_scope *scope, const struct key *key, const char *text,
    struct conf_why *why)
{
	(void)key;
	return conf_set_block(scope, &scope->cs_set->set_deny, text, why);
}

void
conf_clear_deny(struct conf_scope *scope)
{
	scope->cs_set->set_deny = (struct cidr_list){0};
}

static void *
conf_access_load_link_keys(const char *path, char *why, size_t size)
{
	return link_keys_load(path, why, size);
}

static void *
conf_access_load_htpasswd(const char *path, char *why, size_t size)
{
	return htpasswd_load(path, why, size);
}

/* Loads the file whose path is `text`.  Sets *secret to NULL for "off" and on error. */
static int
conf_access_load_secret(struct conf_scope *scope, const char *text,
    void *(*load)(const char *, char *, size_t), void **secret,
    struct conf_why *why)
{
	char *path;
	int error = conf_path_or_off(scope, text, &path, why);

	*secret = NULL;
	if (path == NULL && error == 0 && scope->cs_location != NULL)
		scope->cs_location->loc_open = true;
	if (path == NULL)
		return error;
	*secret = load(path, why->why_text, sizeof(why->why_text));
	free(path);
	return *secret != NULL ? 0 : -EINVAL;
}

int
conf_set_signed_links(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct conf *conf = scope->cs_conf;
	void *secret;
	int error = conf_access_load_secret(
	    scope, text, conf_access_load_link_keys, &secret, why);
	struct link_keys *lks = secret;

	(void)key;
	scope->cs_set->set_link_keys = lks;
	if (lks != NULL) {
		lks->lks_next = conf->conf_link_keys;
		conf->conf_link_keys = lks;
	}
	return error;
}

int
conf_set_htpasswd(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct conf *conf = scope->cs_conf;
	void *secret;
	int error = conf_access_load_secret(
	    scope, text, conf_access_load_htpasswd, &secret, why);
	struct htpasswd *ht = secret;

	(void)key;
	scope->cs_set->set_htpasswd = ht;
	if (ht != NULL) {
		ht->ht_next = conf->conf_htpasswds;
		conf->conf_htpasswds = ht;
	}
	return error;
}

int
conf_set_realm(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	size_t len = strlen(text);

	(void)key;
	for (const char *p = text; *p != '\0'; p++)
		if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\')
			len = 0;
	if (len == 0 || len > REALM_MOST)
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a realm: write 1 to %d printable ASCII "
		    "characters, without double quotes and backslashes",
		    text, REALM_MOST);
	scope->cs_set->set_realm = conf_keep_text(scope->cs_conf, text, len);
	return scope->cs_set->set_realm != NULL ? 0 : conf_no_memory(why);
}

int
conf_complete_access(
    struct conf *conf, struct settings *set, struct conf_why *why)
{
	char text[REALM_MOST + 64];
	int len = snprintf(text, sizeof(text),
	    "WWW-Authenticate: Basic realm=\"%s\", charset=\"UTF-8\"\r\n",
	    set->set_realm);

	conf_complete_rates(conf, set);
	set->set_closed = set->set_allow.cl_set || set->set_deny.cl_count > 0 ||
			  set->set_link_keys != NULL ||
			  set->set_htpasswd != NULL;
	set->set_guarded = set->set_closed || set->set_rate.tr_rate > 0 ||
			   set->set_client_rate.tr_rate > 0 ||
			   set->set_request_rate.tr_rate > 0;
	set->set_by_client = set->set_origins || set->set_guarded;
	if (set->set_htpasswd == NULL)
		return 0;
	set->set_challenge =
	    (struct str){conf_keep_text(conf, text, (size_t)len), (size_t)len};
	return set->set_challenge.s_ptr != NULL ? 0 : conf_no_memory(why);
}

bool
conf_has_secrets(const struct conf *conf)
{
	return conf->conf_link_keys != NULL || conf->conf_htpasswds != NULL;
}

void
conf_free_access(struct conf *conf)
{
	while (conf->conf_link_keys != NULL)
		conf->conf_link_keys = link_keys_free(conf->conf_link_keys);
	while (conf->conf_htpasswds != NULL)
		conf->conf_htpasswds = htpasswd_free(conf->conf_htpasswds);
}

/*
 * Returns true if a glob and a restricted glob or prefix may match the same path.  Compares only their texts
 * before the first wildcard, and those of two globs behind the last one.
 */
static bool
conf_access_meets(const char *glob, const struct location *closed)
{
	const char *other = closed->loc_path;
	size_t n = strcspn(glob, "*?"), m = strcspn(other, "*?");

	if (strncmp(glob, other, n < m ? n : m) != 0)
		return false;
	if (closed->loc_kind != LOCATION_GLOB)
		return true;
	for (n = strlen(glob), m = strlen(other);
	     n > 0 && m > 0 && strchr("*?", glob[n - 1]) == NULL &&
	     strchr("*?", other[m - 1]) == NULL;
	     n--, m--)
		if (glob[n - 1] != other[m - 1])
			return false;
	return true;
}

/*
 * Returns true if all clients can read paths of a restricted location by an open location, which comes before
 * it in site_locations and so has precedence.
 */
static bool
conf_access_opens(const struct location *open, const struct location *closed)
{
	return open->loc_kind == LOCATION_GLOB
		   ? conf_access_meets(open->loc_path, closed)
		   : conf_location_matches(
			 closed, open->loc_path, open->loc_len);
}

static void
conf_access_warn(const struct site *site, const struct location *open,
    const struct location *closed)
{
	conf_say_at(NULL, "",
	    "warning: site \"%s\": location \"%s\" lets all clients read paths "
	    "of "
	    "location \"%s\", which restricts access: set allow, deny, "
	    "htpasswd "
	    "or signed_links in both locations (%s, %s), or allow = {\"all\"} "
	    "in "
	    "the first if you want that",
	    site->site_name, open->loc_path, closed->loc_path,
	    open->loc_place != NULL ? open->loc_place : "?",
	    closed->loc_place != NULL ? closed->loc_place : "?");
}

/* Exchanges upper and lower case.  Returns false if the name has no ASCII letter. */
static bool
conf_access_swap_case(char *name)
{
	bool any = false;

	for (; *name != '\0'; name++)
		if ((*name >= 'a' && *name <= 'z') ||
		    (*name >= 'A' && *name <= 'Z')) {
			*name ^= 'a' ^ 'A';
			any = true;
		}
	return any;
}

/*
 * Returns true if the first name with a letter in the directory is the same file in the other case, as on ZFS,
 * SMB and FAT, and in a directory with casefold.
 */
static bool
conf_access_ignores_case(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	struct stat st, other;
	char name[NAME_MAX + 1];
	bool same = false;

	if (dir == NULL)
		return false;
	while ((entry = readdir(dir)) != NULL) {
		snprintf(name, sizeof(name), "%s", entry->d_name);
		if (!conf_access_swap_case(name))
			continue;
		same = fstatat(dirfd(dir), entry->d_name, &st,
			   AT_SYMLINK_NOFOLLOW) == 0 &&
		       fstatat(dirfd(dir), name, &other, AT_SYMLINK_NOFOLLOW) ==
			   0 &&
		       st.st_dev == other.st_dev && st.st_ino == other.st_ino;
		break;
	}
	closedir(dir);
	return same;
}

/* Warns if a location restricts paths below a directory that ignores case: other spellings are not restricted. */
static void
conf_access_warn_case(const struct site *site)
{
	const struct location *loc = site->site_locations;
	const char *root, *seen = NULL;

	for (; loc < site->site_locations + site->site_nlocations; loc++) {
		if (!loc->loc_set.set_closed)
			continue;
		root = site->site_conf->conf_roots[loc->loc_set.set_root];
		if (root == seen || !conf_access_ignores_case(seen = root))
			continue;
		conf_say_at(NULL, "",
		    "warning: site \"%s\": %s ignores the case of names, but "
		    "location \"%s\" (%s) restricts only paths in this case: "
		    "set allow, deny, htpasswd or signed_links for the site",
		    site->site_name, root, loc->loc_path,
		    loc->loc_place != NULL ? loc->loc_place : "?");
		return;
	}
}

void
conf_complete_site(struct site *site)
{
	const struct location *locs = site->site_locations, *open, *loc;
	size_t n = site->site_nlocations;

	site->site_closed = site->site_set.set_closed;
	if (n == 0)
		return;
	for (loc = locs; loc < locs + n; loc++)
		site->site_closed |= loc->loc_set.set_closed;
	for (open = locs; open < locs + n; open++) {
		if (open->loc_set.set_closed || open->loc_open)
			continue;
		for (loc = open + 1; loc < locs + n; loc++)
			if (loc->loc_set.set_closed &&
			    conf_access_opens(open, loc)) {
				conf_access_warn(site, open, loc);
				break;
			}
	}
	if (!site->site_set.set_closed)
		conf_access_warn_case(site);
}
