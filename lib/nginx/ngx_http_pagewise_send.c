
/*
 * The transmission of a range of a file.
 *
 * Write events of the request and completions of the library drive the
 * transmission (struct pw_send).  The sink of the transmission accepts as many
 * bytes of a window as the next filters have consumed.  Before the rest is
 * sent, the library checks the residency of the rest again, since the kernel
 * may have evicted pages.
 */


#include "ngx_http_pagewise.h"


#define NGX_HTTP_PAGEWISE_SLICE    (2 * 1024 * 1024)
#define NGX_HTTP_PAGEWISE_SETTLED  2       /* least age of a time, s */

#define ngx_http_pagewise_send_of(s)                                          \
    ((ngx_http_pagewise_send_t *)                                             \
        ((u_char *) (s) - offsetof(ngx_http_pagewise_send_t, send)))


static ngx_int_t ngx_http_pagewise_send_error(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);
static ngx_int_t ngx_http_pagewise_sent(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);
static ngx_uint_t ngx_http_pagewise_queues_files(ngx_http_request_t *r);
static const struct pw_sink_ops *ngx_http_pagewise_sink(ngx_http_request_t *r);
static ngx_int_t ngx_http_pagewise_again(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);
static void ngx_http_pagewise_send_finish(ngx_http_pagewise_ctx_t *ctx);
static void ngx_http_pagewise_send_done(struct pw_send *send);


ngx_int_t
ngx_http_pagewise_send(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx)
{
    uint64_t         limit;
    struct pw_send  *send;

    send = &ctx->send->send;

    if (send->snd_pending) {
        return ngx_http_pagewise_pending(r, ctx);
    }

    /* bounds the time slice, in case the next filters never wait */

    limit = send->snd_sent + NGX_HTTP_PAGEWISE_SLICE;

    send->snd_limit = 0;
    send->snd_pace = r->limit_rate;

    for ( ;; ) {

        switch (pw_send_step(send)) {

        case PW_SEND_DONE:
            return ngx_http_pagewise_sent(r, ctx);

        case PW_SEND_AGAIN:
            if (send->snd_sent < limit) {
                break;
            }

            return ngx_http_pagewise_again(r, ctx);

        case PW_SEND_WANT_WRITE:
            return NGX_AGAIN;

        case PW_SEND_PENDING:
            ngx_http_pagewise_tick(ngx_http_pagewise_now());
            return ngx_http_pagewise_pending(r, ctx);

        default: /* PW_SEND_ERROR */
            return ngx_http_pagewise_send_error(r, ctx);
        }
    }
}


/*
 * Handles an error of pw_send_step().  When the origin confirms a cached
 * response, nginx changes the header of the cache file in place.  So the module
 * opens such a file again, and sends it from the present offset on.
 */

