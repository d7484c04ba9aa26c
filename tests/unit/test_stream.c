/* Tests of server/tls/stream.c: how many records a call sends, and how many the session keeps. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "receive_fixture.h"

#define MANY (33 * RECORD_PLAIN) /* bytes of a time slice of HTTP/2 */
#define FEW  (5 * (RECORD_PLAIN + RECORD_OVERHEAD))

static char text[MANY];

/* Replaces the pair's sockets by those of a connection over TCP. */
static void
connect_by_tcp(struct pair *pr)
{
	static const int size = 4 * (int)MANY;
	struct sockaddr_in at = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0),
	    client = socket(AF_INET, SOCK_STREAM, 0), server;

	assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&at, &len);
	assert_int_equal(connect(client, (struct sockaddr *)&at, len), 0);
	server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	assert_int_equal(fcntl(client, F_SETFL, O_NONBLOCK), 0);
	setsockopt(server, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	assert_int_equal(dup2(server, pr->pr_fds[0]), pr->pr_fds[0]);
	assert_int_equal(dup2(client, pr->pr_fds[1]), pr->pr_fds[1]);
	close(server);
	close(client);
	close(listener);
}

static void
shake_hands(struct pair *pr)
{
	while (pr->pr_tls->tl_state < TLS_OPEN) {
		SSL_do_handshake(pr->pr_client);
		tls_step(pr->pr_tls);
	}
	assert_int_equal(pr->pr_tls->tl_state, TLS_OPEN);
}

static void
empty(int sock)
{
	static char to[1 << 20];

	while (recv(sock, to, sizeof(to), 0) > 0)
		continue;
}

/* Sends the text; the client reads all that the socket accepts. */
static void
send_text(struct pair *pr)
{
	struct pw_sink *sk = tls_sink(pr->pr_tls);
	size_t taken, at = 0;
	int error;

	while (at < MANY) {
		error =
		    sk->sk_ops->take(sk, text + at, MANY - at, false, &taken);
		assert_true(error == 0 || error == -EAGAIN);
		at += taken;
		empty(pr->pr_fds[1]);
	}
}

TEST(many_records_go_only_into_a_socket_with_space)
{
	SCOPED(close_pair) struct pair pr;
	struct pw_sink *sk;
	size_t taken;

	begin_pair(&pr, TLS1_3_VERSION);
	connect_by_tcp(&pr);
	shake_hands(&pr);
	for (int i = 0; i < 20; i++)
		send_text(&pr);
	assert_true(pr.pr_tls->tl_chunk > 5);
	sk = tls_sink(pr.pr_tls);
	while (sk->sk_ops->take(sk, text, MANY, false, &taken) == 0 &&
	       taken == MANY)
		continue;
	assert_in_range(tls_unsent(pr.pr_tls), 1, FEW);
	empty(pr.pr_fds[1]);
	send_text(&pr);
	assert_int_equal(tls_unsent(pr.pr_tls), 0);
}
