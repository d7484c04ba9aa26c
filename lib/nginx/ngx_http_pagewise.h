
/*
 * The module serves static files of nginx by libpagewise.  This header has
 * the types and functions that its files share:
 *
 * ngx_http_pagewise_module.c         directives, $pagewise_wait
 * ngx_http_pagewise_handler.c        the content handlers
 * ngx_http_pagewise_ctx.c            contexts of requests, waits before the header
 * ngx_http_pagewise_lookup.c         open_file_cache and disable_symlinks
 * ngx_http_pagewise_files.c          files of the library for nginx' descriptors
 * ngx_http_pagewise_copy.c           small files in memory
 * ngx_http_pagewise_filter_module.c  the body filter, which passes resident windows
 * ngx_http_pagewise_send.c           the transmission of a range
 * ngx_http_pagewise_sink.c           the sink of a transmission
 * ngx_http_pagewise_process.c        the worker's pool and loop
 * ngx_http_pagewise_mount.c          mounts, and opens of paths
 *
 * All functions run on the worker's thread, except
 * ngx_http_pagewise_mount_work().
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

/* most bytes of a window that are passed on in memory */

#define NGX_HTTP_PAGEWISE_COPY  65536


typedef struct ngx_http_pagewise_mount_s  ngx_http_pagewise_mount_t;
typedef struct ngx_http_pagewise_ctx_s    ngx_http_pagewise_ctx_t;
typedef struct ngx_http_pagewise_send_s   ngx_http_pagewise_send_t;
typedef struct ngx_http_pagewise_copy_s   ngx_http_pagewise_copy_t;


typedef struct {
    ngx_int_t                   threads;
    ngx_uint_t                  used;       /* true if "pagewise on" occurs */
    ngx_shm_zone_t             *zone;       /* memory of all workers' pools */
} ngx_http_pagewise_main_conf_t;


typedef struct {
    ngx_flag_t                  enable;
    uint64_t                    readahead;
    ngx_uint_t                  cache;
    ngx_array_t                *index;      /* names, ngx_str_t; or NULL */

    /*
     * the mount of all files of the location, or NULL if the mount depends on
     * the path; each worker sets "mount", and then "mounted" to 1
     */
    ngx_http_pagewise_mount_t  *mount;
    ngx_uint_t                  mounted;
} ngx_http_pagewise_loc_conf_t;


/*
 * an open of a path; "handler" is called if ngx_http_pagewise_open() returned
 * NGX_AGAIN
 */

typedef struct {
    struct pw_open              open;
    ngx_str_t                   path;       /* followed by '\0' */
    ngx_http_pagewise_mount_t  *known;      /* mount of the path, or NULL */
    ngx_http_pagewise_mount_t  *used;       /* mount of the last lookup */
    ngx_http_pagewise_mount_t  *mount;      /* mount to wait for, or NULL */
    ngx_queue_t                 queue;      /* link in mount->waiting */
    uint64_t                    since;      /* start of the wait, us; or 0 */
    void                      (*handler)(void *data, ngx_err_t err);
    void                       *data;
    unsigned                    pending:1;
    unsigned                    no_links:1; /* 1 to refuse a path with links */
} ngx_http_pagewise_open_t;


/*
 * a transmission of a range; not from the pool of the request, since it must
 * stay valid until the library has called snd_done
 */

struct ngx_http_pagewise_send_s {
    struct pw_send              send;
    struct pw_sink              sink;
    ngx_http_pagewise_ctx_t    *ctx;        /* NULL if the request has ended */
};


/* all bytes of one version of a small file */

struct ngx_http_pagewise_copy_s {
    ngx_uint_t                  refs;
    size_t                      size;
    u_char                      data[];
};


struct ngx_http_pagewise_ctx_s {
    ngx_http_request_t         *request;
    ngx_http_pagewise_open_t    open;
    ngx_event_t                 timer;      /* timeout before the header */
    ngx_str_t                   path;
    size_t                      root;       /* length of the root in path */
    ngx_uint_t                  index;      /* index of the name tried */
    ngx_int_t                 (*resume)(ngx_http_request_t *r,
                                        ngx_http_pagewise_ctx_t *ctx,
                                        ngx_err_t err);

