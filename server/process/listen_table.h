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
	SOCKET_UNUSED = 'u', /* given to us, but unused */
};

struct sock {
	int sk_fd; /* owned by its table */
	enum socket_use sk_use;
	bool sk_given; /* by the service manager: no more can be bound */
	bool sk_proxy; /* as la_proxy; not in the text */
	bool sk_tls;   /* as la_tls; the same */
	ino_t sk_ino;  /* of its file, to remove no other one; 0: none */
	dev_t sk_dev;
	/*
	 * "127.0.0.1:80", "[::]:0", "/run/pagewise.sock", "@abstract"; several
	 * may have one
	 */
	char sk_name[LISTEN_NAME];
};

struct listen_table {
	struct sock *ss_list;
	size_t ss_count;
};

/* A copy; the descriptor belongs to the table from then on.  0 or -ENOMEM. */
int listen_add(struct listen_table *, const struct sock *);

/* Takes the first one of that name and use out; given: any that was given. */
bool listen_take(
    struct listen_table *, const char *name, enum socket_use, struct sock *out);
bool listen_take_given(struct listen_table *, struct sock *out);

bool listen_has(const struct listen_table *, const char *name, enum socket_use);

/*
 * Whether a serving socket has that address and port, or overlaps them: a wildcard has
 * all addresses.  Given sockets and Unix sockets do not count; port 0 matches none.
 */
bool listen_overlap(const struct listen_table *, const struct sockaddr *);

/* A stream socket that is bound to the address of its name, as it says? */
bool listen_genuine(const struct sock *);

/* Bound, but not listening, or not any more. */
bool listen_deaf(int fd);

/* Has one listen: 4096 may wait, or what the kernel allows.  0, or -1 and errno. */
int listen_hear(int fd);

/*
 * Has those listen that do not.  0, or -errno and *which could not.  Of all it takes
 * SO_LINGER back, the one option that the sandbox lets a server process change:
 * accepted sockets would inherit it.
 */
int listen_listen(const struct listen_table *, const struct sock **which);

/* Whether its file, if it has one, is there and its own. */
bool listen_file(const struct sock *);

/* Closes all; empty after that. */
void listen_close(struct listen_table *);

/* Removes the files that none of keep has, if they are still theirs. */
void listen_remove_files(
    const struct listen_table *, const struct listen_table *keep);

/* An address as a name; the port is that of a socket or the one that was asked for. */
void listen_name(const struct sockaddr *, char name[static LISTEN_NAME]);

/* As text, and back; the descriptor is not in it.  Back: 0 or -EINVAL. */
#define LISTEN_TEXT (LISTEN_NAME + 64)
void listen_pack(const struct sock *, char text[static LISTEN_TEXT]);
int listen_unpack(const char *text, struct sock *);

/* A number and the space behind it, for texts such as these; moves *text on. */
bool listen_number(const char **text, uintmax_t *number);

#endif
