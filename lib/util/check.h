/*
 * check: two kinds of assertions.  PW_CHECK checks the library itself, but only in builds with
 * PW_DEBUG (the debug build and those with sanitizers).  PW_MUST checks callers of the library in
 * every build, wherever continuing would corrupt memory.
 */
#ifndef LIB_UTIL_CHECK_H
#define LIB_UTIL_CHECK_H

#define PW_MUST(rule, sentence)                           \
	do {                                              \
		if (__builtin_expect(!(rule), 0))         \
			check_failed(__func__, sentence); \
	} while (0)

/*
 * Prints the function and the sentence on stderr, and aborts.  The sentence names the fault of the
 * caller.
 */
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
