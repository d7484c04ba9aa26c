/*
 * htpasswd: see htpasswd.h.
 */
#include "server/util/htpasswd.h"

/* FreeBSD declares crypt(3) in unistd.h. */
#if __has_include(<crypt.h>)
#include <crypt.h>
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/util/hmac.h"
#include "server/util/secret_file.h"

#define CLASSES	       16
#define COST_MOST      16      /* maximum of bcrypt: 2^16 rounds, about 3 s */
#define ROUNDS_MOST    2000000 /* maximum of SHA: about a second */
/*
 * Limits of yescrypt in the notation of crypt(5): 2^16 blocks of 4 KiB, about a second and 256 MiB.
 */
#define YESCRYPT_MOST  'D'
#define YESCRYPT_BLOCK 'T'
#define CURE	       "create a new hash with htpasswd -B"
#define BCRYPT_BYTES   60

struct htpasswd_scratch {
	struct crypt_data hs_crypt;
};

/* Kinds of hashes, with cheap valid settings to test whether this system supports them. */
static const struct kind {
	const char *kd_prefix;
	const char *kd_trial;
} kinds[] = {
    {"$2a$", "$2a$04$abcdefghijklmnopqrstuu"},
    {"$2b$", "$2b$04$abcdefghijklmnopqrstuu"},
    {"$2y$", "$2y$04$abcdefghijklmnopqrstuu"},
    {"$5$", "$5$rounds=1000$abcdefgh"},
    {"$6$", "$6$rounds=1000$abcdefgh"},
    {"$y$", "$y$j75$abcdefgh"},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* A kind and a cost: the part of a hash before the salt. */
struct class {
	const char *cl_hash; /* hash of the first user of the class */
	size_t cl_len;	     /* bytes of cl_hash that define the class */
	size_t cl_count;
};

struct loading {
	struct htpasswd *ld_file;
	struct class ld_classes[CLASSES];
	struct htpasswd_scratch *ld_scratch;
	/* true for kinds that crypt(3) was found to support */
	bool ld_known[KINDS];
	char ld_cause[160];
};

static const char *
htpasswd_hash(
    const char *password, const char *setting, struct htpasswd_scratch *hs)
{
	const char *text;

	memset(&hs->hs_crypt, 0, sizeof(hs->hs_crypt));
	text = crypt_r(password, setting, &hs->hs_crypt);
	/* crypt_r returns "*0" or "*1" on failure. */
	return text != NULL && text[0] != '*' ? text : NULL;
}

struct htpasswd_scratch *
htpasswd_scratch_create(void)
{
	return calloc(1, sizeof(struct htpasswd_scratch));
}

/* -------------------------------------------------------------- the file */

static bool
htpasswd_begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static const char *
htpasswd_weak(const char *text)
{
	if (htpasswd_begins(text, "$apr1$") || htpasswd_begins(text, "$1$"))
		return "MD5 is weak: " CURE;
	if (htpasswd_begins(text, "{SHA}") || htpasswd_begins(text, "{SSHA}"))
		return "SHA-1 is weak: " CURE;
	if (strlen(text) == 13 && strchr(text, '$') == NULL)
		return "DES is weak: " CURE;
	if (text[0] == '$')
		return "unknown type of password hash: " CURE;
	return "the password is not hashed: " CURE;
}

/* Returns the number of bytes before the salt. */
static size_t
htpasswd_class_length(const char *text)
{
	const char *end;

	if (text[1] == '2')
		return 7;
	if (text[1] == 'y' || htpasswd_begins(text + 3, "rounds=")) {
		end = strchr(text + 3, '$');
		return end != NULL ? (size_t)(end - text) + 1 : strlen(text);
	}
	return 3;
}

static bool
htpasswd_is_hash_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '.' || c == '/' || c == '$' ||
	       c == '=';
}

static bool
htpasswd_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *
htpasswd_bcrypt_cause(const char *text)
{
	if (strlen(text) != BCRYPT_BYTES || !htpasswd_is_digit(text[4]) ||
	    !htpasswd_is_digit(text[5]) || text[6] != '$')
		return "the hash is not complete: " CURE;
	return strtol(text + 4, NULL, 10) > COST_MOST
		   ? "the cost is too high: each request would take seconds; "
		     "use htpasswd -B -C 12"
		   : NULL;
}

/*
 * Checks the parameters of yescrypt.  The cost is a digit of ". / 0-9 A-Z", in ASCII order; each
 * digit needs twice the memory of the one before.  Returns NULL if the parameters are accepted,
 * else the reason.
 */
