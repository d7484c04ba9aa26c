/*
 * For which files the kernel says what is in memory (os_owner): each process asks once it is
 * whom it should be, so all are children.
 */
#include "test.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>

#include "lib/os/os.h"

#define ROOT	  0
#define NO_NUMBER 65534
#define SOMEBODY  12345
#define CACHESTAT 451
#define ANSWERED  (-1) /* who_refused: the call does nothing, and says 0 */

/* What a child ends with. */
enum answer { FALSE, TRUE, CANNOT, BROKEN };

struct who {
	uid_t who_uid;
	bool who_fowner; /* has CAP_FOWNER */
	int who_refused; /* what a filter answers for cachestat(2); 0: there is none */
	const char *who_map; /* user namespace; NULL: that of this process */
	uid_t who_owner;     /* of the file */
};

/* It has a page, and no name. */
static int
make_file(uid_t owner)
{
	char path[256];
	const char *dir = getenv("TMPDIR");
	int fd;

	snprintf(
	    path, sizeof(path), "%s/owner.XXXXXX", dir != NULL ? dir : "/tmp");
	fd = mkstemp(path);
	assert_return_code(fd, errno);
	assert_return_code(unlink(path), errno);
	assert_int_equal(write(fd, "it", 2), 2);
	assert_return_code(fchown(fd, owner, (gid_t)-1), errno);
	assert_return_code(fchmod(fd, 0444), errno);
	return fd;
}

/* Opened for writing it may be asked about by all. */
static int
only_for_reading(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool
set_map(const char *map)
{
	SCOPED(close_at)
	int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	bool is_set = fd != -1 && dprintf(fd, "%s", map) > 0;

	return is_set;
}

static bool
become(uid_t uid, bool fowner)
{
	struct __user_cap_header_struct header = {
	    .version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (fowner)
		sets[0].effective = sets[0].permitted = CAP_TO_MASK(CAP_FOWNER);
	return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 &&
	       setresuid(uid, uid, uid) == 0 &&
	       syscall(SYS_capset, &header, sets) == 0;
}

static bool
refuse_cachestat(int refused)
{
	unsigned error = refused == ANSWERED ? 0 : (unsigned)refused;
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	return ctx != NULL &&
	       seccomp_rule_add(ctx, SCMP_ACT_ERRNO(error), CACHESTAT, 0) ==
		   0 &&
	       seccomp_load(ctx) == 0;
}

static enum answer
ask(const struct who *who, int fd)
{
	if (fd == -1)
		return BROKEN;
	if (who->who_map != NULL &&
	    (unshare(CLONE_NEWUSER) == -1 || !set_map(who->who_map)))
		return CANNOT;
	if (!become(who->who_uid, who->who_fowner))
		return BROKEN;
	if (who->who_refused != 0 && !refuse_cachestat(who->who_refused))
		return CANNOT;
	return os_owner(fd) ? TRUE : FALSE;
}

static enum answer
answer(const struct who *who)
{
	int fd = make_file(who->who_owner), status;
	pid_t pid = fork();

	if (pid == 0)
		_exit((int)ask(who, only_for_reading(fd)));
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return (enum answer)WEXITSTATUS(status);
}

static void
expect(enum answer expected, struct who who)
{
	enum answer got;

	if (geteuid() != 0)
		skip();
	got = answer(&who);
	if (got == CANNOT)
		skip();
	assert_int_equal(got, expected);
}

TEST(the_owner_may_check)
{
	expect(TRUE, (struct who){.who_uid = ROOT, .who_owner = ROOT});
	expect(TRUE, (struct who){.who_uid = SOMEBODY, .who_owner = SOMEBODY});
}

TEST(another_user_may_not_check)
{
	expect(FALSE, (struct who){.who_uid = SOMEBODY, .who_owner = ROOT});
	expect(
	    FALSE, (struct who){.who_uid = NO_NUMBER, .who_owner = SOMEBODY});
}

TEST(another_user_with_the_capability_may_check)
{
	const struct who who = {
	    .who_uid = NO_NUMBER, .who_fowner = true, .who_owner = ROOT};

	expect(TRUE, who);
}

/* As before Linux 6.5, and in containers that know no newer calls. */
TEST(without_cachestat_the_rules_are_the_same)
{
	static const int errors[] = {ENOSYS, EPERM};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct who who = {.who_uid = SOMEBODY,
		    .who_owner = ROOT,
		    .who_refused = errors[i]};

		expect(FALSE, who);
		who.who_fowner = true;
		expect(TRUE, who);
		who.who_fowner = false;
		who.who_owner = SOMEBODY;
		expect(TRUE, who);
	}
}

/* Linux 6.5 to 6.12 answer everybody, and mincore lies to all but the owner. */
TEST(success_of_cachestat_proves_no_ownership)
{
	struct who who = {
	    .who_uid = SOMEBODY, .who_owner = ROOT, .who_refused = ANSWERED};

	expect(FALSE, who);
	who.who_owner = SOMEBODY;
	expect(TRUE, who);
}

/* In the first user namespace nobody is a user like others, but not to a capability. */
TEST(the_overflow_uid_owns_its_files)
{
	struct who who = {.who_uid = NO_NUMBER,
	    .who_owner = NO_NUMBER,
	    .who_refused = ENOSYS};

	expect(TRUE, who);
	who.who_uid = SOMEBODY;
	who.who_fowner = true;
	expect(FALSE, who);
}

/* Its owner has no number here: mincore(2) lies, whatever the capabilities are. */
TEST(no_capability_covers_an_owner_without_a_number)
{
	struct who who = {.who_uid = ROOT,
	    .who_fowner = true,
	    .who_map = "0 0 1",
	    .who_owner = SOMEBODY,
	    .who_refused = ENOSYS};

	expect(FALSE, who);
	who.who_owner = ROOT;
	expect(TRUE, who);
	who.who_refused = 0;
	expect(TRUE, who);
	who.who_owner = SOMEBODY;
	expect(FALSE, who);
}

/* Who has the number that stands for those without one is none of them. */
TEST(the_overflow_uid_does_not_own_what_has_no_number)
{
	struct who who = {.who_uid = NO_NUMBER,
	    .who_fowner = true,
	    .who_map = "65534 0 1",
	    .who_owner = SOMEBODY,
	    .who_refused = ENOSYS};

	expect(FALSE, who);
}
