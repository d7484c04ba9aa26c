/*
 * debug: reads numbers that tests set in the environment of a debug build.
 */
#ifndef SERVER_UTIL_DEBUG_H
#define SERVER_UTIL_DEBUG_H

#include <stdint.h>
#include <stdlib.h>

/*
 * Returns the number in the environment variable if this is a debug build and the variable is set.
 * Otherwise returns `number`.
 */
static inline uint64_t
debug_number(const char *variable, uint64_t number)
{
#ifdef PW_DEBUG
	const char *text = getenv(variable);

	return text != NULL ? strtoull(text, NULL, 10) : number;
#else
	(void)variable;
	return number;
#endif
}

#endif
