/*
 * response_priv: between response.c, which makes heads, and response_send.c, which
 * sends them and what follows; for these two only.
 */
#ifndef SERVER_RESPONSE_PRIV_H
#define SERVER_RESPONSE_PRIV_H

#include "response.h"

/* rs_head and what follows it are ready to be sent. */
void response_start(struct conn *);

/* Makes rs_head what stands before the range that is next, or behind the last one. */
void response_part(struct conn *);

#endif
