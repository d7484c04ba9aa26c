/*
 * error_page: bodies of error responses: "STATUS FILE" or "STATUS text: TEXT".  The files are read
 * once, with the configuration, so that an error response never waits for a device.  A device may
 * be the cause of the error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conf/conf_priv.h"
#include "server/util/text_file.h"

#define LARGEST	  ((size_t)256 << 10) /* maximum bytes of a page */
#define MAX_PAGES 64

/* Parses "404", or "4xx" for all statuses of the class that have no page of their own. */
static bool
conf_error_page_parse_statuses(
    const char *text, size_t len, struct error_page *ep)
{
	if (len != 3 || (text[0] != '4' && text[0] != '5'))
		return false;
	ep->ep_first = (text[0] - '0') * 100;
	ep->ep_last = ep->ep_first + 99;
	if (strncmp(text + 1, "xx", 2) == 0)
		return true;
	if (text[1] < '0' || text[1] > '9' || text[2] < '0' || text[2] > '9')
		return false;
	ep->ep_first += (text[1] - '0') * 10 + text[2] - '0';
	ep->ep_last = ep->ep_first;
	return true;
}

/* Reads the body from an open file.  Returns 0 or an errno value. */
static int
conf_error_page_read_all(struct conf *conf, struct error_page *ep, FILE *f)
{
	char *body = malloc(LARGEST + 1);
	size_t len;
	int error = ENOMEM;

	if (body == NULL)
		return error;
	len = fread(body, 1, LARGEST + 1, f);
	if (ferror(f))
		error = errno;
	else if (len > LARGEST)
		error = EFBIG;
	else {
		ep->ep_body =
		    (struct str){conf_keep_text(conf, body, len), len};
		error = ep->ep_body.s_ptr != NULL ? 0 : ENOMEM;
	}
	free(body);
	return error;
}

static int
conf_error_page_read(struct conf_scope *scope, struct error_page *ep,
    const char *name, struct conf_why *why)
{
	char *path = conf_path(scope->cs_dir, name);
	FILE *f;
	int error;

	if (path == NULL)
		return conf_no_memory(why);
	ep->ep_name = conf_keep_text(scope->cs_conf, path, strlen(path));
	free(path);
	if (ep->ep_name == NULL)
		return conf_no_memory(why);
	f = text_file_open(ep->ep_name);
	error =
	    f != NULL ? conf_error_page_read_all(scope->cs_conf, ep, f) : errno;
	if (f != NULL)
		fclose(f);
	if (error == EFBIG)
		return conf_why(why, -error,
		    "%s is larger than %zu bytes: "
		    "shorten it",
		    ep->ep_name, LARGEST);
	if (error != 0)
		return conf_why(
		    why, -error, "%s: %s", ep->ep_name, text_file_cause(error));
	return 0;
}

static int
conf_error_page_set_body(struct conf_scope *scope, struct error_page *ep,
    const char *text, struct conf_why *why)
{
	struct str given = {text, strlen(text)};

	if (!str_skip(&given, STR("text:")))
		return conf_error_page_read(scope, ep, text, why);
	given = str_trim(given);
	ep->ep_body = (struct str){
	    conf_keep_text(scope->cs_conf, given.s_ptr, given.s_len),
	    given.s_len};
	return ep->ep_body.s_ptr != NULL ? 0 : conf_no_memory(why);
}

static bool
conf_error_page_is_listed(
    const struct settings *set, const struct error_page *ep)
{
	for (unsigned i = 0; i < set->set_npages; i++)
		if (set->set_pages[i].ep_first == ep->ep_first &&
		    set->set_pages[i].ep_last == ep->ep_last)
			return true;
	return false;
}

int
conf_set_error_page(struct conf_scope *scope, const struct key *key,
    const char *text, struct conf_why *why)
{
	struct settings *set = scope->cs_set;
	size_t len = strcspn(text, " \t");
	const char *rest = text + len + strspn(text + len, " \t");
	struct error_page ep = {0};
	int error;

	(void)key;
	if (!conf_error_page_parse_statuses(text, len, &ep) || *rest == '\0')
		return conf_why(why, -EINVAL,
		    "\"%s\" is not an error page: write \"404 FILE\", "
		    "\"5xx FILE\" or \"404 text: TEXT\"",
		    text);
	if (conf_error_page_is_listed(set, &ep))
		return conf_why(
		    why, -EEXIST, "%.*s is listed twice", (int)len, text);
	if (set->set_npages == MAX_PAGES)
		return conf_why(why, -E2BIG,
		    "there are more than %d error pages: remove some",
		    MAX_PAGES);
	if (set->set_pages == NULL)
		set->set_pages = conf_keep(
		    scope->cs_conf, MAX_PAGES * sizeof(*set->set_pages));
	if (set->set_pages == NULL)
		return conf_no_memory(why);
	error = conf_error_page_set_body(scope, &ep, rest, why);
	if (error == 0 && ep.ep_body.s_len == 0)
		error = conf_why(why, -EINVAL,
		    "%s is empty: write a page, or "
		    "remove this rule",
		    ep.ep_name != NULL ? ep.ep_name : "the text");
	if (error == 0)
		set->set_pages[set->set_npages++] = ep;
	return error;
}

void
conf_clear_error_page(struct conf_scope *scope)
{
	scope->cs_set->set_pages = NULL;
	scope->cs_set->set_npages = 0;
}

static bool
conf_error_page_set_type(
    struct conf *conf, const struct settings *set, struct error_page *ep)
{
	static const char name[] = "Content-Type: ";
	char type[CONF_MEDIA_TYPE], line[sizeof(name) + sizeof(type) + 2];
	int len;

	conf_media_type(conf, set, ep->ep_name != NULL ? ep->ep_name : "x.txt",
	    type, sizeof(type));
	len = snprintf(line, sizeof(line), "%s%s\r\n", name, type);
	ep->ep_type =
	    (struct str){conf_keep_text(conf, line, (size_t)len), (size_t)len};
	return ep->ep_type.s_ptr != NULL;
}

/*
 * Copies the pages and sets their media types.  Settings that inherit the pages have copies of
 * their own, as the types depend on the settings.
 */
int
conf_complete_pages(
    struct conf *conf, struct settings *set, struct conf_why *why)
{
	struct error_page *pages;
	size_t size = set->set_npages * sizeof(*pages);

	if (set->set_npages == 0)
		return 0;
	pages = conf_keep(conf, size);
	if (pages == NULL)
		return conf_no_memory(why);
	set->set_pages = memcpy(pages, set->set_pages, size);
	for (unsigned i = 0; i < set->set_npages; i++)
		if (!conf_error_page_set_type(conf, set, &pages[i]))
			return conf_no_memory(why);
	return 0;
}

const struct error_page *
conf_error_page(const struct settings *set, int status)
{
	const struct error_page *best = NULL;

	for (unsigned i = 0; i < set->set_npages; i++) {
		const struct error_page *ep = &set->set_pages[i];

		if (status < ep->ep_first || status > ep->ep_last)
			continue;
		if (best == NULL || ep->ep_first == ep->ep_last)
			best = ep;
	}
	return best;
}
