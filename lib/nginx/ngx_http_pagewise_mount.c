
/*
 * The roots from which paths are looked up, and opens of paths.
 *
 * There is a root for each mount point, since the library has queues and
 * threads for each device.  So a disk that hangs does not keep requests from
 * opening files on another disk.  A disk thread opens a root when it is first
 * needed.
 */


#include "ngx_http_pagewise.h"

#include <linux/magic.h>
#include <sys/vfs.h>


typedef enum {
    NGX_HTTP_PAGEWISE_MOUNT_NEW = 0,
    NGX_HTTP_PAGEWISE_MOUNT_OPENING,
    NGX_HTTP_PAGEWISE_MOUNT_OPEN,
    NGX_HTTP_PAGEWISE_MOUNT_CLOSED          /* failed; use a parent mount */
} ngx_http_pagewise_mount_e;


struct ngx_http_pagewise_mount_s {
    struct pw_task              task;       /* first member, since it is cast */
    ngx_str_t                   path;       /* with a slash at the end */
    struct pw_root             *root;
    struct pw_root             *no_links;   /* root that follows no links */
    ngx_http_pagewise_mount_e   state;
    ngx_uint_t                  remote;     /* 1 if lookups use a server */
    ngx_queue_t                 waiting;    /* ngx_http_pagewise_open_t */
};


static ngx_int_t ngx_http_pagewise_add_mount(ngx_array_t *mounts,
    u_char *path);
static int ngx_libc_cdecl ngx_http_pagewise_cmp_mounts(const void *one,
    const void *two);
static ngx_http_pagewise_mount_t *ngx_http_pagewise_mount(ngx_str_t *path);
static ngx_int_t ngx_http_pagewise_mount_open(ngx_http_pagewise_mount_t *m);
static int ngx_http_pagewise_mount_work(struct pw_task *task);
static ngx_uint_t ngx_http_pagewise_is_remote(int fd);
static void ngx_http_pagewise_opened(struct pw_waiter *w);
static void ngx_http_pagewise_mount_done(struct pw_waiter *w);


static ngx_http_pagewise_mount_t  *ngx_http_pagewise_mounts; /* longest first */
static ngx_uint_t                  ngx_http_pagewise_nmounts;

/* has the mounts and their paths, which a disk thread may use at exit */
static ngx_pool_t                 *ngx_http_pagewise_mount_pool;


/*
 * Reads the mount points from the kernel, which needs no disk.  Files on a
 * file system that is mounted later are found, too, through the mount that
 * contains the new mount point.
 */

