/*
 * proxy_header: see proxy_header.h.
 */
#include "server/http/proxy_header.h"

#include <stdint.h>
#include <string.h>

#include "server/http/chars.h"

#define V1_MAX	   107 /* maximum bytes of a version 1 header, with CRLF */
#define V2_FIXED   16  /* bytes before the addresses in version 2 */
#define TLV_FIXED  3   /* bytes of a TLV before its value */
#define TLV_CRC32C 3

static const struct str v1 = {"PROXY ", 6};
static const struct str v2 = {"\r\n\r\n\0\r\nQUIT\n", 12};

/*
 * Compares the start of the input with a signature.  Returns PROXY_DONE if the input begins with
 * the whole signature.
 */
static enum proxy_header
proxy_header_begins(struct str in, struct str signature)
{
	size_t n = in.s_len < signature.s_len ? in.s_len : signature.s_len;

	if (n > 0 && memcmp(in.s_ptr, signature.s_ptr, n) != 0)
		return PROXY_NONE;
	return n < signature.s_len ? PROXY_MORE : PROXY_DONE;
}

/* ----------------------------------------------------------------- version 1 */

/* Removes a word and the space after it from the line.  Returns false if the line has no space. */
static bool
proxy_header_take_word(struct str *line, struct str *word)
{
	const char *space = memchr(line->s_ptr, ' ', line->s_len);

	if (space == NULL)
		return false;
	*word = (struct str){line->s_ptr, (size_t)(space - line->s_ptr)};
	str_advance(line, word->s_len + 1);
	return true;
}

/* Returns true for a valid port without leading zeros. */
static bool
proxy_header_is_port(struct str s)
{
	unsigned n = 0;

	if (s.s_len == 0 || s.s_len > 5 || (s.s_len > 1 && *s.s_ptr == '0'))
		return false;
	for (; s.s_len > 0; str_advance(&s, 1)) {
		if (!chars_is(*s.s_ptr, CHAR_DIGIT))
			return false;
		n = n * 10 + (unsigned)(*s.s_ptr - '0');
	}
	return n <= UINT16_MAX;
}

static in_port_t
proxy_header_port_of(struct str s)
{
	unsigned n = 0;

	for (; s.s_len > 0; str_advance(&s, 1))
		n = n * 10 + (unsigned)(*s.s_ptr - '0');
	return htons((uint16_t)n);
}

/*
 * Parses "192.0.2.1 192.0.2.2 4711 80": source address, destination address, source port,
 * destination port.
 */
static bool
proxy_header_parse_addresses(
    struct str line, sa_family_t family, union sockaddr_any *client)
{
	union sockaddr_any other;
	struct str from, to, port;

	if (!proxy_header_take_word(&line, &from) ||
	    !proxy_header_take_word(&line, &to) ||
	    !proxy_header_take_word(&line, &port) ||
	    !proxy_header_is_port(port) || !proxy_header_is_port(line) ||
	    !sockaddr_parse(to, &other) || !sockaddr_parse(from, client))
		return false;
	/* Both address families have the port at this offset. */
	client->in.sin_port = proxy_header_port_of(port);
	return other.sa.sa_family == family && client->sa.sa_family == family;
}

static bool
proxy_header_parse_line(struct str line, union sockaddr_any *client)
{
	if (str_skip(&line, STR("TCP4 ")))
		return proxy_header_parse_addresses(line, AF_INET, client);
	if (str_skip(&line, STR("TCP6 ")))
		return proxy_header_parse_addresses(line, AF_INET6, client);
	return str_skip(&line, STR("UNKNOWN")) &&
	       (line.s_len == 0 || *line.s_ptr == ' ');
}

static enum proxy_header
proxy_header_read_v1(struct str in, size_t *len, union sockaddr_any *client)
{
	const char *end;
	struct str line;

	if (in.s_len > V1_MAX)
		in.s_len = V1_MAX;
	end = memchr(in.s_ptr, '\n', in.s_len);
	if (end == NULL)
		return in.s_len == V1_MAX ? PROXY_BROKEN : PROXY_MORE;
	*len = (size_t)(end - in.s_ptr) + 1;
	line = (struct str){in.s_ptr + v1.s_len, *len - 1 - v1.s_len};
	if (line.s_len == 0 || line.s_ptr[--line.s_len] != '\r')
		return PROXY_BROKEN;
	return proxy_header_parse_line(line, client) ? PROXY_DONE
						     : PROXY_BROKEN;
}

/* ----------------------------------------------------------------- version 2 */

static unsigned
proxy_header_number(const char *p)
{
	return (unsigned)(unsigned char)p[0] << 8 | (unsigned char)p[1];
}

