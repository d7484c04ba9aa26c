/*
 * frame_buffer: finds the buffer in which libnghttp2 assembles the frames of a session, 16 of the
 * session's 20 KiB, and returns the buffer's pages to the kernel while the session is idle.  Runs
 * on the worker's thread.
 *
 * libnghttp2 allocates the buffer when it creates the session, and writes each frame from the start
 * of the buffer.  So the buffer's bytes have no meaning when no frame waits for the socket.  A
 * debug build overwrites the bytes instead, so that tests detect a libnghttp2 that still needs
 * them.  Later versions of libnghttp2 allocate only 4 KiB, which this module does not release.
 */
#ifndef SERVER_HTTP2_FRAME_BUFFER_H
#define SERVER_HTTP2_FRAME_BUFFER_H

#include <nghttp2/nghttp2.h>
#include <stddef.h>
#include <stdint.h>

struct h2_frame_buffer {
	void *fb_data;	      /* buffer, owned by libnghttp2, or NULL */
	uint64_t fb_released; /* time of the last release, us */
};

/* Returns an allocator for a session, which uses malloc(3) and sets fb_data. */
nghttp2_mem h2_frame_buffer_memory(struct h2_frame_buffer *);

/* Returns the buffer's pages to the kernel, at most once a second.  Call when no frame waits. */
void h2_frame_buffer_release(struct h2_frame_buffer *, uint64_t now_us);

#endif
