/*
 * main: see master.h.
 */
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/conf/sign.h"
#include "server/log/log.h"
#include "server/process/master.h"
#include "server/process/run_tool.h"

/*
 * Opens missing standard descriptors, which the parent may have closed, so that no socket gets their
 * numbers.
 */
static void
main_have_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd != -1 && fd <= STDERR_FILENO);
	if (fd != -1)
		close(fd);
}

int
main(int argc, char **argv)
{
	int status;

	main_have_standard_files();
	tzset(); /* reads the time zone's file; see server/http/date.c */
	if (argc > 1 && strcmp(argv[1], "sign") == 0)
		return sign(argc - 1, argv + 1);
	log_find_journal();
	status = run_tool(argc, argv);
	if (status >= 0)
		return status;
	return master(argc, argv);
}