static ngx_int_t
ngx_http_pagewise_send_error(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx)
{
    struct pw_send  *send;

    if (ctx->rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    send = &ctx->send->send;
    ctx->file->fil_stale = true;

#if (NGX_HTTP_CACHE)

    if (send->snd_error == -ESTALE
        && r->cache != NULL
        && r->cache->file.fd == ctx->in->buf->file->fd)
    {
        ctx->in->buf->file_pos = send->snd_off;
        ctx->fd = NGX_INVALID_FILE;

        ngx_http_pagewise_send_finish(ctx);

        return NGX_OK;
    }

#endif

    ngx_log_error(NGX_LOG_CRIT, r->connection->log, -send->snd_error,
                  send->snd_error == -ESTALE
                      ? "\"%s\" was changed while it was sent; write a new "
                        "file and rename it"
                      : "read() \"%s\" failed",
                  ctx->path.data);

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_pagewise_sent(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx)
{
    ngx_chain_t  *cl;

    cl = ctx->in;
    ctx->in = cl->next;

    ngx_free_chain(r->pool, cl);
    ngx_http_pagewise_send_finish(ctx);

    return NGX_OK;
}


/*
 * posts the write event, so that other requests run first, as
 * ngx_http_write_filter() does
 */

static ngx_int_t
ngx_http_pagewise_again(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx)
{
    ngx_event_t  *wev;

    wev = r->connection->write;

    if (wev->ready && !wev->delayed) {
        ngx_post_event(wev, &ngx_posted_next_events);
    }

    return NGX_AGAIN;
}


/*
 * returns 1 if nginx would keep windows in the queue of an HTTP/2 connection,
 * or parts of them behind a filter that reads them, such as SSI, and send them
 * by sendfile() whenever the socket is writable, without this filter, so also
 * when the kernel has evicted their pages
 */

static ngx_uint_t
ngx_http_pagewise_queues_files(ngx_http_request_t *r)
{
    return r->connection->sendfile
           && (r->filter_need_in_memory
               || (r->http_version >= NGX_HTTP_VERSION_20
                   && !r->main_filter_need_in_memory));
}


static const struct pw_sink_ops *
ngx_http_pagewise_sink(ngx_http_request_t *r)
{
    return ngx_http_pagewise_queues_files(r)
               ? &ngx_http_pagewise_memory_sink_ops
               : &ngx_http_pagewise_sink_ops;
}


/* ends the hold; the header filters have decided what needs memory */

void
ngx_http_pagewise_send_release(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx)
{
    ctx->hold = 0;
    ctx->send->sink.sk_ops = ngx_http_pagewise_sink(r);
}


unsigned
ngx_http_pagewise_client(void *arg, const struct pw_send *send)
{
    ngx_http_pagewise_send_t  *s;

    s = ngx_http_pagewise_send_of(send);

    if (s->ctx == NULL) {
        return 0;
    }

    return ngx_http_pagewise_client_number(s->ctx->request->connection);
}


unsigned
ngx_http_pagewise_client_number(ngx_connection_t *c)
{
    u_char               *p;
    size_t                len;
    struct sockaddr      *sa;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6  *sin6;
#endif

    sa = c->sockaddr;

    switch (sa->sa_family) {

    case AF_INET:
        p = (u_char *) &((struct sockaddr_in *) sa)->sin_addr;
        len = sizeof(in_addr_t);
        break;

#if (NGX_HAVE_INET6)

    case AF_INET6:
        sin6 = (struct sockaddr_in6 *) sa;
        p = sin6->sin6_addr.s6_addr;
        len = 8;

        if (IN6_IS_ADDR_V4MAPPED(&sin6->sin6_addr)) {
            p += 12;
            len = sizeof(in_addr_t);
        }

        break;

#endif

    default:
        return 0;
    }

    /* a stream of HTTP/2 has the number of its connection */

    return (ngx_crc32_short(p, len) & ~0xfffU) | (c->number & 0xfff);
}


ngx_int_t
ngx_http_pagewise_send_start(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, off_t from, off_t end)
{
    struct pw_send                *send;
    ngx_http_pagewise_send_t      *s;
    ngx_http_core_loc_conf_t      *clcf;
    ngx_http_pagewise_loc_conf_t  *plcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    plcf = ngx_http_get_module_loc_conf(r, ngx_http_pagewise_module);

    s = ngx_calloc(sizeof(ngx_http_pagewise_send_t), r->connection->log);
    if (s == NULL) {
        return NGX_ERROR;
    }

    s->ctx = ctx;
    s->sink.sk_ops = ngx_http_pagewise_sink(r);

    send = &s->send;
    send->snd_path = ngx_http_pagewise_path();
    send->snd_loop = ngx_http_pagewise_loop();
    send->snd_sock = -1;
    send->snd_sink = &s->sink;
    send->snd_begun = !ctx->hold;
    send->snd_file = ctx->file;
    send->snd_off = from;
    send->snd_len = end - from;
    send->snd_readahead = plcf->readahead;
    send->snd_cache = plcf->cache;

    /* as nginx, sends files that grow, such as uploads and logs */

    send->snd_grows = ctx->file->fil_mtime.tv_sec
                      > ngx_time() - NGX_HTTP_PAGEWISE_SETTLED;

    if (plcf->cache == PW_CACHE_KEEP && ctx->out == NULL
        && ctx->file->fil_size >= clcf->directio)
    {
        /* as with "directio", the pages do not stay in memory */

        send->snd_cache = PW_CACHE_DROP;
    }

    send->snd_done = ngx_http_pagewise_send_done;

    ctx->send = s;
    ctx->end = end;

    (void) pw_send_start(send);

    return NGX_OK;
}


static void
ngx_http_pagewise_send_finish(ngx_http_pagewise_ctx_t *ctx)
{
    ctx->wait += ctx->send->send.snd_wait;

    pw_send_finish(&ctx->send->send);
    ngx_free(ctx->send);

    ctx->send = NULL;
}


/*
 * closes a transmission; if it is pending, ngx_http_pagewise_send_done() frees
 * it
 */

void
ngx_http_pagewise_send_close(ngx_http_pagewise_ctx_t *ctx)
{
    if (ctx->send == NULL) {
        return;
    }

    if (!ctx->send->send.snd_pending) {
        ngx_http_pagewise_send_finish(ctx);
        return;
    }

    ctx->wait += ctx->send->send.snd_wait;

    pw_send_cancel(&ctx->send->send);

    ctx->send->ctx = NULL;
    ctx->send = NULL;
}


ngx_int_t
ngx_http_pagewise_send_ahead(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_err_t *err)
{
    *err = NGX_ENOMEM;

    if (!ctx->hold) {
        ctx->hold = 1;

        if (ngx_http_pagewise_send_start(r, ctx, 0, ctx->file->fil_size)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    switch (pw_send_step(&ctx->send->send)) {

    case PW_SEND_PENDING:
        return NGX_AGAIN;

    case PW_SEND_ERROR:
        *err = -ctx->send->send.snd_error;
        return NGX_ERROR;

    default: /* the library offered bytes, and the sink accepted none */
        return NGX_OK;
    }
}


static void
ngx_http_pagewise_send_done(struct pw_send *send)
{
    ngx_int_t                  rc;
    ngx_err_t                  err;
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_pagewise_ctx_t   *ctx;
    ngx_http_pagewise_send_t  *s;

    s = ngx_http_pagewise_send_of(send);
    ctx = s->ctx;

    if (ctx == NULL) {
        pw_send_finish(send);
        ngx_free(s);
        return;
    }

    r = ctx->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "http pagewise done: \"%V\"", &r->uri);

    if (ctx->hold) {
        rc = ngx_http_pagewise_send_ahead(r, ctx, &err);

        if (rc != NGX_AGAIN) {
            ngx_http_pagewise_continue(ctx, rc == NGX_OK ? 0 : err);
        }

        return;
    }

    r->write_event_handler(r);

    ngx_http_run_posted_requests(c);
}
