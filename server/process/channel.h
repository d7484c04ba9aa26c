/*
 * channel: what the master and a server process say to each other: messages on a
 * pair of sockets (unix(7), SOCK_SEQPACKET), some with a descriptor.  After an
 * upgrade the two may have different versions, so kinds are added, never changed.
 *
 * The receiver of a key wipes the message.
 */
#ifndef SERVER_PROCESS_CHANNEL_H
#define SERVER_PROCESS_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#define CHANNEL_TEXT 256 /* bytes with the NUL */

enum channel_kind {
	/* messages from the server process */
	CHANNEL_SOCKET = 1, /* text is made by listen_pack; with the socket */
	/*
	 * Its start can no longer fail, and it has sent all its sockets.  text is its
	 * shutdown_timeout in seconds.
	 */
	CHANNEL_READY = 2,
	CHANNEL_QUIET = 3,   /* accepts no more connections */
	CHANNEL_ALIVE = 4,   /* all event loops made progress recently */
	CHANNEL_STUCK = 5,   /* text names the stuck loop */
	CHANNEL_TICKETS = 6, /* while starting: requests ticket keys */
	/*
	 * Text "1" drains: balancers must send no new clients.  Text "0" ends that.  The master
	 * remembers it and forwards it to the other server processes, including later ones.
	 */
	CHANNEL_WITHDRAW = 7,
	/* messages from the master */
	CHANNEL_DRAIN = 16, /* another one serves: finish without deadline */
	CHANNEL_STOP = 17,  /* stop in shutdown_timeout; twice: at once */
	CHANNEL_SAY = 18,   /* text is a notice to log */
	CHANNEL_SERVE = 19, /* after CHANNEL_READY: start to accept */
	CHANNEL_TICKET_KEY =
	    20, /* text is made by ticket_key_write; newest key */
};

struct channel_message {
	uint32_t cm_kind;
	char cm_text[CHANNEL_TEXT]; /* NUL-terminated */
};

/* Creates a pair of sockets with close-on-exec.  Returns 0 or -errno. */
int channel_pair(int fds[2]);

/*
 * Sends a message, with a copy of fd unless it is -1; the caller keeps fd.  If wait is false,
 * returns -EAGAIN when the other end does not read.  Returns 0 or -errno.
 */
int channel_send(
    int channel, enum channel_kind, const char *text, int fd, bool wait);

/*
 * Reads the next message without blocking.  Returns 1, 0 if there is none, or -errno: -EPIPE if the
 * other end is closed.  The caller owns *fd, which is -1 if no descriptor came; several are closed.
 * If fd is NULL, closes any descriptor that was sent.
 */
int channel_receive(int channel, struct channel_message *, int *fd);

#endif
