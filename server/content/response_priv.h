/*
 * response_priv: between response.c, which makes heads, and response_send.c, which
 * sends them and what follows; for these two only.
 */
#ifndef SERVER_CONTENT_RESPONSE_PRIV_H
#define SERVER_CONTENT_RESPONSE_PRIV_H

#include "server/content/response.h"

/* Starts to send rs_head and what follows it. */
void response_start(struct exchange *);

#endif
