/*
 * pins: windows of files that are locked in memory while they are sent.  A locked page is not evicted, so
 * the loop sends a pinned window without asking whether its pages are resident.  A pool thread maps
 * and locks a window (os_fetch_folio) and adds it; the transmissions that wait for it take
 * references.  A pool thread unmaps a pin when its last reference is released, or when no transmission
 * takes one within PINS_FRESH_US.  Thesis 2.3.4.
 *
 * Any thread; the lock is held for a few instructions.
 */
#ifndef LIB_DISK_PINS_H
#define LIB_DISK_PINS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PINS_FRESH_US 1000000 /* so long a new pin waits for a reference */

struct pin;
struct pins;

/* bytes: of all pins.  NULL: no memory. */
struct pins *pins_create(size_t bytes);

/* Unmaps all pins. */
void pins_destroy(struct pins **);

/* Reserves len bytes for pins_add or pins_refuse.  Returns false if that is above the limits. */
bool pins_reserve(struct pins *, size_t len);

/* Gives back what pins_reserve counted. */
void pins_refuse(struct pins *, size_t len);

/*
 * Takes over the map of [off, off + len) of a file, which pins_reserve has counted.  off is a multiple
 * of OS_FOLIO, and len at most that.  Unmaps it if it cannot be kept: the bytes are resident all the
 * same.
 */
void pins_add(struct pins *, uint64_t dev, uint64_t ino, off_t off, size_t len,
    void *map);

/* Returns true if there is a pin that may be taken.  Asked for each chunk, so without a call. */
static inline bool
pins_any(const struct pins *ps)
{
	const atomic_uint *count = (const void *)ps; /* its first member */

	return atomic_load_explicit(count, memory_order_relaxed) > 0;
}

/* Returns a reference to the pin that has this byte, or NULL. */
struct pin *pins_take(struct pins *, uint64_t dev, uint64_t ino, off_t off);

/* Returns the end of the pin if it has the byte, otherwise off. */
off_t pins_end(const struct pin *, off_t off);

/* Releases a reference, if there is one. */
void pins_release(struct pins *, struct pin **);

/* Drops the pins of [off, end) of a file that have no reference: pins_reap unmaps them. */
void pins_forget(
    struct pins *, uint64_t dev, uint64_t ino, off_t off, off_t end);

/*
 * Lets go of what was not taken in time.  Returns true if pins of a device are to be unmapped:
 * pins_reap.  Call a few times a second.
 */
bool pins_tick(struct pins *, uint64_t now_us, uint64_t *dev);

/*
 * Unmaps the dropped pins of a device's files.  Call on one of its threads: to unmap a file that was
 * removed may have to wait for the disk, and interrupts all processors.
 */
void pins_reap(struct pins *, uint64_t dev);

size_t pins_bytes(struct pins *);

#endif
