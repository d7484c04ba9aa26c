/*
 * sink: in place of TLS: what answers go into if the environment has PAGEWISE_SINK.  It takes
 * memory alone, up to a record of TLS at once, and passes it on as it is, so that all tests of
 * HTTP can be run with it.  In build/debug only (-DPW_INSIDE).
 */
#ifndef TESTS_INSIDE_SINK_H
#define TESTS_INSIDE_SINK_H

#include "lib/pagewise.h"

struct inside_sink {
	struct pw_sink is_sink;
	int is_fd; /* not owned */
};

/* NULL: the environment has no such name. */
struct pw_sink *inside_sink(struct inside_sink *, int fd);

#endif
