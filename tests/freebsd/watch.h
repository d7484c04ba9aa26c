/*
 * watch: what FreeBSD's kernel says of the server's processes: where their threads sleep, and what
 * they may do with their descriptors.
 */
#ifndef TESTS_FREEBSD_WATCH_H
#define TESTS_FREEBSD_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns the newest child of the master: the process that serves.  0 if there is none. */
pid_t watch_server(pid_t master);

/* Returns true if the process is in capability mode. */
bool watch_is_confined(pid_t);

/*
 * Counts the process's sockets, and files open for writing, that have a right which the server does
 * not need, and prints each.  Standard input, output and error are left out.  `seen` is how many had
 * limits to check.  Returns -1 if the kernel does not say.
 */
int watch_rights(pid_t, int *seen);

/* Forgets all samples; takes one of each thread of the process; prints them, by thread and channel. */
void watch_forget(void);
void watch_sample(pid_t);
void watch_print(void);

#define WATCH_RUNS "(runs)" /* the channel of a thread that does not sleep */

/* Returns the samples in which a thread of this name slept in this wait channel; NULL means any. */
unsigned watch_count(const char *thread, const char *channel);

#endif
