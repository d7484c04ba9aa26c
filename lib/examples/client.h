/*
 * client: the code that the examples of event loops share.  Opens the files of a client's requests, and sends
 * the responses.  Each example adds an event loop; read epoll.c first.
 */
#ifndef LIB_EXAMPLES_CLIENT_H
#define LIB_EXAMPLES_CLIENT_H

#include <pagewise.h>

#include "server.h"

struct client {
	struct pw_open cl_open; /* first member, since its waiter is cast */
	struct pw_send cl_send;
	enum { CLIENT_READS, CLIENT_OPENS, CLIENT_SENDS, CLIENT_GONE } cl_state;
	int cl_sock;
	struct request cl_request;
	char cl_head[128];
	/* state of the event loop for this client */
	void *cl_own;
	int cl_watches; /* watched events; for io_uring, pending completions */
	bool cl_closed;
};

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
 * ------------------------------------------------------- functions of each event loop
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
