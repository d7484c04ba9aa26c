/*
 * progress: a progress line on standard error, if that is a terminal.  A thread of its own draws
 * the line ten times a second.  Other threads write to the terminal under progress_lock.
 */
#ifndef SERVER_TOOL_PROGRESS_H
#define SERVER_TOOL_PROGRESS_H

#include "server/tool/tool.h"

/*
 * Starts the thread.  Returns false, and draws nothing, if standard error is no terminal, the tool
 * is quiet, or no thread starts.
 */
bool progress_begin(const struct tool *);
void progress_end(void);

/* progress_lock hides the line and keeps other threads from writing until progress_unlock. */
void progress_lock(void);
void progress_unlock(void);

#endif
