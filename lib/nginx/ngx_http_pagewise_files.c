
/*
 * The library's files for descriptors that nginx opened, by device and inode.
 * A file stays for a second after its last use, since the library makes a file
 * by several system calls.  Then the module closes the library's file, so that
 * a removed file is freed soon after nginx has closed its descriptor.
 */


#include "ngx_http_pagewise.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>


#define NGX_HTTP_PAGEWISE_FILES       1024
#define NGX_HTTP_PAGEWISE_FILES_KEEP  1000000   /* us */


typedef struct ngx_http_pagewise_entry_s  ngx_http_pagewise_entry_t;

struct ngx_http_pagewise_entry_s {
    ngx_http_pagewise_entry_t  *next;       /* next in the bucket */
    struct pw_file             *file;       /* NULL if the entry is free */
    ngx_queue_t                 queue;
    uint64_t                    used;       /* time of the last use, us */
};


typedef struct {
    ngx_http_pagewise_entry_t   entries[NGX_HTTP_PAGEWISE_FILES];
    ngx_http_pagewise_entry_t  *buckets[NGX_HTTP_PAGEWISE_FILES];
    ngx_queue_t                 queue;      /* most recently used first */
} ngx_http_pagewise_files_t;


static void ngx_http_pagewise_adopted(struct pw_waiter *w);


static ngx_http_pagewise_files_t  *ngx_http_pagewise_files;


static ngx_http_pagewise_entry_t **
ngx_http_pagewise_files_bucket(uint64_t dev, uint64_t ino)
{
    return &ngx_http_pagewise_files->buckets[(ino ^ dev * 31)
                                             % NGX_HTTP_PAGEWISE_FILES];
}


static void
ngx_http_pagewise_files_drop(ngx_http_pagewise_entry_t *e)
{
    ngx_http_pagewise_entry_t  **p;

    p = ngx_http_pagewise_files_bucket(e->file->fil_dev, e->file->fil_ino);

    while (*p != e) {
        p = &(*p)->next;
    }

    *p = e->next;

    ngx_queue_remove(&e->queue);
    ngx_queue_insert_tail(&ngx_http_pagewise_files->queue, &e->queue);

    pw_file_unref(&e->file);
}


static ngx_http_pagewise_entry_t *
ngx_http_pagewise_files_find(uint64_t dev, uint64_t ino)
{
    ngx_http_pagewise_entry_t  *e;

    if (ngx_http_pagewise_files == NULL) {
        return NULL;
    }

    for (e = *ngx_http_pagewise_files_bucket(dev, ino); e; e = e->next) {
        if (e->file->fil_ino == ino && e->file->fil_dev == dev) {
            return e;
        }
    }

    return NULL;
}


static void
ngx_http_pagewise_files_use(ngx_http_pagewise_entry_t *e)
{
    e->used = ngx_http_pagewise_coarse_now();

    ngx_queue_remove(&e->queue);
    ngx_queue_insert_head(&ngx_http_pagewise_files->queue, &e->queue);
}


static ngx_int_t
ngx_http_pagewise_files_init(void)
{
    ngx_uint_t                  i, n;
    ngx_http_pagewise_files_t  *files;

    if (ngx_http_pagewise_files != NULL) {
        return NGX_OK;
    }

    files = ngx_calloc(sizeof(ngx_http_pagewise_files_t), ngx_cycle->log);
    if (files == NULL) {
        return NGX_ERROR;
    }

    ngx_queue_init(&files->queue);

    n = ngx_min(ngx_http_pagewise_max_files(), NGX_HTTP_PAGEWISE_FILES);

    for (i = 0; i < n; i++) {
        ngx_queue_insert_tail(&files->queue, &files->entries[i].queue);
    }

    ngx_http_pagewise_files = files;

    return NGX_OK;
}


