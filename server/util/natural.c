/*
 * natural: see natural.h.
 */
#include "server/util/natural.h"

#include <stdbool.h>
#include <string.h>

static bool
natural_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t
natural_digits(const char *s)
{
	size_t n = 0;

	while (natural_is_digit(s[n]))
		n++;
	return n;
}

/*
 * Skips both numbers and compares them: without leading zeros, the longer number is the larger one.
 */
static int
natural_compare_numbers(const char **ap, const char **bp)
{
	const char *a = *ap, *b = *bp;
	size_t m, n;

	while (*a == '0')
		a++;
	while (*b == '0')
		b++;
	m = natural_digits(a);
	n = natural_digits(b);
	*ap = a + m;
	*bp = b + n;
	if (m != n)
		return m < n ? -1 : 1;
	return memcmp(a, b, m);
}

int
natural_compare(const char *a, const char *b)
{
	const char *p = a, *q = b;
	int by;

	for (by = 0; by == 0 && *p != '\0' && *q != '\0';) {
		if (natural_is_digit(*p) && natural_is_digit(*q))
			by = natural_compare_numbers(&p, &q);
		else
			by = (unsigned char)*p++ - (unsigned char)*q++;
	}
	if (by != 0)
		return by;
	if (*p != *q)
		return *p == '\0' ? -1 : 1;
	return strcmp(a, b);
}
