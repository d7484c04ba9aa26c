/*
 * roots: the directories that sites and locations serve.  They are opened once: a symbolic
 * link that is switched, or a directory that is replaced, is for the next server
 * process.
 */
#ifndef SERVER_PROCESS_ROOTS_H
#define SERVER_PROCESS_ROOTS_H

#include "server/conf/conf.h"

/*
 * Opens them in the order of conf_roots; NULL ends them.  May wait for disks.  0, or -1
 * after a message.
 */
int roots_open(const struct conf *, struct pw_root ***);

/* When no loop uses them any more. */
void roots_close(struct pw_root ***);

#endif
