/*
 * body: a state machine over the bytes of a body.  A call may end after any byte; the next call
 * continues there.
 */
#include "server/http/body.h"

#include "server/http/chars.h"

enum state {
	ST_END,
	ST_SIZED, /* data of a body with Content-Length */
	ST_SIZE,  /* first digit of a chunk size */
	ST_DIGITS,
	ST_GAP, /* after spaces; expects ';' */
	ST_EXT, /* after ';'; expects a name */
	ST_EXT_NAME,
	ST_EXT_GAP,   /* after a name and spaces; expects ';' or '=' */
	ST_EXT_VALUE, /* after '='; expects a value */
	ST_EXT_TOKEN,
	ST_QUOTED,
	ST_ESCAPED,  /* after a backslash */
	ST_UNQUOTED, /* after the closing quote of a quoted value */
	ST_SIZE_LF,
	ST_DATA,
	ST_DATA_CR,
	ST_DATA_LF,
	ST_TRAILER, /* first byte of a trailer field or of the last CRLF */
	ST_NAME,
	ST_VALUE,
	ST_VALUE_LF,
	ST_END_LF,
	ST_BAD,
};

struct body
body_sized(uint64_t length)
{
	return (struct body){.bd_left = (uint32_t)length,
	    .bd_state = length > 0 ? ST_SIZED : ST_END};
}

struct body
body_chunked(void)
{
	return (struct body){.bd_state = ST_SIZE};
}

static bool
body_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static unsigned
body_hex_value(char c)
{
	if (chars_is(c, CHAR_DIGIT))
		return (unsigned)(c - '0');
	return (unsigned)((c | 0x20) - 'a') + 10;
}

/* Adds a digit to the chunk size.  Counts a leading zero towards BODY_EXTRA. */
static enum state
body_add_digit(struct body *bd, char c)
{
	if (bd->bd_state == ST_DIGITS && bd->bd_left == 0)
		bd->bd_extra++;
	bd->bd_left = 16 * bd->bd_left + body_hex_value(c);
	return bd->bd_left > BODY_DATA - bd->bd_data ? ST_BAD : ST_DIGITS;
}

static enum state
body_after_size(struct body *bd, char c)
{
	if (chars_is(c, CHAR_HEX))
		return body_add_digit(bd, c);
	if (bd->bd_state == ST_SIZE)
		return ST_BAD;
	if (c == '\r')
		return ST_SIZE_LF;
	bd->bd_extra++;
	if (c == ';')
		return ST_EXT;
	return body_is_blank(c) ? ST_GAP : ST_BAD;
}

/* Handles the byte after an extension or after the spaces behind an extension. */
static enum state
body_after_extension(char c, bool may_end)
{
	if (c == ';')
		return ST_EXT;
	if (body_is_blank(c))
		return ST_GAP;
	return c == '\r' && may_end ? ST_SIZE_LF : ST_BAD;
}

static enum state
body_after_name(enum state state, char c)
{
	if (state == ST_EXT_NAME && chars_is(c, CHAR_TOKEN))
		return ST_EXT_NAME;
	if (c == '=')
		return ST_EXT_VALUE;
	if (body_is_blank(c))
		return ST_EXT_GAP;
	return body_after_extension(c, state == ST_EXT_NAME);
}

static enum state
body_in_quotes(char c)
{
	if (c == '"')
		return ST_UNQUOTED;
	if (c == '\\')
		return ST_ESCAPED;
	return chars_is(c, CHAR_TEXT) ? ST_QUOTED : ST_BAD;
}

