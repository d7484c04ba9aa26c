/*
 * conf_site and conf_settings of server/conf/conf.h against a naive search.
 * Input: "HOST\n", "PATH\n", then lines: "NAME" of the first, second, third, first ...
 * site, or "/PREFIX" of a location of the first.
 */
#include <ctype.h>

#include "fuzz.h"
#include "server/conf/conf_priv.h"

#define SITES 3
#define MANY  64

/* What was accepted. */
struct known {
	char *kn_texts[MANY];
	size_t kn_sites[MANY];
	size_t kn_count;
};

/* Without port and final dot, in lower case. */
static char *
normal(const char *host)
{
	char *copy = strdup(host), *p, *end;

	CHECK(copy != NULL);
	end = copy + strcspn(copy, ":");
	if (copy[0] == '[') {
		end = strchr(copy, ']');
		end = end == NULL ? copy + strlen(copy) : end + 1;
	}
	*end = '\0';
	if (copy[0] != '[' && end - copy > 1 && end[-1] == '.')
		end[-1] = '\0';
	for (p = copy; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	return copy;
}

static size_t
naive_site(const struct known *kn, const char *host)
{
	char *wanted = normal(host);
	size_t i, site = 0;

	for (i = 0; i < kn->kn_count; i++)
		if (strcmp(kn->kn_texts[i], wanted) == 0)
			site = kn->kn_sites[i];
	free(wanted);
	return site;
}

static size_t
naive_prefix(const struct known *kn, const char *path)
{
	size_t i, len, longest = 0;

	for (i = 0; i < kn->kn_count; i++) {
		len = strlen(kn->kn_texts[i]);
		if (strncmp(path, kn->kn_texts[i], len) == 0 && len > longest)
			longest = len;
	}
	return longest;
}

static void
add_name(struct conf *conf, struct known *kn, const char *name, size_t site)
{
	struct conf_scope scope = {
	    KEY_SITE, conf, &conf->conf_sites[site], NULL, NULL};
	struct conf_why why;
	char *copy = normal(name);
	bool twice = false;
	size_t i;

	for (i = 0; i < kn->kn_count; i++)
		twice |= strcmp(kn->kn_texts[i], copy) == 0;
	i = kn->kn_count;
	if (conf_key_set(&scope, "names", name, &why) == 0) {
		CHECK(!twice && copy[0] != '\0');
		CHECK(strpbrk(copy, "/ \t\r\n\"%*") == NULL);
		kn->kn_texts[i] = copy;
		kn->kn_sites[i] = site;
		kn->kn_count++;
	} else {
		CHECK(why.why_text[0] != '\0');
		free(copy);
	}
}

static void
add_prefix(struct conf *conf, struct known *kn, const char *prefix)
{
	struct conf_why why;
	struct location *loc;

	if (conf_location_add(&conf->conf_sites[0], prefix, &loc, &why) != 0)
		return;
	kn->kn_texts[kn->kn_count++] = strdup(prefix);
}

static void
forget(struct known *kn)
{
	while (kn->kn_count > 0)
		free(kn->kn_texts[--kn->kn_count]);
}

static void
build(struct conf *conf)
{
	static const char *const names[SITES] = {"a", "b", "c"};
	struct settings none = {0};
	struct conf_scope scope = {KEY_TOP, conf, NULL, &none, NULL};
	struct conf_why why;
	struct site *site;
	size_t i;

	for (i = 0; i < SITES; i++)
		CHECK(conf_site_add(&scope, names[i], &site, &why) == 0);
}

static const struct location *
location_of(const struct settings *set)
{
	return (const struct location *)(const void *)((const char *)set -
						       offsetof(struct location,
							   loc_set));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	char *host = fuzz_text(fuzz_line(&in)),
	     *path = fuzz_text(fuzz_line(&in));
	struct conf *conf = calloc(1, sizeof(*conf));
	struct known names = {0}, prefixes = {0};
	const struct settings *set;
	const struct site *first;
	size_t n = 0, prefix;
	char *line;

	CHECK(conf != NULL);
	for (build(conf); in.s_len > 0 && n < MANY; n++) {
		line = fuzz_text(fuzz_line(&in));
		if (line[0] == '/')
			add_prefix(conf, &prefixes, line);
		else
			add_name(conf, &names, line, n % SITES);
		free(line);
	}
	first = &conf->conf_sites[0];
	CHECK(conf_site(conf, host, strlen(host)) ==
	      &conf->conf_sites[naive_site(&names, host)]);
	conf_site_sort(&conf->conf_sites[0]);
	set = conf_settings(first, path, strlen(path));
	prefix = naive_prefix(&prefixes, path);
	CHECK((prefix == 0) == (set == &first->site_set));
	if (prefix > 0)
		CHECK(location_of(set)->loc_prefix_len == prefix);
	conf_destroy(&conf);
	forget(&names);
	forget(&prefixes);
	free(path);
	free(host);
	return 0;
}
