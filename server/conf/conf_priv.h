/*
 * conf_priv: what the conf*.c files share while a configuration is built.
 * No other file includes this.
 *
 *   conf.c        the order of things, and conf_destroy
 *   args.c   the command line
 *   text.c   a file as text: comments and strings; messages with a line number
 *   syntax.c  its statements and sections
 *   foreign.c  other servers' names for keys
 *   unescape.c  the text of a word or string
 *   file.c   what the values of a file set
 *   include.c  the file, and those that it includes
 *   key.c    a row for each key, for file and command line alike
 *   assign.c sets a field from a text
 *   header.c fields of responses
 *   types.c  media types
 *   access.c  access control
 *   rate.c   rate limits
 *   tls.c    certificates, and settings of TLS
 *   redirect.c  paths that have moved
 *   error_page.c  bodies of errors
 *   try.c    files to look for
 *   logging.c  settings of logs
 *   listen.c addresses to listen on, and admin's
 *   proxies.c  proxies in front of this server
 *   user.c   the user to run as
 *   text_index.c  finds a name among many
 *   site.c   sites and locations: built here, looked up here
 *   value.c  one value from its text
 *   place.c  file and line of keys whose fault shows late
 *   keep.c   memory that is freed as a whole
 *   glob.c   patterns of paths
 *   dump.c   the configuration as text
 *   summary.c  the list of sites that -t prints
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
	/* Key at fault.  Set by checks that run after all keys are set. */
	const char *why_key;
	size_t why_after; /* number of list values after the one at fault */
};

