/*
 * sign: see sign.h.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/conf/sign.h"
#include "server/http/chars.h"
#include "server/http/signed_link.h"
#include "server/http/target.h"

#define EXPIRES "1h"

struct signing {
	const char *sg_client; /* address or block; NULL for any client */
	uint64_t sg_expires;   /* seconds since the epoch */
	struct link_keys *sg_keys;
	struct hmac *sg_hmac;
};

static int
conf_sign_usage(FILE *out)
{
	fputs("usage: pagewise sign --key FILE [--expires TIME] [--client "
	      "ADDRESS] URL ...\n"
	      "  --key FILE        key file, as for signed_links; the first "
	      "key signs\n"
	      "  --expires TIME    lifetime, such as 30s, 10m, 12h or 30d, or "
	      "@SECONDS since 1970; default: 1h\n"
	      "  --client ADDRESS  valid only for this address or block, such "
	      "as 192.0.2.0/24\n"
	      "  URL               https://example.org/a.mp4, or only its "
	      "path\n",
	    out);
	return out == stdout ? 0 : 2;
}

static int
conf_sign_fail(const char *what, const char *cause)
{
	fprintf(stderr, "pagewise: sign: %s: %s\n", what, cause);
	return 1;
}

static int
conf_sign_fail_client(const char *text)
{
	fprintf(stderr,
	    "pagewise: sign: \"%s\" %s: write an address (192.0.2.7) or a "
	    "block (192.0.2.0/24, 2001:db8::/32)\n",
	    text, cidr_cause(text));
	return 1;
}

static bool
conf_sign_parse_expires(const char *text, uint64_t *expires)
{
	uint64_t seconds;

	if (text[0] == '@')
		return conf_number(text + 1, expires) == 0 && *expires > 0 &&
		       *expires < UINT64_C(100000000000);
	if (conf_time(text, &seconds) != 0 || seconds == 0)
		return false;
	*expires = (uint64_t)time(NULL) + seconds;
	return true;
}

/* Parses the options.  Returns an exit status, or -1 to continue. */
static int
conf_sign_parse_options(int argc, char **argv, struct signing *sg)
{
	static const struct option options[] = {
	    {"key", required_argument, NULL, 'k'},
	    {"expires", required_argument, NULL, 'e'},
	    {"client", required_argument, NULL, 'c'},
	    {"help", no_argument, NULL, 'h'}, {0}};
	const char *expires = EXPIRES, *key = NULL;
	struct conf_why why;
	struct cidr cd;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'k':
			key = optarg;
			break;
		case 'e':
			expires = optarg;
			break;
		case 'c':
			sg->sg_client = optarg;
			break;
		case 'h':
			return conf_sign_usage(stdout);
		default:
			return conf_sign_usage(stderr);
		}
	}
	if (key == NULL || optind == argc)
		return conf_sign_usage(stderr);
	if (!conf_sign_parse_expires(expires, &sg->sg_expires))
		return conf_sign_fail(
		    expires, "invalid time: write 10m, 12h, 30d or @SECONDS");
	if (sg->sg_client != NULL &&
	    (!cidr_parse(sg->sg_client, &cd) ||
		strlen(sg->sg_client) >= SIGNED_LINK_CLIENT))
		return conf_sign_fail_client(sg->sg_client);
	sg->sg_keys = link_keys_load(key, why.why_text, sizeof(why.why_text));
	if (sg->sg_keys == NULL)
		return conf_sign_fail("key", why.why_text);
	return -1;
}

/*
 * Percent-encodes a URL as a browser would: keeps "%20", and encodes a space.  The caller frees the
 * result.  Returns NULL if memory is short.
 */
static char *
conf_sign_escaped(const char *url, size_t len)
{
	static const char hex[] = "0123456789ABCDEF";
	char *copy = malloc(3 * len + 1), *p = copy;

	if (copy == NULL)
		return NULL;
	for (; len > 0; url++, len--) {
		if (chars_is(*url, CHAR_VISIBLE) &&
		    strchr("\"<>\\^`{|}", *url) == NULL)
			*p++ = *url;
		else {
			*p++ = '%';
			*p++ = hex[(unsigned char)*url >> 4];
			*p++ = hex[(unsigned char)*url & 15];
		}
	}
	*p = '\0';
	return copy;
}

/* Returns the length of the part before the path, such as "https://example.org". */
static size_t
conf_sign_origin_length(const char *url)
{
	const char *host = strstr(url, "://");

	if (url[0] == '/' || host == NULL)
		return 0;
	return (size_t)(host - url) + 3 + strcspn(host + 3, "/?#");
}

static bool
conf_sign_print(
    const struct signing *sg, const char *url, size_t origin, struct str path)
{
	char signature[SIGNED_LINK_SIGNATURE], seconds[24];
	struct link_query lq = {.lq_expires = {seconds, 0}};
	size_t query = strcspn(url, "#");

	lq.lq_expires.s_len = (size_t)snprintf(seconds, sizeof(seconds), "%llu",
	    (unsigned long long)sg->sg_expires);
	if (sg->sg_client != NULL)
		snprintf(
		    lq.lq_client, sizeof(lq.lq_client), "%s", sg->sg_client);
	if (!link_sign(
		sg->sg_hmac, &sg->sg_keys->lks_list[0], &lq, path, signature))
		return false;
	printf("%.*s%s%cexpires=%s%s%s&signature=%.*s%s\n", (int)query, url,
	    url[origin] == '\0' ? "/" : "",
	    memchr(url, '?', query) != NULL ? '&' : '?', seconds,
	    sg->sg_client != NULL ? "&client=" : "",
	    sg->sg_client != NULL ? sg->sg_client : "", (int)sizeof(signature),
	    signature, url + query);
	return true;
}

static int
sign_url(const struct signing *sg, const char *text)
{
	size_t origin, len = strlen(text);
	char *url = conf_sign_escaped(text, len), *buf = malloc(3 * len + 4);
	const char *cause = NULL;
	struct target tgt;
	struct str raw;

	if (url == NULL || buf == NULL) {
		cause = strerror(ENOMEM);
		goto done;
	}
	origin = conf_sign_origin_length(url);
	raw = (struct str){url + origin, strcspn(url + origin, "#")};
	if (raw.s_len == 0)
		raw = STR("/");
	if (raw.s_ptr[0] != '/' ||
	    target_parse(raw, buf, raw.s_len + 2, &tgt) != 0)
		cause = "invalid URL: write https://HOST/PATH, or a path that "
			"begins with '/'";
	else if (link_query_has(tgt.tgt_query))
		cause =
		    "the query already has the parameter expires, client or "
		    "signature: remove these parameters, as a link can be "
		    "signed only once";
	else if (!conf_sign_print(sg, url, origin, tgt.tgt_path))
		cause =
		    "libcrypto cannot compute the signature: memory is short, "
		    "or HMAC-SHA-256 is not available";
done:
	free(url);
	free(buf);
	return cause == NULL ? 0 : conf_sign_fail(text, cause);
}

int
sign(int argc, char **argv)
{
	struct signing sg = {0};
	int status = conf_sign_parse_options(argc, argv, &sg);

	if (status != -1)
		return status;
	sg.sg_hmac = hmac_create();
	status = sg.sg_hmac != NULL
		     ? 0
		     : conf_sign_fail("libcrypto",
			   "cannot create an HMAC-SHA-256: memory is short, or "
			   "this library lacks the algorithm");
	for (; optind < argc && status == 0; optind++)
		status = sign_url(&sg, argv[optind]);
	hmac_destroy(&sg.sg_hmac);
	link_keys_free(sg.sg_keys);
	return status;
}
