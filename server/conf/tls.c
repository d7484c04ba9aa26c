/*
 * tls: the keys of TLS, and the certificates of sites.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"

int
conf_set_tls_profile(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	if (strcmp(text, "intermediate") == 0)
		scope->cs_conf->conf_tls_profile = TLS_INTERMEDIATE;
	else if (strcmp(text, "modern") == 0)
		scope->cs_conf->conf_tls_profile = TLS_MODERN;
	else
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a profile: write intermediate or modern",
		    text);
	return 0;
}

int
conf_set_ktls(struct conf_scope *scope, const struct key *key, const char *text,
    struct conf_why *why)
{
	bool on;

	(void)key;
	scope->cs_conf->conf_ktls = TLS_KTLS_AUTO;
	if (strcmp(text, "auto") == 0)
		return 0;
	if (conf_bool(text, &on) != 0)
		return conf_why(
		    why, -EINVAL, "\"%s\" is not auto, on or off", text);
	scope->cs_conf->conf_ktls = on ? TLS_KTLS_ON : TLS_KTLS_OFF;
	return 0;
}

int
conf_set_verify_client(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	enum tls_verify *verify = &scope->cs_set->set_verify_client;

	(void)key;
	if (strcmp(text, "off") == 0)
		*verify = TLS_VERIFY_OFF;
	else if (strcmp(text, "optional") == 0)
		*verify = TLS_VERIFY_OPTIONAL;
	else if (strcmp(text, "require") == 0)
		*verify = TLS_VERIFY_REQUIRE;
	else
		return conf_why(why, -EINVAL,
		    "\"%s\" is not off, optional or require", text);
	return 0;
}

int
conf_set_client_ca(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	char *path;
	int error = conf_path_or_off(scope, text, &path, why);

	(void)key;
	scope->cs_set->set_client_ca = NULL;
	if (path == NULL)
		return error;
	scope->cs_set->set_client_ca =
	    conf_keep_text(scope->cs_conf, path, strlen(path));
	free(path);
	return scope->cs_set->set_client_ca != NULL ? 0 : conf_no_memory(why);
}

/* Sets the Strict-Transport-Security field (RFC 6797, 6.1). */
int
conf_set_hsts(struct conf_scope *scope, const struct key *key, const char *text,
    struct conf_why *why)
{
	struct settings *set = scope->cs_set;
	char copy[64], line[128], *rest = copy, *word;
	bool domains = false, preload = false;
	uint64_t seconds;
	int len;

	(void)key;
	set->set_hsts = (struct str){0};
	set->set_hsts_chosen = true;
	if (strcmp(text, "off") == 0)
		return 0;
	snprintf(copy, sizeof(copy), "%s", text);
	word = strsep(&rest, " ");
	if (strlen(text) >= sizeof(copy) || conf_time(word, &seconds) != 0)
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a time: write 1y, \"1y "
		    "includeSubDomains\" or off",
		    text);
	while ((word = strsep(&rest, " ")) != NULL) {
		if (strcmp(word, "includeSubDomains") == 0)
			domains = true;
		else if (strcmp(word, "preload") == 0)
			preload = true;
		else if (word[0] != '\0')
			return conf_why(why, -EINVAL,
			    "\"%s\" is not includeSubDomains or preload", word);
	}
	len = snprintf(line, sizeof(line),
	    "Strict-Transport-Security: max-age=%llu%s%s\r\n",
	    (unsigned long long)seconds, domains ? "; includeSubDomains" : "",
	    preload ? "; preload" : "");
	set->set_hsts.s_ptr = conf_keep_text(scope->cs_conf, line, (size_t)len);
	set->set_hsts.s_len = (size_t)len;
	return set->set_hsts.s_ptr != NULL ? 0 : conf_no_memory(why);
}

/* Adds a file's path to a list that several sites may share. */
static int
conf_tls_add_path(struct conf_scope *scope, char ***list, const char *text,
    struct conf_why *why)
{
	char *path;
	int error;

	if (text[0] == '\0')
		return conf_why(why, -EINVAL, "the path is empty");
	path = conf_path(scope->cs_dir, text);
	error =
	    path == NULL ? -ENOMEM : conf_keep_add(scope->cs_conf, list, path);
	free(path);
	return error == 0 ? 0 : conf_no_memory(why);
}

int
conf_set_certificate(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	return conf_tls_add_path(
	    scope, &scope->cs_set->set_certificates, text, why);
}

/*
 * Clears the inherited certificates.  In a site also clears the inherited private keys, which
 * belong to these certificates.
 */
