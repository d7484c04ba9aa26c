/*
 * master: the process that was started.  It forks a server process, which reads the
 * configuration and serves the requests (serve.h).  The master keeps the listening sockets and
 * handles signals.  For a reload, for an upgrade, or after a crash it starts a new server process
 * and makes the old one drain.  It uses only two kinds of paths, whose file system could hang: the
 * program's path at an upgrade, and the paths of the socket files that it removes.
 *
 *   SIGHUP           reload: a new server process; if its start fails, the old one stays
 *   SIGUSR2          upgrade: a reload by a new program in the same process (upgrade.c)
 *   SIGTERM, SIGINT  shutdown; a second one, a second or more later, shuts down at once; the
 *                    master kills a process that does not exit
 *   SIGUSR1          ignored
 *
 * A server process is a fork without exec, so all server processes have the address layout and the
 * stack canary of the master.
 *
 * Single-threaded.
 */
#ifndef SERVER_PROCESS_MASTER_H
#define SERVER_PROCESS_MASTER_H

/* Runs the master until it shuts down.  Returns the exit status. */
int master(int argc, char **argv);

#endif
