/*
 * A process that ends with its parent, and one that does so no more (os_follow_parent of
 * lib/os/os.h); each test has the name of the rule that it pins.
 */
#include "test.h"

#include <sys/wait.h>

#include "lib/os/os.h"

struct family {
	int fm_said[2]; /* by the child, to the test */
	int fm_go[2];	/* to the parent: end */
};

static void
say(const struct family *fm, char word)
{
	if (write(fm->fm_said[1], &word, 1) != 1)
		_exit(1);
}

static void
await_end(pid_t parent)
{
	while (getppid() == parent)
		usleep(1000);
}

static _Noreturn void
follow(const struct family *fm, pid_t parent)
{
	say(fm, os_follow_parent(parent) == 0 ? 'f' : '?');
	for (;;)
		pause();
}

static _Noreturn void
let_go(const struct family *fm, pid_t parent)
{
	int error = os_follow_parent(parent);

	if (error == 0)
		error = os_follow_parent(0);
	say(fm, error == 0 ? 'g' : '?');
	await_end(parent);
	say(fm, 'l');
	_exit(0);
}

static _Noreturn void
come_late(const struct family *fm, pid_t parent)
{
	say(fm, 'c');
	await_end(parent);
	say(fm, os_follow_parent(parent) == -ESRCH ? 'e' : '?');
	_exit(0);
}

/* Has a child of a child do it; its parent ends when it is told to. */
static void
begin(struct family *fm, void (*act)(const struct family *, pid_t))
{
	pid_t parent;
	char word;

	assert_int_equal(pipe(fm->fm_said), 0);
	assert_int_equal(pipe(fm->fm_go), 0);
	parent = fork();
	assert_true(parent != -1);
	if (parent == 0) {
		parent = getpid();
		close(fm->fm_go[1]);
		if (fork() == 0)
			act(fm, parent);
		_exit(read(fm->fm_go[0], &word, 1) != 0);
	}
	close(fm->fm_said[1]);
	close(fm->fm_go[0]);
}

/* What it says next; 0: it has ended. */
static char
heard(const struct family *fm)
{
	char word = 0;

	assert_true(read(fm->fm_said[0], &word, 1) >= 0);
	return word;
}

static void
end_parent(const struct family *fm)
{
	int status;

	close(fm->fm_go[1]);
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

TEST(a_process_that_follows_ends_with_its_parent)
{
	struct family fm;

	begin(&fm, follow);
	assert_int_equal(heard(&fm), 'f');
	end_parent(&fm);
	assert_int_equal(heard(&fm), 0);
	close(fm.fm_said[0]);
}

TEST(a_process_that_stopped_following_survives)
{
	struct family fm;

	begin(&fm, let_go);
	assert_int_equal(heard(&fm), 'g');
	end_parent(&fm);
	assert_int_equal(heard(&fm), 'l');
	assert_int_equal(heard(&fm), 0);
	close(fm.fm_said[0]);
}

TEST(a_parent_that_has_ended_already_is_noticed)
{
	struct family fm;

	begin(&fm, come_late);
	assert_int_equal(heard(&fm), 'c');
	end_parent(&fm);
	assert_int_equal(heard(&fm), 'e');
	close(fm.fm_said[0]);
}

int
setup_all(void **state)
{
	(void)state;
	alarm(60); /* for a process that waits for ever */
	return 0;
}
