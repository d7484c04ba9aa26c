
/*
 * nginx' static files by libpagewise: what the parts of the module share.
 *
 * ngx_http_pagewise_module.c         directives, $pagewise_wait
 * ngx_http_pagewise_handler.c        the content handlers
 * ngx_http_pagewise_filter_module.c  the body filter: bytes pass when they are resident
 * ngx_http_pagewise_process.c        the worker's loop and threads, mounts, opening
 *
 * All of it runs on the worker's own thread.
 */

#ifndef _NGX_HTTP_PAGEWISE_H_INCLUDED_
#define _NGX_HTTP_PAGEWISE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <pagewise.h>


/* a bit of r->buffered that nginx does not use */

#define NGX_HTTP_PAGEWISE_BUFFERED  0x08


typedef struct ngx_http_pagewise_mount_s  ngx_http_pagewise_mount_t;
typedef struct ngx_http_pagewise_ctx_s    ngx_http_pagewise_ctx_t;
typedef struct ngx_http_pagewise_send_s   ngx_http_pagewise_send_t;


typedef struct {
    ngx_int_t                   threads;
    ngx_uint_t                  used;       /* "pagewise on" is somewhere */
} ngx_http_pagewise_main_conf_t;


typedef struct {
    ngx_flag_t                  enable;
    uint64_t                    readahead;
    ngx_uint_t                  cache;
    ngx_array_t                *index;      /* of ngx_str_t, or NULL */

    /* the worker's own: the mount of all files here, or NULL; if it is known */
    ngx_http_pagewise_mount_t  *mount;
    ngx_uint_t                  mounted;
} ngx_http_pagewise_loc_conf_t;


/* opening of a path: handler is called unless the answer came at once */

typedef struct {
    struct pw_open              open;
    ngx_str_t                   path;       /* '\0' behind it */
    ngx_http_pagewise_mount_t  *known;      /* that it is on, or NULL */
    ngx_http_pagewise_mount_t  *mount;      /* it waits for this one ... */
    ngx_queue_t                 queue;      /* ... here */
    uint64_t                    since;      /* microseconds; 0: no wait */
    void                      (*handler)(void *data, ngx_err_t err);
    void                       *data;
    unsigned                    pending:1;
} ngx_http_pagewise_open_t;


/*
 * a transmission of a range: not of the request's pool, for it stays until
 * the library has called back
 */

struct ngx_http_pagewise_send_s {
    struct pw_send              send;
    struct pw_sink              sink;
    ngx_http_pagewise_ctx_t    *ctx;        /* NULL: the request has gone */
};


struct ngx_http_pagewise_ctx_s {
    ngx_http_request_t         *request;
    ngx_http_pagewise_open_t    open;
    ngx_event_t                 timer;      /* of a wait before the header */
    ngx_str_t                   path;
    size_t                      root;       /* bytes of path */
    ngx_uint_t                  index;      /* the name that is tried */
    ngx_int_t                 (*resume)(ngx_http_request_t *r,
                                        ngx_http_pagewise_ctx_t *ctx,
                                        ngx_err_t err);

    struct pw_file             *file;
    ngx_http_pagewise_send_t   *send;       /* NULL: no range is under way */
    off_t                       end;        /* of its range */
    ngx_chain_t                *in;         /* not handed on yet */
    ngx_chain_t                *head;       /* goes before the next window */
    ngx_buf_t                  *window;     /* handed on, not taken yet */
    ngx_buf_t                  *copy;       /* of what cannot be asked about */
    ngx_int_t                   rc;         /* of the next filter, if called */
    uint64_t                    wait;       /* microseconds */

    unsigned                    hold:1;     /* the header is not sent yet */
    unsigned                    passed:1;   /* the window was taken whole */
    unsigned                    busy:1;     /* in the next filters */
    unsigned                    closed:1;   /* the request is terminated */
};


/* the process: NULL or -1 if the library did not start */

ngx_int_t ngx_http_pagewise_init_process(ngx_cycle_t *cycle,
    ngx_int_t threads);
void ngx_http_pagewise_exit_process(ngx_cycle_t *cycle);
struct pw_loop *ngx_http_pagewise_loop(void);
const struct pw_send_path *ngx_http_pagewise_path(void);

/* of all paths that begin so; NULL: it depends on what follows */
ngx_http_pagewise_mount_t *ngx_http_pagewise_mount_below(ngx_str_t *path);

/* NGX_OK: o->open.op_file is set; NGX_AGAIN; or NGX_ERROR and *err */
ngx_int_t ngx_http_pagewise_open(ngx_http_pagewise_open_t *o, ngx_err_t *err);
void ngx_http_pagewise_open_cancel(ngx_http_pagewise_open_t *o);
uint64_t ngx_http_pagewise_now(void);
uint64_t ngx_http_pagewise_coarse_now(void);
void ngx_http_pagewise_tick(uint64_t now);

/*
 * the first window of a file, before the header is sent: NGX_OK, NGX_AGAIN,
 * or NGX_ERROR and *err
 */
ngx_int_t ngx_http_pagewise_send_ahead(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_err_t *err);
void ngx_http_pagewise_send_close(ngx_http_pagewise_ctx_t *ctx);

/* ends a wait before the header, with 0 or an error */
void ngx_http_pagewise_continue(ngx_http_pagewise_ctx_t *ctx, ngx_err_t err);
ngx_int_t ngx_http_pagewise_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_pagewise_index_handler(ngx_http_request_t *r);


extern ngx_module_t  ngx_http_pagewise_module;
extern ngx_module_t  ngx_http_pagewise_filter_module;


#endif /* _NGX_HTTP_PAGEWISE_H_INCLUDED_ */
