/*
 * withdraw: decides how long the master sends a drain or undrain to new server processes: see
 * master_priv.h.
 */
#include "lib/util/clock.h"
#include "server/process/master_priv.h"

/* Time for which new processes get an undrain, microseconds; agent.c sends "ready" for 60 s. */
#define WITHDRAW_TOLD_US (70 * MASTER_SECOND)

/*
 * Returns NULL for an old undrain, because the agent of the new process would send "up ready" for
 * it.  That line would also cancel a state that the operator has set at the balancer meanwhile.
 */
const char *
withdraw_now(const struct master *ms)
{
	bool drains = ms->ms_withdraw != NULL && ms->ms_withdraw[0] == '1';

	return drains || clock_now() - ms->ms_withdrawn < WITHDRAW_TOLD_US
		   ? ms->ms_withdraw
		   : NULL;
}
