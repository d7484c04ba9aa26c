/*
 * conf: the configuration, from the command line and a file.  Manual:
 * pagewise.conf(5).
 *
 * Built once before the workers start and immutable after that, so that every
 * thread may read it.  Strings and arrays are owned by struct conf; those of settings may
 * be shared by a site and its locations.
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

/* Fields of the server's own that a rule has taken away, or set anew. */
#define HEADER_NO_LAST_MODIFIED 0x01u
#define HEADER_NO_ACCEPT_RANGES 0x02u
#define HEADER_CACHE_CONTROL	0x04u

#define RATE_REQUEST UINT64_C(3600) /* units: as many as an hour has seconds */

/* Blocks of addresses; one that was set may be empty. */
struct cidr_list {
	bool cl_set;
	size_t cl_count;
	struct cidr *cl_list;
};

/* A path that has moved: all of it, or what stands around one '*'.  Texts end with a NUL. */
struct redirect {
	struct str rd_before; /* of the path: before the '*', or all */
	struct str rd_after;  /* behind it; s_ptr NULL: there is no '*' */
	struct str rd_scheme; /* before $host; s_ptr NULL: there is none */
	struct str rd_to;     /* behind it, before the '*' */
	struct str rd_rest;   /* behind that; s_ptr NULL: it has no '*' */
	struct str rd_fragment;
	bool rd_query; /* rd_to or rd_rest has a '?' */
	int rd_status;
};

struct redirects;

/* A place where request_rate is set: all that inherit it share its count. */
struct request_rule {
	struct request_rule *rr_next; /* in conf_request_rules */
	const char *rr_place;	      /* tells it from others */
	const char *rr_site;	      /* empty: the top level */
	const char *rr_location;      /* its title; empty: the site */
	_Atomic uint64_t rr_refused;  /* requests that got 429 */
};

/* A body for answers of some statuses. */
struct error_page {
	int ep_first;
	int ep_last;
	char *ep_name;	    /* of its file; NULL: it was given as text */
	struct str ep_type; /* the field Content-Type, with CRLF */
	struct str ep_body;
};

/* Settings that a location inherits from its site, and a site from the top level. */
struct settings {
	const struct pw_send_path *set_send_path;
	uint64_t set_readahead; /* bytes, or PW_READAHEAD_... */
	enum pw_cache set_cache;
	bool set_autoindex;
	bool set_dotfiles; /* names that begin with a dot are served: all ... */
	char **set_dotnames; /* ... or these, NULL ends them; NULL: none */
	bool set_closed;     /* by allow, deny, a password or a link */
	bool set_guarded;    /* that, or a rate: content/access.h */
	char **set_index;    /* names to try in a directory, NULL ends them */
	char set_listing_header[256]; /* shown above a listing; empty: none */
	size_t set_root;	      /* in conf_roots */
	size_t set_strip; /* bytes at a path's front that the root has not */

	enum etag_kind set_etag;
	bool set_digest;	 /* Repr-Digest, of files that carry one */
	char *set_charset;	 /* of text types; NULL: none */
	char *set_default_type;	 /* of files whose extension is not known */
	char **set_types;	 /* lines as of mime_types */
	char **set_headers;	 /* rules: header.c */
	char *set_cache_control; /* NULL: none */
	bool set_security_headers;
	bool set_redirect_https;
	struct str set_hsts; /* the field, for clients with TLS; or empty */
	bool set_hsts_chosen;
	char **set_cors;	   /* origins, or "*"; NULL: none */
	unsigned set_cors_max_age; /* seconds */

	struct token_rate set_rate;	       /* bytes, of a connection */
	struct token_rate set_client_rate;     /* bytes, of a client ... */
	const void *set_client_rule;	       /* ... with all that have this */
	struct token_rate set_request_rate;    /* RATE_REQUEST for each ... */
	struct request_rule *set_request_rule; /* ... the same */
	uint64_t set_burst;		       /* bytes */
	unsigned set_request_burst;

	struct cidr_list set_allow;
	struct cidr_list set_deny;
	const struct htpasswd *set_htpasswd; /* NULL: no password is asked */
	char *set_realm;
	struct str set_challenge; /* made of it: the field WWW-Authenticate */
	const struct link_keys
	    *set_link_keys;		 /* NULL: links need no signature */
	struct redirects *set_redirects; /* NULL: none */
	char **set_try;			 /* steps, NULL ends them; NULL: none */
	struct error_page *set_pages;
	unsigned set_npages;

	char **set_certificates;     /* files; NULL: none */
	char **set_certificate_keys; /* the same, in the same order */
	enum tls_verify set_verify_client;
	char *set_client_ca; /* file; NULL: none */

	uint8_t set_codings[CODINGS]; /* of siblings, the preferred one first */
	unsigned set_ncodings;

