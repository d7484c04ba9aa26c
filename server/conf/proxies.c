/*
 * proxies: those in front of this server, and how they say who their clients are.
 */
#include <errno.h>
#include <string.h>

#include "server/conf/conf_priv.h"

/* The array has room for a power of two. */
static bool
reserve(struct conf *conf)
{
	size_t n = conf->conf_ntrusted;
	struct cidr *grown;

	if ((n & (n - 1)) != 0)
		return true;
	grown = conf_keep(conf, (n == 0 ? 1 : 2 * n) * sizeof(*grown));
	if (grown == NULL)
		return false;
	if (n > 0)
		memcpy(grown, conf->conf_trusted, n * sizeof(*grown));
	conf->conf_trusted = grown;
	return true;
}

int
conf_set_trusted_proxies(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct conf *conf = scope->cs_conf;
	struct cidr block;

	(void)key;
	if (!cidr_parse(text, &block))
		return conf_why(why, -EINVAL,
		    "\"%s\" is not an address or a block of them: write "
		    "192.0.2.7, 10.0.0.0/8, 2001:db8::/32 or unix:",
		    text);
	if (!reserve(conf))
		return conf_why(why, -ENOMEM, "%s", strerror(ENOMEM));
	conf->conf_trusted[conf->conf_ntrusted++] = block;
	return 0;
}

void
conf_clear_trusted_proxies(struct conf_scope *scope)
{
	scope->cs_conf->conf_ntrusted = 0;
}

int
conf_set_client_address(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	static const char *const names[] = {
	    [FORWARDED_OFF] = "off",
	    [FORWARDED_X] = "x-forwarded-for",
	    [FORWARDED_RFC7239] = "forwarded",
	};

	(void)key;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcasecmp(text, names[i]) == 0) {
			scope->cs_conf->conf_client_address = (enum forwarded)i;
			return 0;
		}
	return conf_why(why, -EINVAL,
	    "\"%s\" is not x-forwarded-for, forwarded or off", text);
}

int
conf_check_listen(const struct conf *conf, struct conf_why *why)
{
	for (size_t i = 0; conf->conf_ntrusted == 0 && i < conf->conf_nlisten;
	     i++)
		if (conf->conf_listen[i].la_proxy)
			return conf_why(why, -EINVAL,
			    "%s: nobody's PROXY header is believed: set "
			    "trusted_proxies to the addresses of your proxies",
			    conf->conf_listen[i].la_text);
	return 0;
}

int
conf_check_proxies(const struct conf *conf, struct conf_why *why)
{
	if (conf->conf_client_address == FORWARDED_OFF ||
	    conf->conf_ntrusted > 0)
		return 0;
	return conf_why(why, -EINVAL,
	    "nobody's word is taken: set trusted_proxies to the addresses of "
	    "your proxies");
}
