/*
 * roots: opens the directories that sites and locations serve.  A server process opens each
 * directory once, when it starts.  So the next server process serves a switched symbolic link or a
 * replaced directory.
 */
#ifndef SERVER_PROCESS_ROOTS_H
#define SERVER_PROCESS_ROOTS_H

#include "server/conf/conf.h"

/*
 * Opens the directories of conf_roots.  Stores an array in the same order that ends with NULL.  May
 * wait for devices.  Returns 0; on an error, logs a message and returns -1.
 */
int roots_open(const struct conf *, struct pw_root ***);

/* Closes the directories.  Call when no loop uses them. */
void roots_close(struct pw_root ***);

#endif
