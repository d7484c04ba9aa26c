/*
 * digest: the command "pagewise digest".  Writes the SHA-256 of each file into an extended
 * attribute, in the format of server/http/digest.h, or compares it with the file's content.
 */
#ifndef SERVER_TOOL_DIGEST_H
#define SERVER_TOOL_DIGEST_H

#include "server/tool/tool.h"

struct digest_work {
	bool dw_check; /* true to compare digests, not to write them */
	_Atomic uint64_t dw_done;    /* files written or verified */
	_Atomic uint64_t dw_current; /* files whose digest is current */
	_Atomic uint64_t dw_differ;  /* files that do not match their digest */
	_Atomic uint64_t dw_without; /* files without a current digest */
	_Atomic uint64_t dw_read;    /* bytes read */
};

/* Requires that to_own of the struct tool points to a struct digest_work. */
extern const struct tool_command digest_command;

#endif
