/*
 * health: reports the state of the server to balancers.  Makes the responses for the paths of the
 * keys live and ready, and stores the state that the agent sends (server/admin/agent.h).  No
 * response reads the disk: the threads of server/process/root_probe.h check the roots.  The
 * response for ready has a line for each root:
 *
 *	not ready
 *	main: ok
 *	main /video/: no response for 12 s
 *
 * The first line is "draining" during shutdown and after pagewise drain.
 *
 * Belongs to the server process.  Probes, the main thread and the admin thread write the state;
 * workers and the admin thread read it.
 */
#ifndef SERVER_CONTENT_HEALTH_H
#define SERVER_CONTENT_HEALTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/conf/conf.h"

/* Microseconds without a response after which a root is not ready. */
#define HEALTH_SILENT ((uint64_t)5000000)

struct exchange;

struct root_health {
	const struct site *rh_site; /* first site with this root */
	const char *rh_location;    /* path of the location, or empty */
	/* time when the root last responded, microseconds */
	atomic_uint_fast64_t rh_responded;
	atomic_int rh_error; /* result of the last probe: 0 or -errno */
};

struct health {
	/* true once the shutdown has begun; never reset */
	atomic_bool hl_ending;
	atomic_bool hl_withdrawn; /* true after pagewise drain, until undrain */
	/*
	 * true if the agent must send "ready" for 60 s, starting at its first check; this cancels
	 * an earlier drain
	 */
	atomic_bool hl_restored;
	size_t hl_count; /* number of roots (conf_nroots) */
	struct root_health hl_roots[];
};

/*
 * Creates the state.  All roots count as having just responded.  Returns NULL if memory is short.
 */
struct health *health_create(const struct conf *, uint64_t now_us);
void health_destroy(struct health **);

/* Returns true if balancers must send no new clients. */
bool health_drains(const struct health *);

/*
 * Returns true if every root responds without an error.  Otherwise writes to `text` the line for
 * the first root that does not: "main /video/: no response for 12 s".
 */
bool health_is_well(
    const struct health *, uint64_t now_us, char *text, size_t size);

/* Makes the response for the path of live or of ready.  Returns false for any other path. */
bool health_respond(struct exchange *);

#endif
