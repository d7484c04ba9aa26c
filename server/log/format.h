/*
 * format: the text of a line in the access log and of a message.  Pure, but
 * for the time zone.  What is written ends with a newline and has no other;
 * no NUL is added.
 */
#ifndef SERVER_LOG_FORMAT_H
#define SERVER_LOG_FORMAT_H

#include <stddef.h>
#include <time.h>

#include "server/log/log.h"
#include "server/util/str.h"

#define LOGLINE_FIELD	2048 /* bytes of a field or message before escaping */
#define LOGLINE_FIXED	512  /* more than the rest of a line needs */
#define LOGLINE_MESSAGE (LOGLINE_FIXED + 4 * LOGLINE_FIELD)
#define LOGLINE_STAMP	64
#define LOGLINE_STAMPS	16 /* seconds that are remembered */

/* One thread's cache of times; zero it first. */
struct stamp {
	time_t stp_time;
	size_t stp_len; /* of the text; 0: not filled in yet */
	char stp_text[LOGLINE_STAMP];
};

/* "[21/Nov/2026:02:13:54 +0000]": local time, English months. */
const char *logline_stamp(struct stamp[static LOGLINE_STAMPS], time_t);

/* Room that logline_access may need at most. */
size_t logline_bound(const struct log_record *, enum log_format);

/* Returns the length that was written.  The stamps are of this format alone. */
size_t logline_access(char *buf, const struct log_record *, enum log_format,
    struct stamp[static LOGLINE_STAMPS]);

/* "pagewise: " label text; needs LOGLINE_MESSAGE bytes.  label is short. */
size_t logline_message(char *buf, const char *label, struct str text);

#endif