	/* Made of these when all is read; each line has its CRLF. */
	const struct mime *set_mime; /* of set_types; NULL: none */
	struct str set_server;	     /* the field Server, or empty */
	struct str set_lines;	     /* of answers with a status below 400 */
	struct str set_always;	     /* of all others */
	struct str set_preflight;    /* of the answer to a preflight (CORS) */
	bool set_by_scheme; /* answers depend on whether the client has TLS */
	bool set_origins;   /* answers depend on the client's Origin */
	bool set_by_client; /* on that, or on who asks: never one for another */
	unsigned set_changed; /* HEADER_... */
	/* Of rules; s_ptr is NULL where there is none, and the file's own counts. */
	struct str set_last_modified;
	struct str set_entity_tag;

	const struct conf_place *set_places; /* of keys; NULL: none */
};

enum location_kind { LOCATION_EXACT, LOCATION_GLOB, LOCATION_PREFIX };

/* Compared with the decoded path. */
struct location {
	enum location_kind loc_kind;
	char *loc_key;	/* a byte of the kind, and the path */
	char *loc_path; /* begins with '/' unless it is a glob */
	size_t loc_len; /* of it */
	struct settings loc_set;
};

struct site {
	char *site_name;
	const struct conf *site_conf;
	char **site_names; /* host names, lower case, NULL ends them */
	size_t site_nnames;
	char *site_root; /* of conf_roots; NULL: none yet */
	struct settings site_set;
	bool site_closed;		 /* some of its settings are */
	struct location *site_locations; /* those that win first */
	size_t site_nlocations;
	struct text_index site_paths; /* of locations: an index, and loc_key */
	struct tls_site site_tls;
	bool site_owns_identities; /* else another site does */
};

struct listen_addr {
	struct sockaddr_storage la_addr; /* IPv4, IPv6, AF_UNIX */
	socklen_t la_len;
	char *la_text;	/* as given, for messages; the path of a Unix socket */
	mode_t la_mode; /* of a Unix socket's file */
	bool la_proxy;	/* connections begin with a PROXY header */
	bool la_tls;	/* ... and then with TLS */
};

/* Requests that are not logged. */
struct log_exclude {
	bool le_any;		  /* there are some */
	char **le_globs;	  /* of paths; NULL ends them, or is none */
	uint64_t le_statuses[10]; /* a bit for each below 640 */
};

struct conf_block;
struct conf_dump;

/* A table of media types, and the lines that it was made of. */
struct conf_types {
	char **ct_lines;
	struct mime *ct_mime;
};

#define TCP_MEMORY_AUTO UINT64_MAX /* half of what the kernel has plenty of */
#define HOT_SET_AUTO	UINT64_MAX /* 16 MiB, or a part of a small memory limit */

struct conf {
	struct listen_addr *conf_listen;
	size_t conf_nlisten;
	bool conf_listen_default; /* not set by the operator */
	struct listen_addr *conf_admin;
	size_t conf_nadmin;
	struct listen_addr conf_agent;	    /* la_text NULL: none */
	struct cidr_list conf_trusted;	    /* proxies whose word is taken */
	enum forwarded conf_client_address; /* the field with their word */
	unsigned conf_workers;		    /* at least 1; auto is resolved */
	unsigned conf_threads;		    /* prefetch threads per device */
	char *conf_access_log; /* path, "-" for stdout, NULL for off */
	const char *conf_access_log_place; /* "FILE:LINE: ", or empty */
	enum log_format conf_log_format;
	struct log_fields conf_log_fields;
	struct log_exclude conf_log_exclude;
	enum log_level conf_log_level;
	unsigned conf_stall_log; /* milliseconds, 0: off */
	unsigned conf_busy_poll; /* microseconds, 0: off */
	struct mime *conf_mime;
	struct conf_types *conf_types; /* those of settings */
	size_t conf_ntypes;

	/* The user to switch to once all is open: sandbox.h. */
	char *conf_user; /* NULL: not given, and not started as root */
	bool conf_user_chosen;
	char *conf_group; /* NULL: not given */
	uid_t conf_uid;
	gid_t conf_gid;	     /* of conf_group, or else conf_user_gid */
	gid_t conf_user_gid; /* the user's own, -1: unknown */
	gid_t *conf_groups;  /* conf_gid and others */
	size_t conf_ngroups;
	char *conf_chroot; /* NULL: none */
	bool conf_sandbox;
	bool conf_keep_fowner;

	unsigned conf_head_timeout;	 /* seconds */
	unsigned conf_keepalive_timeout; /* seconds; 0: no keep-alive */
	unsigned conf_send_timeout;	 /* seconds without progress */
	unsigned conf_disk_timeout;	 /* seconds without an answer */
	unsigned conf_shutdown_timeout;	 /* seconds */
	size_t conf_max_head;		 /* bytes */
	size_t conf_max_target;		 /* bytes */
	size_t conf_max_fields;
	size_t conf_max_ranges;
	unsigned conf_max_requests;	 /* of a connection; 0: all */
	bool conf_http2;		 /* may be spoken */
	unsigned conf_http2_max_streams; /* of a connection */
	unsigned conf_max_connections;	 /* 0: as many as descriptors */
	unsigned conf_max_per_address;	 /* connections; 0: all */
	unsigned conf_min_send_rate;	 /* bytes/s; 0: none */
	uint64_t conf_tcp_memory;	 /* bytes, or TCP_MEMORY_AUTO */
	unsigned conf_open_files;	 /* descriptors cached per worker */
	uint64_t
	    conf_hot_set; /* bytes, of each worker, or HOT_SET_AUTO; 0: off */
	unsigned conf_popular; /* paths to list; 0: off */

