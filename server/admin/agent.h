/*
 * agent: responds to HAProxy's agent-check (HAProxy's configuration manual, 5.2, "agent-check") on
 * the admin thread: sends one line on each connection, and closes the connection.
 *
 *	up 75%                      the node's weight: weight.h
 *	up ready 75%                the same, for a minute after a drain may have ended: a balancer
 *	                            leaves the drain state only by "ready"
 *	drain                       shutdown (SIGTERM), or pagewise drain
 *	down # one: no response for 12 s    the first root that does not respond
 *
 * The agent ignores data from clients.
 */
#ifndef SERVER_ADMIN_AGENT_H
#define SERVER_ADMIN_AGENT_H

#include <event2/buffer.h>
#include <event2/event.h>

#include "server/admin/metrics.h"

/* maximum number of connections that wait for the client's close */
#define AGENT_LINGERING 64

struct agent;
struct health;

/*
 * Creates an agent with a copy of the listening socket fd.  The metrics and the health must outlive
 * the agent.  The agent accepts no connection yet.  Returns 0 or -errno.
 */
int agent_create(struct event_base *, int fd, const struct metrics *,
    const struct health *, struct agent **);

/* Starts to accept connections.  Does nothing if the agent is NULL, like the functions below. */
void agent_accept(struct agent *);

/* Writes the agent's metrics. */
void agent_metrics(const struct agent *, struct evbuffer *);

/* Frees the agent.  Call before the base is freed. */
void agent_destroy(struct agent **);

#endif
