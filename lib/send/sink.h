/*
 * sink: the destination of a transmission, a descriptor or the caller's pw_sink; for
 * lib/send/ only.  Loop's thread.
 */
#ifndef LIB_SEND_SINK_H
#define LIB_SEND_SINK_H

#include <errno.h>

#include "lib/os/os.h"
#include "lib/pagewise.h"
#include "lib/send/send_private.h"

/* Replaces -EINTR and -EBUSY of a sink by -EIO, since a path would call again after these. */
static inline int
sink_error(int error)
{
	return error == -EINTR || error == -EBUSY ? -EIO : error;
}

/* Returns true if bytes are copied: into a sink or, while the loop is bounded, into the socket. */
static inline bool
sink_copies(const struct pw_send *s)
{
	return s->snd_sink != NULL || send_priv(s)->ss_copies;
}

/* Returns true if the sink accepts ranges of the file, and reads them itself. */
static inline bool
sink_takes_ranges(const struct pw_send *s)
{
	return s->snd_sink != NULL && s->snd_sink->sk_ops->take_range != NULL;
}

/* Sends memory to the sink, or to the socket as os_send does. */
static inline int
sink_send(
    struct pw_send *s, const char *mem, size_t len, bool more, size_t *sent)
{
	struct pw_sink *sk = s->snd_sink;

	/* Never sets MSG_MORE on a bounded socket, as a segment that waits would keep the socket full. */
	if (sk == NULL)
		return os_send(s->snd_sock, mem, len,
		    more && !send_priv(s)->ss_copies, sent);
	*sent = 0;
	return sink_error(sk->sk_ops->take(sk, mem, len, more, sent));
}

/* Returns the bytes that the client has not acknowledged, or a negative number if unknown. */
static inline long
sink_unacked(const struct pw_send *s)
{
	struct pw_sink *sk = s->snd_sink;

	return sk == NULL ? os_unacked(s->snd_sock) : sk->sk_ops->unacked(sk);
}

/* Replaces path_step where sink_copies is true, except of paths that read into own memory. */
enum pw_send_status sink_step(struct pw_send *);

#endif
