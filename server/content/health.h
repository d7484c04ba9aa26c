/*
 * health: what balancers are told: the answers to the keys live and ready, which are two paths,
 * and the state that the key agent tells (server/admin/agent.h).  None needs a disk: what is known of
 * the roots was found out by the threads of server/process/root_probe.h.  The text of ready
 * has a line for each root:
 *
 *	not ready
 *	main: ok
 *	main /video/: no answer for 12 s
 *
 * Its first line is "draining" once the server ends, or was withdrawn (pagewise drain).
 *
 * It belongs to the server process; probes and the main thread write, workers and the admin
 * thread read.
 */
#ifndef SERVER_CONTENT_HEALTH_H
#define SERVER_CONTENT_HEALTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/conf/conf.h"

#define HEALTH_SILENT \
	((uint64_t)5000000) /* microseconds: then it is not ready */

struct exchange;

struct root_health {
	const struct site *rh_site;	   /* the first that has it */
	const char *rh_location;	   /* its path in there, or empty */
	atomic_uint_fast64_t rh_responded; /* when it last did, microseconds */
	atomic_int rh_error; /* of its last answer: -errno, or 0 */
};

struct health {
	atomic_bool hl_ending;	  /* for good: SIGTERM */
	atomic_bool hl_withdrawn; /* pagewise drain */
	/* Balancers may have been told to drain, by this process or one before. */
	atomic_bool hl_restored;
	size_t hl_count; /* as conf_nroots */
	struct root_health hl_roots[];
};

/* All have answered now.  NULL: no memory. */
struct health *health_create(const struct conf *, uint64_t now_us);
void health_destroy(struct health **);

/* Balancers are to send nobody new. */
bool health_drains(const struct health *);

/* Does every root answer?  If not, which one and why: "main /video/: no answer for 12 s". */
bool health_is_well(
    const struct health *, uint64_t now_us, char *text, size_t size);

/* True: it was one of the two paths, and the answer is ready to be sent. */
bool health_respond(struct exchange *);

#endif
