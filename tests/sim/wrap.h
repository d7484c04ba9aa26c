/*
 * wrap: how a function is written that the library calls instead of libc's.  The Makefile tells ld to
 * wrap all that there are.  The simulator itself calls libc.
 */
#ifndef TESTS_SIM_WRAP_H
#define TESTS_SIM_WRAP_H

#include <errno.h>
#include <stdio.h>

#define WRAP(type, name, params)   \
	type __wrap_##name params; \
	type __wrap_##name params

/* Returns as a system call that fails. */
static inline int
failed(int error)
{
	errno = error;
	return -1;
}

#endif
