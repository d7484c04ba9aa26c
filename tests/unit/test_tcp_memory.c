/*
 * When there is pressure (server/worker/tcp_memory.c, os_tcp_memory): a file of the test's stands for
 * /proc/net/sockstat.
 */
#include "test.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

#include "lib/os/os.h"
#include "server/conf/conf.h"
#include "server/worker/tcp_memory.h"
#include "server/process/listen_table.h"

#define PERIOD 10000

struct world {
	FILE *file;
	struct tcp_memory pr;
	uint64_t now;
};

static void
write_text(struct world *w, const char *text)
{
	rewind(w->file);
	assert_int_equal(ftruncate(fileno(w->file), 0), 0);
	assert_true(fputs(text, w->file) >= 0);
	assert_int_equal(fflush(w->file), 0);
}

/* Other protocols have other figures. */
static void
set_pages(struct world *w, unsigned pages)
{
	char text[256];

	snprintf(text, sizeof(text),
	    "sockets: used 77\nTCP: inuse 8 orphan 0 tw 9 alloc 10 mem %u\n"
	    "UDP: inuse 3 mem 999999\nUDPLITE: inuse 0\nRAW: inuse 0\n"
	    "FRAG: inuse 0 memory 0\n",
	    pages);
	write_text(w, text);
}

/* Whether there is pressure a period later; a begin is told, once. */
static bool
on_with(struct world *w, unsigned pages)
{
	bool before = tcp_memory_is_short(&w->pr), told;

	set_pages(w, pages);
	w->now += PERIOD;
	told = tcp_memory_look(&w->pr, w->now);
	assert_int_equal(told, tcp_memory_is_short(&w->pr) && !before);
	return tcp_memory_is_short(&w->pr);
}

int
setup(void **state)
{
	static struct world w;

	w = (struct world){.file = tmpfile(), .now = 12345678};
	if (w.file == NULL)
		return -1;
	w.pr.pr_fd = fileno(w.file);
	w.pr.pr_most = 1000 * (uint64_t)os_page_size();
	*state = &w;
	return 0;
}

int
teardown(void **state)
{
	struct world *w = *state;

	return fclose(w->file);
}

TEST(it_begins_above_what_was_set)
{
	assert_false(on_with(*state, 0));
	assert_false(on_with(*state, 1000));
	assert_true(on_with(*state, 1001));
	assert_true(on_with(*state, 4000000));
}

TEST(it_ends_at_three_quarters)
{
	assert_true(on_with(*state, 1001));
	assert_true(on_with(*state, 751));
	assert_false(on_with(*state, 750));
	assert_false(on_with(*state, 751));
	assert_false(on_with(*state, 1000));
	assert_true(on_with(*state, 1001));
}

TEST(the_kernel_is_asked_once_in_ten_milliseconds)
{
	struct world *w = *state;

	assert_false(on_with(w, 0));
	set_pages(w, 2000);
	assert_false(tcp_memory_look(&w->pr, w->now + PERIOD - 1));
	assert_false(tcp_memory_is_short(&w->pr));
	assert_true(tcp_memory_look(&w->pr, w->now + PERIOD));
	set_pages(w, 0);
	tcp_memory_look(&w->pr, w->now + 2 * PERIOD - 1);
	assert_true(tcp_memory_is_short(&w->pr));
}

TEST(what_cannot_be_understood_changes_nothing)
{
	static const char *const table[] = {"", "TCP: ", "TCP: inuse 5\n",
	    "UDP: inuse 3 mem 0\n", "TCP: inuse 5 mem",
	    "mem 0 TCP:", "TCP: inuse 5\nUDP: inuse 3 mem 0\n"};
	struct world *w = *state;

	assert_true(on_with(w, 2000));
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		write_text(w, table[i]);
		w->now += PERIOD;
		assert_false(tcp_memory_look(&w->pr, w->now));
		assert_true(tcp_memory_is_short(&w->pr));
		assert_int_equal(os_tcp_memory(w->pr.pr_fd), -EINVAL);
	}
	assert_false(on_with(w, 0));
}

TEST(zero_is_never, NULL)
{
	struct tcp_memory *pr;

	assert_int_equal(tcp_memory_create(0, &pr), 0);
	assert_int_equal(pr->pr_fd, -1);
	assert_false(tcp_memory_look(pr, 1));
	assert_false(tcp_memory_is_short(pr));
	tcp_memory_destroy(&pr);
	assert_null(pr);
}

