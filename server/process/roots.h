/*
 * roots: the directories that sites and locations serve.  Each is opened once, when a server
 * process starts.  So a switched symbolic link or a replaced directory takes effect in the next
 * server process.
 */
#ifndef SERVER_PROCESS_ROOTS_H
#define SERVER_PROCESS_ROOTS_H

#include "server/conf/conf.h"

/*
 * Opens the directories of conf_roots into an array in the same order, with a NULL at its end.  May
 * wait for devices.  Returns 0, or -1 after a message.
 */
int roots_open(const struct conf *, struct pw_root ***);

/* Closes the directories.  Call when no loop uses them any more. */
void roots_close(struct pw_root ***);

#endif
