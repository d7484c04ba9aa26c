/*
 * inject_http2: libnghttp2's calls that may fail, and its memory.
 */
#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "inject_wrap.h"

/* libnghttp2's allocations; its callers are told apart by the stack. */
NUMBER(nghttp2_malloc)
NUMBER(nghttp2_calloc)
extern void *__real_malloc(size_t);
extern void *__real_calloc(size_t, size_t);
extern void *__real_realloc(void *, size_t);

static bool
is_refused(unsigned call)
{
	if (inject_deep(call) <= 0)
		return false;
	errno = ENOMEM;
	return true;
}

static void *
http2_malloc(size_t size, void *arg)
{
	(void)arg;
	return is_refused(call_nghttp2_malloc) ? NULL : __real_malloc(size);
}

static void *
http2_calloc(size_t n, size_t size, void *arg)
{
	(void)arg;
	return is_refused(call_nghttp2_calloc) ? NULL : __real_calloc(n, size);
}

/*
 * It does not fail: it is for the queue of streams that have DATA, and what could not enter that is
 * freed twice by libnghttp2 1.52, at the end of the session once more.
 */
static void *
http2_realloc(void *mem, size_t size, void *arg)
{
	(void)arg;
	return __real_realloc(mem, size);
}

static void
http2_free(void *mem, void *arg)
{
	(void)arg;
	free(mem);
}

static nghttp2_mem memory = {.malloc = http2_malloc,
    .calloc = http2_calloc,
    .realloc = http2_realloc,
    .free = http2_free};

/* Replaces the server's allocator, whose realloc may fail here. */
WRAP_OWN(nghttp2_session_server_new3, int,
    (nghttp2_session * *session, const nghttp2_session_callbacks *cb, void *arg,
	const nghttp2_option *op, nghttp2_mem *mem))

int
__wrap_nghttp2_session_server_new3(nghttp2_session **session,
    const nghttp2_session_callbacks *cb, void *arg, const nghttp2_option *op,
    nghttp2_mem *mem)
{
	(void)mem;
	if (EFFECT(nghttp2_session_server_new3, -1) > 0)
		return NGHTTP2_ERR_NOMEM;
	return __real_nghttp2_session_server_new3(
	    session, cb, arg, op, &memory);
}

/* Of these two the memory is malloc's. */
WRAP(nghttp2_session_callbacks_new, int, NGHTTP2_ERR_NOMEM,
    (nghttp2_session_callbacks * *cb), (cb))
WRAP(nghttp2_option_new, int, NGHTTP2_ERR_NOMEM, (nghttp2_option * *op), (op))

/* For that queue. */
WRAP(nghttp2_session_resume_data, int, NGHTTP2_ERR_NOMEM,
    (nghttp2_session * session, int32_t id), (session, id))
