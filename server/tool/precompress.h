/*
 * precompress: the command "pagewise precompress".  Makes compressed siblings: FILE.zst, FILE.br,
 * FILE.gz.
 *
 * A sibling is current if it has the modification time of its file, in seconds, since a new sibling gets the
 * file's mode, owner and modification time.  The server sends current siblings, and newer ones, which build
 * tools write.  If a new sibling would not be smaller than the file, the command removes an outdated sibling,
 * since the server would send a newer sibling, or any sibling if the file were removed.
 */
#ifndef SERVER_TOOL_PRECOMPRESS_H
#define SERVER_TOOL_PRECOMPRESS_H

#include "server/http/coding.h"
#include "server/http/mime.h"
#include "server/tool/tool.h"

#define PRECOMPRESS_SUFFIXES 64

struct precompress_count {
	/* number of siblings made, bytes of the original files, bytes of the siblings */
	_Atomic uint64_t pc_made, pc_before, pc_after;
};

struct precompress {
	enum coding pre_codings[CODINGS];
	unsigned pre_ncodings;
	int pre_levels[CODINGS + 1]; /* levels, indexed by enum coding */
	uint64_t pre_min_size;
	struct mime *pre_mime;
	/*
	 * suffixes of the files to compress, without dot, NULL-terminated; if the list is empty,
	 * the media types decide
	 */
	const char *pre_suffixes[PRECOMPRESS_SUFFIXES + 1];
	struct precompress_count pre_counts[CODINGS + 1];
	_Atomic uint64_t pre_current; /* number of siblings that were current */
	/* number of siblings not made, since they would not be smaller */
	_Atomic uint64_t pre_larger;
	_Atomic uint64_t pre_removed; /* number of outdated siblings removed */
};

/* Requires that to_own of the struct tool points to a struct precompress. */
extern const struct tool_command precompress_command;

#endif
