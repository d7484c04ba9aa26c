/* Heads of requests (server/http/head.h) for tests. */
#include "test.h"

#include "server/http/head.h"

#define BYTES(literal)                         \
	{                                      \
		(literal), sizeof(literal) - 1 \
	}
#define LINE "GET / HTTP/1.1\r\n"
#define BASE LINE "Host: a\r\n"
#define TEN  "abcdefghij"

static const struct head_limits roomy = {4096, 1024, 32};

/* Passes a copy of exactly n bytes to head_check, so that the sanitizer sees a read beyond them. */
static inline int
check(const char *bytes, size_t n, const struct head_limits *limits,
    struct head *hd)
{
	SCOPED(free_at) char *copy = malloc(n + (n == 0));
	int verdict;

	assert_non_null(copy);
	memcpy(copy, bytes, n);
	verdict = head_check(copy, n, limits, hd);
	return verdict;
}
