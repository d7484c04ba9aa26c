/*
 * master: the process that the operator starts.  The master forks a server process, which reads the
 * configuration and serves the requests (serve.h).  The master keeps the listening sockets and
 * handles signals.  For a reload, for an upgrade, or after a crash the master starts a new server
 * process and makes the old process drain.  A file system may hang, so the master uses only two
 * kinds of paths: the path of the program at an upgrade, and the paths of socket files that it
 * removes.
 *
 *   SIGHUP           reload: starts a new server process; if the start fails, the old process stays
 *   SIGUSR2          upgrade: executes a new program in the master's process, which then reloads
 *                    (upgrade.c)
 *   SIGTERM, SIGINT  shutdown; a second signal, at least a second later, shuts down at once; the
 *                    master kills a server process that does not exit
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
