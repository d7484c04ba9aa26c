/* Limits of connections (server/worker/connection_limits.h), for three workers. */
#include "test.h"

#include "server/worker/connection_limits.h"

enum { WORKERS = 3 };

static inline struct connection_limits *
create(unsigned total, unsigned each)
{
	struct connection_limits *cs;

	assert_int_equal(limits_create(total, each, WORKERS, &cs), 0);
	return cs;
}

/* Reserves n slots for connections that have no address. */
static inline void
reserve(struct connection_limits *cs, unsigned n)
{
	while (n-- > 0)
		assert_true(limits_reserve(cs, 0));
}

static inline void
release(struct connection_limits *cs, unsigned n)
{
	while (n-- > 0)
		limits_release(cs);
}
