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

#include "server/admin/accept_error.h"
#include "server/admin/admin.h"
#include "server/admin/agent.h"
#include "server/admin/callers.h"
#include "server/content/health.h"

#define MAX_HEAD (16 << 10) /* maximum request head, bytes */
#define MAX_BODY (16 << 10) /* maximum request body, bytes */

extern const char admin_page[]; /* admin.html */

struct listener {
	struct evconnlistener *li_listener; /* owned by adm_http */
};

struct admin {
	struct admin_conf adm_conf;
	struct event_base *adm_base;
	struct listener *adm_listeners;
	size_t adm_nlisteners;
	struct evhttp *adm_http;
	struct callers *adm_callers;
	struct agent *adm_agent; /* NULL if off */
	struct event *adm_word;
	/*
	 * pipe to the thread, which accepts connections after a byte, and stops at the end of file
	 */
	int adm_pipe[2];
	pthread_t adm_thread;
	bool adm_started;
};

/* ---------------------------------------------------------------- responses */

static void
admin_add_header(
    struct evhttp_request *req, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(req), name, value);
}

/*
 * Sends the output buffer.  A response to HEAD has the fields of GET (RFC 9110, 9.3.2).  For HEAD,
 * evhttp would send the body as well, and no Content-Length.
 */
static void
admin_reply(struct evhttp_request *req, int status, const char *reason)
{
	struct evbuffer *body = evhttp_request_get_output_buffer(req);
	size_t len = evbuffer_get_length(body);
	char text[24];

	if (evhttp_request_get_command(req) == EVHTTP_REQ_HEAD) {
		snprintf(text, sizeof(text), "%zu", len);
		admin_add_header(req, "Content-Length", text);
		evbuffer_drain(body, len);
	}
	evhttp_send_reply(req, status, reason, NULL);
}

static void
admin_refuse(struct evhttp_request *req, int status, const char *reason)
{
	admin_add_header(req, "Content-Type", "text/plain; charset=utf-8");
	evbuffer_add_printf(
	    evhttp_request_get_output_buffer(req), "%d %s\n", status, reason);
	admin_reply(req, status, reason);
}

static void
admin_send_page(struct admin *adm, struct evhttp_request *req)
{
	struct evbuffer *body = evhttp_request_get_output_buffer(req);

	(void)adm;
	admin_add_header(req, "Content-Type", "text/html; charset=utf-8");
	admin_add_header(req, "Content-Security-Policy",
	    "default-src 'none'; connect-src 'self'; script-src "
	    "'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
	    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	admin_add_header(req, "Referrer-Policy", "no-referrer");
	evbuffer_add_reference(
	    body, admin_page, strlen(admin_page), NULL, NULL);
	admin_reply(req, HTTP_OK, "OK");
}

static void
admin_send_metrics(struct admin *adm, struct evhttp_request *req)
{
	struct evbuffer *out = evhttp_request_get_output_buffer(req);

	admin_add_header(
	    req, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	metrics_write(&adm->adm_conf.ac_metrics, out);
	agent_metrics(adm->adm_agent, out);
	admin_reply(req, HTTP_OK, "OK");
}

static void
admin_send_popular(struct admin *adm, struct evhttp_request *req)
{
	struct evbuffer *out = evhttp_request_get_output_buffer(req);

	admin_add_header(req, "Content-Type", "application/json");
	metrics_popular_json(&adm->adm_conf.ac_metrics, out);
	admin_reply(req, HTTP_OK, "OK");
}

static void
admin_send_map(struct admin *adm, struct evhttp_request *req)
{
	struct evbuffer *out = evhttp_request_get_output_buffer(req);

	admin_add_header(req, "Content-Type", "text/plain; charset=utf-8");
	metrics_popular_map(&adm->adm_conf.ac_metrics, out);
	admin_reply(req, HTTP_OK, "OK");
}

/* Returns true if the Host field is ADDR, [ADDR] or localhost, with or without a port. */
static bool
admin_host_is_local(const char *host)
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

static bool
admin_is_local(struct evhttp_request *req)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(
	    evhttp_request_get_connection(req));
	struct sockaddr_storage addr = {0};
	socklen_t len = sizeof(addr);

	return getsockname(bufferevent_getfd(bev), (struct sockaddr *)&addr,
		   &len) == 0 &&
	       addr.ss_family == AF_UNIX;
}

/*
 * Checks the Host field.  Allows every host on a Unix socket, since browsers cannot reach such a
 * socket.
 */
static bool
admin_host_allowed(struct evhttp_request *req)
{
	const char *host =
	    evhttp_find_header(evhttp_request_get_input_headers(req), "Host");

	return host == NULL || admin_host_is_local(host) || admin_is_local(req);
}

static void
admin_say(struct evhttp_request *req, const char *text)
{
	admin_add_header(req, "Content-Type", "text/plain; charset=utf-8");
	evbuffer_add_printf(
	    evhttp_request_get_output_buffer(req), "%s\n", text);
	admin_reply(req, HTTP_OK, "OK");
}

static void
admin_withdraw(struct admin *adm, struct evhttp_request *req, bool yes)
{
	const struct admin_conf *ac = &adm->adm_conf;

	if (!admin_is_local(req))
		admin_refuse(req, 403,
		    "Forbidden: send commands to a Unix socket of admin");
	else if (ac->ac_health == NULL)
		admin_refuse(req, 409,
		    "Conflict: balancers cannot see the drain: set ready or "
		    "agent");
	else if (ac->ac_withdraw(ac->ac_arg, yes) != 0)
		admin_refuse(
		    req, HTTP_SERVUNAVAIL, "The master is busy: try again");
	else
		admin_say(
		    req, yes ? "draining: health checks tell balancers to "
			       "send no new clients"
			     : "serving: balancers may send new clients "
			       "again");
}

static void
admin_order_drain(struct admin *adm, struct evhttp_request *req)
{
	admin_withdraw(adm, req, true);
}

static void
admin_order_undrain(struct admin *adm, struct evhttp_request *req)
{
	admin_withdraw(adm, req, false);
}

static const struct path {
	const char *path;
	bool is_order;	 /* true if the path accepts only POST */
	bool is_popular; /* true if the path exists only with popular */
	void (*answer)(struct admin *, struct evhttp_request *);
} paths[] = {
    {"/", false, false, admin_send_page},
    {"/metrics", false, false, admin_send_metrics},
    {"/popular", false, true, admin_send_popular},
    {"/popular.map", false, true, admin_send_map},
    {"/drain", true, false, admin_order_drain},
    {"/undrain", true, false, admin_order_undrain},
};

static const struct path *
admin_find_path(const char *path)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (path != NULL && strcmp(path, paths[i].path) == 0)
			return &paths[i];
	return NULL;
}