static const char *
htpasswd_yescrypt_cause(const char *text)
{
	const char *cost = text + 4;

	if (text[3] != 'j' || *cost == '\0' || cost[1] == '\0' ||
	    cost[1] > YESCRYPT_BLOCK || cost[2] != '$')
		return "unknown yescrypt parameters: create a new hash with "
		       "mkpasswd -m yescrypt";
	return *cost > YESCRYPT_MOST
		   ? "the cost is too high: each request would take seconds; "
		     "use mkpasswd -m yescrypt"
		   : NULL;
}

/* Returns NULL if the hash is complete and its cost accepted, else the reason. */
static const char *
htpasswd_form_cause(const char *text)
{
	for (const char *p = text; *p != '\0'; p++)
		if (!htpasswd_is_hash_byte(*p))
			return "the hash is not complete: " CURE;
	if (text[1] == '2')
		return htpasswd_bcrypt_cause(text);
	if (strchr(text + htpasswd_class_length(text), '$') == NULL ||
	    strlen(strrchr(text, '$')) < 43)
		return "the hash is not complete: " CURE;
	if (text[1] == 'y')
		return htpasswd_yescrypt_cause(text);
	if (htpasswd_begins(text + 3, "rounds=") &&
	    strtol(text + 10, NULL, 10) > ROUNDS_MOST)
		return "too many rounds: each request would take seconds; use "
		       "mkpasswd -m sha512crypt";
	return NULL;
}

static const char *
htpasswd_hash_cause(struct loading *ld, const char *text)
{
	size_t i = 0;

	while (i < KINDS && !htpasswd_begins(text, kinds[i].kd_prefix))
		i++;
	if (i == KINDS)
		return htpasswd_weak(text);
	if (!ld->ld_known[i] &&
	    htpasswd_hash("x", kinds[i].kd_trial, ld->ld_scratch) == NULL)
		return "crypt(3) on this system does not support this hash: "
		       "use SHA-512 ($6$)";
	ld->ld_known[i] = true;
	return htpasswd_form_cause(text);
}

static void
htpasswd_count_class(struct loading *ld, const char *text)
{
	size_t i, len = htpasswd_class_length(text);
	struct class *cl = ld->ld_classes;

	for (i = 0; i < CLASSES; i++) {
		if (cl[i].cl_hash == NULL)
			cl[i] = (struct class){text, len, 0};
		if (cl[i].cl_len != len ||
		    strncmp(cl[i].cl_hash, text, len) != 0)
			continue;
		cl[i].cl_count++;
		return;
	}
}

static int
htpasswd_by_name(const void *a, const void *b)
{
	return strcmp(((const struct htpasswd_user *)a)->hu_name,
	    ((const struct htpasswd_user *)b)->hu_name);
}

/* Appends a user.  The capacity of the array is a power of two. */
static struct htpasswd_user *
htpasswd_new_user(struct htpasswd *ht)
{
	size_t n = ht->ht_count;
	struct htpasswd_user *grown;

	if ((n & (n - 1)) == 0) {
		grown = reallocarray(
		    ht->ht_users, n == 0 ? 1 : 2 * n, sizeof(*grown));
		if (grown == NULL)
			return NULL;
		ht->ht_users = grown;
	}
	ht->ht_users[n] = (struct htpasswd_user){0};
	ht->ht_count++;
	return &ht->ht_users[n];
}

static const char *
htpasswd_add(struct loading *ld, char *name, char *text)
{
	struct htpasswd_user *hu = htpasswd_new_user(ld->ld_file);

	if (hu == NULL)
		return strerror(ENOMEM);
	hu->hu_name = strdup(name);
	hu->hu_hash = strdup(text);
	if (hu->hu_name == NULL || hu->hu_hash == NULL)
		return strerror(ENOMEM);
	htpasswd_count_class(ld, hu->hu_hash);
	return NULL;
}

/*
 * Adds the user of a line.  Returns NULL on success and for empty lines and comments, else the
 * reason.
 */
static const char *
htpasswd_take_line(struct loading *ld, char *line)
{
	char *colon = strchr(line, ':'), *end;
	const char *cause;

	if (line[0] == '\0' || line[0] == '#')
		return NULL;
	if (colon == NULL || colon == line)
		return "write USER:HASH, as htpasswd -B does";
	*colon++ = '\0';
	end = strchr(colon, ':');
	if (end != NULL)
		*end = '\0';
	cause = htpasswd_hash_cause(ld, colon);
	if (cause == NULL)
		return htpasswd_add(ld, line, colon);
	snprintf(ld->ld_cause, sizeof(ld->ld_cause), "user \"%.64s\": %s", line,
	    cause);
	return ld->ld_cause;
}

