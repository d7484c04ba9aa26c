/*
 * pins_priv: declarations that the files of the pins share.  No other file includes this header.
 *
 *   pins.c        finds, references and unmaps pins
 *   pins_blank.c  provides memory for copies
 */
#ifndef LIB_DISK_PINS_PRIV_H
#define LIB_DISK_PINS_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "lib/disk/pins.h"

#define PINS_HASH 256

TAILQ_HEAD(pin_list, pin);

struct pin {
	struct pins_key pn_key;
	off_t pn_off;
	size_t pn_len; /* length of the pin in the file, bytes */
	void *pn_map;
	int pn_pipe;	/* descriptor of a mapping's pipe, or -1 */
	bool pn_copy;	/* true if pn_map is a copy */
	size_t pn_room; /* size of a copy's memory, bytes */
	/* written with the lock held (pins_unkeep), read without it */
	_Atomic enum pins_mapping pn_mapping;
	/* true if a transmission took and released this pin */
	bool pn_released;
	unsigned pn_refs;
	/* time at which the pin was added, released or became spare, microseconds */
	uint64_t pn_since;
	LIST_ENTRY(pin) pn_link;
	TAILQ_ENTRY(pin)
	pn_entry; /* entry in a list of struct pins while pn_refs is 0 */
};

struct pins {
	/* number of pins in ps_hash; first member, for pins_any */
	atomic_uint ps_count;
	pthread_mutex_t ps_lock; /* guards all fields except ps_max */
	size_t ps_max;		 /* limit of ps_bytes */
	size_t ps_bytes;	 /* bytes that are reserved or mapped */
	unsigned ps_maps;	 /* number of reservations and mappings */
	unsigned ps_pipes;	 /* number of pipes that may still be made */
	LIST_HEAD(, pin) ps_hash[PINS_HASH];
	/* Lists of pins without a reference; in ps_waited and ps_fresh the oldest is first. */
	struct pin_list ps_waited; /* copies that were never referenced */
	struct pin_list ps_fresh;  /* mappings, and copies used before */
	struct pin_list ps_spare;  /* memory without a copy, last used first */
	struct pin_list ps_dead;   /* pins that a disk thread must unmap */
};

/* Reserves len bytes and one mapping.  Returns false above the limits.  The lock is held. */
bool pins_have_room(struct pins *, size_t len);

/*
 * Moves a pin without a reference from the table to ps_spare if it is a copy, else to ps_dead.  The lock
 * is held.
 */
void pins_let_go(struct pins *, struct pin *);

/*
 * Inserts a pin into the table.  Returns false, and inserts nothing, if another pin has all of its bytes.
 * If `copies` is true, only other copies count.
 */
bool pins_insert_new(struct pins *, struct pin *, bool copies);

#endif
