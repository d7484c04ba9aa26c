/*
 * listen: the addresses of the keys listen, admin and agent.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "server/conf/conf_priv.h"

/* mode of Unix sockets of listen: open to all users, as a TCP port is */
#define LISTEN_MODE 0666
#define ADMIN_MODE  0660

static bool
conf_listen_is_listed(
    const struct listen_addr *list, size_t n, const struct listen_addr *la)
{
	static const in_port_t any;

	/*
	 * sin6_port has the same offset as sin_port.  Port 0 never conflicts, as each bind gets
	 * another port.
	 */
	if (memcmp((const char *)&la->la_addr +
		       offsetof(struct sockaddr_in, sin_port),
		&any, sizeof(any)) == 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (list[i].la_len == la->la_len &&
		    memcmp(&list[i].la_addr, &la->la_addr, la->la_len) == 0)
			return true;
	return false;
}

/* Parses the path of a Unix socket.  The caller owns la_text. */
static int
conf_listen_unix_address(const struct conf_scope *scope, const char *text,
    mode_t mode, struct listen_addr *la, struct conf_why *why)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	memset(la, 0, sizeof(*la));
	if (text[0] == '\0')
		return conf_why(why, -EINVAL,
		    "the path is empty: write unix:/run/pagewise/http.sock");
	/* A file has a mode, and a directory whose mode protects its name.  An abstract name has neither. */
	if (text[0] == '@')
		return conf_why(why, -EINVAL,
		    "abstract sockets are not supported: write the path of a "
		    "file, such as unix:/run/pagewise/http.sock, or ./%s for a "
		    "file of this name",
		    text);
	la->la_text = conf_path(scope->cs_dir, text);
	if (la->la_text == NULL)
		return conf_no_memory(why);
	if (strlen(la->la_text) >= sizeof(un.sun_path)) {
		conf_why(why, -EINVAL,
		    "%s is too long for a socket path (at most %zu bytes)",
		    la->la_text, sizeof(un.sun_path) - 1);
		free(la->la_text);
		la->la_text = NULL;
		return -EINVAL;
	}
	memcpy(un.sun_path, la->la_text, strlen(la->la_text) + 1);
	memcpy(&la->la_addr, &un, sizeof(un));
	la->la_len = sizeof(un);
	la->la_mode = mode;
	return 0;
}

/* Parses an address of the key listen.  The caller owns la_text. */
static int
listen_address(const struct conf_scope *scope, const char *text,
    struct listen_addr *la, struct conf_why *why)
{
	int error;

	if (strncmp(text, "unix:", 5) == 0)
		return conf_listen_unix_address(
		    scope, text + 5, LISTEN_MODE, la, why);
	if (strchr(text, '/') != NULL)
		return conf_why(why, -EINVAL,
		    "%s is not an address: for a Unix socket write unix:%s",
		    text, text);
	error = conf_address(text, la, why);
	if (error != 0)
		return error;
	la->la_text = strdup(text);
	return la->la_text != NULL ? 0 : conf_no_memory(why);
}

static int
listen_mode(struct listen_addr *la, const char *text, struct conf_why *why)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	if (la->la_addr.ss_family != AF_UNIX)
		return conf_why(why, -EINVAL,
		    "mode=%s is only for Unix sockets: remove it from %s", text,
		    la->la_text);
	if (text[0] < '0' || text[0] > '7' || *end != '\0' || mode > 0777)
		return conf_why(why, -EINVAL,
		    "mode=%s is not a mode: write octal digits, as in "
		    "mode=0660",
		    text);
	la->la_mode = (mode_t)mode;
	return 0;
}

/* Parses the options after the address. */
static int
listen_options(struct listen_addr *la, char *words, struct conf_why *why)
{
	const char *word;
	int error = 0;

	while (error == 0 && (word = strsep(&words, " \t")) != NULL) {
		if (strcmp(word, "proxy") == 0)
			la->la_proxy = true;
		else if (strcmp(word, "tls") == 0)
			la->la_tls = true;
		else if (strncmp(word, "mode=", 5) == 0)
			error = listen_mode(la, word + 5, why);
		else if (word[0] != '\0')
			error = conf_why(why, -EINVAL,
			    "\"%s\" is not an option of an address: write "
			    "tls, proxy or mode=0660",
			    word);
	}
	return error;
}