/* tcp(7): the kernel counts in pages; it may have none in use, but not none at its disposal. */
TEST(this_kernel_can_be_asked, NULL)
{
	const uint64_t page = os_page_size();
	struct tcp_memory *pr, *chosen;

	assert_int_equal(tcp_memory_create(TCP_MEMORY_AUTO, &pr), 0);
	assert_true(os_tcp_memory(pr->pr_fd) >= 0);
	assert_true(pr->pr_most >= page && pr->pr_most < UINT64_MAX / 2);
	assert_int_equal(tcp_memory_create(5 * page, &chosen), 0);
	assert_int_equal(chosen->pr_most, 5 * page);
	tcp_memory_destroy(&chosen);
	tcp_memory_destroy(&pr);
}

struct looker {
	pthread_t thread;
	struct world *w;
	unsigned told;
};

static void *
look(void *arg)
{
	struct looker *lk = arg;

	for (uint64_t i = 0; i < 100000; i++)
		lk->told += tcp_memory_look(&lk->w->pr, lk->w->now + i);
	return NULL;
}

TEST(of_several_who_look_one_is_told)
{
	struct looker lookers[4];
	struct world *w = *state;
	unsigned told = 0;

	set_pages(w, 2000);
	for (size_t i = 0; i < 4; i++) {
		lookers[i] = (struct looker){.w = w};
		assert_int_equal(
		    pthread_create(&lookers[i].thread, NULL, look, &lookers[i]),
		    0);
	}
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(lookers[i].thread, NULL), 0);
		told += lookers[i].told;
	}
	assert_int_equal(told, 1);
}

/* As little as the system gives anyway is not made more; tcp(7), tcp_notsent_lowat. */
TEST(a_socket_is_given_little_while_there_is_pressure, NULL)
{
	int sock = socket(AF_INET, SOCK_STREAM, 0), value = 0;
	socklen_t len = sizeof(value);
	SCOPED(tcp_memory_destroy) struct tcp_memory *pr;

	assert_true(sock != -1);
	assert_int_equal(tcp_memory_create(0, &pr), 0);
	assert_true(
	    pr->pr_unsent <= 128 << 10 && pr->pr_unsent <= os_unsent_limit());
	tcp_memory_apply(pr, true, sock);
	assert_int_equal(
	    getsockopt(sock, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &len), 0);
	assert_int_equal(value, pr->pr_unsent);
	tcp_memory_apply(pr, false, sock);
	assert_int_equal(
	    getsockopt(sock, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &len), 0);
	assert_int_equal(value, 0);
	close(sock);
}

/* A server process may have changed it; what is accepted has what the listening socket has. */
TEST(what_listens_is_set_back, NULL)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	struct sock sk = {.sk_use = SOCKET_SERVE};
	struct listen_table ss = {.ss_list = &sk, .ss_count = 1};
	const struct sock *which;
	int value = 1;
	socklen_t len = sizeof(value);

	sk.sk_fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(
	    bind(sk.sk_fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(os_limit_unsent(sk.sk_fd, 1), 0);
	assert_int_equal(listen_listen(&ss, &which), 0);
	assert_int_equal(
	    getsockopt(sk.sk_fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &len),
	    0);
	assert_int_equal(value, 0);
	close(sk.sk_fd);
}

#ifdef __linux__
/* Returns the congestion control of a socket that listen_listen has set up, and that had bbr. */
static const char *
congestion_of(const char *listen_name)
{
	static char name[16];
	struct sockaddr_in sin = {.sin_family = AF_INET};
	struct sock sk = {.sk_use = SOCKET_SERVE};
	struct listen_table ss = {.ss_list = &sk, .ss_count = 1};
	const struct sock *which;
	socklen_t len = sizeof(name);

	snprintf(sk.sk_name, sizeof(sk.sk_name), "%s", listen_name);
	sk.sk_fd = socket(AF_INET, SOCK_STREAM, 0);
	if (setsockopt(sk.sk_fd, IPPROTO_TCP, TCP_CONGESTION, "bbr", 3) != 0) {
		print_message("no bbr here: %s\n", strerror(errno));
		close(sk.sk_fd);
		skip();
	}
	assert_int_equal(
	    bind(sk.sk_fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(listen_listen(&ss, &which), 0);
	assert_int_equal(
	    getsockopt(sk.sk_fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
	close(sk.sk_fd);
	return name;
}

TEST(on_the_loopback_nothing_is_paced, NULL)
{
	assert_string_equal(congestion_of("127.0.0.1:80"), "reno");
	assert_string_equal(congestion_of("[::1]:80"), "reno");
	assert_string_equal(congestion_of("0.0.0.0:80"), "bbr");
	assert_string_equal(congestion_of("[::]:80"), "bbr");
	assert_string_equal(congestion_of("/127.sock"), "bbr");
}
#endif
