/*
 * journal: finds out whether journald reads a descriptor.  For journald, "<N>" at the start of a
 * line is the line's priority (sd-daemon(3)).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/log/log_priv.h"

/* true for each descriptor that journald reads */
static bool journal[STDERR_FILENO + 1];

/* Compares device and inode, because JOURNAL_STREAM remains set after a redirection. */
static bool
log_journal_is_journal(int fd, const char *stream)
{
	char own[64];
	struct stat st;

	if (stream == NULL || fstat(fd, &st) == -1)
		return false;
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino);
	return strcmp(own, stream) == 0;
}

void
log_find_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");

	journal[STDOUT_FILENO] = log_journal_is_journal(STDOUT_FILENO, stream);
	journal[STDERR_FILENO] = log_journal_is_journal(STDERR_FILENO, stream);
}

bool
log_to_journal(int fd)
{
	return journal[fd];
}

const char *
log_error_prefix(void)
{
	return journal[STDERR_FILENO] ? "<3>" : "";
}
