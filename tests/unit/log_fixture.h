/*
 * log_fixture: a log in a directory of its own, numbered records, and the
 * count of those that arrived, for the tests of server/log/.
 */
#ifndef TESTS_LOG_FIXTURE_H
#define TESTS_LOG_FIXTURE_H

#include "test.h"

#include <sys/stat.h>

#include <netinet/in.h>

#include <time.h>

#include "server/log/log.h"

#define MANY 20000 /* records: more than a ring and a pipe hold */

/*
 * Every test has a directory with these in it; out and err are what the log
 * takes for stdout and stderr.
 */
struct fixture {
	char fx_dir[64];
	char fx_log[80], fx_out[80], fx_err[80];
};

static struct fixture *fx; /* of the test that runs */

int
setup(void **state)
{
	*state = fx = calloc(1, sizeof(*fx));
	if (fx == NULL)
		return -1;
	strcpy(fx->fx_dir, "/tmp/test_log.XXXXXX");
	if (mkdtemp(fx->fx_dir) == NULL)
		return -1;
	snprintf(fx->fx_log, sizeof(fx->fx_log), "%s/log", fx->fx_dir);
	snprintf(fx->fx_out, sizeof(fx->fx_out), "%s/out", fx->fx_dir);
	snprintf(fx->fx_err, sizeof(fx->fx_err), "%s/err", fx->fx_dir);
	return 0;
}

int
teardown(void **state)
{
	char old[90];

	(void)state;
	snprintf(old, sizeof(old), "%s.1", fx->fx_log);
	remove(old);
	remove(fx->fx_log);
	remove(fx->fx_out);
	remove(fx->fx_err);
	rmdir(fx->fx_dir);
	free(fx);
	return 0;
}

/* Makes fd what stdout or stderr was; returns a copy of that. */
static inline int
redirect(int standard, int fd)
{
	int saved = fcntl(standard, F_DUPFD_CLOEXEC, 10);

	fflush(NULL);
	assert_true(saved >= 0);
	assert_int_equal(dup2(fd, standard), standard);
	return saved;
}

static inline void
restore(int standard, int saved)
{
	fflush(NULL);
	dup2(saved, standard);
	close(saved);
}

