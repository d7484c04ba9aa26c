/*
 * scene: a program that uses lib/pagewise.h: loops with clients.
 */
#ifndef TESTS_SIM_SCENE_H
#define TESTS_SIM_SCENE_H

#include "lib/pagewise.h"
#include "tests/sim/kernel.h"

#define CLIENTS_MAX 64
#define LOOPS_MAX   4
#define HEAD_MAX    512
#define CALM  \
	(16 * \
	    SECOND) /* after the last client: longer than files and copies are kept */
#define LONGEST (300 * SECOND) /* then all clients leave */

enum reader {
	READ_FAST,
	READ_SLOW,
	READ_BURSTS,
	READ_STALLS,
	READ_NEVER,
	READERS
};
enum doing { AWAY, OPENING, RUNS, PENDING, FULL, LEFT, GONE };
enum sink { SINK_NONE, SINK_TAKE, SINK_RANGE, SINK_ROOM, SINKS };

struct app_loop {
	struct pw_loop *al_loop;
	unsigned al_number;
	uint64_t al_tick;
};

struct client {
	struct pw_open cl_open;
	struct pw_send cl_send;
	struct pw_sink cl_sink;
	struct app_loop *cl_app;
	unsigned cl_number, cl_requests;
	enum doing cl_doing;
	enum reader cl_reader;
	enum sink cl_sinks;
	uint64_t cl_arrives;
	int cl_sock;
	bool cl_event, cl_reading, cl_hangs_up, cl_stalls, cl_cancelled;
	uint64_t cl_read, cl_resets_at, cl_progress;

	/* The present request. */
	unsigned cl_disk, cl_path;
	struct pw_file *cl_file;
	struct inode *cl_inode;
	unsigned cl_version; /* of the file, when it was looked up */
	off_t cl_from, cl_len;
	char cl_head[HEAD_MAX];
	size_t cl_head_len;
	uint64_t cl_got, cl_asked,
	    cl_began;		/* times of the request and of the last wait */
	unsigned cl_served;	/* first bytes of others before this request */
	unsigned cl_waits_long; /* long waits one after another */
	bool cl_mixed;		/* bytes of another version arrived */
	char *cl_room;
};

extern struct client clients[CLIENTS_MAX];
extern struct pw_root *roots[DISKS_MAX];

void client_draw(struct client *, unsigned number, struct app_loop *);
/* Does what the client has to do now.  Returns true if it has more to do at once. */
bool client_run(struct client *);
void clients_check_progress(void);
/* Has all clients close their connections. */
void clients_leave(void);
/* The main task of a world. */
void scene_main(void *);
/* Starts writers, and what makes names leave the cache, until calm_since is set: the time when all clients had gone. */
void scene_disturb(void);
extern uint64_t calm_since;
void scene_check_budget(struct pw_pool *);
void scene_check_end(void);

/* The main task of a world with a server: served.c, and its clients: peer.c. */
void served_main(void *);
/* Returns true if the server may refuse, close or cut without a fault of the machine. */
bool served_ends(void);
bool served_limits(void);
void peers_draw(void);
void peers_check(void);
void peers_leave(void);
bool peers_all_gone(void);

#endif
