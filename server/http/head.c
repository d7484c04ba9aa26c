/*
 * head: a state machine over the raw bytes of a request head.  A call may end after any byte; the
 * next call continues there.  How the network splits the bytes does not change the result.
 */
#include "server/http/head.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "server/http/chars.h"
#include "server/util/swar.h"

#define METHOD_MAX 32

enum state {
	ST_START, /* first byte of a blank line or of the request line */
	ST_BLANK_LF,
	ST_METHOD,
	ST_TARGET,
	ST_VERSION,
	ST_LINE_LF,
	ST_FIELD, /* first byte of a field or of the final blank line */
	ST_NAME,
	ST_VALUE,
	ST_END_LF,
	ST_DONE,
};

enum field {
	FIELD_OTHER,
	FIELD_HOST,
	FIELD_CONTENT_LENGTH,
	FIELD_TRANSFER_ENCODING,
};

/* Arguments of one call of head_check. */
struct scan {
	const char *sc_buf;
	size_t sc_end; /* number of bytes that may be read */
	const struct head_limits *sc_limits;
	struct head *sc_head;
};

static void
head_enter(struct head *hd, enum state state, size_t at)
{
	hd->hd_state = state;
	hd->hd_mark = at;
	hd->hd_scanned = at;
}

/*
 * Skips whole machine words, from offset `i`, while all their bytes lie between `least` and '~'.
 * Returns the offset behind the words.
 */
static size_t
head_skip_words(const struct scan *sc, size_t i, unsigned char least)
{
	while (sc->sc_end - i >= WORD_SIZE &&
	       swar_within(swar_load(sc->sc_buf + i), least))
		i += WORD_SIZE;
	return i;
}

static int
head_scan_start(struct scan *sc)
{
	struct head *hd = sc->sc_head;

	if (sc->sc_buf[hd->hd_scanned] == '\r') {
		if (hd->hd_before + hd->hd_scanned >= HEAD_BLANK)
			return 400;
		head_enter(hd, ST_BLANK_LF, hd->hd_scanned + 1);
	} else {
		hd->hd_skip = hd->hd_scanned;
		head_enter(hd, ST_METHOD, hd->hd_scanned);
	}
	return 0;
}

static int
head_scan_lf(struct scan *sc)
{
	struct head *hd = sc->sc_head;
	size_t i = hd->hd_scanned;

	if (sc->sc_buf[i] != '\n')
		return 400;
	if (hd->hd_state == ST_BLANK_LF)
		head_enter(hd, ST_START, i + 1);
	else if (hd->hd_state == ST_LINE_LF)
		head_enter(hd, ST_FIELD, i + 1);
	else
		head_enter(hd, ST_DONE, i + 1);
	return 0;
}

static int
head_scan_method(struct scan *sc)
{
	struct head *hd = sc->sc_head;
	size_t i = hd->hd_scanned;

	while (i < sc->sc_end && chars_is(sc->sc_buf[i], CHAR_TOKEN))
		i++;
	hd->hd_scanned = i;
	if (i - hd->hd_mark > METHOD_MAX)
		return 501;
	if (i == sc->sc_end)
		return 0;
	if (sc->sc_buf[i] != ' ' || i == hd->hd_mark)
		return 400;
	head_enter(hd, ST_TARGET, i + 1);
	return 0;
}

static int
head_scan_target(struct scan *sc)
{
	struct head *hd = sc->sc_head;
	size_t i = head_skip_words(sc, hd->hd_scanned, '!');

	while (i < sc->sc_end && chars_is(sc->sc_buf[i], CHAR_VISIBLE))
		i++;
	hd->hd_scanned = i;
	if (i - hd->hd_mark > sc->sc_limits->hl_target)
		return 414;
	if (i == sc->sc_end)
		return 0;
	if (sc->sc_buf[i] != ' ' || i == hd->hd_mark)
		return 400;
	hd->hd_target_at = hd->hd_mark;
	hd->hd_target_len = i - hd->hd_mark;
	head_enter(hd, ST_VERSION, i + 1);
	return 0;
}

