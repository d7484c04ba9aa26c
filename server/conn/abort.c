/*
 * abort: closes a connection while a completion of a disk or of another thread is pending for it.
 */
#include "server/conn/conn_priv.h"

/*
 * Closes the socket and forgets its descriptor, which another client may get before the completion
 * arrives.
 */
static void
conn_abort_close_socket(struct conn *c)
{
	unacked_forget(&c->cn_worker->wk_unacked, &c->cn_unacked);
	transport_close(&c->cn_transport);
}

/* Keeps the memory of the wait until the completion, which may never arrive. */
void
conn_abort(struct conn *c)
{
	c->cn_dying = true;
	if (c->cn_ex != NULL)
		exchange_cancel(c->cn_ex);
	conn_timer(c, TIMER_NONE);
	event_del(&c->cn_event);
	/* A disk that hangs occupies memory, but no slot. */
	limits_leave(c->cn_worker->wk_clients, c->cn_client);
	transport_cut(&c->cn_transport);
	/* No disk thread sends on the socket for an HTTP/2 stream. */
	if (c->cn_h2 != NULL)
		conn_abort_close_socket(c);
}

/*
 * Avoids hashing a password whose client has reset the connection.  A client that has only closed
 * its end may still read the response; its password is verified last.
 */
bool
conn_client_stays(struct conn *c)
{
	if (transport_is_broken(&c->cn_transport))
		return false;
	if (c->cn_hup)
		verifier_put_last(
		    c->cn_ex->ex_service->svc_verifier, &c->cn_ex->ex_verify);
	return true;
}

/* Discards pending input: a close with unread input sends a reset, which destroys the response. */
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
 * Closes the client's socket at once, so that its descriptor is free, unless a disk thread sends on
 * it.  The memory of the wait stays until the completion, which may never arrive.  A response that
 * has begun can only be aborted.  A disk that is only busy gets more time.
 */
void
conn_give_up(struct conn *c)
{
	struct response *rs = &c->cn_ex->ex_response;
	bool ours;

	if (exchange_has_patience(c->cn_ex)) {
		conn_timer(c, TIMER_DISK);
		return;
	}
	exchange_disk_late(c->cn_ex);
	ours = pw_send_take_back(&rs->rs_send);
	if (ours && response_sent(rs) == 0)
		exchange_503(c->cn_ex);
	if (ours)
		conn_abort_forget_input(c);
	conn_abort(c);
	if (ours)
		conn_abort_close_socket(c);
}