/* Adds an address.  Takes ownership of la_text, and frees it on failure. */
static int
conf_listen_add_address(struct listen_addr **list, size_t *n,
    const struct listen_addr *la, struct conf_why *why)
{
	struct listen_addr *grown;
	int error;

	/* The kernel would not refuse duplicates, as SO_REUSEPORT lets both binds succeed. */
	if (conf_listen_is_listed(*list, *n, la)) {
		error =
		    conf_why(why, -EEXIST, "%s is listed twice", la->la_text);
		free(la->la_text);
		return error;
	}
	grown = reallocarray(*list, *n + 1, sizeof(*grown));
	if (grown == NULL) {
		free(la->la_text);
		return conf_no_memory(why);
	}
	*list = grown;
	grown[(*n)++] = *la;
	return 0;
}

static void
conf_listen_free_addresses(struct listen_addr **list, size_t *n)
{
	while (*n > 0)
		free((*list)[--*n].la_text);
	free(*list);
	*list = NULL;
}

int
conf_set_listen(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct listen_addr la = {.la_text = NULL};
	char *copy = strdup(text), *rest = copy;
	int error;

	(void)key;
	if (copy == NULL)
		return conf_no_memory(why);
	error = listen_address(scope, strsep(&rest, " \t"), &la, why);
	if (error == 0)
		error = listen_options(&la, rest, why);
	if (error == 0)
		error = conf_listen_add_address(&scope->cs_conf->conf_listen,
		    &scope->cs_conf->conf_nlisten, &la, why);
	else
		free(la.la_text);
	free(copy);
	return error;
}

void
conf_free_listen(struct conf *conf)
{
	conf_listen_free_addresses(&conf->conf_listen, &conf->conf_nlisten);
}

void
conf_clear_listen(struct conf_scope *scope)
{
	conf_free_listen(scope->cs_conf);
}

