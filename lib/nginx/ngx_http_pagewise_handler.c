
/*
 * The content handlers, which replace the static module, and the index module
 * for the names of "pagewise_index".  Disk threads of libpagewise wait for the
 * disk, not the worker.
 */


#include "ngx_http_pagewise.h"


static void ngx_http_pagewise_set_path(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, u_char *last);
static ngx_int_t ngx_http_pagewise_error(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, const char *what, ngx_err_t err);
static ngx_int_t ngx_http_pagewise_ready(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_err_t err);
static ngx_int_t ngx_http_pagewise_respond_file(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);
static ngx_int_t ngx_http_pagewise_respond(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_open_file_info_t *of);
static ngx_int_t ngx_http_pagewise_try_index(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);
static ngx_int_t ngx_http_pagewise_index_found(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_err_t err);


/* returns 1 if the static module must serve the request */

static ngx_uint_t
ngx_http_pagewise_declines(ngx_http_request_t *r)
{
    ngx_http_pagewise_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_pagewise_module);

    return !plcf->enable || ngx_http_pagewise_loop() == NULL;
}


ngx_int_t
ngx_http_pagewise_handler(ngx_http_request_t *r)
{
    u_char                   *last;
    ngx_http_pagewise_ctx_t  *ctx;

    if (ngx_http_pagewise_declines(r)
        || r->uri.data[r->uri.len - 1] == '/')
    {
        return NGX_DECLINED;
    }

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD|NGX_HTTP_POST))) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    ctx = ngx_http_pagewise_create_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the path ends with '\0'; a redirect replaces this byte by '/' */

    last = ngx_http_map_uri_to_path(r, &ctx->path, &ctx->root, 0);
    if (last == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_pagewise_set_path(r, ctx, last);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "http pagewise filename: \"%s\"", ctx->path.data);

    return ngx_http_pagewise_lookup(r, ctx);
}


/*
 * sets the path; if the root has no variables, also sets the mount, which is
 * then the same for all files of the location
 */

static void
ngx_http_pagewise_set_path(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx,
    u_char *last)
{
    ngx_str_t                      root;
    ngx_http_core_loc_conf_t      *clcf;
    ngx_http_pagewise_loc_conf_t  *plcf;

    ctx->path.len = last - ctx->path.data;
    ctx->open.path = ctx->path;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    plcf = ngx_http_get_module_loc_conf(r, ngx_http_pagewise_module);

    if (clcf->root_lengths != NULL || r->uri.data[0] != '/') {
        return;
    }

    if (!plcf->mounted) {

        /* without an alias, includes the slash with which the URI begins */

        root.data = ctx->path.data;
        root.len = clcf->alias ? ctx->root : ctx->root + 1;

        plcf->mount = ngx_http_pagewise_mount_below(&root);
        plcf->mounted = 1;
    }

    ctx->open.known = plcf->mount;
}


ngx_int_t
ngx_http_pagewise_found(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx,
    ngx_err_t err)
{
    ngx_log_t                     *log;
    struct pw_file                *file;
    ngx_http_pagewise_loc_conf_t  *plcf;

    if (err != 0) {
        return ngx_http_pagewise_error(r, ctx, "open()", err);
    }

    log = r->connection->log;

    file = ctx->open.open.op_file;
    ctx->open.open.op_file = NULL;
    ctx->file = file;
    ctx->fd = file->fil_fd;

    r->root_tested = !r->error_page;

    if (file->fil_type == PW_FILE_DIRECTORY) {
        ngx_log_debug0(NGX_LOG_DEBUG_HTTP, log, 0, "http dir");
        return ngx_http_pagewise_redirect(r, ctx);
    }

    if (file->fil_type != PW_FILE_REGULAR) {
        ngx_log_error(NGX_LOG_CRIT, log, 0,
                      "\"%s\" is not a regular file", ctx->path.data);

        return NGX_HTTP_NOT_FOUND;
    }

    /* HEAD, range and conditional requests often do not need the bytes */

    if (r->method != NGX_HTTP_GET
        || file->fil_size == 0
        || r->headers_in.range != NULL
        || r->headers_in.if_modified_since != NULL
        || r->headers_in.if_none_match != NULL
        || r->headers_in.if_unmodified_since != NULL
        || r->headers_in.if_match != NULL)
    {
        return ngx_http_pagewise_respond_file(r, ctx);
    }

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_pagewise_module);

    /* only a transmission counts the request for "pagewise_cache auto" */

    if (plcf->cache != PW_CACHE_AUTO) {
        ctx->body = ngx_http_pagewise_copy_get(file);
    }

    /*
     * Fetches the first window before the header is sent, so that an error of
     * the disk, or a full queue, has a status of its own.
     */

    if (ctx->body == NULL && r == r->main) {

        switch (ngx_http_pagewise_send_ahead(r, ctx, &err)) {

        case NGX_OK:
            break;

        case NGX_AGAIN:
            ctx->resume = ngx_http_pagewise_ready;
            return ngx_http_pagewise_wait(r, ctx);

        default:
            return ngx_http_pagewise_error(r, ctx, "read()", err);
        }
    }

    return ngx_http_pagewise_respond_file(r, ctx);
}