static bool
admin_is_method(struct evhttp_request *req, bool is_order)
{
	enum evhttp_cmd_type method = evhttp_request_get_command(req);

	if (is_order)
		return method == EVHTTP_REQ_POST;
	return method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD;
}

static void
admin_on_request(struct evhttp_request *req, void *arg)
{
	struct admin *adm = arg;
	const struct path *path = admin_find_path(
	    evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req)));

	callers_heard(
	    adm->adm_callers, evhttp_connection_get_bufferevent(
				  evhttp_request_get_connection(req)));
	admin_add_header(req, "Cache-Control", "no-store");
	admin_add_header(req, "X-Content-Type-Options", "nosniff");
	if (!admin_host_allowed(req)) {
		admin_refuse(req, 403,
		    "Forbidden: Host must be an IP address or localhost");
		return;
	}
	if (path == NULL ||
	    (path->is_popular &&
		!adm->adm_conf.ac_metrics.mt_conf->conf_popular)) {
		admin_refuse(req, HTTP_NOTFOUND, "Not Found");
		return;
	}
	if (!admin_is_method(req, path->is_order)) {
		admin_add_header(
		    req, "Allow", path->is_order ? "POST" : "GET, HEAD");
		admin_refuse(req, HTTP_BADMETHOD, "Method Not Allowed");
		return;
	}
	path->answer(adm, req);
}

/* -------------------------------------------------------------- the thread */

static void
admin_listen_again(void *arg)
{
	struct admin *adm = arg;

	for (size_t i = 0; i < adm->adm_nlisteners; i++)
		evconnlistener_enable(adm->adm_listeners[i].li_listener);
}

static void
admin_on_word(evutil_socket_t fd, short what, void *arg)
{
	struct admin *adm = arg;
	char word;

	(void)what;
	switch (read(fd, &word, 1)) {
	case 0:
		event_base_loopbreak(adm->adm_base);
		break;
	case 1:
		admin_listen_again(adm);
		agent_accept(adm->adm_agent);
		break;
	default: /* an error: libevent calls this function again */
		break;
	}
}

