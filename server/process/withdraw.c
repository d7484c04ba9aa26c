/*
 * withdraw: decides how long a drain or undrain is passed to new server processes; see
 * master_priv.h.
 */
#include "lib/util/clock.h"
#include "server/process/master_priv.h"

/* Time for which the master passes on an undrain, microseconds; agent.c sends "ready" for 60 s. */
#define WITHDRAW_TOLD_US (70 * MASTER_SECOND)

/*
 * Does not pass on an old undrain: a process that receives it makes the agent send "up ready",
 * which would also cancel a state that the operator has set at the balancer since.
 */
const char *
withdraw_now(const struct master *ms)
{
	bool drains = ms->ms_withdraw != NULL && ms->ms_withdraw[0] == '1';

	return drains || clock_now() - ms->ms_withdrawn < WITHDRAW_TOLD_US
		   ? ms->ms_withdraw
		   : NULL;
}