/*
 * Reads "HTTP/", a version of the form DIGIT.DIGIT, and a CR.  Returns 400 for other bytes, and 505
 * for a major version other than 1.
 */
static int
head_scan_version(struct scan *sc)
{
	static const char form[] = "HTTP/0.0\r";
	struct head *hd = sc->sc_head;
	const char *version = sc->sc_buf + hd->hd_mark;
	size_t i = hd->hd_scanned - hd->hd_mark;
	size_t there = sc->sc_end - hd->hd_mark;

	for (; i < there && form[i] != '\0'; i++)
		if (form[i] == '0' ? !chars_is(version[i], CHAR_DIGIT)
				   : version[i] != form[i])
			return 400;
	hd->hd_scanned = hd->hd_mark + i;
	if (form[i] != '\0')
		return 0;
	if (version[5] != '1')
		return 505;
	/* Processes a higher minor version as HTTP/1.1 (RFC 9110, 2.5). */
	hd->hd_minor = version[7] == '0' ? 0 : 1;
	head_enter(hd, ST_LINE_LF, hd->hd_scanned);
	return 0;
}

static int
head_scan_field(struct scan *sc)
{
	struct head *hd = sc->sc_head;
	char c = sc->sc_buf[hd->hd_scanned];

	if (c == '\r') {
		if (hd->hd_minor == 1 && !hd->hd_host)
			return 400;
		head_enter(hd, ST_END_LF, hd->hd_scanned + 1);
		return 0;
	}
	if (!chars_is(c, CHAR_TOKEN))
		return 400;
	if (hd->hd_fields == sc->sc_limits->hl_fields)
		return 431;
	hd->hd_fields++;
	head_enter(hd, ST_NAME, hd->hd_scanned);
	return 0;
}

/*
 * Records a field that affects the end of the request or the host.  Returns 0, or 400 if the field
 * must not occur here.
 */
static int
head_note_field(struct head *hd, struct str name)
{
	hd->hd_field = FIELD_OTHER;
	if (str_caseeq(name, STR("host"))) {
		hd->hd_field = FIELD_HOST;
		if (hd->hd_host)
			return 400;
		hd->hd_host = true;
	} else if (str_caseeq(name, STR("content-length"))) {
		if (hd->hd_length || hd->hd_coded)
			return 400;
		hd->hd_length = true;
		hd->hd_field = FIELD_CONTENT_LENGTH;
	} else if (str_caseeq(name, STR("transfer-encoding"))) {
		if (hd->hd_coded || hd->hd_length || hd->hd_minor == 0)
			return 400;
		hd->hd_coded = true;
		hd->hd_field = FIELD_TRANSFER_ENCODING;
	}
	return 0;
}

static int
head_scan_name(struct scan *sc)
{
	struct head *hd = sc->sc_head;
	size_t i = hd->hd_scanned;
	struct str name = {sc->sc_buf + hd->hd_mark, 0};

	while (i < sc->sc_end && chars_is(sc->sc_buf[i], CHAR_TOKEN))
		i++;
	hd->hd_scanned = i;
	if (i == sc->sc_end)
		return 0;
	if (sc->sc_buf[i] != ':')
		return 400;
	name.s_len = i - hd->hd_mark;
	head_enter(hd, ST_VALUE, i + 1);
	return head_note_field(hd, name);
}

static bool
head_is_number(struct str value)
{
	size_t digits = 0;

	while (
	    digits < value.s_len && chars_is(value.s_ptr[digits], CHAR_DIGIT))
		digits++;
	return digits > 0 && digits == value.s_len;
}

/* Checks the value of a field.  Returns 0, or the status to refuse the request with. */
static int
head_check_value(enum field field, struct str value)
{
	value = str_trim(value);
	switch (field) {
	case FIELD_HOST:
		return head_check_host(value);
	case FIELD_CONTENT_LENGTH:
		return head_is_number(value) ? 0 : 400;
	case FIELD_TRANSFER_ENCODING:
		return str_caseeq(value, STR("chunked")) ? 0 : 501;
	case FIELD_OTHER:
		break;
	}
	return 0;
}

