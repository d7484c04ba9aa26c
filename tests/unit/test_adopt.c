/*
 * Files from descriptors of the caller (lib/file/adopt.c).
 */
#include "xfer_fixture.h"

#define SIZE ((size_t)300 * KIB)

int __real_open(const char *, int, ...);
int __wrap_open(const char *, int, ...);

static int no_proc; /* errno of opening Linux' files again, or 0 */

int
__wrap_open(const char *path, int flags, ...)
{
	unsigned mode;
	va_list ap;

	if (no_proc != 0 && strncmp(path, "/proc/self/fd/", 14) == 0) {
		errno = no_proc;
		return -1;
	}
	va_start(ap, flags);
	mode = (flags & O_CREAT) != 0 ? va_arg(ap, unsigned) : 0;
	va_end(ap);
	return __real_open(path, flags, mode);
}

static int
ask(int fd, const struct stat *st, struct asked *as)
{
	*as = (struct asked){.as_open.op_waiter.wt_done = asked_done};
	return pw_file_from_fd(fx->fx_loop, fd, st, &as->as_open);
}

/* Adopts a descriptor, and waits for the result if there is a wait. */
static int
adopt(int fd, const struct stat *st, struct pw_file **file)
{
	struct asked as;
	int error = ask(fd, st, &as);

	if (error == -EINPROGRESS) {
		settle(fx->fx_loop);
		assert_int_equal(as.as_times, 1);
		error = as.as_open.op_waiter.wt_error;
	} else
		assert_int_equal(as.as_times, 0);
	*file = as.as_open.op_file;
	assert_int_equal(error == 0, *file != NULL);
	assert_int_equal(pw_open_cancel(&as.as_open), -EINVAL);
	return error;
}

