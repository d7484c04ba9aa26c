/*
 * naive_head: a request head read in the plainest way, to compare with: a copy of
 * the text is cut into lines, and these into names and values.
 */
#ifndef TESTS_NAIVE_HEAD_H
#define TESTS_NAIVE_HEAD_H

#include <arpa/inet.h>
#include <regex.h>

#include "fuzz.h"
#include "server/http/head.h"

#define NAIVE_FIELDS 1024

struct naive_field {
	const char *nf_name;
	struct str nf_value; /* trimmed */
};

/* Texts are in nh_text. */
struct naive_head {
	char *nh_text;
	size_t nh_skip;
	size_t nh_len;
	int nh_minor;
	char *nh_line; /* before it was cut */
	const char *nh_method;
	const char *nh_target;
	struct naive_field nh_fields[NAIVE_FIELDS];
	size_t nh_nfields;
};

#define NAIVE_ALNUM \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define NAIVE_TOKEN NAIVE_ALNUM "!#$%&'*+-.^_`|~"

/* host [":" port] (RFC 9110, 7.2) with RFC 3986's reg-name or an IPv6 address. */
static inline bool
naive_host(const char *text)
{
	static const char pattern[] =
	    "^(\\[([0-9A-Fa-f:.]+)\\]|([A-Za-z0-9._~!$&'()*+,;=-]|"
	    "%[0-9A-Fa-f]{2})+)(:[0-9]*)?$";
	static regex_t regex;
	static bool ready;
	struct in6_addr addr;
	regmatch_t m[3];
	char *inner;
	bool good;

	if (!ready)
		CHECK(regcomp(&regex, pattern, REG_EXTENDED) == 0);
	ready = true;
	if (regexec(&regex, text, COUNT(m), m, 0) != 0)
		return false;
	if (m[2].rm_so == -1)
		return true;
	inner = strndup(text + m[2].rm_so, (size_t)(m[2].rm_eo - m[2].rm_so));
	CHECK(inner != NULL);
	good = inet_pton(AF_INET6, inner, &addr) == 1;
	free(inner);
	return good;
}

static inline bool
naive_request_line(struct naive_head *nh, char *line, size_t most)
{
	char *version, *target = strchr(line, ' ');

	nh->nh_line = strdup(line);
	CHECK(nh->nh_line != NULL);
	if (target == NULL)
		return false;
	*target++ = '\0';
	version = strchr(target, ' ');
	if (version == NULL)
		return false;
	*version++ = '\0';
	nh->nh_method = line;
	nh->nh_target = target;
	nh->nh_minor = strcmp(version, "HTTP/1.0") != 0;
	for (; *target != '\0'; target++)
		if (*target < 0x21 || *target > 0x7e)
			return false;
	return strlen(version) == 8 && strncmp(version, "HTTP/1.", 7) == 0 &&
	       strspn(version + 7, "0123456789") == 1 && *line != '\0' &&
	       strspn(line, NAIVE_TOKEN) == strlen(line) &&
	       strlen(line) <= 32 && *nh->nh_target != '\0' &&
	       strlen(nh->nh_target) <= most;
}

static inline bool
naive_field(struct naive_head *nh, char *line)
{
	struct naive_field *nf = &nh->nh_fields[nh->nh_nfields++];
	char *colon = strchr(line, ':'), *value, *end;
	const unsigned char *p;

	if (colon == NULL)
		return false;
	*colon = '\0';
	for (p = (const unsigned char *)colon + 1; *p != '\0'; p++)
		if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
			return false;
	value = colon + 1 + strspn(colon + 1, " \t");
	for (end = value + strlen(value);
	     end > value && strchr(" \t", end[-1]) != NULL; end--)
		end[-1] = '\0';
	nf->nf_name = line;
	nf->nf_value = fuzz_str(value);
	return *line != '\0' && strspn(line, NAIVE_TOKEN) == strlen(line);
}

/* How many there are; the first. */
static inline size_t
naive_find(const struct naive_head *nh, const char *name, struct str *value)
{
	size_t i, n = 0;

	*value = (struct str){NULL, 0};
	for (i = 0; i < nh->nh_nfields; i++)
		if (strcasecmp(nh->nh_fields[i].nf_name, name) == 0 && n++ == 0)
			*value = nh->nh_fields[i].nf_value;
	return n;
}

/* What decides where the request ends and whose it is. */
static inline bool
naive_framing(const struct naive_head *nh)
{
	struct str host, length, coding;
	size_t hosts = naive_find(nh, "host", &host);
	size_t lengths = naive_find(nh, "content-length", &length);

	size_t codings = naive_find(nh, "transfer-encoding", &coding);

	if (hosts > 1 || codings + lengths > 1 ||
	    (nh->nh_minor == 1 && hosts == 0))
		return false;
	if (codings == 1 &&
	    (nh->nh_minor == 0 || strcasecmp(coding.s_ptr, "chunked") != 0))
		return false;
	if (hosts == 1 && host.s_len > 0 && !naive_host(host.s_ptr))
		return false;
	return lengths == 0 ||
	       (length.s_len > 0 &&
		   strspn(length.s_ptr, "0123456789") == length.s_len);
}

/* Cuts the next line off; NULL: it does not end with CRLF. */
static inline char *
naive_next(char **text)
{
	char *line = *text, *end = strstr(line, "\r\n");

	if (end == NULL)
		return NULL;
	*end = '\0';
	*text = end + 2;
	return strpbrk(line, "\r\n") == NULL ? line : NULL;
}

/* Whether a whole correct head is at the front. */
static inline bool
naive_read(
    struct naive_head *nh, struct str in, const struct head_limits *limits)
{
	char *text, *line;

	memset(nh, 0, offsetof(struct naive_head, nh_fields));
	nh->nh_nfields = 0;
	nh->nh_text = text = fuzz_text(in);
	while (nh->nh_skip < 4 && strncmp(text, "\r\n", 2) == 0) {
		nh->nh_skip += 2;
		text += 2;
	}
	line = naive_next(&text);
	if (line == NULL || !naive_request_line(nh, line, limits->hl_target))
		return false;
	while ((line = naive_next(&text)) != NULL && *line != '\0')
		if (nh->nh_nfields == limits->hl_fields ||
		    nh->nh_nfields == NAIVE_FIELDS || !naive_field(nh, line))
			return false;
	nh->nh_len = (size_t)(text - nh->nh_text);
	return line != NULL && nh->nh_len <= limits->hl_size &&
	       naive_framing(nh);
}

static inline void
naive_free(struct naive_head *nh)
{
	free(nh->nh_line);
	free(nh->nh_text);
}

#endif
