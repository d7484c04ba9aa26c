/*
 * channel: messages between the master and a server process, on a pair of sockets (unix(7),
 * SOCK_SEQPACKET).  A message may carry a descriptor.  After an upgrade the two processes may have
 * different versions, so versions may add kinds, but must not change a kind.
 *
 * The receiver must wipe a message that contains a key.
 */
#ifndef SERVER_PROCESS_CHANNEL_H
#define SERVER_PROCESS_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#define CHANNEL_TEXT 256 /* maximum bytes of a text, with the NUL */

enum channel_kind {
	/* messages from the server process */
	/* carries a socket; listen_pack makes the text */
	CHANNEL_SOCKET = 1,
	/*
	 * The start can no longer fail, and the process has sent all sockets.  The text is the
	 * shutdown_timeout of the process, in seconds.
	 */
	CHANNEL_READY = 2,
	CHANNEL_QUIET = 3, /* the process accepts no more connections */
	/* all event loops have made progress within half of WatchdogSec */
	CHANNEL_ALIVE = 4,
	CHANNEL_STUCK = 5,   /* a loop is stuck; the text names the worker */
	CHANNEL_TICKETS = 6, /* requests ticket keys, during the start */
	/*
	 * Text "1" starts a drain: balancers must send no new clients.  Text "0" cancels the drain.
	 * The master stores the text, and forwards it to the serving process and to later
	 * processes.
	 */
	CHANNEL_WITHDRAW = 7,
	/* messages from the master */
	/* drain within drain_timeout, because another process serves */
	CHANNEL_DRAIN = 16,
	/* shut down within shutdown_timeout; at once if sent twice */
	CHANNEL_STOP = 17,
	CHANNEL_SAY = 18,   /* the text is a notice to log */
	CHANNEL_SERVE = 19, /* start to accept connections */
	/* the text is the newest key, written by ticket_key_write */
	CHANNEL_TICKET_KEY = 20,
};

struct channel_message {
	uint32_t cm_kind;
	char cm_text[CHANNEL_TEXT]; /* NUL-terminated */
};

/* Creates a pair of connected sockets with close-on-exec.  Returns 0 or -errno. */
int channel_pair(int fds[2]);

/*
 * Sends a message, with a copy of fd unless fd is -1.  The caller keeps fd.  Waits for space, or
 * returns -EAGAIN if `wait` is false.  Returns 0 or -errno.
 */
int channel_send(
    int channel, enum channel_kind, const char *text, int fd, bool wait);

/*
 * Reads the next message without blocking.  Returns 1, 0 if there is no message, -EPIPE if the
 * other process has closed the channel, or another -errno.  Stores the descriptor of the message in
 * *fd; the caller then owns it.  Stores -1 if the message has no descriptor, or several.  If fd is
 * NULL, the kernel discards all descriptors.
 */
int channel_receive(int channel, struct channel_message *, int *fd);

#endif
