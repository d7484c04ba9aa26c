/*
 * conf: the configuration, from the command line and a file.  Manual: pagewise.conf(5).
 *
 * The main thread builds struct conf once, before the workers start.  Afterwards struct conf is
 * immutable, so every thread may read it.  struct conf owns the strings and arrays.  A site and its
 * locations may share the strings and arrays of their settings.
 */
#ifndef SERVER_CONF_CONF_H
#define SERVER_CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "lib/pagewise.h"
#include "server/conf/text_index.h"
#include "server/http/coding.h"
#include "server/http/forwarded.h"
#include "server/http/mime.h"
#include "server/log/log.h"
#include "server/tls/context.h"
#include "server/util/cidr.h"
#include "server/util/htpasswd.h"
#include "server/util/link_key.h"
#include "server/util/str.h"
#include "server/util/token_bucket.h"

enum etag_kind { ETAG_AUTO, ETAG_INODE, ETAG_DIGEST, ETAG_OFF };

/* Flags of set_changed: the server's own fields that a rule removed or replaced. */
#define HEADER_NO_LAST_MODIFIED 0x01u
#define HEADER_NO_ACCEPT_RANGES 0x02u
#define HEADER_CACHE_CONTROL	0x04u

/*
 * Units of a token bucket that one request consumes.  With 3600, one request per hour is one unit
 * per second.
 */
#define RATE_REQUEST UINT64_C(3600)

/* A list of address blocks.  cl_set is true if the list has a block, or if allow was set to {}. */
struct cidr_list {
	bool cl_set;
	size_t cl_count;
	struct cidr *cl_list;
};

/*
 * A rule that redirects one path, or all paths that match a pattern with one '*'.  Every s_ptr that
 * is not NULL points into a NUL-terminated string.
 */
struct redirect {
	struct str rd_before; /* text before the '*', or the whole path */
	struct str rd_after;  /* text after the '*'; s_ptr NULL if no '*' */
	struct str rd_scheme; /* target text before $host; NULL if no $host */
	struct str rd_to;     /* target text after $host, up to the '*' */
	struct str rd_rest;   /* target text after '*'; s_ptr NULL if no '*' */
	struct str rd_fragment;
	bool rd_query; /* true if rd_to or rd_rest has a '?' */
	int rd_status;
};

struct redirects;

/* A section that sets request_rate.  All settings that inherit the rule share rr_refused. */
struct request_rule {
	struct request_rule *rr_next; /* next in conf_request_rules */
	const char *rr_place;	      /* pointer that identifies the section */
	const char *rr_site;	 /* name of the site; empty at the top level */
	const char *rr_location; /* title; empty outside a location */
	_Atomic uint64_t rr_refused; /* number of requests refused with 429 */
};

/* A response body for a range of statuses. */
struct error_page {
	int ep_first;
	int ep_last;
	char *ep_name;	    /* body's file; NULL for a "text:" body */
	struct str ep_type; /* Content-Type field with CRLF */
	struct str ep_body;
};

/* Settings that a location inherits from its site, and a site from the top level. */
struct settings {
	const struct pw_send_path *set_send_path;
	uint64_t set_readahead; /* bytes, or a PW_READAHEAD_ constant */
	enum pw_cache set_cache;
	bool set_mp4_index; /* true if the index of MP4 files is prefetched */
	bool set_autoindex;
	bool set_dotfiles; /* true if all names with a leading dot are served */
	char **set_dotnames; /* dot names to serve, NULL-terminated; or NULL */
	bool set_closed;     /* true if any key restricts access */
	bool set_guarded;    /* true if set_closed or a rate limit is set */
	char **set_index;    /* names to try in a directory, NULL-terminated */
	char set_listing_header[256]; /* name of the header file, or empty */
	size_t set_root;	      /* index in conf_roots */
	size_t set_strip; /* bytes that alias strips from a path's start */

	enum etag_kind set_etag;
	bool set_digest;	 /* true if Repr-Digest is sent */
	char *set_charset;	 /* charset of text types; NULL if none */
	char *set_default_type;	 /* type of unknown extensions */
	char **set_types;	 /* lines in the format of mime_types */
	char **set_headers;	 /* rules in the syntax of header.c */
	char *set_cache_control; /* Cache-Control; NULL if none */
	bool set_security_headers;
	bool set_redirect_https;
	struct str set_hsts; /* Strict-Transport-Security, or empty */
	bool set_hsts_chosen;
	char **set_cors;	   /* origins, or "*"; NULL if none */
	unsigned set_cors_max_age; /* seconds */

