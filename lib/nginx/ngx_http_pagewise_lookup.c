
/*
 * Finds the file of a request by the rules of its location: open_file_cache,
 * disable_symlinks.
 *
 * The module calls ngx_open_cached_file() only for a path that open_file_cache
 * has, or that the library has just looked up, so that the path is in memory.
 * The library then sends the descriptor that nginx found.  nginx looks up no
 * path on a network file system, except a path with links that
 * "disable_symlinks" restricts.
 */


#include "ngx_http_pagewise.h"


static ngx_int_t ngx_http_pagewise_looked_up(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_err_t err);
static ngx_int_t ngx_http_pagewise_lookup_ended(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_int_t rc, ngx_err_t err);
static ngx_int_t ngx_http_pagewise_lookup_nginx(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx);


/* sets the parameters of ngx_open_cached_file() as the static module does */

static ngx_int_t
ngx_http_pagewise_lookup_params(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_open_file_info_t *of)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    ngx_memzero(of, sizeof(ngx_open_file_info_t));

    of->read_ahead = clcf->read_ahead;
    of->directio = clcf->directio;
    of->valid = clcf->open_file_cache_valid;
    of->min_uses = clcf->open_file_cache_min_uses;
    of->errors = clcf->open_file_cache_errors;
    of->events = clcf->open_file_cache_events;

    return ngx_http_set_disable_symlinks(r, clcf, &ctx->path, of);
}


/*
 * returns 1 if ngx_open_cached_file() would use its cache without a system
 * call
 */

static ngx_uint_t
ngx_http_pagewise_lookup_cached(ngx_open_file_cache_t *cache,
    ngx_str_t *name, ngx_open_file_info_t *of)
{
    uint32_t                 hash;
    ngx_int_t                rc;
    ngx_rbtree_node_t       *node;
    ngx_cached_open_file_t  *file;

    hash = ngx_crc32_long(name->data, name->len);
    node = cache->rbtree.root;

    while (node != cache->rbtree.sentinel) {
        file = (ngx_cached_open_file_t *) node;

        rc = (hash < node->key) ? -1 : (hash > node->key);

        if (rc == 0) {
            rc = ngx_strcmp(name->data, file->name);
        }

        if (rc == 0) {

            if (file->fd == NGX_INVALID_FILE && file->err == 0
                && !file->is_dir)
            {
                return 0;
            }

#if (NGX_HAVE_OPENAT)

            if (of->disable_symlinks != file->disable_symlinks
                || of->disable_symlinks_from != file->disable_symlinks_from)
            {
                return 0;
            }

#endif

            return file->use_event
                   || (file->event == NULL
                       && ngx_time() - file->created < of->valid);
        }

        node = (rc < 0) ? node->left : node->right;
    }

    return 0;
}


ngx_uint_t
ngx_http_pagewise_lookup_links(ngx_http_core_loc_conf_t *clcf)
{
#if (NGX_HAVE_OPENAT)
    return clcf->disable_symlinks != NGX_DISABLE_SYMLINKS_OFF;
#else
    return 0;
#endif
}


ngx_int_t
ngx_http_pagewise_lookup(ngx_http_request_t *r, ngx_http_pagewise_ctx_t *ctx)
{
    ngx_open_file_info_t       of;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->open_file_cache != NULL) {

        if (ngx_http_pagewise_lookup_params(r, ctx, &of) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (ngx_http_pagewise_lookup_cached(clcf->open_file_cache, &ctx->path,
                                            &of))
        {
            return ngx_http_pagewise_lookup_nginx(r, ctx);
        }
    }

    ctx->open.no_links = ngx_http_pagewise_lookup_links(clcf);
    ctx->resume = ngx_http_pagewise_looked_up;

    return ngx_http_pagewise_lookup_open(r, ctx);
}


ngx_int_t
ngx_http_pagewise_lookup_open(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx)
{
    ngx_int_t  rc;
    ngx_err_t  err;

    rc = ngx_http_pagewise_open(&ctx->open, &err);

    return ngx_http_pagewise_lookup_ended(r, ctx, rc, err);
}


static ngx_int_t
ngx_http_pagewise_lookup_ended(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_int_t rc, ngx_err_t err)
{
    if (rc == NGX_AGAIN) {
        return ngx_http_pagewise_wait(r, ctx);
    }

    return ctx->resume(r, ctx, rc == NGX_OK ? 0 : err);
}


/*
 * A path without links satisfies each value of "disable_symlinks".  The
 * library looks up a path with links a second time, following the links, so
 * that the path is in memory when nginx checks the owners of the links, and
 * "from".
 */

static ngx_int_t
ngx_http_pagewise_looked_up(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx, ngx_err_t err)
{
    ngx_uint_t                 links;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (err == NGX_EAGAIN || err == NGX_ETIMEDOUT) {
        return ngx_http_pagewise_found(r, ctx, err);
    }

    if (ctx->open.no_links && err == NGX_ELOOP) {
        ctx->open.no_links = 0;
        return ngx_http_pagewise_lookup_open(r, ctx);
    }

    links = ngx_http_pagewise_lookup_links(clcf);

    if (links && !ctx->open.no_links) {
        return ngx_http_pagewise_lookup_nginx(r, ctx);
    }

    if (clcf->open_file_cache == NULL
        || ngx_http_pagewise_open_remote(&ctx->open)
        || (err != 0 && !clcf->open_file_cache_errors))
    {
        return ngx_http_pagewise_found(r, ctx, err);
    }

    return ngx_http_pagewise_lookup_nginx(r, ctx);
}


static ngx_int_t
ngx_http_pagewise_lookup_nginx(ngx_http_request_t *r,
    ngx_http_pagewise_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_err_t                  err;
    struct pw_file            *known;
    ngx_open_file_info_t       of;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    known = ctx->open.open.op_file;
    ctx->open.open.op_file = NULL;

    if (known != NULL) {

        /* most probably the file that nginx is going to find */

        ngx_http_pagewise_files_add(known);
        pw_file_unref(&known);
    }

    if (ngx_http_pagewise_lookup_params(r, ctx, &of) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_open_cached_file(clcf->open_file_cache, &ctx->path, &of, r->pool)
        != NGX_OK)
    {
        if (of.err == 0) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_pagewise_found(r, ctx, of.err);
    }

    r->root_tested = !r->error_page;

    if (of.is_dir) {
        return ngx_http_pagewise_redirect(r, ctx);
    }

    if (!of.is_file) {
        ngx_log_error(NGX_LOG_CRIT, r->connection->log, 0,
                      "\"%s\" is not a regular file", ctx->path.data);

        return NGX_HTTP_NOT_FOUND;
    }

    ctx->resume = ngx_http_pagewise_found;

    rc = ngx_http_pagewise_adopt(&ctx->open, of.fd, &err);

    return ngx_http_pagewise_lookup_ended(r, ctx, rc, err);
}
