/*
 * What server/util/utf8.h promises.
 */

#include "test.h"

#include "server/util/utf8.h"

TEST(a_character_is_decoded_with_its_length)
{
	static const struct {
		const char *text;
		size_t len;
		uint32_t character;
	} table[] = {
	    {"a", 1, 'a'},
	    {"\x7f", 1, 0x7f},
	    {"\xc2\x80", 2, 0x80},
	    {"\xdf\xbf", 2, 0x7ff},
	    {"\xe0\xa0\x80", 3, 0x800},
	    {"\xed\x9f\xbf", 3, 0xd7ff},
	    {"\xee\x80\x80", 3, 0xe000},
	    {"\xef\xbf\xbf", 3, 0xffff},
	    {"\xf0\x90\x80\x80", 4, 0x10000},
	    {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
	    {"\xc3\xa9\xc3", 2, 0xe9},
	};
	uint32_t character;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(utf8_decode(table[i].text,
				     strlen(table[i].text), &character),
		    table[i].len);
		assert_int_equal(character, table[i].character);
	}
	assert_int_equal(utf8_decode("", 1, &character), 1);
	assert_int_equal(character, 0);
}

TEST(malformed_utf8_has_length_0)
{
	static const char *const table[] = {"", "\x80", "\xbf", "\xc0\x80",
	    "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xe0\x9f\xbf",
	    "\xe2\x82", "\xe2(\xa1", "\xed\xa0\x80", "\xed\xbf\xbf",
	    "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98",
	    "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"};
	uint32_t character;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(
		    utf8_decode(table[i], strlen(table[i]), &character), 0);
}
