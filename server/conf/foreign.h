/*
 * foreign: names that nginx and Caddy have for what a key of ours does.  Pure.
 */
#ifndef SERVER_CONF_FOREIGN_H
#define SERVER_CONF_FOREIGN_H

struct foreign {
	const char *fo_name;
	const char *fo_program; /* "nginx" or "Caddy" */
	const char *fo_ours;	/* as it is written here */
};

/* All of them; a NULL name ends them.  Names that are keys here too are not among them. */
extern const struct foreign foreign_names[];

/* Returns NULL if there is none. */
const struct foreign *foreign_find(const char *name);

#endif
