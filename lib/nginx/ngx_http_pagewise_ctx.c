
/*
 * The context of a request, and its waits for a disk before the header is
 * sent.
 *
 * A request that waits for an open holds no file; if the request ends, the
 * open is cancelled.
 */


#include "ngx_http_pagewise.h"


static void ngx_http_pagewise_open_handler(void *data, ngx_err_t err);
static void ngx_http_pagewise_timer_handler(ngx_event_t *ev);
static void ngx_http_pagewise_terminate(void *data);
static void ngx_http_pagewise_cleanup(void *data);


/*
 * returns the newest context of the request, also after an internal redirect,
 * which clears r->ctx; NULL if the module did not handle the request
 */

ngx_http_pagewise_ctx_t *
ngx_http_pagewise_get_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t       *cln;
    ngx_http_pagewise_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_pagewise_module);

    if (ctx != NULL || !(r->internal || r->filter_finalize)) {
        return ctx;
    }

    /* subrequests share the pool */

    for (cln = r->pool->cleanup; cln != NULL; cln = cln->next) {
        ctx = cln->data;

        if (cln->handler == ngx_http_pagewise_cleanup && ctx->request == r) {
            return ctx;
        }
    }

    return NULL;
}


ngx_http_pagewise_ctx_t *
ngx_http_pagewise_create_ctx(ngx_http_request_t *r)
{
    ngx_http_cleanup_t       *hcln;
    ngx_pool_cleanup_t       *cln;
    ngx_http_pagewise_ctx_t  *ctx, *before;

    before = ngx_http_pagewise_get_ctx(r);

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_pagewise_ctx_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);
    hcln = ngx_http_cleanup_add(r, 0);

    if (ctx == NULL || cln == NULL || hcln == NULL) {
        return NULL;
    }

    ctx->request = r;
    ctx->rc = NGX_OK;
    ctx->fd = NGX_INVALID_FILE;
    ctx->refused = NGX_INVALID_FILE;
    ctx->wait = before != NULL ? before->wait : 0;
    ctx->open.data = ctx;
    ctx->open.open.op_waiter.wt_client =
        ngx_http_pagewise_client_number(r->connection);
    ctx->open.handler = ngx_http_pagewise_open_handler;
    ctx->timer.data = ctx;
    ctx->timer.handler = ngx_http_pagewise_timer_handler;
    ctx->timer.log = r->connection->log;

    hcln->handler = ngx_http_pagewise_terminate;
    hcln->data = ctx;

    cln->handler = ngx_http_pagewise_cleanup;
    cln->data = ctx;

    ngx_http_set_ctx(r, ctx, ngx_http_pagewise_module);

    return ctx;
}


/* called when the request is terminated; no callback may follow */

static void
ngx_http_pagewise_terminate(void *data)
{
    ngx_http_pagewise_ctx_t  *ctx = data;

    ctx->closed = 1;

    ngx_http_pagewise_open_cancel(&ctx->open);

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    ngx_http_pagewise_send_close(ctx);
}


/*
 * called when the pool of the request is freed, since until then a thread of
 * nginx ("aio threads") may use the file
 */

static void
ngx_http_pagewise_cleanup(void *data)
{
    ngx_http_pagewise_ctx_t  *ctx = data;

    ngx_http_pagewise_terminate(ctx);

    pw_file_unref(&ctx->open.open.op_file);
    pw_file_unref(&ctx->file);

    if (ctx->body != NULL) {
        ngx_http_pagewise_copy_unref(ctx->body);
    }
}


/* begins a wait, which ngx_http_pagewise_continue() ends */

ngx_int_t
ngx_http_pagewise_wait(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    r->main->count++;

    r->connection->log->action = "waiting for a disk";

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    /* epoll may have reported already that the client closed the connection */

    if (r->connection->read->ready
        && r->http_version < NGX_HTTP_VERSION_20)
    {
        ngx_post_event(r->connection->read, &ngx_posted_events);
    }

    ngx_add_timer(&ctx->timer, clcf->send_timeout);

    return NGX_DONE;
}


static void
ngx_http_pagewise_open_handler(void *data, ngx_err_t err)
{
    ngx_http_pagewise_ctx_t  *ctx = data;

    ctx->wait += ngx_http_pagewise_now() - ctx->open.since;
    ctx->open.since = 0;

    ngx_http_pagewise_continue(ctx, err);
}


static void
ngx_http_pagewise_timer_handler(ngx_event_t *ev)
{
    ngx_http_pagewise_ctx_t  *ctx = ev->data;

    ngx_http_pagewise_open_cancel(&ctx->open);
    ngx_http_pagewise_send_close(ctx);

    ngx_http_pagewise_continue(ctx, NGX_ETIMEDOUT);
}


void
ngx_http_pagewise_continue(ngx_http_pagewise_ctx_t *ctx, ngx_err_t err)
{
    ngx_int_t            rc;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = ctx->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    r->read_event_handler = ngx_http_block_reading;

    rc = ctx->resume(r, ctx, err);

    if (rc == NGX_DECLINED) {

        /* the next content handler serves the request */

        r->write_event_handler = ngx_http_core_run_phases;
        r->phase_handler++;
        ngx_http_core_run_phases(r);

    } else {
        ngx_http_finalize_request(r, rc);
    }

    ngx_http_run_posted_requests(c);
}
