/*
 * head: checks a raw request head before http-parser sees it.
 *
 * Debian's http-parser 2.9.4 is lenient, and other servers read what it tolerates differently;
 * request smuggling exploits such differences.  So only heads that follow RFC 9112 to the letter
 * pass this check.  Pure.
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
	size_t hd_before;  /* bytes of blank lines removed; set by the caller */
	size_t hd_scanned; /* bytes already checked; 0 for a new head */
	size_t hd_skip;	   /* bytes of blank lines before the request line */
	size_t hd_len; /* bytes including all blank lines; set once complete */
	int hd_minor;  /* 0 for HTTP/1.0, 1 for later; set once complete */
	/* private to head.c, which resets all fields except hd_before when hd_scanned is 0 */
	int hd_state;
	int hd_field;
	size_t hd_mark;
	size_t hd_fields;
	size_t hd_target_at; /* 0 if unknown */
	size_t hd_target_len;
	size_t hd_host_at; /* offset of Host's value; 0 if unknown */
	size_t hd_host_len;
	bool hd_host;
	bool hd_length;
	bool hd_coded;
};

#define HEAD_BLANK 4 /* maximum bytes of blank lines before a request line */

#define HEAD_MORE (-1) /* incomplete, no error so far */

/*
 * Checks the first `len` bytes received.  After HEAD_MORE, call again with more bytes; hd_scanned
 * keeps the cost linear.  Returns 0 when the buffer holds a whole correct head (hd_len bytes),
 * HEAD_MORE, or the status to refuse the request with, after which the connection closes:
 *
 * 400: not RFC 9112.
 * - a LF without CR or a CR without LF; more than two blank lines (CRLF) before the request line;
 *   2.2 recommends to skip one
 * - not exactly METHOD SP target SP HTTP/x.y; target bytes outside 0x21-0x7E
 * - a name that is not a token or has a space before its colon; folded lines; control characters in
 *   a value
 * - Host missing on 1.1; repeated or malformed on any version (an empty one is correct: 3.2)
 * - Content-Length repeated or not digits; with Transfer-Encoding (6.3)
 * - Transfer-Encoding repeated, or on 1.0 (6.1)
 *
 * 414: target longer than hl_target.
 *
 * 431: head longer than hl_size, or more than hl_fields fields.  Returned with the last byte that
 * hl_size allows, so that a full buffer never waits for more.
 *
 * 501: a Transfer-Encoding other than "chunked" alone; a method that is a token but longer than 32
 * bytes.
 *
 * 505: a major version other than 1.
 *
 * An error, such as a bare LF, is returned at the first byte that proves it, so that the client
 * need not wait for a timeout.  Only the version and the values of Host, Content-Length and
 * Transfer-Encoding are checked as a whole, at the CR that ends their line.  The first error in the
 * order of the bytes decides the result, however the bytes are split over calls.
 */
int head_check(
    const char *buf, size_t len, const struct head_limits *, struct head *);

/*
 * head_check_method, head_check_target and head_check_host check the parts of an HTTP/2 request,
 * which arrive whole, by the same rules.  Each returns 0, or the status to refuse the request with.
 * An empty host is correct: the target URI has no authority (3.2).
 */
int head_check_method(struct str method);
int head_check_target(struct str target, const struct head_limits *);
int head_check_host(struct str host);

/*
 * Finds the target and host of a head that is incomplete or was refused: the target if its line is
 * correct up to the end of the target, the host if its field is complete and correct.  s_ptr is NULL
 * for a part that was not found; a repeated Host counts as not found.  `before` is hd_before of the
 * same head.
 */
void head_find(const char *buf, size_t len, size_t before,
    const struct head_limits *, struct str *target, struct str *host);

/*
 * Returns true if `host` is valid in Host and in an absolute-form target: a non-empty reg-name or
 * [IPv6 address], optionally with ':' and digits.
 */
bool head_host_valid(struct str host);

/*
 * Returns true if two valid hosts name the same origin; case, a final dot, an empty port, the
 * scheme's default port and leading zeros of a port do not matter.
 */
bool head_hosts_equal(struct str a, struct str b, bool https);

#endif