static ngx_int_t
ngx_http_pagewise_error(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx,
    const char *what, ngx_err_t err)
{
    ngx_int_t                  rc;
    ngx_uint_t                 level;
    ngx_http_core_loc_conf_t  *clcf;

    if (ngx_http_pagewise_is_short(r, &ctx->path, err)) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    switch (err) {

    case NGX_ENOENT:
    case NGX_ENOTDIR:
    case NGX_ENAMETOOLONG:

        level = NGX_LOG_ERR;
        rc = NGX_HTTP_NOT_FOUND;
        break;

    case NGX_EACCES:
    case NGX_EMLINK:
    case NGX_ELOOP:

        level = NGX_LOG_ERR;
        rc = NGX_HTTP_FORBIDDEN;
        break;

    case NGX_ETIMEDOUT:

        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "\"%s\": its disk did not respond in time",
                      ctx->path.data);
        return NGX_HTTP_SERVICE_UNAVAILABLE;

    default:

        level = NGX_LOG_CRIT;
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
        break;
    }

    if (rc != NGX_HTTP_NOT_FOUND || clcf->log_not_found) {
        ngx_log_error(level, r->connection->log, err,
                      "%s \"%s\" failed", what, ctx->path.data);
    }

    return rc;
}


ngx_uint_t
ngx_http_pagewise_is_short(ngx_http_request_t *r, ngx_str_t *name,
    ngx_err_t err)
{
    switch (err) {

    case NGX_EAGAIN:
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "\"%V\": the queue of its disk is full", name);
        return 1;

    case NGX_EMFILE:
    case NGX_ENFILE:
        ngx_log_error(NGX_LOG_CRIT, r->connection->log, err,
                      "\"%V\": no descriptor is left; raise "
                      "\"worker_rlimit_nofile\"", name);
        return 1;

    case NGX_ENOMEM:
        ngx_log_error(NGX_LOG_CRIT, r->connection->log, err,
                      "\"%V\": no memory is left", name);
        return 1;

    default:
        return 0;
    }
}


