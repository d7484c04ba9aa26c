/*
 * crew: threads that process files.  The walking thread queues files, and blocks while the queue is
 * full, so that only few directories are open at the same time.
 */
#ifndef SERVER_TOOL_CREW_H
#define SERVER_TOOL_CREW_H

#include "server/tool/walk.h"

struct crew;

/*
 * Creates the threads, which call `work` concurrently.  Returns NULL if memory is short or no
 * thread starts.
 */
struct crew *crew_create(unsigned threads,
    void (*work)(void *arg, const struct walk_file *), void *arg);

/*
 * Queues a file, and blocks while the queue is full.  Holds a reference to the directory, and
 * copies the name.  Returns false if memory is short.
 */
bool crew_put(struct crew *, const struct walk_file *);

/* Waits until all files are processed, and frees the crew. */
void crew_finish(struct crew **);

#endif
