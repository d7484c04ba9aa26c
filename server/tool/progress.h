/*
 * progress: one line on standard error, if that is a terminal, drawn ten times a second by a
 * thread of its own, and the lock under which others write.
 */
#ifndef SERVER_TOOL_PROGRESS_H
#define SERVER_TOOL_PROGRESS_H

#include "server/tool/tool.h"

/*
 * Starts the thread.  Returns false, and draws nothing, without a terminal or if the tool is quiet.
 */
bool progress_begin(const struct tool *);
void progress_end(void);

/* Between these calls the line is hidden, and only the caller writes. */
void progress_lock(void);
void progress_unlock(void);

#endif
