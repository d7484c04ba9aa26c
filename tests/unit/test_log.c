/*
 * The rules of server/log/log.h: a line cannot be forged, each kind of line has its
 * file, and the writer thread is there when it is needed.
 */
#include "test.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdatomic.h>

#include "log_fixture.h"
#include "server/log/format.h"

#define IDLE_US 1300000 /* after that the writer blocks */

TEST(combined_format_with_bytes_duration_and_wait)
{
	struct log *lg = new_log(fx->fx_log, 1);
	struct log_record rec = record();
	regex_t re;
	SCOPED(free_at) char *text;

	rec.rec_texts.qt_referer = STR("http://a/b");
	rec.rec_wait = 9;
	log_access(log_writer(lg, 0), &rec);
	log_destroy(&lg);
	assert_null(lg);
	assert_int_equal(
	    regcomp(&re,
		"^[0-9a-f.:]+ - - \\[[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}"
		"(:[0-9]{2}){3} [+-][0-9]{4}\\] \"GET / HTTP/1\\.1\" 200 512 "
		"\"http://a/b\" \"curl/8\" 771 153 9\n$",
		REG_EXTENDED | REG_NOSUB),
	    0);
	text = slurp(fx->fx_log);
	assert_int_equal(regexec(&re, text, 0, NULL, 0), 0);
	regfree(&re);
}

/* What a byte must look like in a field. */
static void
expect_byte(unsigned c, char out[8])
{
	if (c < 0x20 || c > 0x7E || c == '"' || c == '\\')
		snprintf(out, 8, "\\x%02X", c);
	else
		snprintf(out, 8, "%c", (int)c);
}

TEST(no_byte_in_a_field_can_forge_a_line)
{
	struct log *lg = new_log(fx->fx_log, 1);
	struct log_record rec = record();
	char byte[8], field[4], *text, *p, expected[128];
	unsigned c;
	size_t len;

	for (c = 0; c < 256; c++) {
		snprintf(field, sizeof(field), "a.b");
		field[1] = (char)c;
		rec.rec_texts.qt_line = rec.rec_texts.qt_referer =
		    rec.rec_texts.qt_agent = (struct str){field, 3};
		log_access(log_writer(lg, 0), &rec);
	}
	log_destroy(&lg);
	text = p = slurp(fx->fx_log);
	for (c = 0; c < 256; c++, p += len) {
		expect_byte(c, byte);
		len = (size_t)snprintf(expected, sizeof(expected),
		    "0.0.0.0 - - [21/Nov/2026:02:13:54 +0000] \"a%sb\" 200 512 "
		    "\"a%sb\" \"a%sb\" 771 153 0\n",
		    byte, byte, byte);
		assert_int_equal(strncmp(p, expected, len), 0);
	}
	assert_string_equal(p, "");
	free(text);
}

TEST(without_a_path_there_is_no_access_log)
{
	struct log *lg = new_log(NULL, 1);
	struct log_record rec = record();

	assert_false(log_access_on(log_writer(lg, 0)));
	log_access(log_writer(lg, 0), &rec);
	log_destroy(&lg);
	assert_file(fx->fx_out, "");
	assert_file(fx->fx_err, "");
}

TEST(a_path_that_cannot_be_opened_is_an_error)
{
	struct log *lg = NULL;
	char absent[sizeof(fx->fx_dir) + 16];

	snprintf(absent, sizeof(absent), "%s/absent/log", fx->fx_dir);
	assert_int_equal(create_log_fd(absent, 1, -1, &lg), -ENOENT);
	assert_int_equal(create_log_fd(fx->fx_dir, 1, -1, &lg), -EISDIR);
	/* Waiting for a reader would be for ever. */
	assert_int_equal(mkfifo(fx->fx_log, 0600), 0);
	assert_int_equal(create_log_fd(fx->fx_log, 1, -1, &lg), -ENXIO);
	assert_null(lg);
}

TEST(an_existing_log_is_appended_to)
{
	int fd = open_capture(fx->fx_log);
	struct log *lg;

	assert_int_equal(write(fd, "before\n", 7), 7);
	close(fd);
	lg = new_log(fx->fx_log, 1);
	assert_true(log_access_on(log_writer(lg, 0)));
	send_many(log_writer(lg, 0), 0, 1);
	log_destroy(&lg);
	assert_true(contains(fx->fx_log, "before\n0.0.0.0"));
}

