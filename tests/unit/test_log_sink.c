/*
 * Files that are full, slow or gone: no worker waits, and what was sent is
 * either written, whole and in order, or counted as lost.
 */
#include "test.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "log_fixture.h"

#include "server/log/sink.h"

struct reader {
	int rdr_fd;
	char *rdr_text;
};

static void *
read_all(void *arg)
{
	struct reader *rdr = arg;

	rdr->rdr_text = slurp_fd(rdr->rdr_fd);
	return NULL;
}

/* Ends the log while somebody reads what comes; returns that. */
static char *
destroy_and_read(struct log **lg, int fd)
{
	struct reader rdr = {.rdr_fd = fd};
	pthread_t thread;

	fcntl(fd, F_SETFL, 0);
	pthread_create(&thread, NULL, read_all, &rdr);
	log_destroy(lg);
	pthread_join(thread, NULL);
	return rdr.rdr_text;
}

static int
new_fifo(const char *path)
{
	int fd;

	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* Until the writer has put into the FIFO what goes in. */
static void
await_full(const char *path)
{
	SCOPED(close_at) int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};

	assert_true(fd >= 0);
	while (poll(&pfd, 1, 0) != 0)
		usleep(1000);
}

TEST(a_stuck_log_blocks_no_worker_and_losses_are_reported)
{
	int fd = new_fifo(fx->fx_log);
	struct log *lg = new_log(fx->fx_log, 1);
	struct tally tl;
	SCOPED(free_at) char *text;

	send_many(log_writer(lg, 0), 0, MANY);
	/* Told while the log is stuck, not only once it recovers. */
	await(fx->fx_err,
	    " records lost: the log's file or reader is too slow\n");
	send_many(log_writer(lg, 0), MANY, MANY);
	text = destroy_and_read(&lg, fd);
	tl = count_lines(text, "a");
	assert_true(tl.tl_whole > 0);
	assert_int_equal(tl.tl_other, 0);
	assert_int_equal(tl.tl_whole + lost(), 2 * MANY);
}

TEST(a_stuck_log_holds_back_no_message)
{
	int fd = new_fifo(fx->fx_log);
	struct log *lg = new_log(fx->fx_log, 1);

	send_many(log_writer(lg, 0), 0, MANY);
	log_error(log_writer(lg, 0), "an error");
	await(fx->fx_err, "pagewise: an error\n");
	log_notice(log_writer(lg, 0), "a notice");
	await(fx->fx_out, "pagewise: a notice\n");
	free(destroy_and_read(&lg, fd));
}

TEST(a_stuck_log_does_not_delay_the_shutdown)
{
	int fd = new_fifo(fx->fx_log);
	struct log *lg = new_log(fx->fx_log, 2);
	struct tally tl;
	SCOPED(free_at) char *text;

	send_many(log_writer(lg, 1), 0, 2000);
	log_destroy(&lg);
	text = slurp_fd(fd);
	tl = count_lines(text, "a");
	/* The FIFO is not full in mid-line: another may write to it. */
	assert_int_equal(tl.tl_other, 0);
	assert_int_equal(tl.tl_whole + lost(), 2000);
	assert_true(lost() > 0);
}

/* As during a reload, when two processes have it. */
TEST(lines_of_two_logs_stay_whole_in_a_pipe)
{
	int fd = new_fifo(fx->fx_log);
	struct log *lg = new_log(fx->fx_log, 1);
	struct log *other = new_log(fx->fx_log, 1);
	struct reader rdr = {.rdr_fd = fd};
	pthread_t thread;
	const char *line, *end;
	int whole = 0;

	send_many(log_writer(lg, 0), 0, 2000);
	send_many(log_writer(other, 0), 0, 2000);
	await_full(fx->fx_log);
	fcntl(fd, F_SETFL, 0);
	assert_int_equal(pthread_create(&thread, NULL, read_all, &rdr), 0);
	log_destroy(&lg);
	log_destroy(&other);
	pthread_join(thread, NULL);
	for (line = rdr.rdr_text; *line != '\0'; line = end + 1, whole++) {
		end = strchr(line, '\n');
		assert_non_null(end);
		assert_true(line_number(line, (size_t)(end - line), "a") >= 0);
	}
	assert_int_equal(whole + lost(), 4000);
	free(rdr.rdr_text);
}

