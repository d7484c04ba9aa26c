/*
 * conf_priv: what the conf*.c files share while a configuration is built.
 * No other file includes this.
 *
 *   conf.c        the order of things, and conf_destroy
 *   args.c   the command line
 *   text.c   a file as text: comments and strings; messages with a line number
 *   syntax.c  its statements and sections
 *   foreign.c  names that other servers have for keys
 *   unescape.c  the text of a word or string
 *   file.c   what the values of a file set
 *   include.c  the file, and those that it includes
 *   key.c    a row for each key, for file and command line alike
 *   assign.c a value's text becomes a field
 *   header.c fields of answers
 *   types.c  media types
 *   access.c  who may have answers
 *   rate.c   how fast, and how often
 *   tls.c    certificates, and how TLS is spoken
 *   redirect.c  paths that have moved
 *   error_page.c  bodies of errors
 *   try.c    files to look for
 *   logging.c  what is logged
 *   listen.c addresses to listen on, and admin's
 *   proxies.c  proxies in front of this server
 *   user.c   the user to run as
 *   text_index.c  finds a name among many
 *   site.c   sites and locations: built here, looked up here
 *   value.c  one value from its text
 *   place.c  file and line of keys whose fault shows late
 *   keep.c   memory that is freed as a whole
 *   glob.c   patterns of paths
 *   dump.c   all of it as text
 *   summary.c  what will be served where
 */
#ifndef SERVER_CONF_CONF_PRIV_H
#define SERVER_CONF_CONF_PRIV_H

#include <stdarg.h>

#include "server/conf/conf.h"
#include "server/conf/key.h"
#include "server/util/str.h"

/* The cause of a failure, for the end of a message. */
struct conf_why {
	char why_text[512];
	/* Set by what is called once all is set, if a key is at fault: */
	const char *why_key;
	size_t why_after; /* values behind the one at fault, in a list */
};

