/*
 * master: the process that was started.  It serves no requests and does not read the
 * configuration: a server process, which it forks, does (serve.h).  The master keeps the
 * listening sockets, handles signals, starts a new server process and makes the old one drain:
 * for a reload, for an upgrade, or after a crash.  The only paths that it uses, and that could
 * hang, are the program's, at an upgrade, and the file of an admin socket that it removes.
 *
 *   SIGHUP           reload: a new server process; if its start fails, the old one stays
 *   SIGUSR2          upgrade: a reload by a new program in the same process (upgrade.c)
 *   SIGTERM, SIGINT  shutdown; a second one, a second or more later, shuts down at once; the
 *                    master kills a process that does not exit
 *   SIGUSR1          ignored
 *
 * A server process is a fork without exec, so it has the address layout and the stack canary of its
 * master, and so has the next one.
 *
 * Single-threaded.
 */
#ifndef SERVER_PROCESS_MASTER_H
#define SERVER_PROCESS_MASTER_H

/* Runs the whole life of the program.  Returns the exit status. */
int master(int argc, char **argv);

#endif