static int
open_fd(const char *name, int flags)
{
	int fd = open(path_in(name), flags | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static struct pw_device *
device_of(void)
{
	return pool_device(fx->fx_pool, fx->fx_root->rt_dev, POOL_FILES);
}

static void
assert_is_whole(struct pw_file *file)
{
	SCOPED_WIRE wr = wide_wire();
	SCOPED_XFER xf;

	xfer_init(&xf, "nodiskio", &wr, file);
	xf.xf_send.snd_len = file->fil_size;
	assert_int_equal(pw_send_start(&xf.xf_send), 0);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	wire_has_file(&wr, 0, (off_t)SIZE);
}

TEST(a_descriptor_becomes_a_file)
{
	SCOPED_FILE *file;
	struct stat st;
	int fd;

	make_file("f", SIZE);
	fd = open_fd("f", O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(adopt(fd, &st, &file), 0);
	assert_int_not_equal(file->fil_fd, fd);
	close(fd);
	assert_int_equal(file->fil_type, PW_FILE_REGULAR);
	assert_int_equal(file->fil_size, SIZE);
	assert_int_equal(file->fil_ino, st.st_ino);
	assert_int_equal(file->fil_dev, st.st_dev);
	assert_true(timespec_same(&file->fil_mtime, &st.st_mtim));
	assert_true(timespec_same(&file->fil_ctime, &st.st_ctim));
	assert_true(file->fil_checked > 0);
	assert_is_whole(file);
	evict(file->fil_fd, SIZE);
	assert_is_whole(file);
}

TEST(a_disk_thread_examines_the_first_file_of_a_device)
{
	struct pollfd pfd = {.fd = pw_loop_fd(fx->fx_loop), .events = POLLIN};
	struct asked first, second;
	int fd;

	make_file("f", SIZE);
	fd = open_fd("f", O_RDONLY);
	assert_int_equal(ask(fd, NULL, &first), -EINPROGRESS);
	close(fd);
	assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
	settle(fx->fx_loop);
	assert_int_not_equal(device_of()->dv_ask, OS_ASK_UNKNOWN);
	assert_int_equal(first.as_times, 1);
	assert_int_equal(first.as_open.op_waiter.wt_error, 0);
	if (device_open_waits(device_of()))
		print_message("%s: to open a file waits\n", fx->fx_dir);
	else {
		fd = open_fd("f", O_RDWR);
		assert_int_equal(ask(fd, NULL, &second), 0);
		assert_int_equal(second.as_times, 0);
		close(fd);
		assert_is_whole(second.as_open.op_file);
		pw_file_unref(&second.as_open.op_file);
	}
	pw_file_unref(&first.as_open.op_file);
}

static void
refuse_wrong_ones(void)
{
	int file = open_fd("f", O_RDONLY), other = open_fd("g", O_RDONLY),
	    written = open_fd("f", O_WRONLY),
	    dir = open_fd(".", O_RDONLY | O_DIRECTORY), fds[2];
	struct pw_file *none;
	struct stat st;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(adopt(written, NULL, &none), -EBADF);
	assert_int_equal(adopt(-1, NULL, &none), -EBADF);
	assert_int_equal(adopt(dir, NULL, &none), -EINVAL);
	assert_int_equal(adopt(fds[0], NULL, &none), -EINVAL);
	assert_int_equal(fstat(other, &st), 0);
	assert_int_equal(adopt(file, &st, &none), -EINVAL);
	assert_int_equal(fstat(file, &st), 0);
	st.st_mtim.tv_sec--;
	assert_int_equal(adopt(file, &st, &none), -ESTALE);
	assert_int_equal(fstat(file, &st), 0);
	st.st_size++;
	assert_int_equal(adopt(file, &st, &none), -ESTALE);
	close(file);
	close(other);
	close(written);
	close(dir);
	close(fds[0]);
	close(fds[1]);
}

/* On a disk thread, and on the loop once the device is known. */
TEST(what_cannot_be_a_file_is_refused)
{
	struct pw_open op = {0};
	SCOPED_FILE *file;
	int fds;

	make_file("f", SIZE);
	make_file("g", SIZE);
	fds = count_fds();
	refuse_wrong_ones();
	assert_int_equal(count_fds(), fds);
	file = open_file("f");
	refuse_wrong_ones();
	assert_int_equal(
	    pw_file_from_fd(fx->fx_loop, file->fil_fd, NULL, &op), -EINVAL);
}

TEST(a_cancelled_one_calls_nothing, setup_one_thread)
{
	struct asked as;
	struct latch la;
	int fd, fds;

	make_file("f", SIZE);
	fd = open_fd("f", O_RDONLY);
	latch_shut(&la, device_of(), fx->fx_loop);
	fds = count_fds();
	assert_int_equal(ask(fd, NULL, &as), -EINPROGRESS);
	assert_int_equal(pw_open_cancel(&as.as_open), 0);
	assert_int_equal(pw_open_cancel(&as.as_open), -EINVAL);
	latch_finish(&la);
	assert_int_equal(as.as_times, 0);
	assert_int_equal(count_fds(), fds);
	close(fd);
}

TEST(a_full_queue_refuses, setup_narrow)
{
	struct asked first, second;
	struct latch la;
	int fd, fds;

	make_file("f", SIZE);
	fd = open_fd("f", O_RDONLY);
	latch_shut(&la, device_of(), fx->fx_loop);
	assert_int_equal(ask(fd, NULL, &first), -EINPROGRESS);
	fds = count_fds();
	assert_int_equal(ask(fd, NULL, &second), -EAGAIN);
	assert_int_equal(count_fds(), fds);
	latch_finish(&la);
	pw_file_unref(&first.as_open.op_file);
	close(fd);
}

/* One fetch serves a file that was opened by path and one from a descriptor. */
TEST(files_of_both_kinds_share_fetches, setup_one_thread)
{
	SCOPED_FILE *by_path = new_file("f", SIZE), *by_fd;
	struct pw_device *dv = device_of();
	struct pw_waiter w[2] = {
	    {.wt_done = nothing_done}, {.wt_done = nothing_done}};
	struct latch la;
	unsigned long ended;
	int fd = open_fd("f", O_RDONLY);

	assert_int_equal(adopt(fd, NULL, &by_fd), 0);
	close(fd);
	latch_shut(&la, dv, fx->fx_loop);
	ended = device_ended(dv);
	assert_int_equal(
	    pool_fetch(by_path, 0, SIZE, FETCH_PAGES, ADMIT_NEW, &w[0]), 0);
	assert_int_equal(
	    pool_fetch(by_fd, 0, SIZE, FETCH_PAGES, ADMIT_NEW, &w[1]), 0);
	latch_finish(&la);
	assert_int_equal(device_ended(dv) - ended, 2); /* with the latch */
}

TEST(a_file_that_changes_is_not_sent_whole)
{
	SCOPED_FILE *file;
	SCOPED_WIRE wr;
	SCOPED(close_at) int fd;
	SCOPED_XFER xf;

	make_file("f", SIZE);
	fd = open_fd("f", O_RDWR);
	assert_int_equal(adopt(fd, NULL, &file), 0);
	usleep(10000); /* longer than a tick of the file system's clock */
	wire_wide(&wr);
	xfer_init(&xf, "nodiskio", &wr, file);
	xf.xf_send.snd_len = file->fil_size;
	assert_int_equal(pw_send_start(&xf.xf_send), 0);
	assert_int_equal(pwrite(fd, "!", 1, 0), 1);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_ERROR);
	assert_int_equal(xf.xf_send.snd_error, -ESTALE);
	assert_true(xf.xf_send.snd_sent < SIZE);
}

#ifdef __linux__

/* A second description: it has no O_APPEND, which the caller's has. */
TEST(the_callers_description_stays_its_own)
{
	SCOPED_FILE *file;
	SCOPED(close_at) int fd;

	make_file("f", SIZE);
	fd = open_fd("f", O_RDWR | O_APPEND);
	assert_int_equal(adopt(fd, NULL, &file), 0);
	assert_int_equal(fcntl(file->fil_fd, F_GETFL) & O_APPEND, 0);
	assert_int_equal(fcntl(file->fil_fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_is_whole(file);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
}

TEST(direct_descriptors_are_opened_again_without_o_direct)
{
	SCOPED_FILE *file;
	SCOPED(close_at) int fd;

	make_file("f", SIZE);
	fd = open(path_in("f"), O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd == -1)
		skip();
	assert_int_equal(adopt(fd, NULL, &file), 0);
	assert_int_equal(fcntl(file->fil_fd, F_GETFL) & O_DIRECT, 0);
	assert_is_whole(file);
}

TEST(a_path_descriptor_cannot_be_read)
{
	struct pw_file *file;
	SCOPED(close_at) int fd;

	make_file("f", SIZE);
	fd = open_fd("f", O_PATH);
	assert_int_equal(adopt(fd, NULL, &file), -EBADF);
}

TEST(a_duplicate_is_sent_all_the_same)
{
	struct pw_file *file;
	int fd, direct;

	make_file("f", SIZE);
	fd = open_fd("f", O_RDWR | O_APPEND);
	no_proc = ENOENT;
	assert_int_equal(adopt(fd, NULL, &file), 0);
	close(fd);
	assert_int_equal(fcntl(file->fil_fd, F_GETFL) & O_APPEND, O_APPEND);
	evict(file->fil_fd, SIZE);
	assert_is_whole(file);
	pw_file_unref(&file);
	direct = open(path_in("f"), O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (direct != -1) {
		assert_int_equal(adopt(direct, NULL, &file), -EINVAL);
		no_proc = EMFILE;
		assert_int_equal(adopt(direct, NULL, &file), -EMFILE);
		close(direct);
	}
	no_proc = 0;
}

#endif