static int
head_scan_value(struct scan *sc)
{
	struct head *hd = sc->sc_head;
	size_t i = head_skip_words(sc, hd->hd_scanned, ' ');
	struct str value = {sc->sc_buf + hd->hd_mark, 0};
	int status = 0;

	while (i < sc->sc_end && chars_is(sc->sc_buf[i], CHAR_TEXT))
		i++;
	hd->hd_scanned = i;
	if (i == sc->sc_end)
		return 0;
	if (sc->sc_buf[i] != '\r')
		return 400;
	value.s_len = i - hd->hd_mark;
	if (hd->hd_field != FIELD_OTHER)
		status = head_check_value(hd->hd_field, value);
	head_enter(hd, ST_LINE_LF, i + 1);
	return status;
}

static int
head_step(struct scan *sc)
{
	switch ((enum state)sc->sc_head->hd_state) {
	case ST_START:
		return head_scan_start(sc);
	case ST_METHOD:
		return head_scan_method(sc);
	case ST_TARGET:
		return head_scan_target(sc);
	case ST_VERSION:
		return head_scan_version(sc);
	case ST_FIELD:
		return head_scan_field(sc);
	case ST_NAME:
		return head_scan_name(sc);
	case ST_VALUE:
		return head_scan_value(sc);
	case ST_BLANK_LF:
	case ST_LINE_LF:
	case ST_END_LF:
		return head_scan_lf(sc);
	case ST_DONE:
		break;
	}
	return 0;
}

int
head_check(const char *buf, size_t len, const struct head_limits *limits,
    struct head *hd)
{
	size_t size = limits->hl_size - hd->hd_before;
	size_t end = len < size ? len : size;
	struct scan sc = {buf, end, limits, hd};
	int status;

	if (hd->hd_scanned == 0)
		*hd = (struct head){.hd_before = hd->hd_before};
	while (hd->hd_scanned < end && hd->hd_state != ST_DONE) {
		status = head_step(&sc);
		if (status != 0)
			return status;
	}
	if (hd->hd_state == ST_DONE) {
		hd->hd_len = hd->hd_scanned;
		return 0;
	}
	return len >= size ? 431 : HEAD_MORE;
}

static bool
head_all(struct str s, enum char_class class)
{
	for (size_t i = 0; i < s.s_len; i++)
		if (!chars_is(s.s_ptr[i], class))
			return false;
	return true;
}

int
head_check_method(struct str method)
{
	if (method.s_len == 0 || !head_all(method, CHAR_TOKEN))
		return 400;
	return method.s_len > METHOD_MAX ? 501 : 0;
}

int
head_check_target(struct str target, const struct head_limits *limits)
{
	if (target.s_len == 0 || !head_all(target, CHAR_VISIBLE))
		return 400;
	return target.s_len > limits->hl_target ? 414 : 0;
}

int
head_check_host(struct str host)
{
	return host.s_len == 0 || head_host_valid(host) ? 0 : 400;
}

/* Removes the first line, and stores it without its CR.  Returns false if the line is incomplete. */
static bool
head_take_line(struct str *text, struct str *line)
{
	const char *lf =
	    text->s_len > 0 ? memchr(text->s_ptr, '\n', text->s_len) : NULL;

	if (lf == NULL)
		return false;
	*line = (struct str){text->s_ptr, (size_t)(lf - text->s_ptr)};
	str_advance(text, line->s_len + 1);
	if (line->s_len > 0 && line->s_ptr[line->s_len - 1] == '\r')
		line->s_len--;
	return true;
}

/*
 * Finds the value of Host in `fields`, the lines behind the request line, which may be malformed.  s_ptr is
 * NULL if there is none.
 */
