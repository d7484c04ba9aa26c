/*
 * conf_priv: declarations that the files of server/conf share while they build the configuration.
 * No other file of the server includes this header.
 *
 *   conf.c        the order of the steps, and conf_destroy
 *   args.c        the command line
 *   text.c        a file as text: comments and strings; messages with a line number
 *   syntax.c      statements and sections of a file
 *   foreign.c     equivalents of other servers' directives
 *   unescape.c    the text of a word or string
 *   file.c        sets the values of a file
 *   include.c     the main file and the files that it includes
 *   key.c         the table of keys, for files and the command line
 *   key_help.c    prints keys for --keys and -h KEY
 *   assign.c      sets a field from a text
 *   header.c      fields of responses
 *   types.c       media types
 *   access.c      access control
 *   rate.c        rate limits
 *   tls.c         certificates, and settings of TLS
 *   redirect.c    redirects
 *   error_page.c  bodies of error responses
 *   try.c         the key try: files to look for in order
 *   logging.c     settings of logs
 *   listen.c      addresses of listen, admin and agent
 *   proxies.c     proxies in front of this server
 *   user.c        the user to run as
 *   similar.c     finds the name that a misspelt word resembles
 *   text_index.c  finds a name among many
 *   site.c        builds and looks up sites and locations
 *   value.c       parses single values
 *   place.c       file and line of keys that are checked late
 *   keep.c        memory that is freed as a whole
 *   glob.c        patterns of paths
 *   dump.c        the configuration as text
 *   summary.c     the list of sites that -t prints
 *   sign.c        the command pagewise sign
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
	/* key at fault, from checks that run after all keys are set */
	const char *why_key;
	size_t why_after; /* number of list values after the faulty one */
};

