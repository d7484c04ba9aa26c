/*
 * representation: see representation.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "server/content/representation.h"
#include "server/http/date.h"

static void
make_etag(struct representation *rp, const struct pw_file *file)
{
	rp->rp_etag.s_ptr = rp->rp_tag;
	rp->rp_etag.s_len = (size_t)snprintf(rp->rp_tag, sizeof(rp->rp_tag),
	    "\"%llx.%lx-%llx-%llx\"",
	    (unsigned long long)file->fil_mtime.tv_sec,
	    (unsigned long)file->fil_mtime.tv_nsec,
	    (unsigned long long)file->fil_size,
	    (unsigned long long)file->fil_ino);
}

static struct representation *
repr_create(const struct pw_file *file, const char *type, time_t now)
{
	struct representation *rp = calloc(1, sizeof(*rp));
	time_t mtime = file->fil_mtime.tv_sec;
	char date[DATE_LEN + 1];
	int first, all;

	if (rp == NULL)
		return NULL;
	make_etag(rp, file);
	rp->rp_type = type;
	rp->rp_future = mtime > now;
	date_format(rp->rp_future ? now : mtime, date);
	first = snprintf(
	    rp->rp_lines, REPRESENTATION_LINES, "Content-Type: %s\r\n", type);
	all = snprintf(rp->rp_lines, REPRESENTATION_LINES,
	    "Content-Type: %s\r\n"
	    "Last-Modified: %s\r\nETag: %s\r\nAccept-Ranges: bytes\r\n",
	    type, date, rp->rp_tag);
	if (all >= REPRESENTATION_LINES) {
		free(rp);
		return NULL;
	}
	rp->rp_validators = (size_t)first;
	rp->rp_len = (size_t)all;
	return rp;
}

struct representation *
representation_of(struct pw_file *file, const char *type, time_t now)
{
	struct representation *rp = file->fil_user;

	if (rp != NULL && !rp->rp_future)
		return rp;
	free(rp);
	file->fil_user = repr_create(file, type, now);
	file->fil_user_free = free;
	return file->fil_user;
}
