/*
 * server/http/digest.h: an attribute is one exactly if what scanf(3) reads of it is written
 * the same again; a naive reading of the list of wishes.
 * Input: the attribute, "\n", the value of Want-Repr-Digest; none without that line.
 */
#include "fuzz.h"
#include "server/http/digest.h"

static bool
naive_attribute(const char *text, size_t len)
{
	char hash[65], again[256];
	long long size, seconds;
	unsigned nanoseconds;

	if (sscanf(text, "%64[0-9a-f] %19lld %20lld.%9u", hash, &size, &seconds,
		&nanoseconds) != 4)
		return false;
	snprintf(again, sizeof(again), "%s %lld %lld.%09u", hash, size, seconds,
	    nanoseconds);
	return size >= 0 && seconds != INT64_MIN && strlen(hash) == 64 &&
	       strlen(again) == len && memcmp(again, text, len) == 0;
}

static void
attribute(struct str in)
{
	char *text = fuzz_text(in), *copy = fuzz_copy(in);
	char again[DIGEST_TEXT], base64[DIGEST_BASE64];
	struct digest dg;
	bool is = digest_parse((struct str){copy, in.s_len}, &dg);

	CHECK(is == naive_attribute(text, in.s_len));
	if (is) {
		CHECK(digest_format(&dg, again) == in.s_len);
		CHECK(strcmp(again, text) == 0);
		CHECK(digest_is_of(&dg, dg.dg_size, &dg.dg_mtime));
		CHECK(!digest_is_of(&dg, dg.dg_size ^ 1, &dg.dg_mtime));
		digest_base64(dg.dg_hash, base64);
		CHECK(strlen(base64) == DIGEST_BASE64 - 1);
	}
	free(text);
	free(copy);
}

/* The last member that begins so decides; 1 to 10, and then nothing, or parameters. */
static bool
naive_wish(struct str in)
{
	static const char *const weights[] = {
	    "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"};
	bool wanted = false;
	struct str member, weight;

	while (in.s_len > 0) {
		member = str_trim(fuzz_until(&in, ','));
		if (member.s_len < 8 ||
		    memcmp(member.s_ptr, "sha-256=", 8) != 0)
			continue;
		member = (struct str){member.s_ptr + 8, member.s_len - 8};
		weight = fuzz_until(&member, ';');
		while (weight.s_len > 0 &&
		       str_is_ows(weight.s_ptr[weight.s_len - 1]))
			weight.s_len--;
		wanted = false;
		for (size_t i = 0; i < COUNT(weights); i++)
			wanted |= str_eq(weight, fuzz_str(weights[i]));
	}
	return wanted;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	struct str in = fuzz_input(data, length);
	bool has = memchr(in.s_ptr, '\n', in.s_len) != NULL;

	attribute(fuzz_line(&in));
	if (has) {
		char *copy = fuzz_copy(in);

		CHECK(digest_is_wanted((struct str){copy, in.s_len}) ==
		      naive_wish(in));
		free(copy);
	}
	return 0;
}
