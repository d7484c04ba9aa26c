/*
 * serve: runs a server process: reads the configuration, serves, and shuts down.  The process
 * follows the messages that the master sends on the channel.  The process ignores the signals that
 * the master handles.
 */
#ifndef SERVER_PROCESS_SERVE_H
#define SERVER_PROCESS_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/process/listen_table.h"

struct serve_args {
	int sa_argc;
	char **sa_argv;
	int sa_channel; /* channel to the master; owned by serve */
	/* sockets of earlier server processes; owned by serve */
	struct listen_table sa_sockets;
	bool sa_again; /* true if an earlier process has served */
	/*
	 * True if another process serves.  The start then fails if clients would reject a
	 * certificate of the configuration.  If false, the process only logs a warning and uses the
	 * certificate, because an ACME client may need the server to renew it.
	 */
	bool sa_replaces;
	/* service manager's timeout, microseconds; 0 if off */
	uint64_t sa_watchdog;
};

/*
 * Serves until the master sends CHANNEL_DRAIN or CHANNEL_STOP, or exits.  Returns the exit status:
 * 0, 1 if the start failed or a device does not respond, or 2 if the command line is wrong.
 * Requires that SIGPIPE is ignored.
 */
int serve(struct serve_args *);

#endif
