/*
 * frequent: finds windows of resident files that are sent often, and has a disk thread pin them (pool_pin).
 * A pinned window is sent from its mapping (mapped.c), without a residency check, for half of the CPU time.
 * Loop's thread.
 */
#ifndef LIB_SEND_FREQUENT_H
#define LIB_SEND_FREQUENT_H

#include <stdint.h>

#include "lib/pagewise.h"

#define FREQUENT_LEAST (128 << 10) /* least size of a file, bytes */
#define FREQUENT_SENDS 64	   /* chunks of a window within FREQUENT_SPAN */
#define FREQUENT_SPAN  1000000	   /* microseconds */

struct frequent;

struct frequent *frequent_create(void); /* returns NULL if memory is short */
void frequent_destroy(struct frequent **);

/* Notes that the next chunk is resident and not pinned.  Pins its window if it is sent often. */
void frequent_note(struct pw_send *, uint64_t now_us);

#endif
