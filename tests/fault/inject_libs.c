/*
 * inject_libs: libevent's and liburing's calls that may fail, and libevent's memory.
 */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include <execinfo.h>
#include <liburing.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdlib.h>

#include "inject_wrap.h"

struct evhttp_bound_socket;

/* libevent's allocations, wherever: one site each. */
NUMBER(event_malloc)
NUMBER(event_realloc)
extern void *__real_malloc(size_t);
extern void *__real_realloc(void *, size_t);

static void *
event_malloc(size_t size)
{
	if (inject_library(call_event_malloc) <= 0)
		return __real_malloc(size);
	errno = ENOMEM;
	return NULL;
}

static void *
event_realloc(void *mem, size_t size)
{
	if (inject_library(call_event_realloc) <= 0)
		return __real_realloc(mem, size);
	errno = ENOMEM;
	return NULL;
}

__attribute__((constructor)) static void
event_memory(void)
{
	void *stack[1];

	backtrace(stack, 1); /* loads what it needs, before anything fails */
	event_set_mem_functions(event_malloc, event_realloc, free);
}

WRAP(event_new, struct event *, NULL,
    (struct event_base * base, evutil_socket_t fd, short what,
	event_callback_fn call, void *arg),
    (base, fd, what, call, arg))
WRAP(event_base_new, struct event_base *, NULL, (void), ())
WRAP(event_base_new_with_config, struct event_base *, NULL,
    (const struct event_config *conf), (conf))
WRAP(event_base_once, int, -1,
    (struct event_base * base, evutil_socket_t fd, short what,
	event_callback_fn call, void *arg, const struct timeval *after),
    (base, fd, what, call, arg, after))
WRAP(evhttp_new, struct evhttp *, NULL, (struct event_base * base), (base))
WRAP(evhttp_bind_listener, struct evhttp_bound_socket *, NULL,
    (struct evhttp * http, struct evconnlistener *listener), (http, listener))
WRAP(evhttp_add_header, int, -1,
    (struct evkeyvalq * fields, const char *name, const char *value),
    (fields, name, value))
WRAP(evconnlistener_new, struct evconnlistener *, NULL,
    (struct event_base * base, evconnlistener_cb call, void *arg,
	unsigned flags, int backlog, evutil_socket_t fd),
    (base, call, arg, flags, backlog, fd))
WRAP(evbuffer_add_reference, int, -1,
    (struct evbuffer * to, const void *mem, size_t len,
	evbuffer_ref_cleanup_cb clean, void *arg),
    (to, mem, len, clean, arg))

WRAP(seccomp_init, scmp_filter_ctx, NULL, (uint32_t others), (others))
WRAP_CODE(seccomp_attr_set, -,
    (scmp_filter_ctx ctx, enum scmp_filter_attr attr, uint32_t value),
    (ctx, attr, value))
WRAP_CODE(seccomp_rule_add_array, -,
    (scmp_filter_ctx ctx, uint32_t action, int number, unsigned n,
	const struct scmp_arg_cmp *args),
    (ctx, action, number, n, args))
WRAP_CODE(seccomp_load, -, (const scmp_filter_ctx ctx), (ctx))
WRAP_OWN(seccomp_rule_add, int,
    (scmp_filter_ctx ctx, uint32_t action, int number, unsigned n, ...))

int
__wrap_seccomp_rule_add(
    scmp_filter_ctx ctx, uint32_t action, int number, unsigned n, ...)
{
	int effect = EFFECT(seccomp_rule_add, -1);
	struct scmp_arg_cmp args[6];
	unsigned i;
	va_list ap;

	if (effect > 0)
		return -effect;
	va_start(ap, n);
	for (i = 0; i < n; i++)
		args[i] = va_arg(ap, struct scmp_arg_cmp);
	va_end(ap);
	return __real_seccomp_rule_add_array(ctx, action, number, n, args);
}

/*
 * What an event belongs to is noted on the way.  A timer needs memory alone, which
 * is event_realloc's, and once at the start.
 */
WRAP_OWN(event_add, int, (struct event * ev, const struct timeval *after))
WRAP_OWN(event_del, int, (struct event * ev))

int
__wrap_event_add(struct event *ev, const struct timeval *after)
{
	int effect = event_get_fd(ev) == -1 ? 0 : EFFECT(event_add, -1);
	int error;

	if (effect > 0) {
		errno = effect;
		return -1;
	}
	error = __real_event_add(ev, after);
	if (error == 0)
		inject_watch(ev);
	return error;
}

int
__wrap_event_del(struct event *ev)
{
	inject_forget(ev);
	return __real_event_del(ev);
}

WRAP_CODE(io_uring_queue_init_params, -,
    (unsigned entries, struct io_uring *ring, struct io_uring_params *params),
    (entries, ring, params))
WRAP_CODE(
    io_uring_register_eventfd, -, (struct io_uring * ring, int fd), (ring, fd))
WRAP_CODE(io_uring_register_iowq_max_workers, -,
    (struct io_uring * ring, unsigned *workers), (ring, workers))

/* Whether the entry is a read whose bytes the next one sends. */
static bool
is_sent(const struct io_uring *ring, unsigned at)
{
	unsigned mask = *ring->sq.kring_mask;

	return at + 1 != ring->sq.sqe_tail &&
	       ring->sq.sqes[(at + 1) & mask].opcode == IORING_OP_SEND;
}

/*
 * What is about to be submitted for: all of it fails, or reads less.  A read that is followed by a send
 * stays: the kernel would take a shortened one for whole, and send what it did not read.
 */
static void
spoil(struct io_uring *ring, int effect)
{
	unsigned at, mask = *ring->sq.kring_mask;
	struct io_uring_sqe *sqe;

	for (at = ring->sq.sqe_head; at != ring->sq.sqe_tail; at++) {
		sqe = &ring->sq.sqes[at & mask];
		if (effect == EIO)
			sqe->fd = -1; /* EBADF is what there is */
		else if (sqe->opcode == IORING_OP_READ && !is_sent(ring, at))
			sqe->len = (unsigned)inject_count(sqe->len, effect);
	}
}

/*
 * EIO, and less, are what becomes of the reads; other errors are the submission's.
 */
WRAP_OWN(io_uring_submit, int, (struct io_uring * ring))

int
__wrap_io_uring_submit(struct io_uring *ring)
{
	int effect = EFFECT(io_uring_submit, -1);

	if (effect > 0 && effect != EIO)
		return -effect;
	if (effect != 0)
		spoil(ring, effect);
	return __real_io_uring_submit(ring);
}
