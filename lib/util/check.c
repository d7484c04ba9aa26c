/*
 * check: see check.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/util/check.h"

_Noreturn void
check_failed(const char *function, const char *sentence)
{
	fprintf(stderr, "libpagewise: %s: %s\n", function, sentence);
	abort();
}
