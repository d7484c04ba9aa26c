/*
 * server: the code that all examples share.  Starts the server, reads requests, and makes the heads of
 * responses.
 *
 * Supports GET over HTTP/1.1, with one range.  Leaves out the checks that a server must make of a
 * request; server/http/ has them.
 */
#ifndef LIB_EXAMPLES_SERVER_H
#define LIB_EXAMPLES_SERVER_H

#include <pagewise.h>

/*
 * Creates pool, loop and root from the command line (DIRECTORY PORT).  Returns the listening socket;
 * exits if anything fails.
 */
int clients_start(int argc, char **argv);

extern struct pw_loop *clients_loop;
extern struct pw_root *clients_root;

/*
 * Ticks the loop, at most once per CLIENTS_TICK milliseconds.  Call clients_tick after each wait for
 * events, which lasts CLIENTS_TICK milliseconds at most.
 */
#define CLIENTS_TICK 250
void clients_tick(void);

/* Accepts the next client.  Returns a non-blocking socket, or -1 if there is none. */
int clients_accept(int listener);

struct request {
	size_t rq_len; /* bytes in rq_in */
	char rq_in[4096];
	char rq_name[1024]; /* path of the file, below the root */
	/* requested range of bytes; rq_to is -1 if the range has no end */
	long long rq_from, rq_to;
	off_t rq_off, rq_end; /* bytes of the file to send */
};

/* Reads from the socket into rq_in.  Returns as recv(2). */
ssize_t clients_read(struct request *, int sock);

/* Parses the first request in rq_in.  Returns false if its head is not complete. */
bool clients_parse(struct request *);

/* Chooses the bytes to send, and writes the head of the response.  Returns its length. */
size_t clients_head(
    struct request *, const struct pw_file *, int error, char head[128]);

#endif
