/*
 * check: two kinds of rules.  PW_CHECK's are the library's own, looked at in builds with
 * PW_DEBUG (those with sanitizers and the debug one), and nothing at all in others.
 * PW_MUST's are those of its callers where to go on would ruin memory: in every build.
 */
#ifndef LIB_UTIL_CHECK_H
#define LIB_UTIL_CHECK_H

#define PW_MUST(rule, sentence)                           \
	do {                                              \
		if (__builtin_expect(!(rule), 0))         \
			check_failed(__func__, sentence); \
	} while (0)

/* Prints on stderr what the function's caller did wrong, and aborts. */
_Noreturn void check_failed(const char *function, const char *sentence);

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
