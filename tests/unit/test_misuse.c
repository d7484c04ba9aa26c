/*
 * What a caller must not do (lib/pagewise.h): -EINVAL, and nothing has changed; or, where
 * memory would be ruined, the program ends with a sentence.
 */
#include "xfer_fixture.h"

#include <sys/wait.h>

#define SIZE 5000

/* Runs in a process of its own, which has to end by abort(3) and say this. */
static void
assert_ends(void (*wrong)(void), const char *sentence)
{
	char said[1024] = "";
	size_t len = 0;
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		alarm(PATIENCE / 1000);
		dup2(fds[1], STDERR_FILENO);
		wrong();
		_exit(0);
	}
	close(fds[1]);
	while ((n = read(fds[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)n;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_string_equal(said, sentence);
}

static void
begin_without_a_function(void)
{
	struct pw_waiter w = {0};

	pw_wait_begin(fx->fx_loop, &w);
}

static void
end_without_a_begin(void)
{
	struct pw_waiter w = {.wt_done = nothing_done};

	pw_wait_end(&w, 0);
}

static void
unref_once_too_often(void)
{
	struct file_private fp = {.fp_loop = fx->fx_loop};
	struct pw_file *file = &fp.fp_file;

	pw_file_unref(&file);
}

static void
finish_while_pending(void)
{
	struct pw_file file = {0};
	struct pw_send s = {
	    .snd_loop = fx->fx_loop, .snd_file = &file, .snd_pending = true};

	pw_send_finish(&s);
}

static void
unpin_while_pending(void)
{
	struct pw_file *file = new_file("f", SIZE);
	struct pw_fetch ft = {.ft_waiter.wt_done = nothing_done,
	    .ft_file = file,
	    .ft_len = SIZE,
	    .ft_want = PW_FETCH_MEMORY};

	if (pw_fetch(&ft) == -EINPROGRESS)
		pw_unpin(&ft);
}

TEST(misuse_that_would_corrupt_memory_aborts_with_a_message)
{
	assert_ends(begin_without_a_function,
	    "libpagewise: pw_wait_begin: wt_done is not set: set it before "
	    "the call\n");
	assert_ends(end_without_a_begin,
	    "libpagewise: pw_wait_end: pw_wait_begin was not called for this "
	    "waiter\n");
	assert_ends(unref_once_too_often,
	    "libpagewise: pw_file_unref: the caller released more references "
	    "than it holds\n");
	assert_ends(finish_while_pending,
	    "libpagewise: pw_send_finish: the transmission is pending: cancel "
	    "it, and wait for snd_done\n");
	assert_ends(unpin_while_pending,
	    "libpagewise: pw_unpin: the fetch is pending: wait for wt_done\n");
}

TEST(a_pool_with_a_loop_stays)
{
	struct pw_pool *pool = fx->fx_pool;

	assert_int_equal(pw_pool_destroy(&fx->fx_pool, 0), -EINVAL);
	assert_ptr_equal(fx->fx_pool, pool);
	assert_int_equal(pw_loop_create(NULL, NULL, &fx->fx_loop), -EINVAL);
}

static void
destroy_its_loop(struct pw_waiter *w)
{
	struct pw_loop *lp = w->wt_loop;

	w->wt_error = pw_loop_destroy(&lp);
}

TEST(a_loop_with_waits_or_being_drained_stays)
{
	struct pw_loop *lp = fx->fx_loop;
	struct pw_waiter w = {.wt_done = destroy_its_loop};

	pw_wait_begin(lp, &w);
	assert_int_equal(pw_loop_destroy(&fx->fx_loop), -EINVAL);
	assert_ptr_equal(fx->fx_loop, lp);
	pw_wait_end(&w, 0);
	assert_int_equal(pw_loop_destroy(&fx->fx_loop), -EINVAL);
	settle(lp);
	assert_int_equal(w.wt_error, -EINVAL);
}

static int
no_work(struct pw_task *tk)
{
	(void)tk;
	return 0;
}

TEST(a_wait_without_a_callback_is_refused)
{
	struct pw_task no_done = {.tk_work = no_work},
		       nothing = {.tk_waiter.wt_done = nothing_done};
	struct pw_open op = {0};

	assert_int_equal(pw_task_run(fx->fx_loop, 1, &no_done), -EINVAL);
	assert_int_equal(pw_task_run(fx->fx_loop, 1, &nothing), -EINVAL);
	make_file("f", SIZE);
	assert_int_equal(
	    pw_file_open(fx->fx_loop, fx->fx_root, "f", clock_now(), &op),
	    -EINVAL);
	assert_null(op.op_file);
	assert_int_equal(pw_loop_pending(fx->fx_loop), 0);
}

TEST(an_open_that_does_not_wait_cannot_be_cancelled)
{
	struct pw_open op = {.op_waiter.wt_done = nothing_done};

	assert_int_equal(pw_open_cancel(&op), -EINVAL);
	make_file("f", SIZE);
	if (pw_file_open(fx->fx_loop, fx->fx_root, "f", clock_now(), &op) ==
	    -EINPROGRESS)
		settle(fx->fx_loop);
	assert_non_null(op.op_file);
	assert_int_equal(pw_open_cancel(&op), -EINVAL);
	assert_non_null(op.op_file);
	pw_file_unref(&op.op_file);
}

TEST(unknown_flags_of_a_root_are_refused)
{
	struct pw_root *rt = NULL;

	assert_int_equal(pw_root_open_with(fx->fx_dir, 8, &rt), -EINVAL);
	assert_int_equal(pw_root_open_with(fx->fx_dir,
			     PW_ROOT_NO_LINKS | PW_ROOT_AS_SLASH, &rt),
	    -EINVAL);
	assert_null(rt);
}

/* Starts s, which has to be refused, and takes no reference. */
static void
assert_refused(struct pw_send *s)
{
	struct pw_file *file = s->snd_file;
	unsigned refs = file_priv(file)->fp_refs;

	assert_int_equal(pw_send_start(s), -EINVAL);
	assert_int_equal(pw_send_step(s), PW_SEND_ERROR);
	assert_int_equal(s->snd_error, -EINVAL);
	assert_int_equal(file_priv(file)->fp_refs, refs);
	pw_send_finish(s);
}

TEST(an_invalid_transmission_is_refused)
{
	static const struct pw_sink_ops nothing;
	struct pw_sink sink = {&nothing};
	struct pw_file *file = new_file("f", SIZE), *dir;
	struct pw_loop *other;
	SCOPED_WIRE wr = wide_wire();
	struct xfer xf;
	struct pw_send good, s;

	xfer_init(&xf, "nodiskio", &wr, file);
	good = xf.xf_send;
	good.snd_len = SIZE;
	s = good, s.snd_off = -1;
	assert_refused(&s);
	s = good, s.snd_len = -1;
	assert_refused(&s);
	s = good, s.snd_sink = &sink;
	assert_refused(&s);
	assert_int_equal(open_at(".", clock_now(), &dir), 0);
	s = good, s.snd_file = dir;
	assert_refused(&s);
	pw_file_unref(&dir);
	assert_int_equal(pw_loop_create(fx->fx_pool, NULL, &other), 0);
	s = good, s.snd_loop = other;
	assert_refused(&s);
	assert_int_equal(pw_loop_destroy(&other), 0);
	assert_int_equal(wire_read(&wr), 0);
	pw_file_unref(&file);
}

TEST(a_step_or_start_while_pending_is_refused_and_the_completion_comes)
{
	SCOPED_FILE *file = new_file("f", SIZE);
	struct latch la;
	SCOPED_WIRE wr;
	SCOPED_XFER xf;

	file_priv(file)->fp_ask = OS_ASK_FETCH;
	latch_shut(&la, file_priv(file)->fp_device, fx->fx_loop);
	wire_wide(&wr);
	xfer_init(&xf, "nodiskio", &wr, file);
	xf.xf_send.snd_len = SIZE;
	assert_int_equal(pw_send_start(&xf.xf_send), 0);
	assert_int_equal(xfer_step(&xf), PW_SEND_PENDING);
	assert_int_equal(pw_send_start(&xf.xf_send), -EINVAL);
	assert_int_equal(xf.xf_send.snd_error, 0);
	assert_int_equal(pw_send_step(&xf.xf_send), PW_SEND_ERROR);
	assert_int_equal(xf.xf_send.snd_error, -EINVAL);
	assert_true(xf.xf_send.snd_pending);
	assert_int_equal(xf.xf_done, 0);
	latch_finish(&la);
	assert_int_equal(xf.xf_done, 1);
	assert_int_equal(pw_send_step(&xf.xf_send), PW_SEND_ERROR);
	assert_int_equal(xf.xf_send.snd_error, -EINVAL);
	assert_false(pw_send_stuck(&xf.xf_send));
}
