/*
 * tier_index: the table of the windows in a tier (tier.h).  Makes no I/O.
 *
 * The store is a ring: a new window is written behind the last one, and evicts the oldest windows,
 * whose bytes it overwrites.  So the disk is written sequentially, which suits flash.  The caller of
 * each function holds a lock.
 */
#ifndef LIB_DISK_TIER_INDEX_H
#define LIB_DISK_TIER_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIER_BLOCK ((uint64_t)4096) /* alignment in the ring, bytes */

/* Identifies a window of one version of a file. */
struct tier_id {
	uint64_t id_dev;
	uint64_t id_ino;
	uint64_t id_size;
	uint64_t id_mtime;
	uint64_t id_mtime_ns;
	uint64_t id_ctime;
	uint64_t id_ctime_ns;
	uint64_t id_off; /* offset of the window in the file */
};

/* A record as the index file has it, in the byte order of the machine. */
struct tier_record {
	uint64_t tr_number; /* number of the record, from 1 */
	struct tier_id tr_id;
	uint64_t tr_at;	 /* bytes appended to the ring before this record */
	uint64_t tr_len; /* bytes of the window; 0 for a removed record */
	uint64_t tr_sum; /* checksum of the checksums of the window's pieces */
	uint64_t tr_spare[3];
	uint64_t tr_check; /* checksum of the fields above */
};

struct tier_index;

/*
 * Creates an empty table.  `size` is the size of the ring in bytes, `most` the maximum number of
 * records.  Returns NULL if memory is short.
 */
struct tier_index *tier_index_create(uint64_t size, uint32_t most);
void tier_index_destroy(struct tier_index **);

/* Returns a hash of the place, the file and the offset, but not of the version. */
uint64_t tier_index_hash(const struct tier_id *);

/* Returns the record of a window, or NULL if there is none. */
const struct tier_record *tier_index_find(
    const struct tier_index *, const struct tier_id *);

/* Returns true if the table still has the record with this number. */
bool tier_index_has(const struct tier_index *, uint64_t number);
void tier_index_remove(struct tier_index *, uint64_t number);

/*
 * tier_index_reserve evicts records until the ring has space for a window of `len` bytes, and sets
 * tr_number, tr_at and tr_len.  tier_index_add adds the record, once its bytes are written, in
 * place of an earlier record of the window.
 */
void tier_index_reserve(
    struct tier_index *, uint64_t len, struct tier_record *);
void tier_index_add(struct tier_index *, const struct tier_record *);

/*
 * tier_index_load loads a record of the index file.  tier_index_loaded then drops records whose
 * bytes were overwritten, or whose window has a newer record; call it after the last record.
 */
void tier_index_load(struct tier_index *, const struct tier_record *);
void tier_index_loaded(struct tier_index *);

/* Returns the bytes that a window of `len` bytes takes in the ring, a multiple of TIER_BLOCK. */
uint64_t tier_index_padded(uint64_t len);

/* Returns the slot of a record in the index file. */
uint32_t tier_index_slot(const struct tier_index *, uint64_t number);

/* Returns the number of records. */
uint32_t tier_index_count(const struct tier_index *);

#endif