static struct str
head_find_host(struct str fields)
{
	const struct str name = STR("host:");
	struct str line, host = {0};

	while (head_take_line(&fields, &line) && line.s_len > 0) {
		if (line.s_len < name.s_len ||
		    !str_caseeq((struct str){line.s_ptr, name.s_len}, name))
			continue;
		if (host.s_ptr != NULL)
			return (struct str){0};
		str_advance(&line, name.s_len);
		host = str_trim(line);
	}
	return host.s_ptr != NULL && head_check_host(host) == 0
		   ? host
		   : (struct str){0};
}

void
head_find(const char *buf, size_t len, size_t before,
    const struct head_limits *limits, struct str *target, struct str *host)
{
	struct str text = {buf, len}, line;
	struct head hd = {.hd_before = before};

	head_check(buf, len, limits, &hd);
	*target = *host = (struct str){0};
	if (hd.hd_target_at > 0)
		*target = (struct str){buf + hd.hd_target_at, hd.hd_target_len};
	str_advance(&text, hd.hd_skip);
	if (head_take_line(&text, &line))
		*host = head_find_host(text);
}

/* Returns the length of the reg-name (RFC 3986, 3.2.2) at the front. */
static size_t
head_reg_name_len(struct str s)
{
	size_t i = 0;

	while (i < s.s_len) {
		char c = s.s_ptr[i];

		if (chars_is(c, CHAR_HOST))
			i++;
		else if (c == '%' && s.s_len - i > 2 &&
			 chars_is(s.s_ptr[i + 1], CHAR_HEX) &&
			 chars_is(s.s_ptr[i + 2], CHAR_HEX))
			i += 3;
		else
			break;
	}
	return i;
}

/* Returns the length of "[IPv6 address]" at the front, or 0 if the address is invalid. */
static size_t
head_ip_literal_len(struct str s)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr addr;
	const char *end = memchr(s.s_ptr, ']', s.s_len);
	size_t n;

	if (end == NULL)
		return 0;
	n = (size_t)(end - s.s_ptr) - 1;
	if (n >= sizeof(text) || memchr(s.s_ptr, '\0', n) != NULL)
		return 0;
	memcpy(text, s.s_ptr + 1, n);
	text[n] = '\0';
	return inet_pton(AF_INET6, text, &addr) == 1 ? n + 2 : 0;
}

bool
head_host_valid(struct str host)
{
	size_t i;

	if (host.s_len == 0)
		return false;
	i = host.s_ptr[0] == '[' ? head_ip_literal_len(host)
				 : head_reg_name_len(host);
	if (i == 0)
		return false;
	if (i < host.s_len && host.s_ptr[i++] != ':')
		return false;
	while (i < host.s_len && chars_is(host.s_ptr[i], CHAR_DIGIT))
		i++;
	return i == host.s_len;
}

/*
 * Removes the port from a host.  Returns the port without leading zeros, or `otherwise` if the host
 * has no port.
 */
static struct str
head_take_port(struct str *host, struct str otherwise)
{
	size_t n = host->s_len;
	struct str port;

	while (n > 0 && chars_is(host->s_ptr[n - 1], CHAR_DIGIT))
		n--;
	if (n == 0 || host->s_ptr[n - 1] != ':')
		return otherwise;
	port = (struct str){host->s_ptr + n, host->s_len - n};
	host->s_len = n - 1;
	while (port.s_len > 1 && *port.s_ptr == '0')
		str_advance(&port, 1);
	return port.s_len > 0 ? port : otherwise;
}

static struct str
head_without_dot(struct str host)
{
	if (host.s_len > 1 && host.s_ptr[host.s_len - 1] == '.')
		host.s_len--;
	return host;
}

bool
head_hosts_equal(struct str a, struct str b, bool https)
{
	struct str otherwise = https ? STR("443") : STR("80");
	struct str port = head_take_port(&a, otherwise);

	if (!str_eq(port, head_take_port(&b, otherwise)))
		return false;
	return str_caseeq(head_without_dot(a), head_without_dot(b));
}
