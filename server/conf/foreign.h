/*
 * foreign: directives of nginx and Caddy, with the equivalent keys of pagewise.conf.  Pure.
 */
#ifndef SERVER_CONF_FOREIGN_H
#define SERVER_CONF_FOREIGN_H

struct foreign {
	const char *fo_name;
	const char *fo_program; /* "nginx" or "Caddy" */
	const char *fo_ours;	/* the equivalent in pagewise.conf */
};

/* All directives, ended by a NULL name, except those whose names are also keys of pagewise.conf. */
extern const struct foreign foreign_names[];

/* Returns the directive with this name, or NULL. */
const struct foreign *foreign_find(const char *name);

#endif
