
/*
 * The sink of a transmission: passes windows, and bytes in memory, to the next
 * filters, and reports how many bytes these filters have consumed.  The
 * library passes memory instead of a window where residency cannot be checked
 * (FUSE, NFS).
 */


#include "ngx_http_pagewise.h"


static int ngx_http_pagewise_take(struct pw_sink *sink, const char *data,
    size_t len, bool more, size_t *taken);
static int ngx_http_pagewise_take_range(struct pw_sink *sink, off_t off,
    size_t len, bool more, size_t *taken);
static int ngx_http_pagewise_take_window(ngx_http_pagewise_ctx_t *ctx,
    off_t off, size_t len, size_t *taken);
static int ngx_http_pagewise_take_evicted(ngx_http_pagewise_ctx_t *ctx,
    off_t off, const char *data, size_t len, size_t *taken);
static ngx_int_t ngx_http_pagewise_evicted(ngx_http_pagewise_ctx_t *ctx,
    off_t off);
static int ngx_http_pagewise_taken(ngx_http_pagewise_ctx_t *ctx, off_t off,
    size_t len, size_t *taken);
static off_t ngx_http_pagewise_pos(ngx_http_pagewise_ctx_t *ctx);
static ngx_int_t ngx_http_pagewise_copy(ngx_http_pagewise_ctx_t *ctx,
    size_t size);
static char *ngx_http_pagewise_room(struct pw_sink *sink, size_t *room);
static long ngx_http_pagewise_unacked(struct pw_sink *sink);
static ngx_int_t ngx_http_pagewise_hand_on(ngx_http_pagewise_ctx_t *ctx,
    ngx_buf_t *b);
static ngx_buf_t *ngx_http_pagewise_window(ngx_http_pagewise_ctx_t *ctx,
    off_t off, size_t len);


const struct pw_sink_ops  ngx_http_pagewise_sink_ops = {
    ngx_http_pagewise_take,
    ngx_http_pagewise_unacked,
    ngx_http_pagewise_take_range,
    ngx_http_pagewise_room
};


/* accepts no windows */

const struct pw_sink_ops  ngx_http_pagewise_memory_sink_ops = {
    ngx_http_pagewise_take,
    ngx_http_pagewise_unacked,
    NULL,
    ngx_http_pagewise_room
};


#define ngx_http_pagewise_ctx_of(s)                                           \
    (((ngx_http_pagewise_send_t *)                                            \
        ((u_char *) (s) - offsetof(ngx_http_pagewise_send_t, sink)))->ctx)


static int
ngx_http_pagewise_take_range(struct pw_sink *sink, off_t off, size_t len,
    bool more, size_t *taken)
{
    ngx_http_pagewise_ctx_t  *ctx;

    ctx = ngx_http_pagewise_ctx_of(sink);

    *taken = 0;

    if (ctx->hold) {
        return -EAGAIN;
    }

    if (ctx->window != NULL) {
        return ngx_http_pagewise_take_window(ctx, off, len, taken);
    }

    ctx->window = ngx_http_pagewise_window(ctx, off, len);

    if (ctx->window == NULL) {
        return -ENOMEM;
    }

    if (ngx_http_pagewise_hand_on(ctx, ctx->window) == NGX_ERROR) {
        return -EPIPE;
    }

    return ngx_http_pagewise_taken(ctx, off, len, taken);
}


/*
 * If the next filters have consumed bytes since the last report, reports these
 * bytes; the next call then passes the rest on.  Returns -EAGAIN only after it
 * called the next filters, since their write event may have occurred while the
 * transmission was pending, and does not occur again.
 */

static int
ngx_http_pagewise_take_window(ngx_http_pagewise_ctx_t *ctx, off_t off,
    size_t len, size_t *taken)
{
    if (ngx_http_pagewise_pos(ctx) != off) {
        (void) ngx_http_pagewise_taken(ctx, off, len, taken);
        return 0;
    }

    if (ngx_http_pagewise_hand_on(ctx, NULL) == NGX_ERROR) {
        return -EPIPE;
    }

    return ngx_http_pagewise_taken(ctx, off, len, taken);
}


/*
 * Accepts bytes of the window's rest, which the kernel has evicted, so the next
 * filters must not send it from the file.  The bytes replace the rest only when
 * they are complete, since a filter may have announced the length of the whole
 * window, as of a chunk.  With "aio threads" a thread of nginx may be sending
 * the rest, and waits for the disk.
 */

