/*
 * walk: from frame to frame through what is received (RFC 9113, 4.1), beside libnghttp2, which passes
 * over some of them without a word.  Pure.
 */
#ifndef SERVER_HTTP2_WALK_H
#define SERVER_HTTP2_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H2_WALK_PREFACE 24 /* bytes before the first frame */
#define H2_WALK_HEAD	9
#define H2_WALK_MOST	13 /* and the stream that a PRIORITY depends on */

/* All zero: at the begin of a connection. */
struct h2_walk {
	unsigned wa_preface; /* bytes of it that have come */
	unsigned wa_have;    /* of wa_head */
	uint32_t wa_left;    /* bytes of the frame's payload still to come */
	unsigned char wa_head[H2_WALK_MOST];
};

struct h2_walk_frame {
	uint32_t wf_len;
	uint8_t wf_type;
	int32_t wf_stream;
	int32_t wf_depends; /* PRIORITY: the stream that it names; else -1 */
};

/*
 * Goes on from *at to the end of the next frame's head, or of what there is.  True: there is one, and
 * *begin is where it begins here; 0 if that was before.
 */
bool h2_walk(struct h2_walk *, const unsigned char *, size_t len, size_t *at,
    size_t *begin, struct h2_walk_frame *);

#endif