static void *
admin_main(void *arg)
{
	struct admin *adm = arg;

	os_thread_name("pw-admin");
	if (event_base_dispatch(adm->adm_base) != -1)
		return NULL;
	log_error(NULL,
	    "the admin thread cannot wait for events: ending the server "
	    "process");
	_exit(EXIT_FAILURE);
}

/*
 * Creates a bufferevent that closes its own socket after its events are removed.  Otherwise evhttp
 * would close the socket first, and another thread might have reused the descriptor number before
 * the removal.  Pauses the listeners until callers.c calls admin_listen_again.
 */
static struct bufferevent *
admin_on_connection(struct event_base *base, void *arg)
{
	struct admin *adm = arg;
	struct bufferevent *bev =
	    bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);

	if (bev == NULL)
		return NULL;
	for (size_t i = 0; i < adm->adm_nlisteners; i++)
		evconnlistener_disable(adm->adm_listeners[i].li_listener);
	callers_add(adm->adm_callers, bev);
	return bev;
}

static int
admin_create_http(struct admin *adm)
{
	adm->adm_callers =
	    callers_create(adm->adm_base, admin_listen_again, adm);
	adm->adm_http = evhttp_new(adm->adm_base);
	if (adm->adm_callers == NULL || adm->adm_http == NULL)
		return -ENOMEM;
	/*
	 * Allows all methods, so that this file can refuse a method with 405.  evhttp would send
	 * 501.
	 */
	evhttp_set_allowed_methods(adm->adm_http, UINT16_MAX);
	evhttp_set_max_headers_size(adm->adm_http, MAX_HEAD);
	evhttp_set_max_body_size(adm->adm_http, MAX_BODY);
	evhttp_set_timeout(adm->adm_http, CALLERS_TIMEOUT);
	evhttp_set_gencb(adm->adm_http, admin_on_request, adm);
	evhttp_set_bevcb(adm->adm_http, admin_on_connection, adm);
	return 0;
}

static int
admin_create_events(struct admin *adm)
{
	adm->adm_base = event_base_new();
	if (adm->adm_base == NULL)
		return -ENOMEM;
	if (pipe2(adm->adm_pipe, O_CLOEXEC) == -1)
		return -errno;
	adm->adm_word = event_new(adm->adm_base, adm->adm_pipe[0],
	    EV_READ | EV_PERSIST, admin_on_word, adm);
	if (adm->adm_word == NULL || event_add(adm->adm_word, NULL) != 0)
		return -ENOMEM;
	return admin_create_http(adm);
}

int
admin_create(const struct admin_conf *conf, struct admin **out)
{
	struct admin *adm = calloc(1, sizeof(*adm));
	int error;

	if (adm == NULL)
		return -ENOMEM;
	adm->adm_pipe[0] = adm->adm_pipe[1] = -1;
	adm->adm_conf = *conf;
	error = admin_create_events(adm);
	if (error == 0)
		*out = adm;
	else
		admin_destroy(&adm);
	return error;
}

int
admin_listen(struct admin *adm, int fd)
{
	struct evconnlistener *listener;
	struct listener *grown;
	int copy;

	grown = reallocarray(
	    adm->adm_listeners, adm->adm_nlisteners + 1, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	adm->adm_listeners = grown;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy == -1)
		return -errno;
	listener = evconnlistener_new(adm->adm_base, NULL, NULL,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_DISABLED, 0,
	    copy);
	if (listener == NULL) {
		close(copy);
		return -ENOMEM;
	}
	evconnlistener_set_error_cb(listener, accept_error);
	if (evhttp_bind_listener(adm->adm_http, listener) == NULL) {
		evconnlistener_free(listener);
		return -ENOMEM;
	}
	grown[adm->adm_nlisteners++].li_listener = listener;
	return 0;
}

int
admin_listen_agent(struct admin *adm, int fd)
{
	return agent_create(adm->adm_base, fd, &adm->adm_conf.ac_metrics,
	    adm->adm_conf.ac_health, &adm->adm_agent);
}

int
admin_start(struct admin *adm)
{
	int error = pthread_create(&adm->adm_thread, NULL, admin_main, adm);

	adm->adm_started = error == 0;
	return -error;
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
	agent_destroy(&adm->adm_agent);
	if (adm->adm_http != NULL)
		evhttp_free(adm->adm_http);
	callers_destroy(&adm->adm_callers);
	if (adm->adm_word != NULL)
		event_free(adm->adm_word);
	if (adm->adm_base != NULL)
		event_base_free(adm->adm_base);
	if (adm->adm_pipe[0] != -1)
		close(adm->adm_pipe[0]);
	free(adm->adm_listeners);
	free(adm);
}
