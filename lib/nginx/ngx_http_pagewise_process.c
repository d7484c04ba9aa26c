
/*
 * The state of libpagewise in a worker: the pool, the loop, which nginx sees as
 * one more connection, and the roots from which paths are looked up.
 *
 * There is a root for each mount point, since the library has queues and
 * threads for each device.  So a disk that hangs does not keep requests from
 * opening files on another disk.  A disk thread opens a root when it is first
 * needed.
 */


#include "ngx_http_pagewise.h"

#include <dlfcn.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/vfs.h>


#define NGX_HTTP_PAGEWISE_TICK   250        /* time between ticks, ms */
#define NGX_HTTP_PAGEWISE_IDLE   15000000   /* idle time until ticks end, us */
#define NGX_HTTP_PAGEWISE_END    100000
#define NGX_HTTP_PAGEWISE_OPEN   1024       /* most open files of a cache */


typedef enum {
    NGX_HTTP_PAGEWISE_MOUNT_NEW = 0,
    NGX_HTTP_PAGEWISE_MOUNT_OPENING,
    NGX_HTTP_PAGEWISE_MOUNT_OPEN,
    NGX_HTTP_PAGEWISE_MOUNT_CLOSED          /* failed; use a shorter path */
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


typedef struct {
    struct pw_pool             *pool;
    struct pw_loop             *loop;
    const struct pw_send_path  *path;
    ngx_connection_t           *connection;
    ngx_event_t                 tick;
    uint64_t                    used;
    ngx_http_pagewise_mount_t  *mounts;     /* longest path first */
    ngx_uint_t                  nmounts;
} ngx_http_pagewise_process_t;


static ngx_int_t ngx_http_pagewise_process_pin(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_pagewise_connect(ngx_cycle_t *cycle);
static void ngx_http_pagewise_event_handler(ngx_event_t *ev);
static void ngx_http_pagewise_tick_handler(ngx_event_t *ev);
static void ngx_http_pagewise_device(void *arg, const char *message);

static ngx_int_t ngx_http_pagewise_read_mounts(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_pagewise_add_mount(ngx_cycle_t *cycle,
    ngx_array_t *mounts, u_char *path);
static int ngx_libc_cdecl ngx_http_pagewise_cmp_mounts(const void *one,
    const void *two);
static ngx_http_pagewise_mount_t *ngx_http_pagewise_mount(ngx_str_t *path);
static ngx_int_t ngx_http_pagewise_mount_open(ngx_http_pagewise_mount_t *m);
static int ngx_http_pagewise_mount_work(struct pw_task *task);
static ngx_uint_t ngx_http_pagewise_is_remote(int fd);
static void ngx_http_pagewise_opened(struct pw_waiter *w);
static void ngx_http_pagewise_mount_done(struct pw_waiter *w);


static ngx_http_pagewise_process_t  ngx_http_pagewise;


struct pw_loop *
ngx_http_pagewise_loop(void)
{
    return ngx_http_pagewise.loop;
}


const struct pw_send_path *
ngx_http_pagewise_path(void)
{
    return ngx_http_pagewise.path;
}


uint64_t
ngx_http_pagewise_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}


/*
 * returns the time of the kernel's last tick, at most 10 ms ago, which
 * costs less CPU time than the exact time
 */

uint64_t
ngx_http_pagewise_coarse_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}


/*
 * returns at most a quarter of the limit of descriptors: the library and the
 * module have a cache of open files each, and at least half of the descriptors
 * stay for connections
 */

ngx_uint_t
ngx_http_pagewise_max_files(void)
{
    struct rlimit  rl;

    if (getrlimit(RLIMIT_NOFILE, &rl) == -1) {
        return NGX_HTTP_PAGEWISE_OPEN;
    }

    return ngx_max(ngx_min(rl.rlim_cur / 4, NGX_HTTP_PAGEWISE_OPEN), 1);
}


ngx_int_t
ngx_http_pagewise_init_process(ngx_cycle_t *cycle, ngx_int_t threads)
{
    int                           err;
    struct pw_loop_conf           lc;
    struct pw_pool_conf           pc;
    ngx_http_pagewise_process_t  *p;

    p = &ngx_http_pagewise;

    ngx_memzero(p, sizeof(ngx_http_pagewise_process_t));
    ngx_memzero(&lc, sizeof(struct pw_loop_conf));
    ngx_memzero(&pc, sizeof(struct pw_pool_conf));

    if (ngx_http_pagewise_process_pin(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    /*
     * an error means that some pages were read but not locked, because of the
     * limit of locked memory
     */

    (void) pw_process_prepare();

    pc.ppc_threads = threads;
    lc.plc_device = ngx_http_pagewise_device;
    lc.plc_arg = cycle->log;
    lc.plc_open_files = ngx_http_pagewise_max_files();

    err = pw_pool_create(&pc, &p->pool);

    if (err == 0) {
        err = pw_loop_create(p->pool, &lc, &p->loop);
    }

    if (err != 0) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, -err,
                      "pagewise: cannot start the library");
        return NGX_ERROR;
    }

    p->path = pw_send_default();

    if (ngx_http_pagewise_read_mounts(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_pagewise_connect(cycle);
}


/*
 * Keeps the module loaded.  A worker that exits unloads its modules, but a disk
 * thread may still run the code of this module.
 */

static ngx_int_t
ngx_http_pagewise_process_pin(ngx_cycle_t *cycle)
{
    Dl_info  info;

    if (dladdr(&ngx_http_pagewise, &info) == 0
        || dlopen(info.dli_fname, RTLD_NOW|RTLD_NODELETE) == NULL)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "pagewise: cannot keep the module loaded: %s",
                      dlerror());
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_pagewise_connect(ngx_cycle_t *cycle)
{
    ngx_event_t                  *rev;
    ngx_connection_t             *c;
    ngx_http_pagewise_process_t  *p;

    p = &ngx_http_pagewise;

    c = ngx_get_connection(pw_loop_fd(p->loop), cycle->log);
    if (c == NULL) {
        return NGX_ERROR;
    }

    rev = c->read;
    rev->log = cycle->log;
    rev->handler = ngx_http_pagewise_event_handler;

    p->connection = c;

    p->tick.data = c;
    p->tick.log = cycle->log;
    p->tick.handler = ngx_http_pagewise_tick_handler;
    p->tick.cancelable = 1;

    return ngx_add_event(rev, NGX_READ_EVENT, 0);
}


static void
ngx_http_pagewise_event_handler(ngx_event_t *ev)
{
    pw_loop_drain(ngx_http_pagewise.loop);
}


/*
 * ticks the loop, and sets the timer again only while files may be open or
 * waits pending
 */

static void
ngx_http_pagewise_tick_handler(ngx_event_t *ev)
{
    uint64_t                      now;
    ngx_http_pagewise_process_t  *p;

    p = &ngx_http_pagewise;
    now = ngx_http_pagewise_now();

    pw_loop_tick(p->loop, now);
    ngx_http_pagewise_files_tick(now);

    if (now < p->used + NGX_HTTP_PAGEWISE_IDLE
        || pw_loop_pending(p->loop) > 0)
    {
        ngx_add_timer(ev, NGX_HTTP_PAGEWISE_TICK);
    }
}


static void
ngx_http_pagewise_device(void *arg, const char *message)
{
    ngx_log_error(NGX_LOG_NOTICE, (ngx_log_t *) arg, 0, "pagewise: %s",
                  message);
}


/*
 * frees the loop and the pool, unless disk threads still use them; then the
 * exit of the process frees them
 */

void
ngx_http_pagewise_exit_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                    i;
    ngx_http_pagewise_process_t  *p;

    p = &ngx_http_pagewise;

    if (p->connection != NULL) {
        if (p->tick.timer_set) {
            ngx_del_timer(&p->tick);
        }

        (void) ngx_del_event(p->connection->read, NGX_READ_EVENT, 0);
        ngx_free_connection(p->connection);
        p->connection->fd = (ngx_socket_t) -1;
        p->connection = NULL;
    }

    ngx_http_pagewise_files_close();

    if (p->loop == NULL || pw_loop_pending(p->loop) > 0) {
        return;
    }

    for (i = 0; i < p->nmounts; i++) {
        pw_root_close(&p->mounts[i].root);
        pw_root_close(&p->mounts[i].no_links);
    }

    if (pw_loop_destroy(&p->loop) == 0) {
        (void) pw_pool_destroy(&p->pool, NGX_HTTP_PAGEWISE_END);
    }
}


/*
 * Reads the mount points from the kernel, which needs no disk.  Files on a
 * file system that is mounted later are found, too, through the mount that
 * contains the new mount point.
 */

static ngx_int_t
ngx_http_pagewise_read_mounts(ngx_cycle_t *cycle)
{
    char          line[2 * NGX_MAX_PATH], path[NGX_MAX_PATH];
    FILE         *f;
    ngx_int_t     rc;
    ngx_array_t  *mounts;

    mounts = ngx_array_create(cycle->pool, 32,
                              sizeof(ngx_http_pagewise_mount_t));
    if (mounts == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_pagewise_add_mount(cycle, mounts, (u_char *) "/");

    f = fopen("/proc/self/mountinfo", "re");

    while (rc == NGX_OK && f != NULL && fgets(line, sizeof(line), f) != NULL) {

        /* "36 35 98:0 /root /mount/point options ..." */

        if (sscanf(line, "%*s %*s %*s %*s %4095s", path) == 1) {
            rc = ngx_http_pagewise_add_mount(cycle, mounts, (u_char *) path);
        }
    }

    if (f != NULL) {
        fclose(f);
    }

    ngx_qsort(mounts->elts, mounts->nelts, sizeof(ngx_http_pagewise_mount_t),
              ngx_http_pagewise_cmp_mounts);

    ngx_http_pagewise.mounts = mounts->elts;
    ngx_http_pagewise.nmounts = mounts->nelts;

    return rc;
}


/*
 * decodes \040 etc., which stand for a blank, a tab, a newline and a backslash
 */

static ngx_int_t
ngx_http_pagewise_add_mount(ngx_cycle_t *cycle, ngx_array_t *mounts,
    u_char *path)
{
    u_char                     *p, *s;
    ngx_http_pagewise_mount_t  *m;

    m = ngx_array_push(mounts);
    if (m == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(m, sizeof(ngx_http_pagewise_mount_t));

    m->path.data = ngx_pnalloc(cycle->pool, ngx_strlen(path) + 2);
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


static ngx_http_pagewise_mount_t *
ngx_http_pagewise_mount(ngx_str_t *path)
{
    size_t                      len;
    ngx_uint_t                  i;
    ngx_http_pagewise_mount_t  *m;

    m = ngx_http_pagewise.mounts;

    for (i = 0; i < ngx_http_pagewise.nmounts; i++) {
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

    m = ngx_http_pagewise.mounts;

    for (i = 0; i < ngx_http_pagewise.nmounts; i++) {
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

    queue = (m - ngx_http_pagewise.mounts) + 1;

    if (pw_task_run(ngx_http_pagewise.loop, queue, &m->task) != 0) {
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


ngx_uint_t
ngx_http_pagewise_open_remote(ngx_http_pagewise_open_t *o)
{
    return o->used == NULL || o->used->remote;
}


static void
ngx_http_pagewise_mount_done(struct pw_waiter *w)
{
    ngx_int_t                   rc;
    ngx_err_t                   err;
    ngx_queue_t                *q;
    ngx_http_pagewise_open_t   *o;
    ngx_http_pagewise_mount_t  *m;

    m = (ngx_http_pagewise_mount_t *) w;

    m->state = w->wt_error ? NGX_HTTP_PAGEWISE_MOUNT_CLOSED
                           : NGX_HTTP_PAGEWISE_MOUNT_OPEN;

    while (!ngx_queue_empty(&m->waiting)) {
        q = ngx_queue_head(&m->waiting);
        ngx_queue_remove(q);

        o = ngx_queue_data(q, ngx_http_pagewise_open_t, queue);
        o->mount = NULL;
        o->pending = 0;

        rc = ngx_http_pagewise_open(o, &err);

        if (rc != NGX_AGAIN) {
            o->handler(o->data, rc == NGX_OK ? 0 : err);
        }
    }
}


/*
 * notes a use of the library, and starts the ticks, since some waits end only
 * in a tick
 */

void
ngx_http_pagewise_tick(uint64_t now)
{
    ngx_http_pagewise_process_t  *p;

    p = &ngx_http_pagewise;
    p->used = now;

    if (!p->tick.timer_set) {
        ngx_add_timer(&p->tick, NGX_HTTP_PAGEWISE_TICK);
    }
}


ngx_int_t
ngx_http_pagewise_open(ngx_http_pagewise_open_t *o, ngx_err_t *err)
{
    int                           rc;
    char                         *path;
    uint64_t                      now;
    ngx_http_pagewise_mount_t    *m;
    ngx_http_pagewise_process_t  *p;

    p = &ngx_http_pagewise;
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

    rc = pw_file_open(p->loop, o->no_links ? m->no_links : m->root,
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
