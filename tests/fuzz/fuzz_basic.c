/*
 * server/http/basic.h against a naive reading: libcrypto decodes, and encodes again, and what is
 * not the same then was no base64.
 * Input: the field's value.
 */
#include <openssl/evp.h>

#include "fuzz.h"
#include "server/http/basic.h"

/* The decoded bytes; NULL: it is not base64.  Or more of them than may be. */
static char *
decoded(const char *text, size_t *len)
{
	size_t size = strlen(text), pads = 0;
	unsigned char *out = malloc(size + 4), *again = malloc(size + 4);
	bool good;

	CHECK(out != NULL && again != NULL);
	while (pads < 2 && pads < size && text[size - 1 - pads] == '=')
		pads++;
	good = size % 4 == 0 &&
	       (size == 0 || EVP_DecodeBlock(out, (const unsigned char *)text,
				 (int)size) == (int)(size / 4 * 3));
	*len = good ? size / 4 * 3 - pads : 0;
	if (good && size > 0)
		EVP_EncodeBlock(again, out, (int)*len);
	else
		again[0] = '\0';
	good = good && strcmp((char *)again, text) == 0;
	free(again);
	if (!good) {
		free(out);
		return NULL;
	}
	out[*len] = '\0';
	return (char *)out;
}

static bool
naive(const char *value, char **user, char **password)
{
	size_t len, i;
	char *text;

	if (strncasecmp(value, "basic ", 6) != 0)
		return false;
	value += 6;
	value += strspn(value, " ");
	text = decoded(value, &len);
	if (text == NULL)
		return false;
	*password = strchr(text, ':');
	*user = text;
	for (i = 0; i < len; i++)
		if ((text[i] > 0 && text[i] < 0x20) || text[i] == 0 ||
		    text[i] == 0x7f)
			*password = NULL;
	if (len > BASIC_MOST || *password == NULL || *password == text) {
		free(text);
		return false;
	}
	*(*password)++ = '\0';
	return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	char *text = fuzz_text(in), *copy = fuzz_copy(in);
	char *user, *password;
	struct basic bs;

	if (memchr(in.s_ptr, '\0', in.s_len) == NULL) {
		bool good = naive(text, &user, &password);

		memset(&bs, 0, sizeof(bs));
		CHECK(basic_parse((struct str){copy, in.s_len}, &bs) == good);
		if (good) {
			CHECK(strcmp(bs.bs_user, user) == 0);
			CHECK(strcmp(bs.bs_password, password) == 0);
			CHECK(bs.bs_len == strlen(user) + 1 + strlen(password));
			free(user);
			basic_forget(&bs);
		}
		for (size_t i = 0; i < sizeof(bs.bs_text); i++)
			CHECK(bs.bs_text[i] == '\0');
	}
	free(copy);
	free(text);
	return 0;
}
