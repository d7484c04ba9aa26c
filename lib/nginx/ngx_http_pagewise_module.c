
/*
 * The directives, and the variable $pagewise_wait.
 */


#include "ngx_http_pagewise.h"


static ngx_int_t ngx_http_pagewise_wait_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

static ngx_int_t ngx_http_pagewise_add_variables(ngx_conf_t *cf);
static void *ngx_http_pagewise_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_pagewise_init_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_pagewise_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_pagewise_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_pagewise_readahead(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_pagewise_index(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_pagewise_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_pagewise_init_zone(ngx_shm_zone_t *zone,
    void *data);
static ngx_int_t ngx_http_pagewise_module_init_process(ngx_cycle_t *cycle);


static ngx_conf_enum_t  ngx_http_pagewise_cache[] = {
    { ngx_string("keep"), PW_CACHE_KEEP },
    { ngx_string("drop"), PW_CACHE_DROP },
    { ngx_string("auto"), PW_CACHE_AUTO },
    { ngx_null_string, 0 }
};


static ngx_conf_num_bounds_t  ngx_http_pagewise_threads_bounds = {
    ngx_conf_check_num_bounds, 1, 1024
};


static ngx_command_t  ngx_http_pagewise_commands[] = {

    { ngx_string("pagewise"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_HTTP_LIF_CONF
                        |NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_pagewise_loc_conf_t, enable),
      NULL },

    { ngx_string("pagewise_readahead"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_pagewise_readahead,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("pagewise_cache"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_pagewise_loc_conf_t, cache),
      &ngx_http_pagewise_cache },

    { ngx_string("pagewise_index"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_pagewise_index,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("pagewise_threads"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_pagewise_main_conf_t, threads),
      &ngx_http_pagewise_threads_bounds },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_pagewise_module_ctx = {
    ngx_http_pagewise_add_variables,       /* preconfiguration */
    ngx_http_pagewise_init,                /* postconfiguration */

    ngx_http_pagewise_create_main_conf,    /* create main configuration */
    ngx_http_pagewise_init_main_conf,      /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_pagewise_create_loc_conf,     /* create location configuration */
    ngx_http_pagewise_merge_loc_conf       /* merge location configuration */
};


ngx_module_t  ngx_http_pagewise_module = {
    NGX_MODULE_V1,
    &ngx_http_pagewise_module_ctx,         /* module context */
    ngx_http_pagewise_commands,            /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_pagewise_module_init_process, /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_pagewise_exit_process,        /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_str_t  ngx_http_pagewise_wait_name = ngx_string("pagewise_wait");
static ngx_str_t  ngx_http_pagewise_zone_name = ngx_string("pagewise");


static ngx_int_t
ngx_http_pagewise_wait_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                   *p;
    uint64_t                  wait;
    ngx_http_pagewise_ctx_t  *ctx;

    ctx = ngx_http_pagewise_get_ctx(r);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 4);
    if (p == NULL) {
        return NGX_ERROR;
    }

    wait = ctx->wait / 1000;

    if (ctx->send != NULL) {
        wait += ctx->send->send.snd_wait / 1000;
    }

    v->len = ngx_sprintf(p, "%T.%03M", (time_t) (wait / 1000),
                         (ngx_msec_t) (wait % 1000))
             - p;
    v->valid = 1;
    v->no_cacheable = 1;
    v->not_found = 0;
    v->data = p;

    return NGX_OK;
}


static ngx_int_t
ngx_http_pagewise_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var;

    var = ngx_http_add_variable(cf, &ngx_http_pagewise_wait_name,
                                NGX_HTTP_VAR_NOCACHEABLE);
    if (var == NULL) {
        return NGX_ERROR;
    }

    var->get_handler = ngx_http_pagewise_wait_variable;

    return NGX_OK;
}


static void *
ngx_http_pagewise_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_pagewise_main_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_pagewise_main_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->threads = NGX_CONF_UNSET;

    return conf;
}


static char *
ngx_http_pagewise_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_pagewise_main_conf_t  *pmcf = conf;

    ngx_conf_init_value(pmcf->threads, 16);

    return NGX_CONF_OK;
}


static void *
ngx_http_pagewise_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_pagewise_loc_conf_t  *conf;

    conf = ngx_palloc(cf->pool, sizeof(ngx_http_pagewise_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->enable = NGX_CONF_UNSET;
    conf->readahead = (uint64_t) NGX_CONF_UNSET;
    conf->cache = NGX_CONF_UNSET_UINT;
    conf->index = NGX_CONF_UNSET_PTR;
    conf->mount = NULL;
    conf->mounted = 0;

    return conf;
}


static char *
ngx_http_pagewise_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_pagewise_main_conf_t  *pmcf;
    ngx_http_pagewise_loc_conf_t   *prev = parent;
    ngx_http_pagewise_loc_conf_t   *conf = child;

    ngx_conf_merge_value(conf->enable, prev->enable, 0);
    ngx_conf_merge_uint_value(conf->cache, prev->cache, PW_CACHE_KEEP);
    ngx_conf_merge_ptr_value(conf->index, prev->index, NULL);

    if (conf->readahead == (uint64_t) NGX_CONF_UNSET) {
        conf->readahead = prev->readahead == (uint64_t) NGX_CONF_UNSET
                              ? PW_READAHEAD_AUTO
                              : prev->readahead;
    }

    if (conf->enable) {
        pmcf = ngx_http_conf_get_module_main_conf(cf,
                                                  ngx_http_pagewise_module);
        pmcf->used = 1;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_pagewise_readahead(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_pagewise_loc_conf_t  *plcf = conf;

    ssize_t     size;
    ngx_str_t  *value;

    if (plcf->readahead != (uint64_t) NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "auto") == 0) {
        plcf->readahead = PW_READAHEAD_AUTO;
        return NGX_CONF_OK;
    }

    size = ngx_parse_size(&value[1]);

    if (size < 65536) {
        return "is neither \"auto\" nor a size of at least 64k";
    }

    plcf->readahead = size;

    return NGX_CONF_OK;
}


static char *
ngx_http_pagewise_index(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_pagewise_loc_conf_t  *plcf = conf;

    ngx_str_t   *value, *name;
    ngx_uint_t   i;

    if (plcf->index == NGX_CONF_UNSET_PTR) {
        plcf->index = ngx_array_create(cf->pool, 2, sizeof(ngx_str_t));
        if (plcf->index == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (value[i].len == 0
            || ngx_strlchr(value[i].data, value[i].data + value[i].len, '/')
            || ngx_strlchr(value[i].data, value[i].data + value[i].len, '$'))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" is not a file name; set paths and "
                               "variables with \"index\"", &value[i]);
            return NGX_CONF_ERROR;
        }

        name = ngx_array_push(plcf->index);
        if (name == NULL) {
            return NGX_CONF_ERROR;
        }

        *name = value[i];
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_pagewise_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt            *h;
    ngx_http_core_main_conf_t      *cmcf;
    ngx_http_pagewise_main_conf_t  *pmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_CONTENT_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_pagewise_handler;

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_pagewise_module);

    if (!pmcf->used) {
        return NGX_OK;
    }

    pmcf->zone = ngx_shared_memory_add(cf, &ngx_http_pagewise_zone_name,
                                       2 * PW_POOL_SHARED,
                                       &ngx_http_pagewise_module);
    if (pmcf->zone == NULL) {
        return NGX_ERROR;
    }

    pmcf->zone->init = ngx_http_pagewise_init_zone;

    return NGX_OK;
}


/* a reload keeps the memory, as earlier workers still use the same disks */

static ngx_int_t
ngx_http_pagewise_init_zone(ngx_shm_zone_t *zone, void *data)
{
    if (data == NULL) {
        data = ngx_slab_calloc((ngx_slab_pool_t *) zone->shm.addr,
                               PW_POOL_SHARED);
    }

    zone->data = data;

    return data != NULL ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_pagewise_module_init_process(ngx_cycle_t *cycle)
{
    ngx_http_pagewise_main_conf_t  *pmcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    if (ngx_get_conf(cycle->conf_ctx, ngx_http_module) == NULL) {
        return NGX_OK;
    }

    pmcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_pagewise_module);

    if (pmcf == NULL || !pmcf->used) {
        return NGX_OK;
    }

    return ngx_http_pagewise_init_process(cycle, pmcf);
}
