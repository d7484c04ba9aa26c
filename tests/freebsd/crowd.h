/*
 * crowd: clients of cold files, and one that asks for a cached file again and again; meanwhile
 * samples of where the server's threads sleep.
 */
#ifndef TESTS_FREEBSD_CROWD_H
#define TESTS_FREEBSD_CROWD_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/freebsd/http.h"

#define CROWD_MOST 120
#define CROWD_SIZE \
	((off_t)384 << 10) /* of most files: DIR/0, DIR/1 and so on */

struct crowd {
	struct http cr_clients[CROWD_MOST], cr_ping;
	unsigned cr_n, cr_left;
	unsigned cr_pings;
	double cr_worst; /* seconds of a ping */
	double cr_next_ping, cr_next_sample;
	pid_t cr_server;
};

/* The cached file that is requested again and again. */
extern const char *crowd_cached;

/* Connects n clients, and sends their requests.  Returns false if that failed. */
bool crowd_begin(struct crowd *, pid_t server, const char *dir, unsigned n);

/* Goes on until all have ended, or `enough` bytes came. */
void crowd_run(struct crowd *, double seconds, off_t enough);

/* Returns the number of pages of the clients' files that are in memory.  Call before crowd_end, which reads them. */
long crowd_resident(const struct crowd *, const char *dir);

/* Closes all.  Returns how many responses were wrong. */
unsigned crowd_end(struct crowd *, const char *dir);

#endif
