/*
 * message_rate: see message_rate.h.
 */
#include "server/log/message_rate.h"
#include "server/util/sockaddr_text.h"

#define MESSAGE_RATES_LEFT(name, level, text) {level, text, 0},
static const struct message_rate_left message_rate_kinds[TOLD_KINDS] = {
    MESSAGE_RATES(MESSAGE_RATES_LEFT)};
#undef MESSAGE_RATES_LEFT

static bool
message_rate_quiet(const struct message_rate *lim, uint64_t now_us)
{
	return lim->lim_told && now_us - lim->lim_since < MESSAGE_RATE_PERIOD;
}

bool
message_rate_due(struct message_rate *lim, uint64_t now_us)
{
	if (message_rate_quiet(lim, now_us))
		return false;
	lim->lim_told = true;
	lim->lim_since = now_us;
	return true;
}

bool
message_rate_tell(struct message_rate list[static TOLD_KINDS],
    enum message_rate_kind kind, uint64_t now_us)
{
	struct message_rate *lim = &list[kind];

	/* The number of suppressed messages must be logged first. */
	if (lim->lim_left == 0 && message_rate_due(lim, now_us))
		return true;
	lim->lim_left++;
	return false;
}

bool
message_rate_tell_of(struct message_rate list[static TOLD_KINDS],
    enum message_rate_kind kind, uint64_t now_us, const struct sockaddr *sa,
    char text[static INET6_ADDRSTRLEN])
{
	if (!message_rate_tell(list, kind, now_us))
		return false;
	*sockaddr_text(text, sa) = '\0';
	return true;
}

bool
message_rate_left_out(struct message_rate list[static TOLD_KINDS],
    uint64_t now_us, struct message_rate_left *out)
{
	struct message_rate *lim;

	for (lim = list; lim < list + TOLD_KINDS; lim++) {
		if (lim->lim_left == 0 || message_rate_quiet(lim, now_us))
			continue;
		*out = message_rate_kinds[lim - list];
		out->ml_count = lim->lim_left;
		lim->lim_left = 0;
		return true;
	}
	return false;
}
