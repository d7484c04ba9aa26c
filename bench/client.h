/*
 * client: what the load generators share: targets, connecting without waiting,
 * one answer at a time parsed as it arrives, and counting what went wrong.
 * For one thread.  Functions that get a command line's mistakes end the
 * process with a message; the others never do.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <sys/socket.h>
#include <sys/types.h>

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NSEC ((uint64_t)1000000000)

struct target {
	char *t_path;  /* as in the request line */
	char *t_range; /* as in the field "range", or NULL */
	char *t_request;
	size_t t_len;
};

/* All of one server. */
struct targets {
	struct target *ts_list;
	size_t ts_n;
	size_t ts_turn;	    /* of targets_next */
	uint64_t ts_random; /* the seed, then the state */
	struct sockaddr_storage ts_addr;
	socklen_t ts_addrlen;
	bool ts_tls;
	char ts_authority[256];
};

enum response_state { RESPONSE_HEAD, RESPONSE_BODY, RESPONSE_DONE };

struct response {
	enum response_state r_state;
	int r_status;	  /* 0 before the status line */
	bool r_close;	  /* the server will close, or has closed, after it */
	int64_t r_length; /* of the body; -1: until the server closes */
	int64_t r_got;	  /* bytes of the body so far */
	size_t r_line_len;
	char r_line[128]; /* longer lines are cut: none that matters is */
};

enum failure {
	FAILURE_NONE,
	FAILURE_AGAIN,	 /* nothing to read now; never counted */
	FAILURE_CONNECT, /* a connection, hence no request */
	FAILURE_WRITE,
	FAILURE_READ,	  /* most often a reset */
	FAILURE_CLOSED,	  /* before the answer was complete */
	FAILURE_PROTOCOL, /* no HTTP/1, chunked, or more than was promised */
	FAILURE_TIMEOUT,
	FAILURE_UNANSWERED, /* sent, and the run ended */
	FAILURE_UNSENT,	    /* its turn had come, and the run ended */
	FAILURE_VERIFY,	    /* other bytes than the file's */
	FAILURES
};

struct tally {
	uint64_t ta_failures[FAILURES];
	uint64_t ta_statuses[1000];
};

/* What one read got; ch_body is NULL if it was discarded. */
struct chunk {
	size_t ch_read; /* head included */
	const char *ch_body;
	size_t ch_len;
	int64_t ch_offset;
};

extern volatile sig_atomic_t client_stopped; /* by SIGINT or SIGTERM */

uint64_t client_now(void); /* ns, monotonic */
void client_catch_signals(void);
double client_number(const char *option, const char *, double min, double max);

/* Raises the limit of open files to n, or ends the process. */
void client_descriptors(unsigned n);

/*
 * "/path" of the server named before, or "http://host[:port][/path]", or https, as
 * client_tls.h has it.  Behind the path "#FIRST-LAST" asks for these bytes only.
 */
void targets_add(struct targets *, const char *);
/* The URL alone, or, with a file, its lines, for which the URL may be NULL. */
void targets_load(struct targets *, const char *url, const char *file);
size_t targets_pick(struct targets *); /* by chance */
size_t targets_next(struct targets *); /* in order, over and over again */
void targets_free(struct targets *);

/*
 * A descriptor that becomes writable when it is connected or has failed, or
 * -errno.  rcvbuf 0: the system's.  source 0: any, else 127.0.0.source.
 */
int client_connect(const struct targets *, int rcvbuf, unsigned source);
/*
 * The same.  An address has as many connections to a server as there are ports:
 * if the server is on loopback, *source becomes the next when they are used up.
 */
int client_connect_from(const struct targets *, int rcvbuf, unsigned *source);
/*
 * After EPOLLOUT: 0, or the errno of connecting.  Over TLS also EAGAIN: to be
 * called again after EPOLLIN.
 */
int client_connected(int fd);
/*
 * Of an event without a request: whether the connection is still there.  Over TLS
 * it may have been a ticket; else the server has closed it.
 */
bool client_kept(int fd);
/* The connection can only be kept or closed from here on. */
void client_forget(int fd);
void client_close(int fd);
enum failure client_send(int fd, const struct target *, struct response *);
/* As send(2) and recv(2), over TLS too; in place of the two others. */
ssize_t client_write(int fd, const void *, size_t);
ssize_t client_read(int fd, void *, size_t);
/* What errno says of a read that failed. */
enum failure client_failure(void);
/*
 * Reads at most max bytes once.  With discard the body is dropped in the
 * kernel without being copied.
 */
enum failure client_recv(
    int fd, struct response *, size_t max, bool discard, struct chunk *);

void response_init(struct response *);
/* Bytes that belong to the head, or -EBADMSG. */
ssize_t response_head(struct response *, const char *, size_t);

/* "errors": {...}, "statuses": {...}: only what happened. */
void tally_print(FILE *, const struct tally *);

#endif
