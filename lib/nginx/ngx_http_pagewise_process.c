
/*
 * The state of libpagewise in a worker: the pool and the loop, which nginx sees
 * as one more connection.
 */


#include "ngx_http_pagewise.h"

#include <dlfcn.h>
#include <sys/resource.h>


#define NGX_HTTP_PAGEWISE_TICK   250        /* time between ticks, ms */
#define NGX_HTTP_PAGEWISE_IDLE   15000000   /* idle time until ticks end, us */
#define NGX_HTTP_PAGEWISE_END    100000     /* wait for jobs at exit, us */
#define NGX_HTTP_PAGEWISE_OPEN   1024       /* most open files of a cache */


typedef struct {
    struct pw_pool             *pool;
    struct pw_loop             *loop;
    const struct pw_send_path  *path;
    ngx_connection_t           *connection;
    ngx_event_t                 tick;
    uint64_t                    used;
} ngx_http_pagewise_process_t;


static ngx_int_t ngx_http_pagewise_process_pin(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_pagewise_connect(ngx_cycle_t *cycle);
static void ngx_http_pagewise_event_handler(ngx_event_t *ev);
static void ngx_http_pagewise_tick_handler(ngx_event_t *ev);
static void ngx_http_pagewise_device(void *arg, const char *message);


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
ngx_http_pagewise_init_process(ngx_cycle_t *cycle,
    ngx_http_pagewise_main_conf_t *pmcf)
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

    pc.ppc_threads = pmcf->threads;
    lc.plc_device = ngx_http_pagewise_device;
    lc.plc_arg = cycle->log;
    lc.plc_client = ngx_http_pagewise_client;
    lc.plc_open_files = ngx_http_pagewise_max_files();

    err = pw_pool_create(&pc, &p->pool);

    if (err == 0) {
        pw_pool_share(p->pool, pmcf->zone->data, ngx_worker);
        err = pw_pool_start(p->pool);
    }

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

    ngx_http_pagewise_close_mounts();

    if (pw_loop_destroy(&p->loop) == 0) {
        (void) pw_pool_destroy(&p->pool, NGX_HTTP_PAGEWISE_END);
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
