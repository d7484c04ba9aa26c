/*
 * file: open files, and each loop's cache of them.
 */
#ifndef LIB_FILE_FILE_H
#define LIB_FILE_FILE_H

#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "lib/disk/file_private.h"
#include "lib/os/os.h"
#include "lib/pagewise.h"

struct pw_root {
	atomic_uint rt_refs;
	int rt_fd;
	dev_t rt_dev;
	ino_t rt_ino;
	bool rt_cached; /* true if OS_CACHED works for this root */
	int rt_links;	/* rule: OS_NO_LINKS, OS_AS_SLASH, OS_ALL_LINKS, or 0 */
};

/* Adds a reference.  Any thread that already has a reference may call it. */
void file_root_ref(struct pw_root *);

/*
 * Releases a reference.  After the last release, a disk thread closes the root.  Call it on the
 * loop's thread.
 */
void file_root_unref(struct pw_loop *, struct pw_root **);

/* List of open operations that wait for the result of one lookup; op_others points to the list. */
TAILQ_HEAD(opens, pw_open);

/* Opens that wait for one disk thread.  op_others points to it, so that pw_open_cancel finds the waiter. */
struct awaited {
	struct opens aw_opens;
	/* waiter of a job that need not run if all opens are cancelled, or NULL */
	struct pw_waiter *aw_waiter;
};

/* Result of a lookup, from which file_create makes a struct pw_file. */
struct found {
	int fnd_fd;    /* descriptor if a regular file was opened, else -1 */
	bool fnd_same; /* true if the cached file is unchanged */
	struct stat fnd_stat;
	bool fnd_attributed; /* true if the attribute was read */
	char *fnd_attribute; /* attribute's value, from malloc(3), or NULL */
	size_t fnd_attribute_len;
};

/*
 * Looks `path` up, and opens it if it is a regular file.  Opens a file of another type only if
 * that file replaces a regular file between lookup and open.  `old` is the cached file, or NULL:
 * if `path` still leads to that file, and the file is unchanged, file_find sets fnd_same and
 * opens nothing.  `attribute` is the name of an attribute to read from the opened file, or NULL.
 * With `attribute` and OS_CACHED, file_find fails with -EAGAIN instead of opening the file,
 * since reading the attribute may wait.
 */
int file_find(const struct pw_root *, const char *path, enum os_resolve,
    const struct pw_file *old, const char *attribute, struct found *);

/* Reads the attribute of an opened result, and ignores errors.  May wait. */
void file_read_attribute(struct found *, const char *attribute);

/* Closes and frees a result that is not used. */
void file_found_drop(struct found *);

/* Returns true if `st` describes the same file, unchanged since it was looked up. */
bool file_unchanged(const struct pw_file *, const struct stat *);

/*
 * Checks by fstat(2), after a read, that the file still has fil_size and fil_mtime.  Returns 0,
 * -ESTALE if the bytes may be of another version, or -errno.  A change of ctime alone (chmod,
 * rename, unlink) does not make another version, unless mtime is 0 or 1, which has no meaning.  The
 * kernel sets these times before it changes the bytes, so a file that is unchanged after a read was
 * unchanged during the read.  With `may_grow`, a larger file is no other version (snd_grows).  Any
 * thread may call it; the call may wait for the server of a network file system.
 */
int file_check(const struct pw_file *, bool may_grow);

/*
 * Returns true if an open file is unchanged since it was looked up; otherwise sets fil_stale.
 * Calls fstat(2) at most once in an iteration of the loop.  If the file is not regular, or on a
 * network file system, where fstat(2) may wait, only fil_stale decides.
 */
bool file_is_fresh(struct pw_file *);

/*
 * Calls plc_device with each pending message about the file's device (device_announce).  Call it on
 * the loop's thread.
 */
void file_announce(const struct pw_file *);

/*
 * Creates a file with one reference.  Takes ownership of descriptor and attribute, even on failure.
 * Returns 0 or -ENOMEM.  Loop's thread.
 */
int file_create(struct pw_loop *, struct found *, struct pw_file **);

/*
 * Creates a loop's cache of at most `size` open files (0 means 1024), by root and path.  When the
 * cache is full, it closes the least recently used file.  If a path is opened a second or more after
 * its last lookup, the cache looks the path up again.  The cache also remembers for a second that the
 * pool did not find a path (negative_cache.h).  Returns NULL if memory is short.
 */
struct file_cache *file_cache_create(unsigned size);
void file_cache_destroy(struct file_cache **);
void file_cache_age(struct file_cache *, uint64_t now_us);

/* Closes the least recently used file that only the cache refers to.  Returns false if there is none. */
bool file_cache_spare(struct file_cache *);

#endif
