/*
 * stalled: see stalled.h.
 */
#include "lib/disk/budget.h"
#include "lib/disk/completion.h"
#include "lib/disk/pool.h"
#include "lib/send/holder.h"
#include "lib/send/own.h"
#include "lib/send/send_private.h"
#include "lib/send/stalled.h"

/* maximum number of transmissions that a tick examines; this takes less than 1 ms */
#define LOOKS 256

void
stalled_yield(struct pw_loop *lp, uint64_t now_us)
{
	struct budget *room = pool_room(lp->lp_pool);
	unsigned looks = LOOKS;
	struct pw_send *s;

	while (budget_is_waited_for(room)) {
		s = holder_stalled(lp, now_us, &looks);
		if (s == NULL)
			return;
		pw_send_yield(s);
		if (s->snd_off >= send_priv(s)->ss_offered)
			own_free(s); /* read again when the client goes on */
		/* An eviction of the data from now on must not shrink the budget. */
		send_priv(s)->ss_asked = s->snd_off;
	}
}
