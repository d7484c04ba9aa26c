/*
 * conn_priv: between conn.c and conn_cut.c, for these two only.
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

#endif