static enum state
body_extension(enum state state, char c)
{
	switch (state) {
	case ST_EXT:
		if (body_is_blank(c))
			return ST_EXT;
		return chars_is(c, CHAR_TOKEN) ? ST_EXT_NAME : ST_BAD;
	case ST_EXT_NAME:
	case ST_EXT_GAP:
		return body_after_name(state, c);
	case ST_EXT_VALUE:
		if (body_is_blank(c) || c == '"')
			return c == '"' ? ST_QUOTED : ST_EXT_VALUE;
		return chars_is(c, CHAR_TOKEN) ? ST_EXT_TOKEN : ST_BAD;
	case ST_EXT_TOKEN:
		if (chars_is(c, CHAR_TOKEN))
			return ST_EXT_TOKEN;
		return body_after_extension(c, true);
	case ST_QUOTED:
		return body_in_quotes(c);
	case ST_ESCAPED:
		return chars_is(c, CHAR_TEXT) ? ST_QUOTED : ST_BAD;
	case ST_UNQUOTED:
		return body_after_extension(c, true);
	default: /* ST_GAP */
		return body_after_extension(c, false);
	}
}

static enum state
body_trailer(enum state state, char c)
{
	switch (state) {
	case ST_TRAILER:
		if (c == '\r')
			return ST_END_LF;
		return chars_is(c, CHAR_TOKEN) ? ST_NAME : ST_BAD;
	case ST_NAME:
		if (c == ':')
			return ST_VALUE;
		return chars_is(c, CHAR_TOKEN) ? ST_NAME : ST_BAD;
	case ST_VALUE:
		if (c == '\r')
			return ST_VALUE_LF;
		return chars_is(c, CHAR_TEXT) ? ST_VALUE : ST_BAD;
	default: /* ST_VALUE_LF */
		return c == '\n' ? ST_TRAILER : ST_BAD;
	}
}

static enum state
body_after_size_line(const struct body *bd, char c)
{
	if (c != '\n')
		return ST_BAD;
	return bd->bd_left == 0 ? ST_TRAILER : ST_DATA;
}

/* Handles a byte of the chunked framing. */
static enum state
body_next_state(struct body *bd, char c)
{
	enum state state = bd->bd_state;

	switch (state) {
	case ST_SIZE:
	case ST_DIGITS:
		return body_after_size(bd, c);
	case ST_SIZE_LF:
		return body_after_size_line(bd, c);
	case ST_DATA_CR:
		return c == '\r' ? ST_DATA_LF : ST_BAD;
	case ST_DATA_LF:
		return c == '\n' ? ST_SIZE : ST_BAD;
	case ST_END_LF:
		return c == '\n' ? ST_END : ST_BAD;
	case ST_TRAILER:
	case ST_NAME:
	case ST_VALUE:
	case ST_VALUE_LF:
		bd->bd_extra++;
		return body_trailer(state, c);
	case ST_BAD:
		return ST_BAD;
	default:
		bd->bd_extra++;
		return body_extension(state, c);
	}
}

/* Skips data.  Returns the number of data bytes. */
static size_t
body_skip_data(struct body *bd, size_t len)
{
	size_t n = len < bd->bd_left ? len : bd->bd_left;

	bd->bd_left -= (uint32_t)n;
	if (bd->bd_state == ST_DATA)
		bd->bd_data += (uint32_t)n;
	if (bd->bd_left == 0)
		bd->bd_state = bd->bd_state == ST_DATA ? ST_DATA_CR : ST_END;
	return n;
}

enum body_status
body_skip(struct body *bd, const char *buf, size_t len, size_t *used)
{
	size_t i = 0;

	while (i < len && bd->bd_state != ST_END && bd->bd_state != ST_BAD) {
		if (bd->bd_state == ST_SIZED || bd->bd_state == ST_DATA) {
			i += body_skip_data(bd, len - i);
			continue;
		}
		bd->bd_state = (uint8_t)body_next_state(bd, buf[i++]);
		if (bd->bd_extra > BODY_EXTRA)
			bd->bd_state = ST_BAD;
	}
	*used = i;
	if (bd->bd_state == ST_BAD)
		return BODY_BAD;
	return bd->bd_state == ST_END ? BODY_END : BODY_MORE;
}
