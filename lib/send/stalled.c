/*
 * stalled: see stalled.h.
 */
#include "lib/send/holder.h"
#include "lib/send/send_private.h"
#include "lib/send/stalled.h"

#define YIELDS 256 /* transmissions of a tick: less than a millisecond */

void
stalled_yield(struct pw_loop *lp, uint64_t now_us)
{
	struct pw_send *s;
	int n;

	for (n = 0; n < YIELDS; n++) {
		s = holder_stalled(lp, now_us);
		if (s == NULL)
			return;
		pw_send_yield(s);
		/* If the data is evicted now, the budget is not too large for it. */
		send_priv(s)->ss_asked = s->snd_off;
	}
}
