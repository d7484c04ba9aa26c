/*
 * syntax: the statements of a configuration file: KEY = VALUE, KEY = {VALUE, ...}, and the sections
 * site and location.  libConfuse would drop some characters, keep the last of two equal keys and
 * stop at the first fault.  So statements are checked here; libConfuse reads the values.
 */
#ifndef SERVER_CONF_SYNTAX_H
#define SERVER_CONF_SYNTAX_H

#include <stddef.h>

struct cfg_t;
struct conf;

/* A site or a location, or the top level, which has no title. */
struct section {
	unsigned sec_where; /* one of KEY_TOP, KEY_SITE, KEY_LOCATION */
	int sec_line;	    /* of its first byte */
	char *sec_text; /* the statements of sections in it are part of it */
	char *sec_end;
	const char *sec_title; /* as the file has it, with quotes */
	size_t sec_title_len;
	struct cfg_t *sec_values; /* file.c's */
};

/* In the order in which they begin: the top level first, locations behind their site. */
struct syntax {
	struct section *sy_sections;
	size_t sy_count;
};

/* The key under which libConfuse finds the title of a section. */
#define SYNTAX_TITLE "|"

/*
 * Checks a text that conf_text_strip has accepted, and logs each fault, one for each statement.  A
 * statement that has one is overwritten with spaces.  In the text of a section its head becomes
 * SYNTAX_TITLE = TITLE.  The caller frees sy_sections.  Returns 0 or -ENOMEM.
 */
int syntax_check(struct conf *, const char *path, char *text, struct syntax *);

#endif
