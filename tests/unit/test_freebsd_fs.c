/*
 * How files of FreeBSD's file systems are sent, with its fstatfs(2), getvfsbyname(3) and
 * sysctl(3) played by fakes.
 * The file that calls them there, lib/os/freebsd_fs.c, is built into this test.
 */
#include "test.h"

#include <sys/param.h>
#include <sys/mount.h>
#include <sys/types.h>

#include "lib/os/os.h"

/* sys/mount.h of FreeBSD, whatever system this is. */
#undef MNT_LOCAL
#define MNT_LOCAL 0x00001000

#define xvfsconf	  fake_xvfsconf
#define getvfsbyname	  fake_getvfsbyname
#define statfs		  fake_statfs
#define fstatfs		  fake_fstatfs
#define os_freebsd_sysctl fake_sysctl
#define meter_call(call)
#define os_learn	fake_os_learn
#define os_ask_means	fake_os_ask_means
#define os_native_probe fake_os_native_probe

#include "lib/os/freebsd.h"

struct statfs {
	uint32_t f_type;
	uint64_t f_flags;
	uint64_t f_iosize;
	char f_fstypename[16];
	char f_mntonname[1024];
};

struct xvfsconf {
	int vfc_typenum;
};

static struct statfs mounted;
static int swap_devices; /* or -errno */

static int
fstatfs(int fd, struct statfs *sf)
{
	(void)fd;
	*sf = mounted;
	return 0;
}

/* FreeBSD's numbers are hashes of the names. */
static const struct {
	const char *name;
	int number;
} loaded[] = {{"ufs", 53}, {"tmpfs", 135}, {"zfs", 222}, {"nfs", 58}};

static uint32_t
number_of(const char *name)
{
	for (size_t i = 0; i < COUNT(loaded); i++)
		if (strcmp(loaded[i].name, name) == 0)
			return (uint32_t)loaded[i].number;
	return 7; /* nullfs itself, or ext2fs, which was loaded later */
}

static int
getvfsbyname(const char *name, struct xvfsconf *xv)
{
	if (number_of(name) == 7)
		return -1;
	xv->vfc_typenum = (int)number_of(name);
	return 0;
}

int
os_freebsd_sysctl(const char *name)
{
	assert_string_equal(name, "vm.nswapdev");
	return swap_devices;
}

static int
os_native_probe(const char **why)
{
	*why = NULL;
	return 0;
}

#define LIB_OS_METER_H /* nothing is metered */
void os_learn(void);
enum os_ask os_ask_means(int, struct os_fs *);
#include "lib/os/freebsd_fs.c"

/* Asks about a file system of this type, which is above the type `lower`, or NULL. */
static enum os_ask
ask_above(const char *type, const char *lower)
{
	struct os_fs fs = {0};
	enum os_ask ask;

	mounted =
	    (struct statfs){.f_type = number_of(lower == NULL ? type : lower),
		.f_iosize = 32768,
		.f_flags = MNT_LOCAL,
		.f_mntonname = "/home"};
	snprintf(
	    mounted.f_fstypename, sizeof(mounted.f_fstypename), "%s", type);
	freebsd_fs_learn();
	ask = os_ask_means(-1, &fs);
	assert_string_equal(fs.fs_name, type);
	assert_string_equal(fs.fs_mount, "/home");
	assert_true(fs.fs_local);
	assert_int_equal(fs.fs_block, ask == OS_ASK_NATIVE ? 32768 : 0);
	return ask;
}

static enum os_ask
ask(const char *type)
{
	return ask_above(type, NULL);
}

TEST(asynchronous_file_systems_are_native)
{
	assert_int_equal(ask("ufs"), OS_ASK_NATIVE);
	assert_int_equal(ask("ext2fs"), OS_ASK_NATIVE);
	assert_int_equal(ask("zfs"), OS_ASK_FETCH);
	assert_int_equal(ask("unheard of"), OS_ASK_FETCH);
}

/* Its pages may be in swap, and sendfile(2) would wait for them. */
TEST(tmpfs_is_always_resident_only_without_swap)
{
	swap_devices = 0;
	assert_int_equal(ask("tmpfs"), OS_ASK_NEVER_COLD);
	swap_devices = 1;
	assert_int_equal(ask("tmpfs"), OS_ASK_FETCH);
	swap_devices = -EPERM;
	assert_int_equal(ask("tmpfs"), OS_ASK_FETCH);
	swap_devices = 0;
}

/* Jails have their roots there. */
TEST(nullfs_is_as_the_file_system_below)
{
	assert_int_equal(ask_above("nullfs", "ufs"), OS_ASK_NATIVE);
	assert_int_equal(ask_above("nullfs", "zfs"), OS_ASK_FETCH);
	assert_int_equal(ask_above("nullfs", "nfs"), OS_ASK_FETCH);
	assert_int_equal(ask_above("nullfs", "ext2fs"), OS_ASK_FETCH);
	assert_int_equal(ask_above("nullfs", NULL), OS_ASK_FETCH);
	assert_int_equal(ask_above("nullfs", "tmpfs"), OS_ASK_NEVER_COLD);
	swap_devices = 1;
	assert_int_equal(ask_above("nullfs", "tmpfs"), OS_ASK_FETCH);
	swap_devices = 0;
	/* Only nullfs has a number of another one; unionfs has two below. */
	assert_int_equal(ask_above("unionfs", "ufs"), OS_ASK_FETCH);
}

TEST(blocks_below_a_page_are_for_the_pool)
{
	struct os_fs fs = {0};

	mounted = (struct statfs){.f_iosize = 512, .f_fstypename = "ufs"};
	assert_int_equal(os_ask_means(-1, &fs), OS_ASK_FETCH);
	assert_int_equal(fs.fs_block, 0);
	assert_false(fs.fs_local);
}
