/*
 * admin: see admin.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/os.h"

#include "server/admin/admin.h"

#define MAX_HEAD (16 << 10) /* bytes */
#define MAX_BODY (16 << 10) /* of a request that is refused anyway */
#define TIMEOUT	 60	    /* seconds without a byte */

extern const char admin_page[]; /* admin.html */

struct admin {
	int adm_fd; /* until adm_listener owns it; then -1 */
	bool adm_is_path;
	struct metrics adm_metrics;
	struct event_base *adm_base;
	struct evconnlistener *adm_listener; /* owned by adm_http */
	struct evhttp *adm_http;
	struct event *adm_word;
	int adm_pipe[2]; /* a byte: accept; its end stops the thread */
	pthread_t adm_thread;
	bool adm_started;
};

/* ---------------------------------------------------------------- answers */

static void
add_header(struct evhttp_request *req, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(req), name, value);
}

/*
 * With what is in the output buffer.  HEAD gets the fields that GET would get (RFC 9110,
 * 9.3.2); evhttp would send the body as well, and not its length.
 */
static void
reply(struct evhttp_request *req, int status, const char *reason)
{
	struct evbuffer *body = evhttp_request_get_output_buffer(req);
	size_t len = evbuffer_get_length(body);
	char text[24];

	if (evhttp_request_get_command(req) == EVHTTP_REQ_HEAD) {
		snprintf(text, sizeof(text), "%zu", len);
		add_header(req, "Content-Length", text);
		evbuffer_drain(body, len);
	}
	evhttp_send_reply(req, status, reason, NULL);
}

static void
refuse(struct evhttp_request *req, int status, const char *reason)
{
	add_header(req, "Content-Type", "text/plain; charset=utf-8");
	evbuffer_add_printf(
	    evhttp_request_get_output_buffer(req), "%d %s\n", status, reason);
	reply(req, status, reason);
}

static void
send_page(struct evhttp_request *req)
{
	struct evbuffer *body = evhttp_request_get_output_buffer(req);

	add_header(req, "Content-Type", "text/html; charset=utf-8");
	add_header(req, "Content-Security-Policy",
	    "default-src 'none'; connect-src 'self'; script-src "
	    "'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
	    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	add_header(req, "Referrer-Policy", "no-referrer");
	evbuffer_add_reference(
	    body, admin_page, strlen(admin_page), NULL, NULL);
	reply(req, HTTP_OK, "OK");
}

static void
send_metrics(struct admin *adm, struct evhttp_request *req)
{
	add_header(
	    req, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	metrics_write(&adm->adm_metrics, evhttp_request_get_output_buffer(req));
	reply(req, HTTP_OK, "OK");
}

/* ADDR, [ADDR] or localhost, each with or without a port. */
static bool
host_is_local(const char *host)
{
	char name[INET6_ADDRSTRLEN + 2];
	struct in6_addr addr;
	size_t len;

	len = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");
	if (len >= sizeof(name))
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	if (name[0] == '[')
		return host[len] == ']' &&
		       (host[len + 1] == '\0' || host[len + 1] == ':') &&
		       inet_pton(AF_INET6, name + 1, &addr) == 1;
	return strcasecmp(name, "localhost") == 0 ||
	       inet_pton(AF_INET, name, &addr) == 1;
}

/* A browser cannot be made to speak to a Unix socket. */
static bool
host_allowed(const struct admin *adm, struct evhttp_request *req)
{
	const char *host =
	    evhttp_find_header(evhttp_request_get_input_headers(req), "Host");

	return adm->adm_is_path || host == NULL || host_is_local(host);
}

static void
on_request(struct evhttp_request *req, void *arg)
{
	struct admin *adm = arg;
	const char *path =
	    evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	bool page = path != NULL && strcmp(path, "/") == 0;

	add_header(req, "Cache-Control", "no-store");
	add_header(req, "X-Content-Type-Options", "nosniff");
	if (!host_allowed(adm, req)) {
		refuse(req, 403,
		    "Forbidden: Host must be an address or localhost");
		return;
	}
	if (!page && (path == NULL || strcmp(path, "/metrics") != 0)) {
		refuse(req, HTTP_NOTFOUND, "Not Found");
		return;
	}
	if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
		add_header(req, "Allow", "GET, HEAD");
		refuse(req, HTTP_BADMETHOD, "Method Not Allowed");
		return;
	}
	if (page)
		send_page(req);
	else
		send_metrics(adm, req);
}

/* -------------------------------------------------------------- the thread */

static void
on_resume(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	evconnlistener_enable(arg);
}

/*
 * Out of descriptors: it would be called again at once, and complain.  The argument
 * is evhttp's.
 */
static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
	static const struct timeval second = {1, 0};

	(void)arg;
	if (event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT,
		on_resume, listener, &second) == 0)
		evconnlistener_disable(listener);
}