void
conf_clear_certificate(struct conf_scope *scope)
{
	scope->cs_set->set_certificates = NULL;
	if (scope->cs_where == KEY_SITE)
		scope->cs_set->set_certificate_keys = NULL;
}

int
conf_set_certificate_key(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	return conf_tls_add_path(
	    scope, &scope->cs_set->set_certificate_keys, text, why);
}

void
conf_clear_certificate_key(struct conf_scope *scope)
{
	scope->cs_set->set_certificate_keys = NULL;
}

/* ------------------------------------------------------ once all keys are set */

static size_t
conf_tls_count(char *const *list)
{
	size_t n = 0;

	while (list != NULL && list[n] != NULL)
		n++;
	return n;
}

/*
 * Returns an earlier site with the same files, whose identities this site then shares.  Returns
 * NULL if there is none.
 */
static const struct site *
conf_tls_same_files(const struct conf *conf, const struct site *site)
{
	const struct site *other;

	for (other = conf->conf_sites; other < site; other++)
		if (other->site_set.set_certificates ==
			site->site_set.set_certificates &&
		    other->site_set.set_certificate_keys ==
			site->site_set.set_certificate_keys)
			return other;
	return NULL;
}

/* Returns an identity of the same kind that precedes `id` in the list, or NULL. */
static struct identity *
conf_tls_same_kind(struct identity *list, const struct identity *id)
{
	for (; list != NULL && list != id; list = list->id_next)
		if (identity_same_kind(list, id))
			return list;
	return NULL;
}

static int
conf_tls_load(struct conf *conf, struct site *site, struct conf_why *why)
{
	const struct settings *set = &site->site_set;
	size_t i, nkeys = conf_tls_count(set->set_certificate_keys);
	struct identity **end = &site->site_tls.ts_identities, *id, *other;

	site->site_owns_identities = true;
	why->why_key = "certificate_key";
	if (nkeys > conf_tls_count(set->set_certificates))
		return conf_why(why, -EINVAL,
		    "%zu key files are listed, but certificate lists only %zu: "
		    "remove the extra ones",
		    nkeys, conf_tls_count(set->set_certificates));
	why->why_key = "certificate";
	for (i = 0; i < conf_tls_count(set->set_certificates); i++) {
		why->why_after = conf_tls_count(set->set_certificates) - 1 - i;
		id = identity_load(set->set_certificates[i],
		    i < nkeys ? set->set_certificate_keys[i] : NULL,
		    why->why_text, sizeof(why->why_text));
		if (id == NULL)
			return -EINVAL;
		*end = id;
		other = conf_tls_same_kind(site->site_tls.ts_identities, id);
		if (other != NULL)
			return conf_why(why, -EINVAL,
			    "%s and %s have keys of the same type: a site can "
			    "have only one certificate of each key type",
			    other->id_file, id->id_file);
		end = &id->id_next;
	}
	conf->conf_nidentities += i;
	return 0;
}

/* Refuses send paths that avoid copies, as encryption without kernel TLS must copy. */
static int
conf_tls_check_send_path(
    const struct conf *conf, const struct settings *set, struct conf_why *why)
{
	static const char *const names[] = {
	    "splice", "mlock", "uring", "ring", "native"};

	if (!conf_has_tls(conf) || conf->conf_ktls == TLS_KTLS_ON ||
	    set->set_send_path == pw_send_default())
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (set->set_send_path == pw_send_path(names[i]))
			return conf_why(why, -EINVAL,
			    "%s cannot send over TLS without kernel TLS: write "
			    "auto, nodiskio, aio, pool, copy or blocking, or "
			    "set ktls = on",
			    names[i]);
	return 0;
}

int
conf_complete_scheme(
    struct conf *conf, struct settings *set, struct conf_why *why)
{
	int error;

	why->why_key = "send_path";
	error = conf_tls_check_send_path(conf, set, why);
	if (error != 0)
		return error;
	if (set->set_security_headers && !set->set_hsts_chosen)
		set->set_hsts =
		    STR("Strict-Transport-Security: max-age=31536000\r\n");
	set->set_by_scheme = set->set_redirect_https || set->set_hsts.s_len > 0;
	why->why_key = "redirect_https";
	if (set->set_redirect_https && !conf_has_tls(conf))
		return conf_why(why, -EINVAL,
		    "no listen address has tls: write listen = "
		    "{\"*:443 tls\", ...}");
	return 0;
}

static unsigned
conf_tls_port_of(const struct listen_addr *la)
{
	const struct sockaddr_in *in = (const void *)&la->la_addr;

	/* sin6_port has the same offset as sin_port. */
	return la->la_addr.ss_family == AF_UNIX ? 443 : ntohs(in->sin_port);
}

