/*
 * flood: how many frames that ask for no answer a client may send.  Pure.
 *
 * A client earns tokens with time and with the bytes that it takes, and pays for each frame that
 * costs us something and brings it nothing: a reset, a PING, SETTINGS, an empty DATA, a new
 * priority, a window's update.  A browser that leaves a page resets a hundred streams at once; a
 * download brings two updates for each frame of ours.  RFC 9113, 10.5; CVE-2023-44487.
 */
#ifndef SERVER_HTTP2_FLOOD_H
#define SERVER_HTTP2_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

#define H2_FLOOD_MOST \
	4000 /* tokens that are kept, and that a client begins with */
#define H2_FLOOD_PER_S	   400
#define H2_FLOOD_FRAME	   1
#define H2_FLOOD_RESET	   20
#define H2_FLOOD_PER_BYTES 512 /* bytes that it takes bring one */
#define H2_FLOOD_RESPONSE \
	1024 /* bytes that an answer counts for beside its own: two updates */

struct h2_flood {
	uint64_t fl_tokens;
	uint64_t fl_bytes; /* that have not brought a token yet */
	uint64_t fl_since; /* microseconds */
};

void h2_flood_begin(struct h2_flood *, uint64_t now_us);

/* The client has taken these bytes. */
void h2_flood_earn(struct h2_flood *, uint64_t bytes);

/* False: it sends too much. */
bool h2_flood_pay(struct h2_flood *, unsigned tokens, uint64_t now_us);

#endif
