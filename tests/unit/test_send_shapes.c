/*
 * Every shape of a transmission (memory, a file, both; nothing to 4 MiB each) on every send
 * path, into a fake socket that takes as many bytes at a time as it likes, is full and fails
 * where it likes.  What may be answered when is lib/pagewise.h's to say.
 */
#include "shot_fixture.h"

#include "lib/disk/pool_priv.h"

/* ----------------------------------------------------------------- the fake */

int __real_os_send(int, const void *, size_t, bool, size_t *);
int __wrap_os_send(int, const void *, size_t, bool, size_t *);
int __real_os_sendfile(int, int, off_t, size_t, size_t *);
int __wrap_os_sendfile(int, int, off_t, size_t, size_t *);
int __real_os_splice_out(int, int, size_t, bool, size_t *);
int __wrap_os_splice_out(int, int, size_t, bool, size_t *);
int __wrap_os_native_send(
    int, int, off_t, size_t, const struct os_native *, size_t *);
int __real_os_cachestat(int, off_t, size_t);
int __wrap_os_cachestat(int, off_t, size_t);
int __real_poll(struct pollfd *, nfds_t, int);
int __wrap_poll(struct pollfd *, nfds_t, int);

int
__wrap_os_send(int sock, const void *mem, size_t len, bool more, size_t *sent)
{
	int error;

	if (sock != fake.fk_sock)
		return __real_os_send(sock, mem, len, more, sent);
	check_more(more, len);
	error = take(len, sent);
	take_memory(mem, *sent);
	return error;
}

int
__wrap_os_sendfile(int sock, int fd, off_t off, size_t len, size_t *sent)
{
	int error;

	if (sock != fake.fk_sock)
		return __real_os_sendfile(sock, fd, off, len, sent);
	if (fake.fk_refuses != 0) {
		fake.fk_refusals++;
		*sent = 0;
		return -fake.fk_refuses;
	}
	error = take(len, sent);
	take_file(fd, off, *sent);
	return error;
}

int
__wrap_os_splice_out(int sock, int pipe, size_t len, bool more, size_t *sent)
{
	int error;

	if (sock != fake.fk_sock)
		return __real_os_splice_out(sock, pipe, len, more, sent);
	check_more(more, len);
	error = take(len, sent);
	take_pipe(pipe, *sent);
	return error;
}

/* Busy pages are met after what was sent. */
int
__wrap_os_native_send(int sock, int fd, off_t off, size_t len,
    const struct os_native *on, size_t *sent)
{
	size_t mem;
	int error;

	if (sock != fake.fk_sock)
		fake.fk_wrong = "another socket";
	if (fake.fk_refuses != 0) {
		fake.fk_refusals++;
		*sent = 0;
		return -fake.fk_refuses;
	}
	error = take(on->on_mem_len + len, sent);
	mem = least(on->on_mem_len, *sent);
	take_memory(on->on_mem, mem);
	take_file(fd, off, *sent - mem);
	if (error == -EINTR && below(2) == 0)
		error = -EBUSY;
	return error;
}

/* Something of it is missing, for all that one knows.  A pool thread asks about a byte. */
int
__wrap_os_cachestat(int fd, off_t off, size_t len)
{
	if (fd >= 0 && len > 1 && fake.fk_cold != 0 && below(fake.fk_cold) == 0)
		return 0;
	return __real_os_cachestat(fd, off, len);
}

int
__wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	if (n != 1 || fds->fd != fake.fk_sock)
		return __real_poll(fds, n, timeout);
	if (is_interrupted()) {
		errno = EINTR;
		return -1;
	}
	fds->revents = fake.fk_room > 0 ? POLLOUT : 0;
	return fds->revents != 0;
}

/* ------------------------------------------------------------------- shapes */

/* Borders of pages, of shares, of the pipe of splice and the buffers of copy and aio. */
static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 16 * KIB, 128 * KIB - 1,
    128 * KIB, 128 * KIB + 1, 512 * KIB + 1, LEN_MAX};
static const off_t offs[] = {0, 1, 4095, 4096, 64 * KIB + 1, 512 * KIB - 1};

typedef void (*each_f)(struct shot *, const struct way *, struct pw_file *,
    size_t mem, off_t off, off_t len);

/* Of what is very large a third has to do. */
static bool
is_sent(size_t m, size_t l, size_t most)
{
	size_t sum = sizes[m] + sizes[l];

	return sum <= most && (sum <= MIB || (m + l) % 3 == 0);
}

