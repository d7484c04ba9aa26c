/*
 * frame_buffer: see frame_buffer.h.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/os/os.h"

#include "server/http2/frame_buffer.h"

/* Size of the buffer, bytes: a frame of the initial maximum size (RFC 9113, 4.2), its head, padding. */
#define SIZE  ((size_t)16384 + 9 + 1)
#define EVERY 1000000 /* minimum time between releases, us */

static void *
h2_frame_buffer_realloc(void *old, size_t size, void *arg)
{
	struct h2_frame_buffer *fb = arg;
	bool ours = old == NULL ? fb->fb_data == NULL && size == SIZE
				: old == fb->fb_data;
	void *mem;

	if (ours)
		fb->fb_data = NULL;
	mem = realloc(old, size);
	if (ours && size == SIZE)
		fb->fb_data = mem;
	return mem;
}

static void *
h2_frame_buffer_malloc(size_t size, void *arg)
{
	return h2_frame_buffer_realloc(NULL, size, arg);
}

static void *
h2_frame_buffer_calloc(size_t n, size_t size, void *arg)
{
	(void)arg;
	return calloc(n, size);
}

static void
h2_frame_buffer_free(void *mem, void *arg)
{
	struct h2_frame_buffer *fb = arg;

	if (mem == fb->fb_data)
		fb->fb_data = NULL;
	free(mem);
}

nghttp2_mem
h2_frame_buffer_memory(struct h2_frame_buffer *fb)
{
	return (nghttp2_mem){fb, h2_frame_buffer_malloc, h2_frame_buffer_free,
	    h2_frame_buffer_calloc, h2_frame_buffer_realloc};
}

void
h2_frame_buffer_release(struct h2_frame_buffer *fb, uint64_t now_us)
{
	if (fb->fb_data == NULL || now_us - fb->fb_released < EVERY)
		return;
	fb->fb_released = now_us;
#ifdef PW_DEBUG
	memset(fb->fb_data, 0xa5, SIZE);
#else
	(void)os_release(fb->fb_data, SIZE);
#endif
}
