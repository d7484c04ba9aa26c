/*
 * value: parses single values, and writes the range of a key as text.  Defaults are in key.c.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/conf/conf_priv.h"

#define K ((uint64_t)1024)
#define M (K * K)
#define G (K * K * K)

int
conf_why(struct conf_why *why, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why->why_text, sizeof(why->why_text), fmt, ap);
	va_end(ap);
	return error;
}

int
conf_no_memory(struct conf_why *why)
{
	return conf_why(why, -ENOMEM, "%s", strerror(ENOMEM));
}

/* Parses decimal digits, without sign or space, and advances *text past them. */
static int
conf_value_digits(const char **text, uint64_t *out)
{
	const char *p = *text;
	uint64_t value = 0;
	bool fits = true;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++) {
		unsigned digit = (unsigned)(*p - '0');

		if (value > (UINT64_MAX - digit) / 10)
			fits = false;
		value = value * 10 + digit;
	}
	*text = p;
	*out = value;
	return fits ? 0 : -ERANGE;
}

int
conf_number(const char *text, uint64_t *out)
{
	int error = conf_value_digits(&text, out);

	return *text != '\0' ? -EINVAL : error;
}

int
conf_size(const char *text, uint64_t *out)
{
	static const char suffixes[] = "KMG";
	const char *suffix;
	unsigned shift = 0;
	int error;

	error = conf_value_digits(&text, out);
	if (error == -EINVAL)
		return error;
	if (*text != '\0') {
		suffix = strchr(suffixes, toupper((unsigned char)*text));
		if (suffix == NULL || text[1] != '\0')
			return -EINVAL;
		shift = 10 * (unsigned)(suffix - suffixes + 1);
	}
	if (error != 0 || *out > UINT64_MAX >> shift)
		return -ERANGE;
	*out <<= shift;
	return 0;
}

int
conf_time(const char *text, uint64_t *seconds)
{
	static const struct {
		char unit;
		unsigned seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400},
	    {'w', 604800}, {'y', 31536000}};
	unsigned factor = 0;
	int error = conf_value_digits(&text, seconds);

	if (error == -EINVAL)
		return error;
	if (*text == '\0')
		factor = 1;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (units[i].unit == *text && text[1] == '\0')
			factor = units[i].seconds;
	if (factor == 0)
		return -EINVAL;
	if (error != 0 || *seconds > INT32_MAX / factor)
		return -ERANGE;
	*seconds *= factor;
	return 0;
}

/* Writes a size in the syntax of conf_size. */
static void
conf_value_size_text(uint64_t value, char *buf, size_t size)
{
	if (value >= G && value % G == 0)
		snprintf(buf, size, "%lluG", (unsigned long long)(value / G));
	else if (value >= M && value % M == 0)
		snprintf(buf, size, "%lluM", (unsigned long long)(value / M));
	else if (value >= K && value % K == 0)
		snprintf(buf, size, "%lluK", (unsigned long long)(value / K));
	else
		snprintf(buf, size, "%llu", (unsigned long long)value);
}

void
conf_range_text(const struct key *key, char *buf, size_t size)
{
	char lo[24], hi[24];

	buf[0] = '\0';
	if (key->key_parse == conf_size) {
		conf_value_size_text(key->key_min, lo, sizeof(lo));
		conf_value_size_text(key->key_max, hi, sizeof(hi));
	} else {
		snprintf(
		    lo, sizeof(lo), "%llu", (unsigned long long)key->key_min);
		snprintf(
		    hi, sizeof(hi), "%llu", (unsigned long long)key->key_max);
	}
	if (key->key_parse != NULL)
		snprintf(buf, size, "%s to %s", lo, hi);
}

int
conf_bool(const char *text, bool *out)
{
	static const char *const words[] = {
	    "false", "true", "off", "on", "no", "yes"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i]) == 0) {
			*out = i % 2 == 1;
			return 0;
		}
	return -EINVAL;
}

int
conf_cache(const char *text, enum pw_cache *out)
{
	if (strcmp(text, "keep") == 0)
		*out = PW_CACHE_KEEP;
	else if (strcmp(text, "drop") == 0)
		*out = PW_CACHE_DROP;
	else if (strcmp(text, "auto") == 0)
		*out = PW_CACHE_AUTO;
	else
		return -EINVAL;
	return 0;
}

static bool
conf_value_have_ipv6(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd == -1)
		return false;
	close(fd);
	return true;
}

static void
conf_value_address_in6(
    struct listen_addr *la, const struct in6_addr *addr, in_port_t port)
{
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6};

	sin6.sin6_addr = *addr;
	sin6.sin6_port = htons(port);
	memcpy(&la->la_addr, &sin6, sizeof(sin6));
	la->la_len = sizeof(sin6);
}

