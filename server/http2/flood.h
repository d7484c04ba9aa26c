/*
 * flood: limits the frames that a client sends without requesting a response.  Pure.
 *
 * A client earns tokens with time and with the bytes that it accepts, and pays for each frame that
 * costs the server something and yields no response: a reset, a PING, SETTINGS, an empty DATA, a
 * new priority, a window update.  A browser that leaves a page resets a hundred streams at once; a
 * download brings two updates for each frame of DATA.  RFC 9113, 10.5; CVE-2023-44487.
 */
#ifndef SERVER_HTTP2_FLOOD_H
#define SERVER_HTTP2_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

#define H2_FLOOD_MOST \
	4000 /* maximum of tokens, and initial tokens of a client */
#define H2_FLOOD_PER_S	   400
#define H2_FLOOD_FRAME	   1
#define H2_FLOOD_RESET	   20
#define H2_FLOOD_PER_BYTES 512 /* bytes accepted that earn one token */
#define H2_FLOOD_RESPONSE \
	1024 /* bytes credited per response for two window updates */

struct h2_flood {
	uint64_t fl_tokens;
	uint64_t fl_bytes; /* bytes that have not earned a token yet */
	uint64_t fl_since; /* end of the credited time, microseconds */
};

void h2_flood_begin(struct h2_flood *, uint64_t now_us);

/* Credits the bytes that the client has accepted. */
void h2_flood_earn(struct h2_flood *, uint64_t bytes);

/* Charges the tokens.  Returns false if the client sends too many frames. */
bool h2_flood_pay(struct h2_flood *, unsigned tokens, uint64_t now_us);

#endif
