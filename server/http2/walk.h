/*
 * walk: finds the frames in the input (RFC 9113, 4.1), because libnghttp2 does not report all of
 * them.  Pure.
 */
#ifndef SERVER_HTTP2_WALK_H
#define SERVER_HTTP2_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H2_WALK_PREFACE 24 /* bytes before the first frame */
#define H2_WALK_HEAD	9
#define H2_WALK_MOST	13 /* bytes of a head with a PRIORITY's dependency */

/* Position in the input.  All zero at the start of a connection. */
struct h2_walk {
	unsigned wa_preface; /* bytes received of the preface */
	unsigned wa_have;    /* bytes received of wa_head */
	uint32_t wa_left;    /* bytes of the frame's payload still to come */
	unsigned char wa_head[H2_WALK_MOST];
};

struct h2_walk_frame {
	uint32_t wf_len;
	uint8_t wf_type;
	int32_t wf_stream;
	int32_t wf_depends; /* stream that a PRIORITY depends on, else -1 */
};

/*
 * Advances *at to the end of the next frame head, or to the end of the data.  Returns true if a
 * head is complete; *begin is then its offset in the data, or 0 if it began in earlier data.
 */
bool h2_walk(struct h2_walk *, const unsigned char *, size_t len, size_t *at,
    size_t *begin, struct h2_walk_frame *);

#endif
