/*
 * key: the table of keys, and functions that look up keys and set their values.
 */
#include "server/conf/key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/conf/similar.h"

#define K ((uint64_t)1024)
#define M (K * K)
#define G (K * K * K)

#define IN_CONF(field)                                     \
	.key_offset = offsetof(struct conf, conf_##field), \
	.key_width = sizeof(((struct conf *)0)->conf_##field)
#define IN_SETTINGS(field)                                    \
	.key_in_settings = true,                              \
	.key_offset = offsetof(struct settings, set_##field), \
	.key_width = sizeof(((struct settings *)0)->set_##field)
#define RANGE(min, max) .key_min = (min), .key_max = (max)

/* The macros below are for keys of the top level only. */
#define NUMBER(field, min, max)                                                \
	.key_set = conf_set_number, .key_parse = conf_number, RANGE(min, max), \
	IN_CONF(field)
#define SIZE(field, min, max)                                                \
	.key_set = conf_set_number, .key_parse = conf_size, RANGE(min, max), \
	IN_CONF(field)
#define BOOL(field) .key_set = conf_set_bool, IN_CONF(field)

/* The macros below are for keys of sites and locations; the top level may also have such keys. */
#define SET_BOOL(field) .key_set = conf_set_bool, IN_SETTINGS(field)
#define SET_SIZE(field, min, max)                                            \
	.key_set = conf_set_number, .key_parse = conf_size, RANGE(min, max), \
	IN_SETTINGS(field)
#define SET_NUMBER(field, min, max)                                            \
	.key_set = conf_set_number, .key_parse = conf_number, RANGE(min, max), \
	IN_SETTINGS(field)

const struct key conf_keys[] = {
    {"include", KEY_TOP, "0.1", "(none)", "GLOB, ...",
	"more configuration files to read", .key_set = conf_set_include,
	.key_clear = conf_clear_include},
    {"listen", KEY_TOP | KEY_OPTION | KEY_FILLED | KEY_LATE, "0.1",
	"(*:8080, or the service manager's sockets)", "ADDR:PORT|unix:PATH",
	"addresses to listen on: 127.0.0.1:8080, [::1]:8080, *:8080, unix:PATH",
	.key_path = KEY_PATH_UNIX, .key_set = conf_set_listen,
	.key_clear = conf_clear_listen},
    {"trusted_proxies", KEY_TOP, "0.2", "(none)", "ADDR|BLOCK|unix:|all, ...",
	"proxies that are trusted to report the client's address",
	.key_set = conf_set_trusted_proxies,
	.key_clear = conf_clear_trusted_proxies},
    {"client_address", KEY_TOP | KEY_LATE, "0.2", "off",
	"off|x-forwarded-for|forwarded",
	"header field in which trusted_proxies report the client's address",
	.key_set = conf_set_client_address},
    {"certificate", KEY_TOP | KEY_SITE | KEY_LATE, "0.2", "(none)", "FILE, ...",
	"certificates with their chains, PEM; one for each kind of key",
	.key_path = KEY_PATH, .key_set = conf_set_certificate,
	.key_clear = conf_clear_certificate},
    {"certificate_key", KEY_TOP | KEY_SITE | KEY_LATE, "0.2",
	"(in the certificate's file)", "FILE, ...",
	"private keys, in the order of the certificates", .key_path = KEY_PATH,
	.key_set = conf_set_certificate_key,
	.key_clear = conf_clear_certificate_key},
    {"tls_profile", KEY_TOP, "0.2", "intermediate", "intermediate|modern",
	"TLS versions and ciphers, as Mozilla recommends them",
	.key_set = conf_set_tls_profile},
    {"session_tickets", KEY_TOP, "0.2", "true", "true|false",
	"let clients resume TLS sessions", BOOL(session_tickets)},
    {"verify_client", KEY_TOP | KEY_SITE | KEY_LATE, "0.2", "off",
	"off|optional|require",
	"request client certificates of the authorities in client_ca",
	.key_set = conf_set_verify_client},
    {"client_ca", KEY_TOP | KEY_SITE | KEY_LATE, "0.2", "off", "FILE|off",
	"CA certificates that verify client certificates, PEM",
	.key_path = KEY_PATH, .key_set = conf_set_client_ca},
    {"ktls", KEY_TOP, "0.2", "auto", "auto|on|off",
	"let the kernel encrypt TLS (Linux)", .key_set = conf_set_ktls},
    {"workers", KEY_TOP | KEY_OPTION, "0.1", "auto", "N|auto",
	"worker threads; auto: one for each usable CPU",
	.key_set = conf_set_workers, .key_parse = conf_number, RANGE(1, 1024)},
    {"threads", KEY_TOP | KEY_OPTION, "0.1", "16", "N",
	"prefetch threads for each device", NUMBER(threads, 1, 256)},
    {"access_log", KEY_TOP | KEY_OPTION | KEY_LATE, "0.1", "off", "FILE|-|off",
	"file of the access log; -: standard output", .key_path = KEY_PATH,
	.key_set = conf_set_access_log},
    {"log_format", KEY_TOP | KEY_OPTION, "0.1", "combined", "combined|json",
	"format of the access log", .key_set = conf_set_log_format},
    {"log_fields", KEY_TOP | KEY_FILLED, "0.1", "(those of log_format)",
	"NAME, ...", "fields of each line of the access log, in this order",
	.key_set = conf_set_log_fields, .key_clear = conf_clear_log_fields},
    {"log_exclude", KEY_TOP, "0.1", "(none)", "GLOB|STATUS, ...",
	"requests not to log: paths, or statuses such as 304 and 2xx",
	.key_set = conf_set_log_exclude, .key_clear = conf_clear_log_exclude},
    {"log_level", KEY_TOP, "0.1", "notice", "error|warning|notice",
	"log messages of this severity and above",
	.key_set = conf_set_log_level},
    {"trace_clients", KEY_TOP, "0.3", "(none)", "ADDR|BLOCK|unix:|all, ...",
	"clients whose requests are traced if they carry the field "
	"Pagewise-Trace",
	.key_set = conf_set_trace_clients,
	.key_clear = conf_clear_trace_clients},
    {"stall_log", KEY_TOP | KEY_OPTION, "0.1", "50", "MS",
	"log event-loop iterations this long or longer; 0: never",
	NUMBER(stall_log, 0, 60000)},
    {"busy_poll", KEY_TOP | KEY_OPTION, "0.1", "0", "US",
	"poll for events this long before sleeping",
	NUMBER(busy_poll, 0, 10000)},
    {"user", KEY_TOP | KEY_OPTION, "0.1", "(nobody)", "NAME",
	"user to run as when started as root", .key_set = conf_set_user},
    {"group", KEY_TOP | KEY_OPTION | KEY_LATE, "0.1", "(the user's)", "NAME",
	"group to run as when started as root", .key_set = conf_set_group},
    {"sandbox", KEY_TOP | KEY_OPTION, "0.1", "on", "on|off",
	"drop every privilege that serving does not need", BOOL(sandbox)},
    {"keep_fowner", KEY_TOP, "0.1", "true", "true|false",
	"keep CAP_FOWNER to query residency of other users' files (Linux)",
	BOOL(keep_fowner)},
    {"traceable", KEY_TOP, "0.3", "false", "true|false",
	"let tracers and core dumps see the keys of TLS", BOOL(traceable)},
    {"chroot", KEY_TOP, "0.1", "off", "DIR|off", "directory for chroot(2)",
	.key_path = KEY_PATH, .key_set = conf_set_chroot},
    {"admin", KEY_TOP | KEY_OPTION | KEY_FILLED | KEY_LATE, "0.1", "off",
	"ADDR:PORT|PATH|off",
	"addresses of the metrics and the page that shows them",
	.key_path = KEY_PATH_SLASH, .key_set = conf_set_admin,
	.key_clear = conf_clear_admin},
    {"agent", KEY_TOP | KEY_OPTION | KEY_LATE, "0.2", "off", "ADDR:PORT|off",
	"address to listen on for HAProxy's agent-check",
	.key_set = conf_set_agent},
    {"live", KEY_TOP, "0.2", "off", "PATH|off",
	"path of the liveness check, which uses no disk",
	.key_set = conf_set_live},
    {"ready", KEY_TOP | KEY_LATE, "0.2", "off", "PATH|off",
	"path of the readiness check: 503 while a root does not respond",
	.key_set = conf_set_ready},
    {"mime_types", KEY_TOP, "0.1", "(the built-in table)", "FILE",
	"file of media types: \"type extension ...\" on each line",
	.key_path = KEY_PATH, .key_set = conf_set_mime_types},
    {"head_timeout", KEY_TOP, "0.1", "10", "SECONDS",
	"time in which a client must send the head of a request",
	NUMBER(head_timeout, 1, 3600)},
    {"keepalive_timeout", KEY_TOP, "0.1", "60", "SECONDS",
	"lifetime of an idle connection; 0: no keep-alive",
	NUMBER(keepalive_timeout, 0, 86400)},
    {"send_timeout", KEY_TOP, "0.1", "60", "SECONDS",
	"close a connection whose client reads nothing for this long",
	NUMBER(send_timeout, 1, 86400)},
    {"disk_timeout", KEY_TOP, "0.1", "30", "SECONDS",
	"longest time that a request waits for a disk",
	NUMBER(disk_timeout, 1, 86400)},
    {"shutdown_timeout", KEY_TOP, "0.1", "30", "SECONDS",
	"time to finish responses in flight after SIGTERM",
	NUMBER(shutdown_timeout, 0, 86400)},
    {"drain_timeout", KEY_TOP, "0.3", "86400", "SECONDS",
	"time to finish responses in flight after a reload",
	NUMBER(drain_timeout, 1, 31536000)},
    {"max_head_size", KEY_TOP, "0.1", "16K", "SIZE",
	"maximum size of a request head; larger ones get 431",
	SIZE(max_head, K, M)},
    {"max_target_size", KEY_TOP, "0.1", "8K", "SIZE",
	"maximum length of a request target; longer ones get 414",
	SIZE(max_target, 64, M)},
    {"max_fields", KEY_TOP, "0.1", "100", "N",
	"maximum number of header fields; requests with more get 431",
	NUMBER(max_fields, 1, 1024)},
    {"max_ranges", KEY_TOP, "0.1", "200", "N",
	"maximum ranges of a request; 8192 if they do not overlap",
	NUMBER(max_ranges, 1, 1024)},
    {"max_requests", KEY_TOP, "0.1", "0", "N",
	"maximum requests on one connection; 0: no limit",
	NUMBER(max_requests, 0, 1000000000)},
    {"http2", KEY_TOP, "0.2", "true", "true|false",
	"HTTP/2, by ALPN, or in clear text with prior knowledge", BOOL(http2)},
    {"http2_max_streams", KEY_TOP, "0.2", "128", "N",
	"maximum concurrent requests on one HTTP/2 connection",
	NUMBER(http2_max_streams, 1, 10000)},
    {"max_connections", KEY_TOP, "0.1", "0", "N",
	"maximum connections in total; 0: as many as descriptors allow",
	NUMBER(max_connections, 0, 10000000)},
    {"max_connections_per_address", KEY_TOP, "0.1", "0", "N",
	"maximum connections of one client; 0: no limit",
	NUMBER(max_per_address, 0, 10000000)},
    {"min_send_rate", KEY_TOP, "0.1", "240", "SIZE",
	"lowest rate at which a client may read, in bytes/s; 0: no limit",
	SIZE(min_send_rate, 0, M)},
    {"tcp_memory", KEY_TOP, "0.1", "auto", "SIZE|auto",
	"send less at once while system-wide TCP memory exceeds this; 0: never",
	.key_set = conf_set_tcp_memory, .key_parse = conf_size,
	RANGE(0, 64 * G)},
    {"open_files", KEY_TOP, "0.1", "1024", "N",
	"number of open files that each worker caches",
	NUMBER(open_files, 16, 1000000)},
    {"hot_set", KEY_TOP | KEY_OPTION, "0.1", "auto", "SIZE|auto",
	"memory of each worker for the response cache; 0: no cache",
	.key_set = conf_set_hot_set, .key_parse = conf_size, RANGE(0, 64 * G)},
    {"tier", KEY_TOP, "0.3", "off", "DIR|off",
	"directory on a fast disk for windows of popular files (Linux)",
	.key_path = KEY_PATH, .key_set = conf_set_tier},
    {"tier_size", KEY_TOP, "0.3", "10G", "SIZE", "size of the tier",
	SIZE(tier_size, 64 * M, UINT64_C(1048576) * G)},
    {"tier_age", KEY_TOP, "0.3", "60", "SECONDS",
	"time that a file must be unchanged before the tier stores it",
	NUMBER(tier_age, 2, 86400)},
    {"tier_writes", KEY_TOP, "0.3", "auto", "SIZE|auto",
	"maximum bytes written to the tier in a day; auto: tier_size",
	.key_set = conf_set_tier_writes, .key_parse = conf_size,
	RANGE(0, UINT64_C(1048576) * G)},
    {"popular", KEY_TOP, "0.2", "0", "N",
	"number of most requested paths to list for balancers; 0: none",
	NUMBER(popular, 0, 1000)},

    {"send_path", KEY_INHERITED | KEY_OPTION | KEY_LATE, "0.1", "auto",
	"auto|NAME", "method of sending files", .key_set = conf_set_send_path},
    {"readahead", KEY_INHERITED | KEY_OPTION, "0.1", "auto", "auto|0|SIZE",
	"amount of data to prefetch from disk at once",
	.key_set = conf_set_readahead, .key_parse = conf_size,
	RANGE(64 * K, 64 * M)},
    {"mp4_index", KEY_INHERITED, "0.3", "false", "true|false",
	"prefetch the index at the end of MP4 files with their start",
	SET_BOOL(mp4_index)},
    {"cache", KEY_INHERITED | KEY_OPTION, "0.1", "keep", "keep|drop|auto",
	"keep fetched pages in the page cache, or drop them",
	.key_set = conf_set_cache},
    {"autoindex", KEY_INHERITED | KEY_SWITCH, "0.1", "false", "true|false",
	"list directories without an index", SET_BOOL(autoindex)},
    {"listing_header", KEY_INHERITED, "0.1", "off", "NAME|off",
	"name of the file whose content is shown above a directory's listing",
	.key_set = conf_set_listing_header},
    {"dotfiles", KEY_INHERITED, "0.1", "false", "true|false|NAME, ...",
	"serve all names that begin with a dot, or only these names",
	.key_set = conf_set_dotfiles, .key_clear = conf_clear_dotfiles},
    {"index", KEY_INHERITED, "0.1", "index.html", "NAME, ...",
	"files to look for in a directory", .key_set = conf_set_index,
	.key_clear = conf_clear_index},

    {"redirect", KEY_INHERITED, "0.2", "(none)", "FROM TO [STATUS], ...",
	"paths that have moved; one '*' stands for any text",
	.key_set = conf_set_redirect, .key_clear = conf_clear_redirect},
    {"try", KEY_INHERITED, "0.2", "(the path alone)",
	"$path..., /FILE or STATUS, ...", "files to look for, in this order",
	.key_set = conf_set_try, .key_clear = conf_clear_try},
    {"error_page", KEY_INHERITED | KEY_LATE, "0.2", "(none)",
	"STATUS FILE, ...",
	"error pages for 404, 4xx or 5xx: a file, or \"text: TEXT\"",
	.key_path = KEY_PATH_SECOND, .key_set = conf_set_error_page,
	.key_clear = conf_clear_error_page},

    {"header", KEY_INHERITED | KEY_ADDS | KEY_LATE, "0.1", "(none)",
	"RULE, ...",
	"response fields: \"Name: value\", \"+Name: value\" or \"-Name\"",
	.key_set = conf_set_header, .key_clear = conf_clear_header},
    {"expires", KEY_INHERITED, "0.1", "(off)", "TIME|off",
	"how long clients may cache a response: 10m, 12h, 30d, 1y",
	.key_twin = "cache_control", .key_set = conf_set_expires},
    {"cache_control", KEY_INHERITED, "0.1", "off", "TEXT|off",
	"value of the response field Cache-Control", .key_twin = "expires",
	.key_set = conf_set_cache_control},
    {"security_headers", KEY_INHERITED, "0.1", "off", "on|off",
	"send nosniff, same-origin frames, a short Referer; with TLS also hsts",
	SET_BOOL(security_headers)},
    {"hsts", KEY_INHERITED, "0.2", "(1y with security_headers, else off)",
	"TIME [includeSubDomains] [preload]|off",
	"how long browsers must use only TLS (Strict-Transport-Security)",
	.key_set = conf_set_hsts},
    {"redirect_https", KEY_INHERITED | KEY_LATE, "0.2", "false", "true|false",
	"redirect requests without TLS to https://", SET_BOOL(redirect_https)},
    {"cors", KEY_INHERITED, "0.1", "(none)", "*|ORIGIN, ...",
	"origins whose scripts may read responses", .key_set = conf_set_cors,
	.key_clear = conf_clear_cors},
    {"cors_max_age", KEY_INHERITED, "0.1", "86400", "SECONDS",
	"how long browsers may cache the response to a preflight request",
	SET_NUMBER(cors_max_age, 0, 31536000)},
    {"precompressed", KEY_INHERITED, "0.1", "(none)", "zst, br, gz",
	"compressed siblings to send, the preferred one first",
	.key_set = conf_set_precompressed,
	.key_clear = conf_clear_precompressed},
    {"charset", KEY_INHERITED, "0.1", "utf-8", "NAME|off",
	"character set of text types", .key_set = conf_set_charset},
    {"types", KEY_INHERITED | KEY_LATE, "0.1", "(none)", "LINE, ...",
	"media types that override mime_types: \"type extension ...\"",
	.key_set = conf_set_types, .key_clear = conf_clear_types},
    {"default_type", KEY_INHERITED, "0.1", "application/octet-stream", "TYPE",
	"media type of files with an unknown extension",
	.key_set = conf_set_default_type},
    {"etag", KEY_INHERITED, "0.1", "auto", "auto|inode|digest|off",
	"what the entity tag is built from; auto: size and modification time",
	.key_set = conf_set_etag},
    {"digest", KEY_INHERITED, "0.2", "false", "true|false",
	"send the stored SHA-256 of a file as Repr-Digest", SET_BOOL(digest)},

    {"rate", KEY_INHERITED, "0.2", "0", "SIZE",
	"maximum bytes/s of a connection; 0: no limit",
	.key_set = conf_set_rate, .key_parse = conf_size, RANGE(0, 16 * G)},
    {"client_rate", KEY_INHERITED, "0.2", "0", "SIZE",
	"maximum bytes/s of all connections of a client; 0: no limit",
	.key_set = conf_set_client_rate, .key_parse = conf_size,
	RANGE(0, 16 * G)},
    {"burst", KEY_INHERITED, "0.2", "0", "SIZE",
	"bytes sent at full speed before rate and client_rate apply",
	SET_SIZE(burst, 0, 64 * G)},
    {"request_rate", KEY_INHERITED, "0.2", "off", "N/s|N/m|N/h|off",
	"maximum request rate of a client; excess requests get 429",
	.key_set = conf_set_request_rate},
    {"request_burst", KEY_INHERITED, "0.2", "20", "N",
	"requests that a client may send at once after a pause",
	SET_NUMBER(request_burst, 1, 1000000)},
    {"allow", KEY_INHERITED, "0.2", "(all)", "ADDRESS, ...",
	"clients that are allowed; all others get 403",
	.key_set = conf_set_allow, .key_clear = conf_clear_allow},
    {"deny", KEY_INHERITED, "0.2", "(none)", "ADDRESS, ...",
	"clients that get 403, even if allow lists them",
	.key_set = conf_set_deny, .key_clear = conf_clear_deny},
    {"htpasswd", KEY_INHERITED, "0.2", "off", "FILE|off",
	"file of users and password hashes; requests without one get 401",
	.key_path = KEY_PATH, .key_set = conf_set_htpasswd},
    {"realm", KEY_INHERITED | KEY_LATE, "0.2", "Restricted", "TEXT",
	"text that browsers show when they prompt for a password",
	.key_set = conf_set_realm},
    {"signed_links", KEY_INHERITED, "0.2", "off", "FILE|off",
	"file of keys; requests need a link signed by pagewise sign",
	.key_path = KEY_PATH, .key_set = conf_set_signed_links},

    {"names", KEY_SITE, "0.1", "(none)", "HOST, ...", "host names of the site",
	.key_set = conf_set_names, .key_clear = conf_clear_names},
    {"root", KEY_SITE | KEY_LOCATION, "0.1", "(none: every site needs one)",
	"DIR", "directory to serve", .key_path = KEY_PATH,
	.key_set = conf_set_root},
    {"alias", KEY_LOCATION, "0.1", "(none)", "DIR",
	"directory that replaces the location's prefix", .key_path = KEY_PATH,
	.key_set = conf_set_alias},

    {.key_name = NULL},
};

_Static_assert(sizeof(conf_keys) / sizeof(*conf_keys) <= KEY_MAX, "KEY_MAX");

/* Sections, and where each is allowed.  Sections and keys share one name space. */
static const struct {
	const char *sec_name;
	unsigned sec_where;
} sections[] = {{"site", KEY_TOP}, {"location", KEY_SITE}};

#define NSECTIONS (sizeof(sections) / sizeof(*sections))

const struct key *
conf_key(const char *name)
{
	for (const struct key *key = conf_keys; key->key_name != NULL; key++)
		if (strcmp(key->key_name, name) == 0)
			return key;
	return NULL;
}

int
conf_key_set(struct conf_scope *scope, const char *name, const char *text,
    struct conf_why *why)
{
	const struct key *key = conf_key(name);

	if (key == NULL || (key->key_where & scope->cs_where) == 0)
		return conf_why(why, -ENOENT, "unknown key");
	conf_place_add(scope, key);
	return key->key_set(scope, key, text, why);
}

void
conf_key_clear(struct conf_scope *scope, const char *name)
{
	const struct key *key = conf_key(name);

	if (key != NULL && key->key_clear != NULL)
		key->key_clear(scope);
}

bool
conf_key_is_described(const struct key *key)
{
	return key->key_default[0] == '(';
}

int
conf_key_defaults(struct conf_scope *top)
{
	struct conf_why why;
	int error;

	for (const struct key *key = conf_keys; key->key_name != NULL; key++) {
		if ((key->key_where & KEY_TOP) == 0 ||
		    conf_key_is_described(key))
			continue;
		error = key->key_set(top, key, key->key_default, &why);
		if (error != 0) {
			fprintf(stderr, "%spagewise: %s: %s\n",
			    log_error_prefix(), key->key_name, why.why_text);
			return error;
		}
	}
	return 0;
}

int
conf_key_empty(const char *name, struct conf_why *why)
{
	const struct key *key = conf_key(name);

	if (key == NULL || (key->key_where & KEY_FILLED) == 0)
		return 0;
	return conf_why(why, -EINVAL,
	    "the list is empty: write at least one %s", key->key_values);
}

static unsigned
conf_key_where(const char *name)
{
	const struct key *key = conf_key(name);

	for (size_t i = 0; i < NSECTIONS; i++)
		if (strcmp(sections[i].sec_name, name) == 0)
			return sections[i].sec_where;
	return key != NULL ? key->key_where & KEY_ANYWHERE : 0;
}

const char *
conf_key_place(const char *name, unsigned section)
{
	unsigned places = conf_key_where(name);

	if (places == 0 || (places & section) != 0)
		return NULL;
	if (places == KEY_TOP)
		return "is only allowed at the top level: move it out of the "
		       "site";
	if (places == KEY_LOCATION)
		return "is only allowed in a location: move it into a location "
		       "of a site";
	if (section == KEY_LOCATION)
		return "is not allowed in a location: move it to the site";
	return "is not allowed at the top level: move it into site \"NAME\" { "
	       "root = \"DIR\" }";
}

const char *
conf_key_like(const char *name)
{
	struct similar sim = {0};

	for (const struct key *key = conf_keys; key->key_name != NULL; key++)
		similar_offer(&sim, name, key->key_name);
	for (size_t i = 0; i < NSECTIONS; i++)
		similar_offer(&sim, name, sections[i].sec_name);
	return sim.sim_name;
}