static void
conf_tls_set_https_port(struct conf *conf)
{
	for (size_t i = 0; i < conf->conf_nlisten; i++)
		if (conf->conf_listen[i].la_tls && conf->conf_https_port == 0)
			conf->conf_https_port =
			    conf_tls_port_of(&conf->conf_listen[i]);
}

bool
conf_has_tls(const struct conf *conf)
{
	for (size_t i = 0; i < conf->conf_nlisten; i++)
		if (conf->conf_listen[i].la_tls)
			return true;
	return false;
}

int
conf_complete_tls(struct conf *conf, struct site *site, struct conf_why *why)
{
	const struct site *other = conf_tls_same_files(conf, site);
	const struct settings *set = &site->site_set;

	site->site_tls = (struct tls_site){.ts_name = site->site_name,
	    .ts_verify = set->set_verify_client,
	    .ts_client_ca = set->set_client_ca};
	why->why_key = "verify_client";
	if (set->set_verify_client != TLS_VERIFY_OFF &&
	    set->set_client_ca == NULL)
		return conf_why(why, -EINVAL,
		    "site \"%s\" has no client_ca: set it to a file of the CA "
		    "certificates that sign client certificates",
		    site->site_name);
	why->why_key = "client_ca";
	if (set->set_client_ca != NULL &&
	    !identity_check_authorities(
		set->set_client_ca, why->why_text, sizeof(why->why_text)))
		return -EINVAL;
	if (other != NULL) {
		site->site_tls.ts_identities = other->site_tls.ts_identities;
		return 0;
	}
	return conf_tls_load(conf, site, why);
}

static int
conf_tls_by_file(const void *a, const void *b)
{
	const struct identity *const *one = a, *const *other = b;

	return strcmp((*one)->id_file, (*other)->id_file);
}

/* Sorts by file and removes duplicates, as several sites may name the same file. */
static void
conf_tls_leave_out_doubles(struct conf *conf)
{
	const struct identity **list = conf->conf_identities;
	size_t i, n = 1;

	if (conf->conf_nidentities == 0)
		return;
	qsort(list, conf->conf_nidentities, sizeof(struct identity *),
	    conf_tls_by_file);
	for (i = 1; i < conf->conf_nidentities; i++)
		if (conf_tls_by_file(&list[i], &list[n - 1]) != 0)
			list[n++] = list[i];
	conf->conf_nidentities = n;
}

static int
conf_tls_list_identities(struct conf *conf, struct conf_why *why)
{
	const struct site *site = conf->conf_sites;
	const struct identity *id;
	size_t n = 0;

	conf->conf_identities =
	    calloc(conf->conf_nidentities + 1, sizeof(struct identity *));
	if (conf->conf_identities == NULL)
		return conf_no_memory(why);
	for (; site < conf->conf_sites + conf->conf_nsites; site++)
		for (id = site->site_tls.ts_identities;
		     site->site_owns_identities && id != NULL; id = id->id_next)
			conf->conf_identities[n++] = id;
	conf_tls_leave_out_doubles(conf);
	return 0;
}

int
conf_check_tls(struct conf *conf, struct conf_why *why)
{
	conf_tls_set_https_port(conf);
	why->why_key = "listen";
	if (!conf_has_tls(conf) ||
	    conf->conf_sites[0].site_tls.ts_identities != NULL)
		return conf_tls_list_identities(conf, why);
	return conf_why(why, -EINVAL,
	    "site \"%s\" needs a certificate for clients without SNI, because "
	    "a listen address has tls: set certificate",
	    conf->conf_sites[0].site_name);
}

const char *
conf_identity_place(const struct conf *conf, const struct identity *id)
{
	const struct site *site = conf->conf_sites;
	const struct settings *set;

	for (; site < conf->conf_sites + conf->conf_nsites; site++) {
		set = &site->site_set;
		for (size_t n = conf_tls_count(set->set_certificates), i = 0;
		     i < n; i++)
			if (strcmp(set->set_certificates[i], id->id_file) == 0)
				return conf_place(
				    set, "certificate", n - 1 - i);
	}
	return "";
}

void
conf_free_tls(struct conf *conf)
{
	free(conf->conf_identities);
	for (size_t i = 0; i < conf->conf_nsites; i++) {
		struct site *site = &conf->conf_sites[i];

		while (site->site_owns_identities &&
		       site->site_tls.ts_identities != NULL)
			site->site_tls.ts_identities =
			    identity_free(site->site_tls.ts_identities);
	}
}