	struct token_rate set_rate;	   /* bytes/s per connection */
	struct token_rate set_client_rate; /* bytes/s per client and rule */
	/* pointer that identifies the rule */
	const void *set_client_rule;
	/* request rate, units per second; a request consumes RATE_REQUEST units */
	struct token_rate set_request_rate;
	struct request_rule *set_request_rule; /* rule that counts refusals */
	uint64_t set_burst;		       /* bytes */
	unsigned set_request_burst;

	struct cidr_list set_allow;
	struct cidr_list set_deny;
	const struct htpasswd *set_htpasswd; /* NULL if no password is needed */
	char *set_realm;
	struct str set_challenge; /* WWW-Authenticate field for set_realm */
	/* keys of signed links; NULL if links need no signature */
	const struct link_keys *set_link_keys;
	struct redirects *set_redirects; /* NULL if none */
	char **set_try; /* steps, NULL-terminated; NULL if none */
	struct error_page *set_pages;
	unsigned set_npages;

	char **set_certificates;     /* paths; NULL if none */
	char **set_certificate_keys; /* paths, in set_certificates' order */
	enum tls_verify set_verify_client;
	char *set_client_ca; /* path; NULL if none */

	uint8_t set_codings[CODINGS]; /* codings of siblings, best first */
	unsigned set_ncodings;

	/*
	 * The fields from set_mime to set_entity_tag are derived from the fields above once all
	 * keys are set.  Each header field in these texts ends with CRLF.
	 */
	const struct mime *set_mime; /* table of set_types; NULL if none */
	struct str set_server;	     /* Server field, or empty */
	struct str set_lines;  /* fields of responses with a status below 400 */
	struct str set_always; /* fields of responses with status >= 400 */
	struct str set_preflight; /* fields of a CORS preflight response */
	bool set_by_scheme;	  /* true if responses depend on TLS */
	bool set_origins;     /* true if responses depend on the Origin field */
	bool set_by_client;   /* true if no response may be shared by clients */
	unsigned set_changed; /* HEADER_ flags */
	/*
	 * values of validators that header rules set; if s_ptr is NULL, the file's own validator is
	 * sent
	 */
	struct str set_last_modified;
	struct str set_entity_tag;

	/* places of late-checked keys, newest first (place.c); NULL if none */
	const struct conf_place *set_places;
};

enum location_kind { LOCATION_EXACT, LOCATION_GLOB, LOCATION_PREFIX };

/* Settings for the paths that match loc_path.  Paths are decoded before they are compared. */
struct location {
	enum location_kind loc_kind;
	char *loc_key;	       /* one byte for the kind, then the path */
	char *loc_path;	       /* path or glob; a path begins with '/' */
	size_t loc_len;	       /* length of loc_path */
	const char *loc_place; /* "FILE:LINE" of the title, or NULL */
	bool loc_open; /* true if it sets htpasswd or signed_links to off */
	struct settings loc_set;
};

struct site {
	char *site_name;
	const struct conf *site_conf;
	char **site_names; /* host names in lower case, NULL-terminated */
	size_t site_nnames;
	char *site_root; /* one of conf_roots; NULL until root is set */
	struct settings site_set;
	bool site_closed; /* true if any settings of the site have set_closed */
	struct location *site_locations; /* sorted, highest precedence first */
	size_t site_nlocations;
	struct text_index site_paths; /* every loc_key, to find duplicates */
	struct tls_site site_tls;
	bool site_owns_identities; /* true if this site loaded its identities */
};

struct listen_addr {
	struct sockaddr_storage la_addr; /* IPv4, IPv6 or AF_UNIX address */
	socklen_t la_len;
	char *la_text;	/* text as given, or the path of a Unix socket */
	mode_t la_mode; /* mode of a Unix socket's file */
	bool la_proxy;	/* true if each connection begins with a PROXY header */
	bool la_tls;	/* true if clients use TLS, after any PROXY header */
};

/* Requests that are left out of the access log. */
struct log_exclude {
	bool le_any;		  /* true if anything is excluded */
	char **le_globs;	  /* globs of paths, NULL-terminated; or NULL */
	uint64_t le_statuses[10]; /* bitmap of statuses below 640 */
};

struct conf_block;
struct conf_dump;

/* A table of media types and the lines that it was made from. */
struct conf_types {
	char **ct_lines;
	struct mime *ct_mime;
};

#define TCP_MEMORY_AUTO UINT64_MAX /* half of tcp_mem's low threshold */
#define HOT_SET_AUTO	UINT64_MAX /* 16 MiB, less under a small memory limit */

