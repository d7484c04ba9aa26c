/*
 * summary: the list of addresses, sites and locations that -t prints.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/conf/conf_priv.h"

/*
 * Maximum bytes of output, so that the output fits into a pipe.  A master that tests a program
 * before an upgrade reads only the first line.
 */
#define LIMIT 32768

struct summary {
	int sm_bytes; /* bytes written */
	bool sm_full;
	bool sm_within; /* true if the output ends within a line */
};

static void conf_summary_say(struct summary *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void
conf_summary_say(struct summary *sm, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (len >= (int)sizeof(line)) {
		len = (int)sizeof(line) - 1;
		memcpy(line + sizeof(line) - 5, "...\n", 5);
	}
	sm->sm_full = sm->sm_full || sm->sm_bytes + len > LIMIT;
	if (sm->sm_full)
		return;
	fputs(line, stdout);
	sm->sm_bytes += len;
	sm->sm_within = len > 0 && line[len - 1] != '\n';
}

static void
conf_summary_say_addresses(struct summary *sm, const struct conf *conf)
{
	if (conf->conf_listen_default) {
		conf_summary_say(sm,
		    "listens on *:8080, or on the sockets of a service "
		    "manager\n");
		return;
	}
	for (size_t i = 0; i < conf->conf_nlisten; i++) {
		const struct listen_addr *la = &conf->conf_listen[i];

		conf_summary_say(sm, "listens on %s%s%s%s\n",
		    la->la_addr.ss_family == AF_UNIX ? "unix:" : "",
		    la->la_text, la->la_tls ? " tls" : "",
		    la->la_proxy ? " proxy" : "");
	}
}

static void
conf_summary_say_tier(struct summary *sm, const struct conf *conf)
{
	uint64_t writes = conf->conf_tier_writes == TIER_WRITES_AUTO
			      ? conf->conf_tier_size
			      : conf->conf_tier_writes;

	if (conf->conf_tier == NULL)
		return;
	conf_summary_say(sm, "tier %s, %llu MiB, ", conf->conf_tier,
	    (unsigned long long)(conf->conf_tier_size >> 20));
	if (writes == 0)
		conf_summary_say(sm, "writes without a limit\n");
	else
		conf_summary_say(sm, "writes at most %llu MiB a day\n",
		    (unsigned long long)(writes >> 20));
}

/* Writes notes on the settings, such as " (listing, password)", or "".  Returns `text`. */
static const char *
conf_summary_notes(const struct settings *set, char *text, size_t size)
{
	const struct {
		bool nt_holds;
		const char *nt_text;
	} table[] = {
	    {set->set_autoindex, "listing"},
	    {set->set_htpasswd != NULL, "password"},
	    {set->set_link_keys != NULL, "signed links"},
	    {set->set_allow.cl_set || set->set_deny.cl_count > 0, "addresses"},
	    {set->set_redirect_https, "https only"},
	};
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].nt_holds)
			len += (size_t)snprintf(text + len, size - len, "%s%s",
			    len == 0 ? " (" : ", ", table[i].nt_text);
	if (len > 0)
		snprintf(text + len, size - len, ")");
	return text;
}

/*
 * Writes a prefix or exact path with the directory or file that it maps to, or a glob with its
 * root.
 */
static void
conf_summary_say_location(
    struct summary *sm, const struct conf *conf, const struct location *loc)
{
	const struct settings *set = &loc->loc_set;
	const char *root = conf->conf_roots[set->set_root];
	const char *rest = loc->loc_kind == LOCATION_GLOB
			       ? "/"
			       : loc->loc_path + set->set_strip;
	int len = (int)strlen(root);
	char text[96];

	if (len > 0 && root[len - 1] == '/')
		len--;
	conf_summary_say(sm, "    %s%s -> %.*s%s%s\n",
	    loc->loc_kind == LOCATION_EXACT ? "= " : "", loc->loc_path, len,
	    root, rest, conf_summary_notes(set, text, sizeof(text)));
}

static void
conf_summary_say_site(
    struct summary *sm, const struct conf *conf, const struct site *site)
{
	static char slash[] = "/";
	struct location rest = {.loc_kind = LOCATION_PREFIX, .loc_path = slash};
	char **name = site->site_names;
	bool covered = false;

	conf_summary_say(sm, "site \"%s\":", site->site_name);
	for (; name != NULL && *name != NULL; name++)
		conf_summary_say(sm, " %s", *name);
	conf_summary_say(
	    sm, "%s\n", site == conf->conf_sites ? " (every other name)" : "");
	for (size_t i = 0; i < site->site_nlocations; i++) {
		const struct location *loc = &site->site_locations[i];

		covered = covered || (loc->loc_kind == LOCATION_PREFIX &&
					 strcmp(loc->loc_path, "/") == 0);
		conf_summary_say_location(sm, conf, loc);
	}
	rest.loc_set = site->site_set;
	if (!covered)
		conf_summary_say_location(sm, conf, &rest);
}

void
conf_summary(const struct conf *conf)
{
	struct summary sm = {0};

	conf_summary_say_addresses(&sm, conf);
	conf_summary_say_tier(&sm, conf);
	for (size_t i = 0; i < conf->conf_nadmin; i++)
		conf_summary_say(
		    &sm, "metrics on %s\n", conf->conf_admin[i].la_text);
	if (conf->conf_agent.la_text != NULL)
		conf_summary_say(
		    &sm, "agent-check on %s\n", conf->conf_agent.la_text);
	for (size_t i = 0; i < conf->conf_nsites; i++)
		conf_summary_say_site(&sm, conf, &conf->conf_sites[i]);
	if (sm.sm_within)
		putchar('\n');
	if (sm.sm_full)
		puts("... and more: -T prints the whole configuration");
}
