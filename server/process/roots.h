/*
 * roots: the directories that sites and locations serve.  They are opened once: a symbolic
 * link that is switched, or a directory that is replaced, takes effect in the next server
 * process.
 */
#ifndef SERVER_PROCESS_ROOTS_H
#define SERVER_PROCESS_ROOTS_H

#include "server/conf/conf.h"

/*
 * Opens the directories in the order of conf_roots, NULL-terminated.  May wait for devices.
 * Returns 0, or -1 after a message.
 */
int roots_open(const struct conf *, struct pw_root ***);

/* Closes the directories.  Call when no loop uses them any more. */
void roots_close(struct pw_root ***);

#endif
