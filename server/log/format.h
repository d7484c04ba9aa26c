/*
 * format: formats access log lines and messages.  Pure, except that it reads the time zone.  The
 * output has one newline, at its end, and no NUL.
 */
#ifndef SERVER_LOG_FORMAT_H
#define SERVER_LOG_FORMAT_H

#include <stddef.h>
#include <time.h>

#include "server/log/log.h"
#include "server/util/str.h"

#define FORMAT_FIELD   2048 /* maximum bytes of a field before escaping */
#define FORMAT_FIXED   512  /* maximum bytes of a line without its texts */
#define FORMAT_MESSAGE (FORMAT_FIXED + 4 * FORMAT_FIELD)
#define FORMAT_STAMP   64
#define FORMAT_STAMPS  16 /* number of cached seconds */

/* One thread's cache of a formatted time; zero it first. */
struct stamp {
	time_t stp_time;
	size_t stp_len; /* length of the text, bytes; 0 if there is no text */
	char stp_text[FORMAT_STAMP];
};

/* Returns a text like "[21/Nov/2026:02:13:54 +0000]": local time, English months. */
const char *format_stamp(struct stamp[static FORMAT_STAMPS], time_t);

/* Returns the maximum number of bytes that format_access may write. */
size_t format_bound(const struct log_record *, enum log_format);

/* Writes a line.  Returns its length.  The stamps must be used with this format only. */
size_t format_access(char *buf, const struct log_record *, enum log_format,
    struct stamp[static FORMAT_STAMPS]);

/*
 * Writes a line with the selected fields, at least one.  `buf` needs the bytes that format_bound
 * returns for LOG_JSON, whatever the format.  Returns the length of the line.
 */
size_t format_fields(char *buf, const struct log_record *, enum log_format,
    const struct log_fields *, struct stamp[static FORMAT_STAMPS]);

/*
 * Writes a line with "pagewise: ", the short text `label` and `text`.  `buf` needs FORMAT_FIXED
 * bytes, and 4 bytes for each byte of `text`; FORMAT_MESSAGE bytes always suffice.  Returns the
 * length of the line.
 */
size_t format_message(char *buf, const char *label, struct str text);

#endif