TEST(a_new_log_is_not_world_readable)
{
	mode_t mask = umask(0);
	struct log *lg = new_log(fx->fx_log, 1);
	struct stat st;

	umask(mask);
	log_destroy(&lg);
	assert_int_equal(stat(fx->fx_log, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
}

TEST(notices_go_to_stdout_and_errors_to_stderr)
{
	struct log *lg = new_log(fx->fx_log, 2);

	log_notice(log_writer(lg, 0), "listening on port %d", 80);
	log_warn(log_writer(lg, 0), "one %s", "warning");
	log_error(log_writer(lg, 0), "an error");
	log_destroy(&lg);
	assert_file(fx->fx_out, "pagewise: listening on port 80\n");
	assert_file(
	    fx->fx_err, "pagewise: warning: one warning\npagewise: an error\n");
	assert_file(fx->fx_log, "");
}

TEST(notices_go_to_stderr_while_the_access_log_is_stdout)
{
	struct log *lg = new_log("-", 1);

	log_notice(log_writer(lg, 0), "listening");
	send_many(log_writer(lg, 0), 7, 1);
	log_destroy(&lg);
	assert_file(fx->fx_err, "pagewise: listening\n");
	assert_true(contains(fx->fx_out, "GET /a/000007/"));
	assert_false(contains(fx->fx_out, "pagewise"));
}

TEST(a_message_is_one_printable_line)
{
	struct log *lg = new_log(NULL, 1);
	char *big = malloc(10000);

	log_error(log_writer(lg, 0), "no\nnew\x1b[31mline \xC3\xA4 \"a\\b\"");
	memset(big, '\n', 9999);
	big[9999] = '\0';
	log_error(log_writer(lg, 0), "%s", big);
	log_destroy(&lg);
	free(big);
	big = slurp(fx->fx_err);
	assert_non_null(strstr(
	    big, "pagewise: no\\x0Anew\\x1B[31mline \\xC3\\xA4 \"a\\b\"\n"));
	assert_int_equal(strlen(strchr(big, '\n') + 1),
	    strlen("pagewise: \n") + 4 * FORMAT_FIELD);
	free(big);
}

TEST(messages_without_a_writer_are_written_at_once)
{
	int out = open_capture(fx->fx_out), err = open_capture(fx->fx_err);
	int saved_out = redirect(STDOUT_FILENO, out);
	int saved_err = redirect(STDERR_FILENO, err);

	log_notice(NULL, "a %s", "notice");
	log_warn(NULL, "a warning");
	log_error(NULL, "an error");
	restore(STDERR_FILENO, saved_err);
	restore(STDOUT_FILENO, saved_out);
	close(out);
	close(err);
	assert_file(fx->fx_out, "pagewise: a notice\n");
	assert_file(
	    fx->fx_err, "pagewise: warning: a warning\npagewise: an error\n");
}

TEST(a_record_wakes_an_idle_writer)
{
	SCOPED(log_destroy) struct log *lg = new_log(fx->fx_log, 2);

	usleep(IDLE_US);
	send_many(log_writer(lg, 1), 1, 1);
	await(fx->fx_log, "/000001/");
	usleep(IDLE_US);
	log_error(log_writer(lg, 0), "awake");
	await(fx->fx_err, "awake");
}

static void *
send_as_b(void *arg)
{
	for (unsigned i = 0; i < MANY; i++)
		send_numbered(arg, "b", i);
	return NULL;
}

TEST(each_workers_order_is_kept)
{
	struct log *lg = new_log(fx->fx_log, 2);
	struct tally a, b;
	pthread_t thread;
	SCOPED(free_at) char *text;

	pthread_create(&thread, NULL, send_as_b, log_writer(lg, 1));
	send_many(log_writer(lg, 0), 0, MANY);
	pthread_join(thread, NULL);
	log_destroy(&lg);
	text = slurp(fx->fx_log);
	a = count_lines(text, "a");
	b = count_lines(text, "b");
	assert_int_equal(a.tl_other, b.tl_whole);
	assert_int_equal(b.tl_other, a.tl_whole);
	assert_int_equal(a.tl_whole + b.tl_whole + lost(), 2 * MANY);
}

/* A disk that hangs: no write to this file comes back until it is released. */
static atomic_bool hanging, hung;
static ino_t hanging_ino;

ssize_t
write(int fd, const void *buf, size_t len)
{
	struct stat st;

	while (atomic_load(&hanging) && fstat(fd, &st) == 0 &&
	       st.st_ino == hanging_ino) {
		atomic_store(&hung, true);
		usleep(1000);
	}
	return syscall(SYS_write, fd, buf, len);
}

TEST(shutdown_does_not_wait_for_a_hung_disk)
{
	static struct log *left; /* still used by the thread, so not lost */
	struct log *lg = left = new_log(fx->fx_log, 1);
	char message[256];
	struct stat st;
	int err, saved;

	assert_int_equal(stat(fx->fx_log, &st), 0);
	hanging_ino = st.st_ino;
	atomic_store(&hanging, true);
	send_many(log_writer(lg, 0), 0, 1);
	while (!atomic_load(&hung))
		usleep(1000);
	err = open_capture(fx->fx_err);
	saved = redirect(STDERR_FILENO, err);
	log_destroy(&lg);
	restore(STDERR_FILENO, saved);
	close(err);
	assert_null(lg);
	assert_non_null(left);
	snprintf(message, sizeof(message),
	    "pagewise: %s: a write does not return: exiting without the last "
	    "lines; repair the disk of this log, or start its reader\n",
	    fx->fx_log);
	assert_file(fx->fx_err, message);
	atomic_store(&hanging, false);
	await(fx->fx_log, "/000000/");
}

int
setup_all(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	use_zone("UTC0");
	alarm(120); /* whoever blocks after all is ended */
	return 0;
}
