/*
 * proxies: the trusted proxies in front of this server, and the field that names their clients.
 */
#include <errno.h>
#include <strings.h>

#include "server/conf/conf_priv.h"

int
conf_set_trusted_proxies(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	(void)key;
	return conf_set_block(scope, &scope->cs_conf->conf_trusted, text, why);
}

void
conf_clear_trusted_proxies(struct conf_scope *scope)
{
	scope->cs_conf->conf_trusted = (struct cidr_list){0};
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
	for (size_t i = 0;
	     conf->conf_trusted.cl_count == 0 && i < conf->conf_nlisten; i++)
		if (conf->conf_listen[i].la_proxy)
			return conf_why(why, -EINVAL,
			    "%s expects PROXY headers, but no proxy is "
			    "trusted: set trusted_proxies to the addresses of "
			    "your proxies",
			    conf->conf_listen[i].la_text);
	return 0;
}

int
conf_check_proxies(const struct conf *conf, struct conf_why *why)
{
	if (conf->conf_client_address == FORWARDED_OFF ||
	    conf->conf_trusted.cl_count > 0)
		return 0;
	return conf_why(why, -EINVAL,
	    "no proxy is trusted to send client addresses: set "
	    "trusted_proxies to the addresses of your proxies");
}
