/*
 * channel: the messages between the master and a server process, on a pair of sockets (unix(7),
 * SOCK_SEQPACKET).  Some messages carry a descriptor.  After an upgrade the two processes may have
 * different versions, so new kinds may be added, but none may change.
 *
 * The receiver must wipe a message that contains a key.
 */
#ifndef SERVER_PROCESS_CHANNEL_H
#define SERVER_PROCESS_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#define CHANNEL_TEXT 256 /* bytes of a text, with the NUL */

enum channel_kind {
	/* messages from the server process */
	/* passes a socket; the text is made by listen_pack */
	CHANNEL_SOCKET = 1,
	/*
	 * The start can no longer fail, and all sockets were sent.  The text is the process's
	 * shutdown_timeout in seconds.
	 */
	CHANNEL_READY = 2,
	CHANNEL_QUIET = 3, /* the process accepts no more connections */
	/* all event loops made progress within half of WatchdogSec */
	CHANNEL_ALIVE = 4,
	CHANNEL_STUCK = 5,   /* a loop is stuck; the text names its worker */
	CHANNEL_TICKETS = 6, /* requests ticket keys, during the start */
	/*
	 * Text "1" begins a drain: balancers must send no new clients.  Text "0" cancels the
	 * drain.  The master remembers the text and forwards it to the serving process and to later
	 * processes.
	 */
	CHANNEL_WITHDRAW = 7,
	/* messages from the master */
	/* another process serves: finish, without a deadline */
	CHANNEL_DRAIN = 16,
	/* stop within shutdown_timeout; at once if sent twice */
	CHANNEL_STOP = 17,
	CHANNEL_SAY = 18,   /* the text is a notice to log */
	CHANNEL_SERVE = 19, /* start to accept connections */
	/* the text is the newest key, made by ticket_key_write */
	CHANNEL_TICKET_KEY = 20,
};

struct channel_message {
	uint32_t cm_kind;
	char cm_text[CHANNEL_TEXT]; /* NUL-terminated */
};

/* Creates a pair of sockets with close-on-exec.  Returns 0 or -errno. */
int channel_pair(int fds[2]);

/*
 * Sends a message, with a copy of fd unless fd is -1; the caller keeps fd.  Waits until the message
 * fits, or, if `wait` is false, returns -EAGAIN.  Returns 0 or -errno.
 */
int channel_send(
    int channel, enum channel_kind, const char *text, int fd, bool wait);

/*
 * Reads the next message without blocking.  Returns 1, 0 if there is none, -EPIPE if the other end
 * is closed, or another -errno.  Stores the message's descriptor in *fd, which the caller then
 * owns.  Stores -1 if the message carries no descriptor, or several, which are closed.  If fd is
 * NULL, the kernel discards any descriptor.
 */
int channel_receive(int channel, struct channel_message *, int *fd);

#endif
