/*
 * head: checks a raw request head before http-parser parses it.
 *
 * Debian's http-parser 2.9.4 accepts malformed heads, and other servers may interpret these heads
 * differently.  Request smuggling exploits such differences, so only heads that follow RFC 9112
 * exactly pass this check.  Pure.
 */
#ifndef SERVER_HTTP_HEAD_H
#define SERVER_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "server/util/str.h"

struct head_limits {
	size_t hl_size;	  /* maximum bytes of the head, with the blank line */
	size_t hl_target; /* maximum bytes of the request target */
	size_t hl_fields; /* maximum number of field lines */
};

struct head {
	size_t hd_before;  /* bytes of blank lines that the caller removed */
	size_t hd_scanned; /* bytes checked so far; 0 for a new head */
	size_t hd_skip;	   /* bytes of blank lines before the request line */
	size_t hd_len;	   /* bytes of the head; set when complete */
	int hd_minor;	   /* 0 for HTTP/1.0, else 1; set when complete */
	/*
	 * The fields below are private to head.c.  If hd_scanned is 0, head_check resets all fields
	 * except hd_before.
	 */
	int hd_state;
	int hd_field;
	size_t hd_mark; /* offset of the current element */
	size_t hd_fields;
	size_t hd_target_at; /* offset of the target; 0 if unknown */
	size_t hd_target_len;
	bool hd_host;
	bool hd_length;
	bool hd_coded;
};

#define HEAD_BLANK 4 /* maximum bytes of blank lines before a request line */

#define HEAD_MORE (-1) /* the head is incomplete and so far correct */

/*
 * Checks the first `len` bytes received.  After HEAD_MORE, call again with more bytes; the bytes
 * before hd_scanned are not checked again.  Returns 0 for a whole correct head (hd_len bytes),
 * HEAD_MORE, or the status to refuse the request with; the connection must then close.
 *
 * 400: the head violates RFC 9112.
 * - a LF without CR, or a CR without LF; more than two blank lines (CRLF) before the request line
 *   (section 2.2 recommends to skip one)
 * - a request line other than METHOD SP target SP HTTP/x.y; a target byte outside 0x21-0x7E
 * - a field name that is not a token; a space before the colon; a folded line; a control character
 *   in a value
 * - a missing Host in HTTP/1.1; a repeated or malformed Host (an empty Host is correct: 3.2)
 * - Content-Length repeated, not digits, or together with Transfer-Encoding (6.3)
 * - Transfer-Encoding repeated, or in HTTP/1.0 (6.1)
 *
 * 414: the target is longer than hl_target.
 *
 * 431: the head is longer than hl_size, or has more than hl_fields fields.  An incomplete head of
 * hl_size bytes is refused too, so that a full buffer never waits for more.
 *
 * 501: a Transfer-Encoding other than "chunked"; a method that is a token longer than 32 bytes.
 *
 * 505: a major version other than 1.
 *
 * An error is returned at the first byte that proves it, so that the client need not wait for a
 * timeout.  The version and the values of Host, Content-Length and Transfer-Encoding are checked at
 * the CR that ends their line.  The first error in the head decides the result, however the bytes
 * are split over calls.
 */
int head_check(
    const char *buf, size_t len, const struct head_limits *, struct head *);

/*
 * head_check_method, head_check_target and head_check_host apply the same rules to the parts of an
 * HTTP/2 request.  Each returns 0, or the status to refuse the request with.  An empty host is
 * correct: the target URI has no authority (3.2).
 */
int head_check_method(struct str method);
int head_check_target(struct str target, const struct head_limits *);
int head_check_host(struct str host);

/*
 * Finds the target and the host in an incomplete or refused head.  Finds the target if the request
 * line is correct up to the end of the target.  Finds the host if the received part of the head has one
 * complete and correct field Host, before or behind what is wrong.  Sets s_ptr to NULL for a part that was not found.  `before` is hd_before of
 * this head.
 */
void head_find(const char *buf, size_t len, size_t before,
    const struct head_limits *, struct str *target, struct str *host);

/*
 * Returns true if `host` is valid in Host and in an absolute-form target.  A valid host is a
 * non-empty reg-name or [IPv6 address], optionally with ':' and digits.
 */
bool head_host_valid(struct str host);

/*
 * Returns true if two valid hosts name the same origin.  Ignores case, a final dot, an empty port,
 * the default port of the scheme, and leading zeros of a port.
 */
bool head_hosts_equal(struct str a, struct str b, bool https);

#endif
