/*
 * server/http/signed_link.h against a naive reading: members are copied out and looked at with
 * regular expressions, and the text that was signed is put together in memory.
 * Input: "ADDRESS NOW\n", "PATH\n" and the query, in which '@' stands for the signature that
 * would be right.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <regex.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "server/http/signed_link.h"
#include "server/util/cidr.h"

#define KEY_A "0123456789abcdef0123456789abcdef"
#define KEY_B "a second key of some forty characters..."

struct members {
	char *mb_values[3]; /* expires, client, signature */
	int mb_counts[3];
};

static bool
matches(const char *text, const char *pattern)
{
	regex_t re;
	int error;

	CHECK(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) == 0);
	error = regexec(&re, text, 0, NULL, 0);
	regfree(&re);
	return error == 0;
}

static void
split(char *query, struct members *mb)
{
	static const char *const names[] = {
	    "expires=", "client=", "signature="};
	char *member;

	memset(mb, 0, sizeof(*mb));
	while ((member = strsep(&query, "&")) != NULL)
		for (int i = 0; i < 3; i++)
			if (strncmp(member, names[i], strlen(names[i])) == 0) {
				mb->mb_values[i] = member + strlen(names[i]);
				mb->mb_counts[i]++;
			}
}

static void
unescape(char *text)
{
	char *to = text;
	unsigned byte;

	for (; *text != '\0'; text++)
		if (*text == '%') {
			CHECK(sscanf(text + 1, "%2x", &byte) == 1);
			*to++ = (char)byte;
			text += 2;
		} else
			*to++ = *text;
	*to = '\0';
}

static bool
is_complete(const struct members *mb)
{
	return mb->mb_counts[0] == 1 && mb->mb_counts[1] <= 1 &&
	       mb->mb_counts[2] == 1 &&
	       matches(mb->mb_values[0], "^[1-9][0-9]{0,10}$") &&
	       (mb->mb_counts[1] == 0 ||
		   matches(mb->mb_values[1], "^([!-$&-~]|%(2[1-9A-Fa-f]|[3-6]["
					     "0-9A-Fa-f]|7[0-9A-Ea-e]))+$"));
}

/* Of what is complete. */
static void
expect(const struct members *mb, const char *key, struct str path,
    char text[static 64])
{
	const char *client = mb->mb_counts[1] == 0 ? "" : mb->mb_values[1];
	unsigned char mac[EVP_MAX_MD_SIZE];
	char *signed_text;
	unsigned n;
	int len = asprintf(&signed_text, "pagewise link 1\n%s\n%s\n",
	    mb->mb_values[0], client);
	size_t whole = (size_t)len + path.s_len;

	CHECK(len > 0);
	signed_text = realloc(signed_text, whole);
	CHECK(signed_text != NULL);
	memcpy(signed_text + len, path.s_ptr, path.s_len);
	CHECK(HMAC(EVP_sha256(), key, (int)strlen(key),
		  (unsigned char *)signed_text, whole, mac, &n) != NULL);
	free(signed_text);
	CHECK(EVP_EncodeBlock((unsigned char *)text, mac, (int)n) == 44);
	for (char *p = text; *p != '\0'; p++)
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p == '=' ? '\0' : *p;
}

static enum signed_link
naive(const struct members *mb, struct str path, const struct sockaddr *sa,
    time_t now)
{
	char a[64], b[64];
	struct cidr cd;

	expect(mb, KEY_A, path, a);
	expect(mb, KEY_B, path, b);
	if (strcmp(mb->mb_values[2], a) != 0 &&
	    strcmp(mb->mb_values[2], b) != 0)
		return SIGNED_LINK_BAD;
	if (mb->mb_counts[1] == 1 &&
	    !(cidr_parse(mb->mb_values[1], &cd) && cidr_has(&cd, sa)))
		return SIGNED_LINK_BAD;
	return strtoll(mb->mb_values[0], NULL, 10) <= (long long)now
		   ? SIGNED_LINK_EXPIRED
		   : SIGNED_LINK_GOOD;
}

/* With the right signature in place of each '@'. */
static char *
filled_in(struct str query, struct str path, struct members *mb, bool *whole)
{
	char *copy = fuzz_text(query), *text, right[64] = "";
	size_t len = 0;

	split(copy, mb);
	*whole = is_complete(mb);
	if (*whole) {
		if (mb->mb_counts[1] == 1)
			unescape(mb->mb_values[1]);
		*whole = mb->mb_counts[1] == 0 ||
			 strlen(mb->mb_values[1]) < SIGNED_LINK_CLIENT;
		expect(mb, query.s_len % 2 == 0 ? KEY_A : KEY_B, path, right);
	}
	free(copy);
	text = malloc(query.s_len * 44 + 1);
	CHECK(text != NULL);
	for (size_t i = 0; i < query.s_len; i++) {
		text[len] = query.s_ptr[i];
		len += text[len] != '@';
		if (query.s_ptr[i] == '@')
			len += (size_t)sprintf(text + len, "%s", right);
	}
	text[len] = '\0';
	return text;
}

static void
check(struct str query, struct str path, const struct sockaddr *sa, time_t now)
{
	static struct hmac *hm;
	static struct link_keys keys = {.lks_count = 2,
	    .lks_list = {
		{sizeof(KEY_A) - 1, KEY_A}, {sizeof(KEY_B) - 1, KEY_B}}};
	enum signed_link expected = SIGNED_LINK_BAD;
	struct members mb;
	bool whole, again;
	char *text = filled_in(query, path, &mb, &whole), *parts, *exact;
	struct str filled = fuzz_str(text);

	if (hm == NULL)
		CHECK((hm = hmac_create()) != NULL);
	parts = fuzz_text(filled);
	split(parts, &mb);
	again = is_complete(&mb);
	if (again && mb.mb_counts[1] == 1)
		unescape(mb.mb_values[1]);
	if (whole && again)
		expected = naive(&mb, path, sa, now);
	exact = fuzz_copy(filled);
	CHECK(signed_link_check(hm, &keys, (struct str){exact, filled.s_len},
		  path, sa, now) == expected);
	free(exact);
	free(parts);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size), line = fuzz_line(&in);
	struct str word = fuzz_until(&line, ' '), path = fuzz_line(&in);
	struct sockaddr_in sin = {.sin_family = AF_INET};
	char *address = fuzz_text(word);

	if (inet_pton(AF_INET, address, &sin.sin_addr) != 1)
		sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	free(address);
	if (memchr(in.s_ptr, '\0', in.s_len) == NULL && in.s_len < 4096)
		check(in, path, (const struct sockaddr *)(const void *)&sin,
		    (time_t)fuzz_number(&line, 1000));
	return 0;
}