static bool
conf_listen_is_loopback(const struct listen_addr *la)
{
	const struct sockaddr_in *in = (const void *)&la->la_addr;
	const struct sockaddr_in6 *in6 = (const void *)&la->la_addr;

	if (la->la_addr.ss_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static int
conf_listen_loopback_address(
    const char *text, struct listen_addr *la, struct conf_why *why)
{
	int error = conf_address(text, la, why);

	if (error != 0)
		return error;
	if (!conf_listen_is_loopback(la))
		return conf_why(why, -EINVAL,
		    "%s is reachable from outside: write 127.0.0.1:PORT, "
		    "[::1]:PORT, or a socket path",
		    text);
	la->la_text = strdup(text);
	return la->la_text != NULL ? 0 : conf_no_memory(why);
}

int
conf_set_admin(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct conf *conf = scope->cs_conf;
	struct listen_addr la = {.la_text = NULL};
	int error;

	(void)key;
	if (strcmp(text, "off") == 0) {
		conf_free_admin(conf);
		return 0;
	}
	if (text[0] == '\0')
		return conf_why(why, -EINVAL,
		    "the address is empty (write \"off\" for none)");
	error =
	    strchr(text, '/') != NULL
		? conf_listen_unix_address(scope, text, ADMIN_MODE, &la, why)
		: conf_listen_loopback_address(text, &la, why);
	return error != 0 ? error
			  : conf_listen_add_address(&conf->conf_admin,
				&conf->conf_nadmin, &la, why);
}

void
conf_clear_admin(struct conf_scope *scope)
{
	conf_free_admin(scope->cs_conf);
}

int
conf_set_agent(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct listen_addr la = {.la_text = NULL};
	int error;

	(void)key;
	conf_free_agent(scope->cs_conf);
	if (strcmp(text, "off") == 0)
		return 0;
	if (strchr(text, '/') != NULL || text[0] == '\0')
		return conf_why(why, -EINVAL,
		    "\"%s\" is not an address: write ADDR:PORT, as in "
		    "10.0.0.1:8082 (\"off\" for none)",
		    text);
	error = conf_address(text, &la, why);
	if (error != 0)
		return error;
	la.la_text = strdup(text);
	if (la.la_text == NULL)
		return conf_no_memory(why);
	scope->cs_conf->conf_agent = la;
	return 0;
}

/* Returns the address as IPv6; an IPv4 address becomes IPv4-mapped. */
static struct in6_addr
conf_listen_as_in6(const struct listen_addr *la)
{
	const struct sockaddr_in *in = (const void *)&la->la_addr;
	const struct sockaddr_in6 *in6 = (const void *)&la->la_addr;
	struct in6_addr mapped = {.s6_addr = {[10] = 0xff, 0xff}};

	if (la->la_addr.ss_family == AF_INET6)
		return in6->sin6_addr;
	memcpy(&mapped.s6_addr[12], &in->sin_addr, sizeof(in->sin_addr));
	return mapped;
}

/* Returns true if a socket at `la` also receives connections to `other`.  "[::]" includes IPv4. */
static bool
conf_listen_covers(
    const struct listen_addr *la, const struct listen_addr *other)
{
	const struct sockaddr_in *a = (const void *)&la->la_addr,
				 *b = (const void *)&other->la_addr;
	struct in6_addr one = conf_listen_as_in6(la),
			two = conf_listen_as_in6(other);

	if (la->la_addr.ss_family == AF_UNIX ||
	    other->la_addr.ss_family == AF_UNIX)
		return la->la_len == other->la_len &&
		       memcmp(&la->la_addr, &other->la_addr, la->la_len) == 0;
	/*
	 * sin6_port has the same offset as sin_port.  Port 0 never conflicts, as each bind gets
	 * another port.
	 */
	if (a->sin_port != b->sin_port || a->sin_port == 0)
		return false;
	if (la->la_addr.ss_family == AF_INET && a->sin_addr.s_addr == 0)
		return other->la_addr.ss_family == AF_INET;
	return IN6_IS_ADDR_UNSPECIFIED(&one) || IN6_ARE_ADDR_EQUAL(&one, &two);
}

/* Checks that no address of the list equals `la`, includes it, or is included by it. */
static int
conf_listen_check_free(const struct listen_addr *list, size_t n,
    const struct listen_addr *la, const char *whose, struct conf_why *why)
{
	for (size_t i = 0; i < n; i++)
		if (conf_listen_covers(&list[i], la) ||
		    conf_listen_covers(la, &list[i]))
			return conf_why(why, -EEXIST,
			    "%s is already used by %s = %s): choose another "
			    "address",
			    la->la_text, whose, list[i].la_text);
	return 0;
}

int
conf_check_admin(const struct conf *conf, struct conf_why *why)
{
	int error = 0;

	for (size_t i = 0; error == 0 && i < conf->conf_nadmin; i++)
		error = conf_listen_check_free(conf->conf_listen,
		    conf->conf_nlisten, &conf->conf_admin[i],
		    "the sites (listen", why);
	return error;
}

int
conf_check_agent(const struct conf *conf, struct conf_why *why)
{
	const struct listen_addr *la = &conf->conf_agent;
	int error;

	if (la->la_text == NULL)
		return 0;
	error = conf_listen_check_free(conf->conf_listen, conf->conf_nlisten,
	    la, "the sites (listen", why);
	return error != 0
		   ? error
		   : conf_listen_check_free(conf->conf_admin, conf->conf_nadmin,
			 la, "the metrics (admin", why);
}

void
conf_free_admin(struct conf *conf)
{
	conf_listen_free_addresses(&conf->conf_admin, &conf->conf_nadmin);
}

void
conf_free_agent(struct conf *conf)
{
	free(conf->conf_agent.la_text);
	conf->conf_agent.la_text = NULL;
}
