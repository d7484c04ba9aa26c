/* invariants: checks the rules for a session and its streams.  Compiled only with PW_DEBUG. */
#include "server/http2/stream.h"

#ifdef PW_DEBUG
#include <stdio.h>
#include <stdlib.h>

#define RULE(holds)                                                  \
	do {                                                         \
		if (!(holds)) {                                      \
			fprintf(stderr, "%s:%d: check failed: %s\n", \
			    "invariants.c", __LINE__, #holds);       \
			abort();                                     \
		}                                                    \
	} while (0)

/* Checks that an event, a timer or a time slice will wake the stream, if it is open. */
static void
h2_invariants_check_stream(const struct h2_stream *sm)
{
	bool pending = sm->sm_ex != NULL && sm->sm_ex->ex_pending;

	RULE(!sm->sm_closed || pending);
	RULE(!sm->sm_due || !pending);
	if (sm->sm_closed || sm->sm_state == H2_HEAD ||
	    sm->sm_state == H2_DONE || sm->sm_state == H2_LATE || sm->sm_ours)
		return;
	RULE(pending || sm->sm_due || sm->sm_item.it_queued ||
	     sm->sm_item.it_timer != TIMER_NONE);
	RULE(!pending || sm->sm_item.it_timer == TIMER_DISK);
}

void
h2_check(const struct h2 *h2)
{
	const struct h2_stream *sm;
	unsigned count = 0, open = 0, bodies = 0, pending = 0;
	size_t heads = 0, kept = 0, more = 0;

	TAILQ_FOREACH(sm, &h2->h2_all, sm_all)
	{
		h2_invariants_check_stream(sm);
		count++;
		open += !sm->sm_closed;
		bodies += !sm->sm_closed && sm->sm_responded;
		heads += sm->sm_heavy;
		kept += sm->sm_kept;
		more += sm->sm_more;
		pending += sm->sm_ex != NULL && sm->sm_ex->ex_pending;
	}
	RULE(count == h2->h2_count);
	RULE(open == h2->h2_open);
	RULE(bodies == h2->h2_bodies);
	RULE(pending == h2->h2_pending);
	RULE(heads == h2->h2_heads);
	RULE(kept == h2->h2_kept);
	RULE(more == h2->h2_more);
}
#endif
