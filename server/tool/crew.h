/*
 * crew: threads that look at files.  The one that walks puts files in, and waits when the
 * others are behind: so only few directories are open at a time.
 */
#ifndef SERVER_TOOL_CREW_H
#define SERVER_TOOL_CREW_H

#include "server/tool/walk.h"

struct crew;

/* work is called by several threads at once.  NULL: no memory, or no thread. */
struct crew *crew_create(unsigned threads,
    void (*work)(void *arg, const struct walk_file *), void *arg);

/* Takes a reference to the directory, and a copy of the name.  False: no memory. */
bool crew_put(struct crew *, const struct walk_file *);

/* Returns when all is done. */
void crew_finish(struct crew **);

#endif