TEST(every_worker_has_its_turn_at_a_slow_log)
{
	int round, fd = new_fifo(fx->fx_log);
	struct log *lg = new_log(fx->fx_log, 2);
	size_t room = 1 << 20;
	char *buf = malloc(room);
	bool seen = false;
	ssize_t n;

	send_many(log_writer(lg, 0), 0, MANY);
	send_numbered(log_writer(lg, 1), "b", 0);
	/* A FIFO full of the first worker's, then it must be the other's. */
	for (round = 0; round < 3 && !seen; round++) {
		await_full(fx->fx_log);
		send_many(log_writer(lg, 0), (unsigned)(round + 1) * MANY, 999);
		n = read(fd, buf, room);
		assert_true(n > 0);
		seen = memmem(buf, (size_t)n, "/b/0", 4) != NULL;
	}
	assert_true(seen);
	free(buf);
	free(destroy_and_read(&lg, fd));
}

TEST(a_reader_that_went_away_is_reported)
{
	int fd = new_fifo(fx->fx_log);
	struct log *lg = new_log(fx->fx_log, 1);
	char message[160];

	close(fd);
	send_many(log_writer(lg, 0), 0, 3);
	log_destroy(&lg);
	assert_int_equal(lost(), 3);
	snprintf(message, sizeof(message), " records lost: %s: Broken pipe\n",
	    fx->fx_log);
	assert_true(contains(fx->fx_err, message));
}

TEST(a_full_disk_is_reported_with_path_and_cause)
{
	struct log *lg = new_log("/dev/full", 1);

	send_many(log_writer(lg, 0), 0, 100);
	await(
	    fx->fx_err, " records lost: /dev/full: No space left on device\n");
	send_many(log_writer(lg, 0), 0, 100);
	log_destroy(&lg);
	assert_int_equal(lost(), 200);
}

/*
 * The limit on file size fails a write in the middle, as a full disk does.  path: the file
 * that the log goes to.  Returns how many lines of it are not whole.
 */
static int
outgrow(struct log *lg, const char *path, bool cut)
{
	struct rlimit old, small;
	struct tally tl;
	char *text;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 10001;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	send_many(log_writer(lg, 0), 0, 200);
	await(fx->fx_err, "File too large\n");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	text = slurp(path);
	assert_int_equal(text[strlen(text) - 1] == '\n', cut);
	free(text);
	send_many(log_writer(lg, 0), 200, 50);
	log_destroy(&lg);
	text = slurp(path);
	tl = count_lines(text, "a");
	assert_int_equal(tl.tl_whole + lost(), 250);
	assert_non_null(strstr(text, "/000200/"));
	free(text);
	return tl.tl_other;
}

TEST(half_a_line_on_a_full_disk_is_removed)
{
	struct log *lg = new_log(fx->fx_log, 1);

	assert_int_equal(outgrow(lg, fx->fx_log, true), 0);
}

/* The standard output is somebody else's file. */
TEST(after_a_torn_line_the_next_one_stands_alone)
{
	struct log *lg = new_log("-", 1);

	assert_int_equal(outgrow(lg, fx->fx_out, false), 1);
}

/* A sink and its ring, which have written "one\ntw" of "one\ntwo\n". */
static struct ring *
begin_a_line(struct sink *sk)
{
	struct ring *rg;

	*sk = (struct sink){.sk_fd = -1};
	assert_int_equal(sink_open_path(sk, fx->fx_log), 0);
	assert_int_equal(ring_create(4096, &rg), 0);
	assert_int_equal(write(sk->sk_fd, "one\ntw", 6), 6);
	sk->sk_begun = 2;
	memcpy(ring_reserve(rg, 2), "o\n", 2);
	ring_commit(rg, 2);
	return rg;
}