static void
on_word(evutil_socket_t fd, short what, void *arg)
{
	struct admin *adm = arg;
	char word;

	(void)what;
	switch (read(fd, &word, 1)) {
	case 0:
		event_base_loopbreak(adm->adm_base);
		break;
	case 1:
		evconnlistener_enable(adm->adm_listener);
		break;
	default: /* it is called again */
		break;
	}
}

static void *
admin_main(void *arg)
{
	struct admin *adm = arg;

	os_thread_name("pw-admin");
	event_base_dispatch(adm->adm_base);
	return NULL;
}

/*
 * It closes its socket itself, after its events have gone: evhttp would do it before, and by
 * then the number may be another thread's.
 */
static struct bufferevent *
on_connection(struct event_base *base, void *arg)
{
	(void)arg;
	return bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
}

static int
create_http(struct admin *adm)
{
	adm->adm_http = evhttp_new(adm->adm_base);
	if (adm->adm_http == NULL)
		return -ENOMEM;
	/* Refused by us, with 405, instead of by evhttp, with 501. */
	evhttp_set_allowed_methods(adm->adm_http, UINT16_MAX);
	evhttp_set_max_headers_size(adm->adm_http, MAX_HEAD);
	evhttp_set_max_body_size(adm->adm_http, MAX_BODY);
	evhttp_set_timeout(adm->adm_http, TIMEOUT);
	evhttp_set_gencb(adm->adm_http, on_request, adm);
	evhttp_set_bevcb(adm->adm_http, on_connection, NULL);
	adm->adm_listener = evconnlistener_new(adm->adm_base, NULL, NULL,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_DISABLED, 0,
	    adm->adm_fd);
	if (adm->adm_listener == NULL)
		return -ENOMEM;
	adm->adm_fd = -1;
	evconnlistener_set_error_cb(adm->adm_listener, on_accept_error);
	if (evhttp_bind_listener(adm->adm_http, adm->adm_listener) == NULL) {
		evconnlistener_free(adm->adm_listener);
		return -ENOMEM;
	}
	return 0;
}

static int
create_events(struct admin *adm)
{
	adm->adm_base = event_base_new();
	if (adm->adm_base == NULL)
		return -ENOMEM;
	if (pipe2(adm->adm_pipe, O_CLOEXEC) == -1)
		return -errno;
	adm->adm_word = event_new(adm->adm_base, adm->adm_pipe[0],
	    EV_READ | EV_PERSIST, on_word, adm);
	if (adm->adm_word == NULL || event_add(adm->adm_word, NULL) != 0)
		return -ENOMEM;
	return create_http(adm);
}

int
admin_start(
    int fd, bool is_path, const struct metrics *metrics, struct admin **out)
{
	struct admin *adm = calloc(1, sizeof(*adm));
	int error = 0;

	if (adm == NULL)
		return -ENOMEM;
	adm->adm_pipe[0] = adm->adm_pipe[1] = -1;
	adm->adm_is_path = is_path;
	adm->adm_metrics = *metrics;
	adm->adm_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (adm->adm_fd == -1)
		error = -errno;
	if (error == 0)
		error = create_events(adm);
	if (error == 0)
		error =
		    -pthread_create(&adm->adm_thread, NULL, admin_main, adm);
	adm->adm_started = error == 0;
	if (error == 0)
		*out = adm;
	else
		admin_destroy(&adm);
	return error;
}

void
admin_accept(struct admin *adm)
{
	ssize_t n;

	if (adm == NULL)
		return;
	do
		n = write(adm->adm_pipe[1], "", 1);
	while (n == -1 && errno == EINTR);
}

void
admin_destroy(struct admin **admp)
{
	struct admin *adm = *admp;

	if (adm == NULL)
		return;
	*admp = NULL;
	if (adm->adm_pipe[1] != -1)
		close(adm->adm_pipe[1]);
	if (adm->adm_started)
		pthread_join(adm->adm_thread, NULL);
	if (adm->adm_http != NULL)
		evhttp_free(adm->adm_http);
	if (adm->adm_word != NULL)
		event_free(adm->adm_word);
	if (adm->adm_base != NULL)
		event_base_free(adm->adm_base);
	if (adm->adm_pipe[0] != -1)
		close(adm->adm_pipe[0]);
	if (adm->adm_fd != -1)
		close(adm->adm_fd);
	free(adm);
}
