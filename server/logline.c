/*
 * logline: formats log lines, by hand because every request pays for one.
 * Whatever a client sent is escaped here, so that it cannot forge a line.
 */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logline.h"

static const char hex[] = "0123456789ABCDEF";

static char *
put_bytes(char *p, const char *s, size_t len)
{
	memcpy(p, s, len);
	return p + len;
}

static char *
put_text(char *p, const char *s)
{
	return put_bytes(p, s, strlen(s));
}

static char *
put_number(char *p, uint64_t n)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	return put_bytes(p, digits + i, sizeof(digits) - i);
}

static size_t
field_len(struct str s)
{
	return s.s_len < LOGLINE_FIELD ? s.s_len : LOGLINE_FIELD;
}

static bool
is_plain(unsigned char c)
{
	return c >= 0x20 && c <= 0x7E;
}

static char *
put_hex(char *p, unsigned char c)
{
	*p++ = '\\';
	*p++ = 'x';
	*p++ = hex[c >> 4];
	*p++ = hex[c & 15];
	return p;
}

static char *
put_quoted(char *p, struct str s)
{
	size_t i, len = field_len(s);

	*p++ = '"';
	if (len == 0)
		*p++ = '-';
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s.s_ptr[i];

		if (is_plain(c) && c != '"' && c != '\\')
			*p++ = (char)c;
		else
			p = put_hex(p, c);
	}
	*p++ = '"';
	return p;
}

static char *
put_inet(char *p, int family, const void *addr)
{
	if (inet_ntop(family, addr, p, INET6_ADDRSTRLEN) == NULL)
		return put_text(p, "-");
	return p + strlen(p);
}

static char *
put_inet6(char *p, const struct in6_addr *addr)
{
	if (IN6_IS_ADDR_V4MAPPED(addr))
		return put_inet(p, AF_INET, &addr->s6_addr[12]);
	return put_inet(p, AF_INET6, addr);
}

static char *
put_peer(char *p, const struct sockaddr *sa)
{
	switch (sa == NULL ? AF_UNSPEC : sa->sa_family) {
	case AF_INET:
		return put_inet(p, AF_INET,
		    &((const struct sockaddr_in *)(const void *)sa)->sin_addr);
	case AF_INET6:
		return put_inet6(
		    p, &((const struct sockaddr_in6 *)(const void *)sa)
			    ->sin6_addr);
	case AF_UNIX:
		return put_text(p, "unix:");
	default:
		return put_text(p, "-");
	}
}

static void
stamp_format(time_t t, char buf[static LOGLINE_STAMP])
{
	/* strftime's %b would follow the locale. */
	static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May",
	    "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	struct tm tm;
	long east;

	if (localtime_r(&t, &tm) == NULL) {
		t = 0;
		localtime_r(&t, &tm);
	}
	east = tm.tm_gmtoff / 60;
	snprintf(buf, LOGLINE_STAMP,
	    "[%02d/%s/%04d:%02d:%02d:%02d %c%02ld%02ld]", tm.tm_mday,
	    months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
	    tm.tm_sec, east < 0 ? '-' : '+', labs(east) / 60, labs(east) % 60);
}

/*
 * localtime_r takes a lock.  Arrival times of slow requests lie behind those
 * of quick ones, so one remembered second would not do.
 */
const char *
logline_stamp(struct stamp cache[static LOGLINE_STAMPS], time_t t)
{
	struct stamp *stp = &cache[(uint64_t)t % LOGLINE_STAMPS];

	if (stp->stp_time != t || stp->stp_text[0] == '\0') {
		stp->stp_time = t;
		stamp_format(t, stp->stp_text);
	}
	return stp->stp_text;
}

size_t
logline_bound(const struct log_record *rec)
{
	return LOGLINE_FIXED +
	       4 * (field_len(rec->rec_line) + field_len(rec->rec_referer) +
		       field_len(rec->rec_agent));
}

size_t
logline_access(char *buf, const struct log_record *rec,
    struct stamp cache[static LOGLINE_STAMPS])
{
	char *p = buf;

	p = put_peer(p, rec->rec_peer);
	p = put_text(p, " - - ");
	p = put_text(p, logline_stamp(cache, rec->rec_time));
	*p++ = ' ';
	p = put_quoted(p, rec->rec_line);
	*p++ = ' ';
	p = put_number(p, rec->rec_status < 0 ? 0 : (uint64_t)rec->rec_status);
	*p++ = ' ';
	p = put_number(p, rec->rec_body);
	*p++ = ' ';
	p = put_quoted(p, rec->rec_referer);
	*p++ = ' ';
	p = put_quoted(p, rec->rec_agent);
	*p++ = ' ';
	p = put_number(p, rec->rec_bytes);
	*p++ = ' ';
	p = put_number(p, rec->rec_duration);
	*p++ = ' ';
	p = put_number(p, rec->rec_wait);
	*p++ = '\n';
	return (size_t)(p - buf);
}

/* Quotes and backslashes stay as they are: nobody parses these. */
size_t
logline_message(char *buf, const char *label, struct str text)
{
	char *p = buf;
	size_t i, len = field_len(text);

	p = put_text(p, "pagewise: ");
	p = put_text(p, label);
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text.s_ptr[i];

		if (is_plain(c))
			*p++ = (char)c;
		else
			p = put_hex(p, c);
	}
	*p++ = '\n';
	return (size_t)(p - buf);
}
