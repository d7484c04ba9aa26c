/*
 * rate: rate limits, in bytes/s and in requests.
 */
#include <errno.h>
#include <string.h>

#include "server/conf/conf_priv.h"

#define LEAST	      ((uint64_t)1024) /* minimum rate, bytes/s */
#define REQUESTS_MOST UINT64_C(1000000)

static int
conf_rate_set_bytes(const struct key *key, const char *text,
    struct token_rate *tr, struct conf_why *why)
{
	uint64_t value;
	int error = conf_in_range(key, text, "", &value, why);

	if (error != 0)
		return error;
	if (value > 0 && value < LEAST)
		return conf_why(why, -ERANGE,
		    "%s is less than 1K bytes/s: write at least 1K, or 0 for "
		    "no limit",
		    text);
	tr->tr_rate = value;
	return 0;
}

int
conf_set_rate(struct conf_scope *scope, const struct key *key, const char *text,
    struct conf_why *why)
{
	return conf_rate_set_bytes(key, text, &scope->cs_set->set_rate, why);
}

int
conf_set_client_rate(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct settings *set = scope->cs_set;
	int error = conf_rate_set_bytes(key, text, &set->set_client_rate, why);

	if (error != 0)
		return error;
	/* All sections that inherit this value share one rule. */
	set->set_client_rule = conf_keep(scope->cs_conf, 1);
	return set->set_client_rule != NULL ? 0 : conf_no_memory(why);
}

/*
 * Parses a rate such as "10/s".  Sets *rate in units per second; a request is RATE_REQUEST units.
 */
static int
conf_rate_frequency(const char *text, uint64_t *rate)
{
	char number[24];
	const char *slash = strchr(text, '/');
	uint64_t n;

	if (slash == NULL || slash[1] == '\0' || slash[2] != '\0' ||
	    (size_t)(slash - text) >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, (size_t)(slash - text));
	number[slash - text] = '\0';
	if (conf_number(number, &n) != 0 || n < 1 || n > REQUESTS_MOST)
		return -EINVAL;
	*rate = slash[1] == 's'	  ? n * RATE_REQUEST
		: slash[1] == 'm' ? n * (RATE_REQUEST / 60)
		: slash[1] == 'h' ? n * (RATE_REQUEST / 3600)
				  : 0;
	return *rate > 0 ? 0 : -EINVAL;
}

/* Returns the title of a location, "" if there is no location, or NULL if memory is short. */
static const char *
conf_rate_title_of(struct conf *conf, const struct location *loc)
{
	static const char exact[] = "= ";
	char *text;

	if (loc == NULL)
		return "";
	if (loc->loc_kind != LOCATION_EXACT)
		return loc->loc_path;
	text = conf_keep(conf, sizeof(exact) + loc->loc_len);
	if (text != NULL)
		stpcpy(stpcpy(text, exact), loc->loc_path);
	return text;
}

/* Finds or creates the request rule of a section.  Returns NULL if memory is short. */
static struct request_rule *
conf_rate_request_rule(const struct conf_scope *scope)
{
	const struct location *loc = scope->cs_location;
	const char *site =
	    scope->cs_site != NULL ? scope->cs_site->site_name : "";
	const char *place = loc != NULL ? loc->loc_path : site;
	struct conf *conf = scope->cs_conf;
	struct request_rule *rr = conf->conf_request_rules;

	/* At the top level, an included file may have set the key before. */
	while (rr != NULL && rr->rr_place != place)
		rr = rr->rr_next;
	if (rr != NULL)
		return rr;
	rr = conf_keep(conf, sizeof(*rr));
	if (rr == NULL)
		return NULL;
	rr->rr_place = place;
	rr->rr_site = site;
	rr->rr_location = conf_rate_title_of(conf, loc);
	rr->rr_next = conf->conf_request_rules;
	conf->conf_request_rules = rr;
	return rr->rr_location != NULL ? rr : NULL;
}

int
conf_set_request_rate(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct settings *set = scope->cs_set;

	(void)key;
	set->set_request_rate.tr_rate = 0;
	if (strcmp(text, "off") == 0)
		return 0;
	if (conf_rate_frequency(text, &set->set_request_rate.tr_rate) != 0)
		return conf_why(why, -EINVAL,
		    "\"%s\" is not a rate: write for example 10/s, 30/m or "
		    "1000/h (at most 1000000), or off",
		    text);
	set->set_request_rule = conf_rate_request_rule(scope);
	return set->set_request_rule != NULL ? 0 : conf_no_memory(why);
}

static void
conf_rate_complete(struct token_rate *tr, uint64_t burst)
{
	tr->tr_depth = burst + token_share(tr->tr_rate);
}

void
conf_complete_rates(struct conf *conf, struct settings *set)
{
	conf_rate_complete(&set->set_rate, set->set_burst);
	conf_rate_complete(&set->set_client_rate, set->set_burst);
	set->set_request_rate.tr_depth = set->set_request_burst * RATE_REQUEST;
	if (set->set_client_rate.tr_rate > 0 ||
	    set->set_request_rate.tr_rate > 0)
		conf->conf_rates = true;
}
