/*
 * serve_sockets: passes the listening sockets to the master, distributes them over the workers, and
 * logs their addresses.
 */
#include <stdio.h>
#include <string.h>

#include "server/process/bind.h"
#include "server/process/channel.h"
#include "server/process/serve_priv.h"
#include "server/worker/listener.h"

/* Returns the number of consecutive sockets, from index i, with the same name and use. */
static size_t
serve_sockets_same_name(const struct listen_table *ss, size_t i)
{
	size_t n = 1;

	while (i + n < ss->ss_count &&
	       ss->ss_list[i + n].sk_use == ss->ss_list[i].sk_use &&
	       strcmp(ss->ss_list[i + n].sk_name, ss->ss_list[i].sk_name) == 0)
		n++;
	return n;
}

/*
 * Distributes n sockets, starting with `sk`, over the workers: each worker gets at least one
 * socket, and each socket at least one worker.
 */
static int
serve_sockets_share_one(struct server *sv, const struct sock *sk, size_t n)
{
	unsigned workers = sv->sv_conf->conf_workers;
	size_t i, at = 0, who = 0, most = n > workers ? n : workers;
	int error;

	for (i = 0; i < most; i++) {
		error = listener_take(sv->sv_workers[who], sk[at].sk_fd,
		    sk[at].sk_proxy, sk[at].sk_tls);
		if (error != 0)
			return error;
		at = at + 1 < n ? at + 1 : 0;
		who = who + 1 < workers ? who + 1 : 0;
	}
	return 0;
}

int
serve_sockets_share(struct server *sv)
{
	const struct listen_table *ss = &sv->sv_sockets;
	size_t i, n;
	int error = 0;

	for (i = 0; i < ss->ss_count && error == 0; i += n) {
		n = serve_sockets_same_name(ss, i);
		if (ss->ss_list[i].sk_use == SOCKET_SERVE)
			error = serve_sockets_share_one(sv, &ss->ss_list[i], n);
	}
	return error;
}

int
serve_sockets_hand_over(struct server *sv)
{
	char text[LISTEN_TEXT];
	const struct sock *sk;
	size_t i;
	int error = 0;

	for (i = 0; i < sv->sv_sockets.ss_count && error == 0; i++) {
		sk = &sv->sv_sockets.ss_list[i];
		listen_pack(sk, text);
		error = channel_send(
		    sv->sv_channel, CHANNEL_SOCKET, text, sk->sk_fd, true);
	}
	return error;
}

static void
serve_sockets_announce_other(const struct server *sv, const struct sock *sk)
{
	char url[256];
	const char *address = url;

	if (sk->sk_ino != 0)
		snprintf(url, sizeof(url), "unix:%s", sk->sk_name);
	else
		bind_url(sk->sk_fd, false, url, sizeof(url));
	if (sk->sk_use == SOCKET_ADMIN) {
		log_notice(sv->sv_writer, "admin at %s", url);
		return;
	}
	/* The agent uses no HTTP, so its address is logged without a scheme. */
	if (strncmp(url, "http://", 7) == 0) {
		address += 7;
		url[strlen(url) - 1] = '\0';
	}
	log_notice(sv->sv_writer, "agent at %s", address);
}

static void
serve_sockets_announce_others(const struct server *sv)
{
	for (size_t i = 0; i < sv->sv_sockets.ss_count; i++) {
		const struct sock *sk = &sv->sv_sockets.ss_list[i];

		if (sk->sk_use == SOCKET_ADMIN || sk->sk_use == SOCKET_AGENT)
			serve_sockets_announce_other(sv, sk);
	}
}

static void
serve_sockets_announce_sites(const struct server *sv)
{
	const struct conf *conf = sv->sv_conf;
	const struct listen_table *ss = &sv->sv_sockets;
	char url[128];
	size_t i;

	for (i = 0; i < ss->ss_count; i += serve_sockets_same_name(ss, i)) {
		if (ss->ss_list[i].sk_use != SOCKET_SERVE)
			continue;
		bind_url(ss->ss_list[i].sk_fd, ss->ss_list[i].sk_tls, url,
		    sizeof(url));
		if (conf->conf_nsites == 1)
			log_notice(sv->sv_writer, "serving %s at %s",
			    conf->conf_sites[0].site_root, url);
		else
			log_notice(sv->sv_writer, "serving %zu sites at %s",
			    conf->conf_nsites, url);
	}
}

void
serve_sockets_announce(const struct server *sv)
{
	serve_sockets_announce_others(sv);
	serve_sockets_announce_sites(sv);
}