static void
assert_lost_and_next(struct sink *sk, struct ring *rg, const char *expected)
{
	SCOPED(free_at) char *text;

	sink_drop(sk, rg);
	assert_int_equal(sk->sk_dropped, 1);
	memcpy(ring_reserve(rg, 6), "three\n", 6);
	ring_commit(rg, 6);
	assert_true(sink_put(sk, rg));
	sink_close(sk);
	ring_destroy(&rg);
	text = slurp(fx->fx_log);
	assert_string_equal(text, expected);
}

TEST(the_rest_of_a_line_is_lost_with_its_begin)
{
	struct sink sk;
	struct ring *rg = begin_a_line(&sk);

	assert_lost_and_next(&sk, rg, "one\nthree\n");
}

/* As the old server process may during a reload. */
TEST(lines_of_another_process_are_not_truncated)
{
	struct sink sk;
	struct ring *rg = begin_a_line(&sk);
	int fd = open_capture(fx->fx_log);

	assert_int_equal(write(fd, "!\n", 2), 2);
	close(fd);
	assert_lost_and_next(&sk, rg, "one\ntw!\n\nthree\n");
}

/* As logrotate does with copytruncate. */
TEST(an_emptied_log_is_not_truncated)
{
	struct sink sk;
	struct ring *rg = begin_a_line(&sk);
	int fd = open_capture(fx->fx_log);

	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(write(fd, "new\n", 4), 4);
	close(fd);
	assert_lost_and_next(&sk, rg, "new\n\nthree\n");
}

static void
stuck_stdout(const int fds[2], uid_t uid)
{
	struct log *lg = NULL;
	struct tally tl;
	SCOPED(free_at) char *text;

	assert_int_equal(seteuid(uid), 0);
	assert_int_equal(create_log_fd("-", 1, fds[1], &lg), 0);
	assert_int_equal(seteuid(getuid()), 0);
	/* It is shared: the shell's next program would be surprised. */
	assert_int_equal(fcntl(fds[1], F_GETFL) & O_NONBLOCK, 0);
	close(fds[1]);
	send_many(log_writer(lg, 0), 0, MANY);
	await(fx->fx_err,
	    " records lost: the log's file or reader is too slow\n");
	text = destroy_and_read(&lg, fds[0]);
	tl = count_lines(text, "a");
	assert_int_equal(tl.tl_other, 0);
	assert_int_equal(tl.tl_whole + lost(), MANY);
}

TEST(a_stuck_pipe_as_stdout_blocks_no_worker)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	stuck_stdout(fds, geteuid());
}

/* As in a container that runs as an ordinary user: cannot be opened anew. */
TEST(a_stuck_pipe_of_another_user_blocks_no_worker)
{
	int fds[2];

	if (getuid() != 0)
		skip();
	/* Made before, by root, so that the user can write to it. */
	close(open_capture(fx->fx_err));
	assert_int_equal(chmod(fx->fx_dir, 0755), 0);
	assert_int_equal(chmod(fx->fx_err, 0666), 0);
	assert_int_equal(pipe(fds), 0);
	stuck_stdout(fds, 65534);
}

TEST(a_stuck_socket_as_stdout_blocks_no_worker)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	stuck_stdout(fds, geteuid());
}

/*
 * A server process closes descriptors that programs inherit.  FreeBSD has /dev/fd/N for the standard
 * files only.
 */
TEST(a_descriptor_that_is_opened_again_is_closed_on_exec)
{
	struct sink sk[2] = {{.sk_fd = -1}, {.sk_fd = -1}};
	int fds[2], flags[2], old = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	if (sink_open_fd(&sk[0], "stderr", STDERR_FILENO) == 0)
		sink_open_path(&sk[1], "/dev/stderr");
	for (size_t i = 0; i < 2; i++) {
		flags[i] = fcntl(sk[i].sk_fd, F_GETFD);
		sink_close(&sk[i]);
		close(fds[i]);
	}
	dup2(old, STDERR_FILENO);
	close(old);
	assert_int_equal(flags[0], FD_CLOEXEC);
	assert_int_equal(flags[1], FD_CLOEXEC);
}

int
setup_all(void **state)
{
	(void)state;
	/* As the master has it: FreeBSD sends SIGXFSZ to the process. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	use_zone("UTC0");
	alarm(120); /* whoever blocks after all is ended */
	return 0;
}
