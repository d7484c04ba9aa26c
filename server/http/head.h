/*
 * head: checks a raw request head before http-parser sees it.
 *
 * Debian's http-parser 2.9.4 is lenient; what it tolerates other servers read
 * differently, which is what request smuggling is made of.  So only what RFC
 * 9112 allows to the letter gets through here.  Pure.
 */
#ifndef SERVER_HTTP_HEAD_H
#define SERVER_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "server/util/str.h"

struct head_limits {
	size_t hl_size;	  /* bytes of the whole head, blank line included */
	size_t hl_target; /* bytes of the request target */
	size_t hl_fields; /* number of field lines */
};

struct head {
	size_t
	    hd_before; /* bytes of blank lines taken away before; the caller's */
	size_t hd_scanned; /* bytes already looked at; 0 for a new head */
	size_t hd_skip;	   /* bytes of blank lines before the request line */
	size_t hd_len; /* with blank lines before and after, once complete */
	int hd_minor;  /* 0: HTTP/1.0; 1: HTTP/1.1 and later; once complete */
	/* private to head.c, which resets all but hd_before when hd_scanned is 0 */
	int hd_state;
	int hd_field;
	size_t hd_mark;
	size_t hd_fields;
	size_t hd_target_at; /* 0: unknown */
	size_t hd_target_len;
	size_t hd_host_at; /* of Host's value; 0: unknown */
	size_t hd_host_len;
	bool hd_host;
	bool hd_length;
	bool hd_coded;
};

#define HEAD_BLANK 4 /* bytes of blank lines before a request line: two */

#define HEAD_MORE (-1) /* incomplete, nothing wrong so far */

/*
 * Looks at the first len bytes received.  Call again with more after
 * HEAD_MORE; hd_scanned keeps that linear.  Returns 0 when a whole correct
 * head is there (hd_len bytes), HEAD_MORE, or the status to refuse it with,
 * after which the connection closes:
 *
 * 400: not RFC 9112.
 * - a LF without CR or a CR without LF; more than two blank lines (CRLF)
 *   before the request line, where 2.2 asks to skip one
 * - not exactly METHOD SP target SP HTTP/x.y; target bytes outside 0x21-0x7E
 * - a name that is not a token or has a space before its colon; folded lines;
 *   control characters in a value
 * - Host missing on 1.1; repeated or malformed on any version (an empty one is
 *   correct: 3.2)
 * - Content-Length repeated or not digits; with Transfer-Encoding (6.3)
 * - Transfer-Encoding repeated, or on 1.0 (6.1)
 *
 * 414: target longer than hl_target.
 *
 * 431: head longer than hl_size, or more than hl_fields fields.  It comes with
 * the last byte that hl_size allows: a full buffer is never left waiting.
 *
 * 501: a Transfer-Encoding that is not "chunked" alone; a method that is a token but longer than 32.
 *
 * 505: a major version other than 1.
 *
 * Errors are found as early as the bytes that prove them, a bare LF at once, so
 * that a client that ends lines wrongly is not left waiting for a timeout; only
 * the version and the values of Host, Content-Length and Transfer-Encoding are
 * judged whole, at the CR that ends their line.  The first error in the order of the bytes is
 * the verdict, however they were cut into calls.
 */
int head_check(
    const char *buf, size_t len, const struct head_limits *, struct head *);

/*
 * The same rules for a request of HTTP/2, whose parts come whole.  Each returns 0, or the status to
 * refuse it with.  An empty host is correct: the target URI has no authority (3.2).
 */
int head_check_method(struct str method);
int head_check_target(struct str target, const struct head_limits *);
int head_check_host(struct str host);

/*
 * Finds what a head names that was refused, or is not complete: the target once its line is correct
 * up to there, the host once its field is.  NULL is unknown; a Host that comes twice is none.  before
 * is hd_before of the same head.
 */
void head_find(const char *buf, size_t len, size_t before,
    const struct head_limits *, struct str *target, struct str *host);

/*
 * Whether this is a host as Host and an absolute-form target have it: a
 * non-empty reg-name or [IPv6 address], and perhaps ':' and digits.
 */
bool head_host_valid(struct str host);

/*
 * Whether two such hosts name the same origin: case, a final dot, an empty port, the scheme's default
 * port and zeros before one do not count.
 */
bool head_hosts_equal(struct str a, struct str b, bool https);

#endif