ngx_int_t
ngx_http_pagewise_redirect(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx)
{
    u_char                    *last, *location;
    size_t                     len;
    uintptr_t                  escape;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    ngx_http_clear_location(r);

    r->headers_out.location = ngx_list_push(&r->headers_out.headers);
    if (r->headers_out.location == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    escape = 2 * ngx_escape_uri(NULL, r->uri.data, r->uri.len,
                                NGX_ESCAPE_URI);

    if (!clcf->alias && r->args.len == 0 && escape == 0) {
        len = r->uri.len + 1;
        location = ctx->path.data + ctx->root;

        ctx->path.data[ctx->path.len] = '/';

    } else {
        len = r->uri.len + escape + 1;

        if (r->args.len) {
            len += r->args.len + 1;
        }

        location = ngx_pnalloc(r->pool, len);
        if (location == NULL) {
            ngx_http_clear_location(r);
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (escape) {
            last = (u_char *) ngx_escape_uri(location, r->uri.data,
                                             r->uri.len, NGX_ESCAPE_URI);

        } else {
            last = ngx_copy(location, r->uri.data, r->uri.len);
        }

        *last = '/';

        if (r->args.len) {
            *++last = '?';
            ngx_memcpy(++last, r->args.data, r->args.len);
        }
    }

    r->headers_out.location->hash = 1;
#if (nginx_version >= 1023000)
    r->headers_out.location->next = NULL;
#endif
    ngx_str_set(&r->headers_out.location->key, "Location");
    r->headers_out.location->value.len = len;
    r->headers_out.location->value.data = location;

    return NGX_HTTP_MOVED_PERMANENTLY;
}


static ngx_int_t
ngx_http_pagewise_ready(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx,
    ngx_err_t err)
{
    if (err != 0) {
        return ngx_http_pagewise_error(r, ctx, "read()", err);
    }

    return ngx_http_pagewise_respond_file(r, ctx);
}


static ngx_int_t
ngx_http_pagewise_respond_file(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx)
{
    struct pw_file        *file;
    ngx_open_file_info_t   of;

    file = ctx->file;

    ngx_memzero(&of, sizeof(ngx_open_file_info_t));

    of.fd = file->fil_fd;
    of.size = file->fil_size;
    of.mtime = file->fil_mtime.tv_sec;

    if (ctx->body != NULL) {

        /* the filter need not send the file */

        pw_file_unref(&ctx->file);
    }

    return ngx_http_pagewise_respond(r, ctx, &of);
}


static ngx_int_t
ngx_http_pagewise_respond(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx,
    ngx_open_file_info_t *of)
{
    ngx_int_t     rc;
    ngx_log_t    *log;
    ngx_buf_t    *b;
    ngx_chain_t   out;

    if (r->method == NGX_HTTP_POST) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    log = r->connection->log;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    log->action = "sending response to client";

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = of->size;
    r->headers_out.last_modified_time = of->mtime;

    if (ngx_http_set_etag(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_set_content_type(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->allow_ranges = 1;

    /* allocates before the header is sent, so that a failure can send 500 */

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->body == NULL) {
        b->file = ngx_pcalloc(r->pool, sizeof(ngx_file_t));
        if (b->file == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    b->last_buf = (r == r->main) ? 1 : 0;
    b->last_in_chain = 1;

    if (ctx->body != NULL) {
        b->memory = 1;
        b->start = ctx->body->data;
        b->end = ctx->body->data + ctx->body->size;
        b->pos = b->start;
        b->last = b->end;

    } else {
        b->file_pos = 0;
        b->file_last = of->size;

        b->in_file = b->file_last ? 1 : 0;
        b->sync = (b->last_buf || b->in_file) ? 0 : 1;

        b->file->fd = of->fd;
        b->file->name = ctx->path;
        b->file->log = log;
        b->file->directio = of->is_directio;
    }

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


/* redirects internally to the first name of "pagewise_index" that exists */

ngx_int_t
ngx_http_pagewise_index_handler(ngx_http_request_t *r)
{
    ngx_http_pagewise_ctx_t       *ctx;
    ngx_http_pagewise_loc_conf_t  *plcf;

    if (r->uri.data[r->uri.len - 1] != '/'
        || !(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD|NGX_HTTP_POST))
        || ngx_http_pagewise_declines(r))
    {
        return NGX_DECLINED;
    }

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_pagewise_module);

    if (plcf->index == NULL) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_pagewise_create_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->resume = ngx_http_pagewise_index_found;

    return ngx_http_pagewise_try_index(r, ctx);
}


static ngx_int_t
ngx_http_pagewise_try_index(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx)
{
    u_char                        *last;
    ngx_str_t                     *name;
    ngx_http_core_loc_conf_t      *clcf;
    ngx_http_pagewise_loc_conf_t  *plcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    plcf = ngx_http_get_module_loc_conf(r, ngx_http_pagewise_module);
    name = plcf->index->elts;

    if (ctx->index == plcf->index->nelts) {
        return NGX_DECLINED;
    }

    name += ctx->index;

    last = ngx_http_map_uri_to_path(r, &ctx->path, &ctx->root, name->len);
    if (last == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    last = ngx_cpymem(last, name->data, name->len);
    *last = '\0';

    ngx_http_pagewise_set_path(r, ctx, last);

    ctx->open.no_links = ngx_http_pagewise_lookup_links(clcf);

    return ngx_http_pagewise_lookup_open(r, ctx);
}


/*
 * tries the next name if this name does not exist; leaves other errors to the
 * index module, except a full queue and a timeout
 */

static ngx_int_t
ngx_http_pagewise_index_found(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_err_t err)
{
    u_char                        *last;
    ngx_str_t                      uri, *name;
    ngx_http_pagewise_loc_conf_t  *plcf;

    switch (err) {

    case 0:
        break;

    case NGX_ENOENT:
    case NGX_ENOTDIR:
    case NGX_ENAMETOOLONG:
        ctx->index++;
        return ngx_http_pagewise_try_index(r, ctx);

    case NGX_EAGAIN:
    case NGX_ETIMEDOUT:
        return ngx_http_pagewise_error(r, ctx, "open()", err);

    default:
        return NGX_DECLINED;
    }

    ctx->file = ctx->open.open.op_file;
    ctx->open.open.op_file = NULL;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_pagewise_module);
    name = plcf->index->elts;
    name += ctx->index;

    uri.len = r->uri.len + name->len;

    uri.data = ngx_pnalloc(r->pool, uri.len);
    if (uri.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    last = ngx_cpymem(uri.data, r->uri.data, r->uri.len);
    ngx_memcpy(last, name->data, name->len);

    return ngx_http_internal_redirect(r, &uri, &r->args);
}
