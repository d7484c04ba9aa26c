/*
 * conf_site and conf_settings of server/conf/conf.h against a naive search.
 * Input: "HOST\n", "PATH\n", then lines: "NAME" of the first, second, third, first ...
 * site ("*.NAME": and all below it), or "/PREFIX", "/GL*B" or "=/PATH" of a location of the
 * first.
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

static bool
ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len > n && strcmp(text + len - n, end) == 0;
}

static size_t
naive_site(const struct known *kn, const char *host)
{
	char *wanted = normal(host);
	const char *name;
	size_t i, site = 0, longest = 0;

	for (i = 0; i < kn->kn_count; i++) {
		name = kn->kn_texts[i];
		if (strcmp(name, wanted) == 0) {
			site = kn->kn_sites[i];
			break;
		}
		if (name[0] == '*' && ends_in(wanted, name + 1) &&
		    strlen(name) > longest) {
			site = kn->kn_sites[i];
			longest = strlen(name);
		}
	}
	free(wanted);
	return site;
}

static bool
naive_glob(const char *glob, const char *path)
{
	if (*glob == '*')
		return naive_glob(glob + 1, path) ||
		       (*path != '\0' && naive_glob(glob, path + 1));
	if (*glob == '\0' || *path == '\0')
		return *glob == *path;
	return (*glob == '?' || *glob == *path) &&
	       naive_glob(glob + 1, path + 1);
}

/* The number of the location, or -1. */
static int
naive_location(const struct known *kn, const char *path)
{
	const char *text;
	size_t i, longest = 0;
	int found = -1, prefix = -1;

	for (i = kn->kn_count; i-- > 0;) {
		text = kn->kn_texts[i];
		if (text[0] == '=') {
			if (strcmp(text + 1 + strspn(text + 1, " \t"), path) ==
			    0)
				return (int)i;
		} else if (strpbrk(text, "*?") != NULL) {
			if (naive_glob(text, path))
				found = (int)i;
		} else if (strncmp(text, path, strlen(text)) == 0 &&
			   strlen(text) > longest) {
			prefix = (int)i;
			longest = strlen(text);
		}
	}
	return found >= 0 ? found : prefix;
}

static void
add_name(struct conf *conf, struct known *kn, const char *name, size_t site)
{
	struct conf_scope scope = {
	    .cs_where = KEY_SITE,
	    .cs_conf = conf,
	    .cs_site = &conf->conf_sites[site],
	};
	struct conf_why why;
	char *copy = normal(name);
	bool twice = false;
	size_t i;

	for (i = 0; i < kn->kn_count; i++)
		twice |= strcmp(kn->kn_texts[i], copy) == 0;
	i = kn->kn_count;
	if (conf_key_set(&scope, "names", name, &why) == 0) {
		CHECK(!twice && copy[0] != '\0');
		CHECK(strpbrk(copy + 1, "/ \t\r\n\"%*") == NULL);
		kn->kn_texts[i] = copy;
		kn->kn_sites[i] = site;
		kn->kn_count++;
	} else {
		CHECK(why.why_text[0] != '\0');
		free(copy);
	}
}

static void
add_location(struct conf *conf, struct known *kn, const char *title)
{
	struct conf_why why;
	struct location *loc;
	const char *p = title;
	int stars = 0;

	/* The naive one takes exponential time. */
	while ((p = strchr(p, '*')) != NULL && ++stars < 4)
		p++;
	if (p != NULL ||
	    conf_location_add(&conf->conf_sites[0], title, &loc, &why) != 0)
		return;
	loc->loc_set.set_strip = kn->kn_count;
	kn->kn_texts[kn->kn_count++] = strdup(title);
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
	struct conf_scope scope = {
	    .cs_where = KEY_TOP, .cs_conf = conf, .cs_set = &none};
	struct conf_why why;
	struct site *site;

	for (size_t i = 0; i < SITES; i++)
		CHECK(conf_site_add(&scope, names[i], &site, &why) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	char *host = fuzz_text(fuzz_line(&in)),
	     *path = fuzz_text(fuzz_line(&in));
	struct conf *conf = calloc(1, sizeof(*conf));
	struct known names = {0}, locations = {0};
	const struct settings *set;
	const struct site *first;
	size_t n = 0;
	int location;
	char *line;

	CHECK(conf != NULL);
	for (build(conf); in.s_len > 0 && n < MANY; n++) {
		line = fuzz_text(fuzz_line(&in));
		if (line[0] == '/' || line[0] == '=')
			add_location(conf, &locations, line);
		else
			add_name(conf, &names, line, n % SITES);
		free(line);
	}
	first = &conf->conf_sites[0];
	CHECK(conf_site(conf, host, strlen(host)) ==
	      &conf->conf_sites[naive_site(&names, host)]);
	conf_site_sort(&conf->conf_sites[0]);
	set = conf_settings(first, path, strlen(path));
	location = naive_location(&locations, path);
	CHECK((location == -1) == (set == &first->site_set));
	CHECK(location == -1 || set->set_strip == (size_t)location);
	conf_destroy(&conf);
	forget(&names);
	forget(&locations);
	free(path);
	free(host);
	return 0;
}
