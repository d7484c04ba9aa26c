/*
 * What is known of file systems by their type (fstatfs(2), which this program has its own of), and
 * whether the loop compares an open file there.
 */
#include <sys/vfs.h>

#include <linux/magic.h>

#include "lib_fixture.h"

static long type;

int
fstatfs(int fd, struct statfs *sf)
{
	(void)fd;
	*sf = (struct statfs){.f_type = type};
	return 0;
}

static const struct {
	long fs_type;
	const char *fs_name;
	bool fs_local;
} kinds[] = {
    {EXT4_SUPER_MAGIC, "ext4", true}, {XFS_SUPER_MAGIC, "xfs", true},
    {BTRFS_SUPER_MAGIC, "btrfs", true}, {TMPFS_MAGIC, "tmpfs", true},
    {OVERLAYFS_SUPER_MAGIC, "overlayfs", true},
    {SQUASHFS_MAGIC, "squashfs", true}, {0x2fc12fc1, "zfs", true},
    {MSDOS_SUPER_MAGIC, "vfat", true}, {0x2011bab0, "exfat", true},
    {FUSE_SUPER_MAGIC, "fuse", false}, {NFS_SUPER_MAGIC, "nfs", false},
    {0xff534d42, "cifs", false}, {V9FS_MAGIC, "9p", false},
    {CEPH_SUPER_MAGIC, "ceph", false},
    {0x7461636f, "unknown file system", false}, /* OCFS2 */
};

/* It is written in place where the loop may look, and so is not fresh. */
static void
check_kind(bool local)
{
	SCOPED_FILE *file;

	make_file("f", 10);
	file = open_file("f");
	assert_int_equal(file_priv(file)->fp_remote, !local);
	assert_true(file_is_fresh(file));
	make_file("f", 11);
	assert_int_equal(file_is_fresh(file), !local);
}

TEST(open_file_is_compared_on_local_file_systems, NULL)
{
	struct os_fs fs;
	void *left;

	for (size_t i = 0; i < COUNT(kinds); i++) {
		type = kinds[i].fs_type;
		fs = (struct os_fs){.fs_local = !kinds[i].fs_local};
		os_ask_means(STDIN_FILENO, &fs);
		assert_string_equal(fs.fs_name, kinds[i].fs_name);
		assert_int_equal(fs.fs_local, kinds[i].fs_local);
		assert_int_equal(setup(&left), 0);
		check_kind(kinds[i].fs_local);
		assert_int_equal(teardown(&left), 0);
	}
}

/* Also where RWF_NOWAIT works, as it does for the files of this test. */
TEST(loop_never_opens_files_of_a_file_server, NULL)
{
	struct os_fs fs = {0};
	SCOPED(close_at) int fd = open(".", O_RDONLY | O_DIRECTORY);

	for (size_t i = 0; i < COUNT(kinds); i++) {
		type = kinds[i].fs_type;
		if (kinds[i].fs_local)
			continue;
		assert_false(os_cached_works(fd));
		assert_int_equal(os_ask_means(fd, &fs), OS_ASK_FETCH);
	}
}
