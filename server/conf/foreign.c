/*
 * foreign: see foreign.h.
 */
#include "server/conf/foreign.h"

#include <stddef.h>
#include <string.h>

#define NGINX(name, ours)           \
	{                           \
		name, "nginx", ours \
	}
#define CADDY(name, ours)           \
	{                           \
		name, "Caddy", ours \
	}

#define LINKS "signed_links = \"FILE\""
#define SITE  "site \"NAME\" { root = \"DIR\" }"

const struct foreign foreign_names[] = {
    NGINX("add_header", "header = {\"Name: value\"}"),
    NGINX("aio", "send_path = auto"),
    NGINX("auth_basic", "realm = \"TEXT\", with htpasswd = \"FILE\""),
    NGINX("auth_basic_user_file", "htpasswd = \"FILE\""),
    NGINX("brotli_static", "precompressed = {\"br\"}"),
    NGINX("client_header_timeout", "head_timeout = SECONDS"),
    NGINX("directio", "cache = drop"),
    NGINX("error_log", "log_level; messages go to standard error"),
    NGINX("gzip",
	"precompressed = {\"gz\"}, with siblings from pagewise precompress"),
    NGINX("gzip_static", "precompressed = {\"gz\"}"),
    NGINX("http", "the top level of the file"),
    NGINX("keepalive_requests", "max_requests = N"),
    NGINX("large_client_header_buffers", "max_head_size = SIZE"),
    NGINX("limit_conn", "max_connections_per_address = N"),
    NGINX("limit_conn_zone", "max_connections_per_address = N"),
    NGINX("limit_rate", "rate = SIZE, or client_rate = SIZE"),
    NGINX("limit_rate_after", "burst = SIZE"),
    NGINX("limit_req", "request_rate = N/s, with request_burst = N"),
    NGINX("limit_req_zone", "request_rate = N/s, with request_burst = N"),
    NGINX("open_file_cache", "open_files = N"),
    NGINX("output_buffers", "readahead = SIZE"),
    NGINX("real_ip_header", "client_address = x-forwarded-for"),
    NGINX("return", "redirect = {\"FROM TO STATUS\"}"),
    NGINX("rewrite", "redirect = {\"FROM TO STATUS\"}"),
    NGINX("secure_link", LINKS),
    NGINX("secure_link_md5", LINKS),
    NGINX("sendfile", "send_path = auto"),
    NGINX("server", SITE),
    NGINX("server_name", "names = {\"HOST\"}"),
    NGINX("server_tokens", "header = {\"-Server\"}"),
    NGINX("set_real_ip_from", "trusted_proxies = {\"ADDRESS\"}"),
    NGINX("ssl_certificate", "certificate = {\"FILE\"}"),
    NGINX("ssl_certificate_key", "certificate_key = {\"FILE\"}"),
    NGINX("ssl_ciphers", "tls_profile = intermediate"),
    NGINX("ssl_client_certificate", "client_ca = \"FILE\""),
    NGINX("ssl_protocols", "tls_profile = intermediate"),
    NGINX("ssl_session_tickets", "session_tickets = true"),
    NGINX("ssl_verify_client", "verify_client = require"),
    NGINX("stub_status", "admin = \"ADDR:PORT\""),
    NGINX("thread_pool", "threads = N"),
    NGINX("try_files", "try = {\"$path\", \"/FILE\", \"=404\"}"),
    NGINX("worker_connections", "max_connections = N"),
    NGINX("worker_processes", "workers = N"),
    NGINX("worker_shutdown_timeout", "drain_timeout = SECONDS"),
    CADDY("basic_auth", "htpasswd = \"FILE\""),
    CADDY("basicauth", "htpasswd = \"FILE\""),
    CADDY("bind", "listen = {\"ADDR:PORT\"}"),
    CADDY("browse", "autoindex = true"),
    CADDY("encode", "precompressed = {\"zst\", \"gz\"}"),
    CADDY("file_server", SITE),
    CADDY("grace_period", "shutdown_timeout = SECONDS"),
    CADDY("handle", "location \"/PREFIX/\" { }"),
    CADDY("handle_errors", "error_page = {\"404 FILE\"}"),
    CADDY("handle_path", "location \"/PREFIX/\" { alias = \"DIR\" }"),
    CADDY(
	"hide", "dotfiles = false, or location \"*.EXT\" { deny = {\"all\"} }"),
    CADDY("import", "include = {\"FILE\"}"),
    CADDY("log", "access_log = \"FILE\""),
    CADDY("log_skip", "log_exclude = {\"PATH\"}"),
    CADDY("metrics", "admin = \"ADDR:PORT\""),
    CADDY("redir", "redirect = {\"FROM TO STATUS\"}"),
    CADDY("respond", "live = \"PATH\", or try = {\"=404\"}"),
    CADDY("tls", "certificate = {\"FILE\"}"),
    {NULL, NULL, NULL},
};

const struct foreign *
foreign_find(const char *name)
{
	for (const struct foreign *fo = foreign_names; fo->fo_name != NULL;
	     fo++)
		if (strcmp(fo->fo_name, name) == 0)
			return fo;
	return NULL;
}