/* Calls f with each way and each shape of so much at most. */
static void
each_shape(size_t most, each_f f)
{
	SCOPED_FILE *file = new_file("f", OFFSET_END + LEN_MAX);
	const struct way *wy;
	struct shot sh;
	size_t m, l, n = 0;

	for (wy = ways; wy < ways + COUNT(ways); wy++)
		for (m = 0; m < COUNT(sizes); m++) {
			if (sizes[m] <= most)
				f(&sh, wy, NULL, sizes[m], 0, 0);
			for (l = 0; l < COUNT(sizes); l++)
				if (is_sent(m, l, most))
					f(&sh, wy, file, sizes[m],
					    offs[n++ % COUNT(offs)],
					    (off_t)sizes[l]);
		}
}

static void
send_all(struct shot *sh, const struct way *wy, struct pw_file *file,
    size_t mem, off_t off, off_t len)
{
	begin(sh, wy, file, mem, off, len);
	sends_all(sh);
	RULE(sh, sh->sh_full == 0);
}

/* The device is asked again in each transmission, and no more than once in it. */
static void
send_without_sendfile(struct shot *sh, const struct way *wy,
    struct pw_file *file, size_t mem, off_t off, off_t len)
{
	static const int errors[] = {EINVAL, ENOSYS, EOPNOTSUPP};
	static unsigned n;
	struct pw_device *dv = file == NULL ? NULL : file_priv(file)->fp_device;

	begin(sh, wy, file, mem, off, len);
	fake.fk_refuses = errors[n++ % COUNT(errors)];
	if (dv != NULL)
		atomic_store(&dv->dv_copies, 0);
	RULE(sh, drive(sh) == PW_SEND_DONE);
	RULE(sh, fake.fk_refusals <= 1);
	RULE(sh, dv == NULL || device_copies(dv) == (fake.fk_refusals == 1));
	end(sh);
	if (dv != NULL)
		atomic_store(&dv->dv_copies, 0);
}

static int
begin_all(void **state)
{
	fake.fk_sock = socket(AF_UNIX, SOCK_STREAM, 0);
	fake.fk_data = malloc(2 * LEN_MAX);
	if (fake.fk_sock == -1 || fake.fk_data == NULL)
		return -1;
	return setup(state);
}

static int
end_all(void **state)
{
	close(fake.fk_sock);
	free(fake.fk_data);
	return teardown(state);
}

TEST(where_sendfile_is_refused_every_shape_is_copied, begin_all, end_all)
{
	each_shape(700 * KIB, send_without_sendfile);
}

TEST(every_shape_is_sent_to_who_takes_all, begin_all, end_all)
{
	each_shape(ALL, send_all);
}

/*
 * Where something begins or ends, and a byte before and after that; of larger shapes
 * some of these, others each time.
 */
static size_t
points(size_t *at, size_t most, size_t mem, size_t len)
{
	const size_t edges[] = {0, mem, mem + len, mem + 4096, SHARE,
	    mem + SHARE, 512 * KIB, mem + 512 * KIB, (mem + len) / 2};
	size_t all = mem + len, i, point, n = 0;
	uint32_t some = all < 64 * KIB ? 1 : all < 300 * KIB ? 4 : 8;

	for (i = 0; i < 3 * COUNT(edges) && n < most; i++) {
		point = edges[i / 3] + i % 3;
		if (point >= 1 && point - 1 <= all && below(some) == 0)
			at[n++] = point - 1;
	}
	return n;
}

static void
fill_at_each_point(struct shot *sh, const struct way *wy, struct pw_file *file,
    size_t mem, off_t off, off_t len)
{
	size_t at[32], n = points(at, COUNT(at), mem, (size_t)len), i;

	for (i = 0; i < n; i++) {
		begin(sh, wy, file, mem, off, len);
		fake.fk_room = at[i];
		fake.fk_both = i % 2 == 1;
		sends_all(sh);
	}
}

TEST(the_socket_may_be_full_at_any_point, begin_all, end_all)
{
	each_shape(700 * KIB, fill_at_each_point);
}

static void
fail_at_each_point(struct shot *sh, const struct way *wy, struct pw_file *file,
    size_t mem, off_t off, off_t len)
{
	size_t at[32], n = points(at, COUNT(at), mem, (size_t)len), i;
	unsigned calls;

	for (i = 0; i < n; i++) {
		if (at[i] == mem + (size_t)len)
			continue;
		begin(sh, wy, file, mem, off, len);
		fake.fk_end = at[i];
		fake.fk_error = i % 3 == 0 ? EPIPE : ECONNRESET;
		fake.fk_both = i % 2 == 1;
		fake.fk_room = i % 4 < 2 ? ALL : at[i];
		RULE(sh, drive(sh) == PW_SEND_ERROR);
		RULE(sh, sh->sh_xfer.xf_send.snd_error == -fake.fk_error);
		RULE(sh, fake.fk_len == at[i]);
		calls = fake.fk_calls;
		RULE(sh, step(sh) == PW_SEND_ERROR);
		RULE(sh, fake.fk_calls == calls);
		end(sh);
	}
}

