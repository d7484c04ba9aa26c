/*
 * response_priv: shared by response.c, which makes the heads, and response_send.c, which sends
 * heads and bodies.  For these two files only.
 */
#ifndef SERVER_CONTENT_RESPONSE_PRIV_H
#define SERVER_CONTENT_RESPONSE_PRIV_H

#include "server/content/response.h"

/* Starts the piece that begins with rs_head. */
void response_start(struct exchange *);

#endif