/* Writes the cause.  Returns `error`, so that a caller can end with return conf_why(...). */
int conf_why(struct conf_why *, int error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes the text of ENOMEM and returns -ENOMEM. */
int conf_no_memory(struct conf_why *);

/*
 * ---------------------------------------------------------------- values
 * conf_number to conf_cache convert a text to a value, and return 0, -EINVAL if the text is
 * malformed, or -ERANGE if a number is too large.
 */
int conf_number(const char *text, uint64_t *);
int conf_size(const char *text, uint64_t *); /* accepts a suffix K, M or G */
/* Parses a number of seconds, or a number with s, m, h, d, w or y; at most 2^31 - 1 s. */
int conf_time(const char *text, uint64_t *seconds);
int conf_bool(const char *text, bool *);
int conf_cache(const char *text, enum pw_cache *);
/*
 * Writes the range of a numeric key, such as "64K to 64M" or "1 to 256".  Writes an empty text for
 * other keys.
 */
void conf_range_text(const struct key *, char *buf, size_t size);
/*
 * Parses the number of a key and checks its range.  `hint` names other accepted words for the
 * message: ", or auto", or "" if there are none.  Returns 0, or -EINVAL or -ERANGE and the cause.
 */
int conf_in_range(const struct key *, const char *text, const char *hint,
    uint64_t *, struct conf_why *);
int conf_address(const char *text, struct listen_addr *, struct conf_why *);

/* Returns the number of CPUs that this process may run on, at least 1. */
unsigned conf_cpus(void);

/*
 * Returns a copy of `path`, or dir/path if `path` is relative and `dir` is not NULL.  The caller
 * frees the copy.  Returns NULL if memory is short.
 */
char *conf_path(const char *dir, const char *path);

/*
 * Sets *path to a copy of the path in a value, or to NULL for "off".  The caller frees the copy.
 * Returns 0, or -errno and the cause.
 */
int conf_path_or_off(const struct conf_scope *, const char *text, char **path,
    struct conf_why *);

/* Frees a NULL-terminated array of strings. */
void conf_strv_free(char ***);

/*
 * ---------------------------------------------------------------- memory
 * conf_keep and conf_keep_in return zeroed memory, and conf_keep_text returns a copy of a text.
 * conf_keep_in adds the memory to *list, which is NULL while the list is empty.  The memory lives
 * until conf_keep_free.  All return NULL if memory is short.
 */
void *conf_keep(struct conf *, size_t);
void *conf_keep_in(struct conf_block **list, size_t);
char *conf_keep_text(struct conf *, const char *, size_t len);

/*
 * Makes space for one more element in an array of `n` elements of `size` bytes.  Returns `list`
 * itself or a larger copy, or NULL if memory is short.  Requires that the list has a single writer.
 */
void *conf_keep_room(struct conf *, void *list, size_t n, size_t size);

/* Replaces the array by a copy that the caller may add to.  Returns 0 or -ENOMEM. */
int conf_keep_copy(struct conf *, char ***);

/*
 * Appends a copy of a text to a NULL-terminated array with a single owner.  Returns 0 or -ENOMEM.
 */
int conf_keep_add(struct conf *, char ***, const char *);
void conf_keep_free(struct conf_block **);

/*
 * ---------------------------------------------------------------- keys
 * The functions of type key_set_f, and conf_clear_*, belong to the rows of key.c; key.h describes
 * their calls.  conf_complete_* and conf_check_* run once all keys are set; those with a result
 * return 0, or -errno and the cause.
 */
key_set_f conf_set_number;
key_set_f conf_set_bool;
key_set_f conf_set_workers;
key_set_f conf_set_tcp_memory;
key_set_f conf_set_hot_set;
key_set_f conf_set_tier;
key_set_f conf_set_tier_writes;
key_set_f conf_set_access_log;
key_set_f conf_set_log_format;
key_set_f conf_set_log_fields;
void conf_clear_log_fields(struct conf_scope *);
key_set_f conf_set_log_exclude;
void conf_clear_log_exclude(struct conf_scope *);
key_set_f conf_set_log_level;
key_set_f conf_set_trace_clients;
void conf_clear_trace_clients(struct conf_scope *);
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
/* Sets set_mime.  Call once all keys are set.  Returns 0, or -errno and the cause. */
int conf_complete_types(struct conf *, struct settings *, struct conf_why *);

key_set_f conf_set_header;
void conf_clear_header(struct conf_scope *);
key_set_f conf_set_expires;
key_set_f conf_set_cache_control;
key_set_f conf_set_cors;
void conf_clear_cors(struct conf_scope *);
/*
 * Sets set_lines and the other settings that header rules determine.  Call once all keys are set.
 * Returns 0, or -errno and the cause.
 */
int conf_complete_headers(struct conf *, struct settings *, struct conf_why *);

key_set_f conf_set_rate;
key_set_f conf_set_client_rate;
key_set_f conf_set_request_rate;
/* Sets the depths of the token buckets, and conf_rates.  Call once all keys are set. */
void conf_complete_rates(struct conf *, struct settings *);

/* Parses a block of addresses and adds it to a list.  Returns 0, or -errno and the cause. */
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
 * Sets set_closed, set_guarded, set_by_client and set_challenge.  Call once all keys are set.
 * Returns 0, or -errno and the cause.
 */
int conf_complete_access(struct conf *, struct settings *, struct conf_why *);
/*
 * Sets site_closed.  Warns if a location without access rules has precedence over a restricted location for
 * some of the restricted paths, or if a restricted path has other spellings.  Call once all settings of the
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
/* Sets the media types of the error pages.  Call once all keys are set. */
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
/*
 * Sets set_by_scheme, and set_hsts if security_headers implies it.  Checks send_path and
 * redirect_https.  Call once all keys are set.
 */
int conf_complete_scheme(struct conf *, struct settings *, struct conf_why *);
/*
 * conf_complete_tls loads a site's certificates once all keys are set.  If an address uses TLS,
 * conf_check_tls then checks that the first site has a certificate, and sets conf_https_port and
 * conf_identities.
 */
int conf_complete_tls(struct conf *, struct site *, struct conf_why *);
int conf_check_tls(struct conf *, struct conf_why *);
/* Returns the file and line that name a certificate's file, in the format of conf_place. */
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
/*
 * conf_check_admin and conf_check_agent check, once all keys are set, that no other listener uses
 * an address of the key.  Both return 0, or -EEXIST and the cause.
 */
int conf_check_admin(const struct conf *, struct conf_why *);
int conf_check_agent(const struct conf *, struct conf_why *);

key_set_f conf_set_trusted_proxies;
void conf_clear_trusted_proxies(struct conf_scope *);
key_set_f conf_set_client_address;
/* Checks, once all keys are set, that trusted_proxies is set if client_address is. */
int conf_check_proxies(const struct conf *, struct conf_why *);
/* Checks, once all keys are set, that live and ready are different paths. */
int conf_check_health(const struct conf *, struct conf_why *);
/*
 * Checks, once all keys are set, that the tier and the roots do not contain each other.  Resolves
 * links.
 */
int conf_check_tier(const struct conf *, struct conf_why *);
/*
 * Checks, once all keys are set, that trusted_proxies is set if an address expects PROXY headers.
 */
int conf_check_listen(const struct conf *, struct conf_why *);

key_set_f conf_set_user;
key_set_f conf_set_group;
key_set_f conf_set_chroot;
/*
 * Looks up the user's groups.  Selects user nobody if root started the server and user is not set.
 * Call once all keys are set.
 */
int conf_complete_user(struct conf *, struct conf_why *);

key_set_f conf_set_include; /* checks the path; include.c reads the files */
void conf_clear_include(struct conf_scope *);
key_set_f conf_set_root;
key_set_f conf_set_alias;
key_set_f conf_set_names;
void conf_clear_names(struct conf_scope *);

/*
 * ---------------------------------------------------------------- dump
 * These functions record and print the configuration for -T.  conf_dump_value and conf_dump_section
 * do nothing if conf_dump is NULL.  The text of a value is NULL when a list is emptied.
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
/*
 * conf_site_add adds a site that inherits the top level, conf_location_add a location that inherits
 * its site.  The pointer is valid until the next site or location is added.  Both return 0, or
 * -errno and the cause.
 */
int conf_site_add(const struct conf_scope *top, const char *name,
    struct site **, struct conf_why *);
/* Returns true if the location may apply to the path, unless one with precedence does. */
bool conf_location_matches(
    const struct location *, const char *path, size_t len);
int conf_location_add(
    struct site *, const char *title, struct location **, struct conf_why *);

/* Sorts all locations of a site by precedence.  Call once all are added.  Returns 0 or -ENOMEM. */
int conf_site_sort(struct site *);
void conf_site_free(struct site *);

/*
 * ---------------------------------------------------------------- globs
 * '*' matches any text, '?' any byte, every other byte only itself.  Matching needs at most as many
 * steps as the product of the lengths of glob and path.
 */
#define GLOB_MAX 128 /* maximum bytes of a glob */

bool conf_is_glob(const char *text);
bool conf_glob(const char *glob, const char *path, size_t len);

/*
 * Warns if the glob or path has a pattern of a shell or a regular expression, such as [a-z] or {a,b}, which
 * matches only itself.  `what` is the name of the key or section in this line of the file.
 */
void conf_glob_warn(
    const char *file, int line, const char *what, const char *glob);

/*
 * ---------------------------------------------------------------- the file
 * The functions write their own messages.
 */
struct conf_file;

/*
 * Logs a fault in a line of a file: "pagewise: PATH:LINE: " and the text.  Replaces control
 * characters in the text, which may be part of a key or value, by '?'.  Counts the fault in
 * conf_faults.  Logs only the first ten faults.
 */
void conf_say(struct conf *, const char *path, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void conf_vsay(struct conf *, const char *path, int line, const char *fmt,
    va_list) __attribute__((format(printf, 4, 0)));
/*
 * Logs a fault at a place in the format of conf_place.  Does not count the fault if conf is NULL.
 */
void conf_say_at(struct conf *, const char *place, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns "FILE:LINE", which the configuration owns, or NULL if memory is short. */
const char *conf_place_text(struct conf *, const char *file, int line);

/* Records the file and line of a key that has KEY_LATE.  Call before the key is set. */
void conf_place_add(struct conf_scope *, const struct key *);

/*
 * Returns "FILE:LINE: " of the key that is in effect in these settings.  Returns an empty text if
 * the key was set on the command line or nowhere.  `after` is the number of list values after the
 * wanted one.  The configuration owns the text.
 */
const char *conf_place(const struct settings *, const char *name, size_t after);

/*
 * Sets *text to a file's content with a newline appended.  The caller frees *text.  Returns 0 or
 * -errno: -EFBIG if the file has 16 MiB or more, -EILSEQ if it has a NUL, or an error of
 * text_file_open.
 */
int conf_text_read(const char *path, char **text);

/*
 * Overwrites comments with spaces, so that the parser only has to skip white space.  Returns 0, or
 * -EINVAL with the line and the cause if a string or comment has no end.
 */
int conf_text_strip(char *text, int *line, struct conf_why *);

/*
 * Returns the end of the token at `p`: a string, comment, word or single character.  Blanks a
 * comment.  Adds the newlines in the token to *line.  If a string or comment is not terminated,
 * returns NULL and sets *what to "string" or "comment".
 */
char *conf_text_token(char *p, int *line, const char **what);

/*
 * Returns the text of a word or string, in memory that is added to *memory.  The token must be part
 * of a NUL-terminated text.  Returns NULL and the cause if memory is short, an escape sequence is
 * wrong, or a variable is not set and has no default.  *line is the token's line on entry, and on
 * return the line of its end or of the fault.  An escaped NUL ends the returned text.
 */
char *conf_unescape(
    struct conf_block **memory, struct str token, int *line, struct conf_why *);

/*
 * Reads and parses a file.  Logs and counts syntax faults, and continues.  Returns 0, or -errno
 * after a message if the file cannot be read.  The caller must call conf_file_close in both cases.
 */
int conf_file_open(struct conf *, const char *path, struct conf_file **);
const char *conf_file_path(const struct conf_file *);
const char *conf_file_dir(const struct conf_file *);
void conf_file_top(const struct conf_file *, struct conf_scope *);
void conf_file_sites(const struct conf_file *, const struct conf_scope *);
/*
 * Finds value number `n` of the key include, counted from 0, and its line.  Returns false if there
 * are fewer values.
 */
bool conf_file_include(
    const struct conf_file *, unsigned n, const char **text, int *line);
void conf_file_close(struct conf_file **);

/*
 * A file and all files that it includes.  If several files set the same top-level key, the value
 * of the including file takes precedence, then the value of the first included file.
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
	bool arg_dump; /* true for -T, which also sets arg_test */
	size_t arg_nsets;
	struct conf_arg *arg_sets;
};

/* Parses the command line.  Returns CONF_RUN if the caller must continue, else the kind of exit. */
enum conf_action conf_args_parse(int argc, char **argv, struct conf_args *);

/* Returns false after a message if the arguments name neither a directory nor a file. */
bool conf_args_serve(const struct conf_args *);

/*
 * conf_args_apply sets the keys that the options name.  conf_args_site adds the site of arg_root,
 * which must not be NULL.  Both return 0, or -errno after a message.
 */
int conf_args_apply(const struct conf_args *, struct conf_scope *);
int conf_args_site(const struct conf_args *, const struct conf_scope *);
void conf_args_free(struct conf_args *);

#endif
