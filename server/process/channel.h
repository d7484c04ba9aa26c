/*
 * channel: what the master and a server process say to each other: messages on a
 * pair of sockets (unix(7), SOCK_SEQPACKET), some with a descriptor.  After an
 * upgrade the two may be of different versions: kinds are added, never changed.
 *
 * The receiver of a key wipes the message.
 */
#ifndef SERVER_PROCESS_CHANNEL_H
#define SERVER_PROCESS_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#define CHANNEL_TEXT 256 /* bytes with the NUL */

enum channel_kind {
	/* from the server process */
	CHANNEL_SOCKET = 1, /* text: see listen_pack; with the descriptor */
	/*
	 * Nothing of its start can fail any more, all its sockets have been
	 * sent; text: its shutdown_timeout, seconds
	 */
	CHANNEL_READY = 2,
	CHANNEL_QUIET = 3,   /* it accepts no connection any more */
	CHANNEL_ALIVE = 4,   /* all its loops have turned lately */
	CHANNEL_STUCK = 5,   /* text: which one has not */
	CHANNEL_TICKETS = 6, /* while it starts: it wants keys of tickets */
	/*
	 * text: "1": balancers are to send nobody new, "0": again as before.  The master
	 * remembers it and tells the other server processes, also those that come later.
	 */
	CHANNEL_WITHDRAW = 7,
	/* from the master */
	CHANNEL_DRAIN = 16, /* another one serves: end, take your time */
	CHANNEL_STOP = 17,  /* end within shutdown_timeout; again: at once */
	CHANNEL_SAY = 18,   /* text: a notice */
	CHANNEL_SERVE = 19, /* after CHANNEL_READY: accept from now on */
	CHANNEL_TICKET_KEY =
	    20, /* text: see ticket_key_write; the newest now */
};

struct channel_message {
	uint32_t cm_kind;
	char cm_text[CHANNEL_TEXT]; /* NUL-terminated */
};

/* Both are closed by exec.  0 or -errno. */
int channel_pair(int fds[2]);

/*
 * Sends; fd goes with it unless it is -1, and stays the caller's.  wait: false:
 * -EAGAIN if the other end does not listen.  0 or -errno.
 */
int channel_send(
    int channel, enum channel_kind, const char *text, int fd, bool wait);

/*
 * The next message, without waiting: 1, 0 for none, or -errno: -EPIPE if the other
 * end is gone.  *fd, -1 if none came, is the caller's; several are closed.
 * fd NULL: none is taken, what was sent is closed.
 */
int channel_receive(int channel, struct channel_message *, int *fd);

#endif
