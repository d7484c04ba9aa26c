/*
 * listen_table: the listening sockets that outlive a server process.  The master keeps the table,
 * and each new server process gets the sockets of the earlier process from it.  So no connection in
 * a backlog is lost.
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
	SOCKET_UNUSED = 'u', /* inherited, but not in the configuration */
};

struct sock {
	int sk_fd; /* owned by the table */
	enum socket_use sk_use;
	/* true if the service manager opened the socket; all workers share it */
	bool sk_given;
	bool sk_proxy; /* copy of la_proxy; listen_pack omits it */
	bool sk_tls;   /* copy of la_tls; listen_pack omits it */
	/* inode of the socket file, or 0; a file with another inode is not removed */
	ino_t sk_ino;
	dev_t sk_dev; /* device of that file */
	/*
	 * Address, such as "127.0.0.1:80", "[::]:0", "/run/pagewise.sock" or "@abstract".  Several
	 * sockets may have the same name.
	 */
	char sk_name[LISTEN_NAME];
};

struct listen_table {
	struct sock *ss_list;
	size_t ss_count;
};

/*
 * Adds a copy of the struct to the table.  The table takes ownership of the descriptor.  Returns 0
 * or -ENOMEM.
 */
int listen_add(struct listen_table *, const struct sock *);

/*
 * listen_take moves the first socket with this name and use to *out, and listen_take_given the
 * first socket that the service manager opened.  Both return false if there is none.
 */
bool listen_take(
    struct listen_table *, const char *name, enum socket_use, struct sock *out);
bool listen_take_given(struct listen_table *, struct sock *out);

bool listen_has(const struct listen_table *, const char *name, enum socket_use);

/*
 * Returns true if a serving socket in the table has this address and port, or overlaps it: a
 * wildcard overlaps all addresses.  Ignores Unix sockets and sockets of the service manager.
 * Returns false for port 0.
 */
bool listen_overlap(const struct listen_table *, const struct sockaddr *);

/* Returns true if the socket is a stream socket that is bound to the address in its name. */
bool listen_genuine(const struct sock *);

/* Returns true if the socket is not listening. */
bool listen_deaf(int fd);

/*
 * Makes a socket listen, with a backlog of 4096 or the kernel's limit.  Returns 0, or -1 with errno
 * set.
 */
int listen_hear(int fd);

/*
 * Makes each socket listen that does not listen yet.  Returns 0; on failure returns -errno and
 * stores the socket in *which.  Also resets SO_LINGER and TCP_NOTSENT_LOWAT of all sockets:
 * accepted sockets inherit these options, and the sandbox lets a server process change them.
 * Sockets of loopback addresses stop pacing (os_unpace): on the loopback pacing costs a timer for
 * almost every segment, and prevents no loss.
 */
int listen_listen(const struct listen_table *, const struct sock **which);

/* Returns true if the socket has no file, or if its file exists and still has this inode. */
bool listen_file(const struct sock *);

void listen_close(struct listen_table *);

/*
 * Removes the socket files of the first table.  Keeps files of sockets in `keep`, and files that
 * another program has replaced.
 */
void listen_remove_files(
    const struct listen_table *, const struct listen_table *keep);

/* Writes the name of an address: see sk_name. */
void listen_name(const struct sockaddr *, char name[static LISTEN_NAME]);

/*
 * listen_pack converts a socket without its descriptor to text.  listen_unpack converts the text
 * back, and returns 0 or -EINVAL.
 */
#define LISTEN_TEXT (LISTEN_NAME + 64)
void listen_pack(const struct sock *, char text[static LISTEN_TEXT]);
int listen_unpack(const char *text, struct sock *);

/*
 * Parses a number and the space after the number, and advances *text.  Returns false if *text does
 * not start with both.
 */
bool listen_number(const char **text, uintmax_t *number);

#endif