/* Computes a CRC-32C (RFC 3720, appendix B.4). */
static uint32_t
proxy_header_crc32c(uint32_t crc, const char *p, size_t len)
{
	for (; len > 0; len--) {
		crc ^= (unsigned char)*p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return crc;
}

/*
 * Verifies the checksum at offset `at` of the header.  The bytes of the checksum itself count as
 * zeros.
 */
static bool
proxy_header_checks(struct str in, size_t at)
{
	uint32_t crc = proxy_header_crc32c(UINT32_MAX, in.s_ptr, at);

	crc = proxy_header_crc32c(crc, "\0\0\0\0", 4);
	crc = ~proxy_header_crc32c(crc, in.s_ptr + at + 4, in.s_len - at - 4);
	return proxy_header_number(in.s_ptr + at) == crc >> 16 &&
	       proxy_header_number(in.s_ptr + at + 2) == (crc & UINT16_MAX);
}

/*
 * Skips the TLVs from offset `at` on.  Returns false if a TLV does not fit or has a wrong checksum.
 * Returns false for a second checksum too, because each checksum costs a pass over the header.
 */
static bool
proxy_header_skip_fields(struct str in, size_t at)
{
	size_t left, len;
	bool summed = false;

	for (; at < in.s_len; at += TLV_FIXED + len) {
		left = in.s_len - at;
		if (left < TLV_FIXED)
			return false;
		len = proxy_header_number(in.s_ptr + at + 1);
		if (len > left - TLV_FIXED)
			return false;
		if (in.s_ptr[at] != TLV_CRC32C)
			continue;
		if (summed || len != 4 ||
		    !proxy_header_checks(in, at + TLV_FIXED))
			return false;
		summed = true;
	}
	return true;
}

/*
 * Copies the source address and the source port.  The header has the destination address between
 * them.
 */
static void
proxy_header_copy_in(const char *p, union sockaddr_any *client)
{
	client->in = (struct sockaddr_in){.sin_family = AF_INET};
	memcpy(&client->in.sin_addr, p, 4);
	memcpy(&client->in.sin_port, p + 8, 2);
}

static void
proxy_header_copy_in6(const char *p, union sockaddr_any *client)
{
	client->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
	memcpy(&client->in6.sin6_addr, p, 16);
	memcpy(&client->in6.sin6_port, p + 32, 2);
}

/* Parses the addresses and the TLVs of a proxied connection. */
static bool
proxy_header_parse_proxied(struct str in, union sockaddr_any *client)
{
	/* Bytes of the addresses in the families UNSPEC, INET, INET6 and UNIX. */
	static const size_t sizes[] = {0, 12, 36, 216};
	unsigned char both = (unsigned char)in.s_ptr[13];
	unsigned family = both >> 4, transport = both & 15;
	const char *p = in.s_ptr + V2_FIXED;

	if (family > 3 || transport > 2 || in.s_len < V2_FIXED + sizes[family])
		return false;
	if (transport == 1 && family == 1)
		proxy_header_copy_in(p, client);
	else if (transport == 1 && family == 2)
		proxy_header_copy_in6(p, client);
	else if (transport == 1 && family == 3)
		client->sa.sa_family = AF_UNIX;
	return proxy_header_skip_fields(in, V2_FIXED + sizes[family]);
}

static enum proxy_header
proxy_header_read_v2(struct str in, size_t *len, union sockaddr_any *client)
{
	unsigned char command;

	if (in.s_len > v2.s_len) {
		command = (unsigned char)in.s_ptr[v2.s_len];
		if (command != 0x20 && command != 0x21)
			return PROXY_BROKEN;
	}
	if (in.s_len < V2_FIXED)
		return PROXY_MORE;
	*len = V2_FIXED + proxy_header_number(in.s_ptr + 14);
	if (*len > PROXY_HEADER_MAX)
		return PROXY_BROKEN;
	if (in.s_len < *len)
		return PROXY_MORE;
	in.s_len = *len;
	/* The command LOCAL (0x20) means that the rest is ignored. */
	if (command == 0x20 || proxy_header_parse_proxied(in, client))
		return PROXY_DONE;
	return PROXY_BROKEN;
}

enum proxy_header
proxy_header_read(
    const char *p, size_t received, size_t *len, union sockaddr_any *client)
{
	struct str in = {p, received};
	enum proxy_header is_v1 = proxy_header_begins(in, v1),
			  is_v2 = proxy_header_begins(in, v2);

	*client = (union sockaddr_any){.in6 = {0}};
	client->sa.sa_family = AF_UNSPEC;
	if (is_v1 == PROXY_DONE)
		return proxy_header_read_v1(in, len, client);
	if (is_v2 == PROXY_DONE)
		return proxy_header_read_v2(in, len, client);
	return is_v1 == PROXY_MORE || is_v2 == PROXY_MORE ? PROXY_MORE
							  : PROXY_NONE;
}
