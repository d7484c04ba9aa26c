/*
 * message_rate: see message_rate.h.
 */
#include "server/log/message_rate.h"
#include "server/util/sockaddr_text.h"

static bool
message_rate_quiet(const struct message_rate *lim, uint64_t now_us)
{
	return lim->lim_told && now_us - lim->lim_since < MESSAGE_RATE_PERIOD;
}

bool
message_rate_tell(struct message_rate *lim, uint64_t now_us)
{
	/* The number of suppressed messages must be logged first. */
	if (message_rate_quiet(lim, now_us) || lim->lim_left > 0) {
		lim->lim_left++;
		return false;
	}
	lim->lim_told = true;
	lim->lim_since = now_us;
	return true;
}

bool
message_rate_tell_of(struct message_rate *lim, uint64_t now_us,
    const struct sockaddr *sa, char text[static INET6_ADDRSTRLEN])
{
	if (!message_rate_tell(lim, now_us))
		return false;
	*sockaddr_text(text, sa) = '\0';
	return true;
}

uint64_t
message_rate_left_out(struct message_rate *lim, uint64_t now_us)
{
	uint64_t left = lim->lim_left;

	if (left == 0 || message_rate_quiet(lim, now_us))
		return 0;
	lim->lim_left = 0;
	lim->lim_since = now_us;
	return left;
}
