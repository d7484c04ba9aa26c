/*
 * representation: see representation.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "server/content/representation.h"
#include "server/http/date.h"
#include "server/http/digest.h"

#define SETTLED 2 /* seconds */

/* The file's, in base64, if it carries one that is of it as it is. */
static bool
take_digest(const struct settings *set, const struct pw_file *file,
    char text[static DIGEST_BASE64])
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

static void
make_etag(
    struct representation *rp, const struct pw_file *file, const char *digest)
{
	char inode[24] = "", coding[8] = "";
	int len;

	if (rp->rp_set->set_etag == ETAG_OFF) {
		rp->rp_etag = STR("");
		return;
	}
	if (rp->rp_set->set_etag == ETAG_INODE)
		snprintf(inode, sizeof(inode), "-%llx",
		    (unsigned long long)file->fil_ino);
	if (rp->rp_coding != CODING_NONE)
		snprintf(
		    coding, sizeof(coding), "-%s", coding_name(rp->rp_coding));
	if (rp->rp_set->set_etag == ETAG_DIGEST && digest != NULL)
		len = snprintf(rp->rp_tag, sizeof(rp->rp_tag), "%s\"%s\"",
		    rp->rp_young ? "W/" : "", digest);
	else
		len = snprintf(rp->rp_tag, sizeof(rp->rp_tag),
		    "%s\"%llx.%lx-%llx%s%s\"", rp->rp_young ? "W/" : "",
		    (unsigned long long)file->fil_mtime.tv_sec,
		    (unsigned long)file->fil_mtime.tv_nsec,
		    (unsigned long long)file->fil_size, inode, coding);
	rp->rp_etag = (struct str){rp->rp_tag, (size_t)len};
}

static void
line(struct representation *rp, const char *name, const char *value)
{
	size_t room = sizeof(rp->rp_lines) - rp->rp_len;

	rp->rp_len += (size_t)snprintf(
	    rp->rp_lines + rp->rp_len, room, "%s: %s\r\n", name, value);
}

static void
line_digest(struct representation *rp, const char *hash)
{
	char value[DIGEST_BASE64 + 16];

	snprintf(value, sizeof(value), "sha-256=:%s:", hash);
	line(rp, "Repr-Digest", value);
}

/* A sibling of a file that has a coding by its format has both: the last was applied last. */
static void
line_coding(struct representation *rp, enum coding format)
{
	bool both = format != CODING_NONE && rp->rp_coding != CODING_NONE;
	char value[16];

	if (format == CODING_NONE && rp->rp_coding == CODING_NONE)
		return;
	snprintf(value, sizeof(value), "%s%s%s", coding_name(format),
	    both ? ", " : "", coding_name(rp->rp_coding));
	line(rp, "Content-Encoding", value);
}

static struct representation *
repr_create(const struct pw_file *file, const struct conf *conf,
    const struct settings *set, const char *name, enum coding coding,
    time_t now)
{
	struct representation *rp = calloc(1, sizeof(*rp));
	time_t mtime = file->fil_mtime.tv_sec;
	char date[DATE_LEN + 1], hash[DIGEST_BASE64];
	bool digest;

	if (rp == NULL)
		return NULL;
	digest = take_digest(set, file, hash);
	rp->rp_set = set;
	rp->rp_coding = coding;
	rp->rp_young = mtime > now - SETTLED;
	make_etag(rp, file, digest ? hash : NULL);
	conf_media_type(conf, set, name, rp->rp_type, sizeof(rp->rp_type));
	line(rp, "Content-Type", rp->rp_type);
	rp->rp_coded = rp->rp_len;
	line_coding(rp, coding_of_format(name, rp->rp_type));
	rp->rp_digest = rp->rp_len;
	if (digest && set->set_digest)
		line_digest(rp, hash);
	rp->rp_validators = rp->rp_len;
	date_format(mtime > now ? now : mtime, date);
	if ((set->set_changed & HEADER_NO_LAST_MODIFIED) == 0)
		line(rp, "Last-Modified", date);
	if (rp->rp_etag.s_len > 0)
		line(rp, "ETag", rp->rp_tag);
	if ((set->set_changed & HEADER_NO_ACCEPT_RANGES) == 0)
		line(rp, "Accept-Ranges", "bytes");
	return rp;
}

struct representation *
representation_of(struct pw_file *file, const struct conf *conf,
    const struct settings *set, const char *name, enum coding coding,
    time_t now)
{
	struct representation *rp = file->fil_user;

	if (rp != NULL && !rp->rp_young && rp->rp_set == set &&
	    rp->rp_coding == coding)
		return rp;
	free(rp);
	file->fil_user = repr_create(file, conf, set, name, coding, now);
	file->fil_user_free = free;
	return file->fil_user;
}