static inline int
open_capture(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

/* log_create with fd for stdout, or the file fx_out. */
static inline int
create_log_fd(const char *path, unsigned n, int fd, struct log **lg)
{
	int out = fd >= 0 ? fd : open_capture(fx->fx_out);
	int err = open_capture(fx->fx_err);
	int saved_out = redirect(STDOUT_FILENO, out);
	int saved_err = redirect(STDERR_FILENO, err);
	int error = log_create(path, LOG_COMBINED, n, lg, &(bool){false});

	if (error == 0)
		error = log_start(*lg);
	restore(STDERR_FILENO, saved_err);
	restore(STDOUT_FILENO, saved_out);
	close(err);
	if (fd < 0)
		close(out);
	return error;
}

static inline struct log *
new_log(const char *path, unsigned n)
{
	struct log *lg = NULL;

	assert_int_equal(create_log_fd(path, n, -1, &lg), 0);
	return lg;
}

static inline char *
slurp_fd(int fd)
{
	size_t len = 0, room = 1 << 16;
	char *text = malloc(room + 1);
	ssize_t n;

	while ((n = read(fd, text + len, room - len)) > 0) {
		len += (size_t)n;
		if (len == room)
			text = realloc(text, (room *= 2) + 1);
	}
	close(fd);
	text[len] = '\0';
	return text;
}

static inline char *
slurp(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd == -1 ? strdup("") : slurp_fd(fd);
}

static inline bool
contains(const char *path, const char *what)
{
	SCOPED(free_at) char *text = slurp(path);
	bool found = strstr(text, what) != NULL;

	return found;
}

/* Until the file contains what; the bound is for when it never will. */
static inline void
await(const char *path, const char *what)
{
	int i;

	for (i = 0; i < 3000; i++) {
		if (contains(path, what))
			return;
		usleep(10000);
	}
	fail_msg("%s never contained \"%s\"", path, what);
}

static inline void
assert_file(const char *path, const char *expected)
{
	SCOPED(free_at) char *text = slurp(path);

	assert_string_equal(text, expected);
}

static inline struct log_record
record(void)
{
	static const struct sockaddr_in peer = {.sin_family = AF_INET};

	return (struct log_record){
	    .rec_peer = (const struct sockaddr *)(const void *)&peer,
	    .rec_time = 1795227234, /* 21 Nov 2026 02:13:54 UTC */
	    .rec_texts.qt_line = STR("GET / HTTP/1.1"),
	    .rec_status = 200,
	    .rec_body = 512,
	    .rec_texts.qt_agent = STR("curl/8"),
	    .rec_bytes = 771,
	    .rec_duration = 153,
	};
}

/* A record that carries its number in a line of some length. */
static inline void
send_numbered(struct log_writer *w, const char *who, unsigned number)
{
	struct log_record rec = record();
	char line[128];

	rec.rec_texts.qt_line.s_ptr = line;
	rec.rec_texts.qt_line.s_len = (size_t)snprintf(
	    line, sizeof(line), "GET /%s/%06u/%060d HTTP/1.1", who, number, 0);
	log_access(w, &rec);
}

static inline void
send_many(struct log_writer *w, unsigned first, unsigned n)
{
	unsigned i;

	for (i = first; i < first + n; i++)
		send_numbered(w, "a", i);
}

/* The number in a whole line, or -1. */
static inline long
line_number(const char *line, size_t len, const char *who)
{
	static const char tail[] = "0 HTTP/1.1\" 200 512 \"-\" \"curl/8\" "
				   "771 153 0";
	char head[32];
	const char *p;
	long number = 0;

	snprintf(head, sizeof(head), "\"GET /%s/", who);
	p = memmem(line, len, head, strlen(head));
	if (len < 13 || memcmp(line, "0.0.0.0 - - [", 13) != 0 || p == NULL ||
	    len < sizeof(tail) ||
	    memcmp(line + len - (sizeof(tail) - 1), tail, sizeof(tail) - 1) !=
		0)
		return -1;
	/* strtol would be checked to the end of the text, each time. */
	for (p += strlen(head); *p >= '0' && *p <= '9'; p++)
		number = 10 * number + *p - '0';
	return number;
}

struct tally {
	unsigned tl_whole;
	unsigned tl_other; /* lines that are not a whole record of this one */
};

/* Numbers must grow: lost ones leave gaps, nothing comes twice or late. */
static inline struct tally
count_lines(const char *text, const char *who)
{
	struct tally tl = {0, 0};
	long number, last = -1;
	const char *end = text + strlen(text), *newline;
	size_t len;

	for (; *text != '\0'; text += len + (text[len] == '\n')) {
		/* strcspn would be checked to the end of the text, each time. */
		newline = memchr(text, '\n', (size_t)(end - text));
		len = (size_t)((newline == NULL ? end : newline) - text);
		number = text[len] == '\n' ? line_number(text, len, who) : -1;
		if (number == -1) {
			tl.tl_other++;
			continue;
		}
		assert_true(number > last);
		last = number;
		tl.tl_whole++;
	}
	return tl;
}

/* The sum of all reports. */
static inline unsigned
lost(void)
{
	static const char what[] = "pagewise: access log: ";
	char *text = slurp(fx->fx_err), *p = text, *end;
	unsigned long sum = 0;

	while ((p = strstr(p, what)) != NULL) {
		sum += strtoul(p + sizeof(what) - 1, &end, 10);
		assert_memory_equal(end, " records lost", 13);
		p = end;
	}
	free(text);
	return (unsigned)sum;
}

static inline void
use_zone(const char *tz)
{
	setenv("TZ", tz, 1);
	tzset();
}

#endif