TEST(the_socket_may_fail_at_any_point, begin_all, end_all)
{
	each_shape(700 * KIB, fail_at_each_point);
}

/* ------------------------------------------------------------------- random */

#define SHOTS 4000u

static size_t
random_size(void)
{
	size_t size = sizes[below(COUNT(sizes))];

	switch (below(8)) {
	case 0:
	case 1:
		return 0;
	case 2:
		return below(2 * MIB);
	case 3:
		return size;
	default:
		return below(1u << below(18));
	}
}

static uint64_t
random_window(void)
{
	static const uint64_t windows[] = {
	    PW_READAHEAD_AUTO, PW_READAHEAD_NONE, 64 * KIB, MIB, 10007};

	return windows[below(COUNT(windows))];
}

/* One that fails at some point, or does not. */
static void
random_shot(struct shot *sh, struct pw_file *file)
{
	static const int errors[] = {EPIPE, ECONNRESET, ETIMEDOUT};
	size_t mem = random_size(), len = least(random_size(), LEN_MAX);

	begin(sh, &ways[below(COUNT(ways))], below(8) == 0 ? NULL : file, mem,
	    (off_t)below(OFFSET_END), (off_t)len);
	sh->sh_xfer.xf_send.snd_readahead = random_window();
	sh->sh_xfer.xf_send.snd_more = fake.fk_more = below(2) == 0;
	sh->sh_random = true;
	give_room(sh);
	fake.fk_both = below(2) == 0;
	fake.fk_odds = below(3) == 0 ? 2 + below(20) : 0;
	fake.fk_cold = below(3) == 0 ? 1 + below(20) : 0;
	fake.fk_error = errors[below(COUNT(errors))];
	if (below(3) == 0)
		fake.fk_most = 1 + fake.fk_total / (1 + below(50));
	if (below(8) == 0 && fake.fk_total > 0)
		fake.fk_end = below((uint32_t)fake.fk_total);
}

TEST(random_shapes_to_random_sockets, begin_all, end_all)
{
	SCOPED_FILE *file = new_file("f", OFFSET_END + LEN_MAX);
	unsigned i, done = 0, full = 0, waits = 0;
	struct shot sh;
	bool fails;

	for (i = 0; i < SHOTS; i++) {
		random_shot(&sh, file);
		fails = fake.fk_end != ALL;
		RULE(&sh, drive(&sh) == (fails ? PW_SEND_ERROR : PW_SEND_DONE));
		RULE(&sh, sh.sh_xfer.xf_send.snd_error ==
			      (fails ? -fake.fk_error : 0));
		done += !fails;
		full += sh.sh_full;
		waits += sh.sh_waits;
		end(&sh);
	}
	print_message("%u sent, %u failed; %u times full, %u waits\n", done,
	    SHOTS - done, full, waits);
	assert_true(done > SHOTS / 2 && done < SHOTS);
	assert_true(full > SHOTS && waits > SHOTS);
}

/* While it is pending, or not. */
TEST(after_cancel_there_is_one_completion_and_an_error, begin_all, end_all)
{
	SCOPED_FILE *file = new_file("f", OFFSET_END + LEN_MAX);
	unsigned i, n, pending = 0;
	enum pw_send_status status;
	struct shot sh;
	uint64_t dev;

	for (i = 0; i < SHOTS / 2; i++) {
		/* Forgets the copies of the transmission before. */
		pins_tick(fx->fx_pool->pl_pins,
		    clock_now() + PINS_WAITED_US + 1, &dev);
		random_shot(&sh, file);
		pw_send_start(&sh.sh_xfer.xf_send);
		for (n = below(6);; n--) {
			status = step(&sh);
			if (n == 0 || status == PW_SEND_DONE ||
			    status == PW_SEND_ERROR)
				break;
			if (status == PW_SEND_PENDING)
				wait_for_it(&sh);
			else if (status == PW_SEND_WANT_WRITE)
				give_room(&sh);
		}
		pw_send_cancel(&sh.sh_xfer.xf_send);
		if (status == PW_SEND_PENDING) {
			pending++;
			wait_for_it(&sh);
		}
		n = fake.fk_calls;
		assert_int_equal(
		    pw_send_step(&sh.sh_xfer.xf_send), PW_SEND_ERROR);
		RULE(&sh, sh.sh_xfer.xf_send.snd_error == -ECANCELED);
		RULE(&sh, sh.sh_xfer.xf_send.snd_sent == fake.fk_len);
		RULE(&sh, fake.fk_calls == n);
		end(&sh);
	}
	assert_true(pending > SHOTS / 40);
}

int
setup_all(void **state)
{
	(void)state;
	fill(memory, 13, sizeof(memory)); /* of no file: shifted */
	fill(content, 0, sizeof(content));
	return 0;
}
