/*
 * syntax: the statements of a configuration file: KEY = VALUE, KEY = {VALUE, ...}, and the sections
 * site and location.  Reads the values of each section, with their lines; file.c interprets them.
 */
#ifndef SERVER_CONF_SYNTAX_H
#define SERVER_CONF_SYNTAX_H

#include <stddef.h>

struct conf;
struct conf_block;
struct key;

struct value {
	struct value *val_next;
	const struct key *val_key;
	char *val_text; /* NULL marks the start of the key's values */
	int val_line;	/* line where the value ends */
};

/* A site, a location, or the top level, which has no title. */
struct section {
	struct section *sec_next;
	unsigned sec_where; /* one of KEY_TOP, KEY_SITE, KEY_LOCATION */
	int sec_line;	    /* line where the section begins */
	char *sec_title;
	struct value *sec_values; /* values in file order */
	struct value **sec_last;
};

/*
 * All sections in the order in which they begin: the top level first, locations after their site.
 */
struct syntax {
	struct section *sy_sections;
	struct conf_block *sy_memory; /* memory of sections and values */
};

/*
 * Reads a text that conf_text_strip accepted.  Logs at most one fault per statement, and skips
 * statements with a fault.  Returns 0 or -ENOMEM; the caller frees sy_memory in both cases.
 */
int syntax_read(struct conf *, const char *path, char *text, struct syntax *);

#endif
