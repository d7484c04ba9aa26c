/*
 * response_priv: declarations that response.c (makes heads) and response_send.c (sends heads and
 * bodies) share.  For these two files only.
 */
#ifndef SERVER_CONTENT_RESPONSE_PRIV_H
#define SERVER_CONTENT_RESPONSE_PRIV_H

#include "server/content/response.h"

/* Starts to send the piece at the start of rs_head. */
void response_start(struct exchange *);

#endif
