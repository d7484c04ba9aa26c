/*
 * Records that the kernel encrypts (server/tls/kernel.h), on a socket without encryption, which
 * every kernel has.
 */
#include "test.h"

#include <sys/socket.h>

#include "server/tls/kernel.h"

#define ALERT 21 /* content type, RFC 8446, 5.1 */

/* A lost close_notify would look to the client like a truncated response. */
TEST(a_record_that_a_full_socket_refuses_is_sent_later)
{
	static const unsigned char close_notify[] = {1, 0};
	char block[4096] = {0}, last[2] = {0};
	int socks[2];
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, socks), 0);
	while (send(socks[0], block, sizeof(block), MSG_DONTWAIT) > 0)
		continue;
	assert_int_equal(
	    tls_kernel_say(socks[0], ALERT, close_notify, sizeof(close_notify)),
	    -EAGAIN);
	do
		n = recv(socks[1], block, sizeof(block), MSG_DONTWAIT);
	while (n > 0);
	assert_int_equal(
	    tls_kernel_say(socks[0], ALERT, close_notify, sizeof(close_notify)),
	    0);
	assert_int_equal(
	    recv(socks[1], last, sizeof(last), MSG_DONTWAIT), sizeof(last));
	assert_memory_equal(last, close_notify, sizeof(last));
	close(socks[1]);
	assert_int_equal(
	    tls_kernel_say(socks[0], ALERT, close_notify, sizeof(close_notify)),
	    -EPIPE);
	close(socks[0]);
}
