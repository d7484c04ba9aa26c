/*
 * assign: the command "pagewise assign".  Prints which node of a fleet serves each directory or
 * file behind a HAProxy that hashes paths (chash.h), and which paths move when a node is added.
 */
#ifndef SERVER_TOOL_ASSIGN_H
#define SERVER_TOOL_ASSIGN_H

#include <stdbool.h>

#include "server/tool/chash.h"

struct assign {
	char *as_nodes;	   /* list of NAME[=ID][:WEIGHT]; overwritten */
	char *as_add;	   /* NAME[=ID][:WEIGHT] to add, or NULL; overwritten */
	unsigned as_depth; /* number of path levels to hash: chash_depth */
	enum chash_ring as_ring;
	bool as_dotfiles; /* true to include names with a leading dot */
	bool as_quiet;	  /* true if no sums are printed */
};

/*
 * Prints the assignment.  Returns the exit status: 0; 1 after a message about a failure; 2 after a
 * message if as_nodes or as_add is wrong.
 */
int assign_run(const struct assign *, const char *dir);

#endif
