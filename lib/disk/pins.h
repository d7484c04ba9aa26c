/*
 * pins: windows of files that are kept in memory while they are sent, so that the loop sends them
 * without a residency check.  There are two kinds:
 *
 * - a mapping of the page cache, kept in memory (os_fetch_folio; thesis 2.3.4), which vmsplice(2)
 *   or sendfile(2) sends.
 * - a copy in memory of its own, which a disk thread read past the page cache (os_direct_read) or from
 *   the tier (tier.h), or copied from the page cache (pool_fetch_copy).
 *
 * A disk thread reads a window and adds its pin; the transmissions that wait for the window take
 * references.  When the last reference of a mapping is released, or no transmission takes a reference
 * within PINS_FRESH_US, a disk thread unmaps the mapping.  A kept mapping stays for another PINS_FRESH_US,
 * unless its memory is needed or its mark was removed, since a kept mapping proves that its bytes are
 * resident (pins_cover).
 *
 * A copy waits up to PINS_WAITED_US for its first reference, since its bytes may be nowhere else in
 * memory, and up to PINS_FRESH_US for another reference after the last one was released.  Then its
 * memory is used again.  If the limit of pins is reached, the memory of a copy is used again as
 * soon as the copy was sent, or has waited for PINS_FRESH_US.
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
#include <time.h>

#include "lib/os/os.h"
#include "lib/pagewise.h"
#include "lib/util/timespec.h"

#define PINS_FRESH_US  1000000
#define PINS_WAITED_US 10000000
#define PINS_SPARE_US  2000000 /* lifetime of unused memory, microseconds */

struct pin;
struct pins;

/* Kinds of mappings. */
enum pins_mapping {
	PINS_UNMARKED, /* without a read-ahead mark (os_fetch_folio) */
	PINS_MARKED, /* may have a read-ahead mark; sent from the mapping alone */
	PINS_KEPT,   /* as PINS_MARKED, and kept for PINS_FRESH_US after use */
};

/* Identifies one version of a file. */
struct pins_key {
	uint64_t pk_dev;
	uint64_t pk_ino;
	struct os_version pk_version;
};

static inline struct pins_key
pins_key(const struct pw_file *file)
{
	return (struct pins_key){.pk_dev = file->fil_dev,
	    .pk_ino = file->fil_ino,
	    .pk_version = {.ov_size = file->fil_size,
		.ov_mtime = file->fil_mtime,
		.ov_ctime = file->fil_ctime}};
}

static inline bool
pins_same_version(const struct os_version *a, const struct os_version *b)
{
	return a->ov_size == b->ov_size &&
	       timespec_same(&a->ov_mtime, &b->ov_mtime) &&
	       timespec_same(&a->ov_ctime, &b->ov_ctime);
}

/* Returns true if the file did not change in the last `seconds`, compared in whole seconds. */
static inline bool
pins_version_is_older(const struct os_version *ov, unsigned seconds)
{
	time_t before = time(NULL) - (time_t)seconds;

	return ov->ov_mtime.tv_sec < before && ov->ov_ctime.tv_sec < before;
}

static inline bool
pins_same_key(const struct pins_key *a, const struct pins_key *b)
{
	return a->pk_ino == b->pk_ino && a->pk_dev == b->pk_dev &&
	       pins_same_version(&a->pk_version, &b->pk_version);
}

/*
 * Creates a table for at most `bytes` bytes of pins, of which at most `pipes` have a pipe.  Returns
 * NULL if memory is short.
 */
struct pins *pins_create(size_t bytes, unsigned pipes);

/* Unmaps all pins. */
void pins_destroy(struct pins **);

/*
 * Reserves len bytes, for pins_add or pins_refuse.  Unmaps kept mappings if their memory is needed.  Returns
 * false if the limits do not allow that.  Disk threads.
 */
bool pins_reserve(struct pins *, size_t len);

/* Cancels a reservation. */
void pins_refuse(struct pins *, size_t len);

/* Reserves a pipe for os_fetch_folio.  Returns false above the limit.  pins_no_pipe cancels the reservation. */
bool pins_reserve_pipe(struct pins *);
void pins_no_pipe(struct pins *);

