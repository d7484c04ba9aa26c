/*
 * key: the table of all configuration keys, one row per key.  The grammar of the file, the options
 * of the command line, the defaults, -h and --keys all come from these rows.
 *
 * To add a key, add a field in conf.h, a row, and a section of docs/reference/conf-*.md; then run
 * `make keys`, which generates the texts that repeat the row and the section: pagewise.conf(5),
 * conf/pagewise.conf, the index of keys, the text of -h KEY.  A key that is neither number nor
 * boolean also needs a function, in assign.c or in the file of its subject: listen.c, user.c,
 * site.c.  A list needs a second function, which clears the list.  The memory of a key of a site or
 * location comes from conf_keep, because several settings share that memory.
 */
#ifndef SERVER_CONF_KEY_H
#define SERVER_CONF_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "server/conf/conf.h"

struct conf_why;
struct key;

/* Flags of key_where: */
#define KEY_TOP	      0x01u /* allowed at the top level */
#define KEY_SITE      0x02u /* allowed in a site */
#define KEY_LOCATION  0x04u /* allowed in a location */
#define KEY_INHERITED (KEY_TOP | KEY_SITE | KEY_LOCATION)
#define KEY_ANYWHERE  KEY_INHERITED /* mask of all sections */
#define KEY_OPTION    0x08u /* also a command-line option with a value */
#define KEY_SWITCH    0x10u /* also a command-line switch for "true" */
#define KEY_FILLED    0x20u /* an empty list is an error */
#define KEY_ADDS      0x40u /* setting the list keeps earlier values */
#define KEY_LATE      0x80u /* conf_place records the line, for late checks */

/* The part of a value that is a path, which may be relative. */
enum key_path {
	KEY_PATH_NONE,
	KEY_PATH,	 /* whole value, except words such as off */
	KEY_PATH_SECOND, /* "404 PATH", but not "404 text: TEXT" */
	KEY_PATH_UNIX,	 /* "unix:PATH" */
	KEY_PATH_SLASH,	 /* whole value, if it has a slash */
};

/* The section that receives a value. */
struct conf_scope {
	unsigned cs_where; /* one of KEY_TOP, KEY_SITE, KEY_LOCATION */
	struct conf *cs_conf;
	struct site *cs_site;	      /* NULL at the top level */
	struct location *cs_location; /* NULL outside a location */
	/* settings of the top level, site or location */
	struct settings *cs_set;
	const char *cs_dir;  /* base of relative paths; NULL is the cwd */
	const char *cs_file; /* file being read; NULL is the command line */
	int cs_line;
};

typedef int key_set_f(struct conf_scope *, const struct key *, const char *text,
    struct conf_why *);

struct key {
	const char *key_name;
	unsigned key_where;
	const char *key_since; /* version that introduced the key: "0.2" */
	/*
	 * Default in the file's syntax.  A text in parentheses is no value; it describes the
	 * effect of an unset key.
	 */
	const char *key_default;
	const char *key_values; /* syntax of the values, as in "N|auto" */
	const char *key_help;	/* help; one line, no full stop */
	/* sets the key; returns 0, or -errno and the cause */
	key_set_f *key_set;
	enum key_path key_path;
	/*
	 * Name of another key that sets the same field, or NULL.  Of the two keys, the one that is
	 * set last takes effect.
	 */
	const char *key_twin;
	/*
	 * Prepares a list before its members are set one by one: empties the list or, for a key
	 * with KEY_ADDS, copies the inherited members.  NULL for keys that are no list.
	 */
	void (*key_clear)(struct conf_scope *);
	/* true if the key's field is in struct settings, false if it is in struct conf */
	bool key_in_settings;
	size_t key_offset; /* offset of the key's field, bytes */
	size_t key_width;  /* size of a number: 4 or 8 bytes */
	uint64_t key_min;  /* least value of a number */
	uint64_t key_max;  /* greatest value of a number */
	/* parser of a number: conf_number or conf_size */
	int (*key_parse)(const char *, uint64_t *);
};

#define KEY_MAX 128 /* maximum number of rows */

/* All rows, ended by a NULL name. */
extern const struct key conf_keys[];

/* Returns the key of this name, or NULL. */
const struct key *conf_key(const char *name);

/*
 * Sets one value of one key.  Returns 0, or -errno and the cause: -ENOENT if the key does not exist
 * or is not allowed in this section.
 */
int conf_key_set(
    struct conf_scope *, const char *name, const char *text, struct conf_why *);

/* Calls key_clear if the key is a list.  Call before the values of a list are set. */
void conf_key_clear(struct conf_scope *, const char *name);

/* Sets the default of every top-level key that has one.  Returns 0, or -errno after a message. */
int conf_key_defaults(struct conf_scope *);

/* Checks that the list of a key may be empty.  Returns 0, or -EINVAL and the cause. */
int conf_key_empty(const char *name, struct conf_why *);

/*
 * Returns advice on where to move a key or section that is not allowed in `section` (KEY_TOP,
 * KEY_SITE or KEY_LOCATION), for the end of a message.  Returns NULL if `section` allows the name,
 * or if the name is unknown.
 */
const char *conf_key_place(const char *name, unsigned section);

/* Returns the most similar key or section name, or NULL. */
const char *conf_key_like(const char *name);

/* Returns true for a default such as "(nobody)", which describes an unset key. */
bool conf_key_is_described(const struct key *);

/*
 * Prints all keys to stdout as a configuration file, with the default and a comment for each key.
 */
void conf_key_print(void);

/*
 * Prints one key, or the section site or location, to stdout: its values, default and places, and
 * the text of docs/reference.  Returns false if no key or section has this name.
 */
bool conf_key_help(const char *name);

#endif
