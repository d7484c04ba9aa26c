/*
 * tickets: keeps the keys of session tickets, which outlive server processes.  The master creates
 * the keys when a server process with TLS requests them.  If a process hangs and misses a key, its
 * clients need full handshakes until the process receives the next key.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/os/os.h"
#include "lib/util/clock.h"
#include "server/log/log.h"
#include "server/process/master_priv.h"
#include "server/util/debug.h"

/* time until the next attempt after a failed renewal, microseconds */
#define AGAIN_US (60 * MASTER_SECOND)

static uint64_t
tickets_period(void)
{
	return debug_number("PAGEWISE_TICKET_SECONDS", TICKET_KEYS_SECONDS) *
	       MASTER_SECOND;
}

static int
tickets_create(struct master *ms)
{
	ms->ms_tickets = os_secret_create(sizeof(*ms->ms_tickets));
	return ms->ms_tickets == NULL ? -ENOMEM : 0;
}

static void
tickets_tell(struct child *ch, const struct ticket_key *key)
{
	char text[TICKET_KEY_TEXT];

	ticket_key_write(key, text);
	if (ch->ch_channel != -1)
		(void)channel_send(
		    ch->ch_channel, CHANNEL_TICKET_KEY, text, -1, false);
	explicit_bzero(text, sizeof(text));
}

int
tickets_give(struct master *ms, struct child *ch)
{
	size_t i;
	int error = 0;

	ch->ch_tickets = true;
	if (ms->ms_tickets == NULL) {
		error = tickets_create(ms);
		if (error == 0)
			error = ticket_key_list_renew(ms->ms_tickets);
		if (error != 0) {
			tickets_forget(ms);
			return error;
		}
		ms->ms_tickets_renew = clock_now() + tickets_period();
	}
	for (i = TICKET_KEYS; i-- > 0;)
		tickets_tell(ch, &ms->ms_tickets->tl_keys[i]);
	return 0;
}

void
tickets_renew(struct master *ms)
{
	uint64_t now = clock_now();
	struct child *ch;
	int error;

	if (ms->ms_tickets_renew == 0 || now < ms->ms_tickets_renew)
		return;
	error = ticket_key_list_renew(ms->ms_tickets);
	ms->ms_tickets_renew = now + (error == 0 ? tickets_period() : AGAIN_US);
	if (error != 0) {
		log_error(NULL,
		    "cannot create a new key of session tickets: %s; the "
		    "previous key stays in use",
		    strerror(-error));
		return;
	}
	TAILQ_FOREACH(ch, &ms->ms_children, ch_entry)
	if (ch->ch_state != CHILD_KILLED)
		tickets_tell(ch, &ms->ms_tickets->tl_keys[0]);
}

void
tickets_inherit(struct master *ms, const struct ticket_key *key, uint64_t renew)
{
	/*
	 * If memory is short, the old keys are lost, and the next process that requests keys gets
	 * new keys.
	 */
	if (ms->ms_tickets == NULL && tickets_create(ms) != 0)
		return;
	ticket_key_list_add(ms->ms_tickets, key);
	ms->ms_tickets_renew = renew;
}

void
tickets_forget(struct master *ms)
{
	os_secret_destroy(ms->ms_tickets, sizeof(*ms->ms_tickets));
	ms->ms_tickets = NULL;
	ms->ms_tickets_renew = 0;
}
