/*
 * foreign: names that nginx and Caddy have for what a key of ours does.  Pure.
 */
#ifndef SERVER_CONF_FOREIGN_H
#define SERVER_CONF_FOREIGN_H

struct foreign {
	const char *fo_name;
	const char *fo_program; /* "nginx" or "Caddy" */
	const char *fo_ours;	/* the equivalent in pagewise.conf */
};

/* All names, ended by a NULL name.  Excludes names that are also keys here. */
extern const struct foreign foreign_names[];

/* Returns NULL if there is none. */
const struct foreign *foreign_find(const char *name);

#endif
