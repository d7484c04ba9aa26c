/*
 * key: every key of the configuration, a row for each.  The grammar of the file, the
 * options of the command line, the defaults, -h and --keys all come from these rows;
 * tests/http/test_keys.py holds the manuals and the sample against them.
 *
 * To add a key: a field in conf.h and a row.  What is no number and no boolean has a function
 * as well, in assign.c, or in the file of what it is about: listen.c, user.c, site.c.  A list
 * has a second one, which clears it.  What a key of a site or location points to is kept by
 * conf_keep, so that it needs not be copied or freed.  Then the test says what is missing in
 * the manual pagewise.conf(5), docs/reference/conf-*.md, their index and conf/pagewise.conf.
 */
#ifndef SERVER_CONF_KEY_H
#define SERVER_CONF_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "server/conf/conf.h"

struct conf_why;
struct key;

/* key_where: */
#define KEY_TOP	      0x01u /* at the top level */
#define KEY_SITE      0x02u /* in a site */
#define KEY_LOCATION  0x04u /* in a location */
#define KEY_INHERITED (KEY_TOP | KEY_SITE | KEY_LOCATION)
#define KEY_ANYWHERE  KEY_INHERITED /* a mask */
#define KEY_OPTION    0x08u /* also on the command line, with its value */
#define KEY_SWITCH    0x10u /* also on the command line: "true" */
#define KEY_FILLED    0x20u /* an empty list is an error */
#define KEY_ADDS      0x40u /* a list that is set does not replace the one before */
#define KEY_LATE      0x80u /* a fault may show later: conf_place has its line */

/* Where in a value a path stands, which may be relative. */
enum key_path {
	KEY_PATH_NONE,
	KEY_PATH,	 /* all of it, unless it is a word of key_values: off */
	KEY_PATH_SECOND, /* "404 PATH", but not "404 text: TEXT" */
	KEY_PATH_UNIX,	 /* "unix:PATH" */
	KEY_PATH_SLASH,	 /* all of it, if it has a slash */
};

/* Where a value goes. */
struct conf_scope {
	unsigned cs_where; /* one of KEY_TOP, KEY_SITE, KEY_LOCATION */
	struct conf *cs_conf;
	struct site *cs_site;	      /* NULL at the top level */
	struct location *cs_location; /* NULL outside of one */
	struct settings
	    *cs_set;	     /* of the top level, the site or the location */
	const char *cs_dir;  /* relative paths start there; NULL: working dir */
	const char *cs_file; /* that is read; NULL: the command line */
	int cs_line;
};

typedef int key_set_f(struct conf_scope *, const struct key *, const char *text,
    struct conf_why *);

struct key {
	const char *key_name;
	unsigned key_where;
	/* As a file has it; in parentheses it is not set, but says what holds. */
	const char *key_default;
	const char *key_values; /* the values, "N|auto" */
	const char *key_help;	/* one line, no full stop */
	key_set_f *key_set;	/* 0, or -errno and why */
	enum key_path key_path;
	/* Sets the same field as this one: the later one of the two counts. */
	const char *key_twin;
	/* A list has this; its members are set one by one afterwards. */
	void (*key_clear)(struct conf_scope *);
	/* Of a field that is set by its type: */
	bool key_in_settings; /* in struct settings, not in struct conf */
	size_t key_offset;
	size_t key_width; /* 4 or 8 of a number */
	/* Of a number: */
	uint64_t key_min;
	uint64_t key_max;
	int (*key_parse)(
	    const char *, uint64_t *); /* conf_number or conf_size */
};

#define KEY_MAX 128 /* rows at most */

/* All rows; a NULL name ends them. */
extern const struct key conf_keys[];

/* NULL: there is none. */
const struct key *conf_key(const char *name);

/*
 * One value of one key.  0 or -errno and why.  -ENOENT: there is no such key, or it does not
 * stand there.
 */
int conf_key_set(
    struct conf_scope *, const char *name, const char *text, struct conf_why *);

/* Before a list is set. */
void conf_key_clear(struct conf_scope *, const char *name);

/* All of the top level that have one.  0, or -errno after a message. */
int conf_key_defaults(struct conf_scope *);

/* A list that was set to {}.  0, or -EINVAL and why. */
int conf_key_empty(const char *name, struct conf_why *);

/*
 * Where a key or section belongs that does not stand in a section (KEY_TOP, ...), for the
 * end of a message.  NULL: nowhere.
 */
const char *conf_key_place(const char *name, unsigned section);

/* A key or section that may have been meant, or NULL. */
const char *conf_key_like(const char *name);

/* All keys as a configuration file, with defaults and a comment each, to stdout. */
void conf_key_print(void);

#endif
