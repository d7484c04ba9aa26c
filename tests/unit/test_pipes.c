/*
 * The path splice: the loop's pipe is used again, and where the limit of descriptors or of the user's pipe
 * buffers is reached, splice sends without.
 */
#include "xfer_fixture.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "lib/disk/completion.h"
#include "lib/os/os.h"
#include "lib/send/piped.h"

#define STRANGER 54321 /* a user who has no pipes yet */

/* Whether path has sent all of a file, rightly. */
static void
sends(struct pw_file *file)
{
	size_t size = (size_t)file->fil_size;
	SCOPED(free_at) char *expected = malloc(size);
	SCOPED_WIRE wr;
	SCOPED_XFER xf;

	assert_non_null(expected);
	fill(expected, 0, size);
	wire_narrow(&wr);
	xfer_init(&xf, "splice", &wr, file);
	xf.xf_send.snd_len = file->fil_size;
	pw_send_start(&xf.xf_send);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	assert_int_equal(wr.wr_len, size);
	assert_memory_equal(wr.wr_data, expected, size);
}

TEST(without_descriptors_the_file_is_sent)
{
	SCOPED_FILE *file = new_file("f", 700001);
	struct rlimit rl, none;
	SCOPED_WIRE wr;
	SCOPED(free_at) char *expected = malloc(700001);
	SCOPED_XFER xf;
	int fd;

	assert_non_null(expected);
	fill(expected, 0, 700001);
	wire_narrow(&wr);
	getrlimit(RLIMIT_NOFILE, &rl);
	fd = dup(0);
	close(fd);
	none = rl;
	none.rlim_cur = (rlim_t)fd;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	xfer_init(&xf, "splice", &wr, file);
	xf.xf_send.snd_len = file->fil_size;
	pw_send_start(&xf.xf_send);
	xfer_run(&xf, &wr, 300000);
	assert_int_equal(fx->fx_loop->lp_pipe[0], -1);
	/* From here on there are some again. */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	assert_true(fx->fx_loop->lp_pipe[0] >= 0);
	assert_int_equal(wr.wr_len, 700001);
	assert_memory_equal(wr.wr_data, expected, 700001);
}

/* An ordinary user, all of whose pipe buffers are taken. */
static int
without_buffers(void)
{
	const char *why = "";
	int fds[2];

	while (os_pipe(fds, 1 << 20) == 0)
		continue;
	if (pw_send_probe(pw_send_path("splice"), &why) != -EPERM)
		return 2;
	if (strstr(why, "pipe-user-pages-soft") == NULL)
		return 3;
	return 0;
}

TEST(a_user_with_too_many_pipes_gets_no_small_ones, NULL)
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0) {
		if (setresuid(STRANGER, STRANGER, STRANGER) != 0)
			_exit(100);
		_exit(without_buffers());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(pipe_is_used_again)
{
	SCOPED_FILE *file = new_file("f", 700001);
	int before;

	sends(file);
	before = count_fds();
	sends(file);
	sends(file);
	assert_int_equal(count_fds(), before);
}