#define TIER_WRITES_AUTO UINT64_MAX /* conf_tier_size bytes per day */

struct conf {
	struct listen_addr *conf_listen;
	size_t conf_nlisten;
	bool conf_listen_default; /* true if the operator set no listen */
	struct listen_addr *conf_admin;
	size_t conf_nadmin;
	struct listen_addr conf_agent; /* agent address; la_text NULL if none */
	struct cidr_list conf_trusted; /* trusted proxies */
	enum forwarded conf_client_address; /* field of the client's address */
	unsigned conf_workers; /* at least 1, after auto is resolved */
	unsigned conf_threads; /* prefetch threads per device */
	char *conf_access_log; /* path, "-" for stdout, NULL for off */
	const char *conf_access_log_place; /* "FILE:LINE: " of the key, or "" */
	enum log_format conf_log_format;
	struct log_fields conf_log_fields;
	struct log_exclude conf_log_exclude;
	enum log_level conf_log_level;
	struct cidr_list conf_trace; /* clients whose requests may be traced */
	unsigned conf_stall_log;     /* shortest stall to log, ms; 0 disables */
	unsigned conf_busy_poll; /* polling time, microseconds; 0 disables */
	struct mime *conf_mime;
	struct conf_types *conf_types; /* tables that settings share */
	size_t conf_ntypes;

	/*
	 * user and groups that the process switches to once all files and sockets are open
	 * (sandbox.h)
	 */
	char *conf_user; /* name; NULL if not set and not started as root */
	bool conf_user_chosen;
	char *conf_group; /* name; NULL if not set */
	uid_t conf_uid;
	gid_t conf_gid;	     /* gid of conf_group, else conf_user_gid */
	gid_t conf_user_gid; /* gid of the user; -1 if unknown */
	gid_t *conf_groups;  /* conf_gid and the supplementary groups */
	size_t conf_ngroups;
	char *conf_chroot; /* path; NULL if none */
	bool conf_sandbox;
	bool conf_keep_fowner;
	bool conf_traceable;
	char *conf_tier; /* path; NULL if none */

	unsigned conf_head_timeout;	 /* seconds */
	unsigned conf_keepalive_timeout; /* idle time, seconds; 0 disables */
	unsigned conf_send_timeout;	 /* time without progress, seconds */
	unsigned conf_disk_timeout;	 /* longest wait for a disk, seconds */
	unsigned conf_shutdown_timeout;	 /* seconds */
	unsigned conf_drain_timeout;	 /* seconds */
	size_t conf_max_head;		 /* bytes */
	size_t conf_max_target;		 /* bytes */
	size_t conf_max_fields;
	size_t conf_max_ranges;
	unsigned conf_max_requests;	 /* limit per connection; 0 for none */
	bool conf_http2;		 /* true if HTTP/2 is offered */
	unsigned conf_http2_max_streams; /* limit per connection */
	/* limit; 0 is as many as descriptors allow */
	unsigned conf_max_connections;
	unsigned conf_max_per_address; /* limit of connections; 0 for none */
	unsigned conf_min_send_rate;   /* minimum rate, bytes/s; 0 for off */
	uint64_t conf_tcp_memory;      /* bytes, or TCP_MEMORY_AUTO */
	unsigned conf_open_files;      /* descriptors cached per worker */
	uint64_t conf_tier_size;       /* bytes */
	unsigned conf_tier_age;	       /* time without a change, seconds */
	uint64_t conf_tier_writes;     /* bytes per day, or TIER_WRITES_AUTO */
	/* bytes per worker, or HOT_SET_AUTO; 0 for off */
	uint64_t conf_hot_set;
	unsigned conf_popular; /* number of paths to list; 0 for off */

	char *conf_live; /* path of the liveness check; NULL if none */
	char *conf_ready;

	/* settings of responses that belong to no site */
	struct settings conf_no_site;
	struct site *conf_sites; /* sites; the first one is the default */
	size_t conf_nsites;
	char **conf_roots; /* directories; absolute or relative to the cwd */
	size_t conf_nroots;
	struct text_index conf_root_index;
	struct text_index conf_titles;	  /* indices of sites by name */
	struct text_index conf_hosts;	  /* indices of sites by host name */
	struct conf_block *conf_memory;	  /* memory of settings (keep.c) */
	struct link_keys *conf_link_keys; /* all key files, owned */
	struct htpasswd *conf_htpasswds;  /* all password files, owned */
	struct request_rule *conf_request_rules; /* all rules, owned */
	enum tls_profile conf_tls_profile;
	enum tls_ktls conf_ktls;
	bool conf_session_tickets;
	unsigned conf_https_port; /* port of the first TLS address; 0 if none */
	/* certificates that conf_complete_tls loaded, each file once, sorted by file name */
	const struct identity **conf_identities;
	size_t conf_nidentities;
	unsigned conf_faults;	     /* number of faults found in the files */
	struct conf_dump *conf_dump; /* values as given, for -T; else NULL */
	bool conf_rates; /* true if any client_rate or request_rate is set */
};

