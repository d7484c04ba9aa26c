/*
 * text_file: see text_file.h.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "server/util/text_file.h"

/* Returns 0 if the file is a regular one, else an errno value. */
static int
text_file_unfit(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	return S_ISREG(st.st_mode) ? 0 : ESPIPE;
}

static int
text_file_open_one(const char *path, int flags)
{
	int fd;

	do
		fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC | flags);
	while (fd == -1 && errno == EINTR);
	return fd;
}

/*
 * Skips the byte order mark that some editors write before UTF-8 text.  Returns false and sets
 * errno on failure.
 */
static bool
text_file_skip_mark(int fd)
{
	static const unsigned char mark[] = {0xef, 0xbb, 0xbf};
	unsigned char first[sizeof(mark)];
	ssize_t n;

	do
		n = pread(fd, first, sizeof(first), 0);
	while (n == -1 && errno == EINTR);
	if (n == -1)
		return false;
	if (n < (ssize_t)sizeof(mark) || memcmp(first, mark, sizeof(mark)) != 0)
		return true;
	return lseek(fd, sizeof(mark), SEEK_SET) != -1;
}

FILE *
text_file_open(const char *path)
{
	FILE *fp = NULL;
	int fd, error;

	/* Without O_NONBLOCK open(2) of a FIFO would wait for a writer. */
	fd = text_file_open_one(path, O_NONBLOCK);
	/*
	 * EWOULDBLOCK means that another process, such as an NFS server, has a lease on the file
	 * (fcntl(2)).  The second call waits until that lease is released.
	 */
	if (fd == -1 && errno == EWOULDBLOCK)
		fd = text_file_open_one(path, 0);
	if (fd == -1)
		return NULL;
	error = text_file_unfit(fd);
	if (error == 0 && !text_file_skip_mark(fd))
		error = errno;
	if (error == 0) {
		fp = fdopen(fd, "r");
		error = errno;
	}
	if (fp == NULL)
		close(fd);
	errno = error;
	return fp;
}

const char *
text_file_cause(int error)
{
	if (error == ESPIPE)
		return "is not a regular file, so a reload cannot read it "
		       "again: copy its contents to a regular file";
	return strerror(error);
}
