/*
 * path_aio: the paths aio and ring.  aio reads asynchronously into its own buffer, then calls
 * send(2) from that buffer (thesis 2.3.2).  The loop never waits, and all data is copied twice,
 * resident or not.  If there is no io_uring, a disk thread reads.
 *
 * ring does the same, but the ring also sends (thesis 2.3.5): a read and a send are linked, and the
 * loop only accounts for both.  The loop itself sends what needs it between the read and the send:
 * the first bytes, which follow a head, the last bytes, before which it calls file_check, and what a
 * full socket did not accept.
 */
#include <errno.h>

#include "lib/send/own.h"
#include "lib/send/path.h"
#include "lib/send/sink.h"

static void
aio_arrived(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);
	struct own *ow = send_priv(s)->ss_own;

	ow->ow_len = ow->ow_op.ao_result;
	if (w->wt_error == 0 && ow->ow_len > 0)
		w->wt_error = send_check(s, ow->ow_len);
	own_arrived(w);
}

static void
aio_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);

	aio_arrived(w);
	s->snd_done(s);
}

/* Has a disk thread read if the ring refuses, and the last chunk of a remote file, as file_check may wait for the server. */
static int
aio_read(struct pw_send *s, struct own *ow)
{
	send_priv(s)->ss_waiter.wt_done = aio_done;
	if ((!file_priv(s->snd_file)->fp_remote ||
		(off_t)own_chunk(s) < s->snd_len) &&
	    async_read(s->snd_loop, &ow->ow_op, &send_priv(s)->ss_waiter,
		s->snd_file->fil_fd, ow->ow_data, own_chunk(s),
		s->snd_off) == 0)
		return 0;
	return own_read_by_pool(s, ow);
}

/* Accounts for the bytes that the ring sent.  A full socket is no error: the loop sends the rest. */
static void
aio_ring_done(struct pw_waiter *w)
{
	struct pw_send *s = send_of_waiter(w);
	const struct own *ow = send_priv(s)->ss_own;
	int sent = ow->ow_op.ao_sent;

	aio_arrived(w);
	send_priv(s)->ss_lent = LENT_NOT;
	if (sent > 0)
		account_sent(s, 0, (uint64_t)sent);
	else if (sent < 0 && sent != -ECANCELED)
		account_sent(s, sent, 0);
	s->snd_done(s);
}

/* Lets the ring send the chunk to the socket if no head is left, and bytes follow the chunk. */
static int
aio_relay(struct pw_send *s, struct own *ow)
{
	const struct async_relay relay = {s->snd_file->fil_fd, s->snd_off,
	    ow->ow_data, own_chunk(s), s->snd_sock};

	if (sink_copies(s) || s->snd_mem_len > 0 ||
	    (off_t)relay.ar_len >= s->snd_len)
		return aio_read(s, ow);
	send_priv(s)->ss_waiter.wt_done = aio_ring_done;
	send_priv(s)->ss_lent = LENT_CLAIMED;
	if (async_read_send(
		s->snd_loop, &ow->ow_op, &send_priv(s)->ss_waiter, &relay) == 0)
		return 0;
	send_priv(s)->ss_lent = LENT_NOT;
	return aio_read(s, ow);
}

static enum pw_send_status
aio_step(struct pw_send *s)
{
	return own_step(s, aio_read);
}

static enum pw_send_status
aio_ring_step(struct pw_send *s)
{
	return own_step(s, aio_relay);
}

const struct pw_send_path send_aio = {
    .path_name = "aio",
    .path_step = aio_step,
    .path_reads = true,
};

const struct pw_send_path send_ring = {
    .path_name = "ring",
    .path_probe = async_probe,
    .path_step = aio_ring_step,
    .path_reads = true,
};