ngx_int_t
ngx_http_pagewise_read_mounts(ngx_cycle_t *cycle)
{
    char          line[2 * NGX_MAX_PATH], path[NGX_MAX_PATH];
    FILE         *f;
    ngx_int_t     rc;
    ngx_pool_t   *pool;
    ngx_array_t  *mounts;

    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    ngx_http_pagewise_mount_pool = pool;

    mounts = ngx_array_create(pool, 32, sizeof(ngx_http_pagewise_mount_t));
    if (mounts == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_pagewise_add_mount(mounts, (u_char *) "/");

    f = fopen("/proc/self/mountinfo", "re");

    while (rc == NGX_OK && f != NULL && fgets(line, sizeof(line), f) != NULL) {

        /* "36 35 98:0 /root /mount/point options ..." */

        if (sscanf(line, "%*s %*s %*s %*s %4095s", path) == 1) {
            rc = ngx_http_pagewise_add_mount(mounts, (u_char *) path);
        }
    }

    if (f != NULL) {
        fclose(f);
    }

    ngx_qsort(mounts->elts, mounts->nelts, sizeof(ngx_http_pagewise_mount_t),
              ngx_http_pagewise_cmp_mounts);

    ngx_http_pagewise_mounts = mounts->elts;
    ngx_http_pagewise_nmounts = mounts->nelts;

    return rc;
}


/*
 * adds a mount point, whose path has \040 etc. for a blank, a tab, a newline
 * and a backslash
 */

static ngx_int_t
ngx_http_pagewise_add_mount(ngx_array_t *mounts, u_char *path)
{
    u_char                     *p, *s;
    ngx_http_pagewise_mount_t  *m;

    m = ngx_array_push(mounts);
    if (m == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(m, sizeof(ngx_http_pagewise_mount_t));

    m->path.data = ngx_pnalloc(mounts->pool, ngx_strlen(path) + 2);
    if (m->path.data == NULL) {
        return NGX_ERROR;
    }

    for (s = path, p = m->path.data; *s; p++) {

        if (s[0] == '\\' && s[1] && s[2] && s[3]) {
            *p = (u_char) (((s[1] - '0') << 6) + ((s[2] - '0') << 3)
                           + (s[3] - '0'));
            s += 4;

        } else {
            *p = *s++;
        }
    }

    if (p[-1] != '/') {
        *p++ = '/';
    }

    *p = '\0';
    m->path.len = p - m->path.data;

    return NGX_OK;
}


static int ngx_libc_cdecl
ngx_http_pagewise_cmp_mounts(const void *one, const void *two)
{
    size_t  a, b;

    a = ((ngx_http_pagewise_mount_t *) one)->path.len;
    b = ((ngx_http_pagewise_mount_t *) two)->path.len;

    return (a < b) - (a > b);
}


void
ngx_http_pagewise_close_mounts(void)
{
    ngx_uint_t                  i;
    ngx_http_pagewise_mount_t  *m;

    m = ngx_http_pagewise_mounts;

    for (i = 0; i < ngx_http_pagewise_nmounts; i++) {
        pw_root_close(&m[i].root);
        pw_root_close(&m[i].no_links);
    }

    ngx_destroy_pool(ngx_http_pagewise_mount_pool);
}


static ngx_http_pagewise_mount_t *
ngx_http_pagewise_mount(ngx_str_t *path)
{
    size_t                      len;
    ngx_uint_t                  i;
    ngx_http_pagewise_mount_t  *m;

    m = ngx_http_pagewise_mounts;

    for (i = 0; i < ngx_http_pagewise_nmounts; i++) {
        len = m[i].path.len;

        if (len <= path->len
            && path->data[len - 1] == '/'
            && m[i].state != NGX_HTTP_PAGEWISE_MOUNT_CLOSED
            && ngx_memcmp(path->data, m[i].path.data, len) == 0)
        {
            return &m[i];
        }
    }

    return NULL;
}


ngx_http_pagewise_mount_t *
ngx_http_pagewise_mount_below(ngx_str_t *path)
{
    ngx_uint_t                  i;
    ngx_http_pagewise_mount_t  *m;

    m = ngx_http_pagewise_mounts;

    for (i = 0; i < ngx_http_pagewise_nmounts; i++) {
        if (m[i].path.len > path->len
            && ngx_memcmp(m[i].path.data, path->data, path->len) == 0)
        {
            return NULL;
        }
    }

    return ngx_http_pagewise_mount(path);
}


static ngx_int_t
ngx_http_pagewise_mount_open(ngx_http_pagewise_mount_t *m)
{
    uint64_t  queue;

    if (m->state == NGX_HTTP_PAGEWISE_MOUNT_OPENING) {
        return NGX_OK;
    }

    m->task.tk_work = ngx_http_pagewise_mount_work;
    m->task.tk_waiter.wt_done = ngx_http_pagewise_mount_done;

    /*
     * gives each mount its own queue; pw_task_run() accepts any number as the
     * device
     */

    queue = (m - ngx_http_pagewise_mounts) + 1;

    if (pw_task_run(ngx_http_pagewise_loop(), queue, &m->task) != 0) {
        return NGX_ERROR;
    }

    ngx_queue_init(&m->waiting);
    m->state = NGX_HTTP_PAGEWISE_MOUNT_OPENING;

    return NGX_OK;
}


static int
ngx_http_pagewise_mount_work(struct pw_task *task)
{
    int                         rc;
    ngx_http_pagewise_mount_t  *m;

    m = (ngx_http_pagewise_mount_t *) task;

    rc = pw_root_open_with((char *) m->path.data, PW_ROOT_ALL_LINKS,
                           &m->root);
    if (rc != 0) {
        return rc;
    }

    m->remote = ngx_http_pagewise_is_remote(pw_root_fd(m->root));

    return pw_root_open_with((char *) m->path.data, PW_ROOT_NO_LINKS,
                             &m->no_links);
}


/*
 * returns 1 for file systems that send each lookup to a server or a process,
 * and for unknown file systems
 */

static ngx_uint_t
ngx_http_pagewise_is_remote(int fd)
{
    ngx_uint_t          i;
    struct statfs       fs;
    static const long   local[] = {
        EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
        F2FS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, OVERLAYFS_SUPER_MAGIC,
        ISOFS_SUPER_MAGIC, SQUASHFS_MAGIC, MSDOS_SUPER_MAGIC
    };

    if (fstatfs(fd, &fs) == -1) {
        return 1;
    }

    for (i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
        if ((long) fs.f_type == local[i]) {
            return 0;
        }
    }

    return 1;
}


/* a file of another device was found by a link, or below a later mount */

ngx_uint_t
ngx_http_pagewise_open_remote(ngx_http_pagewise_open_t *o)
{
    struct pw_file  *file;

    if (o->used == NULL || o->used->remote) {
        return 1;
    }

    file = o->open.op_file;

    return file != NULL && file->fil_dev != pw_root_dev(o->used->root);
}


/*
 * returns the state of a mount whose directory could not be opened: only some
 * errors will occur again, so others are returned once
 */

static ngx_uint_t
ngx_http_pagewise_mount_failed(int err)
{
    switch (err) {

    case ENOSYS:
    case EOPNOTSUPP:
    case EINVAL:
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
        return NGX_HTTP_PAGEWISE_MOUNT_CLOSED;

    default:
        return NGX_HTTP_PAGEWISE_MOUNT_NEW;
    }
}


static void
ngx_http_pagewise_mount_done(struct pw_waiter *w)
{
    ngx_int_t                   rc;
    ngx_err_t                   err;
    ngx_uint_t                  again;
    ngx_queue_t                *q, waiting;
    ngx_http_pagewise_open_t   *o;
    ngx_http_pagewise_mount_t  *m;

    m = (ngx_http_pagewise_mount_t *) w;

    m->state = w->wt_error ? ngx_http_pagewise_mount_failed(-w->wt_error)
                           : NGX_HTTP_PAGEWISE_MOUNT_OPEN;

    if (w->wt_error) {
        pw_root_close(&m->root);
    }

    /* a mount that is opened again has another queue */

    ngx_queue_init(&waiting);

    if (!ngx_queue_empty(&m->waiting)) {
        ngx_queue_add(&waiting, &m->waiting);
        ngx_queue_init(&m->waiting);
    }

    again = m->state != NGX_HTTP_PAGEWISE_MOUNT_NEW;

    while (!ngx_queue_empty(&waiting)) {
        q = ngx_queue_head(&waiting);
        ngx_queue_remove(q);

        o = ngx_queue_data(q, ngx_http_pagewise_open_t, queue);
        o->mount = NULL;
        o->pending = 0;

        err = -w->wt_error;
        rc = again ? ngx_http_pagewise_open(o, &err) : NGX_ERROR;

        if (rc != NGX_AGAIN) {
            o->handler(o->data, rc == NGX_OK ? 0 : err);
        }
    }
}


ngx_int_t
ngx_http_pagewise_open(ngx_http_pagewise_open_t *o, ngx_err_t *err)
{
    int                         rc;
    char                       *path;
    uint64_t                    now;
    ngx_http_pagewise_mount_t  *m;

    now = ngx_http_pagewise_coarse_now();

    ngx_http_pagewise_tick(now);

    m = o->known;

    if (m == NULL || m->state == NGX_HTTP_PAGEWISE_MOUNT_CLOSED) {
        m = ngx_http_pagewise_mount(&o->path);
    }

    if (m == NULL) {

        /* not even "/" could be opened: the kernel lacks openat2() */

        *err = NGX_ENOSYS;
        return NGX_ERROR;
    }

    o->used = m;

    if (m->state != NGX_HTTP_PAGEWISE_MOUNT_OPEN) {

        if (ngx_http_pagewise_mount_open(m) != NGX_OK) {
            *err = NGX_EAGAIN;
            return NGX_ERROR;
        }

        ngx_queue_insert_tail(&m->waiting, &o->queue);
        o->mount = m;

        return ngx_http_pagewise_open_wait(o);
    }

    o->open.op_waiter.wt_done = ngx_http_pagewise_opened;

    for (path = (char *) o->path.data + m->path.len; *path == '/'; path++) {
        /* void */
    }

    rc = pw_file_open(ngx_http_pagewise_loop(),
                      o->no_links ? m->no_links : m->root,
                      *path ? path : ".", now, &o->open);

    if (rc == 0) {
        return NGX_OK;
    }

    if (rc == -EINPROGRESS) {
        return ngx_http_pagewise_open_wait(o);
    }

    *err = -rc;

    return NGX_ERROR;
}


ngx_int_t
ngx_http_pagewise_open_wait(ngx_http_pagewise_open_t *o)
{
    if (o->since == 0) {
        o->since = ngx_http_pagewise_now();
    }

    o->pending = 1;

    return NGX_AGAIN;
}


static void
ngx_http_pagewise_opened(struct pw_waiter *w)
{
    ngx_http_pagewise_open_t  *o;

    o = (ngx_http_pagewise_open_t *) w;

    ngx_http_pagewise_open_end(o, -w->wt_error);
}


void
ngx_http_pagewise_open_end(ngx_http_pagewise_open_t *o, ngx_err_t err)
{
    o->pending = 0;
    o->handler(o->data, err);
}


void
ngx_http_pagewise_open_cancel(ngx_http_pagewise_open_t *o)
{
    if (!o->pending) {
        return;
    }

    o->pending = 0;

    if (o->mount != NULL) {
        ngx_queue_remove(&o->queue);
        o->mount = NULL;
        return;
    }

    (void) pw_open_cancel(&o->open);
}