/* Writes the cause and returns error, so that a function can end with it. */
int conf_why(struct conf_why *, int error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with -ENOMEM. */
int conf_no_memory(struct conf_why *);

/*
 * ---------------------------------------------------------------- values
 * Text to value.  0, -EINVAL (it is not one) or -ERANGE (it does not fit).
 */
int conf_number(const char *text, uint64_t *);
int conf_size(const char *text, uint64_t *); /* with K, M or G: times 1024 */
/* Seconds, or a number with s, m, h, d, w or y; 2^31 - 1 at most. */
int conf_time(const char *text, uint64_t *seconds);
int conf_bool(const char *text, bool *);
int conf_cache(const char *text, enum pw_cache *);
/* Of a key that is a number, as conf_size reads it: "64K to 64M".  Empty: it is none. */
void conf_range_text(const struct key *, char *buf, size_t size);
/* Of a number: its range, and what else may be written, ", or auto", or "". */
int conf_in_range(const struct key *, const char *text, const char *hint,
    uint64_t *, struct conf_why *);
int conf_address(const char *text, struct listen_addr *, struct conf_why *);

/* CPUs that this process may run on, at least 1. */
unsigned conf_cpus(void);

/* path, or dir/path if it is relative and dir is not NULL.  NULL: no memory. */
char *conf_path(const char *dir, const char *path);

/* Of a value that is a file or "off": then NULL.  The caller frees it.  0, or -errno and why. */
int conf_path_or_off(const struct conf_scope *, const char *text, char **path,
    struct conf_why *);

/* Of a NULL-terminated array of strings. */
void conf_strv_free(char ***);

/*
 * ---------------------------------------------------------------- memory
 * Zeroed, until conf_keep_free.  NULL: there is none.
 */
void *conf_keep(struct conf *, size_t);
void *conf_keep_in(
    struct conf_block **, size_t); /* of a list that begins as NULL */
char *conf_keep_text(struct conf *, const char *, size_t len);

/*
 * The array of n, each of size bytes, with room for one more: list itself or another one.  Only
 * where nobody else adds to it.  NULL: there is no memory.
 */
void *conf_keep_room(struct conf *, void *list, size_t n, size_t size);

/* The same array for somebody who will add to it.  0 or -ENOMEM. */
int conf_keep_copy(struct conf *, char ***);

/* To an array that nobody else has; NULL ends it.  0 or -ENOMEM. */
int conf_keep_add(struct conf *, char ***, const char *);
void conf_keep_free(struct conf_block **);

/*
 * ---------------------------------------------------------------- keys
 * What the rows of key.c name: key.h says how they are called.
 */
key_set_f conf_set_number;
key_set_f conf_set_bool;
key_set_f conf_set_workers;
key_set_f conf_set_tcp_memory;
key_set_f conf_set_hot_set;
key_set_f conf_set_access_log;
key_set_f conf_set_log_format;
key_set_f conf_set_log_fields;
void conf_clear_log_fields(struct conf_scope *);
key_set_f conf_set_log_exclude;
void conf_clear_log_exclude(struct conf_scope *);
key_set_f conf_set_log_level;
key_set_f conf_set_mime_types;
key_set_f conf_set_send_path;
key_set_f conf_set_readahead;
key_set_f conf_set_cache;
key_set_f conf_set_listing_header;
key_set_f conf_set_dotfiles;
void conf_clear_dotfiles(struct conf_scope *);
key_set_f conf_set_index;
void conf_clear_index(struct conf_scope *);

key_set_f conf_set_precompressed;
void conf_clear_precompressed(struct conf_scope *);
key_set_f conf_set_charset;
key_set_f conf_set_default_type;
key_set_f conf_set_etag;
key_set_f conf_set_types;
void conf_clear_types(struct conf_scope *);
/* Once all is set: makes set_mime. */
int conf_complete_types(struct conf *, struct settings *, struct conf_why *);

key_set_f conf_set_header;
void conf_clear_header(struct conf_scope *);
key_set_f conf_set_expires;
key_set_f conf_set_cache_control;
key_set_f conf_set_cors;
void conf_clear_cors(struct conf_scope *);
/* Once all is set: makes set_lines and the like.  0 or -errno, and why. */
int conf_complete_headers(struct conf *, struct settings *, struct conf_why *);

key_set_f conf_set_rate;
key_set_f conf_set_client_rate;
key_set_f conf_set_request_rate;
/* Once all is set: how much at once. */
void conf_complete_rates(struct conf *, struct settings *);

/* Adds a block of addresses. */
int conf_set_block(struct conf_scope *, struct cidr_list *, const char *text,
    struct conf_why *);
key_set_f conf_set_allow;
void conf_clear_allow(struct conf_scope *);
key_set_f conf_set_deny;
void conf_clear_deny(struct conf_scope *);
key_set_f conf_set_signed_links;
key_set_f conf_set_htpasswd;
key_set_f conf_set_realm;
void conf_free_access(struct conf *);
/* Once all is set: set_guarded, set_by_client, set_challenge.  0 or -errno, and why. */
int conf_complete_access(struct conf *, struct settings *, struct conf_why *);
/* After that of all its settings: site_closed; warns of globs that open what is closed. */
void conf_complete_site(struct site *);
key_set_f conf_set_live;
key_set_f conf_set_ready;
key_set_f conf_set_redirect;
void conf_clear_redirect(struct conf_scope *);
key_set_f conf_set_try;
void conf_clear_try(struct conf_scope *);
key_set_f conf_set_error_page;
void conf_clear_error_page(struct conf_scope *);
/* Once all is set: the media types of the pages. */
int conf_complete_pages(struct conf *, struct settings *, struct conf_why *);

key_set_f conf_set_certificate;
void conf_clear_certificate(struct conf_scope *);
key_set_f conf_set_certificate_key;
void conf_clear_certificate_key(struct conf_scope *);
key_set_f conf_set_tls_profile;
key_set_f conf_set_ktls;
key_set_f conf_set_verify_client;
key_set_f conf_set_client_ca;
key_set_f conf_set_hsts;
/* Once all is set: set_by_scheme, and the field of security_headers. */
int conf_complete_scheme(struct conf *, struct settings *, struct conf_why *);
/* Once all is set: loads a site's certificates; then: the first site has one. */
int conf_complete_tls(struct conf *, struct site *, struct conf_why *);
int conf_check_tls(struct conf *, struct conf_why *);
/* Where its file is named, as conf_place has it. */
const char *conf_identity_place(const struct conf *, const struct identity *);
void conf_free_tls(struct conf *);

key_set_f conf_set_listen;
void conf_clear_listen(struct conf_scope *);
void conf_free_listen(struct conf *);
key_set_f conf_set_admin;
void conf_clear_admin(struct conf_scope *);
void conf_free_admin(struct conf *);
key_set_f conf_set_agent;
void conf_free_agent(struct conf *);
/* Once all is set: it must have an address of its own. */
int conf_check_admin(const struct conf *, struct conf_why *);
int conf_check_agent(const struct conf *, struct conf_why *);

key_set_f conf_set_trusted_proxies;
void conf_clear_trusted_proxies(struct conf_scope *);
key_set_f conf_set_client_address;
/* Once all is set: who needs trusted_proxies has some. */
int conf_check_proxies(const struct conf *, struct conf_why *);
/* Once all is set: live and ready are two paths. */
int conf_check_health(const struct conf *, struct conf_why *);
int conf_check_listen(const struct conf *, struct conf_why *);

key_set_f conf_set_user;
key_set_f conf_set_group;
key_set_f conf_set_chroot;
/* Once all is set: finds the groups; root without a user gets nobody. */
int conf_complete_user(struct conf *, struct conf_why *);

key_set_f conf_set_include; /* does nothing: include.c has opened them */
void conf_clear_include(struct conf_scope *);
key_set_f conf_set_root;
key_set_f conf_set_alias;
key_set_f conf_set_names;
void conf_clear_names(struct conf_scope *);

/*
 * ---------------------------------------------------------------- what is told of it
 * What has no conf_dump is not written down.  text is NULL when a list is emptied.
 */
int conf_dump_begin(struct conf *); /* 0 or -errno */
void conf_dump_value(
    const struct conf_scope *, const char *name, const char *text);
void conf_dump_section(struct conf *, unsigned where, const char *title);
int conf_dump_print(const struct conf *); /* 0, or -ENOMEM from before */

void conf_summary(const struct conf *);

/*
 * ---------------------------------------------------------------- sites
 */
/* Both inherit; the pointer is good until the next one is added. */
int conf_site_add(const struct conf_scope *top, const char *name,
    struct site **, struct conf_why *);
int conf_location_add(
    struct site *, const char *title, struct location **, struct conf_why *);

/* After the last location of a site: those that win first.  0 or -ENOMEM. */
int conf_site_sort(struct site *);
void conf_site_free(struct site *);

/*
 * ---------------------------------------------------------------- globs
 * '*' is any text, '?' one byte, all else is itself.  Takes a time of at most len times the
 * length of the glob.
 */
#define GLOB_MAX 128 /* bytes of a glob */

bool conf_is_glob(const char *text);
bool conf_glob(const char *glob, const char *path, size_t len);

/*
 * ---------------------------------------------------------------- the file
 * These write their own messages.
 */
struct conf_file;

/*
 * Logs a fault of a line of a file: "pagewise: PATH:LINE: " and the text, in which a control
 * character, as a key or a value may have it, is shown as '?'.  Counts it in conf_faults; after
 * ten only that.
 */
void conf_say(struct conf *, const char *path, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void conf_vsay(struct conf *, const char *path, int line, const char *fmt,
    va_list) __attribute__((format(printf, 4, 0)));
/* The same at a place as conf_place has it; if conf is NULL nothing is counted. */
void conf_say_at(struct conf *, const char *place, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Before a key is set: keeps where, if it is one of KEY_LATE. */
void conf_place_add(struct conf_scope *, const struct key *);

/*
 * Where the key was set that holds in these settings: "FILE:LINE: ".  Empty: on the command
 * line, or nowhere.  Of a list the last value but so many.  The text is the configuration's.
 */
const char *conf_place(const struct settings *, const char *name, size_t after);

/*
 * Reads the file and adds a newline; the caller frees text.  0 or -errno;
 * -EFBIG: larger than 16 MiB; -EILSEQ: it has a NUL; others as text_file_open.
 */
int conf_text_read(const char *path, char **text);

/*
 * Overwrites comments with spaces, so that only a space can separate two words.
 * Returns 0, or -EINVAL with the line and why if a string or comment has no end.
 */
int conf_text_strip(char *text, int *line, struct conf_why *);

/*
 * Returns the end of the string, comment or word at p, or of the one character that is none.  Adds
 * the newlines in it to line.  Returns NULL if it has no end; what is its kind then.
 */
char *conf_text_token(char *p, int *line, const char **what);

/*
 * Returns the text of a word or string, in memory.  The token is part of a text that a NUL ends.
 * Returns NULL and why if an escape sequence is wrong, or a variable is not set and has no default.
 * line is that of the token, then of its end or of the fault.  An escaped NUL ends the text.
 */
char *conf_unescape(
    struct conf_block **memory, struct str token, int *line, struct conf_why *);

/*
 * Faults of the text and of its values are logged and counted, and the rest is read.  Returns
 * -errno if a file cannot be read, which was logged.
 */
int conf_file_open(struct conf *, const char *path, struct conf_file **);
const char *conf_file_path(const struct conf_file *);
const char *conf_file_dir(const struct conf_file *);
void conf_file_top(const struct conf_file *, struct conf_scope *);
void conf_file_sites(const struct conf_file *, const struct conf_scope *);
/* The n-th value of the key include, and its line.  False: there are fewer. */
bool conf_file_include(
    const struct conf_file *, unsigned n, const char **text, int *line);
void conf_file_close(struct conf_file **);

/*
 * A file and all that it includes.  Of a key of the top level that several have, the value of
 * the file counts that includes the others, and of those the one of the first.
 */
struct conf_files;

int conf_files_open(struct conf *, const char *path, struct conf_files **);
void conf_files_top(const struct conf_files *, struct conf_scope *);
void conf_files_sites(const struct conf_files *, const struct conf_scope *);
void conf_files_close(struct conf_files **);

/*
 * ---------------------------------------------------------------- arguments
 * Text stays in argv.
 */
struct conf_args {
	const char *arg_config;
	const char *arg_root;
	bool arg_test;
	bool arg_dump; /* -T; then also arg_test */
	size_t arg_nsets;
	struct conf_arg *arg_sets;
};

/* CONF_RUN: go on. */
enum conf_action conf_args_parse(int argc, char **argv, struct conf_args *);

/* False, with a message: they name neither a directory nor a file. */
bool conf_args_serve(const struct conf_args *);

/* The keys; then, if there is an arg_root, its site.  0, or -errno after a message. */
int conf_args_apply(const struct conf_args *, struct conf_scope *);
int conf_args_site(const struct conf_args *, const struct conf_scope *);
void conf_args_free(struct conf_args *);

#endif
