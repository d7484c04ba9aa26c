/*
 * several: a module of nginx, for tests.  `several PATH ...` in a location sends these files one after the other in
 * each response, as modules do that concatenate files.
 */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

static char *several_set(ngx_conf_t *, ngx_command_t *, void *paths);
static void *several_create(ngx_conf_t *);

static ngx_command_t several_commands[] = {
    {ngx_string("several"),
	NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_1MORE, several_set,
	NGX_HTTP_LOC_CONF_OFFSET, 0, NULL},
    ngx_null_command};

static ngx_http_module_t several_context = {
    NULL, NULL, NULL, NULL, NULL, NULL, several_create, NULL};

static ngx_module_t several_module = {NGX_MODULE_V1, &several_context,
    several_commands, NGX_HTTP_MODULE, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NGX_MODULE_V1_PADDING};

/* nginx looks for these names. */
ngx_module_t *ngx_modules[] = {&several_module, NULL};
char *ngx_module_names[] = {"several", NULL};

/* Returns a link with the whole file, or NULL. */
static ngx_chain_t *
several_open(ngx_http_request_t *r, ngx_str_t *path)
{
	ngx_http_core_loc_conf_t *core =
	    ngx_http_get_module_loc_conf(r, ngx_http_core_module);
	ngx_open_file_info_t of = {.valid = core->open_file_cache_valid,
	    .min_uses = core->open_file_cache_min_uses,
	    .directio = NGX_OPEN_FILE_DIRECTIO_OFF};
	ngx_chain_t *link = ngx_alloc_chain_link(r->pool);
	ngx_file_t *file = ngx_pcalloc(r->pool, sizeof(*file));
	ngx_buf_t *b = ngx_calloc_buf(r->pool);

	if (link == NULL || file == NULL || b == NULL ||
	    ngx_open_cached_file(core->open_file_cache, path, &of, r->pool) !=
		NGX_OK)
		return NULL;
	file->fd = of.fd;
	file->name = *path;
	file->log = r->connection->log;
	b->in_file = 1;
	b->file = file;
	b->file_last = of.size;
	link->buf = b;
	link->next = NULL;
	return link;
}

static ngx_int_t
several_handler(ngx_http_request_t *r)
{
	ngx_array_t *paths = ngx_http_get_module_loc_conf(r, several_module);
	ngx_chain_t *out = NULL, **end = &out;
	ngx_int_t rc = ngx_http_discard_request_body(r);
	ngx_uint_t i;

	if (rc != NGX_OK)
		return rc;
	r->headers_out.status = NGX_HTTP_OK;
	r->headers_out.content_length_n = 0;
	for (i = 0; i < paths->nelts; i++) {
		*end = several_open(r, (ngx_str_t *)paths->elts + i);
		if (*end == NULL)
			return NGX_HTTP_NOT_FOUND;
		r->headers_out.content_length_n += (*end)->buf->file_last;
		(*end)->buf->last_buf = i + 1 == paths->nelts;
		end = &(*end)->next;
	}
	rc = ngx_http_send_header(r);
	if (rc == NGX_ERROR || rc > NGX_OK || r->header_only)
		return rc;
	return ngx_http_output_filter(r, out);
}

static char *
several_set(ngx_conf_t *cf, ngx_command_t *cmd, void *paths)
{
	ngx_http_core_loc_conf_t *core =
	    ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
	size_t n = cf->args->nelts - 1;
	ngx_str_t *to = ngx_array_push_n(paths, n);

	(void)cmd;
	if (to == NULL)
		return NGX_CONF_ERROR;
	ngx_memcpy(to, (ngx_str_t *)cf->args->elts + 1, n * sizeof(*to));
	core->handler = several_handler;
	return NGX_CONF_OK;
}

static void *
several_create(ngx_conf_t *cf)
{
	return ngx_array_create(cf->pool, 2, sizeof(ngx_str_t));
}
