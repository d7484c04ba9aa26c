/*
 * format: formats log lines.  For speed, printf(3) formats only the time, since every request
 * writes a line.  Escapes text from clients, so that a client cannot forge a line.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/log/format.h"
#include "server/util/sockaddr_text.h"
#include "server/util/swar.h"
#include "server/util/utf8.h"

const char *const log_field_names[NFIELDS] = {
    [FIELD_TIME] = "time",
    [FIELD_REMOTE] = "remote",
    [FIELD_USER] = "user",
    [FIELD_METHOD] = "method",
    [FIELD_TARGET] = "target",
    [FIELD_PROTOCOL] = "protocol",
    [FIELD_STATUS] = "status",
    [FIELD_BYTES] = "bytes",
    [FIELD_BODY_BYTES] = "body_bytes",
    [FIELD_REFERER] = "referer",
    [FIELD_USER_AGENT] = "user_agent",
    [FIELD_HOST] = "host",
    [FIELD_DURATION] = "duration_us",
    [FIELD_DISK_WAIT] = "disk_wait_us",
    [FIELD_TLS_VERSION] = "tls_version",
    [FIELD_TLS_CIPHER] = "tls_cipher",
    [FIELD_TLS_NAME] = "tls_name",
    [FIELD_TLS_SESSION] = "tls_session",
    [FIELD_TLS_HANDSHAKE] = "tls_handshake_us",
    [FIELD_TLS_SUBJECT] = "tls_client",
};

static const char hex[] = "0123456789ABCDEF";

static char *
format_put_bytes(char *p, const char *s, size_t len)
{
	memcpy(p, s, len);
	return p + len;
}

static char *
format_put_text(char *p, const char *s)
{
	return format_put_bytes(p, s, strlen(s));
}

static size_t
format_count_digits(uint64_t n)
{
	size_t count = 1;

	for (; n >= 10000; n /= 10000)
		count += 4;
	return count + (n >= 10) + (n >= 100) + (n >= 1000);
}

static char *
format_put_number(char *p, uint64_t n)
{
	size_t i, count = format_count_digits(n);

	for (i = count; i > 0; n /= 10)
		p[--i] = (char)('0' + n % 10);
	return p + count;
}

static size_t
format_field_len(struct str s)
{
	return s.s_len < FORMAT_FIELD ? s.s_len : FORMAT_FIELD;
}

static bool
format_is_plain(unsigned char c)
{
	return c >= 0x20 && c <= 0x7E;
}

static bool
format_is_bare(char c)
{
	return format_is_plain((unsigned char)c) && c != '"' && c != '\\';
}

static char *
format_put_hex(char *p, unsigned char c)
{
	*p++ = '\\';
	*p++ = 'x';
	*p++ = hex[c >> 4];
	*p++ = hex[c & 15];
	return p;
}

/* Copies the longest prefix that needs no escape in quotes.  Returns its length. */
static size_t
format_put_bare(char *p, const char *s, size_t len)
{
	size_t i;
	uint64_t w;

	for (i = 0; len - i >= WORD_SIZE; i += WORD_SIZE) {
		w = swar_load(s + i);
		if (!swar_within(w, ' ') || swar_has(w, '"') ||
		    swar_has(w, '\\'))
			break;
		swar_store(p + i, w);
	}
	for (; i < len && format_is_bare(s[i]); i++)
		p[i] = s[i];
	return i;
}

static char *
format_put_quoted(char *p, struct str s)
{
	size_t i, n, len = format_field_len(s);

	*p++ = '"';
	if (len == 0)
		*p++ = '-';
	for (i = 0; i < len; i++) {
		n = format_put_bare(p, s.s_ptr + i, len - i);
		p += n;
		i += n;
		if (i < len)
			p = format_put_hex(p, (unsigned char)s.s_ptr[i]);
	}
	*p++ = '"';
	return p;
}

/* Writes the user without quotes, and therefore escapes spaces. */
static char *
format_put_user(char *p, struct str s)
{
	size_t i, len = format_field_len(s);

	if (len == 0)
		*p++ = '-';
	for (i = 0; i < len; i++) {
		if (format_is_bare(s.s_ptr[i]) && s.s_ptr[i] != ' ')
			*p++ = s.s_ptr[i];
		else
			p = format_put_hex(p, (unsigned char)s.s_ptr[i]);
	}
	return p;
}