    struct pw_file             *file;
    ngx_fd_t                    fd;         /* descriptor in the buffers */
    ngx_fd_t                    refused;    /* descriptor nginx sends, or -1 */
    ngx_file_t                 *out;        /* file that windows refer to, NULL
                                               for the buffer's own */
    ngx_http_pagewise_send_t   *send;       /* NULL if no range is being sent */
    off_t                       end;        /* end of the range being sent */
    ngx_chain_t                *in;         /* buffers not passed on yet */
    ngx_chain_t                *head;       /* buffers before the next window */
    ngx_buf_t                  *window;     /* window not consumed yet */
    ngx_buf_t                  *evicted;    /* last window that was evicted */
    ngx_buf_t                  *copy;       /* buffer for bytes of take() */
    ngx_http_pagewise_copy_t   *body;       /* response body, or NULL */
    ngx_int_t                   rc;         /* result of the next filter */
    uint64_t                    wait;       /* time spent waiting, us */

    unsigned                    hold:1;     /* 1 until the header is sent */
    unsigned                    passed:1;   /* 1 if the window is consumed */
    unsigned                    busy:1;     /* 1 while the next filters run */
    unsigned                    closed:1;   /* 1 if nothing may be sent */
};


/*
 * start and stop the library in a worker; ngx_http_pagewise_loop() returns
 * NULL if the library did not start
 */

ngx_int_t ngx_http_pagewise_init_process(ngx_cycle_t *cycle,
    ngx_http_pagewise_main_conf_t *pmcf);
void ngx_http_pagewise_exit_process(ngx_cycle_t *cycle);
struct pw_loop *ngx_http_pagewise_loop(void);
const struct pw_send_path *ngx_http_pagewise_path(void);

/* returns how many files a cache of the worker may keep open */
ngx_uint_t ngx_http_pagewise_max_files(void);

/* read the mount points, and close their roots */
ngx_int_t ngx_http_pagewise_read_mounts(ngx_cycle_t *cycle);
void ngx_http_pagewise_close_mounts(void);

/*
 * returns the mount of all paths that begin with "path", or NULL if these
 * paths are on several mounts
 */
ngx_http_pagewise_mount_t *ngx_http_pagewise_mount_below(ngx_str_t *path);

/*
 * opens o->path; returns NGX_OK and sets o->open.op_file, or NGX_AGAIN if
 * o->handler will be called, or NGX_ERROR and sets *err
 */
ngx_int_t ngx_http_pagewise_open(ngx_http_pagewise_open_t *o, ngx_err_t *err);
void ngx_http_pagewise_open_cancel(ngx_http_pagewise_open_t *o);

/*
 * begins the wait of an open, or continues it after a wait for the mount;
 * ngx_http_pagewise_open_end() calls o->handler
 */
ngx_int_t ngx_http_pagewise_open_wait(ngx_http_pagewise_open_t *o);
void ngx_http_pagewise_open_end(ngx_http_pagewise_open_t *o, ngx_err_t err);

/* returns 1 if a lookup on the mount may wait for a server, as on NFS */
ngx_uint_t ngx_http_pagewise_open_remote(ngx_http_pagewise_open_t *o);

/*
 * finds or makes the library's file for a descriptor of nginx, with the
 * present size and times of the file; returns as ngx_http_pagewise_open()
 * does
 */
ngx_int_t ngx_http_pagewise_adopt(ngx_http_pagewise_open_t *o, ngx_fd_t fd,
    ngx_err_t *err);

/* caches a file for ngx_http_pagewise_adopt(), and adds a reference */
void ngx_http_pagewise_files_add(struct pw_file *file);
void ngx_http_pagewise_files_tick(uint64_t now);
void ngx_http_pagewise_files_close(void);
uint64_t ngx_http_pagewise_now(void);
uint64_t ngx_http_pagewise_coarse_now(void);
void ngx_http_pagewise_tick(uint64_t now);

