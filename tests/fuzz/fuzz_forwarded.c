/*
 * server/http/forwarded.h against a naive reading: the last member is found by a regular
 * expression over all of the list.
 * Input: "x\n" or "f\n", and the value.
 */
#include <arpa/inet.h>
#include <regex.h>

#include "fuzz.h"
#include "server/http/chars.h"
#include "server/http/forwarded.h"

#define MOST   300 /* bytes: regexec(3) takes its time */
#define TOKEN  "[A-Za-z0-9!#$%&'*+.^_`|~-]+"
#define QUOTED "\"([^\"\\]|\\\\.)*\""
#define PAIR   TOKEN "=(" TOKEN "|" QUOTED ")"
#define OWS    "[ \t]*"
#define MEMBER "(" PAIR ")?(" OWS ";" OWS "(" PAIR ")?)*"
#define PORT   "(:([0-9]{1,5}|_" TOKEN "))?"

/* Of the last: where its first groups are; false: it does not match. */
static bool
match(const char *text, const char *pattern, regmatch_t m[static 8])
{
	regex_t re;
	int error;

	CHECK(regcomp(&re, pattern, REG_EXTENDED) == 0);
	error = regexec(&re, text, 8, m, 0);
	regfree(&re);
	return error == 0;
}

static bool
is_address(const char *text, regmatch_t m, int family, char *out)
{
	union sockaddr_any addr = {.in6 = {0}};
	char copy[MOST + 1];

	snprintf(copy, sizeof(copy), "%.*s", (int)(m.rm_eo - m.rm_so),
	    text + m.rm_so);
	addr.sa.sa_family = (sa_family_t)family;
	if (inet_pton(family, copy,
		family == AF_INET ? (void *)&addr.in.sin_addr
				  : (void *)&addr.in6.sin6_addr) != 1)
		return false;
	*sockaddr_text(out, &addr.sa) = '\0';
	return true;
}

static bool
node(const char *text, char *out)
{
	regmatch_t m[8];

	return (match(text, "^([0-9.]+)" PORT "$", m) &&
		   is_address(text, m[1], AF_INET, out)) ||
	       (match(text, "^\\[([0-9A-Fa-f:.]+)\\]" PORT "$", m) &&
		   is_address(text, m[1], AF_INET6, out)) ||
	       (match(text, "^([0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)$", m) &&
		   is_address(text, m[1], AF_INET6, out));
}

/* Cuts the value of the one "for" out of a member that fits the grammar. */
static char *
value_of(char *member)
{
	char *found = NULL, *pair, *p, *end = member + strlen(member);

	for (p = member; p < end;) {
		p += strspn(p, " \t;");
		pair = p;
		p += strcspn(p, "=");
		if (p >= end)
			break;
		if (*++p == '"') {
			for (p++; *p != '"'; p++)
				p += *p == '\\';
			p++;
		} else
			p += strcspn(p, " \t;");
		if (strncasecmp(pair, "for=", 4) != 0)
			continue;
		if (found != NULL)
			return NULL;
		found = pair + 4;
		if (*p != '\0')
			*p++ = '\0';
	}
	if (found != NULL && *found == '"') {
		found++;
		found[strlen(found) - 1] = '\0';
	}
	return found;
}

static bool
is_trusted(const char *text)
{
	return strncmp(text, "10.", 3) == 0;
}

static const char *
naive(char *list, bool rfc, char out[static INET6_ADDRSTRLEN])
{
	const char *rule = rfc ? "^(.*,)?" OWS "(" MEMBER ")" OWS "$"
			       : "^(.*,)?" OWS "([^,]*[^, \t])" OWS "$";
	char addr[INET6_ADDRSTRLEN], *member;
	regmatch_t m[8];

	out[0] = '\0';
	while (*list != '\0') {
		if (!match(list, "^(.*,)?" OWS "()$", m)) {
			if (!match(list, rule, m))
				break;
			list[m[2].rm_eo] = '\0';
			member = list + m[2].rm_so;
			if (rfc)
				member = value_of(member);
			if (member == NULL || !node(member, addr))
				break;
			strcpy(out, addr);
			if (!is_trusted(addr))
				break;
		}
		list[m[1].rm_so == -1 ? 0 : m[1].rm_eo - 1] = '\0';
	}
	return out;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size), line = fuzz_line(&in);
	char ours[INET6_ADDRSTRLEN] = "", theirs[INET6_ADDRSTRLEN];
	bool rfc = line.s_len > 0 && line.s_ptr[0] == 'f';
	char *copy, *text;
	union sockaddr_any who;
	struct cidr trusted;

	if (in.s_len > MOST)
		return 0;
	for (size_t i = 0; i < in.s_len; i++)
		if (!chars_is(in.s_ptr[i], CHAR_TEXT))
			return 0;
	CHECK(cidr_parse("10.0.0.0/8", &trusted));
	copy = fuzz_copy(in);
	text = fuzz_text(in);
	if (forwarded_client(rfc ? FORWARDED_RFC7239 : FORWARDED_X,
		(struct str){copy, in.s_len}, &trusted, 1, &who))
		*sockaddr_text(ours, &who.sa) = '\0';
	CHECK(strcmp(ours, naive(text, rfc, theirs)) == 0);
	free(text);
	free(copy);
	return 0;
}
