/*
 * conf_priv: what the conf*.c files share while a configuration is built.
 * Nobody else includes this.
 *
 *   conf.c        the order of things, and conf_destroy
 *   args.c   the command line
 *   text.c   a file as text: comments, strings and braces
 *   file.c   libConfuse; every message with a line number
 *   key.c    what each key means, for file and command line alike
 *   listen.c addresses to listen on, and admin's
 *   user.c   the user to run as
 *   site.c   sites and locations: built here, looked up here
 *   value.c  one value from its text
 */
#ifndef SERVER_CONF_CONF_PRIV_H
#define SERVER_CONF_CONF_PRIV_H

#include <stdarg.h>

#include "server/conf/conf.h"

/* The cause of a failure, for the end of a message. */
struct conf_why {
	char why_text[512];
};

struct conf_build {
	struct conf *cb_conf;
	struct settings cb_set; /* of the top level: what sites inherit */
	const char *cb_dir; /* relative paths start there; NULL: working dir */
};

/* Writes the cause and returns error, so that a function can end with it. */
int conf_why(struct conf_why *, int error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * ---------------------------------------------------------------- values
 * Text to value.  0, -EINVAL (it is not one) or -ERANGE (it does not fit).
 */
int conf_number(const char *text, uint64_t *);
int conf_size(const char *text, uint64_t *); /* with K, M or G: times 1024 */
int conf_bool(const char *text, bool *);
#define CONF_NO_BOOL "\"%s\" is not true or false (nor on, yes, off, no)"
int conf_cache(const char *text, enum pw_cache *);
int conf_address(const char *text, struct listen_addr *, struct conf_why *);

/* CPUs that this process may run on, at least 1. */
unsigned conf_cpus(void);

/* path, or dir/path if it is relative and dir is not NULL.  NULL: no memory. */
char *conf_path(const char *dir, const char *path);

/* A NULL-terminated array of strings.  0 or -ENOMEM. */
int conf_strv_add(char ***, const char *);
void conf_strv_free(char ***);

/*
 * ---------------------------------------------------------------- keys
 * One value of one key.  A list is cleared first, then its members are set one
 * after the other.  0 or -errno and the cause; -ENOENT: there is no such key.
 */
int conf_set_top(
    struct conf_build *, const char *key, const char *text, struct conf_why *);
void conf_clear_top(struct conf_build *, const char *key);
int conf_set_inherited(
    struct settings *, const char *key, const char *text, struct conf_why *);
void conf_clear_inherited(struct settings *, const char *key);
int conf_set_send_path(struct settings *, const char *name, struct conf_why *);

/* As those of the other keys, but that they have a file of their own. */
struct top_key;

int conf_set_listen(struct conf_build *, const struct top_key *,
    const char *text, struct conf_why *);
void conf_clear_listen(struct conf *);
int conf_set_admin(struct conf_build *, const struct top_key *,
    const char *text, struct conf_why *);
void conf_clear_admin(struct conf *);
/* Once all is set: it must have an address of its own. */
int conf_check_admin(const struct conf *, struct conf_why *);

int conf_set_user(struct conf_build *, const struct top_key *, const char *text,
    struct conf_why *);
int conf_set_group(struct conf_build *, const struct top_key *,
    const char *text, struct conf_why *);
int conf_set_chroot(struct conf_build *, const struct top_key *,
    const char *text, struct conf_why *);
int conf_set_sandbox(struct conf_build *, const struct top_key *,
    const char *text, struct conf_why *);
int conf_set_keep_fowner(struct conf_build *, const struct top_key *,
    const char *text, struct conf_why *);
/* Once all is set: finds the groups; root without a user gets nobody. */
int conf_complete_user(struct conf *, struct conf_why *);

/* A list at the top level that was set to {}.  0, or -EINVAL and the cause. */
int conf_empty_top(const char *key, struct conf_why *);

/*
 * Where a key or section belongs that is not known in section ("root" is the top
 * level, else "site" or "location"), for the end of a message.  NULL: nowhere.
 */
const char *conf_key_place(const char *key, const char *section);

/* A key or section that may have been meant, or NULL. */
const char *conf_key_like(const char *key);

/*
 * ---------------------------------------------------------------- sites
 */
int conf_settings_copy(struct settings *to, const struct settings *from);
void conf_settings_free(struct settings *);

/* Both inherit; the pointer is good until the next one is added. */
int conf_site_add(struct conf *, const char *name, const struct settings *,
    struct site **, struct conf_why *);
int conf_location_add(
    struct site *, const char *prefix, struct location **, struct conf_why *);

int conf_site_root(
    struct site *, const char *dir, const char *root, struct conf_why *);
int conf_site_name(
    const struct conf *, struct site *, const char *name, struct conf_why *);

/* After the last location of a site: longest prefix first. */
void conf_site_sort(struct site *);
void conf_site_free(struct site *);

/*
 * ---------------------------------------------------------------- the file
 * These write their own messages.
 */
struct conf_file;

/*
 * A message about a line of a file: "pagewise: PATH:LINE: " and the text, in which a
 * control character, as a key or a value may have it, is shown as '?'.
 */
void conf_say(const char *path, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void conf_vsay(const char *path, int line, const char *fmt, va_list)
    __attribute__((format(printf, 3, 0)));

/*
 * Reads the file and adds a newline; the caller frees text.  0 or -errno;
 * -EFBIG: larger than 16 MiB; -EILSEQ: it has a NUL; others as text_file_open.
 */
int conf_text_read(const char *path, char **text);

/*
 * Overwrites comments with spaces and checks what libConfuse would let pass: an
 * open brace, string or comment at the end.  libConfuse counts the lines of
 * comments twice, so it must not see any.  0, or -EINVAL with the line where
 * the thing began and what it is.
 */
int conf_text_strip(char *text, int *line, const char **what);

/*
 * The line of the last "key = {}" outside of all sections, which libConfuse
 * does not keep; 0: there is none.  text has been stripped.
 */
int conf_text_empty(char *text, const char *key);

int conf_file_open(const char *path, struct conf_file **);
const char *conf_file_dir(const struct conf_file *);
int conf_file_top(const struct conf_file *, struct conf_build *);
int conf_file_sites(const struct conf_file *, struct conf_build *);
void conf_file_close(struct conf_file **);

/*
 * ---------------------------------------------------------------- arguments
 * Text stays in argv.
 */
struct conf_args {
	const char *arg_config;
	const char *arg_root;
	bool arg_test;
	size_t arg_nsets;
	struct conf_arg *arg_sets;
};

/* CONF_RUN: go on. */
enum conf_action conf_args_parse(int argc, char **argv, struct conf_args *);

/* False, told: they name neither a directory nor a file. */
bool conf_args_serve(const struct conf_args *);

/* The keys; then, if there is an arg_root, its site.  0 or -errno, told. */
int conf_args_apply(const struct conf_args *, struct conf_build *);
int conf_args_site(const struct conf_args *, struct conf_build *);
void conf_args_free(struct conf_args *);

#endif
