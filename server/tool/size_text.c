/*
 * size_text: see size_text.h.
 */
#include "server/tool/size_text.h"

#include <stdio.h>

void
size_text(uint64_t bytes, char *text, size_t size)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double n = (double)bytes / 1024;
	size_t i = 0;

	for (; n >= 1024 && i < 3; i++)
		n /= 1024;
	if (bytes < 1024)
		snprintf(text, size, "%u bytes", (unsigned)bytes);
	else
		snprintf(text, size, "%.1f %s", n, units[i]);
}