static int
ngx_http_pagewise_take_evicted(ngx_http_pagewise_ctx_t *ctx, off_t off,
    const char *data, size_t len, size_t *taken)
{
    ngx_buf_t  *b;

    b = ctx->window;

#if (NGX_THREADS || NGX_COMPAT)

    if (b->file->thread_handler != NULL) {
        return ngx_http_pagewise_take_window(ctx, off, len, taken);
    }

#endif

    if (b->start == NULL) {

        if (ngx_http_pagewise_pos(ctx) != off) {
            (void) ngx_http_pagewise_taken(ctx, off, len, taken);
            return 0;
        }

        if (ngx_http_pagewise_evicted(ctx, off) != NGX_OK) {
            return -ENOMEM;
        }
    }

    *taken = ngx_min(len, (size_t) (b->end - b->last));
    b->last = ngx_cpymem(b->last, data, *taken);

    if (b->last < b->end) {
        return 0;
    }

    b->in_file = 0;
    b->temporary = 1;

    ctx->window = NULL;

    return ngx_http_pagewise_hand_on(ctx, NULL) == NGX_ERROR ? -EPIPE : 0;
}


/*
 * allocates memory for the window's rest, and frees the memory of an earlier
 * window if the next filters have consumed it
 */

static ngx_int_t
ngx_http_pagewise_evicted(ngx_http_pagewise_ctx_t *ctx, off_t off)
{
    size_t       size;
    ngx_buf_t   *b;
    ngx_pool_t  *pool;

    b = ctx->evicted;
    pool = ctx->request->pool;

    if (b != NULL && b->pos == b->last) {
        (void) ngx_pfree(pool, b->start);
    }

    b = ctx->window;
    size = b->file_last - off;

    b->start = ngx_palloc(pool, size);
    if (b->start == NULL) {
        return NGX_ERROR;
    }

    b->pos = b->start;
    b->last = b->start;
    b->end = b->start + size;

    ctx->evicted = b;

    return NGX_OK;
}


static int
ngx_http_pagewise_taken(ngx_http_pagewise_ctx_t *ctx, off_t off, size_t len,
    size_t *taken)
{
    *taken = ngx_min((off_t) len, ngx_http_pagewise_pos(ctx) - off);

    if (off + (off_t) *taken == ctx->window->file_last) {
        ctx->window = NULL;
        return 0;
    }

    return *taken == len ? 0 : -EAGAIN;
}


static off_t
ngx_http_pagewise_pos(ngx_http_pagewise_ctx_t *ctx)
{
    return ctx->passed ? ctx->window->file_last : ctx->window->file_pos;
}


static ngx_buf_t *
ngx_http_pagewise_window(ngx_http_pagewise_ctx_t *ctx, off_t off, size_t len)
{
    ngx_buf_t  *b;

    b = ngx_calloc_buf(ctx->request->pool);
    if (b == NULL) {
        return NULL;
    }

    b->tag = (ngx_buf_tag_t) &ngx_http_pagewise_filter_module;
    b->in_file = 1;
    b->file = ctx->out != NULL ? ctx->out : ctx->in->buf->file;
    b->file_pos = off;
    b->file_last = off + len;

    return b;
}


/*
 * Passes a buffer to the next filters, or NULL to make them send their
 * buffered bytes.  The next filters return NGX_OK if they do not wait: they
 * have sent all, or keep less than "postpone_output" until more follows.  The
 * next filters also return NGX_OK to a subrequest that is not active yet, and
 * keep its output.
 */

static ngx_int_t
ngx_http_pagewise_hand_on(ngx_http_pagewise_ctx_t *ctx, ngx_buf_t *b)
{
    ngx_chain_t          out, *cl, **ll;
    ngx_http_request_t  *r;

    r = ctx->request;
    cl = NULL;

    if (b != NULL) {
        out.buf = b;
        out.next = NULL;

        cl = ctx->head;
        ctx->head = NULL;

        for (ll = &cl; *ll; ll = &(*ll)->next) { /* void */ }

        *ll = &out;
    }

    ctx->rc = ngx_http_pagewise_next(ctx, cl);

    ctx->passed = (ctx->rc == NGX_OK && r == r->connection->data);

    return ctx->rc;
}


/*
 * Sets ctx->copy to an empty buffer of at least "size" bytes.  Returns
 * NGX_AGAIN if the next filters still need the present buffer, and wait.
 */

