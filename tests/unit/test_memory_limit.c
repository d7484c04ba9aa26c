/*
 * The memory that a control group leaves (lib/os/linux_memory.c), from trees that stand for
 * /proc and /sys.
 */
#include "test.h"

#include <sys/stat.h>

#include "lib/os/linux_memory.h"

#define MIB	((uint64_t)1 << 20)
#define MACHINE (4096 * MIB)

struct file {
	const char *name;
	const char *text;
};

struct row {
	const char *what;
	const char *groups; /* /proc/self/cgroup */
	struct file files[4];
	uint64_t mib;
	bool limited;
	bool sockets;
};

#define V1    "sys/fs/cgroup/memory"
#define V2    "sys/fs/cgroup"
#define LIMIT "memory.limit_in_bytes"

static const struct row rows[] = {
    {"no control groups", NULL, {{0}}, 4096, false, false},
    {"v1", "4:memory:/a\n", {{V1 "/a/" LIMIT, "134217728\n"}}, 128, true,
	false},
    {"v1, none", "4:memory:/a\n", {{V1 "/a/" LIMIT, "9223372036854771712\n"}},
	4096, false, false},
    {"v1, an ancestor has it", "4:memory:/a/b/c\n",
	{{V1 "/a/b/c/" LIMIT, "9223372036854771712\n"},
	    {V1 "/a/" LIMIT, "134217728\n"}},
	128, true, false},
    {"v1, an ancestor has less", "4:memory:/a/b\n",
	{{V1 "/a/b/" LIMIT, "268435456\n"}, {V1 "/a/" LIMIT, "134217728\n"}},
	128, true, false},
    {"v1, a container that sees the host's name of its group",
	"4:memory:/docker/0123\n", {{V1 "/" LIMIT, "134217728\n"}}, 128, true,
	false},
    {"v1, a controller among others", "4:cpu,memory:/a\n",
	{{V1 "/a/" LIMIT, "134217728\n"}}, 128, true, false},
    {"v1, another controller", "4:memoryless:/a\n5:cpu:/a\n",
	{{V1 "/a/" LIMIT, "134217728\n"}}, 4096, false, false},
    {"v2", "0::/a\n", {{V2 "/a/memory.max", "134217728\n"}}, 128, true, true},
    {"v2, max", "0::/a\n", {{V2 "/a/memory.max", "max\n"}}, 4096, false, false},
    {"v2, an ancestor has it", "0::/a/b\n",
	{{V2 "/a/b/memory.max", "max\n"}, {V2 "/a/memory.max", "134217728\n"}},
	128, true, true},
    {"v2, high", "0::/a\n",
	{{V2 "/a/memory.max", "268435456\n"},
	    {V2 "/a/memory.high", "134217728\n"}},
	128, true, true},
    {"v2, a namespace of groups", "0::/\n", {{V2 "/memory.max", "134217728\n"}},
	128, true, true},
    {"v2, more than the machine has", "0::/a\n",
	{{V2 "/a/memory.max", "8589934592\n"}}, 4096, false, false},
    {"both, v1 has memory", "4:memory:/a\n0::/b\n",
	{{V1 "/a/" LIMIT, "134217728\n"}}, 128, true, false},
    {"both, v2 has memory", "4:cpu:/a\n0::/b\n",
	{{V2 "/unified/b/memory.max", "134217728\n"}}, 128, true, true},
};

static void
write_file(const char *root, const char *name, const char *text)
{
	char path[512], *slash;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
remove_tree(const char *root)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -r '%s'", root);
	assert_int_equal(system(command), 0);
}

static void
check(const struct row *row)
{
	char root[] = "/tmp/pagewise-limit-XXXXXX";
	struct os_memory om;

	assert_non_null(mkdtemp(root));
	if (row->groups != NULL)
		write_file(root, "proc/self/cgroup", row->groups);
	for (int i = 0; i < 4 && row->files[i].name != NULL; i++)
		write_file(root, row->files[i].name, row->files[i].text);
	os_linux_memory(root, MACHINE, &om);
	remove_tree(root);
	if (om.om_bytes != row->mib * MIB || om.om_limited != row->limited ||
	    om.om_sockets != row->sockets)
		fail_msg("%s: %llu MiB, limited %d, sockets %d", row->what,
		    (unsigned long long)(om.om_bytes / MIB), om.om_limited,
		    om.om_sockets);
}

TEST(the_least_limit_of_a_group_and_its_ancestors_counts)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(&rows[i]);
}
