/*
 * dump: prints the whole configuration as a file that can be read back (-T).  While the
 * configuration is built, dump records each value as given, but with absolute paths, and the start
 * of each section.  Keys without a record have their default, or inherit a value.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/conf/conf_priv.h"

/* A record: a value; a list that was emptied (sd_text is NULL); or a section (sd_key is NULL). */
struct said {
	struct said *sd_next;
	const struct key *sd_key;
	char *sd_text;	   /* value; or title of a section */
	unsigned sd_where; /* KEY_SITE or KEY_LOCATION of a section */
};

struct conf_dump {
	char du_cwd[PATH_MAX];
	struct said *du_first;
	struct said **du_last;
	int du_error;
};

int
conf_dump_begin(struct conf *conf)
{
	struct conf_dump *dump = conf_keep(conf, sizeof(*dump));

	if (dump == NULL)
		return -ENOMEM;
	if (getcwd(dump->du_cwd, sizeof(dump->du_cwd)) == NULL)
		return -errno;
	dump->du_last = &dump->du_first;
	conf->conf_dump = dump;
	return 0;
}

static struct said *
conf_dump_add(struct conf *conf)
{
	struct conf_dump *dump = conf->conf_dump;
	struct said *said = conf_keep(conf, sizeof(*said));

	if (said == NULL) {
		dump->du_error = -ENOMEM;
		return NULL;
	}
	*dump->du_last = said;
	dump->du_last = &said->sd_next;
	return said;
}

/* Returns true for "off" and other words that follow a '|' in key_values. */
static bool
conf_dump_is_word(const struct key *key, const char *text)
{
	size_t len = strlen(text);
	const char *word = strchr(key->key_values, '|');

	for (; word != NULL; word = strchr(word, '|')) {
		word++;
		if (strncmp(word, text, len) == 0 &&
		    (word[len] == '\0' || word[len] == '|'))
			return true;
	}
	return false;
}

/* Returns the start of the path in a value, or NULL if it has none. */
static const char *
conf_dump_find_path(const struct key *key, const char *text)
{
	const char *path = text;

	switch (key->key_path) {
	case KEY_PATH:
		return conf_dump_is_word(key, text) ? NULL : text;
	case KEY_PATH_SECOND:
		path += strcspn(path, " \t");
		path += strspn(path, " \t");
		return strncmp(path, "text:", 5) == 0 ? NULL : path;
	case KEY_PATH_UNIX:
		return strncmp(text, "unix:", 5) == 0 ? text + 5 : NULL;
	case KEY_PATH_SLASH:
		return strchr(text, '/') != NULL ? text : NULL;
	case KEY_PATH_NONE:
		break;
	}
	return NULL;
}

/*
 * Returns a copy of the value, with its path made absolute, in memory of the configuration.
 * Returns NULL if memory is short.
 */
static char *
conf_dump_absolute(
    const struct conf_scope *scope, const struct key *key, const char *text)
{
	struct conf *conf = scope->cs_conf;
	const char *path = conf_dump_find_path(key, text),
		   *cwd = conf->conf_dump->du_cwd;
	const char *dir = scope->cs_dir != NULL ? scope->cs_dir : "";
	size_t room;
	char *copy;

	if (path == NULL || path[0] == '/')
		return conf_keep_text(conf, text, strlen(text));
	if (dir[0] == '/')
		cwd = "";
	room = strlen(text) + strlen(cwd) + strlen(dir) + sizeof("//");
	copy = conf_keep(conf, room);
	if (copy != NULL)
		snprintf(copy, room, "%.*s%s%s%s%s%s", (int)(path - text), text,
		    cwd, dir[0] != '\0' && dir[0] != '/' ? "/" : "", dir,
		    dir[0] != '\0' && dir[strlen(dir) - 1] == '/' ? "" : "/",
		    path);
	return copy;
}

void
conf_dump_value(
    const struct conf_scope *scope, const char *name, const char *text)
{
	struct said *said;

	if (scope->cs_conf->conf_dump == NULL)
		return;
	said = conf_dump_add(scope->cs_conf);
	if (said == NULL)
		return;
	said->sd_key = conf_key(name);
	if (text == NULL)
		return;
	said->sd_text = conf_dump_absolute(scope, said->sd_key, text);
	if (said->sd_text == NULL)
		scope->cs_conf->conf_dump->du_error = -ENOMEM;
}

void
conf_dump_section(struct conf *conf, unsigned where, const char *title)
{
	struct said *said;

	if (conf->conf_dump == NULL)
		return;
	said = conf_dump_add(conf);
	if (said == NULL)
		return;
	said->sd_where = where;
	said->sd_text = conf_keep_text(conf, title, strlen(title));
	if (said->sd_text == NULL)
		conf->conf_dump->du_error = -ENOMEM;
}

static bool
conf_dump_is_plain(const char *text)
{
	return text[0] != '\0' &&
	       text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
				 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] ==
		   '\0';
}

