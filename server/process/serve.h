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
	int sa_channel;			/* to the master; taken over */
	struct listen_table sa_sockets; /* of earlier processes; taken over */
	bool sa_again;			/* there has been an earlier one */
	/*
	 * One serves: certificates that clients would not take end this start.  Else they are
	 * used with a warning: an ACME client may need the server to renew them.
	 */
	bool sa_replaces;
	uint64_t sa_watchdog; /* microseconds: see channel.h; 0: off */
};

/*
 * Serves until the master says otherwise, or is gone.  Returns the status to exit with:
 * 0; 1: the start failed, or a disk does not answer; 2: the command line is wrong.
 * SIGPIPE must be ignored.
 */
int serve(struct serve_args *);

#endif
