/*
 * signed_link: see signed_link.h.
 */
#include "server/http/signed_link.h"
#include "server/http/chars.h"
#include "server/util/cidr.h"

#define PREFIX "pagewise link 1\n"

static struct str
signed_link_next_member(struct str *query)
{
	const char *end = memchr(query->s_ptr, '&', query->s_len);
	struct str member = *query;

	if (end != NULL)
		member.s_len = (size_t)(end - query->s_ptr);
	str_advance(query, member.s_len + (end != NULL));
	return member;
}

/* Stores the value of a parameter.  Returns false if the parameter is repeated. */
static bool
signed_link_take(struct str *to, struct str value)
{
	if (to->s_ptr != NULL)
		return false;
	*to = value;
	return true;
}

static bool
signed_link_is_time(struct str s)
{
	size_t i;

	for (i = 0; i < s.s_len; i++)
		if (!chars_is(s.s_ptr[i], CHAR_DIGIT))
			return false;
	return s.s_len > 0 && s.s_len <= SIGNED_LINK_EXPIRES &&
	       s.s_ptr[0] != '0';
}

static int
signed_link_hex(char c)
{
	if (!chars_is(c, CHAR_HEX))
		return -1;
	return chars_is(c, CHAR_DIGIT) ? c - '0' : (c | 0x20) - 'a' + 10;
}

/*
 * Decodes percent-escapes, which may stand for any byte.  Returns false if the text is malformed or
 * too long.
 */
static bool
signed_link_decode(struct str s, char out[SIGNED_LINK_CLIENT])
{
	size_t i, n = 0;
	int high, low;

	for (i = 0; i < s.s_len; i++) {
		if (n + 1 == SIGNED_LINK_CLIENT)
			return false;
		out[n] = s.s_ptr[i];
		if (s.s_ptr[i] == '%') {
			high = i + 2 < s.s_len ? signed_link_hex(s.s_ptr[i + 1])
					       : -1;
			low = i + 2 < s.s_len ? signed_link_hex(s.s_ptr[i + 2])
					      : -1;
			if (high < 0 || low < 0)
				return false;
			out[n] = (char)(high << 4 | low);
			i += 2;
		}
		if (!chars_is(out[n++], CHAR_VISIBLE))
			return false;
	}
	out[n] = '\0';
	return n > 0;
}

bool
link_query_parse(struct str query, struct link_query *lq)
{
	struct str member, client = {0};
	bool once = true;

	*lq = (struct link_query){0};
	while (query.s_ptr != NULL && query.s_len > 0) {
		member = signed_link_next_member(&query);
		if (str_skip(&member, STR("expires=")))
			once =
			    once && signed_link_take(&lq->lq_expires, member);
		else if (str_skip(&member, STR("signature=")))
			once =
			    once && signed_link_take(&lq->lq_signature, member);
		else if (str_skip(&member, STR("client=")))
			once = once && signed_link_take(&client, member);
	}
	return once && signed_link_is_time(lq->lq_expires) &&
	       lq->lq_signature.s_len == SIGNED_LINK_SIGNATURE &&
	       (client.s_ptr == NULL ||
		   signed_link_decode(client, lq->lq_client));
}

bool
link_query_has(struct str query)
{
	struct str member;

	while (query.s_ptr != NULL && query.s_len > 0) {
		member = signed_link_next_member(&query);
		if (str_skip(&member, STR("expires=")) ||
		    str_skip(&member, STR("signature=")) ||
		    str_skip(&member, STR("client=")))
			return true;
	}
	return false;
}

bool
link_sign(struct hmac *hm, const struct link_key *lk,
    const struct link_query *lq, struct str path,
    char signature[SIGNED_LINK_SIGNATURE])
{
	unsigned char mac[HMAC_LEN];
	bool done;

	hmac_begin(hm, lk->lk_text, lk->lk_len);
	hmac_add(hm, PREFIX, sizeof(PREFIX) - 1);
	hmac_add(hm, lq->lq_expires.s_ptr, lq->lq_expires.s_len);
	hmac_add(hm, "\n", 1);
	hmac_add(hm, lq->lq_client, strlen(lq->lq_client));
	hmac_add(hm, "\n", 1);
	hmac_add(hm, path.s_ptr, path.s_len);
	done = hmac_end(hm, mac);
	base64_encode_url(mac, sizeof(mac), signature);
	return done;
}

/*
 * Returns true if one of the keys made the signature.  Tries all keys, so that the time does not
 * reveal which key matches.
 */
static bool
signed_link_is_signed(struct hmac *hm, const struct link_keys *lks,
    const struct link_query *lq, struct str path)
{
	char expected[SIGNED_LINK_SIGNATURE];
	bool found = false;

	for (size_t i = 0; i < lks->lks_count; i++)
		found |= link_sign(hm, &lks->lks_list[i], lq, path, expected) &&
			 hmac_same(expected, lq->lq_signature.s_ptr,
			     sizeof(expected));
	return found;
}

/* Returns true if the link has expired.  `digits` has at most SIGNED_LINK_EXPIRES digits. */
static bool
signed_link_is_over(struct str digits, time_t now)
{
	long long value = 0;

	for (size_t i = 0; i < digits.s_len; i++)
		value = value * 10 + (digits.s_ptr[i] - '0');
	return (long long)now >= value;
}

static bool
signed_link_is_for(const char *client, const struct sockaddr *sa)
{
	struct cidr cd;

	return client[0] == '\0' ||
	       (cidr_parse(client, &cd) && cidr_has(&cd, sa));
}

enum signed_link
signed_link_check(struct hmac *hm, const struct link_keys *lks,
    struct str query, struct str path, const struct sockaddr *sa, time_t now)
{
	struct link_query lq;

	if (!link_query_parse(query, &lq) ||
	    !signed_link_is_signed(hm, lks, &lq, path) ||
	    !signed_link_is_for(lq.lq_client, sa))
		return SIGNED_LINK_BAD;
	return signed_link_is_over(lq.lq_expires, now) ? SIGNED_LINK_EXPIRED
						       : SIGNED_LINK_GOOD;
}