/* Prints a string in the syntax that unescape.c reads. */
static void
conf_dump_text(const char *text)
{
	putchar('"');
	for (; *text != '\0'; text++) {
		if (iscntrl((unsigned char)*text)) {
			printf("\\x%02x", (unsigned char)*text);
			continue;
		}
		if (strchr("\"\\$", *text) != NULL)
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void
conf_dump_write_value(const char *text)
{
	if (conf_dump_is_plain(text))
		fputs(text, stdout);
	else
		conf_dump_text(text);
}

static void
conf_dump_list(
    const struct said *said, const struct said *end, const struct key *key)
{
	const char *between = "";

	fputs("{", stdout);
	for (; said != end; said = said->sd_next) {
		if (said->sd_key != key || said->sd_text == NULL)
			continue;
		fputs(between, stdout);
		conf_dump_text(said->sd_text);
		between = ", ";
	}
	fputs("}", stdout);
}

static bool
conf_dump_is_twin(const struct key *key, const struct key *other)
{
	return key->key_twin != NULL &&
	       strcmp(key->key_twin, other->key_name) == 0;
}

/*
 * Returns the record to print for a key: the key's last value, or the start of its last list.
 * Lists of a key with KEY_ADDS are printed as one list, so the record is then the start of the
 * first list.  If the key's twin was set last, returns the twin's record.  Returns NULL if neither
 * was set.
 */
static const struct said *
conf_dump_find(
    const struct said *said, const struct said *end, const struct key *key)
{
	const struct said *found = NULL;

	for (; said != end; said = said->sd_next) {
		if ((said->sd_text == NULL) !=
		    (said->sd_key->key_clear != NULL))
			continue;
		if (found != NULL && (key->key_where & KEY_ADDS) != 0)
			break;
		if (said->sd_key == key || conf_dump_is_twin(key, said->sd_key))
			found = said;
	}
	return found;
}

static void
conf_dump_default(const struct key *key)
{
	int len = (int)strlen(key->key_default);

	if (key->key_default[0] == '(') {
		/*
		 * The twin's line already sets the field of both keys when the dump is read back.
		 */
		if (key->key_twin == NULL)
			printf("# %s: %.*s\n", key->key_name, len - 2,
			    key->key_default + 1);
		return;
	}
	printf("%s = ", key->key_name);
	if (key->key_clear != NULL) {
		printf("{\"%s\"}\n", key->key_default);
		return;
	}
	conf_dump_write_value(key->key_default);
	putchar('\n');
}

static void
conf_dump_key(
    const struct said *said, const struct said *end, const char *indent)
{
	const struct key *key = said->sd_key;

	printf("%s%s = ", indent, key->key_name);
	if (key->key_clear != NULL)
		conf_dump_list(said, end, key);
	else
		conf_dump_write_value(said->sd_text);
	putchar('\n');
}

/* Prints all keys of a section.  Skips include, as the dump contains the included files. */
static void
conf_dump_keys(const struct said *first, const struct said *end, unsigned where,
    const char *indent)
{
	const struct said *said;

	for (const struct key *key = conf_keys; key->key_name != NULL; key++) {
		if ((key->key_where & where) == 0 ||
		    strcmp(key->key_name, "include") == 0)
			continue;
		said = conf_dump_find(first, end, key);
		if (said == NULL && where == KEY_TOP)
			conf_dump_default(key);
		else if (said != NULL && said->sd_key == key)
			conf_dump_key(said, end, indent);
	}
}

static const struct said *
conf_dump_section_end(const struct said *said)
{
	while (said != NULL && said->sd_key != NULL)
		said = said->sd_next;
	return said;
}

static void
conf_dump_write_section(
    const struct said *said, const char *name, const char *indent)
{
	printf("%s%s ", indent, name);
	conf_dump_text(said->sd_text);
	fputs(" {\n", stdout);
}

static void
conf_dump_sections(const struct said *said)
{
	bool open = false;

	for (; said != NULL; said = conf_dump_section_end(said->sd_next)) {
		if (said->sd_where == KEY_SITE) {
			puts(open ? "}\n" : "");
			conf_dump_write_section(said, "site", "");
			conf_dump_keys(said->sd_next,
			    conf_dump_section_end(said->sd_next), KEY_SITE,
			    "\t");
			open = true;
			continue;
		}
		conf_dump_write_section(said, "location", "\t");
		conf_dump_keys(said->sd_next,
		    conf_dump_section_end(said->sd_next), KEY_LOCATION, "\t\t");
		puts("\t}");
	}
	puts("}");
}

int
conf_dump_print(const struct conf *conf)
{
	const struct conf_dump *dump = conf->conf_dump;
	const struct said *end = conf_dump_section_end(dump->du_first);

	if (dump->du_error != 0)
		return dump->du_error;
	printf("# The configuration of pagewise %s with all included files; "
	       "pagewise -c can read it.\n",
	    PW_VERSION);
	conf_dump_keys(dump->du_first, end, KEY_TOP, "");
	conf_dump_sections(end);
	return 0;
}
