/*
 * serve: a server process: from the configuration to the last connection.  It obeys
 * the master, which it hears by its channel, and no signal.
 */
#ifndef SERVER_PROCESS_SERVE_H
#define SERVER_PROCESS_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/process/listen_table.h"

struct serve_args {
	int sa_argc;
	char **sa_argv;
	int sa_channel;			/* channel to the master; owned */
	struct listen_table sa_sockets; /* of earlier processes; owned */
	bool sa_again;			/* true if an earlier process served */
	/*
	 * True if another process serves.  Then this start fails if clients would refuse a
	 * certificate.  Otherwise such a certificate is used with a warning: an ACME client may
	 * need the server to renew it.
	 */
	bool sa_replaces;
	uint64_t sa_watchdog; /* microseconds, for channel.h; 0 is off */
};

/*
 * Serves until the master tells it to stop, or exits.  Returns the exit status: 0; 1 if the start
 * failed or a device does not respond; 2 if the command line is wrong.  Requires SIGPIPE to be
 * ignored.
 */
int serve(struct serve_args *);

#endif