static const char *
htpasswd_complete(struct loading *ld)
{
	struct htpasswd *ht = ld->ld_file;
	size_t i, most = 0;

	if (ht->ht_count == 0)
		return "has no user: add one with htpasswd -B FILE USER";
	for (i = 0; i < CLASSES; i++)
		if (ld->ld_classes[i].cl_count > most) {
			most = ld->ld_classes[i].cl_count;
			ht->ht_usual = ld->ld_classes[i].cl_hash;
		}
	qsort(ht->ht_users, ht->ht_count, sizeof(*ht->ht_users),
	    htpasswd_by_name);
	for (i = 1; i < ht->ht_count; i++)
		if (htpasswd_by_name(&ht->ht_users[i - 1], &ht->ht_users[i]) ==
		    0) {
			snprintf(ld->ld_cause, sizeof(ld->ld_cause),
			    "user \"%.64s\" is listed twice: remove one line",
			    ht->ht_users[i].hu_name);
			return ld->ld_cause;
		}
	return NULL;
}

/* Reads the users of a file.  Returns false on failure, with the reason in `why`. */
static bool
htpasswd_read_file(struct loading *ld, const char *path, char *why, size_t size)
{
	struct secret_file sf;
	const char *cause = NULL;
	unsigned n = 0;
	char *line;

	if (!secret_file_read(&sf, path, false, why, size))
		return false;
	while (cause == NULL && (line = secret_file_line(&sf)) != NULL) {
		n++;
		cause = htpasswd_take_line(ld, line);
	}
	secret_file_forget(&sf);
	if (cause != NULL) {
		snprintf(why, size, "%s:%u: %s", path, n, cause);
		return false;
	}
	cause = htpasswd_complete(ld);
	if (cause != NULL)
		snprintf(why, size, "%s: %s", path, cause);
	return cause == NULL;
}

struct htpasswd *
htpasswd_load(const char *path, char *why, size_t size)
{
	struct loading ld = {.ld_file = calloc(1, sizeof(struct htpasswd)),
	    .ld_scratch = htpasswd_scratch_create()};
	bool good = false;

	if (ld.ld_file == NULL || ld.ld_scratch == NULL)
		snprintf(why, size, "%s", strerror(ENOMEM));
	else
		good = htpasswd_read_file(&ld, path, why, size);
	free(ld.ld_scratch);
	if (!good && ld.ld_file != NULL) {
		htpasswd_free(ld.ld_file);
		ld.ld_file = NULL;
	}
	return ld.ld_file;
}

struct htpasswd *
htpasswd_free(struct htpasswd *ht)
{
	struct htpasswd *next = ht->ht_next;

	for (size_t i = 0; i < ht->ht_count; i++) {
		if (ht->ht_users[i].hu_hash != NULL)
			explicit_bzero(ht->ht_users[i].hu_hash,
			    strlen(ht->ht_users[i].hu_hash));
		free(ht->ht_users[i].hu_hash);
		free(ht->ht_users[i].hu_name);
	}
	free(ht->ht_users);
	free(ht);
	return next;
}

/* ---------------------------------------------------------- verification */

static const char *
htpasswd_hash_of(const struct htpasswd *ht, const char *user)
{
	size_t low = 0, high = ht->ht_count, middle;
	int order;

	while (low < high) {
		middle = (low + high) / 2;
		order = strcmp(user, ht->ht_users[middle].hu_name);
		if (order == 0)
			return ht->ht_users[middle].hu_hash;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

int
htpasswd_verify(const struct htpasswd *ht, const char *user,
    const char *password, struct htpasswd_scratch *hs)
{
	const char *known = htpasswd_hash_of(ht, user), *text;
	const char *setting = known != NULL ? known : ht->ht_usual;
	bool good, failed;

	text = htpasswd_hash(password, setting, hs);
	/* errno does not show that memory is short: libxcrypt sets EINVAL. */
	failed = text == NULL && htpasswd_begins(setting, "$y$");
	good = text != NULL && strlen(text) == strlen(setting) &&
	       hmac_same(text, setting, strlen(setting));
	explicit_bzero(&hs->hs_crypt, sizeof(hs->hs_crypt));
	return failed ? -ENOMEM : good && known != NULL;
}
