/*
 * frames: requests of HTTP/2 frame by frame (RFC 9113, 4.1), where a client does what no library of one
 * would.  Pure.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "client.h"

#define FRAMES_HEAD    9
#define FRAMES_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define FRAMES_REQUEST 512 /* bytes of frames_get at most */

enum frame_type {
	FRAME_HEADERS = 1,
	FRAME_RST_STREAM = 3,
	FRAME_SETTINGS,
	FRAME_PING = 6,
	FRAME_GOAWAY
};

/* The head of a frame: FRAMES_HEAD bytes. */
size_t frames_head(unsigned char *to, size_t len, enum frame_type,
    unsigned flags, uint32_t stream);

/* A GET without a body.  It leaves HPACK's table as it is.  The bytes. */
size_t frames_get(unsigned char *to, const struct targets *, uint32_t stream);

#endif
