
/*
 * The body filter, between the range filter and the copy filter.  The filter
 * passes a file on in windows, but passes a window only when the library has
 * found the window resident, so that later filters and sendfile() do not wait
 * for the disk.
 *
 * Files that other modules send, such as those of proxy_cache, have a
 * descriptor of nginx, from which the library makes a file of its own.
 */


#include "ngx_http_pagewise.h"


static ngx_int_t ngx_http_pagewise_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_int_t ngx_http_pagewise_next_range(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);
static ngx_int_t ngx_http_pagewise_take_on(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_buf_t *b);
static ngx_int_t ngx_http_pagewise_take_file(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_buf_t *b);
static ngx_int_t ngx_http_pagewise_refuse(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_fd_t fd, ngx_err_t err);
static void ngx_http_pagewise_taken_on(void *data, ngx_err_t err);
static void ngx_http_pagewise_free_file(void *data);
static ngx_int_t ngx_http_pagewise_flush(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);
static ngx_int_t ngx_http_pagewise_filter_init(ngx_conf_t *cf);


static ngx_http_module_t  ngx_http_pagewise_filter_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_pagewise_filter_init,         /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_pagewise_filter_module = {
    NGX_MODULE_V1,
    &ngx_http_pagewise_filter_module_ctx,  /* module context */
    NULL,                                  /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_http_output_body_filter_pt  ngx_http_next_body_filter;


/*
 * true if the buffer has bytes of a file that is not a growing temporary file
 */

#define ngx_http_pagewise_is_file(b)                                          \
    ((b)->in_file && !ngx_buf_in_memory(b) && !(b)->temp_file                 \
     && (b)->file_last > (b)->file_pos)

#define ngx_http_pagewise_is_known(ctx, b)                                    \
    ((ctx)->file != NULL && (b)->file->fd == (ctx)->fd)


/* returns 1 if the library must send a buffer of the chain */

static ngx_uint_t
ngx_http_pagewise_has_file(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_pagewise_loc_conf_t  *plcf;

    for (/* void */; in; in = in->next) {

        if (ngx_http_pagewise_is_file(in->buf)) {
            plcf = ngx_http_get_module_loc_conf(r, ngx_http_pagewise_module);

            return plcf->enable && ngx_http_pagewise_loop() != NULL;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_pagewise_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_int_t                 rc;
    ngx_http_pagewise_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_pagewise_module);

    if (ctx == NULL || (ctx->file == NULL && ctx->in == NULL)) {

        if (!ngx_http_pagewise_has_file(r, in)) {
            return ngx_http_next_body_filter(r, in);
        }

        if (ctx == NULL) {
            ctx = ngx_http_pagewise_create_ctx(r);
            if (ctx == NULL) {
                return NGX_ERROR;
            }
        }
    }

    if (ctx->closed) {
        return NGX_ERROR;
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "http pagewise filter: %p, pending:%d \"%V\"", in,
                   ctx->send && ctx->send->send.snd_pending, &r->uri);

    if (ctx->in == NULL && ctx->send == NULL && in == NULL) {
        return ngx_http_next_body_filter(r, NULL);
    }

    if (in != NULL
        && ngx_chain_add_copy(r->pool, &ctx->in, in) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* reentered: a later filter, such as addition, sends another buffer */

    if (ctx->busy) {
        return NGX_OK;
    }

    ctx->rc = NGX_DECLINED;

    for ( ;; ) {

        rc = ngx_http_pagewise_next_range(r, ctx);

        if (rc != NGX_OK) {
            break;
        }

        rc = ngx_http_pagewise_send(r, ctx);

        if (rc != NGX_OK) {
            break;
        }
    }

    if (rc == NGX_AGAIN) {
        r->buffered |= NGX_HTTP_PAGEWISE_BUFFERED;
        return NGX_AGAIN;
    }

    r->buffered &= ~NGX_HTTP_PAGEWISE_BUFFERED;

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    /*
     * the last window was passed on before, but later filters may still hold
     * it in memory
     */

    return ctx->rc == NGX_DECLINED ? ngx_http_pagewise_flush(r, ctx) : ctx->rc;
}


/*
 * Moves the buffers before the next range of the file, such as the header of a
 * part, to ctx->head, which precedes the first window of the range.  Then
 * starts a transmission of the range.  Returns NGX_DONE if there is no further
 * range.
 */

static ngx_int_t
ngx_http_pagewise_next_range(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx)
{
    off_t         from, end;
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t  *cl, **ll;

    if (ctx->send != NULL && !ctx->hold) {
        return NGX_OK;
    }

    for (ll = &ctx->head; *ll; ll = &(*ll)->next) { /* void */ }

    for (cl = ctx->in; cl; cl = ctx->in) {
        b = cl->buf;

        if (ngx_http_pagewise_is_file(b) && b->file->fd != ctx->refused) {

            if (ngx_http_pagewise_is_known(ctx, b)) {
                break;
            }

            rc = ngx_http_pagewise_take_on(r, ctx, b);

            if (rc == NGX_OK) {
                break;
            }

            if (rc != NGX_DECLINED) {
                return rc;
            }
        }

        ctx->in = cl->next;
        cl->next = NULL;
        *ll = cl;
        ll = &cl->next;
    }

    if (cl == NULL) {

        if (ctx->head != NULL) {
            cl = ctx->head;
            ctx->head = NULL;
            ctx->rc = ngx_http_pagewise_next(ctx, cl);

            if (ctx->in != NULL) {
                return ngx_http_pagewise_next_range(r, ctx);
            }
        }

        return ctx->rc == NGX_ERROR ? NGX_ERROR : NGX_DONE;
    }

    from = cl->buf->file_pos;
    end = cl->buf->file_last;

    if (ctx->send != NULL) {

        /*
         * the transmission was started before the header was sent, for the
         * whole file; a filter may have chosen a range since
         */

        ngx_http_pagewise_send_release(r, ctx);

        if (ctx->send->send.snd_file == ctx->file
            && ctx->send->send.snd_off == from && ctx->end == end)
        {
            return NGX_OK;
        }

        ngx_http_pagewise_send_close(ctx);
    }

    return ngx_http_pagewise_send_start(r, ctx, from, end);
}


/*
 * Makes a file of the descriptor in a buffer.  Returns NGX_OK, or NGX_AGAIN if
 * ngx_http_pagewise_taken_on() will be called, or NGX_DECLINED if nginx must
 * send the file itself, or NGX_ERROR.
 */

static ngx_int_t
ngx_http_pagewise_take_on(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx,
    ngx_buf_t *b)
{
    ngx_int_t  rc;
    ngx_err_t  err;

    if (ctx->open.pending) {
        return ngx_http_pagewise_pending(r, ctx);
    }

    if (ctx->open.open.op_file != NULL) {

        /* the wait for the file has ended */

        return ngx_http_pagewise_take_file(r, ctx, b);
    }

    ctx->open.handler = ngx_http_pagewise_taken_on;

    rc = ngx_http_pagewise_adopt(&ctx->open, b->file->fd, &err);

    if (rc == NGX_AGAIN) {
        return ngx_http_pagewise_pending(r, ctx);
    }

    if (rc == NGX_OK) {
        return ngx_http_pagewise_take_file(r, ctx, b);
    }

    return ngx_http_pagewise_refuse(r, ctx, b->file->fd, err);
}


/*
 * lets nginx send a file that the library cannot send, unless the worker only
 * lacks something now: nginx would wait for the disk
 */

static ngx_int_t
ngx_http_pagewise_refuse(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx,
    ngx_fd_t fd, ngx_err_t err)
{
    if (!ngx_http_pagewise_is_short(r, &r->uri, err)) {
        ctx->refused = fd;
        return NGX_DECLINED;
    }

    ctx->closed = 1;

    return NGX_ERROR;
}


static void
ngx_http_pagewise_taken_on(void *data, ngx_err_t err)
{
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_pagewise_ctx_t  *ctx = data;

    r = ctx->request;
    c = r->connection;

    ctx->wait += ngx_http_pagewise_now() - ctx->open.since;
    ctx->open.since = 0;

    if (err != 0) {
        (void) ngx_http_pagewise_refuse(r, ctx, ctx->in->buf->file->fd, err);
    }

    ngx_http_set_log_request(c->log, r);

    r->write_event_handler(r);

    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_pagewise_take_file(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_buf_t *b)
{
    struct pw_file      *file;
    ngx_pool_cleanup_t  *cln;

    file = ctx->open.open.op_file;
    ctx->open.open.op_file = NULL;

    if (ctx->file != NULL) {

        /* later filters may still have windows of the previous file */

        cln = ngx_pool_cleanup_add(r->pool, 0);
        if (cln == NULL) {
            pw_file_unref(&file);
            return NGX_ERROR;
        }

        cln->handler = ngx_http_pagewise_free_file;
        cln->data = ctx->file;
    }

    ctx->file = file;
    ctx->fd = b->file->fd;
    ctx->path = b->file->name;

    if (file->fil_size < b->file_last) {
        ngx_log_error(NGX_LOG_CRIT, r->connection->log, 0,
                      "\"%s\" was truncated; write a new file and "
                      "rename it", ctx->path.data);
        return NGX_ERROR;
    }

    ctx->out = ngx_pcalloc(r->pool, sizeof(ngx_file_t));
    if (ctx->out == NULL) {
        return NGX_ERROR;
    }

    ctx->out->fd = file->fil_fd;
    ctx->out->name = b->file->name;
    ctx->out->log = b->file->log;

    return NGX_OK;
}


static void
ngx_http_pagewise_free_file(void *data)
{
    struct pw_file  *file = data;

    pw_file_unref(&file);
}


ngx_int_t
ngx_http_pagewise_pending(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx)
{
    if (ngx_http_pagewise_flush(r, ctx) == NGX_ERROR) {
        ctx->rc = NGX_ERROR;
        return NGX_ERROR;
    }

    return NGX_AGAIN;
}


/*
 * lets the next filters send the bytes that they have in memory, but no bytes
 * of the file
 */

static ngx_int_t
ngx_http_pagewise_flush(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx)
{
    if (ctx->window != NULL || !r->request_output) {
        return NGX_OK;
    }

    if (r->out == NULL && (r != r->main || !r->connection->buffered)) {
        return NGX_OK;
    }

    return ngx_http_pagewise_next(ctx, NULL);
}


ngx_int_t
ngx_http_pagewise_next(ngx_http_pagewise_ctx_t *ctx, ngx_chain_t *in)
{
    ngx_int_t  rc;

    ctx->busy = 1;
    rc = ngx_http_next_body_filter(ctx->request, in);
    ctx->busy = 0;

    return rc;
}


static ngx_int_t
ngx_http_pagewise_filter_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_pagewise_body_filter;

    /*
     * nginx calls the content handlers from the last to the first, so this
     * handler is called before the handler of the index module
     */

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_CONTENT_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_pagewise_index_handler;

    return NGX_OK;
}
