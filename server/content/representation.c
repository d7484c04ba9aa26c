/*
 * representation: see representation.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/content/representation.h"
#include "server/http/date.h"
#include "server/http/digest.h"

#define SETTLED 2 /* minimum age of a time that identifies a version, seconds */

/*
 * Writes the digest that is stored with the file, in base64.  Returns false if no key uses digests,
 * or if the file has no digest that matches its size and time.
 */
static bool
representation_take_digest(const struct settings *set,
    const struct pw_file *file, char text[static DIGEST_BASE64])
{
	struct digest dg;

	if ((!set->set_digest && set->set_etag != ETAG_DIGEST) ||
	    file->fil_attribute == NULL ||
	    !digest_parse(
		(struct str){file->fil_attribute, file->fil_attribute_len},
		&dg) ||
	    !digest_is_of(&dg, file->fil_size, &file->fil_mtime))
		return false;
	digest_base64(dg.dg_hash, text);
	return true;
}

static void representation_tag(struct representation *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void
representation_tag(struct representation *rp, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(rp->rp_tag, sizeof(rp->rp_tag), format, args);
	va_end(args);
	rp->rp_announced.va_etag = (struct str){rp->rp_tag, (size_t)len};
}

/*
 * Returns true for times up to 1 s after the epoch.  Reproducible builds set such a time on all
 * versions of a file.
 */
static bool
representation_is_constant_time(const struct timespec *mtime)
{
	return mtime->tv_sec <= 1;
}

/*
 * Returns true if the time of the last change is recent or in the future: another change may then
 * get the same time.
 */
static bool
representation_is_young(const struct pw_file *file, time_t now)
{
	const struct timespec *ts =
	    representation_is_constant_time(&file->fil_mtime)
		? &file->fil_ctime
		: &file->fil_mtime;

	return ts->tv_sec > now - SETTLED;
}

static void
representation_tag_given(struct representation *rp)
{
	struct str given = rp->rp_set->set_entity_tag;

	/* Each coding is another representation, so each needs another tag. */
	if (rp->rp_coding == CODING_NONE)
		representation_tag(rp, "%.*s", (int)given.s_len, given.s_ptr);
	else
		representation_tag(rp, "%.*s-%s\"", (int)given.s_len - 1,
		    given.s_ptr, coding_name(rp->rp_coding));
}

static void
representation_tag_of_times(
    struct representation *rp, const struct pw_file *file)
{
	bool nothing = representation_is_constant_time(&file->fil_mtime);
	char inode[24] = "", changed[40] = "", coding[8] = "";

	if (nothing || rp->rp_set->set_etag == ETAG_INODE)
		snprintf(inode, sizeof(inode), "-%llx",
		    (unsigned long long)file->fil_ino);
	if (nothing)
		snprintf(changed, sizeof(changed), "-%llx.%lx",
		    (unsigned long long)file->fil_ctime.tv_sec,
		    (unsigned long)file->fil_ctime.tv_nsec);
	if (rp->rp_coding != CODING_NONE)
		snprintf(
		    coding, sizeof(coding), "-%s", coding_name(rp->rp_coding));
	representation_tag(rp, "%s\"%llx.%lx-%llx%s%s%s\"",
	    rp->rp_young ? "W/" : "",
	    (unsigned long long)file->fil_mtime.tv_sec,
	    (unsigned long)file->fil_mtime.tv_nsec,
	    (unsigned long long)file->fil_size, inode, changed, coding);
}

static void
representation_make_etag(
    struct representation *rp, const struct pw_file *file, const char *digest)
{
	if (rp->rp_set->set_entity_tag.s_ptr != NULL)
		representation_tag_given(rp);
	else if (rp->rp_set->set_etag == ETAG_OFF)
		representation_tag(rp, "%s", "");
	else if (rp->rp_set->set_etag == ETAG_DIGEST && digest != NULL)
		representation_tag(
		    rp, "%s\"%s\"", rp->rp_young ? "W/" : "", digest);
	else
		representation_tag_of_times(rp, file);
}

static void
representation_line(
    struct representation *rp, const char *name, const char *value)
{
	size_t room = sizeof(rp->rp_lines) - rp->rp_len;

	rp->rp_len += (size_t)snprintf(
	    rp->rp_lines + rp->rp_len, room, "%s: %s\r\n", name, value);
}

static void
representation_line_digest(struct representation *rp, const char *hash)
{
	char value[DIGEST_BASE64 + 16];

	snprintf(value, sizeof(value), "sha-256=:%s:", hash);
	representation_line(rp, "Repr-Digest", value);
}

/*
 * Writes Content-Encoding.  If the file's format is itself a coding, a sibling has two codings.
 * The coding that was applied last is written last.
 */
static void
representation_line_coding(struct representation *rp, enum coding format)
{
	bool both = format != CODING_NONE && rp->rp_coding != CODING_NONE;
	char value[16];

	if (format == CODING_NONE && rp->rp_coding == CODING_NONE)
		return;
	snprintf(value, sizeof(value), "%s%s%s", coding_name(format),
	    both ? ", " : "", coding_name(rp->rp_coding));
	representation_line(rp, "Content-Encoding", value);
}

static void
representation_line_modified(
    struct representation *rp, const struct pw_file *file, time_t now)
{
	const struct settings *set = rp->rp_set;
	struct validators *va = &rp->rp_announced;
	char date[DATE_LEN + 1];

	if (set->set_last_modified.s_ptr != NULL)
		va->va_dated =
		    date_parse(set->set_last_modified, now, &va->va_modified);
	else {
		va->va_dated =
		    (set->set_changed & HEADER_NO_LAST_MODIFIED) == 0 &&
		    !representation_is_constant_time(&file->fil_mtime);
		va->va_modified = file->fil_mtime.tv_sec;
	}
	if (!va->va_dated)
		return;
	date_format(conditional_date_sent(va->va_modified, now), date);
	representation_line(rp, "Last-Modified", date);
}

static struct representation *
representation_repr_create(const struct pw_file *file, const struct conf *conf,
    const struct settings *set, const char *name, enum coding coding,
    time_t now)
{
	struct representation *rp = calloc(1, sizeof(*rp));
	char hash[DIGEST_BASE64];
	bool digest;

	if (rp == NULL)
		return NULL;
	digest = representation_take_digest(set, file, hash);
	rp->rp_set = set;
	rp->rp_coding = coding;
	rp->rp_made = now;
	rp->rp_young = representation_is_young(file, now);
	representation_make_etag(rp, file, digest ? hash : NULL);
	conf_media_type(conf, set, name, rp->rp_type, sizeof(rp->rp_type));
	representation_line(rp, "Content-Type", rp->rp_type);
	rp->rp_coded = rp->rp_len;
	representation_line_coding(rp, coding_of_format(name, rp->rp_type));
	rp->rp_digest = rp->rp_len;
	if (digest && set->set_digest)
		representation_line_digest(rp, hash);
	rp->rp_validators = rp->rp_len;
	representation_line_modified(rp, file, now);
	if (rp->rp_announced.va_etag.s_len > 0)
		representation_line(rp, "ETag", rp->rp_tag);
	if ((set->set_changed & HEADER_NO_ACCEPT_RANGES) == 0)
		representation_line(rp, "Accept-Ranges", "bytes");
	return rp;
}

static void
representation_repr_free(void *arg)
{
	struct representation *rp = arg;

	/* fil_user is NULL if memory was short */
	if (rp == NULL)
		return;
	response_cache_forget(&rp->rp_ready);
	free(rp);
}

/*
 * Replaces the representation of a file.  The file stays open, so cached responses of other
 * locations stay linked to it.
 */
static void
representation_repr_replace(
    struct representation *old, struct representation *rp)
{
	if (rp != NULL)
		response_cache_move(&old->rp_ready, &rp->rp_ready);
	representation_repr_free(old);
}

struct representation *
representation_of(struct pw_file *file, const struct conf *conf,
    const struct settings *set, const char *name, enum coding coding,
    time_t now)
{
	struct representation *rp = file->fil_user;

	/* If the clock was set back, Last-Modified may lie in the future. */
	if (rp != NULL && !rp->rp_young && rp->rp_made <= now &&
	    rp->rp_set == set && rp->rp_coding == coding)
		return rp;
	file->fil_user =
	    representation_repr_create(file, conf, set, name, coding, now);
	file->fil_user_free = representation_repr_free;
	if (rp != NULL)
		representation_repr_replace(rp, file->fil_user);
	return file->fil_user;
}
