/*
 * Transmissions of many shares on every send path, to real clients that take them more slowly
 * than they come, or leave.
 */
#include "xfer_fixture.h"

#define ALL UINT64_MAX
#define MIB ((size_t)1 << 20)

/* ------------------------------------------------------------ slow readers */

/* Room for several shares, of which some is free whenever it is writable again. */
static void
wire_slow(struct wire *wr)
{
	int size = MIB;

	wire_narrow(wr);
	setsockopt(wr->wr_sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

static const struct {
	size_t mem;
	off_t off, len; /* none: without a file, as a listing */
} shapes[] = {
    {8 * MIB, 0, 0},
    {3 * MIB + 1, 4097, (off_t)MIB + 5},
    {300, 131071, (off_t)4 * MIB},
};

static char memory[8 * MIB], content[5 * MIB];

struct slow {
	struct wire sl_wire;
	struct xfer sl_xfer;
	size_t sl_mem, sl_len;
	off_t sl_off;
};

static void
begin(struct slow *sl, const char *path, struct pw_file *file, size_t shape)
{
	size_t mem = shapes[shape].mem, len = (size_t)shapes[shape].len;
	struct pw_send *s = &sl->sl_xfer.xf_send;

	wire_slow(&sl->sl_wire);
	xfer_init(&sl->sl_xfer, path, &sl->sl_wire, len > 0 ? file : NULL);
	sl->sl_mem = mem;
	sl->sl_len = mem + len;
	sl->sl_off = shapes[shape].off;
	s->snd_mem = memory;
	s->snd_mem_len = mem;
	s->snd_off = sl->sl_off;
	s->snd_len = (off_t)len;
	pw_send_start(s);
}

static void
end(struct slow *sl)
{
	const char *data = sl->sl_wire.wr_data;
	size_t len = sl->sl_wire.wr_len, mem = len;

	if (mem > sl->sl_mem)
		mem = sl->sl_mem;
	if (mem > 0)
		assert_memory_equal(data, memory, mem);
	if (len > mem)
		assert_memory_equal(
		    data + mem, content + sl->sl_off, len - mem);
	pw_send_finish(&sl->sl_xfer.xf_send);
	wire_close(&sl->sl_wire);
}

TEST(all_reaches_a_slow_reader)
{
	SCOPED_FILE *file = new_file("f", sizeof(content));
	const char *const *path;
	struct slow sl;

	for (path = pw_send_path_names(); *path != NULL; path++)
		for (size_t i = 0; i < COUNT(shapes); i++) {
			print_message("%s, shape %zu\n", *path, i);
			begin(&sl, *path, file, i);
			assert_int_equal(
			    xfer_run(&sl.sl_xfer, &sl.sl_wire, ALL),
			    PW_SEND_DONE);
			assert_int_equal(sl.sl_wire.wr_len, sl.sl_len);
			assert_true(sl.sl_xfer.xf_full > 0);
			if (shapes[i].len == 0)
				assert_int_equal(sl.sl_xfer.xf_pending, 0);
			end(&sl);
		}
}

/* ------------------------------------------------------------ those who leave */

/* What was sent and not read is lost, and the next call is told so. */
static void
leave(struct wire *wr)
{
	struct linger now = {.l_onoff = 1};

	setsockopt(wr->wr_peer, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(wr->wr_peer);
	wr->wr_peer = -1;
}

/* Until it ends; who reads leaves when that much was read. */
static enum pw_send_status
run_until_left(struct slow *sl, size_t most)
{
	struct wire *wr = &sl->sl_wire;
	enum pw_send_status status;

	do {
		if (wr->wr_peer != -1 && wr->wr_len >= most)
			leave(wr);
		status = xfer_step(&sl->sl_xfer);
		if (status == PW_SEND_PENDING)
			settle(sl->sl_xfer.xf_send.snd_loop);
		if (status == PW_SEND_WANT_WRITE)
			wire_flush(wr);
	} while (status != PW_SEND_DONE && status != PW_SEND_ERROR);
	return status;
}

TEST(a_peer_that_leaves_midway_is_an_error)
{
	static const size_t reads[] = {0, 1, 100000, MIB + 3};
	SCOPED_FILE *file = new_file("f", sizeof(content));
	const char *const *path;
	const struct pw_send *s;
	struct slow sl;

	for (path = pw_send_path_names(); *path != NULL; path++)
		for (size_t i = 0; i < COUNT(reads) * COUNT(shapes); i++) {
			begin(&sl, *path, file, i % COUNT(shapes));
			s = &sl.sl_xfer.xf_send;
			assert_int_equal(
			    run_until_left(&sl, reads[i / COUNT(shapes)]),
			    PW_SEND_ERROR);
			assert_true(s->snd_error == -EPIPE ||
				    s->snd_error == -ECONNRESET);
			assert_true(s->snd_sent >= sl.sl_wire.wr_len);
			assert_true(s->snd_sent < sl.sl_len);
			assert_int_equal(xfer_step(&sl.sl_xfer), PW_SEND_ERROR);
			end(&sl);
		}
}

int
setup_all(void **state)
{
	(void)state;
	fill(memory, 13, sizeof(memory)); /* of no file: shifted */
	fill(content, 0, sizeof(content));
	return 0;
}