static ngx_int_t
ngx_http_pagewise_copy(ngx_http_pagewise_ctx_t *ctx, size_t size)
{
    ngx_buf_t  *b;

    b = ctx->copy;

    if (b != NULL && b->pos != b->last) {

        if (ngx_http_pagewise_hand_on(ctx, NULL) == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (b->pos != b->last && !ctx->passed) {
            return NGX_AGAIN;
        }
    }

    /*
     * the buffer may still hold an earlier small range, which the next filters
     * keep
     */

    if (b == NULL
        || b->pos != b->last
        || (size_t) (b->end - b->start) < size)
    {
        b = ngx_create_temp_buf(ctx->request->pool, size);
        if (b == NULL) {
            return NGX_DECLINED;
        }

        ctx->copy = b;
    }

    b->pos = b->start;
    b->last = b->start;

    return NGX_OK;
}


/*
 * Returns the memory of ctx->copy, so that ngx_http_pagewise_take() need not
 * copy.  Returns other memory if that function will not accept the bytes, or
 * fails.  Returns no memory before the header is sent, so that nothing is
 * read.
 */

static char *
ngx_http_pagewise_room(struct pw_sink *sink, size_t *room)
{
    off_t                     left;
    ngx_http_pagewise_ctx_t  *ctx;
    static char               data[NGX_HTTP_PAGEWISE_COPY];

    ctx = ngx_http_pagewise_ctx_of(sink);

    *room = 0;

    if (ctx->hold) {
        return data;
    }

    *room = sizeof(data);

    if (ctx->window != NULL) {
        return data;
    }

    left = ctx->end - ctx->send->send.snd_off;

    if (left < NGX_HTTP_PAGEWISE_COPY) {
        *room = left;
    }

    switch (ngx_http_pagewise_copy(ctx, *room)) {

    case NGX_OK:
        return (char *) ctx->copy->start;

    case NGX_AGAIN:
        *room = 0;

        /* fall through */

    default: /* NGX_ERROR, NGX_DECLINED */
        return data;
    }
}


/*
 * Accepts bytes in memory: the end of a file, after the library has checked
 * that the file has not changed; all of a file whose residency cannot be
 * checked, read by a disk thread; or a window that was evicted before it was
 * sent, and was read again.
 */

static int
ngx_http_pagewise_take(struct pw_sink *sink, const char *data, size_t len,
    bool more, size_t *taken)
{
    off_t                     off;
    size_t                    size;
    ngx_buf_t                *b, *range;
    ngx_http_pagewise_ctx_t  *ctx;

    ctx = ngx_http_pagewise_ctx_of(sink);
    off = ctx->send->send.snd_off;

    *taken = 0;

    if (ctx->hold) {
        return -EAGAIN;
    }

    if (ctx->window != NULL) {
        return ngx_http_pagewise_take_evicted(ctx, off, data, len, taken);
    }

    if (ctx->rc == NGX_ERROR) {
        return -EPIPE;
    }

    size = ngx_min(len, NGX_HTTP_PAGEWISE_COPY);

    if (ctx->copy == NULL || data != (char *) ctx->copy->start) {

        switch (ngx_http_pagewise_copy(ctx, size)) {

        case NGX_OK:
            break;

        case NGX_AGAIN:
            return -EAGAIN;

        case NGX_ERROR:
            return -EPIPE;

        default: /* NGX_DECLINED */
            return -ENOMEM;
        }

        ngx_memcpy(ctx->copy->start, data, size);
    }

    b = ctx->copy;
    b->pos = b->start;
    b->last = b->start + size;

    *taken = size;

    if (off + (off_t) *taken == ctx->end) {
        range = ctx->in->buf;
        b->flush = range->flush;
        b->last_buf = range->last_buf;
        b->last_in_chain = range->last_in_chain;
    }

    return ngx_http_pagewise_hand_on(ctx, b) == NGX_ERROR ? -EPIPE : 0;
}


/*
 * returns -1 over TLS and HTTP/2, where the number is unknown, and after the
 * request has ended
 */

static long
ngx_http_pagewise_unacked(struct pw_sink *sink)
{
    ngx_connection_t         *c;
    ngx_http_pagewise_ctx_t  *ctx;

    ctx = ngx_http_pagewise_ctx_of(sink);

    if (ctx == NULL || ctx->request->http_version >= NGX_HTTP_VERSION_20) {
        return -1;
    }

    c = ctx->request->connection;

#if (NGX_HTTP_SSL)

    if (c->ssl) {
        return -1;
    }

#endif

    return pw_unacked(c->fd);
}
