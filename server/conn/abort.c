/* abort: closes a connection while a completion is pending. */
#include "server/conn/conn_priv.h"

/*
 * Closes the socket.  First removes its descriptor from wk_unacked, because a new client may get
 * the same descriptor.
 */
static void
conn_abort_close_socket(struct conn *c)
{
	unacked_forget(&c->cn_worker->wk_unacked, &c->cn_unacked);
	transport_close(&c->cn_transport);
}

/*
 * Returns true if no other thread, nor io_uring, uses the socket, so that it can be closed before the
 * completion.
 */
static bool
conn_abort_owns_socket(struct conn *c)
{
	return c->cn_h2 != NULL ||
	       (c->cn_ex != NULL &&
		   pw_send_take_back(&c->cn_ex->ex_response.rs_send));
}

/* Leaves the memory to the pending completion, which may never arrive. */
void
conn_abort(struct conn *c)
{
	bool ours = conn_abort_owns_socket(c);

	c->cn_dying = true;
	if (c->cn_ex != NULL)
		exchange_cancel(c->cn_ex);
	conn_timer(c, TIMER_NONE);
	event_del(&c->cn_event);
	/* While a disk hangs, the connection occupies memory, but no slot. */
	limits_leave(c->cn_worker->wk_clients, c->cn_client);
	transport_cut(&c->cn_transport);
	if (ours)
		conn_abort_close_socket(c);
}

/*
 * Does no work for a client that has reset the connection.  A client that has only closed its side may still
 * read the response, so its work is done last.  Most such clients have left, which the kernel shows only when
 * the response begins, so until then the client waits for less time than others, in all waits together.
 */
bool
conn_client_stays(struct conn *c)
{
	if (transport_is_broken(&c->cn_transport))
		return false;
	if (c->cn_hup) {
		exchange_defer(c->cn_ex);
		if (response_sent(&c->cn_ex->ex_response) == 0 &&
		    c->cn_item.it_timer != TIMER_CLOSED &&
		    !exchange_verifies(c->cn_ex))
			conn_timer(c, TIMER_CLOSED);
	}
	return true;
}

/*
 * Discards pending input, because a close with unread input sends a reset, which destroys the
 * response.
 */
static void
conn_abort_forget_input(struct conn *c)
{
	char trash[BUF_SIZE];
	int n;

	for (n = 0; n < LINGER_READS; n++)
		if (transport_recv(&c->cn_transport, trash, sizeof(trash)) <= 0)
			break;
}

/*
 * Returns true if the request may wait on.  A disk timeout of a client that closed its side shows nothing about
 * the disk.
 */
static bool
conn_abort_may_wait(struct conn *c, enum timer timer)
{
	if (timer == TIMER_CLOSED)
		return false;
	if (exchange_has_patience(c->cn_ex)) {
		conn_timer(c, TIMER_DISK);
		return true;
	}
	exchange_disk_late(c->cn_ex);
	return false;
}

/*
 * Aborts the request after a disk timeout, unless the disk is only busy.  Closes the socket at once
 * to free its descriptor, unless a disk thread or io_uring may send on it.  The memory stays until
 * the completion, which may never arrive.  Sends 503 if no response has begun, not even as records
 * that the TLS session holds.
 */
void
conn_give_up(struct conn *c, enum timer timer)
{
	struct response *rs = &c->cn_ex->ex_response;
	bool ours;

	if (conn_abort_may_wait(c, timer))
		return;
	ours = pw_send_take_back(&rs->rs_send);
	if (ours && response_sent(rs) == 0 &&
	    !transport_holds(&c->cn_transport))
		exchange_503(c->cn_ex);
	if (ours)
		conn_abort_forget_input(c);
	conn_abort(c);
}
