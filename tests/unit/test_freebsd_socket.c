/*
 * What FreeBSD's sockets say of their bytes: lib/os/freebsd_socket.c and os_unready, on the kernel
 * itself.
 */
#include "xfer_fixture.h"

#include "lib/os/os.h"

/* Sends until the socket is full.  Returns how much. */
static size_t
fill_up(int sock)
{
	static const char data[4 * KIB];
	size_t all = 0, sent;
	int error;

	do {
		error = os_send(sock, data, sizeof(data), false, &sent);
		all += sent;
	} while (error == 0);
	assert_int_equal(error, -EAGAIN);
	return all;
}

TEST(bytes_count_until_the_peer_has_acknowledged_them, NULL)
{
	SCOPED_WIRE wr = narrow_wire();
	size_t sent;
	int ms;

	assert_int_equal(os_unacked(wr.wr_sock), 0);
	sent = fill_up(wr.wr_sock);
	assert_in_range(os_unacked(wr.wr_sock), 1, sent);
	wire_await(&wr, sent);
	for (ms = 0; os_unacked(wr.wr_sock) > 0 && ms < PATIENCE; ms++)
		usleep(1000);
	assert_int_equal(os_unacked(wr.wr_sock), 0);
}

TEST(memory_waits_for_no_disk, NULL)
{
	SCOPED_WIRE wr = narrow_wire();

	assert_false(os_awaits_disk(wr.wr_sock));
	assert_int_equal(os_unready(wr.wr_sock), 0);
	fill_up(wr.wr_sock);
	assert_false(os_awaits_disk(wr.wr_sock));
	assert_int_equal(os_unready(wr.wr_sock), 0);
}

TEST(a_peer_has_a_number_until_it_is_gone, NULL)
{
	struct wire wr, other;
	uint64_t peer;

	wire_narrow(&wr);
	wire_narrow(&other);
	peer = os_peer(wr.wr_sock);
	assert_true(peer != 0);
	assert_true(os_peer(wr.wr_sock) == peer);
	assert_true(os_peer(other.wr_sock) != peer);
	wire_close(&wr);
	assert_true(os_peer(wr.wr_sock) == 0);
	wire_close(&other);
}

TEST(errors_are_negative, NULL)
{
	assert_int_equal(os_unacked(-1), -EBADF);
	assert_int_equal(os_unready(-1), -EBADF);
	assert_false(os_awaits_disk(-1));
	assert_true(os_peer(-1) == 0);
}
