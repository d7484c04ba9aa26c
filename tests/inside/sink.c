/*
 * sink: see sink.h.
 */
#include <stdlib.h>

#include "lib/os/os.h"
#include "tests/inside/sink.h"

#define RECORD ((size_t)16 << 10)

static struct inside_sink *
of(struct pw_sink *sk)
{
	return (struct inside_sink *)(void *)sk;
}

static int
take(struct pw_sink *sk, const char *mem, size_t len, bool more, size_t *taken)
{
	size_t n = len < RECORD ? len : RECORD;

	return os_send(of(sk)->is_fd, mem, n, more || n < len, taken);
}

static long
unacked(struct pw_sink *sk)
{
	return os_unacked(of(sk)->is_fd);
}

struct pw_sink *
inside_sink(struct inside_sink *is, int fd)
{
	static const struct pw_sink_ops ops = {
	    .take = take, .unacked = unacked};

	if (getenv("PAGEWISE_SINK") == NULL)
		return NULL;
	*is = (struct inside_sink){{&ops}, fd};
	return &is->is_sink;
}
