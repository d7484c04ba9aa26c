/*
 * listen_table: the listening sockets that outlive a server process.  The master keeps
 * them; a new process finds there what an earlier one has bound, so nobody who
 * waits to be accepted is lost.
 */
#ifndef SERVER_PROCESS_LISTEN_TABLE_H
#define SERVER_PROCESS_LISTEN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

#define SOCKETS_NAME 160 /* bytes with the NUL */

enum socket_use {
	SOCKET_SERVE = 's',
	SOCKET_ADMIN = 'a',
	SOCKET_UNUSED = 'u', /* given to us, but nobody listens on it */
};

struct sock {
	int sk_fd; /* owned by its table */
	enum socket_use sk_use;
	bool sk_given; /* by the service manager: no more can be bound */
	ino_t sk_ino;  /* of its file, to remove no other one; 0: none */
	dev_t sk_dev;
	/* "127.0.0.1:80", "[::]:0", "/run/pagewise.sock"; several may have one */
	char sk_name[SOCKETS_NAME];
};

struct sockets {
	struct sock *ss_list;
	size_t ss_count;
};

/* A copy; the descriptor belongs to the table from then on.  0 or -ENOMEM. */
int sockets_add(struct sockets *, const struct sock *);

/* Takes the first one of that name out; given: any that was given. */
bool sockets_take(
    struct sockets *, const char *name, bool admin, struct sock *out);
bool sockets_take_given(struct sockets *, struct sock *out);

bool sockets_has(const struct sockets *, const char *name, bool admin);

/*
 * Whether one that serves has that address and port, or part of what they stand for: a
 * wildcard has all addresses.  Not those that were given; port 0 is nobody's.
 */
bool sockets_overlap(const struct sockets *, const struct sockaddr *);

/* A stream socket that is bound to the address of its name, as it says? */
bool sockets_genuine(const struct sock *);

/* Bound, but not listening, or not any more. */
bool sockets_deaf(int fd);

/* Has one listen: 4096 may wait, or what the kernel allows.  0, or -1 and errno. */
int sockets_hear(int fd);

/*
 * Has those listen that do not.  0, or -errno and *which could not.  Of all it takes
 * SO_LINGER back, the one option that the sandbox lets a server process change:
 * accepted sockets would inherit it.
 */
int sockets_listen(const struct sockets *, const struct sock **which);

/* Whether its file, if it has one, is there and its own. */
bool sockets_file(const struct sock *);

/* Closes all; empty after that. */
void sockets_close(struct sockets *);

/* Removes the files that none of keep has, if they are still theirs. */
void sockets_remove_files(const struct sockets *, const struct sockets *keep);

/* An address as a name; the port is that of a socket or the one that was asked for. */
void sockets_name(const struct sockaddr *, char name[static SOCKETS_NAME]);

/* As text, and back; the descriptor is not in it.  Back: 0 or -EINVAL. */
#define SOCKETS_TEXT (SOCKETS_NAME + 64)
void sockets_pack(const struct sock *, char text[static SOCKETS_TEXT]);
int sockets_unpack(const char *text, struct sock *);

/* A number and the space behind it, for texts such as these; moves *text on. */
bool sockets_number(const char **text, uintmax_t *number);

#endif
