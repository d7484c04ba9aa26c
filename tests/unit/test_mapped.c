/*
 * Transmissions of pinned mappings, also where vmsplice(2) or splice(2) is refused, or the file is written
 * meanwhile.
 */
#include "xfer_fixture.h"

#include "lib/os/os.h"

#define SIZE (2 * OS_FOLIO)

static int vmsplice_error, splice_error; /* errors of all calls, or 0 */
static unsigned vmsplices;		 /* number of calls */
static int writes_fd = -1; /* file whose end send(2) overwrites, or -1 */

int __real_os_vmsplice(int, const void *, size_t, size_t *);
int __wrap_os_vmsplice(int, const void *, size_t, size_t *);
int __real_os_splice_out(int, int, size_t, bool, size_t *);
int __wrap_os_splice_out(int, int, size_t, bool, size_t *);

int __real_os_send(int, const void *, size_t, bool, size_t *);
int __wrap_os_send(int, const void *, size_t, bool, size_t *);

int
__wrap_os_vmsplice(int pipe, const void *mem, size_t len, size_t *taken)
{
	vmsplices++;
	*taken = 0;
	return vmsplice_error != 0 ? vmsplice_error
				   : __real_os_vmsplice(pipe, mem, len, taken);
}

int
__wrap_os_splice_out(int sock, int pipe, size_t len, bool more, size_t *sent)
{
	*sent = 0;
	return splice_error != 0
		   ? splice_error
		   : __real_os_splice_out(sock, pipe, len, more, sent);
}

/* Overwrites the end of the file after the last check, and before the end is sent. */
int
__wrap_os_send(int sock, const void *mem, size_t len, bool more, size_t *sent)
{
	static const char other[KIB] = {0};

	if (writes_fd != -1)
		assert_int_equal(pwrite(writes_fd, other, sizeof(other),
				     (off_t)(SIZE - sizeof(other))),
		    sizeof(other));
	return __real_os_send(sock, mem, len, more, sent);
}

/* Reads a cold file of SIZE bytes into pins.  Skips the test if it cannot. */
static struct pw_file *
pinned_file(bool marked)
{
	struct pins *ps = fx->fx_pool->pl_pins;
	struct pins_key key;
	struct pw_file *file;
	struct os_folio fo;
	off_t off;

	skip_unless(NEED_EVICTION);
	file = new_file("f", SIZE);
	assert_true(evict(file->fil_fd, SIZE));
	key = pins_key(file);
	for (off = 0; off < (off_t)SIZE; off += (off_t)OS_FOLIO) {
		if (!pins_reserve(ps, OS_FOLIO) ||
		    !os_fetch_folio(file->fil_fd, off, OS_FOLIO, 0, -1, &fo) ||
		    fo.fo_map == NULL)
			skip(); /* RLIMIT_MEMLOCK, or no folios here */
		pins_add(
		    ps, &key, off, &fo, marked ? PINS_MARKED : PINS_UNMARKED);
	}
	vmsplice_error = splice_error = 0;
	vmsplices = 0;
	return file;
}

/* Sends the bytes from `from` to the end of the file, and checks each byte. */
static void
send_from(struct pw_file *file, off_t from)
{
	size_t len = SIZE - (size_t)from;
	SCOPED(free_at) char *expected = malloc(len);
	SCOPED_WIRE wr;
	SCOPED_XFER xf;

	assert_non_null(expected);
	fill(expected, from, len);
	wire_narrow(&wr);
	xfer_init(&xf, "nodiskio", &wr, file);
	xf.xf_send.snd_off = from;
	xf.xf_send.snd_len = (off_t)len;
	pw_send_start(&xf.xf_send);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	assert_int_equal(wr.wr_len, len);
	assert_memory_equal(wr.wr_data, expected, len);
}

static void
send_all(struct pw_file *file)
{
	send_from(file, 0);
}

TEST(pins_are_sent_by_vmsplice)
{
	SCOPED_FILE *file = pinned_file(false);

	send_all(file);
	assert_true(vmsplices > 1);
}

TEST(pins_are_sent_although_vmsplice_is_refused)
{
	SCOPED_FILE *file = pinned_file(false);

	vmsplice_error = -EPERM;
	send_all(file);
	assert_int_equal(vmsplices, 1);
}

TEST(marked_pins_are_sent_although_vmsplice_is_refused)
{
	SCOPED_FILE *file = pinned_file(true);

	vmsplice_error = -ENOSYS;
	send_all(file);
	assert_int_equal(vmsplices, 1);
}

TEST(pins_are_sent_although_splice_is_refused)
{
	SCOPED_FILE *file = pinned_file(false);
	int before = count_fds();

	splice_error = -EINVAL;
	send_all(file);
	assert_int_equal(vmsplices, 1);
	assert_int_equal(count_fds(), before);
}

/* Sends a file whose end is overwritten as soon as its last check was made. */
static void
send_while_end_is_written(bool marked)
{
	SCOPED_FILE *file = pinned_file(marked);

	writes_fd = open(path_in("f"), O_WRONLY);
	assert_true(writes_fd >= 0);
	send_from(file, (off_t)(SIZE - 4 * KIB));
	close(writes_fd);
	writes_fd = -1;
}

TEST(end_is_read_before_the_file_is_checked)
{
	send_while_end_is_written(false);
}

TEST(end_of_marked_pins_is_read_before_the_file_is_checked)
{
	send_while_end_is_written(true);
}
