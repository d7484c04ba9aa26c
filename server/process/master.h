/*
 * master: the process that was started.  It serves no requests and does not read the
 * configuration: its child, a server process, does (serve.h).  The master keeps the
 * listening sockets, acts on signals, starts a new server process and has the old one
 * end: for a reload, an upgrade, or when one died.  The only paths that it uses, and
 * that could hang, are the program's, at an upgrade, and the file of an admin socket
 * that it removes.
 *
 *   SIGHUP           a new server process; if it does not come up, the old one stays
 *   SIGUSR2          the same by a new program, in the same process: see upgrade.c
 *   SIGTERM, SIGINT  the end; a second one, a second or more later: at once; a process
 *   that does not end is killed
 *   SIGUSR1          nothing
 *
 * A child is a fork without exec, so it has the addresses and the stack canary of its
 * master, and so has the next one.
 *
 * One thread.
 */
#ifndef SERVER_PROCESS_MASTER_H
#define SERVER_PROCESS_MASTER_H

/* The whole life of the program; returns the status to exit with. */
int master(int argc, char **argv);

#endif
