/*
 * progress: one line on standard error, if that is a terminal, drawn ten times a second by a
 * thread of its own, and the lock under which others write.
 */
#ifndef SERVER_TOOL_PROGRESS_H
#define SERVER_TOOL_PROGRESS_H

#include "server/tool/tool.h"

/* Nothing is drawn if there is no terminal or the tool is quiet; true: something is. */
bool progress_begin(const struct tool *);
void progress_end(void);

/* Between the two the line is gone, and only the caller writes. */
void progress_lock(void);
void progress_unlock(void);

#endif
