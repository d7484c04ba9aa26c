/*
 * The store of pipes: what is given back is given again, and where the limit of
 * descriptors or of the user's pipe buffers is reached, splice sends without.
 */
#include "xfer_fixture.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "lib/disk/completion.h"
#include "lib/os/os.h"
#include "lib/send/pipes.h"

#define SHARE_PIPES 512	  /* what the store gives at most */
#define STRANGER    54321 /* a user who has no pipes yet */

static int
pipes_setup(void **state)
{
	struct rlimit rl;

	getrlimit(RLIMIT_NOFILE, &rl);
	rl.rlim_cur = rl.rlim_max < 4096 ? rl.rlim_max : 4096;
	setrlimit(RLIMIT_NOFILE, &rl);
	*state = pipes_create(PIPES_SPLICE);
	return *state == NULL ? -1 : 0;
}

static int
pipes_teardown(void **state)
{
	struct pipes *pps = *state;

	pipes_destroy(&pps);
	return pps == NULL ? 0 : -1;
}

TEST(a_pipe_takes_a_share_without_waiting, pipes_setup, pipes_teardown)
{
	static char share[SHARE];
	struct pipe *pp;

	assert_int_equal(pipes_get(*state, &pp), 0);
	assert_int_equal(write(pp->pp_fds[1], share, sizeof(share)), SHARE);
	pp->pp_held = SHARE;
	pipes_put(*state, pp);
}

TEST(a_returned_pipe_is_used_again, pipes_setup, pipes_teardown)
{
	struct pipe *pp, *again;

	assert_int_equal(pipes_get(*state, &pp), 0);
	pipes_put(*state, pp);
	assert_int_equal(pipes_get(*state, &again), 0);
	assert_ptr_equal(again, pp);
	pipes_put(*state, again);
}

TEST(a_pipe_with_data_is_closed, pipes_setup, pipes_teardown)
{
	struct pipe *pp;
	int before = count_fds();

	assert_int_equal(pipes_get(*state, &pp), 0);
	assert_int_equal(write(pp->pp_fds[1], "x", 1), 1);
	pp->pp_held = 1;
	pipes_put(*state, pp);
	assert_int_equal(count_fds(), before);
}

/* Takes all that are to be had, gives them back; why there were no more. */
static int
exhaust(struct pipes *pps, unsigned *count)
{
	static struct pipe *all[SHARE_PIPES + 1];
	int error = 0;

	for (*count = 0; *count < COUNT(all); (*count)++) {
		error = pipes_get(pps, &all[*count]);
		if (error != 0)
			break;
	}
	for (unsigned i = 0; i < *count; i++)
		pipes_put(pps, all[i]);
	return error;
}

TEST(pipes_are_bounded_and_few_are_kept, pipes_setup, pipes_teardown)
{
	int before = count_fds();
	unsigned count, again;

	if (sysconf(_SC_OPEN_MAX) < 2 * SHARE_PIPES + 100)
		skip();
	assert_int_equal(exhaust(*state, &count), -EMFILE);
	assert_int_equal(count, SHARE_PIPES);
	assert_in_range(count_fds(), before, before + 2 * 64);
	assert_int_equal(exhaust(*state, &again), -EMFILE);
	assert_int_equal(again, SHARE_PIPES);
}

/* --------------------------------------------------------- splice without */

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
	struct pipe *pp;
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
	assert_int_equal(pipes_get(fx->fx_loop->lp_pipes, &pp), -EMFILE);
	xfer_init(&xf, "splice", &wr, file);
	xf.xf_send.snd_len = file->fil_size;
	pw_send_start(&xf.xf_send);
	xfer_run(&xf, &wr, 300000);
	/* From here on there are some again. */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
	assert_int_equal(xfer_run(&xf, &wr, UINT64_MAX), PW_SEND_DONE);
	assert_int_equal(wr.wr_len, 700001);
	assert_memory_equal(wr.wr_data, expected, 700001);
}

/* An ordinary user, all of whose pipe buffers are taken. */
static int
without_buffers(void)
{
	struct pipes *pps = pipes_create(PIPES_SPLICE);
	const char *why = "";
	struct pipe *pp;
	int fds[2];

	while (os_pipe(fds, 1 << 20) == 0)
		continue;
	if (pipes_get(pps, &pp) != -EPERM)
		return 1;
	if (pw_send_probe(pw_send_path("splice"), &why) != -EPERM)
		return 2;
	if (strstr(why, "pipe-user-pages-soft") == NULL)
		return 3;
	pipes_destroy(&pps);
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

TEST(pipes_go_back_to_the_store)
{
	SCOPED_FILE *file = new_file("f", 700001);
	int before;

	sends(file);
	before = count_fds();
	sends(file);
	sends(file);
	assert_int_equal(count_fds(), before);
}
