/*
 * client: the code that the examples share.  Reads a client's requests, opens
 * the files and sends the responses.  Each example adds an event loop; read
 * epoll.c first.
 *
 * Supports GET over HTTP/1.1, with one range.  Leaves out what a server must check of a
 * request; server/http/ has that.
 */
#ifndef LIB_EXAMPLES_CLIENT_H
#define LIB_EXAMPLES_CLIENT_H

#include <pagewise.h>

struct client {
	struct pw_open cl_open; /* first member, since its waiter is cast */
	struct pw_send cl_send;
	enum { CLIENT_READS, CLIENT_OPENS, CLIENT_SENDS, CLIENT_GONE } cl_state;
	int cl_sock;
	/* requested range of bytes; cl_to is -1 if the range has no end */
	long long cl_from, cl_to;
	size_t cl_len; /* bytes in cl_in */
	char cl_in[4096];
	char cl_head[128];
	/* state of the event loop for this client */
	void *cl_own;
	int cl_watches; /* watched events; for io_uring, pending completions */
	bool cl_closed;
};

/*
 * Creates pool, loop and root from the command line (DIRECTORY PORT).  Returns the listening socket;
 * exits if anything fails.
 */
int clients_start(int argc, char **argv);

extern struct pw_loop *clients_loop;

/*
 * Ticks the loop if that is due.  Call it after each wait for events, which lasts CLIENTS_TICK
 * milliseconds at most.
 */
#define CLIENTS_TICK 250
void clients_tick(void);

/* Accepts the next client, with a non-blocking socket.  Returns NULL if there is none. */
struct client *client_accept(int listener);

/* Serves the client.  Call it when the socket is readable or writable, or a wait has ended. */
void client_run(struct client *);

/*
 * Ends the client.  Calls loop_close at once, or when no disk thread uses the
 * client any more.
 */
void client_leave(struct client *);

/*
 * ------------------------------------------------------- what each event loop has
 * loop_watch makes the event loop call client_run when the condition `wants`
 * holds for the client.
 */
enum client_wants {
	CLIENT_WANTS_READ,  /* the socket is readable */
	CLIENT_WANTS_WRITE, /* the socket is writable */
	CLIENT_AGAIN,	    /* other clients have run */
	CLIENT_WAITS,	    /* a wait has ended; watch for a close */
};

void loop_watch(struct client *, enum client_wants);

/* Stops watching the client, closes its socket, and frees it. */
void loop_close(struct client *);

#endif