/* Writes the cause and returns error, so that a caller can return its result. */
int conf_why(struct conf_why *, int error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes the text of ENOMEM and returns -ENOMEM. */
int conf_no_memory(struct conf_why *);

/*
 * ---------------------------------------------------------------- values
 * Convert text to a value.  Return 0, -EINVAL (malformed) or -ERANGE (too large).
 */
int conf_number(const char *text, uint64_t *);
int conf_size(const char *text, uint64_t *); /* accepts K, M or G: times 1024 */
/* Parses a number of seconds, or a number with s, m, h, d, w or y; at most 2^31 - 1 s. */
int conf_time(const char *text, uint64_t *seconds);
int conf_bool(const char *text, bool *);
int conf_cache(const char *text, enum pw_cache *);
/*
 * Writes the range of a numeric key in the syntax of conf_size: "64K to 64M".  Writes an empty text
 * for other keys.
 */
void conf_range_text(const struct key *, char *buf, size_t size);
/* Parses a number and checks its range.  hint names other accepted words: ", or auto", or "". */
int conf_in_range(const struct key *, const char *text, const char *hint,
    uint64_t *, struct conf_why *);
int conf_address(const char *text, struct listen_addr *, struct conf_why *);

/* Returns the number of CPUs that this process may run on, at least 1. */
unsigned conf_cpus(void);

/*
 * Returns path, or dir/path if it is relative and dir is not NULL.  Returns NULL if memory is
 * short.
 */
char *conf_path(const char *dir, const char *path);

/*
 * Parses a value that is a path or "off", which sets *path to NULL.  The caller frees *path.
 * Returns 0, or -errno and why.
 */
int conf_path_or_off(const struct conf_scope *, const char *text, char **path,
    struct conf_why *);

/* Frees a NULL-terminated array of strings. */
void conf_strv_free(char ***);

/*
 * ---------------------------------------------------------------- memory
 * Return zeroed memory that lives until conf_keep_free, or NULL if memory is short.
 */
void *conf_keep(struct conf *, size_t);
void *conf_keep_in(struct conf_block **, size_t); /* list starts as NULL */
char *conf_keep_text(struct conf *, const char *, size_t len);

/*
 * Returns the array of n elements of size bytes with space for one more: list itself or a new
 * array.  Only for lists that have a single writer.  Returns NULL if memory is short.
 */
void *conf_keep_room(struct conf *, void *list, size_t n, size_t size);

/* Replaces the array by a copy that the caller may add to.  Returns 0 or -ENOMEM. */
int conf_keep_copy(struct conf *, char ***);

/* Appends to a NULL-terminated array that has a single owner.  Returns 0 or -ENOMEM. */
int conf_keep_add(struct conf *, char ***, const char *);
void conf_keep_free(struct conf_block **);

/*
 * ---------------------------------------------------------------- keys
 * Functions that the rows of key.c name.  key.h describes how they are called.
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
/* Makes set_mime once all keys are set. */
int conf_complete_types(struct conf *, struct settings *, struct conf_why *);

key_set_f conf_set_header;
void conf_clear_header(struct conf_scope *);
key_set_f conf_set_expires;
key_set_f conf_set_cache_control;
key_set_f conf_set_cors;
void conf_clear_cors(struct conf_scope *);
/* Makes set_lines and the other fields once all keys are set.  Returns 0, or -errno and why. */
int conf_complete_headers(struct conf *, struct settings *, struct conf_why *);

key_set_f conf_set_rate;
key_set_f conf_set_client_rate;
key_set_f conf_set_request_rate;
/* Sets the bursts once all keys are set. */
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
/*
 * Sets set_guarded, set_by_client and set_challenge once all keys are set.  Returns 0, or -errno
 * and why.
 */
int conf_complete_access(struct conf *, struct settings *, struct conf_why *);
/*
 * Sets site_closed, and warns of globs that open a closed location.  Call once all settings of the
 * site are complete.
 */
void conf_complete_site(struct site *);
key_set_f conf_set_live;
key_set_f conf_set_ready;
key_set_f conf_set_redirect;
void conf_clear_redirect(struct conf_scope *);
key_set_f conf_set_try;
void conf_clear_try(struct conf_scope *);
key_set_f conf_set_error_page;
void conf_clear_error_page(struct conf_scope *);
/* Sets the media types of the pages once all keys are set. */
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
/* Sets set_by_scheme and adds the field of security_headers once all keys are set. */
int conf_complete_scheme(struct conf *, struct settings *, struct conf_why *);
/*
 * Loads a site's certificates once all keys are set.  conf_check_tls then checks that the first
 * site has one.
 */
int conf_complete_tls(struct conf *, struct site *, struct conf_why *);
int conf_check_tls(struct conf *, struct conf_why *);
/* Returns the place where a certificate's file is named, in the format of conf_place. */
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
/* Checks, once all keys are set, that no other listener has the address. */
int conf_check_admin(const struct conf *, struct conf_why *);
int conf_check_agent(const struct conf *, struct conf_why *);

key_set_f conf_set_trusted_proxies;
void conf_clear_trusted_proxies(struct conf_scope *);
key_set_f conf_set_client_address;
/* Checks, once all keys are set, that client_address comes with trusted_proxies. */
int conf_check_proxies(const struct conf *, struct conf_why *);
/* Checks, once all keys are set, that live and ready are different paths. */
int conf_check_health(const struct conf *, struct conf_why *);
int conf_check_listen(const struct conf *, struct conf_why *);

key_set_f conf_set_user;
key_set_f conf_set_group;
key_set_f conf_set_chroot;
/* Finds the groups once all keys are set.  Selects user nobody if root started without a user. */
int conf_complete_user(struct conf *, struct conf_why *);

key_set_f conf_set_include; /* does nothing, as include.c opened the files */
void conf_clear_include(struct conf_scope *);
key_set_f conf_set_root;
key_set_f conf_set_alias;
key_set_f conf_set_names;
void conf_clear_names(struct conf_scope *);

/*
 * ---------------------------------------------------------------- dump
 * Do nothing if conf_dump is NULL.  text is NULL when a list is emptied.
 */
int conf_dump_begin(struct conf *); /* returns 0 or -errno */
void conf_dump_value(
    const struct conf_scope *, const char *name, const char *text);
void conf_dump_section(struct conf *, unsigned where, const char *title);
int conf_dump_print(const struct conf *); /* returns 0 or -ENOMEM */

void conf_summary(const struct conf *);

/*
 * ---------------------------------------------------------------- sites
 */
/* Add a section that inherits.  The pointer is valid until the next section is added. */
int conf_site_add(const struct conf_scope *top, const char *name,
    struct site **, struct conf_why *);
int conf_location_add(
    struct site *, const char *title, struct location **, struct conf_why *);

/* Sorts the locations of a site by precedence.  Call after the last one.  Returns 0 or -ENOMEM. */
int conf_site_sort(struct site *);
void conf_site_free(struct site *);

/*
 * ---------------------------------------------------------------- globs
 * '*' matches any text, '?' one byte, every other byte itself.  Matching takes at most len times
 * the length of the glob.
 */
#define GLOB_MAX 128 /* maximum bytes of a glob */

bool conf_is_glob(const char *text);
bool conf_glob(const char *glob, const char *path, size_t len);

/*
 * ---------------------------------------------------------------- the file
 * The functions write their own messages.
 */
struct conf_file;

/*
 * Logs a fault in a line of a file: "pagewise: PATH:LINE: " and the text, in which each control
 * character (a key or value may contain one) becomes '?'.  Counts it in conf_faults; after ten
 * faults it only counts.
 */
void conf_say(struct conf *, const char *path, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void conf_vsay(struct conf *, const char *path, int line, const char *fmt,
    va_list) __attribute__((format(printf, 4, 0)));
/* Logs a fault at a place in the format of conf_place.  Does not count it if conf is NULL. */
void conf_say_at(struct conf *, const char *place, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Keeps the place of a key if it has KEY_LATE.  Call before the key is set. */
void conf_place_add(struct conf_scope *, const struct key *);

/*
 * Returns "FILE:LINE: " of the key that is in effect in these settings.  Returns an empty text if
 * the key was set on the command line or nowhere.  after counts the list values after the wanted
 * one.  The configuration owns the text.
 */
const char *conf_place(const struct settings *, const char *name, size_t after);

/*
 * Reads the file and appends a newline; the caller frees text.  Returns 0 or -errno: -EFBIG if it
 * is larger than 16 MiB, -EILSEQ if it has a NUL, else as text_file_open.
 */
int conf_text_read(const char *path, char **text);

/*
 * Overwrites comments with spaces, so that only a space can separate two words.
 * Returns 0, or -EINVAL with the line and why if a string or comment has no end.
 */
int conf_text_strip(char *text, int *line, struct conf_why *);

/*
 * Returns the end of the string, comment or word at p, or of the one character that is none.  Adds
 * the newlines in it to line.  Returns NULL if it has no end, and its kind in what.
 */
char *conf_text_token(char *p, int *line, const char **what);

/*
 * Returns the text of a word or string, in memory.  A NUL ends the text that the token is part of.
 * Returns NULL and why if an escape sequence is wrong, or a variable is not set and has no default.
 * On entry line is the token's; on return it is that of the token's end or of the fault.  An
 * escaped NUL ends the text.
 */
char *conf_unescape(
    struct conf_block **memory, struct str token, int *line, struct conf_why *);

/*
 * Reads a file.  Logs and counts faults of its text and values, and continues.  Returns -errno
 * after a message if a file cannot be read.
 */
int conf_file_open(struct conf *, const char *path, struct conf_file **);
const char *conf_file_path(const struct conf_file *);
const char *conf_file_dir(const struct conf_file *);
void conf_file_top(const struct conf_file *, struct conf_scope *);
void conf_file_sites(const struct conf_file *, const struct conf_scope *);
/* Returns the n-th value of the key include, and its line.  Returns false if there are fewer. */
bool conf_file_include(
    const struct conf_file *, unsigned n, const char **text, int *line);
void conf_file_close(struct conf_file **);

/*
 * A file and all files that it includes.  If several set the same top-level key, the value of the
 * including file takes precedence, then that of the first included one.
 */
struct conf_files;

int conf_files_open(struct conf *, const char *path, struct conf_files **);
void conf_files_top(const struct conf_files *, struct conf_scope *);
void conf_files_sites(const struct conf_files *, const struct conf_scope *);
void conf_files_close(struct conf_files **);

/*
 * ---------------------------------------------------------------- arguments
 * The texts point into argv.
 */
struct conf_args {
	const char *arg_config;
	const char *arg_root;
	bool arg_test;
	bool arg_dump; /* -T, which also sets arg_test */
	size_t arg_nsets;
	struct conf_arg *arg_sets;
};

/* Returns CONF_RUN if the caller should continue. */
enum conf_action conf_args_parse(int argc, char **argv, struct conf_args *);

/* Returns false after a message if the arguments name neither a directory nor a file. */
bool conf_args_serve(const struct conf_args *);

/*
 * Set the keys; then the site of arg_root, if there is one.  Return 0, or -errno after a message.
 */
int conf_args_apply(const struct conf_args *, struct conf_scope *);
int conf_args_site(const struct conf_args *, const struct conf_scope *);
void conf_args_free(struct conf_args *);

#endif
