/*
 * listen_table: the listening sockets that outlive a server process.  The master keeps the table.
 * A new server process finds the sockets of an earlier one in it, so no connection in a backlog is
 * lost.
 */
#ifndef SERVER_PROCESS_LISTEN_TABLE_H
#define SERVER_PROCESS_LISTEN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

#define LISTEN_NAME 160 /* maximum bytes of a name, with the NUL */

enum socket_use {
	SOCKET_SERVE = 's',
	SOCKET_ADMIN = 'a',
	SOCKET_AGENT = 'g',
	SOCKET_UNUSED = 'u', /* inherited, but not used by the configuration */
};

struct sock {
	int sk_fd; /* owned by the table */
	enum socket_use sk_use;
	/* true if the service manager opened it; all workers share it */
	bool sk_given;
	bool sk_proxy; /* copy of la_proxy; listen_pack omits it */
	bool sk_tls;   /* copy of la_tls; listen_pack omits it */
	/* inode of the socket's file, compared before its removal; 0 if there is no file */
	ino_t sk_ino;
	dev_t sk_dev; /* device of that file */
	/*
	 * Address, such as "127.0.0.1:80", "[::]:0", "/run/pagewise.sock" or "@abstract".  Several
	 * sockets may share a name.
	 */
	char sk_name[LISTEN_NAME];
};

struct listen_table {
	struct sock *ss_list;
	size_t ss_count;
};

/* Adds a copy of the struct; the table takes ownership of the descriptor.  Returns 0 or -ENOMEM. */
int listen_add(struct listen_table *, const struct sock *);

/*
 * listen_take removes the first socket with that name and use, and stores it in *out.
 * listen_take_given removes and stores the first socket that the service manager opened.  Both
 * return false if there is none.
 */
bool listen_take(
    struct listen_table *, const char *name, enum socket_use, struct sock *out);
bool listen_take_given(struct listen_table *, struct sock *out);

bool listen_has(const struct listen_table *, const char *name, enum socket_use);

/*
 * Returns true if a serving socket of the table has that address and port, or overlaps them: a
 * wildcard overlaps all addresses.  Ignores Unix sockets and sockets of the service manager.
 * Returns false for port 0.
 */
bool listen_overlap(const struct listen_table *, const struct sockaddr *);

/* Returns true if the socket is a stream socket that is bound to the address in its name. */
bool listen_genuine(const struct sock *);

/* Returns true if the socket is not listening. */
bool listen_deaf(int fd);

/*
 * Makes a socket listen, with a backlog of 4096 or the kernel's limit.  Returns 0, or -1 and errno.
 */
int listen_hear(int fd);

/*
 * Makes each socket listen that does not listen yet.  Returns 0, or -errno and the failing socket
 * in *which.  Also resets SO_LINGER and TCP_NOTSENT_LOWAT of all sockets.  The sandbox lets a
 * server process change these options, and accepted sockets would inherit them.
 */
int listen_listen(const struct listen_table *, const struct sock **which);

/* Returns true if the socket has no file, or if its file still exists and has the same inode. */
bool listen_file(const struct sock *);

/* Closes all sockets and empties the table. */
void listen_close(struct listen_table *);

/*
 * Removes the socket files of the first table, except files of sockets in `keep` and files that
 * another program has replaced.
 */
void listen_remove_files(
    const struct listen_table *, const struct listen_table *keep);

/* Writes the name of an address: see sk_name. */
void listen_name(const struct sockaddr *, char name[static LISTEN_NAME]);

/*
 * listen_pack converts a socket, without its descriptor, to text; listen_unpack converts the text
 * back, and returns 0 or -EINVAL.
 */
#define LISTEN_TEXT (LISTEN_NAME + 64)
void listen_pack(const struct sock *, char text[static LISTEN_TEXT]);
int listen_unpack(const char *text, struct sock *);

/*
 * Parses a number and the space after it, and advances *text.  Returns false if *text does not
 * begin with both.
 */
bool listen_number(const char **text, uintmax_t *number);

#endif