	char *conf_live; /* paths of server/content/health.h; NULL: none */
	char *conf_ready;

	struct settings
	    conf_no_site;	 /* the top level's, for responses of no site */
	struct site *conf_sites; /* the first one is the default */
	size_t conf_nsites;
	char **
	    conf_roots; /* directories; absolute, or relative to the working one */
	size_t conf_nroots;
	struct text_index conf_root_index;
	struct text_index conf_titles; /* of sites */
	struct text_index conf_hosts; /* names of sites, and which one has it */
	struct conf_block *conf_memory;	  /* what settings point to: keep.c */
	struct link_keys *conf_link_keys; /* the same */
	struct htpasswd *conf_htpasswds;  /* the same */
	struct request_rule *conf_request_rules; /* the same */
	enum tls_profile conf_tls_profile;
	enum tls_ktls conf_ktls;
	bool conf_session_tickets;
	unsigned conf_https_port; /* of the first address with TLS; 0: none */
	/* What conf_complete_tls has loaded, each file once, by the names of files. */
	const struct identity **conf_identities;
	size_t conf_nidentities;
	unsigned conf_faults;	     /* of its files, that were found */
	struct conf_dump *conf_dump; /* NULL: nobody wants it (dump.c) */
	bool conf_rates;	     /* some location has a rate of clients */
};

enum conf_action {
	CONF_RUN,
	CONF_EXIT_OK,	 /* -t, -T, -V, -h were served; output is written */
	CONF_EXIT_USAGE, /* the command line is wrong, it was said: exit(2) */
	CONF_EXIT_ERROR, /* the file or this host is, it was said: exit(1) */
};

/* What -t and -T try besides, when all else is good: 0, or -1 after a message. */
typedef int (*conf_try_f)(const struct conf *);

/*
 * Parses argv and the configuration file it names.  Command-line settings win
 * over top-level ones in the file; --root defines one site that replaces those
 * of the file.  Everything is checked that can be without binding or starting
 * anything: types, ranges, unknown keys, addresses, that roots are directories
 * that can be read, that the send path exists on this host; with -t and -T also that clients would
 * take the certificates, and by try, which may be NULL.  Messages go to stderr:
 *     pagewise: pagewise.conf:12: threads: 0 is out of range (1 to 256)
 *     pagewise: --threads: 0 is out of range (1 to 256)
 * Not reentrant: getopt(3) is not.
 */
enum conf_action conf_load(
    int argc, char **argv, conf_try_f try, struct conf **);

/* The site for a Host value (port and final dot ignored), else the first. */
const struct site *conf_site(const struct conf *, const char *host, size_t len);

/*
 * The settings for a decoded path: those of the location that is exactly the path, else of the
 * first glob in the file's order that matches, else of the longest prefix, else the site's.
 */
const struct settings *conf_settings(
    const struct site *, const char *path, size_t len);

/*
 * The rule for a decoded path, or NULL: the one of exactly the path, else the first in the
 * file's order that matches.  star: what its '*' stands for.
 */
const struct redirect *conf_redirect(
    const struct settings *, struct str path, struct str *star);

/*
 * host is a Host value: without its port, if it is a name of the site or this has none; else
 * the site's first name that is not for several.  Empty: there is none.
 */
struct str conf_host(const struct site *, struct str host);

#define CONF_MEDIA_TYPE 192 /* bytes that hold any, with its character set */

/* The media type for the name of a file, with its character set. */
void conf_media_type(const struct conf *, const struct settings *,
    const char *name, char *text, size_t size);

/* The page for a status, or NULL: one for just this status before one for all like it. */
const struct error_page *conf_error_page(const struct settings *, int status);

/* path: decoded, s_ptr NULL if there was none.  See conf_logs. */
bool conf_is_excluded(const struct log_exclude *, struct str path, int status);

/* Whether an answer to a request for this path belongs in the access log. */
static inline bool
conf_logs(const struct conf *conf, struct str path, int status)
{
	return !conf->conf_log_exclude.le_any ||
	       !conf_is_excluded(&conf->conf_log_exclude, path, status);
}

/* Whether some address speaks TLS. */
bool conf_has_tls(const struct conf *);

/* Whether clients would take all certificates now; each that they would not is told of. */
bool conf_certificates_are_good(const struct conf *);

/* Whether some location needs a password or a signed link. */
bool conf_has_secrets(const struct conf *);

/* One of trusted_proxies. */
static inline bool
conf_trusts(const struct conf *conf, const struct sockaddr *sa)
{
	const struct cidr_list *cl = &conf->conf_trusted;

	return cl->cl_count > 0 && cidr_has_any(cl->cl_list, cl->cl_count, sa);
}

void conf_destroy(struct conf **);

#endif
