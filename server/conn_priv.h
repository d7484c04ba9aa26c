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

/* Its socket has room, and it waits for its turn: the timer stops. */
void conn_pace_room(struct conn *);

/* TIMER_SEND is over.  False: it is to be closed; true: it has taken something meanwhile. */
bool conn_pace_late(struct conn *);

/* An answer has ended.  How long the client may do nothing: TIMER_REST or TIMER_IDLE. */
enum timer conn_pace_ended(struct conn *);

/* What the kernel has of the last answer. */
enum rest {
	REST_NONE, /* nothing to speak of */
	REST_SOME, /* and the client takes it fast enough */
	REST_LOST, /* it does not, and is to be closed */
};

/* One of the timers REST, IDLE and LINGER is over. */
enum rest conn_pace_rest(struct conn *);

/* The close will be a reset: the kernel forgets what it has for the client. */
void conn_pace_forget(struct conn *);

#endif
