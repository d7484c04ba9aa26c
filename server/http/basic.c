/*
 * basic: see basic.h.
 */
#include "server/http/basic.h"
#include "server/util/base64.h"

static bool
basic_is_text(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
			return false;
	return true;
}

static bool
basic_split(struct basic *bs)
{
	char *colon = memchr(bs->bs_text, ':', bs->bs_len);

	if (colon == NULL || colon == bs->bs_text ||
	    !basic_is_text(bs->bs_text, bs->bs_len))
		return false;
	*colon = '\0';
	bs->bs_text[bs->bs_len] = '\0';
	bs->bs_user = bs->bs_text;
	bs->bs_password = colon + 1;
	return true;
}

bool
basic_parse(struct str s, struct basic *bs)
{
	static const struct str scheme = {"Basic", 5};
	struct str front = {s.s_ptr, 5};

	if (s.s_len <= scheme.s_len || !str_caseeq(front, scheme) ||
	    s.s_ptr[scheme.s_len] != ' ')
		return false;
	str_advance(&s, scheme.s_len);
	while (s.s_len > 0 && *s.s_ptr == ' ')
		str_advance(&s, 1);
	if (base64_decode(
		s, (unsigned char *)bs->bs_text, BASIC_MOST, &bs->bs_len) &&
	    basic_split(bs))
		return true;
	basic_forget(bs);
	return false;
}

void
basic_forget(struct basic *bs)
{
	explicit_bzero(bs, sizeof(*bs));
}
