/*
 * sd_listen: receives the listening sockets that a service manager has opened for this process, as
 * described in sd_listen_fds(3).
 */
#ifndef SERVER_PROCESS_SD_LISTEN_H
#define SERVER_PROCESS_SD_LISTEN_H

#include "server/process/listen_table.h"

/*
 * Adds the sockets of the service manager to the table.  Returns 0, or -1 after a message about an
 * unusable socket.
 */
int sd_listen_take(struct listen_table *);

#endif
