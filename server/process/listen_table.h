/*
 * listen_table: the listening sockets that outlive a server process.  The master keeps
 * them; a new process finds there the sockets of an earlier one, so no connection in a
 * backlog is lost.
 */
#ifndef SERVER_PROCESS_LISTEN_TABLE_H
#define SERVER_PROCESS_LISTEN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

#define LISTEN_NAME 160 /* bytes with the NUL */

enum socket_use {
	SOCKET_SERVE = 's',
	SOCKET_ADMIN = 'a',
	SOCKET_AGENT = 'g',
	SOCKET_UNUSED = 'u', /* inherited, but unused */
};

struct sock {
	int sk_fd; /* owned by the table */
	enum socket_use sk_use;
	bool sk_given; /* from the service manager; bind no more of it */
	bool sk_proxy; /* as la_proxy; not part of the text */
	bool sk_tls;   /* as la_tls; not part of the text */
	ino_t sk_ino;  /* inode of its file, checked before removal; or 0 */
	dev_t sk_dev;
	/*
	 * "127.0.0.1:80", "[::]:0", "/run/pagewise.sock" or "@abstract".  Several sockets may share
	 * a name.
	 */
	char sk_name[LISTEN_NAME];
};

struct listen_table {
	struct sock *ss_list;
	size_t ss_count;
};

/* Adds a copy; the table takes ownership of the descriptor.  Returns 0 or -ENOMEM. */
int listen_add(struct listen_table *, const struct sock *);

/*
 * Removes the first socket with that name and use, and returns it in out.  listen_take_given
 * removes the first socket that the service manager gave.
 */
bool listen_take(
    struct listen_table *, const char *name, enum socket_use, struct sock *out);
bool listen_take_given(struct listen_table *, struct sock *out);

bool listen_has(const struct listen_table *, const char *name, enum socket_use);

/*
 * Returns true if a serving socket has that address and port, or overlaps them: a wildcard overlaps
 * all addresses.  Ignores given sockets and Unix sockets; port 0 matches none.
 */
bool listen_overlap(const struct listen_table *, const struct sockaddr *);

/* Returns true for a stream socket that is bound to the address of its name. */
bool listen_genuine(const struct sock *);

/* Returns true if the socket is not listening. */
bool listen_deaf(int fd);

/*
 * Makes a socket listen, with a backlog of 4096 or the kernel's limit.  Returns 0, or -1 and errno.
 */
int listen_hear(int fd);

/*
 * Makes all sockets listen that do not.  Returns 0, or -errno and the failing socket in *which.
 * Resets SO_LINGER of all, the one socket option that the sandbox lets a server process change:
 * accepted sockets would inherit it.
 */
int listen_listen(const struct listen_table *, const struct sock **which);

/* Returns true if the socket has no file, or its file exists and is its own. */
bool listen_file(const struct sock *);

/* Closes all sockets and empties the table. */
void listen_close(struct listen_table *);

/* Removes the files of sockets that are not in keep, if they are still theirs. */
void listen_remove_files(
    const struct listen_table *, const struct listen_table *keep);

/* Writes an address as a name.  The port is the socket's, or the one that was requested. */
void listen_name(const struct sockaddr *, char name[static LISTEN_NAME]);

/*
 * Convert a socket to text and back, without the descriptor.  listen_unpack returns 0 or -EINVAL.
 */
#define LISTEN_TEXT (LISTEN_NAME + 64)
void listen_pack(const struct sock *, char text[static LISTEN_TEXT]);
int listen_unpack(const char *text, struct sock *);

/* Parses a number and the space after it, and advances *text. */
bool listen_number(const char **text, uintmax_t *number);

#endif
