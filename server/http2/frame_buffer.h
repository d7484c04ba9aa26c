/*
 * frame_buffer: finds the buffer in which libnghttp2 assembles the frames of a session, 16 of its 20
 * KiB, and returns the buffer's pages to the kernel while the session is idle.  Runs on the worker's
 * thread.
 *
 * libnghttp2 allocates the buffer when it creates the session, and begins each frame at its start.
 * So its bytes have no meaning when no frame waits for the socket.  A debug build overwrites them,
 * so that tests notice a libnghttp2 that needs them.  Later versions allocate 4 KiB, which
 * stay.
 */
#ifndef SERVER_HTTP2_FRAME_BUFFER_H
#define SERVER_HTTP2_FRAME_BUFFER_H

#include <nghttp2/nghttp2.h>
#include <stddef.h>
#include <stdint.h>

struct h2_frame_buffer {
	void *fb_data;	      /* the buffer, or NULL */
	uint64_t fb_released; /* time of the last release, us */
};

/* Returns an allocator for a session, which uses malloc(3) and notes the buffer. */
nghttp2_mem h2_frame_buffer_memory(struct h2_frame_buffer *);

/* Returns the pages to the kernel, at most once a second.  Call when no frame waits. */
void h2_frame_buffer_release(struct h2_frame_buffer *, uint64_t now_us);

#endif