static void
conf_value_address_in(
    struct listen_addr *la, struct in_addr addr, in_port_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};

	sin.sin_addr = addr;
	sin.sin_port = htons(port);
	memcpy(&la->la_addr, &sin, sizeof(sin));
	la->la_len = sizeof(sin);
}

/* Parses the host of an address: "", "*", an IPv4 address, or an IPv6 address in brackets. */
static int
conf_value_address_host(
    char *host, in_port_t port, struct listen_addr *la, struct conf_why *why)
{
	size_t len = strlen(host);
	struct in_addr in = {.s_addr = htonl(INADDR_ANY)};
	struct in6_addr in6 = in6addr_any;

	if (len == 0 || strcmp(host, "*") == 0) {
		if (conf_value_have_ipv6())
			conf_value_address_in6(la, &in6, port);
		else
			conf_value_address_in(la, in, port);
		return 0;
	}
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		if (inet_pton(AF_INET6, host + 1, &in6) != 1)
			return conf_why(
			    why, -EINVAL, "%s] is not an IPv6 address", host);
		conf_value_address_in6(la, &in6, port);
		return 0;
	}
	if (inet_pton(AF_INET, host, &in) != 1)
		return conf_why(why, -EINVAL,
		    "%s is not a numeric address (127.0.0.1, [::1] or *)",
		    host);
	conf_value_address_in(la, in, port);
	return 0;
}

/*
 * Returns true if `text` has no port.  A number alone is a port; the last colon may belong to an
 * IPv6 address.
 */
static bool
conf_value_without_port(const char *text)
{
	const char *colon = strrchr(text, ':');

	if (colon == NULL)
		return text[strspn(text, "0123456789")] != '\0' ||
		       text[0] == '\0';
	return strchr(colon, ']') != NULL;
}

static int
conf_value_has_no_port(const char *text, struct conf_why *why)
{
	struct in_addr in;
	bool usable = (text[0] == '[' && text[strlen(text) - 1] == ']') ||
		      strcmp(text, "*") == 0 ||
		      inet_pton(AF_INET, text, &in) == 1;

	return conf_why(why, -EINVAL,
	    "%s: write ADDR:PORT, for example %s:8080",
	    text[0] == '\0' ? "the address is empty" : "the port is missing",
	    usable ? text : "127.0.0.1");
}

int
conf_address(const char *text, struct listen_addr *la, struct conf_why *why)
{
	char host[INET6_ADDRSTRLEN + 2];
	const char *colon = strrchr(text, ':');
	const char *port_text = colon != NULL ? colon + 1 : text;
	size_t len = colon != NULL ? (size_t)(colon - text) : 0;
	uint64_t port;

	if (conf_value_without_port(text))
		return conf_value_has_no_port(text, why);
	if (strchr(text, ':') != colon && text[0] != '[')
		return conf_why(
		    why, -EINVAL, "an IPv6 address needs brackets: [::1]:8080");
	if (len >= sizeof(host))
		return conf_why(why, -EINVAL,
		    "%s is not an address: write ADDR:PORT, for example "
		    "127.0.0.1:8080",
		    text);
	memcpy(host, text, len);
	host[len] = '\0';
	if (conf_number(port_text, &port) != 0 || port > 65535)
		return conf_why(why, -EINVAL,
		    "%s: \"%s\" is not a port (0 to 65535)", text, port_text);
	memset(la, 0, sizeof(*la));
	return conf_value_address_host(host, (in_port_t)port, la, why);
}

unsigned
conf_cpus(void)
{
	cpu_set_t set;
	long n;

	/* sched_getaffinity fails if the host has more CPUs than the set has bits. */
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = CPU_COUNT(&set);
	else
		n = sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : (unsigned)n;
}

char *
conf_path(const char *dir, const char *path)
{
	char *joined;

	if (dir == NULL || path[0] == '/')
		return strdup(path);
	if (asprintf(&joined, "%s/%s", dir, path) == -1)
		return NULL;
	return joined;
}

int
conf_path_or_off(const struct conf_scope *scope, const char *text, char **path,
    struct conf_why *why)
{
	*path = NULL;
	if (strcmp(text, "off") == 0)
		return 0;
	if (text[0] == '\0')
		return conf_why(
		    why, -EINVAL, "the path is empty (write \"off\" for none)");
	*path = conf_path(scope->cs_dir, text);
	return *path != NULL ? 0 : conf_no_memory(why);
}

void
conf_strv_free(char ***v)
{
	for (size_t i = 0; *v != NULL && (*v)[i] != NULL; i++)
		free((*v)[i]);
	free(*v);
	*v = NULL;
}