enum conf_action {
	CONF_RUN,
	CONF_EXIT_OK,	 /* -t, -T, -V or -h done; output is written */
	CONF_EXIT_USAGE, /* bad command line, message written: exit(2) */
	CONF_EXIT_ERROR, /* fault of file or host, message written: exit(1) */
};

/* Callbacks of -t and -T.  Each may be NULL. */
struct conf_checks {
	/* Makes a last check.  Returns 0, or -1 after a message. */
	int (*ck_try)(const struct conf *);
	/* Prints additional lines of -t to stdout. */
	void (*ck_print)(const struct conf *);
};

/*
 * Parses argv and the configuration file that it names.  Command-line settings override top-level
 * ones in the file; --root defines one site that replaces the sites of the file.  Checks everything
 * that needs neither binding nor starting: types, ranges, unknown keys, addresses, that roots are
 * readable directories, that the send path exists on this host.  With -t and -T also checks that
 * clients would accept the certificates, and then calls the callbacks in checks, which may be NULL.
 * Writes messages to stderr:
 *     pagewise: pagewise.conf:12: threads: 0 is out of range (1 to 256)
 *     pagewise: --threads: 0 is out of range (1 to 256)
 * If the result is CONF_RUN, the caller frees the configuration with conf_destroy; otherwise the
 * configuration is NULL.  Not reentrant, as getopt(3) is not.
 */
enum conf_action conf_load(
    int argc, char **argv, const struct conf_checks *, struct conf **);

/*
 * Returns the site that a Host value names.  Ignores the value's port and final dot.  Returns the
 * first site if no site has this name.
 */
const struct site *conf_site(const struct conf *, const char *host, size_t len);

/*
 * Returns the settings for a decoded path: those of the location that equals the path, else of the
 * first glob in the file's order that matches, else of the longest prefix, else the site's.
 */
const struct settings *conf_settings(
    const struct site *, const char *path, size_t len);

/*
 * Returns the redirect whose path equals this decoded path, else the first one in the file's order
 * whose pattern matches.  Returns NULL if no redirect matches.  Sets *star to the text that '*'
 * matched.
 */
const struct redirect *conf_redirect(
    const struct settings *, struct str path, struct str *star);

/*
 * Returns the host name of a Host value, without its port, if the site has this name or has no
 * names.  Otherwise returns the site's first name that is no wildcard, or an empty text.
 */
struct str conf_host(const struct site *, struct str host);

#define CONF_MEDIA_TYPE 192 /* buffer size for a media type with its charset */

/* Writes the media type for a file name, with its charset. */
void conf_media_type(const struct conf *, const struct settings *,
    const char *name, char *text, size_t size);

/* Returns the error page for exactly this status, else the page for its class, else NULL. */
const struct error_page *conf_error_page(const struct settings *, int status);

/*
 * Returns true if this decoded path or this status is excluded.  path.s_ptr is NULL if the request
 * had no path.
 */
bool conf_is_excluded(const struct log_exclude *, struct str path, int status);

/* Returns true if a response to a request for this path belongs in the access log. */
static inline bool
conf_logs(const struct conf *conf, struct str path, int status)
{
	return !conf->conf_log_exclude.le_any ||
	       !conf_is_excluded(&conf->conf_log_exclude, path, status);
}

/* Returns true if any listen address uses TLS. */
bool conf_has_tls(const struct conf *);

/*
 * Returns true if clients would accept all certificates now.  Logs each certificate that clients
 * would refuse.
 */
bool conf_certificates_are_good(const struct conf *);

/* Returns true if any section has loaded a password file or a file of link keys. */
bool conf_has_secrets(const struct conf *);

/* Returns true if `sa` is an address of trusted_proxies. */
static inline bool
conf_trusts(const struct conf *conf, const struct sockaddr *sa)
{
	const struct cidr_list *cl = &conf->conf_trusted;

	return cl->cl_count > 0 && cidr_has_any(cl->cl_list, cl->cl_count, sa);
}

void conf_destroy(struct conf **);

#endif
