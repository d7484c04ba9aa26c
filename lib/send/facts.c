/*
 * facts: see facts.h.
 */
#include "lib/send/facts.h"
#include "lib/send/send_private.h"

struct send_facts
send_facts(const struct pw_send *s)
{
	const struct send_private *ss = send_priv(s);

	return (struct send_facts){
	    .sf_wait = (enum send_wait)ss->ss_wait,
	    .sf_from = ss->ss_from,
	    .sf_end = ss->ss_asked,
	    .sf_pinned = ss->ss_pin != NULL,
	    .sf_direct = ss->ss_direct,
	};
}
