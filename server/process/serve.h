/*
 * serve: runs a server process, from reading the configuration to closing the last connection.  The
 * process obeys the master's messages on its channel, and ignores the signals that the master
 * handles.
 */
#ifndef SERVER_PROCESS_SERVE_H
#define SERVER_PROCESS_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/process/listen_table.h"

struct serve_args {
	int sa_argc;
	char **sa_argv;
	int sa_channel; /* channel to the master; owned */
	/* sockets of earlier server processes; owned */
	struct listen_table sa_sockets;
	bool sa_again; /* true if an earlier process served */
	/*
	 * True if another process serves.  Then this start fails if clients would reject a
	 * certificate of the configuration.  Otherwise the process uses such a certificate with a
	 * warning: an ACME client may need the server to renew it.
	 */
	bool sa_replaces;
	/* service manager's timeout, microseconds; 0 is off */
	uint64_t sa_watchdog;
};

/*
 * Serves until the master sends CHANNEL_DRAIN or CHANNEL_STOP, or exits.  Returns the exit status:
 * 0; 1 if the start failed or a device does not respond; 2 if the command line is wrong.  The
 * caller must have ignored SIGPIPE.
 */
int serve(struct serve_args *);

#endif
