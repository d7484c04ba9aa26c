/*
 * key_help: prints the table of keys (--keys), and one key with the section of docs/reference that
 * describes it (-h KEY).
 */
#include <stdio.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/conf/key.h"

/*
 * Text of key_text.txt, which conf/keys.py makes from docs/reference: for each key, and for site
 * and location, a line "@NAME PAGE" and then the lines of its section.
 */
extern const char key_text[];

static const struct {
	unsigned pl_where;
	const char *pl_name;
} places[] = {
    {KEY_TOP, "top level"},
    {KEY_TOP | KEY_SITE, "top level or site"},
    {KEY_INHERITED, "top level, site or location"},
    {KEY_SITE, "site"},
    {KEY_SITE | KEY_LOCATION, "site or location"},
    {KEY_LOCATION, "location"},
};

#define NPLACES (sizeof(places) / sizeof(*places))

static void
conf_key_write(const struct key *key)
{
	char line[96], range[64];
	int len = (int)strlen(key->key_default);

	snprintf(line, sizeof(line), "%s%s = %s",
	    conf_key_is_described(key) ? "#" : "", key->key_name,
	    conf_key_is_described(key) ? key->key_values : key->key_default);
	conf_range_text(key, range, sizeof(range));
	printf("%-32s # %s", line, key->key_help);
	if (conf_key_is_described(key))
		printf("; default: %.*s", len - 2, key->key_default + 1);
	else
		printf("; %s", key->key_values);
	printf("%s%s\n", range[0] != '\0' ? ", " : "", range);
}

static void
conf_key_write_section(unsigned where, const char *title)
{
	printf("# %s:\n", title);
	for (const struct key *key = conf_keys; key->key_name != NULL; key++)
		if ((key->key_where & KEY_ANYWHERE) == where)
			conf_key_write(key);
}

void
conf_key_print(void)
{
	conf_key_write_section(KEY_TOP, "At the top level");
	putchar('\n');
	conf_key_write_section(
	    KEY_TOP | KEY_SITE, "At the top level, or in a site");
	putchar('\n');
	conf_key_write_section(
	    KEY_INHERITED, "At the top level, in a site, or in a location");
	puts("\n# In site \"NAME\" { ... }, which may hold "
	     "location \"/PREFIX/\" { ... }");
	conf_key_write_section(KEY_SITE, "In a site");
	conf_key_write_section(
	    KEY_SITE | KEY_LOCATION, "In a site, or in a location");
	conf_key_write_section(KEY_LOCATION, "In a location");
}

/* Returns the line "@NAME PAGE" of key_text, or NULL. */
static const char *
conf_key_find_text(const char *name)
{
	char mark[64];
	const char *found;

	snprintf(mark, sizeof(mark), "\n@%s ", name);
	found = strstr(key_text, mark);
	return found != NULL ? found + 1 : NULL;
}

static void
conf_key_write_text(const char *text)
{
	const char *page = strchr(text, ' ') + 1, *body = strchr(text, '\n');
	const char *end = strstr(body, "\n@");
	size_t len = end != NULL ? (size_t)(end - body) : strlen(body) - 1;

	fwrite(body, 1, len, stdout);
	printf("\n\nSee %.*s, pagewise.conf(5).\n", (int)(body - page), page);
}

static void
conf_key_write_fact(const char *name, const char *text)
{
	printf("    %-9s %s\n", name, text);
}

static void
conf_key_write_facts(const struct key *key)
{
	bool list = key->key_clear != NULL;
	char range[64], text[128], *p;

	printf("%s = %s%s%s\n\n", key->key_name, list ? "{" : "",
	    key->key_values, list ? "}" : "");
	conf_range_text(key, range, sizeof(range));
	if (range[0] != '\0')
		conf_key_write_fact("range", range);
	snprintf(text, sizeof(text), "%s", key->key_default);
	if (conf_key_is_described(key))
		snprintf(text, sizeof(text), "%.*s",
		    (int)strlen(key->key_default) - 2, key->key_default + 1);
	conf_key_write_fact("default", text);
	for (size_t i = 0; i < NPLACES; i++)
		if (places[i].pl_where == (key->key_where & KEY_ANYWHERE))
			conf_key_write_fact("allowed", places[i].pl_name);
	if ((key->key_where & (KEY_OPTION | KEY_SWITCH)) != 0) {
		snprintf(text, sizeof(text), "--%s", key->key_name);
		for (p = text; (p = strchr(p, '_')) != NULL;)
			*p = '-';
		conf_key_write_fact("option", text);
	}
	conf_key_write_fact("since", key->key_since);
}

bool
conf_key_help(const char *name)
{
	const struct key *key = conf_key(name);
	const char *text = conf_key_find_text(name);

	if (key == NULL && text == NULL)
		return false;
	if (key != NULL)
		conf_key_write_facts(key);
	else
		printf("%s \"...\" { ... }\n", name);
	if (text != NULL)
		conf_key_write_text(text);
	return true;
}
