/*
 * client: what the examples have in common: a client's requests, its file and its answer.
 * What an event loop has to do for it is in each of them: epoll.c is the one to read first.
 *
 * GET over HTTP/1.1, with one range.  What a server must check of a request is left out:
 * server/http/ has it.
 */
#ifndef LIB_EXAMPLES_CLIENT_H
#define LIB_EXAMPLES_CLIENT_H

#include <pagewise.h>

struct client {
	struct pw_open cl_open; /* first: its wait leads to the client */
	struct pw_send cl_send;
	enum { CLIENT_READS, CLIENT_OPENS, CLIENT_SENDS, CLIENT_GONE } cl_state;
	int cl_sock;
	long long cl_from, cl_to; /* the range; cl_to: -1 if it has no end */
	size_t cl_len;		  /* of cl_in */
	char cl_in[4096];
	char cl_head[128];
	/* the event loop's */
	void *cl_own;
	int cl_watches; /* which events; of a ring, how many completions */
	bool cl_closed;
};

/* The directory and the port of the command line.  The listening socket; or the program ends. */
int clients_start(int argc, char **argv);

extern struct pw_loop *clients_loop;

/* After each wait for events, which lasts CLIENTS_TICK milliseconds at most. */
#define CLIENTS_TICK 250
void clients_tick(void);

/* Accepts the next one, non-blocking.  NULL: there is none. */
struct client *client_accept(int listener);

/* Its socket can be read or written, or a wait is over. */
void client_run(struct client *);

/* It has left, or is to: ends with loop_close, now or when no thread uses it any more. */
void client_leave(struct client *);

/*
 * ------------------------------------------------------- what each event loop has
 * loop_watch says what client_run is to be called for next.
 */
enum client_wants {
	CLIENT_WANTS_READ,  /* the socket is readable */
	CLIENT_WANTS_WRITE, /* the socket is writable */
	CLIENT_AGAIN,	    /* others have had their turn */
	CLIENT_WAITS, /* nothing, but its leaving: the library will tell */
};

void loop_watch(struct client *, enum client_wants);

/* Ends what watches it, closes the socket, frees it. */
void loop_close(struct client *);

#endif
