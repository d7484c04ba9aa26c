/*
 * abort: the end of a connection that waits for a disk.
 */
#include "server/conn/conn_priv.h"

/* Its number may be another client's before the disk answers. */
static void
conn_abort_close_socket(struct conn *c)
{
	unacked_forget(&c->cn_worker->wk_unacked, &c->cn_unacked);
	transport_close(&c->cn_transport);
}

/* What waits for the disk stays until it answers, which may be never. */
void
conn_abort(struct conn *c)
{
	c->cn_dying = true;
	if (c->cn_ex != NULL)
		exchange_cancel(c->cn_ex);
	conn_timer(c, TIMER_NONE);
	event_del(&c->cn_event);
	/* A disk that hangs takes memory, and nobody's place. */
	limits_leave(c->cn_worker->wk_clients, c->cn_client);
	transport_cut(&c->cn_transport);
	/* No thread sends on it for a stream. */
	if (c->cn_h2 != NULL)
		conn_abort_close_socket(c);
}

/*
 * A guess whose client is gone costs a hash no more.  A client that has only closed its end may
 * still read the response.
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

/* A socket that is closed with unread input resets, and the answer with it. */
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
 * The disk may answer later, or never: what waits for it stays until then, but the
 * client need not, and its descriptor is free at once, unless a pool thread sends on it.
 * An answer that was begun can only be cut.  A disk that is only busy gets more time.
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
