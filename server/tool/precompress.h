/*
 * precompress: the command that makes compressed siblings: FILE.zst, FILE.br, FILE.gz.
 *
 * By the server's rule a sibling is current if it is not older than its file.  A new sibling gets
 * the file's mode, owner and modification time.  An older sibling is removed if a new one would not
 * be smaller than the file, as the server would send the old sibling if the file were removed.
 */
#ifndef SERVER_TOOL_PRECOMPRESS_H
#define SERVER_TOOL_PRECOMPRESS_H

#include "server/http/coding.h"
#include "server/http/mime.h"
#include "server/tool/tool.h"

#define PRECOMPRESS_SUFFIXES 64

struct precompress_count {
	/* Number of siblings made, and bytes before and after compression. */
	_Atomic uint64_t pc_made, pc_before, pc_after;
};

struct precompress {
	enum coding pre_codings[CODINGS];
	unsigned pre_ncodings;
	int pre_levels[CODINGS + 1]; /* levels, indexed by enum coding */
	uint64_t pre_min_size;
	struct mime *pre_mime;
	/* Suffixes to select files by, without dot, NULL-terminated.  If none, media types decide. */
	const char *pre_suffixes[PRECOMPRESS_SUFFIXES + 1];
	struct precompress_count pre_counts[CODINGS + 1];
	_Atomic uint64_t pre_current, pre_larger, pre_removed;
};

/* Requires that to_own points to a struct precompress. */
extern const struct tool_command precompress_command;

#endif
