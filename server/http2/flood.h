/*
 * flood: limits the frames that a client sends without requesting a response (RFC 9113, 10.5;
 * CVE-2023-44487).  Pure.
 *
 * A client pays tokens for each frame that costs the server work and yields no response: a reset, a
 * PING, SETTINGS, an empty or padded DATA, a priority, a window update.  A reset also costs what the
 * server did for a response of which the client has accepted nothing: a token is one or two
 * microseconds of CPU time.  A client earns tokens over time and for accepted bytes.  A browser
 * that leaves a page, or zooms a map, resets a hundred streams at once; during a download a client
 * sends two window updates for each DATA frame.
 */
#ifndef SERVER_HTTP2_FLOOD_H
#define SERVER_HTTP2_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

#define H2_FLOOD_MOST	   4000 /* maximum and initial number of tokens */
#define H2_FLOOD_PER_S	   400
#define H2_FLOOD_FRAME	   1
#define H2_FLOOD_RESET	   5
#define H2_FLOOD_PENDING   10  /* the same if a disk or a thread still works */
#define H2_FLOOD_PER_BYTES 512 /* accepted bytes that earn one token */
#define H2_FLOOD_RESPONSE \
	1024 /* bytes credited per response, which pay for two window updates */

struct h2_flood {
	uint64_t fl_tokens;
	uint64_t fl_bytes; /* bytes that have not yet earned a token */
	uint64_t fl_since; /* time up to which tokens were added, us */
};

void h2_flood_begin(struct h2_flood *, uint64_t now_us);

/* Credits the bytes that the client has accepted. */
void h2_flood_earn(struct h2_flood *, uint64_t bytes);

/*
 * Charges this many tokens.  Returns false if the client has too few.  now_us may be 0 if
 * fl_tokens suffice.
 */
bool h2_flood_pay(struct h2_flood *, unsigned tokens, uint64_t now_us);

#endif
