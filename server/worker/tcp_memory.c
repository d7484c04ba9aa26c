/*
 * tcp_memory: see tcp_memory.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/os/os.h"

#include "server/conf/conf.h"
#include "server/util/period.h"
#include "server/worker/tcp_memory.h"

#define PERIOD_US 10000 /* minimum time between two checks */
/* unsent bytes at TCP_LESS: two GSO packets of 64 KiB */
#define UNSENT	  ((size_t)128 << 10)
#define LITTLE	  ((size_t)4 << 10) /* unsent bytes at TCP_LITTLE */
#define SHARE	  8 /* sockets may hold 1/8 of the control group's memory */

/*
 * Opens the kernel's statistics of sockets, or in a debug build the file that PAGEWISE_SOCKSTAT
 * names.  Sets *enough to the bytes up to which the kernel does not limit TCP.  Returns the
 * descriptor or -errno.
 */
static int
tcp_memory_open_source(uint64_t *enough)
{
#ifdef PW_DEBUG
	const char *path = getenv("PAGEWISE_SOCKSTAT");
	int fd;

	if (path != NULL) {
		*enough = 0;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		return fd == -1 ? -errno : fd;
	}
#endif
	return os_tcp_memory_open(enough);
}

/* Sets the part of the control group's memory that the sockets of this process may hold. */
static void
tcp_memory_learn_limit(struct tcp_memory *pr, uint64_t most)
{
	struct os_memory om;

	os_memory(&om);
	if (!om.om_limited || most == 0)
		return;
	pr->pr_limit = om.om_bytes;
	pr->pr_share = om.om_bytes / SHARE;
	if (most < pr->pr_share)
		pr->pr_share = most;
}

int
tcp_memory_create(uint64_t most, struct tcp_memory **out)
{
	struct tcp_memory *pr = calloc(1, sizeof(*pr));
	size_t limit = os_unsent_limit();
	uint64_t enough;

	*out = pr;
	if (pr == NULL)
		return -ENOMEM;
	pr->pr_fd = -1;
	/*
	 * Uses the system's limit if that is lower, since a higher limit would allow more than
	 * without pressure.
	 */
	pr->pr_unsent = limit < UNSENT ? limit : UNSENT;
	tcp_memory_learn_limit(pr, most);
	if (most == 0)
		return 0;
	pr->pr_fd = tcp_memory_open_source(&enough);
	if (pr->pr_fd < 0)
		return pr->pr_fd;
	pr->pr_most = most == TCP_MEMORY_AUTO ? enough / 2 : most;
	return 0;
}

void
tcp_memory_destroy(struct tcp_memory **prp)
{
	struct tcp_memory *pr = *prp;

	if (pr == NULL)
		return;
	*prp = NULL;
	if (pr->pr_fd >= 0)
		close(pr->pr_fd);
	free(pr);
}

bool
tcp_memory_look(struct tcp_memory *pr, uint64_t now)
{
	uint64_t most = pr->pr_most;
	int64_t bytes;
	bool on;

	if (pr->pr_fd < 0 || !period_begins(&pr->pr_next, now, PERIOD_US))
		return false;
	bytes = os_tcp_memory(pr->pr_fd);
	if (bytes < 0)
		return false;
	on = (uint64_t)bytes > (tcp_memory_is_short(pr) ? most / 4 * 3 : most);
	return !atomic_exchange(&pr->pr_on, on) && on;
}

void
tcp_memory_apply(const struct tcp_memory *pr, enum tcp_level level, int sock)
{
	size_t bytes = level == TCP_ALL ? 0 : pr->pr_unsent;

	(void)os_limit_unsent(
	    sock, level == TCP_LITTLE && bytes > LITTLE ? LITTLE : bytes);
}
