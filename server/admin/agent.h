/*
 * agent: answers HAProxy's agent-check (its configuration manual, 5.2, "agent-check") on the
 * admin thread: each connection gets one line, and is closed.
 *
 *	up 75%                      the share that the node asks for: weight.h
 *	up ready 75%                the same, for a minute after somebody may have been told to drain:
 *	                            a balancer leaves that state by "ready" alone
 *	drain                       it ends (SIGTERM), or was withdrawn (pagewise drain)
 *	down # one: no answer for 12 s    a root does not answer: the first one
 *
 * Nobody has to send anything; what is sent is not looked at.
 */
#ifndef SERVER_ADMIN_AGENT_H
#define SERVER_ADMIN_AGENT_H

#include <event2/buffer.h>
#include <event2/event.h>

#include "server/admin/metrics.h"

struct agent;
struct health;

/*
 * With a copy of a listening socket; metrics and health must outlive it.  It answers nobody yet.  0 or -errno.
 */
int agent_create(struct event_base *, int fd, const struct metrics *,
    const struct health *, struct agent **);

/* It answers from now on.  NULL is fine, as it is below. */
void agent_accept(struct agent *);

/* Its figures. */
void agent_metrics(const struct agent *, struct evbuffer *);

/* Before the base is freed. */
void agent_destroy(struct agent **);

#endif
