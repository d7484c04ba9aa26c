/*
 * conn_priv: between conn.c and the other conn_*.c, for these only.
 */
#ifndef SERVER_CONN_PRIV_H
#define SERVER_CONN_PRIV_H

#include "conn.h"

#define LINGER_READS 8 /* of a buffer's size, in one turn */

/*
 * What waits for a disk is told to nobody any more, but its memory stays until the
 * completion has come, which then frees it.
 */
void conn_cut(struct conn *);

/* The disk has not answered in time: the client is told, unless there is more patience. */
void conn_give_up(struct conn *);

/*
 * The socket is full, and the client has to take something: TIMER_SEND runs.  False: it has
 * taken less than min_send_rate for a send_timeout of such time, and is to be closed.
 */
bool conn_pace_full(struct conn *);

/* Something other than the client is waited for. */
void conn_pace_stop(struct conn *);

/* TIMER_SEND is over.  False: it is to be closed; true: it has taken something meanwhile. */
bool conn_pace_late(struct conn *);

/*
 * TIMER_IDLE or TIMER_LINGER is over.  True: the kernel still has some of the last answer,
 * and the client takes it fast enough; false: it is to be closed.
 */
bool conn_pace_rest(struct conn *, enum timer);

#endif