/*
 * returns a copy of the file's present bytes, and adds a reference to the copy;
 * returns NULL if the file is large, not resident or has changed
 */
ngx_http_pagewise_copy_t *ngx_http_pagewise_copy_get(struct pw_file *file);
void ngx_http_pagewise_copy_unref(ngx_http_pagewise_copy_t *copy);

/*
 * fetches the first window of a file before the header is sent; returns
 * NGX_OK, or NGX_AGAIN if ngx_http_pagewise_continue() will be called, or
 * NGX_ERROR and sets *err
 */
ngx_int_t ngx_http_pagewise_send_ahead(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_err_t *err);
void ngx_http_pagewise_send_release(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);

/* starts the transmission of a range of ctx->file */
ngx_int_t ngx_http_pagewise_send_start(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, off_t from, off_t end);

/*
 * sends some of the range; returns NGX_OK when the transmission has ended, else
 * NGX_AGAIN or NGX_ERROR
 */
ngx_int_t ngx_http_pagewise_send(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);
void ngx_http_pagewise_send_close(ngx_http_pagewise_ctx_t *ctx);
unsigned ngx_http_pagewise_client(void *arg, const struct pw_send *send);

/*
 * returns the number of a connection for the library: the upper 20 bits are
 * those of the IPv4 address, or of the IPv6 network of 64 bits
 */
unsigned ngx_http_pagewise_client_number(ngx_connection_t *c);

/*
 * lets the next filters send their buffered bytes while a window is being
 * fetched; returns NGX_AGAIN or NGX_ERROR
 */
ngx_int_t ngx_http_pagewise_pending(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);

/* calls the next body filter */
ngx_int_t ngx_http_pagewise_next(ngx_http_pagewise_ctx_t *ctx,
    ngx_chain_t *in);

/* ends a wait: calls ctx->resume with err, which is 0 on success */
void ngx_http_pagewise_continue(ngx_http_pagewise_ctx_t *ctx, ngx_err_t err);
ngx_http_pagewise_ctx_t *ngx_http_pagewise_get_ctx(ngx_http_request_t *r);
ngx_http_pagewise_ctx_t *ngx_http_pagewise_create_ctx(ngx_http_request_t *r);
ngx_int_t ngx_http_pagewise_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_pagewise_index_handler(ngx_http_request_t *r);

/*
 * opens ctx->path by the location's rules, then calls
 * ngx_http_pagewise_found(); returns its result, or NGX_DONE while waiting
 */
ngx_int_t ngx_http_pagewise_lookup(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);

/* returns 1 if disable_symlinks is on */
ngx_uint_t ngx_http_pagewise_lookup_links(ngx_http_core_loc_conf_t *clcf);

/*
 * opens ctx->open by the library, then calls ctx->resume; returns its result,
 * or NGX_DONE while waiting
 */
ngx_int_t ngx_http_pagewise_lookup_open(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);

ngx_int_t ngx_http_pagewise_found(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_err_t err);

/*
 * returns 1, and logs it, if the error means that the worker lacks something
 * now, so that another request for the file may succeed
 */
ngx_uint_t ngx_http_pagewise_is_short(ngx_http_request_t *r, ngx_str_t *name,
    ngx_err_t err);

/* redirects to the URI with a slash appended, as the static module does */
ngx_int_t ngx_http_pagewise_redirect(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);

/* begins a wait before the header is sent; returns NGX_DONE */
ngx_int_t ngx_http_pagewise_wait(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);


extern const struct pw_sink_ops  ngx_http_pagewise_sink_ops;
extern const struct pw_sink_ops  ngx_http_pagewise_memory_sink_ops;

extern ngx_module_t  ngx_http_pagewise_module;
extern ngx_module_t  ngx_http_pagewise_filter_module;


#endif /* _NGX_HTTP_PAGEWISE_H_INCLUDED_ */
