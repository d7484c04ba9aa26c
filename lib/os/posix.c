/*
 * posix: the functions of os.h that are the same on all systems.
 */
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/meter.h"
#include "lib/os/os.h"
#include "lib/util/offset.h"

long
os_round_trip(int sock)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len) == -1)
		return -errno;
	return (long)info.tcpi_rtt;
}

void *
os_map(int fd, off_t off, size_t len)
{
	void *map;

	meter_call(METER_MMAP);
	map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, off);

	return map == MAP_FAILED ? NULL : map;
}

void
os_unmap(void *map, size_t len)
{
	meter_call(METER_MUNMAP);
	munmap(map, len);
}

size_t
os_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

long
os_pipe_read(int pipe, void *to, size_t len)
{
	ssize_t n = read(pipe, to, len);

	return n == -1 ? -errno : n;
}

void
os_advise_random(int fd, bool random)
{
	posix_fadvise(fd, 0, 0, random ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL);
}

off_t
os_seek_data(int fd, off_t off)
{
	off_t at = lseek(fd, off, SEEK_DATA);

	if (at == -1)
		return errno == ENXIO ? OFFSET_MAX : -errno;
	return at;
}

off_t
os_seek_hole(int fd, off_t off)
{
	off_t at = lseek(fd, off, SEEK_HOLE);

	return at == -1 ? -errno : at;
}

int
os_sink_open(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	return fd == -1 ? -errno : fd;
}

int
os_lift_memlock(void)
{
	static const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};

	return setrlimit(RLIMIT_MEMLOCK, &none) == -1 ? -errno : 0;
}

int
os_random(void *to, size_t len)
{
	ssize_t n = getrandom(to, len, GRND_NONBLOCK);

	if (n == -1)
		return -errno;
	return (size_t)n == len ? 0 : -EAGAIN;
}

void
os_secret_destroy(void *mem, size_t size)
{
	if (mem == NULL)
		return;
	explicit_bzero(mem, size);
	munmap(mem, size);
}
