/*
 * fd_cache: see fd_cache.h.  Together with fd_client.c, which sends, and the event loop of epoll.c
 * or kqueue.c, this is a server for one directory.  Usage: fd_cache DIRECTORY PORT.  Read epoll.c
 * first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fd_cache.h"
#include "server.h"

#define KEPT	(2 * PW_FRESH_US) /* microseconds */
#define BUCKETS 1024

/* An open file.  A real cache has a limit, and one open for all clients that wait. */
struct entry {
	struct entry *en_next;
	uint64_t en_since;
	int en_fd; /* this program's descriptor */
	struct stat en_stat;
	struct pw_file *en_file; /* the library's file of en_fd */
	char en_name[1024];
};

static struct entry *buckets[BUCKETS];

static struct entry **
bucket_of(const char *name)
{
	unsigned hash = 5381;

	for (; *name != '\0'; name++)
		hash = hash * 33 + (unsigned char)*name;
	return &buckets[hash % BUCKETS];
}

/*
 * Closes entries of the bucket that are older than KEPT.  Returns the newest entry of this name, or
 * NULL.
 */
static struct entry *
cache_find(const char *name)
{
	struct entry **p = bucket_of(name), *en, *found = NULL;

	while ((en = *p) != NULL)
		if (pw_now() > en->en_since + KEPT) {
			*p = en->en_next;
			pw_file_unref(&en->en_file);
			close(en->en_fd);
			free(en);
		} else {
			if (found == NULL && strcmp(en->en_name, name) == 0)
				found = en;
			p = &en->en_next;
		}
	return found;
}

static void
cache_add(const struct cache_open *co, struct pw_file *file)
{
	struct entry *en = calloc(1, sizeof(*en)), **p = bucket_of(co->co_name);

	if (en == NULL)
		abort();
	en->en_next = *p;
	en->en_since = pw_now();
	en->en_fd = co->co_fd;
	en->en_stat = co->co_stat;
	en->en_file = file;
	strcpy(en->en_name, co->co_name);
	pw_file_ref(file);
	*p = en;
}

static void
on_adopted(struct pw_waiter *w)
{
	struct cache_open *co =
	    (struct cache_open *)(void *)((char *)w -
					  offsetof(struct cache_open, co_open));
	struct pw_file *file = co->co_open.op_file;

	if (file != NULL)
		cache_add(co, file);
	else
		close(co->co_fd);
	co->co_done(co, file, w->wt_error);
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/*
 * Keeps the entry if the name still leads to its file: the library knows which bytes of this file
 * are resident, but would have to ask about those of a new one.  Returns false if there is no entry.
 */
static bool
cache_renew(struct cache_open *co)
{
	struct entry *en = cache_find(co->co_name);
	struct pw_file *file;

	if (en == NULL || !is_same(&en->en_stat, &co->co_stat))
		return false;
	close(co->co_fd);
	en->en_since = pw_now();
	file = en->en_file;
	pw_file_ref(file);
	co->co_done(co, file, 0);
	return true;
}

/*
 * Makes the library's file from the descriptor and its stat, from which a server makes the
 * validators.  The first file of a device waits for a disk thread; later files on a local file
 * system do not.
 */
static void
on_opened(struct pw_waiter *w)
{
	struct cache_open *co = (struct cache_open *)(void *)w;
	struct pw_open *op = &co->co_open;

	if (w->wt_error != 0) {
		co->co_done(co, NULL, w->wt_error);
		return;
	}
	if (cache_renew(co))
		return;
	*op = (struct pw_open){.op_waiter.wt_done = on_adopted};
	op->op_waiter.wt_error =
	    pw_file_from_fd(clients_loop, co->co_fd, &co->co_stat, op);
	if (op->op_waiter.wt_error != -EINPROGRESS)
		on_adopted(&op->op_waiter);
}

/* Opens the file on a disk thread, since an open may wait for the disk. */
static int
open_file(struct pw_task *tk)
{
	struct cache_open *co = (struct cache_open *)(void *)tk;

	co->co_fd = pw_root_open_file(clients_root, co->co_name);
	if (co->co_fd < 0)
		return co->co_fd;
	return fstat(co->co_fd, &co->co_stat) == 0 ? 0 : -errno;
}

/* Opens a name anew if its entry is older than a second. */
int
cache_open(struct cache_open *co, struct pw_file **file)
{
	struct entry *en = cache_find(co->co_name);
	int error;

	if (en != NULL && pw_now() <= en->en_since + PW_FRESH_US) {
		*file = en->en_file;
		pw_file_ref(*file);
		return 0;
	}
	co->co_task = (struct pw_task){.tk_waiter.wt_done = on_opened,
	    .tk_again = en != NULL,
	    .tk_work = open_file};
	error =
	    pw_task_run(clients_loop, pw_root_dev(clients_root), &co->co_task);
	return error == 0 ? -EINPROGRESS : error;
}
