/*
 * withdraw: decides how long the master sends a drain or undrain to new server processes: see
 * master_priv.h.
 */
#include "lib/util/clock.h"
#include "server/process/master_priv.h"

/* Time for which new processes get an undrain, microseconds; agent.c sends "ready" for 60 s. */
#define WITHDRAW_TOLD_US (70 * MASTER_SECOND)

/*
 * Sends no old undrain to a new process, because the new process's agent would then send "up
 * ready".  This would also cancel a state that the operator has set at the balancer in the
 * meantime.
 */
const char *
withdraw_now(const struct master *ms)
{
	bool drains = ms->ms_withdraw != NULL && ms->ms_withdraw[0] == '1';

	return drains || clock_now() - ms->ms_withdrawn < WITHDRAW_TOLD_US
		   ? ms->ms_withdraw
		   : NULL;
}
