/*
 * inject_wrap: what a wrapper is made of.  ld is told to wrap all that there are.
 */
#ifndef TESTS_FAULT_INJECT_WRAP_H
#define TESTS_FAULT_INJECT_WRAP_H

#include <errno.h>
#include <stddef.h>

#include "inject.h"

/* The product keeps its frame pointers: the caller's caller can be told. */
#pragma GCC diagnostic ignored "-Wframe-address"

/* Numbers a call before main begins. */
#define NUMBER(name)                                                 \
	static unsigned call_##name __attribute__((unused));         \
	__attribute__((constructor)) static void number_##name(void) \
	{                                                            \
		call_##name = inject_call(#name);                    \
	}

/* One whose wrapper is written by hand. */
#define WRAP_OWN(name, type, params)      \
	NUMBER(name)                      \
	extern type __real_##name params; \
	type __wrap_##name params;

#define EFFECT(name, fd)                                 \
	inject(call_##name, __builtin_return_address(0), \
	    __builtin_return_address(1), fd)

/* One that says failed, and why in errno. */
#define WRAP(name, type, failed, params, args)     \
	WRAP_OWN(name, type, params)               \
	type __wrap_##name params                  \
	{                                          \
		int effect = EFFECT(name, -1);     \
                                                   \
		if (effect <= 0)                   \
			return __real_##name args; \
		errno = effect;                    \
		return failed;                     \
	}

/* One that returns the error itself, times sign. */
#define WRAP_CODE(name, sign, params, args)                           \
	WRAP_OWN(name, int, params)                                   \
	int __wrap_##name params                                      \
	{                                                             \
		int effect = EFFECT(name, -1);                        \
                                                                      \
		return effect > 0 ? sign effect : __real_##name args; \
	}

/* One that takes or gives up to len bytes, of a descriptor that may be a socket. */
#define WRAP_COUNT(name, fd, params, args)               \
	WRAP_OWN(name, ssize_t, params)                  \
	ssize_t __wrap_##name params                     \
	{                                                \
		int effect = EFFECT(name, fd);           \
                                                         \
		if (effect > 0)                          \
			errno = effect;                  \
		if (effect > 0 || effect == INJECT_NONE) \
			return effect > 0 ? -1 : 0;      \
		len = inject_count(len, effect);         \
		return __real_##name args;               \
	}

/* The same for what may be a pipe or an eventfd too: they are only interrupted. */
#define WRAP_FILE(name, params, args)                                      \
	WRAP_OWN(name, ssize_t, params)                                    \
	ssize_t __wrap_##name params                                       \
	{                                                                  \
		int effect = EFFECT(name, -1);                             \
                                                                           \
		if (effect != EINTR && effect != 0 && !inject_is_file(fd)) \
			effect = 0;                                        \
		if (effect > 0) {                                          \
			errno = effect;                                    \
			return -1;                                         \
		}                                                          \
		len = inject_count(len, effect);                           \
		return __real_##name args;                                 \
	}

static inline size_t
inject_count(size_t len, int effect)
{
	if (effect == 0 || len < 2)
		return len;
	return effect == INJECT_ONE ? 1 : len / 2;
}

#endif
