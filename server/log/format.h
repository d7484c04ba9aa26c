/*
 * format: the text of a line in the access log and of a message.  Pure, but
 * for the time zone.  The output ends with a newline and has no other; no NUL is added.
 */
#ifndef SERVER_LOG_FORMAT_H
#define SERVER_LOG_FORMAT_H

#include <stddef.h>
#include <time.h>

#include "server/log/log.h"
#include "server/util/str.h"

#define FORMAT_FIELD   2048 /* bytes of a field or message before escaping */
#define FORMAT_FIXED   512  /* more than the rest of a line needs */
#define FORMAT_MESSAGE (FORMAT_FIXED + 4 * FORMAT_FIELD)
#define FORMAT_STAMP   64
#define FORMAT_STAMPS  16 /* seconds that are remembered */

/* One thread's cache of times; zero it first. */
struct stamp {
	time_t stp_time;
	size_t stp_len; /* of the text; 0: not filled in yet */
	char stp_text[FORMAT_STAMP];
};

/* "[21/Nov/2026:02:13:54 +0000]": local time, English months. */
const char *format_stamp(struct stamp[static FORMAT_STAMPS], time_t);

/* Room that format_access may need at most. */
size_t format_bound(const struct log_record *, enum log_format);

/* Returns the length that was written.  The stamps are of this format alone. */
size_t format_access(char *buf, const struct log_record *, enum log_format,
    struct stamp[static FORMAT_STAMPS]);

/*
 * The same with the fields that are wanted, one at least.  Room: format_bound of LOG_JSON,
 * whatever the format.
 */
size_t format_fields(char *buf, const struct log_record *, enum log_format,
    const struct log_fields *, struct stamp[static FORMAT_STAMPS]);

/* "pagewise: " label text; needs FORMAT_MESSAGE bytes.  label is short. */
size_t format_message(char *buf, const char *label, struct str text);

#endif
