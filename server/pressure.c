/*
 * pressure: see pressure.h.
 */
#include <unistd.h>

#include "lib/os.h"

#include "pressure.h"

#define PERIOD_US 10000
#define UNSENT	  ((size_t)128 << 10) /* bytes: a segment or two of the largest */

int
pressure_start(struct pressure *pr, uint64_t most)
{
	uint64_t enough;
	int fd;

	*pr = (struct pressure){.pr_fd = -1};
	if (most == 0)
		return 0;
	fd = os_tcp_memory_open(&enough);
	if (fd < 0)
		return fd;
	pr->pr_fd = fd;
	pr->pr_most = most == PRESSURE_AUTO ? enough / 2 : most;
	return 0;
}

void
pressure_end(struct pressure *pr)
{
	if (pr->pr_fd != -1)
		close(pr->pr_fd);
	pr->pr_fd = -1;
}

bool
pressure_look(struct pressure *pr, uint64_t now)
{
	bool before = pr->pr_on;
	int64_t bytes;

	if (pr->pr_fd == -1 || now < pr->pr_next)
		return false;
	pr->pr_next = now + PERIOD_US;
	bytes = os_tcp_memory(pr->pr_fd);
	if (bytes < 0)
		return false;
	pr->pr_on =
	    (uint64_t)bytes > (before ? pr->pr_most / 4 * 3 : pr->pr_most);
	return pr->pr_on && !before;
}

void
pressure_apply(const struct pressure *pr, int sock)
{
	(void)os_limit_unsent(sock, pr->pr_on ? UNSENT : 0);
}