/*
 * Adds a mapping of [off, off + fo_len) of a file, and takes ownership of the mapping.  Call
 * pins_reserve first.  The range lies in one OS_FOLIO of the file.  Unmaps the mapping
 * at once if memory is short or another pin has these bytes; the bytes stay resident.
 */
void pins_add(struct pins *, const struct pins_key *, off_t off,
    const struct os_folio *, enum pins_mapping);

/*
 * Returns a blank, a pin with memory for a copy of up to `len` bytes, at most OS_FOLIO, to pass to pins_add_copy,
 * pins_add_lent or pins_blank_free.  The memory is aligned to a page, and a power of two, from 64 KiB on.
 * Returns NULL above the limits, or if memory is short.  Call it on disk threads, since it may map memory.
 */
struct pin *pins_blank(struct pins *, const struct pins_key *, size_t len);
void pins_blank_free(struct pins *, struct pin *);

/*
 * Adds a blank that now has a copy of [off, off + len), a part of one OS_FOLIO of its file.  Frees the blank
 * instead if another pin has these bytes.
 */
void pins_add_copy(struct pins *, struct pin *, off_t off, size_t len);

/*
 * Adds a copy as pins_add_copy does, but even if a mapping has these bytes already, so that
 * pins_take_copy finds a copy.
 */
void pins_add_lent(struct pins *, struct pin *, off_t off, size_t len);

/* Returns true if pins_take may find a pin.  Inline, since it is called for each chunk. */
static inline bool
pins_any(const struct pins *ps)
{
	const atomic_uint *count = (const void *)ps; /* ps_count */

	return atomic_load_explicit(count, memory_order_relaxed) > 0;
}

/* Returns a reference to the pin that has the byte at off, or NULL. */
struct pin *pins_take(struct pins *, const struct pins_key *, off_t off);

/* Returns a reference to a copy that has the byte at off, or NULL. */
struct pin *pins_take_copy(struct pins *, const struct pins_key *, off_t off);

/* Returns the end of the pin if it has the byte at off, otherwise off. */
off_t pins_end(const struct pin *, off_t off);

/* Returns true if a kept mapping begins at off, and mappings have all bytes of [off, end) of the file. */
bool pins_cover(struct pins *, const struct pins_key *, off_t off, off_t end);

/* Stops keeping the mapping that begins at off.  Call after its read-ahead mark was removed. */
void pins_unkeep(struct pins *, const struct pins_key *, off_t off);

/* Returns a pointer to the bytes from off to pins_end, or NULL if the pin has no copy of them. */
const char *pins_copy(const struct pin *, off_t off);

/*
 * Returns a pointer to the bytes from off to pins_end, or NULL if the pin is no mapping of them.  Only
 * system calls may read there, which fail with EFAULT if the file was truncated; the program itself would
 * get SIGBUS.
 */
const char *pins_mapping(const struct pin *, off_t off);

/* Returns true if the pin is a mapping that may have a read-ahead mark. */
bool pins_marked(const struct pin *);

/* Returns the memory of a blank or copy. */
void *pins_memory(struct pin *);

/* Releases a reference, and sets the pointer to NULL.  Does nothing if the pointer is NULL. */
void pins_release(struct pins *, struct pin **);

/* Removes mappings that overlap [off, end) of a file and have no reference; pins_reap unmaps them. */
void pins_forget(
    struct pins *, uint64_t dev, uint64_t ino, off_t off, off_t end);

/*
 * Removes pins that no transmission took in time.  Returns true and sets *dev if pins of this device
 * have to be unmapped; then call pins_reap.  Call pins_tick a few times a second.
 */
bool pins_tick(struct pins *, uint64_t now_us, uint64_t *dev);

/*
 * Unmaps the removed pins of a device's files.  Call on a disk thread of the device, since to unmap a
 * deleted file may wait for the disk, and interrupts all processors.
 */
void pins_reap(struct pins *, uint64_t dev);

size_t pins_bytes(struct pins *);

#endif
