/*
 * negative_cache: remembers paths that the pool did not find, so that a scan for names
 * that do not exist does not read the disk each time.  Each loop has such a cache apart
 * from its cache of open files, so that a scan cannot evict open files.
 */
#ifndef LIB_FILE_NEGATIVE_CACHE_H
#define LIB_FILE_NEGATIVE_CACHE_H

#include <stdint.h>
#include <sys/types.h>

#define NEGATIVE_BYTES	  ((size_t)256 << 10) /* maximum bytes of all paths */
/* lifetime of a path, microseconds */
#define NEGATIVE_FRESH_US 1000000

struct negative_cache;
struct pw_root;

struct negative_cache *negative_create(void);
void negative_destroy(struct negative_cache **);

/*
 * Notes the error of a lookup of `path`.  Ignores errors that may be temporary (EIO, ENOMEM, EMFILE);
 * notes nothing if memory is short.
 */
void negative_add(struct negative_cache *, const struct pw_root *,
    const char *path, int error, uint64_t now_us);

/* Returns the -errno that was noted, or 0 if the path is not known to be missing. */
int negative_find(struct negative_cache *, const struct pw_root *,
    const char *path, uint64_t now_us);

/* Removes expired paths, at most 256 per call. */
void negative_age(struct negative_cache *, uint64_t now_us);

#endif
