/*
 * response_priv: declarations that response.c (makes heads) and response_send.c (sends heads and
 * bodies) share.  For these two files only.
 */
#ifndef SERVER_CONTENT_RESPONSE_PRIV_H
#define SERVER_CONTENT_RESPONSE_PRIV_H

#include "server/content/response.h"

/*
 * Starts to send the current piece: the bytes of rs_head, then the range of the file that belongs
 * to the piece.  Omits the head of the response if ex_head_apart is set.
 */
void response_start(struct exchange *);

#endif
