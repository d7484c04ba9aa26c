/*
 * admin_socket: the socket that admin listens on: a loopback address, or a path.
 */
#ifndef SERVER_ADMIN_SOCKET_H
#define SERVER_ADMIN_SOCKET_H

#include <sys/stat.h>

#include "conf.h"

struct admin_socket {
	int as_fd;	     /* owned; -1: none, or somebody else's now */
	const char *as_path; /* of a Unix socket, conf's; NULL: not one */
	dev_t as_dev;	     /* of its file, to remove no other one */
	ino_t as_ino;
};

/* 0, or -1 after a message.  Changes the umask for a moment: one thread only. */
int admin_socket_bind(const struct listen_addr *, struct admin_socket *);
void admin_socket_close(struct admin_socket *);

#endif
