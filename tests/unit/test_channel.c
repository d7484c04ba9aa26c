/*
 * What the master takes from a server process (server/process/channel.c, sd_notify.c, listen_table.c);
 * each test has the name of the rule that it pins.
 */
#include "test.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "server/process/channel.h"
#include "server/process/listen_table.h"
#include "server/process/sd_notify.h"

#define MANY 8

/* A listener: FreeBSD says ENOTCONN, and it goes on listening. */
#ifdef __FreeBSD__
#define CAN_BE_SHUT false
#else
#define CAN_BE_SHUT true
#endif

static unsigned
open_files(void)
{
	unsigned n = 0;
	int fd;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

/* A message with so many descriptors, as only a hostile process sends it. */
static void
send_fds(int channel, uint32_t kind, int n)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(MANY * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = &kind, .iov_len = sizeof(kind)};
	struct msghdr msg = {
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = CMSG_SPACE((size_t)n * sizeof(int)),
	};
	int i, fds[MANY];

	for (i = 0; i < n; i++)
		fds[i] = STDIN_FILENO;
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
	memcpy(CMSG_DATA(&control.header), fds, (size_t)n * sizeof(int));
	assert_int_equal(sendmsg(channel, &msg, 0), sizeof(kind));
}

TEST(only_single_descriptors_are_received)
{
	struct channel_message cm;
	unsigned before;
	int n, fd, fds[2];

	assert_int_equal(channel_pair(fds), 0);
	before = open_files();
	for (n = 1; n <= MANY; n++) {
		send_fds(fds[0], CHANNEL_SOCKET, n);
		assert_int_equal(channel_receive(fds[1], &cm, &fd), 1);
		assert_int_equal(cm.cm_kind, CHANNEL_SOCKET);
		assert_int_equal(fd >= 0, n == 1);
		if (fd >= 0) {
			assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
			assert_int_equal(close(fd), 0);
		}
		assert_int_equal(open_files(), before);
	}
	close(fds[0]);
	close(fds[1]);
}

TEST(no_unexpected_descriptor_is_received)
{
	struct channel_message cm;
	unsigned before;
	int n, fds[2];

	assert_int_equal(channel_pair(fds), 0);
	before = open_files();
	for (n = 1; n <= MANY; n++) {
		send_fds(fds[0], CHANNEL_ALIVE, n);
		assert_int_equal(channel_receive(fds[1], &cm, NULL), 1);
		assert_int_equal(cm.cm_kind, CHANNEL_ALIVE);
		assert_int_equal(open_files(), before);
	}
	assert_int_equal(channel_receive(fds[1], &cm, NULL), 0);
	close(fds[0]);
	assert_int_equal(channel_receive(fds[1], &cm, NULL), -EPIPE);
	close(fds[1]);
}

/* A path, or '@' and a name in the abstract space. */
static void
status_comes_to(const char *name)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	socklen_t len =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	SCOPED(close_at) int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	char text[256] = "";

	memcpy(un.sun_path, name, strlen(name));
	if (name[0] == '@')
		un.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&un, len), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	sd_notify_status("well\nMAINPID=1\rREADY=1\x7f");
	unsetenv("NOTIFY_SOCKET");
	assert_true(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT) > 0);
	assert_string_equal(text, "STATUS=well?MAINPID=1?READY=1?");
}

TEST(a_status_is_one_line)
{
	char dir[] = "/tmp/pagewise-test-XXXXXX", path[64];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/notify", dir);
	status_comes_to(path);
	unlink(path);
	rmdir(dir);
#ifdef __linux__
	status_comes_to("@pagewise-test-notify");
#endif
}

static int
bound(int type, in_port_t *port)
{
	struct sockaddr_in in = {
	    .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, type, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	*port = ntohs(in.sin_port);
	return fd;
}

static bool
genuine(int fd, const char *fmt, unsigned port)
{
	struct sock sk = {.sk_fd = fd, .sk_use = SOCKET_SERVE};

	snprintf(sk.sk_name, sizeof(sk.sk_name), "%s:%u", fmt, port);
	return listen_genuine(&sk);
}

TEST(a_socket_is_verified_by_its_address)
{
	struct sock sk = {.sk_use = SOCKET_SERVE};
	in_port_t port;
	int fd = bound(SOCK_STREAM, &port);

	assert_true(genuine(fd, "127.0.0.1", port));
	assert_true(genuine(fd, "127.0.0.1", 0));
	assert_false(genuine(fd, "127.0.0.1", port + 1U));
	assert_false(genuine(fd, "127.0.0.2", port));
	assert_false(genuine(STDIN_FILENO, "127.0.0.1", port));
	/* A port that was asked for several times. */
	sk.sk_fd = fd;
	snprintf(sk.sk_name, sizeof(sk.sk_name), "127.0.0.1:0#2");
	assert_true(listen_genuine(&sk));
	snprintf(sk.sk_name, sizeof(sk.sk_name), "/etc/passwd");
	assert_false(listen_genuine(&sk));
	close(fd);
	fd = bound(SOCK_DGRAM, &port);
	assert_false(genuine(fd, "127.0.0.1", port));
	close(fd);
}

TEST(a_file_that_is_no_socket_is_not_removed)
{
	char path[] = "/tmp/pagewise-test-XXXXXX";
	struct sock sk = {.sk_use = SOCKET_ADMIN, .sk_fd = -1};
	struct listen_table ss = {.ss_list = &sk, .ss_count = 1};
	SCOPED(close_at) int fd = mkstemp(path);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	sk.sk_dev = st.st_dev;
	sk.sk_ino = st.st_ino;
	snprintf(sk.sk_name, sizeof(sk.sk_name), "%s", path);
	listen_remove_files(&ss, &(struct listen_table){0});
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
}

TEST(a_socket_that_does_not_listen_is_known)
{
	struct sock sk = {.sk_use = SOCKET_SERVE};
	struct listen_table ss = {.ss_list = &sk, .ss_count = 1};
	const struct sock *which;
	in_port_t port;

	sk.sk_fd = bound(SOCK_STREAM, &port);
	assert_true(listen_deaf(sk.sk_fd));
	assert_int_equal(listen_listen(&ss, &which), 0);
	assert_false(listen_deaf(sk.sk_fd));
	assert_int_equal(shutdown(sk.sk_fd, SHUT_RD) == 0, CAN_BE_SHUT);
	assert_int_equal(listen_deaf(sk.sk_fd), CAN_BE_SHUT);
	close(sk.sk_fd);
}

TEST(what_is_accepted_does_not_linger)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 100};
	struct sock sk = {.sk_use = SOCKET_SERVE};
	struct listen_table ss = {.ss_list = &sk, .ss_count = 1};
	const struct sock *which;
	socklen_t len = sizeof(linger);
	in_port_t port;

	sk.sk_fd = bound(SOCK_STREAM, &port);
	assert_int_equal(
	    setsockopt(sk.sk_fd, SOL_SOCKET, SO_LINGER, &linger, len), 0);
	assert_int_equal(listen_listen(&ss, &which), 0);
	assert_int_equal(
	    getsockopt(sk.sk_fd, SOL_SOCKET, SO_LINGER, &linger, &len), 0);
	assert_int_equal(linger.l_onoff, 0);
	close(sk.sk_fd);
}
