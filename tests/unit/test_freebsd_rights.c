/*
 * What limited descriptors can do: os_limit_rights of lib/os/freebsd_process.c.
 */
#include "lib_fixture.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <sys/filio.h>
#include <sys/ioctl.h>

#include "lib/os/os.h"

/* A listening socket, and its address. */
static int
listen_anywhere(struct sockaddr_in *sin)
{
	struct sockaddr *sa = (struct sockaddr *)(void *)sin;
	socklen_t len = sizeof(*sin);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*sin = (struct sockaddr_in){.sin_family = AF_INET};
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, sa, len), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, sa, &len), 0);
	return fd;
}

static void
assert_refused(int result)
{
	assert_int_equal(result, -1);
	assert_int_equal(errno, ENOTCAPABLE);
}

/* All that libevent, OpenSSL and the server do with a connection. */
static void
use_connection(int sock)
{
	struct sockaddr_storage name;
	struct pollfd pfd = {.fd = sock, .events = POLLOUT};
	socklen_t len = sizeof(name);
	int one = 1, n;
	char byte;

	assert_int_equal(fcntl(sock, F_SETFL, O_NONBLOCK), 0);
	assert_true(fcntl(sock, F_GETFL) != -1);
	assert_int_equal(getpeername(sock, (struct sockaddr *)&name, &len), 0);
	len = sizeof(name);
	assert_int_equal(getsockname(sock, (struct sockaddr *)&name, &len), 0);
	assert_int_equal(
	    setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
	assert_true(os_round_trip(sock) >= 0);
	assert_int_equal(ioctl(sock, FIONREAD, &n), 0);
	assert_int_equal(os_unacked(sock), 0);
	assert_int_equal(os_unready(sock), 0);
	assert_int_equal(poll(&pfd, 1, 1000), 1);
	assert_int_equal(write(sock, "x", 1), 1);
	assert_int_equal(recv(sock, &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(read(sock, &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(shutdown(sock, SHUT_WR), 0);
}

TEST(connections_have_the_limits_of_their_listener, NULL)
{
	struct sockaddr_in sin;
	struct sockaddr *sa = (struct sockaddr *)(void *)&sin;
	int fd, copy, client, sock;

	fd = listen_anywhere(&sin);
	copy = dup(fd);
	assert_int_equal(os_limit_rights(fd, OS_RIGHTS_LISTENER), 0);
	client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(client, sa, sizeof(sin)), 0);
	assert_int_equal(listen(fd, 8), 0);
	sock = accept(fd, NULL, NULL);
	assert_true(sock >= 0);
	use_connection(sock);
	assert_refused(connect(sock, sa, sizeof(sin)));
	assert_refused(bind(sock, sa, sizeof(sin)));
	assert_refused(ioctl(sock, FIOASYNC, &(int){0}));
	assert_refused(fcntl(sock, F_SETOWN, 0));
	assert_refused(bind(fd, sa, sizeof(sin)));
	/* The master's copy keeps its rights. */
	assert_int_equal(fcntl(copy, F_SETOWN, 0), 0);
	close(sock);
	close(client);
	close(copy);
	close(fd);
}

TEST(a_log_is_only_written)
{
	SCOPED(close_at)
	int fd =
	    open(path_in("log"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	struct stat st;
	char byte;

	assert_true(fd >= 0);
	assert_int_equal(os_limit_rights(fd, OS_RIGHTS_LOG), 0);
	assert_int_equal(write(fd, "line\npart", 9), 9);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 9);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(ftruncate(fd, 5), 0);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(poll(&(struct pollfd){fd, POLLOUT, 0}, 1, 1000), 1);
	assert_refused((int)pread(fd, &byte, 1, 0));
	assert_refused(fchmod(fd, 0644));
	assert_refused(fchown(fd, 0, 0));
	assert_refused(fchflags(fd, 0));
}

TEST(the_channel_only_has_messages, NULL)
{
	int fds[2];
	char byte;

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(os_limit_rights(fds[0], OS_RIGHTS_CHANNEL), 0);
	assert_int_equal(send(fds[0], "x", 1, MSG_EOR), 1);
	assert_int_equal(recv(fds[1], &byte, 1, 0), 1);
	assert_int_equal(send(fds[1], "x", 1, MSG_EOR), 1);
	assert_int_equal(poll(&(struct pollfd){fds[0], POLLIN, 0}, 1, 1000), 1);
	assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), 1);
	assert_refused(fcntl(fds[0], F_SETFL, 0));
	assert_refused(shutdown(fds[0], SHUT_RDWR));
	close(fds[0]);
	close(fds[1]);
}