static void
format_stamp_text(time_t t, char buf[static FORMAT_STAMP])
{
	/* The %b of strftime(3) would follow the locale. */
	static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May",
	    "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	struct tm tm;
	long east;

	if (localtime_r(&t, &tm) == NULL) {
		t = 0;
		localtime_r(&t, &tm);
	}
	east = tm.tm_gmtoff / 60;
	snprintf(buf, FORMAT_STAMP,
	    "[%02d/%s/%04d:%02d:%02d:%02d %c%02ld%02ld]", tm.tm_mday,
	    months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
	    tm.tm_sec, east < 0 ? '-' : '+', labs(east) / 60, labs(east) % 60);
}

/*
 * Returns the cached text of a second, because localtime_r(3) locks a mutex.  Caches several
 * seconds, since a slow request arrived earlier than a quick request that ends at the same time.
 */
static const struct stamp *
format_stamp_get(struct stamp cache[static FORMAT_STAMPS], time_t t,
    void (*format)(time_t, char[static FORMAT_STAMP]))
{
	struct stamp *stp = &cache[(uint64_t)t % FORMAT_STAMPS];

	if (stp->stp_time != t || stp->stp_len == 0) {
		stp->stp_time = t;
		format(t, stp->stp_text);
		stp->stp_len = strlen(stp->stp_text);
	}
	return stp;
}

static char *
format_put_stamp(char *p, const struct stamp *stp)
{
	return format_put_bytes(p, stp->stp_text, stp->stp_len);
}

const char *
format_stamp(struct stamp cache[static FORMAT_STAMPS], time_t t)
{
	return format_stamp_get(cache, t, format_stamp_text)->stp_text;
}

/* Returns the maximum bytes that one byte of a field may become. */
static size_t
format_byte_max(enum log_format format)
{
	return format == LOG_JSON ? sizeof("\\\\xHH") - 1 : sizeof("\\xHH") - 1;
}

/*
 * Returns the maximum bytes that are logged of a request line.  JSON writes a request line as up to
 * three fields, each truncated on its own.
 */
static size_t
format_line_len(struct str line, enum log_format format)
{
	size_t fields = format == LOG_JSON ? 3 : 1;
	size_t most = fields * FORMAT_FIELD;

	return line.s_len < most ? line.s_len : most;
}

/*
 * Returns a bound for the bytes of the TLS fields before escaping.  Version, cipher and session are
 * short.
 */
static size_t
format_tls_len(const struct log_tls *lt)
{
	return lt == NULL ? 0
			  : 256 + format_field_len(lt->lt_name) +
				format_field_len(lt->lt_subject);
}

size_t
format_bound(const struct log_record *rec, enum log_format format)
{
	return FORMAT_FIXED +
	       format_byte_max(format) * format_tls_len(rec->rec_tls) +
	       format_byte_max(format) *
		   (format_line_len(rec->rec_texts.qt_line, format) +
		       format_field_len(rec->rec_texts.qt_referer) +
		       format_field_len(rec->rec_texts.qt_agent) +
		       format_field_len(rec->rec_texts.qt_host) +
		       format_field_len(rec->rec_user));
}

static size_t
format_combined(char *buf, const struct log_record *rec,
    struct stamp cache[static FORMAT_STAMPS])
{
	char *p = buf;

	p = sockaddr_text(p, rec->rec_peer);
	p = format_put_text(p, " - ");
	p = format_put_user(p, rec->rec_user);
	*p++ = ' ';
	p = format_put_stamp(
	    p, format_stamp_get(cache, rec->rec_time, format_stamp_text));
	*p++ = ' ';
	p = format_put_quoted(p, rec->rec_texts.qt_line);
	*p++ = ' ';
	p = format_put_number(
	    p, rec->rec_status < 0 ? 0 : (uint64_t)rec->rec_status);
	*p++ = ' ';
	p = format_put_number(p, rec->rec_body);
	*p++ = ' ';
	p = format_put_quoted(p, rec->rec_texts.qt_referer);
	*p++ = ' ';
	p = format_put_quoted(p, rec->rec_texts.qt_agent);
	*p++ = ' ';
	p = format_put_number(p, rec->rec_bytes);
	*p++ = ' ';
	p = format_put_number(p, rec->rec_duration);
	*p++ = ' ';
	p = format_put_number(p, rec->rec_wait);
	*p++ = '\n';
	return (size_t)(p - buf);
}

static char *
format_put_unit(char *p, uint32_t unit)
{
	p = format_put_text(p, "\\u");
	for (int shift = 12; shift >= 0; shift -= 4)
		*p++ = hex[unit >> shift & 15];
	return p;
}

