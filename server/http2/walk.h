/*
 * walk: finds each frame in the input (RFC 9113, 4.1).  libnghttp2 reports only some frames.  Pure.
 */
#ifndef SERVER_HTTP2_WALK_H
#define SERVER_HTTP2_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H2_WALK_PREFACE 24 /* bytes before the first frame */
#define H2_WALK_HEAD	9
#define H2_WALK_MOST	13 /* bytes of a PRIORITY's head and its dependency */

/* Position in the input.  All zero at the start of a connection. */
struct h2_walk {
	unsigned wa_preface; /* received bytes of the preface */
	unsigned wa_have;    /* received bytes of wa_head */
	uint32_t wa_left;    /* remaining bytes of the frame's payload */
	unsigned char wa_head[H2_WALK_MOST];
};

struct h2_walk_frame {
	uint32_t wf_len;
	uint8_t wf_type;
	uint8_t wf_flags;
	int32_t wf_stream;
	int32_t wf_depends; /* stream that a PRIORITY depends on, else -1 */
};

/*
 * Advances *at behind the next frame head, or to the end of the data.  Returns true if the head is
 * complete.  *begin is then the offset of the head in the data, or 0 if the head started in earlier
 * data.
 */
bool h2_walk(struct h2_walk *, const unsigned char *, size_t len, size_t *at,
    size_t *begin, struct h2_walk_frame *);

#endif
