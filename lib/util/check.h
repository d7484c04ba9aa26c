/*
 * check: rules that a builder of the library relies on, looked at in builds with PW_DEBUG
 * (those with sanitizers and the debug one), and nothing at all in others.
 */
#ifndef LIB_UTIL_CHECK_H
#define LIB_UTIL_CHECK_H

#ifdef PW_DEBUG
#include <stdio.h>
#include <stdlib.h>

#define PW_CHECK(rule)                                                         \
	do {                                                                   \
		if (!(rule)) {                                                 \
			fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, \
			    __LINE__, #rule);                                  \
			abort();                                               \
		}                                                              \
	} while (0)
#else
#define PW_CHECK(rule) ((void)0)
#endif

#endif