/* Writes a character, above U+FFFF as a surrogate pair of UTF-16 (RFC 8259, 7). */
static char *
format_put_character(char *p, uint32_t c)
{
	if (c < 0x10000)
		return format_put_unit(p, c);
	p = format_put_unit(p, 0xd800 + (c - 0x10000) / 0x400);
	return format_put_unit(p, 0xdc00 + c % 0x400);
}

static char *
format_put_json_byte(char *p, char byte)
{
	unsigned char c = (unsigned char)byte;

	if (!format_is_plain(c) || c == '\\') {
		*p++ = '\\';
		return format_put_hex(p, c);
	}
	if (c == '"')
		*p++ = '\\';
	*p++ = (char)c;
	return p;
}

static char *
format_put_json(char *p, const char *key, struct str s)
{
	size_t i, n, len = format_field_len(s);
	uint32_t c;

	p = format_put_text(p, key);
	if (s.s_ptr == NULL)
		return format_put_text(p, "null");
	*p++ = '"';
	for (i = 0; i < len; i += n) {
		n = format_put_bare(p, s.s_ptr + i, len - i);
		p += n;
		if (n > 0)
			continue;
		n = utf8_decode(s.s_ptr + i, len - i, &c);
		if (n > 1)
			p = format_put_character(p, c);
		else {
			p = format_put_json_byte(p, s.s_ptr[i]);
			n = 1;
		}
	}
	*p++ = '"';
	return p;
}

static char *
format_put_json_number(char *p, const char *key, uint64_t number)
{
	return format_put_number(format_put_text(p, key), number);
}

struct parts {
	struct str pt_method;
	struct str pt_target;
	struct str pt_protocol;
};

/* Splits a request line.  If a refused line has another form, all of it is the target. */
static struct parts
format_split(struct str line)
{
	struct parts pt = {.pt_target = line};
	const char *first, *last;

	if (line.s_len == 0)
		pt.pt_target = (struct str){NULL, 0};
	first = line.s_len == 0 ? NULL : memchr(line.s_ptr, ' ', line.s_len);
	last = line.s_len == 0 ? NULL : memrchr(line.s_ptr, ' ', line.s_len);
	if (first != last &&
	    memchr(first + 1, ' ', (size_t)(last - first) - 1) == NULL) {
		pt.pt_method =
		    (struct str){line.s_ptr, (size_t)(first - line.s_ptr)};
		pt.pt_target =
		    (struct str){first + 1, (size_t)(last - first) - 1};
		pt.pt_protocol = (struct str){
		    last + 1, line.s_len - (size_t)(last + 1 - line.s_ptr)};
	}
	return pt;
}

static char *
format_put_json_line(char *p, struct str line)
{
	struct parts pt = format_split(line);

	p = format_put_json(p, ",\"method\":", pt.pt_method);
	p = format_put_json(p, ",\"target\":", pt.pt_target);
	return format_put_json(p, ",\"protocol\":", pt.pt_protocol);
}