void
ngx_http_pagewise_files_add(struct pw_file *file)
{
    ngx_queue_t                 *q;
    ngx_http_pagewise_entry_t   *e, **bucket;

    if (file->fil_type != PW_FILE_REGULAR
        || ngx_http_pagewise_files_init() != NGX_OK)
    {
        return;
    }

    e = ngx_http_pagewise_files_find(file->fil_dev, file->fil_ino);

    if (e != NULL && e->file == file) {
        ngx_http_pagewise_files_use(e);
        return;
    }

    if (e == NULL) {
        q = ngx_queue_last(&ngx_http_pagewise_files->queue);
        e = ngx_queue_data(q, ngx_http_pagewise_entry_t, queue);
    }

    if (e->file != NULL) {
        ngx_http_pagewise_files_drop(e);
    }

    pw_file_ref(file);
    e->file = file;

    bucket = ngx_http_pagewise_files_bucket(file->fil_dev, file->fil_ino);
    e->next = *bucket;
    *bucket = e;

    ngx_http_pagewise_files_use(e);
}


void
ngx_http_pagewise_files_tick(uint64_t now)
{
    ngx_queue_t                *q, *prev;
    ngx_http_pagewise_entry_t  *e;

    if (ngx_http_pagewise_files == NULL) {
        return;
    }

    for (q = ngx_queue_last(&ngx_http_pagewise_files->queue);
         q != ngx_queue_sentinel(&ngx_http_pagewise_files->queue);
         q = prev)
    {
        prev = ngx_queue_prev(q);
        e = ngx_queue_data(q, ngx_http_pagewise_entry_t, queue);

        if (e->file == NULL) {
            continue;
        }

        if (now < e->used + NGX_HTTP_PAGEWISE_FILES_KEEP) {
            return;
        }

        ngx_http_pagewise_files_drop(e);
    }
}


void
ngx_http_pagewise_files_close(void)
{
    ngx_http_pagewise_files_tick((uint64_t) -1);

    ngx_free(ngx_http_pagewise_files);
    ngx_http_pagewise_files = NULL;
}


static ngx_uint_t
ngx_http_pagewise_files_same(struct timespec *ts, struct statx_timestamp *sx)
{
    return ts->tv_sec == (time_t) sx->tv_sec
           && (uint32_t) ts->tv_nsec == sx->tv_nsec;
}


/* sends no request to a file server, but returns the kernel's cached values */

static ngx_int_t
ngx_http_pagewise_files_stat(ngx_fd_t fd, struct statx *stx)
{
    return statx(fd, "", AT_EMPTY_PATH|AT_STATX_DONT_SYNC, STATX_BASIC_STATS,
                 stx)
           == -1
           ? NGX_ERROR
           : NGX_OK;
}


ngx_int_t
ngx_http_pagewise_adopt(ngx_http_pagewise_open_t *o, ngx_fd_t fd,
    ngx_err_t *err)
{
    int                         rc;
    struct statx                stx;
    struct pw_file             *file;
    ngx_http_pagewise_entry_t  *e;

    ngx_http_pagewise_tick(ngx_http_pagewise_coarse_now());

    if (ngx_http_pagewise_files_stat(fd, &stx) != NGX_OK) {
        *err = ngx_errno;
        return NGX_ERROR;
    }

    e = ngx_http_pagewise_files_find(makedev(stx.stx_dev_major,
                                             stx.stx_dev_minor),
                                     stx.stx_ino);

    if (e != NULL) {
        file = e->file;

        if (!file->fil_stale
            && (uint64_t) file->fil_size == stx.stx_size
            && ngx_http_pagewise_files_same(&file->fil_mtime, &stx.stx_mtime)
            && ngx_http_pagewise_files_same(&file->fil_ctime, &stx.stx_ctime))
        {
            ngx_http_pagewise_files_use(e);
            pw_file_ref(file);
            o->open.op_file = file;

            return NGX_OK;
        }

        ngx_http_pagewise_files_drop(e);
    }

    o->open.op_waiter.wt_done = ngx_http_pagewise_adopted;

    rc = pw_file_from_fd(ngx_http_pagewise_loop(), fd, NULL, &o->open);

    if (rc == 0) {
        ngx_http_pagewise_files_add(o->open.op_file);
        return NGX_OK;
    }

    if (rc == -EINPROGRESS) {
        return ngx_http_pagewise_open_wait(o);
    }

    *err = -rc;

    return NGX_ERROR;
}


static void
ngx_http_pagewise_adopted(struct pw_waiter *w)
{
    ngx_http_pagewise_open_t  *o;

    o = (ngx_http_pagewise_open_t *) w;

    if (w->wt_error == 0) {
        ngx_http_pagewise_files_add(o->open.op_file);
    }

    ngx_http_pagewise_open_end(o, -w->wt_error);
}