static void
format_stamp_json(time_t t, char buf[static FORMAT_STAMP])
{
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL) {
		t = 0;
		gmtime_r(&t, &tm);
	}
	strftime(buf, FORMAT_STAMP, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static size_t
format_json(char *buf, const struct log_record *rec,
    struct stamp cache[static FORMAT_STAMPS])
{
	char *p = buf;

	p = format_put_text(p, "{\"time\":\"");
	p = format_put_stamp(
	    p, format_stamp_get(cache, rec->rec_time, format_stamp_json));
	p = format_put_text(p, "\",\"remote\":\"");
	p = sockaddr_text(p, rec->rec_peer);
	*p++ = '"';
	p = format_put_json(p, ",\"user\":", rec->rec_user);
	p = format_put_json_line(p, rec->rec_texts.qt_line);
	p = format_put_json_number(p, ",\"status\":",
	    rec->rec_status < 0 ? 0 : (uint64_t)rec->rec_status);
	p = format_put_json_number(p, ",\"bytes\":", rec->rec_bytes);
	p = format_put_json_number(p, ",\"body_bytes\":", rec->rec_body);
	p = format_put_json(p, ",\"referer\":", rec->rec_texts.qt_referer);
	p = format_put_json(p, ",\"user_agent\":", rec->rec_texts.qt_agent);
	p = format_put_json(p, ",\"host\":", rec->rec_texts.qt_host);
	p = format_put_json_number(p, ",\"duration_us\":", rec->rec_duration);
	p = format_put_json_number(p, ",\"disk_wait_us\":", rec->rec_wait);
	p = format_put_text(p, "}\n");
	return (size_t)(p - buf);
}

size_t
format_access(char *buf, const struct log_record *rec, enum log_format format,
    struct stamp cache[static FORMAT_STAMPS])
{
	return format == LOG_JSON ? format_json(buf, rec, cache)
				  : format_combined(buf, rec, cache);
}

/* ------------------------------------------------- fields that were chosen */

/* Sets *n to the value of a numeric field.  Returns false for other fields. */
static bool
format_number_of(
    enum log_field field, const struct log_record *rec, uint64_t *n)
{
	switch (field) {
	case FIELD_STATUS:
		*n = rec->rec_status < 0 ? 0 : (uint64_t)rec->rec_status;
		return true;
	case FIELD_BYTES:
		*n = rec->rec_bytes;
		return true;
	case FIELD_BODY_BYTES:
		*n = rec->rec_body;
		return true;
	case FIELD_DURATION:
		*n = rec->rec_duration;
		return true;
	case FIELD_DISK_WAIT:
		*n = rec->rec_wait;
		return true;
	case FIELD_TLS_HANDSHAKE:
		*n = rec->rec_tls == NULL ? 0 : rec->rec_tls->lt_handshake;
		return true;
	default:
		return false;
	}
}

static struct str
format_tls_text(enum log_field field, const struct log_tls *lt)
{
	static const struct log_tls none;

	if (lt == NULL)
		lt = &none;
	switch (field) {
	case FIELD_TLS_VERSION:
		return lt->lt_version;
	case FIELD_TLS_CIPHER:
		return lt->lt_cipher;
	case FIELD_TLS_NAME:
		return lt->lt_name;
	case FIELD_TLS_SESSION:
		return lt->lt_session;
	default:
		return lt->lt_subject;
	}
}

/* Returns the text of a field that is neither a number, the time nor the address. */
static struct str
format_text_of(enum log_field field, const struct log_record *rec)
{
	switch (field) {
	case FIELD_USER:
		return rec->rec_user;
	case FIELD_METHOD:
		return format_split(rec->rec_texts.qt_line).pt_method;
	case FIELD_TARGET:
		return format_split(rec->rec_texts.qt_line).pt_target;
	case FIELD_PROTOCOL:
		return format_split(rec->rec_texts.qt_line).pt_protocol;
	case FIELD_REFERER:
		return rec->rec_texts.qt_referer;
	case FIELD_USER_AGENT:
		return rec->rec_texts.qt_agent;
	case FIELD_HOST:
		return rec->rec_texts.qt_host;
	default:
		return format_tls_text(field, rec->rec_tls);
	}
}

static char *
format_put_value(char *p, enum log_field field, const struct log_record *rec,
    bool as_json, struct stamp cache[static FORMAT_STAMPS])
{
	const char *quote = as_json ? "\"" : "";
	uint64_t n;

	if (format_number_of(field, rec, &n))
		return format_put_number(p, n);
	if (field == FIELD_TIME) {
		p = format_put_text(p, quote);
		p = format_put_stamp(
		    p, format_stamp_get(cache, rec->rec_time,
			   as_json ? format_stamp_json : format_stamp_text));
		return format_put_text(p, quote);
	}
	if (field == FIELD_REMOTE) {
		p = format_put_text(p, quote);
		p = sockaddr_text(p, rec->rec_peer);
		return format_put_text(p, quote);
	}
	return as_json ? format_put_json(p, "", format_text_of(field, rec))
		       : format_put_quoted(p, format_text_of(field, rec));
}

size_t
format_fields(char *buf, const struct log_record *rec, enum log_format format,
    const struct log_fields *lf, struct stamp cache[static FORMAT_STAMPS])
{
	bool as_json = format == LOG_JSON;
	char *p = buf;

	for (unsigned i = 0; i < lf->lf_count; i++) {
		enum log_field field = lf->lf_list[i];

		if (as_json) {
			p = format_put_text(p, i == 0 ? "{\"" : ",\"");
			p = format_put_text(p, log_field_names[field]);
			p = format_put_text(p, "\":");
		} else if (i > 0)
			*p++ = ' ';
		p = format_put_value(p, field, rec, as_json, cache);
	}
	p = format_put_text(p, as_json ? "}\n" : "\n");
	return (size_t)(p - buf);
}

/* Does not escape quotes and backslashes, since messages are not parsed. */
size_t
format_message(char *buf, const char *label, struct str text)
{
	char *p = buf;
	size_t i, len = format_field_len(text);

	p = format_put_text(p, "pagewise: ");
	p = format_put_text(p, label);
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text.s_ptr[i];

		if (format_is_plain(c))
			*p++ = (char)c;
		else
			p = format_put_hex(p, c);
	}
	*p++ = '\n';
	return (size_t)(p - buf);
}
